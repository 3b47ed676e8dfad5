"""The additive part of a kernel, against its formula pair by pair, and where the evidence is for it."""

import numpy as np
import pytest

from designopt.solvers.surrogate.additive import group_correlations, group_derivatives, with_additive_part
from designopt.solvers.surrogate.gaussian_process import GaussianProcess, Hyperparameters
from designopt.solvers.surrogate.model import Surrogate
from designopt.solvers.surrogate.observations import Observations
from designopt.study.study import DesignVariable
from designopt.testing import problem_from

RNG = np.random.default_rng(8)
GROUPS = np.array([0, 1, 1, 2])
A, B = RNG.random((7, 4)), RNG.random((5, 4))


def matern(distance):
    """Rasmussen & Williams (2006), equation 4.17, with a length scale of 1."""
    r = np.sqrt(5.0) * distance
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)


def correlation(a, b, share):
    apart = a - b
    parts = [apart[group == GROUPS] for group in range(3)]
    return (1.0 - share) * matern(np.linalg.norm(apart)) + share * np.mean(
        [matern(np.sqrt(3.0) * np.linalg.norm(part)) for part in parts]
    )


def test_correlations_are_those_of_the_formula():
    expected = np.array([[correlation(a, b, 0.3) for b in B] for a in A])
    of_all = np.array([[correlation(a, b, 0.0) for b in B] for a in A])
    assert with_additive_part(of_all, A, B, 0.3, GROUPS) == pytest.approx(expected, rel=1e-10)
    assert with_additive_part(of_all, A, B, 0.0, GROUPS) is of_all


def test_both_parts_have_the_same_curvature_at_a_point():
    steps = 1e-3 * np.eye(4)
    for share in (0.0, 1.0):
        drops = [1.0 - correlation(step, np.zeros(4), share) for step in steps]
        assert drops == pytest.approx(np.full(4, 5.0 / 6.0 * 1e-6), rel=1e-2)


def test_derivatives_are_those_of_differences():
    squares, h = (A[0] - B) ** 2, 1e-7
    correlations, derivatives = group_derivatives(squares, GROUPS)
    assert correlations == pytest.approx(group_correlations(A[:1], B, GROUPS)[0], rel=1e-10)
    for j, step in enumerate(h * np.eye(4)):
        above, below = group_derivatives(squares + step, GROUPS)[0], group_derivatives(squares - step, GROUPS)[0]
        assert derivatives[:, j] == pytest.approx((above - below) / (2 * h), rel=1e-5)


def test_values_on_the_axes_determine_the_sum_of_effects_far_away():
    """11 designs on each axis; without the additive part nothing is known about the opposite corner."""
    along = np.linspace(0.0, 1.0, 11)
    points = np.vstack([along[:, None] * axis for axis in np.eye(3)])[[*range(11), *range(12, 22), *range(23, 33)]]
    values = np.sin(5.0 * points).sum(axis=1)
    corner = np.full((1, 3), 0.8)
    errors, deviations = [], []
    for share in (0.0, 0.999):
        process = GaussianProcess(
            points, values, np.arange(3), Hyperparameters(np.full(3, 0.7), 1e-8, False, additive=share)
        )
        mean, sd = process.predict(corner)
        errors.append(abs(float(mean[0]) - 3.0 * np.sin(4.0)))
        deviations.append(float(sd[0]))
    assert errors[1] < 0.05 < 0.5 < errors[0]
    assert deviations[1] < 0.1 * deviations[0]


def test_evidence_decides_whether_effects_add_up():
    """Styblinski & Tang (1990), a sum over parameters, and a ridge across all of them."""
    X, at = np.random.default_rng(0).random((2, 40, 4))
    feasible = np.ones(40, dtype=bool)
    space = [DesignVariable(f"x{i}", "real", 0.0, 1.0) for i in range(4)]
    surrogate_of = problem_from(lambda d, s: {"f": 0.0}, space, minimize=["f"])

    def effects(U):
        x = 10.0 * U - 5.0
        return (x**4 - 16.0 * x**2 + 5.0 * x).sum(axis=1) / 2.0

    def ridge(U):
        return np.cos(2.0 * U.sum(axis=1))

    for function, adds_up in ((effects, True), (ridge, False)):
        observations = Observations(X, function(X)[:, None], np.empty((40, 0)), feasible, ~feasible)
        processes = Surrogate(surrogate_of).processes(observations, np.empty((0, 4)))
        process, scale = processes.objectives[0], processes.scales[0]
        assert (process.hyperparameters.additive > 0.5) is adds_up
        error = np.abs(scale.values(process.predict(at)[0]) - function(at)).mean()
        assert error < 0.1 * np.ptp(function(at))
