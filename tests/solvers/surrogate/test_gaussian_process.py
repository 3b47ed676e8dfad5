"""Gaussian-process regression: interpolation, slopes, hyperparameters, leave-one-out, against other computations."""

from dataclasses import replace

import numpy as np
import pytest

from designopt.solvers.surrogate.gaussian_process import (
    GaussianProcess,
    Hyperparameters,
    _negative_posterior,
    first_guess,
    fit_hyperparameters,
)
from designopt.solvers.surrogate.matern import Slopes, observation_correlations

RNG = np.random.default_rng(3)
POINTS = RNG.random((30, 3))
VALUES = np.sin(4.0 * POINTS[:, 0]) + POINTS[:, 1] ** 2
GROUPS = np.arange(3)
PROCESS = GaussianProcess(POINTS, VALUES, GROUPS, Hyperparameters(np.array([0.6, 1.1, 4.0]), 1e-8))


def kernel(a, b, lengths):
    """Matern 5/2 of Rasmussen & Williams (2006), equation 4.17, pair by pair."""
    r = np.sqrt((((a[:, None] - b[None]) / lengths) ** 2).sum(axis=2))
    return (1.0 + np.sqrt(5.0) * r + 5.0 * r**2 / 3.0) * np.exp(-np.sqrt(5.0) * r)


def test_predictions_are_those_of_the_textbook_formulas():
    at = RNG.random((5, 3))
    K = kernel(POINTS, POINTS, [0.6, 1.1, 4.0]) + 1e-8 * np.eye(30)
    inverse = np.linalg.inv(K)
    mean = inverse.sum(axis=0) @ VALUES / inverse.sum()
    variance = (VALUES - mean) @ inverse @ (VALUES - mean) / 30
    k = kernel(at, POINTS, [0.6, 1.1, 4.0])
    predicted, sd = PROCESS.predict(at)
    assert predicted == pytest.approx(mean + k @ inverse @ (VALUES - mean), abs=1e-7)
    assert sd == pytest.approx(np.sqrt(variance * (1.0 - np.einsum("ij,jk,ik->i", k, inverse, k))), rel=1e-4)


def test_it_passes_through_what_was_observed_when_there_is_no_noise():
    predicted, sd = PROCESS.predict(POINTS)
    assert predicted == pytest.approx(VALUES, abs=1e-6)
    assert (sd < 1e-3).all()


def test_few_observations_leave_length_scales_near_their_common_level():
    points = np.random.default_rng(0).random((9, 5))
    x = 65.0 * points - 32.5  # Ackley (1987)
    values = -20.0 * np.exp(-0.2 * np.sqrt((x**2).mean(axis=1))) - np.exp(np.cos(2.0 * np.pi * x).mean(axis=1))
    values = (values - values.mean()) / values.std()
    alike, independent = (
        fit_hyperparameters(points, values, np.arange(5), first_guess(5, noisy=False, common_level=common))[0].lengths
        for common in (True, False)
    )
    assert alike.max() < 1.5 * alike.min()
    assert independent.max() > 10.0 * independent.min()


def test_irrelevant_inputs_get_a_long_length_scale_and_noise_is_estimated():
    clean, _ = fit_hyperparameters(POINTS, VALUES, GROUPS, first_guess(3))
    assert clean.lengths[2] > 5.0 * clean.lengths[:2].max()
    assert clean.noise < 1e-6
    points = RNG.random((80, 2))
    noisy = np.sin(6.0 * points[:, 0]) + 0.3 * RNG.standard_normal(80)
    h, _ = fit_hyperparameters(points, noisy, np.arange(2), first_guess(2))
    process = GaussianProcess(points, noisy, np.arange(2), h)
    assert np.sqrt(h.noise * process.variance) == pytest.approx(0.3, rel=0.3)


