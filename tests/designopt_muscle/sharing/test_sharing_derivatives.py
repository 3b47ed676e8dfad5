"""Derivatives of a sharing are the slopes of the sharing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from designopt_mechanics.sharing.statement.criteria import MinMax, Power, QuadraticLinear, SoftSaturation
from designopt_mechanics.sharing.statement.formulation import Terms
from designopt_mechanics.sharing.static.derivatives import activation_slopes, cost_slopes, shortfall_slopes
from designopt_mechanics.sharing.static.share import share
from opensim_cases import case

TERMS = [Terms(), Terms(Power(3.0)), Terms(QuadraticLinear(0.3)), Terms(SoftSaturation()), Terms(Power(4.0))]


def moved(given, direction, step):
    """The case with moments, active and passive forces moved along `direction`."""
    moments, strength, passive = direction
    balance = replace(given.balance, moments=given.balance.moments + step * moments)
    muscles = replace(
        given.muscles,
        strength=given.muscles.strength + step * strength,
        passive=given.muscles.passive + 10.0 + step * passive,
    )
    return balance, muscles


def directions(given):
    rng = np.random.default_rng(1)
    shape = given.muscles.strength.shape
    strength = 0.1 * given.muscles.strength * rng.normal(size=shape)
    return rng.normal(size=given.balance.moments.shape), strength, rng.normal(size=shape)


def along(slopes, direction):
    parts = (slopes.by_moment, slopes.by_strength, slopes.by_passive)
    return sum((part * way).sum() for part, way in zip(parts, direction, strict=True))


@pytest.mark.parametrize("terms", TERMS, ids=lambda t: repr(t.criterion))
def test_activations_and_cost_change_as_the_derivatives_say(opensim, terms):
    given = case(opensim, "gait10dof18musc")
    direction = directions(given)
    weights = np.random.default_rng(2).normal(size=given.muscles.strength.shape)

    def at(step):
        return share(*moved(given, direction, step), terms, given.reserves)

    here, step = at(0.0), 1e-6
    ahead, behind = at(step), at(-step)
    assert here.feasible.all()
    slope = ((ahead.activations - behind.activations) * weights).sum() / (2 * step)
    assert along(activation_slopes(here, weights), direction) == pytest.approx(slope, rel=1e-5, abs=1e-5)
    slope = (ahead.cost - behind.cost).sum() / (2 * step)
    assert along(cost_slopes(here), direction) == pytest.approx(slope, rel=1e-6)


def test_the_shortfall_changes_as_the_derivatives_say(opensim):
    given = case(opensim, "arm26")
    given = replace(given, muscles=given.muscles.scaled(0.15))
    direction = directions(given)

    def at(step):
        sharing = share(*moved(given, direction, step))
        return sharing, np.linalg.norm(sharing.shortfall, axis=1).sum()

    step = 1e-7
    slope = (at(step)[1] - at(-step)[1]) / (2 * step)
    here = at(0.0)[0]
    assert (here.status == 100).sum() > 40
    assert along(shortfall_slopes(here), direction) == pytest.approx(slope, rel=1e-5)


def test_criteria_that_couple_muscles_report_missing_derivatives(opensim):
    given = case(opensim, "arm26")
    sharing = share(given.balance, given.muscles, Terms(MinMax()))
    with pytest.raises(ValueError, match="sums over the muscles"):
        activation_slopes(sharing, np.ones(sharing.activations.shape))
