"""Parameters from measured trajectories: closed forms, an independent fit, intervals that cover, identifiability."""

from __future__ import annotations

import math
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares
from scipy.stats import chi2

from designopt.collocation import (
    ConfidenceInterval,
    Constraint,
    FitError,
    Guess,
    Integral,
    Measurements,
    Options,
    Phase,
    ProblemError,
    TrajectoryProblem,
    estimate,
    inference,
    read_measurements,
    solve,
    with_measurements,
)
from designopt.collocation.estimation.inference import _in_percent
from designopt.dynamics.system import System, Variable

Vector = NDArray[np.float64]


def line(**phase) -> TrajectoryProblem:
    """x' = slope: a straight line."""
    x, slope = ca.SX.sym("x"), ca.SX.sym("slope")
    system = System.from_expressions(
        "line",
        states=[(Variable("x", "m"), x, slope)],
        parameters=[(Variable("slope", "m/s", -10.0, 10.0), slope)],
        outputs=[(Variable("height", "m"), 2.0 * x)],
    )
    return TrajectoryProblem([Phase(system, tf=1.0, **phase)], cost=lambda e: 0.0)


TIMES = np.linspace(0.05, 0.95, 9)
SIGMA = np.linspace(0.05, 0.2, 9)
NOISY = 0.3 + 1.7 * TIMES + SIGMA * np.random.default_rng(0).standard_normal(9)
FEW = Options(intervals=4)


def regression(times: Vector, values: Vector, sigma: Vector) -> tuple[Vector, Vector]:
    """Slope and intercept of weighted linear least squares, and their covariance."""
    A = np.stack([times, np.ones_like(times)], axis=1) / sigma[:, None]
    covariance = np.linalg.inv(A.T @ A)
    return covariance @ A.T @ (values / sigma), covariance


def test_a_straight_line_is_that_of_weighted_linear_regression() -> None:
    result = estimate(line(), Measurements(TIMES, {"x": NOISY}, {"x": SIGMA}), FEW)
    expected, covariance = regression(TIMES, NOISY, SIGMA)

    assert result.names == ("slope", "motion.initial.x")
    assert [result.unknowns[n].value for n in result.names] == pytest.approx(expected, rel=1e-8)
    assert result.covariance == pytest.approx(covariance, rel=1e-8)
    slope = result.unknowns["slope"]
    assert slope.deviation == pytest.approx(math.sqrt(covariance[0, 0]), rel=1e-8)
    assert slope.high - slope.value == pytest.approx(1.959964 * slope.deviation, rel=1e-6)
    assert slope.unit == "m/s"
    left = ((expected[0] * TIMES + expected[1] - NOISY) / SIGMA) ** 2
    assert result.chi_squared == pytest.approx(left.sum(), rel=1e-8)
    assert (result.count, result.degrees_of_freedom) == (9, 7)
    assert result.p_value == pytest.approx(chi2.sf(left.sum(), 7), rel=1e-8)
    assert (result.rank, result.dimension, result.identifiable) == (2, 2, True)
    assert result.correlation[0, 1] == pytest.approx(covariance[0, 1] / np.sqrt(np.prod(covariance.diagonal())))
    fit = result.fits["motion"]
    assert fit.fitted["x"] == pytest.approx(expected[0] * TIMES + expected[1], rel=1e-8)
    assert (fit.residuals["x"] ** 2).sum() == pytest.approx(result.chi_squared)
    # the band of the line at its end
    at_end = np.array([1.0, 1.0])
    assert fit.bands["x"][-1] == pytest.approx(math.sqrt(at_end @ covariance @ at_end), rel=1e-8)


def test_missing_values_count_for_nothing_and_outputs_can_be_measured() -> None:
    gaps = NOISY.copy()
    gaps[[2, 5]] = np.nan
    finite = np.isfinite(gaps)
    expected, covariance = regression(TIMES[finite], NOISY[finite], SIGMA[finite])
    doubled = Measurements(TIMES, {"height": 2.0 * gaps}, {"height": 2.0 * SIGMA})
    for measured in (Measurements(TIMES, {"x": gaps}, {"x": SIGMA}), doubled):
        result = estimate(line(), measured, FEW)
        assert result.unknowns["slope"].value == pytest.approx(expected[0], rel=1e-8)
        assert result.covariance == pytest.approx(covariance, rel=1e-8)
        assert result.count == 7


