"""Linear plants: what they are at frequencies, and their exact samples."""

import numpy as np
import pytest
from designopt_regulator.plants import linear as plants
from scipy.integrate import solve_ivp
from scipy.signal import cont2discrete

S = 1j * np.array([0.01, 0.3, 1.0, 7.0])
CASES = {
    "fopdt": (plants.fopdt(2.0, 8.0, 1.0), 2.0 * np.exp(-S) / (8.0 * S + 1.0)),
    "ipdt": (plants.ipdt(0.5, 1.0), 0.5 * np.exp(-S) / S),
    "sopdt": (plants.sopdt(3.0, 2.0, 0.5, 0.4), 3.0 * np.exp(-0.4 * S) / (2.0 * S + 1.0) / (0.5 * S + 1.0)),
    "lag": (plants.lag(3, 2.0, 0.7), 2.0 / (0.7 * S + 1.0) ** 3),
    "double_integrator": (plants.double_integrator(4.0, 0.1), 4.0 / S**2 * np.exp(-0.1 * S)),
    "transfer_function": (
        plants.transfer_function([1.0, 2.0], [1.0, 0.6, 4.0, 0.0], 0.3),
        (S + 2.0) / (S**3 + 0.6 * S**2 + 4.0 * S) * np.exp(-0.3 * S),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_plant_has_the_response_of_its_transfer_function(name):
    plant, expected = CASES[name]
    np.testing.assert_allclose(plant.response(S.imag), expected, rtol=1e-12)


def test_many_plants_are_made_at_once():
    many = plants.sopdt(np.array([1.0, 2.0]), 3.0, np.array([0.5, 0.7]), 0.1)
    for i, one in enumerate((plants.sopdt(1.0, 3.0, 0.5, 0.1), plants.sopdt(2.0, 3.0, 0.7, 0.1))):
        for field in ("A", "B", "C", "delay"):
            np.testing.assert_array_equal(getattr(many, field)[i], getattr(one, field))


@pytest.mark.parametrize("slow", [1e-6, 1.0, 1e6])
def test_coefficients_of_slow_and_fast_plants_do_not_lose_digits(slow):
    """The same plant in other units of time: (s+1)^-6."""
    coefficients = np.poly(-np.ones(6)) * slow ** np.arange(6, -1, -1.0)
    plant = plants.transfer_function([1.0], coefficients)
    w = np.array([0.1, 1.0, 3.0])
    np.testing.assert_allclose(plant.response(w / slow), (1j * w + 1.0) ** -6, rtol=1e-10)


@pytest.mark.parametrize(
    ("numerator", "denominator", "reason"),
    [
        ([1.0, 0.0, 2.0], [1.0, 1.0], "must not be higher"),
        ([0.0], [1.0, 1.0], "numerator is 0"),
        ([1.0], [1.0], "at least s"),
        ([1.0], [0.0, 1.0], "must not be 0"),
        ([np.nan], [1.0, 1.0], "finite"),
    ],
)
def test_coefficients_that_make_no_plant_are_refused(numerator, denominator, reason):
    with pytest.raises(ValueError, match=reason):
        plants.transfer_function(numerator, denominator)


def test_samples_without_a_part_of_a_sample_are_the_usual_zero_order_hold():
    plant = plants.transfer_function([2.0], [0.35, 2.2, 3.4, 0.0])
    R, B0, B1, d = plants.sample_plants(plant.A[None], plant.B[None], 4.0, 0.05)
    Ad, Bd, *_ = cont2discrete((plant.A, plant.B[:, None], plant.C[None], [[0.0]]), 0.05)
    np.testing.assert_allclose(R[0] + np.eye(3), Ad, rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(B0[0], Bd[:, 0], rtol=1e-12)
    assert d.tolist() == [4]
    assert (B1 == 0.0).all()


def test_a_delay_that_ends_within_a_sample_is_exact():
    """Against integration of the delayed equations, in which the held input changes within the sample."""
    plant = plants.sopdt(1.5, 0.8, 0.3, 0.13)
    inputs = np.array([1.0, -0.5, 2.0, 0.3, 0.0, 1.0])
    T = 0.05
    R, B0, B1, d = plants.sample_plants(plant.A[None], plant.B[None], plant.delay / T, T)
    assert d.tolist() == [2]
    x = np.zeros(2)
    padded = np.concatenate([np.zeros(3), inputs])
    for k in range(len(inputs)):
        x = x + R[0] @ x + B0[0] * padded[k + 3 - 2] + B1[0] * padded[k]

    exact, at = np.zeros(2), 0.0
    changes = np.unique(np.concatenate([np.arange(6) * T + 0.13, np.arange(7) * T]).round(12))
    for until in changes[(changes > 0.0) & (changes <= 6 * T)]:
        since = int(np.floor((0.5 * (at + until) - 0.13) / T))
        u = inputs[since] if since >= 0 else 0.0
        exact = solve_ivp(lambda _, y, u=u: plant.A @ y + plant.B * u, (at, until), exact, rtol=1e-12, atol=1e-14).y[
            :, -1
        ]
        at = until
    np.testing.assert_allclose(x, exact, rtol=1e-9)


@pytest.mark.parametrize("delay", [0.3, 0.6, 0.7, 0.1 * 3])
def test_a_delay_at_the_edge_of_a_sample_is_one_of_whole_samples(delay):
    """0.3 / 0.1 is less than 3: nothing of the sample before acts, and the state has no place for it."""
    plant = plants.sopdt(1.5, 0.8, 0.3, delay)
    _, _, B1, d = plants.sample_plants(plant.A[None], plant.B[None], plant.delay / 0.1, 0.1)
    assert d.tolist() == [round(delay * 10)]
    assert (B1 == 0.0).all()
