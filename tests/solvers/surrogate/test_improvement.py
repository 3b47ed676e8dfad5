"""Expected gain of hypervolume and probability of feasibility: against sampling, other code and known formulas."""

import moocore
import numpy as np
import pytest
from scipy.stats import norm

from designopt.solvers.surrogate.improvement import (
    Boxes,
    expected_improvement,
    feasibility_slopes,
    improvement_slopes,
    log_feasibility,
)


def front(m, n=30, seed=0):
    F = np.random.default_rng(seed).random((n, m))
    return 0.8 * F / np.linalg.norm(F, axis=1, keepdims=True)


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_boxes_fill_what_the_front_does_not_dominate_and_overlap_nowhere(m):
    F, reference = front(m), np.full(m, 0.95)
    boxes = Boxes.above(F, reference)
    points = np.random.default_rng(1).random((4000, m)) * 1.2 - 0.2
    outside = (points >= reference).any(axis=1) | (F[None] <= points[:, None]).all(axis=2).any(axis=1)
    inside = ((points[:, None] > boxes.lower) & (points[:, None] <= boxes.upper)).all(axis=2).sum(axis=1)
    assert (inside[outside] == 0).all()
    assert (inside[~outside] == 1).all()


def test_points_beyond_the_reference_and_equal_ones_do_not_count():
    reference = np.array([1.0, 1.0])
    F = np.array([[0.5, 0.5], [0.5, 0.5], [0.2, 3.0]])
    one = Boxes.above(F[:1], reference)
    assert sorted(map(tuple, Boxes.above(F, reference).upper)) == sorted(map(tuple, one.upper))


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_expected_gain_is_the_mean_gain_of_samples(m):
    F, reference = front(m), np.full(m, 0.95)
    mean, sd = np.full((1, m), 0.42), np.linspace(0.1, 0.2, m)[None]
    samples = np.random.default_rng(2).normal(mean, sd, (3000, m))
    before = moocore.hypervolume(F, ref=reference)
    gains = np.array([moocore.hypervolume(np.vstack([F, y]), ref=reference) - before for y in samples])
    gain = float(expected_improvement(mean, sd, Boxes.above(F, reference))[0])
    assert gain == pytest.approx(gains.mean(), abs=4.0 * gains.std() / np.sqrt(len(gains)))


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_the_volume_above_a_point_is_what_it_adds_to_the_hypervolume(m):
    F, reference = front(m), np.full(m, 0.95)
    boxes = Boxes.above(F, reference)
    before = moocore.hypervolume(F, ref=reference)
    for point in np.random.default_rng(3).random((200, m)):
        gain = moocore.hypervolume(np.vstack([F, point]), ref=reference) - before
        assert boxes.volume_above(point) == pytest.approx(gain, abs=1e-14)


def test_with_one_objective_it_is_the_expected_improvement_of_jones():
    boxes = Boxes.above(np.array([[0.3], [0.7]]), np.array([1.0]))
    mean, sd = np.array([[0.5], [0.1]]), np.array([[0.2], [0.05]])
    z = (0.3 - mean) / sd
    expected = (0.3 - mean) * norm.cdf(z) + sd * norm.pdf(z)  # Jones, Schonlau & Welch (1998), equation 15
    assert expected_improvement(mean, sd, boxes) == pytest.approx(expected[:, 0], rel=1e-12)


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_slopes_of_the_gain_agree_with_differences(m):
    boxes = Boxes.above(front(m), np.full(m, 0.95))
    mean, sd, h = np.full(m, 0.45), np.full(m, 0.15), 1e-6
    gain, by_mean, by_sd = improvement_slopes(mean, sd, boxes)
    assert gain == pytest.approx(float(expected_improvement(mean[None], sd[None], boxes)[0]), rel=1e-12)

    def at(mean, sd):
        return float(expected_improvement(mean[None], sd[None], boxes)[0])

    for j, step in enumerate(h * np.eye(m)):
        assert by_mean[j] == pytest.approx((at(mean + step, sd) - at(mean - step, sd)) / (2 * h), rel=1e-4)
        assert by_sd[j] == pytest.approx((at(mean, sd + step) - at(mean, sd - step)) / (2 * h), rel=1e-4)


def test_feasibility_is_the_product_of_probabilities_and_has_its_slopes():
    mean, sd = np.array([[-0.3, 0.2, 0.1]]), np.array([[0.2, 0.4, 0.3]])
    equality, band = np.array([False, False, True]), np.array([0.0, 0.0, 1e-3])
    joint = log_feasibility(mean[:, :2], sd[:, :2], equality[:2], band[:2])
    assert np.exp(joint) == pytest.approx(norm.cdf(1.5) * norm.cdf(-0.5), rel=1e-12)
    value, by_mean, by_sd = feasibility_slopes(mean[0], sd[0], equality, band)
    assert value == pytest.approx(float(log_feasibility(mean, sd, equality, band)[0]), rel=1e-12)
    h = 1e-6
    for j, step in enumerate(h * np.eye(3)):
        up, down = (log_feasibility(mean + s * step, sd, equality, band)[0] for s in (1, -1))
        assert by_mean[j] == pytest.approx((up - down) / (2 * h), rel=1e-5)
        up, down = (log_feasibility(mean, sd + s * step, equality, band)[0] for s in (1, -1))
        assert by_sd[j] == pytest.approx((up - down) / (2 * h), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("deviation", [1e-150, 1e-200])
def test_a_limit_that_never_varied_has_no_slopes(deviation):
    """Its process has almost no deviation, powers of which are 0 or infinite (and warnings are errors)."""
    mean, sd = np.array([-1.0, 0.1]), np.array([deviation, 0.2])
    value, by_mean, by_sd = feasibility_slopes(mean, sd, np.array([False, True]), np.array([0.0, 1e-6]))
    assert (value, by_mean[0], by_sd[0]) == (pytest.approx(-0.125), 0.0, 0.0)


def test_a_hopeless_design_has_a_finite_probability_that_still_ranks():
    far, farther = log_feasibility(np.array([[100.0], [200.0]]), np.ones((2, 1)), np.array([False]), np.zeros(1))
    assert np.isfinite([far, farther]).all()
    assert farther < far