def test_two_experiments_share_a_parameter() -> None:
    (phase,) = line().phases
    problem = replace(line(), phases=[replace(phase, name="first"), replace(phase, name="second")])
    measured = {
        "first": Measurements(TIMES, {"x": NOISY}, {"x": SIGMA}),
        "second": Measurements(TIMES, {"x": NOISY + 1.0}, {"x": 0.5 * SIGMA}),
    }
    result = estimate(problem, measured, FEW)
    A = np.zeros((18, 3))
    A[:9, 0], A[:9, 1] = TIMES / SIGMA, 1.0 / SIGMA
    A[9:, 0], A[9:, 2] = 2.0 * TIMES / SIGMA, 2.0 / SIGMA
    y = np.concatenate([NOISY / SIGMA, 2.0 * (NOISY + 1.0) / SIGMA])
    assert [result.unknowns[n].value for n in result.names] == pytest.approx(np.linalg.lstsq(A, y)[0], rel=1e-8)
    assert result.covariance == pytest.approx(np.linalg.inv(A.T @ A), rel=1e-8)
    assert set(result.fits) == {"first", "second"}


def test_a_parameter_at_its_bound_has_no_interval_and_others_that_of_the_rest() -> None:
    problem = replace(line(), parameters={"slope": (0.0, 1.0)})
    result = estimate(problem, Measurements(TIMES, {"x": NOISY}, {"x": SIGMA}), FEW)
    assert result.unknowns["slope"].at_bound
    assert result.names == ("motion.initial.x",)
    assert result.covariance == pytest.approx(np.array([[1.0 / (SIGMA**-2).sum()]]), rel=1e-6)
    assert result.degrees_of_freedom == 8


# -------------------------------------------------------------------------------------------------- nonlinear

#: Birth and death rates of prey and predators, and their numbers at the beginning.
TRUTH = {"birth": 0.9, "eaten": 0.06, "death": 1.1, "growth": 0.035, "prey": 25.0, "predators": 12.0}
YEARS = np.linspace(0.5, 8.0, 16)


def populations() -> TrajectoryProblem:
    """Lotka and Volterra: x' = a x - b x y, y' = -c y + d x y."""
    x, y, a, b, c, d = (ca.SX.sym(n) for n in "xyabcd")
    names = ("birth", "eaten", "death", "growth")
    system = System.from_expressions(
        "populations",
        states=[
            (Variable("prey", "", 0.0), x, a * x - b * x * y),
            (Variable("predators", "", 0.0), y, -c * y + d * x * y),
        ],
        parameters=[(Variable(n, "1/s", 0.001, 5.0), s) for n, s in zip(names, (a, b, c, d), strict=True)],
    )
    guess = {"birth": 1.0, "eaten": 0.05, "death": 1.0, "growth": 0.05}
    return TrajectoryProblem([Phase(system, tf=8.0)], cost=lambda e: 0.0, guess=guess)


def simulated(values: Vector, times: Vector = YEARS) -> Vector:
    """The populations (n, 2), with an integrator of its own."""
    a, b, c, d, x0, y0 = values

    def rates(t: float, z: Vector) -> list[float]:
        return [a * z[0] - b * z[0] * z[1], -c * z[1] + d * z[0] * z[1]]

    return solve_ivp(rates, (0.0, 8.0), [x0, y0], t_eval=times, rtol=1e-10, atol=1e-10).y.T


def noisy(seed: int) -> Measurements:
    exact = simulated(np.array(list(TRUTH.values())))
    values = exact + np.array([1.0, 0.5]) * np.random.default_rng(seed).standard_normal(exact.shape)
    return Measurements(YEARS, {"prey": values[:, 0], "predators": values[:, 1]}, {"prey": 1.0, "predators": 0.5})


MESH = Options(intervals=16, degree=5)


def test_a_nonlinear_fit_and_its_covariance_are_those_of_shooting_with_least_squares() -> None:
    measured = noisy(1)
    result = estimate(populations(), measured, MESH)

    def residuals(values: Vector) -> Vector:
        data = np.stack([measured.values["prey"], measured.values["predators"]], axis=1)
        return ((simulated(values) - data) / [1.0, 0.5]).ravel()

    shot = least_squares(
        residuals, np.array(list(TRUTH.values())), jac="3-point", x_scale=list(TRUTH.values()), xtol=1e-12
    )
    assert [i.value for i in result.unknowns.values()] == pytest.approx(shot.x, rel=1e-5)
    assert result.covariance == pytest.approx(np.linalg.inv(shot.jac.T @ shot.jac), rel=2e-4, abs=1e-9)
    assert result.chi_squared == pytest.approx(2.0 * shot.cost, rel=1e-6)
    assert result.identifiable
    assert not result.doubts


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """40 repetitions, 6 unknowns: standardised errors have the variance 1 to the accuracy of so many."""
    errors = []
    inside = 0
    for seed in range(40):
        result = estimate(populations(), noisy(seed), Options(intervals=16, check=False))
        for interval, truth in zip(result.unknowns.values(), TRUTH.values(), strict=True):
            errors.append((interval.value - truth) / interval.deviation)
            inside += interval.low <= truth <= interval.high
    assert abs(np.mean(errors)) < 0.2
    assert np.var(errors) == pytest.approx(1.0, abs=0.25)
    assert 0.91 <= inside / len(errors) <= 0.985


