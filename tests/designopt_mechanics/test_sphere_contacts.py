"""Spheres on half spaces: the law of Serrancoli et al. (2019) with the constants of OpenSim, on any plane."""

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.body import Body
from designopt_mechanics.contacts import (
    ContactError,
    Plane,
    SphereContact,
    indentations,
    sphere_forces,
    sphere_loads,
)
from designopt_mechanics.loads import generalised_force
from designopt_mechanics.motions import Rotate, Slide
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Coordinate, Frame, Point, Tree

TREE = Tree(
    tuple(Coordinate(name, unit) for name, unit in (("x", "m"), ("y", "m"), ("turn", "rad"), ("lift", "m"))),
    (
        Frame("table", motions=(Slide((0, 1, 0), "lift"),), body=Body(1.0)),
        Frame(
            "foot", motions=(Slide((1, 0, 0), "x"), Slide((0, 1, 0), "y"), Rotate((0, 0, 1), "turn")), body=Body(1.0)
        ),
    ),
)
HEEL = SphereContact("heel", Point("foot", (0.1, 0.0, 0.02)), 0.035)


def law(sphere: SphereContact, height: float, velocity: tuple[float, float], spin: float) -> Any:
    """Force (x, y) written down by hand for a horizontal floor at 0: specification of predicted walking, 2.3."""
    d = sphere.radius - height
    v_x = velocity[0] + spin * (sphere.radius - 0.5 * d)  # of the point of contact below the centre
    v_n = -velocity[1]
    k = 0.5 * sphere.stiffness ** (2 / 3)
    hertz = 4 / 3 * k * np.sqrt(sphere.radius * k) * (d**2 + 1e-5) ** 0.75 * (0.5 + 0.5 * np.tanh(300 * d))
    f_n = hertz * (1 + 3.0 * v_n) * (0.5 + 0.5 * np.tanh(50 * (v_n + 1 / 3)))
    s = np.hypot(v_x, np.sqrt(1e-5))
    r = s / 0.2
    blend = min(r, 1.0) if sphere.friction == "opensim" else 0.5 * (r + 1 - np.sqrt((r - 1) ** 2 + 0.05**2))
    mu = blend * (sphere.dynamic + 2 * (sphere.static - sphere.dynamic) / (1 + r**2)) + 0.5 * s
    return np.array([-f_n * mu * v_x / s, f_n])


def at(expression: Any, state: TreeState, z: list[float], dz: list[float]) -> np.ndarray:
    function = ca.Function("f", [state.z, state.dz], [expression])
    return np.asarray(function(z, dz), dtype=float)


@pytest.mark.parametrize("friction", ["opensim", "smooth"])
@pytest.mark.parametrize("static", [0.8, 1.1])
def test_the_force_is_that_of_the_published_law(friction: Any, static: float) -> None:
    sphere = replace(HEEL, friction=friction, static=static)
    state, rng = TreeState.symbols(TREE), np.random.default_rng(0)
    for _ in range(20):
        height, turn, spin = rng.uniform(0.01, 0.05), rng.uniform(-0.5, 0.5), rng.uniform(-5.0, 5.0)
        speeds = rng.uniform(-1.0, 1.0, 2)
        arm = np.array([0.1 * np.cos(turn), 0.1 * np.sin(turn)])
        carried = spin * np.array([-arm[1], arm[0]])
        z, dz = [0.0, height - arm[1], turn, 0.0], [*(speeds - carried), spin, 0.0]
        force = at(sphere_forces(state, [sphere])[0], state, z, dz).ravel()
        expected = law(sphere, height, (float(speeds[0]), float(speeds[1])), spin)
        np.testing.assert_allclose(force[:2], expected, rtol=1e-9, atol=1e-6)
        assert at(indentations(state, [sphere]), state, z, dz).item() == pytest.approx(0.035 - height)


def test_a_moving_plane_feels_the_opposite_force_and_only_the_relative_motion_counts() -> None:
    sphere = replace(HEEL, plane=Plane("table", (0.0, 0.1, 0.0)))
    state = TreeState.symbols(TREE)
    rest = at(sphere_forces(state, [HEEL])[0], state, [0.0, 0.02, 0.0, 0.0], [0.3, -0.2, 1.0, 0.0])
    moved = at(sphere_forces(state, [sphere])[0], state, [0.0, 0.17, 0.0, 0.05], [0.3, 0.5, 1.0, 0.7])
    np.testing.assert_allclose(moved, rest, rtol=1e-12)
    forces = at(generalised_force(state, sphere_loads(state, [sphere])), state, [0.0, 0.17, 0.0, 0.05], [0.0] * 4)
    assert forces[1].item() == pytest.approx(-forces[3].item())  # up on the foot, down on the table


def test_the_smooth_friction_has_no_kink_at_the_transition_speed() -> None:
    def slopes(friction: Any) -> list[float]:
        sphere, state = replace(HEEL, friction=friction), TreeState.symbols(TREE)
        slope = ca.jacobian(sphere_forces(state, [sphere])[0][0], state.dz[0])
        return [at(slope, state, [0.0, 0.02, 0.0, 0.0], [speed, 0.0, 0.0, 0.0]).item() for speed in (0.1995, 0.2005)]

    kinked, smooth = slopes("opensim"), slopes("smooth")
    assert abs(kinked[1] - kinked[0]) > 0.5 * abs(kinked[0])
    assert abs(smooth[1] - smooth[0]) < 0.15 * abs(smooth[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"radius": 0.0}, "contact 'heel', radius: 0 is not finite and positive"),
        ({"stiffness": float("nan")}, "stiffness: nan"),
        ({"static": -0.1}, "static: -0.1 is not finite and at least 0"),
        ({"friction": "sticky"}, "'sticky' is neither opensim nor smooth"),
        ({"plane": Plane("foot")}, "centre: lies on 'foot' like the plane"),
    ],
)
def test_impossible_spheres_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ContactError, match=message):
        replace(HEEL, **change)