def test_leaving_one_out_is_predicting_it_from_the_others():
    process = GaussianProcess(POINTS, VALUES, GROUPS, Hyperparameters(np.array([0.6, 1.1, 4.0]), 1e-3))
    mean, sd = process.leave_one_out()
    remaining = np.arange(30) != 7
    # With mean and variance of the whole process, which the formula keeps.
    K = kernel(POINTS, POINTS, [0.6, 1.1, 4.0]) + 1e-3 * np.eye(30)
    weights = np.linalg.solve(K[np.ix_(remaining, remaining)], K[remaining, 7])
    assert mean[7] == pytest.approx(process.mean + weights @ (VALUES[remaining] - process.mean), rel=1e-8)
    assert sd[7] ** 2 == pytest.approx(process.variance * (K[7, 7] - weights @ K[remaining, 7]), rel=1e-8)


def test_a_fantasised_design_leaves_predictions_and_makes_them_surer():
    pending, at = np.array([[0.5, 0.5, 0.5]]), RNG.random((20, 3))
    fantasised = PROCESS.fantasised(pending)
    assert fantasised.predict(at)[0] == pytest.approx(PROCESS.predict(at)[0], abs=1e-3)
    assert fantasised.predict(pending)[1][0] < 0.5 * PROCESS.predict(pending)[1][0]


def test_noise_of_a_model_without_any_leaves_known_designs_certain():
    # Re-interpolation (Forrester, Keane & Bressloff 2006): the mean smooths jumps, deviations vanish at known designs.
    jumps, lengths = np.sign(POINTS[:, 0] - 0.5), np.array([0.6, 1.1, 4.0])
    measured, computed = (
        GaussianProcess(POINTS, jumps, GROUPS, Hyperparameters(lengths, 1e-3, noisy)) for noisy in (True, False)
    )
    assert computed.predict(POINTS)[0] == pytest.approx(measured.predict(POINTS)[0], rel=1e-12)
    assert (computed.predict(POINTS)[1] < 0.01 * measured.predict(POINTS)[1]).all()
    one = computed.slopes(POINTS[3] + 0.1)
    assert one[1] == pytest.approx(float(computed.predict(POINTS[3:4] + 0.1)[1][0]), rel=1e-9)


@pytest.mark.parametrize(("noisy", "additive"), [(True, 0.0), (False, 0.0), (False, 0.4)])
def test_a_factor_that_is_carried_on_gives_the_same_predictions(noisy, additive):
    h, at = Hyperparameters(np.array([0.6, 1.1, 4.0]), 1e-5, noisy, additive=additive), RNG.random((9, 3))
    first = GaussianProcess(POINTS[:20], VALUES[:20], GROUPS, h)
    complete = GaussianProcess(POINTS, VALUES, GROUPS, h)
    carried = replace(complete, reusable=first.factors)
    assert len(first.factors) == (1 if noisy else 2)
    assert first.factors[0].carried_on(complete.scaled_points, h.noise, additive) == pytest.approx(
        complete.inverse_factor, rel=1e-6, abs=1e-6
    )
    for mine, expected in zip(carried.predict(at), complete.predict(at), strict=True):
        assert mine == pytest.approx(expected, rel=1e-6)
    assert first.factors[0].carried_on(complete.scaled_points[1:], h.noise, additive) is None  # other points
    assert first.factors[0].carried_on(complete.scaled_points, 2.0 * h.noise, additive) is None  # another noise
    assert first.factors[0].carried_on(complete.scaled_points, h.noise, 0.5) is None  # another kernel


def test_the_same_point_twice_is_no_trouble():
    process = GaussianProcess(
        np.vstack([POINTS, POINTS[:3]]), np.append(VALUES, VALUES[:3]), GROUPS, PROCESS.hyperparameters
    )
    assert np.isfinite(process.predict(POINTS)[0]).all()


def test_without_noise_a_jump_is_no_noise():
    jump = np.where(POINTS[:, 0] > 0.5, 1.0, 0.0)
    assert fit_hyperparameters(POINTS, jump, GROUPS, first_guess(3, noisy=False))[0].noise <= 1e-3