# -------------------------------------------------------------------------------------------------- identifiability


def oscillator() -> TrajectoryProblem:
    """m x'' = -k x: only k / m can be seen."""
    x, v, k, m = (ca.SX.sym(n) for n in "xvkm")
    system = System.from_expressions(
        "oscillator",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, -k / m * x)],
        parameters=[(Variable("k", "N/m", 0.1, 100.0), k), (Variable("m", "kg", 0.1, 10.0), m)],
    )
    return TrajectoryProblem([Phase(system, tf=2.0)], cost=lambda e: 0.0, guess={"k": 12.0, "m": 1.4})


def swings() -> Measurements:
    times = np.linspace(0.1, 2.0, 20)
    values = 0.3 * np.cos(3.0 * times) + 0.01 * np.random.default_rng(2).standard_normal(20)
    return Measurements(times, {"x": values}, {"x": 0.01})


def test_a_combination_that_is_not_determined_is_named_and_the_rest_has_its_intervals() -> None:
    result = estimate(oscillator(), swings(), Options(intervals=12))
    assert (result.rank, result.dimension) == (3, 4)
    assert not result.identifiable
    assert set(result.undetermined[0].split(", ")) == {"k +1 %", "m +1 %"}
    assert math.isinf(result.unknowns["k"].deviation)
    assert math.isinf(result.unknowns["m"].deviation)
    assert result.degrees_of_freedom == 17
    with_mass = estimate(replace(oscillator(), parameters={"m": 1.0}), swings(), Options(intervals=12))
    assert with_mass.identifiable
    for name in ("motion.initial.x", "motion.initial.v"):
        assert result.unknowns[name].deviation == pytest.approx(with_mass.unknowns[name].deviation, rel=1e-5)
    assert "m" not in with_mass.unknowns  # a number that is given is no unknown


def test_a_determined_fit_reports_its_least_determined_direction() -> None:
    result = estimate(replace(oscillator(), parameters={"m": 1.0}), swings(), Options(intervals=12))
    # the phase of the swing is a matter of its frequency and of its first speed, which is zero: relative to its scale
    assert "k +1.2 %" in result.weakest
    assert [_in_percent(change) for change in (1.234, -0.05, 334.0)] == ["+1.2 %", "-0.05 %", "+330 %"]
    assert "motion.initial.v +2 %" in result.weakest
    sizes = np.array([result.unknowns[n].value for n in result.names])
    sizes[result.names.index("motion.initial.v")] = result.solution.scales["motion.v"]
    values = np.linalg.eigvalsh(result.covariance / np.outer(sizes, sizes))
    assert result.condition == pytest.approx(math.sqrt(values[-1] / values[0]), rel=1e-6)


# -------------------------------------------------------------------------------------------------- inputs and priors


def drifting() -> TrajectoryProblem:
    """x' = u with an unknown input."""
    x, u = ca.SX.sym("x"), ca.SX.sym("u")
    system = System.from_expressions(
        "drifting", states=[(Variable("x", ""), x, u)], controls=[(Variable("u", "1/s"), u)]
    )
    return TrajectoryProblem(
        [Phase(system, tf=1.0, integrals={"drift": Integral(lambda v: v["u"] ** 2)})], cost=lambda e: 0.0
    )


def test_a_prior_makes_a_linear_smoother_with_its_covariance() -> None:
    """The estimate is linear in what was measured, x = A y: so its covariance is A A' sigma^2."""

    def smoothed(values: Vector):
        measured = Measurements(TIMES, {"x": values}, {"x": 0.1})
        return estimate(drifting(), measured, FEW, prior=lambda e: 4.0 * e.integral["drift"])

    result = smoothed(NOISY)
    A = np.stack([smoothed(unit).solution.phase.values["x"] for unit in np.eye(9)], axis=1)
    assert result.solution.phase.values["x"] == pytest.approx(A @ NOISY, abs=1e-7)
    assert result.fits["motion"].bands["x"] == pytest.approx(0.1 * np.linalg.norm(A, axis=1), rel=1e-5)


