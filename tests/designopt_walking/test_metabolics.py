"""The metabolic rate of muscles: that of OpenSim at twelve states, smooth where a cost needs it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from designopt_muscle.osim.read import read_model
from designopt_walking.bundled import planar_walker
from designopt_walking.metabolics import BASAL, ROUNDING, metabolic_rates
from designopt_walking.walker import walker_of

from designopt.lazy import casadi as ca


def _function(rounding: float = 0.0):
    walker = walker_of(read_model(planar_walker().content))
    state, muscles = walker.state, walker.muscles
    arguments = [state.z, state.dz, muscles.activation, muscles.excitation]
    return walker, ca.Function("rates", arguments, [metabolic_rates(muscles, rounding=rounding)])


def test_rates_are_those_of_opensim_at_the_reference_states(walking_data: Path) -> None:
    """OpenSim 4.6, Bhargava2004SmoothedMuscleMetabolics: every muscle, and the whole body with its basal rate."""
    reference = json.loads((walking_data / "reference" / "walk_spot_values.json").read_text())
    walker, rates = _function()
    z = [reference["names"].index(name) for name in walker.coordinates]
    k = [reference["muscles"].index(name) for name in walker.muscles.names]
    for point in reference["points"]:
        q, dq = (np.array(point[name])[z] for name in ("q", "dq"))
        a, e = (np.array(point[name])[k] for name in ("a", "e"))
        powers = np.asarray(rates(q, dq, a, e)).ravel()
        np.testing.assert_allclose(powers, np.array(point["met_muscle"])[k], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(powers.sum() + BASAL * walker.mass, point["met_total"], rtol=1e-9)


def test_rounded_corners_change_little_and_have_derivatives_everywhere() -> None:
    walker, exact = _function()
    _, rounded = _function(ROUNDING)
    rng = np.random.default_rng(1)
    q = np.array([-0.26, 0.0, 0.89, 0.1, 0.4, 0.17, -0.4, -0.2, 0.1, 0.0])
    k = len(walker.muscles.names)
    a, e = rng.uniform(0.05, 0.6, (2, k))
    dq = rng.normal(size=10)
    one, smooth = (np.asarray(f(q, dq, a, e)).ravel() for f in (exact, rounded))
    assert np.abs(smooth - one).sum() < 0.02 * np.abs(one).sum()
    slopes = np.asarray(rounded.jacobian()(q, dq, a, e, one)[2])
    assert np.isfinite(slopes).all()