def test_a_process_of_the_surroundings_predicts_what_differs_from_place_to_place():
    x = np.linspace(0.0, 1.0, 60)[:, None]
    rough_and_flat = np.where(x[:, 0] < 0.5, np.sin(80.0 * x[:, 0]), 2.0 + 0.1 * x[:, 0])
    complete = GaussianProcess(
        x, rough_and_flat, np.array([0]), fit_hyperparameters(x, rough_and_flat, np.array([0]), first_guess(1))[0]
    )
    near, at = complete.near(np.array([0.8]), 20), np.array([[0.805]])
    assert len(near.points) == 20
    assert near.predict(at)[0][0] == pytest.approx(2.0805, abs=1e-3)
    assert near.predict(at)[1][0] < 0.1 * complete.predict(at)[1][0]


LINE = np.linspace(0.0, 1.0, 60)[:, None]


@pytest.mark.parametrize("height", [1.0, 0.0])
def test_a_new_value_among_two_branches_may_be_on_either(height):
    values = np.sin(12.0 * LINE[:, 0]) + height * (np.random.default_rng(0).random(60) < 0.5)
    complete = GaussianProcess(LINE, values, np.array([0]), first_guess(1, noisy=False))
    near = complete.near(np.array([0.5]), 30, jumps=True)
    assert (near.jumps > 0.0) == (height > 0.0)
    mean, sd = near.predict(near.points)
    assert mean == pytest.approx(near.values, abs=1e-3)
    assert sd.max() < 2e-3
    between = near.points[5:-5] + 0.5 / 59.0
    mean, sd = near.predict(between)
    # A coin's deviation is 1/2, its mean too.
    assert mean == pytest.approx(np.sin(12.0 * between[:, 0]) + 0.5 * height, abs=0.01 + 0.4 * height)
    assert sd == pytest.approx(np.full(20, 0.5 * height), abs=0.01 + 0.15 * height)


# ------------------------------------------------------------------------------------------------- observed slopes


def slopes_of_values(points):
    """The derivatives of VALUES by the first two columns."""
    return np.column_stack([4.0 * np.cos(4.0 * points[:, 0]), 2.0 * points[:, 1]])


ROWS = np.array([1, 4, 5, 9, 20, 21])
WITH_SLOPES = GaussianProcess(
    POINTS,
    VALUES,
    GROUPS,
    Hyperparameters(np.array([0.6, 1.1, 4.0]), 1e-8),
    Slopes(ROWS, np.array([0, 1]), slopes_of_values(POINTS[ROWS])),
)


def test_correlations_of_slopes_are_the_differences_of_those_of_values():
    scales, h = 1.0 / np.array([0.6, 1.1, 4.0]), 1e-4
    correlations, _ = observation_correlations(POINTS * scales, scales, WITH_SLOPES.observed_slopes)
    shifts = [(None, 0.0)] + [(j, sign * h) for j in (0, 1) for sign in (1.0, -1.0)]
    every = np.vstack([POINTS if j is None else POINTS[ROWS] + s * np.eye(3)[j] for j, s in shifts])
    K, n, r = kernel(every, every, [0.6, 1.1, 4.0]), len(POINTS), len(ROWS)
    D = np.zeros((n + 2 * r, len(every)))
    D[:n, :n] = np.eye(n)
    for j in (0, 1):
        for sign, column in ((1.0, n + 2 * j * r), (-1.0, n + (2 * j + 1) * r)):
            D[n + j * r : n + (j + 1) * r, column : column + r] = sign * np.eye(r) / (2 * h)
    assert correlations == pytest.approx(D @ K @ D.T, abs=2e-3)


def test_it_passes_through_observed_slopes():
    for i, row in enumerate(ROWS):
        mean, sd, mean_slope, _ = WITH_SLOPES.slopes(POINTS[row])
        assert mean == pytest.approx(VALUES[row], abs=1e-4)
        assert sd < 1e-2
        assert mean_slope[:2] == pytest.approx(WITH_SLOPES.observed_slopes.values[i], abs=1e-3)