def test_unknown_inputs_without_a_prior_are_counted_as_what_they_are() -> None:
    result = estimate(drifting(), Measurements(TIMES, {"x": NOISY}, {"x": SIGMA}), FEW)
    assert result.rank == 9  # as many as there are values
    assert result.dimension > 9
    assert result.undetermined == ("motion.initial.x +1 %",)  # nothing was measured there
    with_start = replace(drifting(), phases=[replace(drifting().phases[0], initial={"x": 0.3})])
    result = estimate(with_start, Measurements(TIMES, {"x": NOISY}, {"x": SIGMA}), FEW)
    assert result.undetermined == ("unknown inputs alone",)


def test_a_prior_counts_as_a_measurement() -> None:
    """A slope of 1 with a deviation of 0.1, as one more row of the regression."""
    measured = Measurements(TIMES, {"x": NOISY}, {"x": SIGMA})
    result = estimate(line(), measured, FEW, prior=lambda e: ((e["slope"] - 1.0) / 0.1) ** 2)
    A = np.vstack([np.stack([TIMES, np.ones(9)], axis=1) / SIGMA[:, None], [[10.0, 0.0]]])
    y = np.append(NOISY / SIGMA, 10.0)
    assert result.unknowns["slope"].value == pytest.approx(np.linalg.lstsq(A, y)[0][0], rel=1e-7)


# -------------------------------------------------------------------------------------------------- tables

TABLE = """\
# of a line
time [ms], encoder [cm], sigma encoder [mm], note
50, 38.5, 5,
100, , ,
950, 191, 5, 1
"""


def test_a_table_is_read_with_its_units_and_gaps() -> None:
    measured = read_measurements(TABLE, time="time", columns={"x": "encoder"})
    assert measured.times == pytest.approx([0.05, 0.1, 0.95])
    values, sigma = measured.converted("x", "m")
    assert values[[0, 2]] == pytest.approx([0.385, 1.91])
    assert np.isnan(values[1])
    assert sigma[0] == pytest.approx(0.005)
    assert measured.count == 2
    result = estimate(line(), measured, FEW)
    assert result.unknowns["slope"].value == pytest.approx((1.91 - 0.385) / 0.9, rel=1e-7)
    assert result.degrees_of_freedom == 0
    assert math.isnan(result.p_value)


