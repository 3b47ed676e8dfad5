"""Springs along wires pull as their energy says, with or without slack, and dampers take energy only."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.body import Body
from designopt_mechanics.dynamics.matrices import kinetic_energy, potential_energy
from designopt_mechanics.equations import equations_of
from designopt_mechanics.functions.formula import Formula
from designopt_mechanics.loads import generalised_force
from designopt_mechanics.motions import Rotate, Slide
from designopt_mechanics.springs import Spring, SpringError, spring_energy, spring_loads, tensions
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Coordinate, Frame, Point, Tree
from designopt_mechanics.wires import Wire

from designopt.dynamics import Simulator, System, Variable

GRAVITY = (0.0, -9.81, 0.0)
TREE = Tree(
    (Coordinate("swing"), Coordinate("glide", "m")),
    (
        Frame("beam", motions=(Rotate((0, 0, 1), "swing"),), body=Body(2.0, (0.3, 0, 0), (0.01, 0.06, 0.06))),
        Frame(
            "slider",
            "beam",
            (Slide((1, 0, 0), Formula("glide + 0.05*sin(2*swing)")),),
            Body(0.7, (0.05, 0.01, 0), (0.002, 0.003, 0.003)),
        ),
    ),
)
OUT = Wire("out", (Point("beam", (0.05, 0.02, 0)), Point("slider", (0.3, 0.03, 0.01))))
UP = Wire("up", (Point("ground", (0.2, 0.6, 0)), Point("beam", (0.1, 0.05, 0)), Point("slider", (0.1, 0.06, 0))))


@pytest.mark.parametrize("pulls_only", [False, True])
def test_the_generalised_force_is_minus_the_slope_of_the_energy(*, pulls_only: bool) -> None:
    springs = [Spring(OUT, 800.0, 0.3, pulls_only=pulls_only), Spring(UP, 300.0, 0.5, pulls_only=pulls_only)]
    s = TreeState.symbols(TREE)
    force = generalised_force(s, spring_loads(s, springs))
    slope = ca.gradient(spring_energy(s, springs), s.z)
    f = ca.Function("f", [s.z], [force, slope])
    for z in np.random.default_rng(1).uniform(-0.5, 0.5, (20, 2)):
        forces, minus = (np.asarray(r, float).ravel() for r in f(z))
        assert np.abs(forces + minus).max() < 1e-12 * max(1.0, np.abs(forces).max())


def test_a_spring_that_only_pulls_is_slack_below_its_rest_length() -> None:
    spring = Spring(OUT, 1e4, 0.2, pulls_only=True)
    at = np.array([float(spring.tension(length)) for length in (0.1, 0.2, 0.3)])
    # far from the rest length the smoothing leaves k e^2 / (4 s): 2.5e-4 N here
    assert at == pytest.approx([0.0, 0.5, 1000.0], abs=3e-4)


def test_a_damper_takes_the_power_of_its_rate() -> None:
    s = TreeState.symbols(TREE)
    springs = [Spring(UP, 0.0, 0.5, damping=40.0)]
    force = generalised_force(s, spring_loads(s, springs))
    power, tension = ca.dot(force, s.dz), tensions(s, springs)
    f = ca.Function("f", [s.z, s.dz], [power, tension])
    for z, dz in np.random.default_rng(2).uniform(-0.5, 0.5, (10, 2, 2)):
        gain, pulled = (float(r) for r in f(z, dz))
        assert gain == pytest.approx(-(pulled**2) / 40.0, rel=1e-12)


def test_beam_slider_and_springs_keep_their_energy() -> None:
    springs = [Spring(OUT, 800.0, 0.3), Spring(UP, 300.0, 0.5, pulls_only=True)]
    s = TreeState.symbols(TREE)
    parts = equations_of(s, gravity=GRAVITY, loads=spring_loads(s, springs))
    energy = kinetic_energy(s) + potential_energy(s, GRAVITY) + spring_energy(s, springs)
    system = System.from_expressions(
        "beam", states=parts.states, unknowns=parts.unknowns, outputs=[(Variable("energy", "J"), energy)]
    )
    run = Simulator(system, rtol=1e-9, atol=1e-10).run([0.3, 0.1, 0.0, 0.5], np.linspace(0.0, 1.0, 21))
    assert np.abs(run.y[:, 0] - run.y[0, 0]).max() < 1e-6
    assert np.ptp(run.x[:, 0]) > 0.2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stiffness": -1.0}, "spring 'out', stiffness: -1 N/m is not finite"),
        ({"rest": np.nan}, "spring 'out', rest: nan m is not finite"),
        ({"damping": -0.1}, "spring 'out', damping: -0.1 N s/m"),
        ({"damping": 1.0, "pulls_only": True}, "spring 'out', damping: does not go with a spring that only pulls"),
    ],
)
def test_springs_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SpringError, match=message):
        Spring(OUT, **{"stiffness": 1.0, "rest": 0.1, **settings})