@pytest.mark.parametrize(
    "process",
    [PROCESS, WITH_SLOPES, replace(PROCESS, hyperparameters=replace(PROCESS.hyperparameters, additive=0.6))],
    ids=["values", "values and slopes", "effects that add up"],
)
def test_slopes_of_predictions_agree_with_central_differences(process):
    at, h = np.array([0.3, 0.6, 0.2]), 1e-5
    mean, sd, mean_slope, sd_slope = process.slopes(at)
    assert (mean, sd) == pytest.approx([float(v[0]) for v in process.predict(at[None])], rel=1e-9)
    for j, step in enumerate(h * np.eye(3)):
        above, below = process.predict((at + step)[None]), process.predict((at - step)[None])
        assert mean_slope[j] == pytest.approx((above[0][0] - below[0][0]) / (2 * h), abs=1e-5)
        assert sd_slope[j] == pytest.approx((above[1][0] - below[1][0]) / (2 * h), rel=1e-3, abs=1e-7)


@pytest.mark.parametrize(
    ("common_level", "additive", "slopes"),
    [(True, 0.0, None), (False, 0.0, None), (False, 0.3, None), (True, 0.0, WITH_SLOPES.observed_slopes)],
)
def test_the_posterior_has_the_gradient_that_differences_show(common_level, additive, slopes):
    groups = np.array([0, 1, 1])  # two columns share a length scale, as the values of a choice do
    start = replace(first_guess(2, common_level=common_level), lengths=np.array([0.5, 1.0]), noise=1e-4)
    start = replace(start, additive=additive)
    function = _negative_posterior(POINTS, VALUES, groups, start, slopes)
    at, h = start.logarithms, 1e-6
    gradient = function(at)[1]
    assert len(gradient) == (4 if additive else 3)
    for j, step in enumerate(h * np.eye(len(at))):
        assert gradient[j] == pytest.approx((function(at + step)[0] - function(at - step)[0]) / (2 * h), rel=1e-5)


def test_slopes_make_predictions_better():
    at = RNG.random((200, 3))
    truth = np.sin(4.0 * at[:, 0]) + at[:, 1] ** 2
    few = POINTS[:8]
    alone, _ = fit_hyperparameters(few, VALUES[:8], GROUPS, first_guess(3))
    slopes = Slopes(np.arange(8), np.array([0, 1]), slopes_of_values(few))
    with_slopes, _ = fit_hyperparameters(few, VALUES[:8], GROUPS, first_guess(3), slopes)
    errors = [
        np.abs(GaussianProcess(few, VALUES[:8], GROUPS, h, s).predict(at)[0] - truth).mean()
        for h, s in ((alone, None), (with_slopes, slopes))
    ]
    assert errors[1] < 0.3 * errors[0]


def test_leaving_one_out_leaves_its_slopes_out_too():
    remaining = np.arange(30) != 4
    slopes = WITH_SLOPES.observed_slopes.among(np.flatnonzero(remaining))
    assert len(slopes.rows) == len(ROWS) - 1
    alone = GaussianProcess(POINTS[remaining], VALUES[remaining], GROUPS, WITH_SLOPES.hyperparameters, slopes)
    mean, _ = WITH_SLOPES.leave_one_out()
    # The mean of the process is estimated without the design here, with it there.
    assert mean[4] == pytest.approx(alone.predict(POINTS[4][None])[0][0], abs=2e-2)


def test_beside_a_point_its_slopes_stay():
    local = WITH_SLOPES.near(POINTS[4], 10)
    assert len(local.points) == 10
    assert 4 in ROWS
    assert local.observed_slopes is not None
    for row, values in zip(local.observed_slopes.rows, local.observed_slopes.values, strict=True):
        assert values == pytest.approx(slopes_of_values(local.points[row][None])[0])