def test_deviations_may_be_given_beside_the_table() -> None:
    measured = read_measurements("time,x [cm]\n0.1,50\n0.9,180\n", {"x": 2.0})
    assert measured.converted("x", "m")[1] == pytest.approx([0.02, 0.02])
    measurements = read_measurements("time,x,sigma x\n0.1,50,\n0.9,180,1\n", {"x": 2.0})
    assert measurements.sigma["x"] == pytest.approx([2.0, 2.0])  # what is given counts, not the column
    with pytest.raises(ValueError, match=r"sigma\.y: no such column"):
        read_measurements("time,x,sigma x\n0.1,50,1\n", {"y": 2.0})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], {"x": [1.0]}, {"x": 1.0}), "times: contains a value that is not a number"),
        (([1.0], {"x": ["a"]}, {"x": 1.0}), "x: contains a value that is not a number"),
        (([1.0], {"x": [1.0]}, {"x": "1 deg"}), r"sigma\.x: contains a value that is not a number"),
        (([1.0, 2.0], {"x": [1.0, 2.0]}, {"x": [1.0, 1.0, 1.0]}), r"sigma\.x: one number or 2 are needed"),
        (([1.0], [1.0], {"x": 1.0}), "values of measurements must be given by name, not as list"),
        (([1.0], {"x": [1.0]}, {"x": 1.0}, {"x": "foo"}), r"units\.x: unknown unit 'foo'"),
        (([1.0], {"x": [1.0]}, {"x": 1.0}, {"x": 3}), r"units\.x: 3 is not a unit"),
        (([1.0], {"x": [1.0]}, 1.0), "sigma of measurements must be given by name, not as float"),
    ],
)
def test_measurements_that_are_no_numbers_are_named(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        Measurements(*arguments)


def test_columns_are_given_by_variable() -> None:
    with pytest.raises(ValueError, match="columns are 'x': give the column of each variable"):
        read_measurements("time,x\n0,1\n", {"x": 1.0}, columns="x")  # type: ignore[arg-type]


def test_units_may_stand_in_round_brackets_which_else_belong_to_the_name() -> None:
    measured = read_measurements("time (ms),x (cm),y (left)\n0,50,1\n900,180,2\n", {"x": 1.0, "y (left)": 1.0})
    assert measured.times == pytest.approx([0.0, 0.9])
    assert measured.units == {"x": "cm"}
    assert list(measured.values) == ["x", "y (left)"]


@pytest.mark.parametrize("table", [b"time,x\n0,1\n", None])
def test_a_table_is_text(table) -> None:
    with pytest.raises(ValueError, match="not text: read a file with Path"):
        read_measurements(table)


def test_a_deviation_in_degrees_is_one_in_kelvin() -> None:
    measured = read_measurements("time,x [K],sigma x [degC]\n0,300,0.5\n1,301,0.5\n")
    assert measured.converted("x", "K")[1] == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,x\n", "no rows"),
        ("time,x\n0,1\n1,two\n", "line 3: 'two' is not a number \\(column 'x'\\)"),
        ("time,x\n0,1,2\n", "line 2: 3 cells, but 2 columns"),
        ("time,x,x\n0,1,2\n", "two columns are called 'x'"),
        ("t,x\n0,1\n", "there is no column 'time'"),
        ("time,x\n0,1\n", "x: has no standard deviation"),
        ("time,x,sigma x\n0,1,0\n", "positive and finite"),
        ("time,x,sigma x\n,1,1\n", "finite number"),
        ("time,x,sigma x\n1,,1\n", "no value is a number"),
        ("time [m],x,sigma x\n1,1,1\n", "time: "),
        ("time;x\n0,1;2,5\n", "line 1: separate the cells by commas"),
        ("time,x,\n0,1,\n", "line 1: column 3 has no name"),
        ("time,x\n0,%s\n" % ("1" * 200_000), "line 2: field larger than field limit"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_measurements(text)


@pytest.mark.parametrize(
    ("problem", "measured", "message"),
    [
        (
            line(),
            Measurements([0.5], {"y": [1.0]}, {"y": 1.0}),
            "there is no such variable or output; known: x, height",
        ),
        (line(), Measurements([0.5], {"x": [1.0]}, {"x": 1.0}, {"x": "deg"}), "x: "),
        (line(), Measurements([1.5], {"x": [1.0]}, {"x": 1.0}), "a sample is at 1.5"),
        (line(), {"jump": Measurements([0.5], {"x": [1.0]}, {"x": 1.0})}, "there is no such phase; known: motion"),
        (line(), {}, "there are none"),
        (
            line(samples={"far": Constraint(lambda v: v["x"], 50.0, at=None)}),
            Measurements([0.5], {"x": [1.0]}, {"x": 1.0}),
            "has no samples",
        ),
    ],
)
def test_measurements_that_do_not_fit_the_problem_are_refused(problem, measured, message) -> None:
    with pytest.raises(ProblemError, match=message):
        estimate(problem, measured, FEW)


def test_a_fit_that_fails_and_a_problem_without_measurements_are_reported() -> None:
    impossible = line(initial={"x": 0.0}, final={"x": 50.0})
    measured = Measurements(TIMES, {"x": NOISY}, {"x": SIGMA})
    with pytest.raises(FitError, match="does not find the fit again") as failed:
        estimate(impossible, measured, replace(FEW, persistent=False))
    assert not failed.value.solution.success
    assert Guess.from_solution(failed.value.solution).phases  # it is something to go on from
    plain = replace(line(), cost=lambda e: e["slope"] ** 2)
    with pytest.raises(ProblemError, match="has no measurements"):
        inference(plain, solve(plain, FEW))
    stated = with_measurements(line(), measured)
    with pytest.raises(ValueError, match="level"):
        inference(stated, solve(stated, FEW), level=95.0)
    with pytest.raises(ValueError, match=r"level is '0\.9'"):
        estimate(line(), measured, FEW, level="0.9")  # type: ignore[arg-type]


def test_an_interval_states_its_kind() -> None:
    result = estimate(line(), Measurements(TIMES, {"x": NOISY}, {"x": SIGMA}), FEW, level=0.68268949)
    slope = result.unknowns["slope"]
    assert isinstance(slope, ConfidenceInterval)
    assert slope.value - slope.low == pytest.approx(slope.deviation, rel=1e-6)
    assert "slope=" in repr(result)
