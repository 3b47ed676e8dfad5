"""Derivatives of a sharing are the slopes of the sharing."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_mechanics.sharing.statement.criteria import MinMax, Power, QuadraticLinear, SoftSaturation
from designopt_mechanics.sharing.statement.formulation import Terms
from designopt_mechanics.sharing.static.derivatives import activation_slopes, cost_slopes
from designopt_mechanics.sharing.static.share import share
from opensim_cases import case

TERMS = [Terms(), Terms(Power(3.0)), Terms(QuadraticLinear(0.3)), Terms(SoftSaturation()), Terms(Power(4.0))]


def moved(problem, direction, step):
    """The case with moments, active and passive forces moved along `direction`."""
    moments, strength, passive = direction
    balance = replace(problem.balance, moments=problem.balance.moments + step * moments)
    muscles = replace(
        problem.muscles,
        strength=problem.muscles.strength + step * strength,
        passive=problem.muscles.passive + 10.0 + step * passive,
    )
    return balance, muscles


def directions(problem):
    rng = np.random.default_rng(1)
    shape = problem.muscles.strength.shape
    strength = 0.1 * problem.muscles.strength * rng.normal(size=shape)
    return rng.normal(size=problem.balance.moments.shape), strength, rng.normal(size=shape)


def along(slopes, direction):
    parts = (slopes.by_moment, slopes.by_strength, slopes.by_passive)
    return sum((part * way).sum() for part, way in zip(parts, direction, strict=True))


@pytest.mark.parametrize("terms", TERMS, ids=lambda t: repr(t.criterion))
def test_activations_and_cost_change_as_the_derivatives_say(opensim, terms):
    problem = case(opensim, "gait10dof18musc")
    direction = directions(problem)
    weights = np.random.default_rng(2).normal(size=problem.muscles.strength.shape)

    def at(step):
        return share(*moved(problem, direction, step), terms, problem.reserves)

    unmoved, step = at(0.0), 1e-6
    ahead, behind = at(step), at(-step)
    assert unmoved.feasible.all()
    slope = ((ahead.activations - behind.activations) * weights).sum() / (2 * step)
    assert along(activation_slopes(unmoved, weights), direction) == pytest.approx(slope, rel=1e-5, abs=1e-5)
    slope = (ahead.cost - behind.cost).sum() / (2 * step)
    assert along(cost_slopes(unmoved), direction) == pytest.approx(slope, rel=1e-6)


def test_criteria_that_couple_muscles_report_missing_derivatives(opensim):
    problem = case(opensim, "arm26")
    sharing = share(problem.balance, problem.muscles, Terms(MinMax()))
    with pytest.raises(ValueError, match="sums over the muscles"):
        activation_slopes(sharing, np.ones(sharing.activations.shape))
