"""The metabolic rate of muscles: that of OpenSim at twelve states, smooth where a cost needs it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from designopt_muscle.curves import OPENSIM
from designopt_muscle.osim.model import OsimMuscle
from designopt_muscle.osim.read import read_model
from designopt_walking.bundled import planar_walker
from designopt_walking.metabolics import BASAL, ROUNDING, metabolic_rates
from designopt_walking.results.outputs import walk_outputs
from designopt_walking.walker import walker_of
from recorded_walks import columns, recorded_walk

from designopt.arrays import Floats
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


def power(muscle: OsimMuscle, a: Floats, e: Floats, length: Floats, speed: Floats) -> Floats:
    """(n,) W by section 2.5 of the specification; `length` in optimal lengths, `speed` in maximum speeds."""
    mass = muscle.force * muscle.fibre * 1059.7 / 0.25e6
    active = muscle.force * a * OPENSIM.active_length(length) * OPENSIM.velocity(speed)
    total = active + muscle.force * (OPENSIM.passive(length, strain=0.6) + 0.01 * speed)
    v = speed * muscle.fastest * muscle.fibre

    def switch(x: Floats) -> Floats:
        return 0.5 + 0.5 * np.tanh(10.0 * x)

    slow, fast = np.sin(0.5 * np.pi * e), 1.0 - np.cos(0.5 * np.pi * e)
    activation = mass * (40.0 * 0.5 * slow + 133.0 * 0.5 * fast)
    factor = np.interp(length, [0.0, 0.5, 1.0, 1.5, 10.0], [0.5, 0.5, 1.0, 0.0, 0.0])
    maintenance = mass * factor * (74.0 * 0.5 * slow + 111.0 * 0.5 * fast)
    shortening, work = -0.25 * total * (1.0 - switch(v)) * v, -active * v
    rate = activation + maintenance + shortening + work
    heat = activation + maintenance + shortening - rate * switch(-rate)
    return heat + (mass - heat) * switch(mass - heat) + work


def test_the_cost_of_transport_of_a_walk_is_that_of_an_evaluation_in_numpy(walking_data: Path) -> None:
    """The formulas of section 2.5, Simpson's rule, and the rates (W) that are listed with the reference walk."""
    file = walking_data / "reference" / "C_walk_1p2_smooth.csv"
    walk = recorded_walk(walker_of(read_model(planar_walker().content)), file, half=True)
    points, muscles = walk.points, walk.walker.muscles.muscles
    observed, values = points.observed, points.values
    rates = np.zeros(len(points.time))
    for j, m in enumerate(muscles):
        a, e = values[f"activation_{m.name}"], values[f"excitation_{m.name}"]
        rate = power(m, a, e, observed.fibre_length[:, j], observed.fibre_speed[:, j])
        np.testing.assert_allclose(observed.metabolic_rate[:, j], rate, rtol=1e-9, atol=1e-9)
        rates += rate
    half = len(rates) // 2
    np.testing.assert_allclose(rates[:half], columns(file)["metabolic_rate_muscles"], rtol=1e-6)
    step = points.time[2] - points.time[0]
    simpson = step / 6.0 * (rates[: half - 1 : 2] + 4.0 * rates[1:half:2] + rates[2 : half + 1 : 2])
    cost = float(simpson.sum()) / (walk.walker.mass * walk.step)
    outputs = walk_outputs(walk)
    assert outputs["net_cost_of_transport"] == pytest.approx(cost, rel=1e-8)
    assert outputs["cost_of_transport"] - cost == pytest.approx(BASAL / outputs["speed"], rel=1e-8)


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
