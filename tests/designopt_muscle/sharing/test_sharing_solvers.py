"""Solvers whose answer is none: their status is asked, and what is left is computed."""

import numpy as np
import pytest
import scipy.optimize
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.sharing.muscles import Muscles
from designopt_mechanics.sharing.statement.criteria import Power, Tracking
from designopt_mechanics.sharing.statement.formulation import Terms
from designopt_mechanics.sharing.statement.synergies import factorise_signals
from designopt_mechanics.sharing.static.share import share


def elbow():
    """Two flexors of one joint over three frames, with signals at half of what they need."""
    arms = np.tile([[0.04, 0.03]], (3, 1, 1))
    needed = np.array([[10.0], [14.0], [12.0]])
    balance = MomentBalance(np.arange(3.0), ("elbow",), ("long", "short"), arms, needed, ("N m",))
    signals = np.array([[0.1, 0.2], [0.14, 0.28], [0.12, 0.24]])
    return (
        balance,
        Muscles(("long", "short"), np.full((3, 2), 600.0)),
        Terms(Power(2.0), tracking=Tracking(signals, 1.0, free_scale=True)),
    )


def test_scales_of_signals_are_refused_where_their_search_ends_early(monkeypatch):
    assert np.isfinite(share(*elbow()).cost).all()

    def stopped(cost, start, **_):
        return scipy.optimize.OptimizeResult(x=start, success=True, message="stopped at the start")

    monkeypatch.setattr(scipy.optimize, "minimize", stopped)
    with pytest.raises(ValueError, match=r"the scales of the signals were not found: a slope of .* is left"):
        share(*elbow())


def test_synergies_are_refused_where_least_squares_give_up(monkeypatch):
    def stopped(matrix, right):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(scipy.optimize, "nnls", stopped)
    with pytest.raises(ValueError, match="the synergies were not found: Maximum number of iterations"):
        factorise_signals(np.abs(np.random.default_rng(0).random((20, 4))), 2)
