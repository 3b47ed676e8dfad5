"""Minima and roots of many functions at once: known ones, and those of SciPy to the last bit."""

import numpy as np
import pytest
from designopt_regulator.frequency.chandrupatla import minima, roots
from scipy.optimize.elementwise import find_minimum, find_root

RNG = np.random.default_rng(5)
COUNT = 300
SCALE, PLACE = 10.0 ** RNG.uniform(-6, 6, COUNT), RNG.uniform(-3, 3, COUNT)
ROWS = np.arange(COUNT)


def tolerances(x: float) -> dict[str, float]:
    return {"xatol": x, "xrtol": 0.0, "fatol": 0.0, "frtol": 0.0}


def valley(row, x):
    """Lowest, -1, at `PLACE`, and steeper on its right."""
    d = x - PLACE[row]
    return np.exp(d) - d + 0.1 * d**4 - 2.0


def crossing(row, x):
    """Zero at `PLACE`; steep and flat, with a jump to infinity on some."""
    d = x - PLACE[row]
    return np.where(row % 7 == 3, 1.0 / np.where(d == 0.0, np.inf, d), SCALE[row] * np.expm1(d) * (1.0 + d * d))


def test_the_lowest_value_is_found_and_is_that_of_scipy() -> None:
    width = RNG.uniform(0.1, 2.0, (2, COUNT))
    bracket = PLACE - width[0], PLACE + 0.05 * width[0], PLACE + width[1]
    lowest = minima(valley, ROWS, bracket, tolerance=1e-9, iterations=40)
    assert lowest == pytest.approx(np.full(COUNT, -1.0), rel=1e-13)
    theirs = find_minimum(
        lambda x, row: valley(row.astype(int), x), bracket, args=(ROWS,), tolerances=tolerances(1e-9), maxiter=40
    )
    assert lowest.tobytes() == theirs.f_x.tobytes()


@pytest.mark.parametrize("iterations", [0, 3, 60])
def test_the_change_of_sign_is_found_and_is_that_of_scipy(iterations: int) -> None:
    bracket = PLACE - RNG.uniform(0.1, 2.0, COUNT), PLACE + RNG.uniform(0.1, 2.0, COUNT)
    crossings = roots(crossing, ROWS, bracket, tolerance=1e-13, iterations=iterations)
    assert np.abs(crossings - PLACE).max() < (1e-12 if iterations == 60 else 2.0)
    theirs = find_root(
        lambda x, row: crossing(row.astype(int), x),
        bracket,
        args=(ROWS,),
        tolerances=tolerances(1e-13),
        maxiter=iterations,
    )
    assert crossings.tobytes() == theirs.x.tobytes()


def test_fewer_iterations_give_what_they_have_reached() -> None:
    bracket = PLACE - 1.0, PLACE + 0.3, PLACE + 2.0
    theirs = find_minimum(
        lambda x, row: valley(row.astype(int), x), bracket, args=(ROWS,), tolerances=tolerances(1e-9), maxiter=4
    )
    lowest = minima(valley, ROWS, bracket, tolerance=1e-9, iterations=4)
    assert lowest.tobytes() == theirs.f_x.tobytes()
    assert 1e-9 < (lowest + 1.0).max() < 1.0


def test_points_that_enclose_nothing_and_functions_that_are_not_finite_give_none() -> None:
    rows = np.arange(4)
    low, middle, high = np.zeros(4), np.ones(4), np.full(4, 3.0)

    def values(row, x):
        return np.choose(row, [(x - 1.2) ** 2, x, np.where(x == 3.0, np.inf, -x), np.where(x > 1.0, np.nan, -x)])

    solutions = minima(values, rows, (low, middle, high), tolerance=1e-9, iterations=40)
    assert solutions[0] == pytest.approx(0.0, abs=1e-17)
    assert np.isnan(solutions[1:]).all()

    def signs(row, x):
        return np.choose(row, [x - 1.2, x + 1.0, np.full_like(x, np.nan), np.where(x > 1.0, 0.0, -1.0)])

    solutions = roots(signs, rows, (low, high), tolerance=1e-13, iterations=60)
    assert solutions[0] == pytest.approx(1.2, abs=1e-13)
    assert np.isnan(solutions[1:3]).all()
    assert solutions[3] == 3.0
