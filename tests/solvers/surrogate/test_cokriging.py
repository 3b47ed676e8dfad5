"""Full and cheap values together: against the published pair of Forrester, Sóbester & Keane (2007), and differences."""

import numpy as np
import pytest

from designopt.solvers.surrogate.cokriging import CoKriging, predicts_better
from designopt.solvers.surrogate.gaussian_process import GaussianProcess, first_guess, fit_hyperparameters

GROUPS = np.arange(1)
FEW = np.array([[0.0], [0.4], [0.6], [1.0]])
MANY = np.linspace(0.0, 1.0, 11)[:, None]


def full(X):
    """Forrester, Sóbester & Keane (2007), equation 8."""
    return (6.0 * X[:, 0] - 2.0) ** 2 * np.sin(12.0 * X[:, 0] - 4.0)


def cheap(X):
    return 0.5 * full(X) + 10.0 * (X[:, 0] - 0.5) - 5.0


def process(X, values):
    return GaussianProcess(X, values, GROUPS, fit_hyperparameters(X, values, GROUPS, first_guess(1, noisy=False))[0])


def processes(X=FEW, cheap_values=None):
    level = process(MANY, cheap(MANY) if cheap_values is None else cheap_values)
    alone = process(X, full(X))
    return CoKriging.fitted_to(
        level, alone, lambda d: fit_hyperparameters(X, d, GROUPS, first_guess(1, noisy=False))[0]
    ), alone


def test_four_full_values_and_eleven_cheap_ones_give_the_published_function():
    at = np.linspace(0.0, 1.0, 101)[:, None]
    combined, alone = processes()
    assert combined.factor == pytest.approx(2.0, abs=0.25)  # that leaves a straight line as difference
    mean, sd = combined.predict(at)
    assert np.abs(mean - full(at)).max() < 1.5  # of a range of 22
    assert np.abs(alone.predict(at)[0] - full(at)).max() > 4.0
    assert (sd >= 0.0).all()
    assert predicts_better(combined, alone)


def test_full_values_are_met_without_doubt_though_no_cheap_ones_are_beside_them():
    combined, _ = processes()
    mean, sd = combined.predict(FEW)
    assert mean == pytest.approx(full(FEW), abs=1e-4)
    assert sd == pytest.approx(0.0, abs=0.02)
    assert combined.values == pytest.approx(full(FEW), abs=1e-6)


def test_slopes_are_those_that_differences_show():
    combined, _ = processes()
    at, h = np.array([0.33]), 1e-5
    mean, sd, by_mean, by_sd = combined.slopes(at)
    above, below = combined.predict((at + h)[None]), combined.predict((at - h)[None])
    assert (mean, sd) == pytest.approx([float(v[0]) for v in combined.predict(at[None])], rel=1e-6)
    assert by_mean[0] == pytest.approx((above[0][0] - below[0][0]) / (2 * h), rel=1e-4)
    assert by_sd[0] == pytest.approx((above[1][0] - below[1][0]) / (2 * h), rel=1e-3)


def test_uninformative_cheap_values_are_ignored():
    combined, alone = processes(MANY, np.random.default_rng(2).standard_normal(11))
    assert not predicts_better(combined, alone)


def test_a_share_of_the_variance_is_that_of_the_cheap_values():
    combined, _ = processes()
    share = combined.share(np.array([[0.5], [0.85]]))
    assert ((share >= 0.0) & (share <= 1.0)).all()
    sure = CoKriging(combined.cheap, combined.difference, 0.0)
    assert sure.share(np.array([[0.5]])) == pytest.approx(0.0, abs=1e-12)


def test_fantasised_and_near_designs_keep_both_levels():
    combined, _ = processes()
    fantasised = combined.fantasised(np.array([[0.2]]))
    assert fantasised.predict(np.array([[0.2]]))[1][0] < 0.05
    assert len(fantasised.values) == 5
    near = combined.near(np.array([0.5]), 3)
    assert len(near.points) == 3
    assert len(near.cheap.points) == 6
    mean, sd = combined.leave_one_out()
    assert mean.shape == sd.shape == (4,)
