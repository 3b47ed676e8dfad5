"""The methods' coefficients against the conditions of Hairer & Wanner (1996), section IV.7."""

import numpy as np
import pytest

from designopt.dynamics.simulation.tableau import METHODS

METHOD = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def original(method):
    """alpha_ij, gamma_ij (diagonal included) and b of the form with products of J (equation 7.4)."""
    gamma = np.linalg.inv(np.eye(method.stages) / method.gamma - method.c)
    return method.a @ gamma, gamma, method.m @ gamma


def residuals(alpha, gamma, b, order, theta=1.0):
    """What the order conditions up to `order` (table 7.1) lack at the share `theta` of a step."""
    beta = alpha + gamma
    al, be = alpha.sum(axis=1), beta.sum(axis=1)
    conditions = [
        (1, b.sum(), 1.0),
        (2, b @ be, 1 / 2),
        (3, b @ al**2, 1 / 3),
        (3, b @ beta @ be, 1 / 6),
        (4, b @ al**3, 1 / 4),
        (4, b @ (al * (alpha @ be)), 1 / 8),
        (4, b @ beta @ al**2, 1 / 12),
        (4, b @ beta @ beta @ be, 1 / 24),
    ]
    return np.array([left - right * theta**n for n, left, right in conditions if n <= order])


@METHOD
def test_the_solution_has_its_order_and_no_more(method):
    assert np.abs(residuals(*original(method), method.order)).max() < 1e-13
    if method.order < 4:
        assert np.abs(residuals(*original(method), method.order + 1)).max() > 1e-3


@METHOD
def test_the_embedded_solution_has_one_order_less(method):
    alpha, gamma, b = original(method)
    embedded = b - method.e @ gamma
    assert np.abs(residuals(alpha, gamma, embedded, method.order - 1)).max() < 1e-13
    assert np.abs(residuals(alpha, gamma, embedded, method.order)).max() > 1e-3


@METHOD
@pytest.mark.parametrize("theta", [0.0, 0.3, 0.5, 0.9, 1.0])
def test_the_solution_in_between_has_its_order(method, theta):
    alpha, gamma, _ = original(method)
    weights = theta * (method.m + (1 - theta) * (method.d2 + theta * method.d3))
    assert np.abs(residuals(alpha, gamma, weights @ gamma, method.dense_order, theta)).max() < 1e-13


@METHOD
def test_stages_lie_at_the_times_that_their_coefficients_say(method):
    alpha, gamma, _ = original(method)
    assert np.abs(alpha.sum(axis=1) - method.alpha).max() < 1e-14
    assert np.abs(gamma.sum(axis=1) - method.gamma_sum).max() < 1e-14


@METHOD
def test_the_method_is_l_stable_and_stiffly_accurate(method):
    alpha, gamma, b = original(method)
    beta, ones = alpha + gamma, np.ones(method.stages)

    def growth(z):
        return 1.0 + z * (b @ np.linalg.solve(np.eye(method.stages) - z * beta, ones))

    on_axis = [abs(growth(1j * y)) for y in np.logspace(-3, 6, 400)]
    assert max(on_axis) <= 1.0 + 1e-12
    assert abs(growth(-1e9)) < 1e-7
    assert np.abs(beta[-1] - b).max() < 1e-13  # b equals the last row of beta: R(infinity) = 0 exactly
