"""Postures at rest: closed forms of posture, stiffness and buckling load."""

from __future__ import annotations

import numpy as np
import pytest
from designopt_mechanics import Body, Coordinate, Frame, Mechanism, Point, PointLoad, Rotate, Spring, Tree, Wire, solve
from designopt_mechanics.coordinate_laws import CoordinateLaw
from linkages import GRAVITY, four_bar, link

from designopt.plugin import Diverged

STIFFNESS, LENGTH = 40.0, 0.5


def column(bars: int) -> Mechanism:
    """Upright bars without mass in the balance, rotational springs in the joints, a load of 1 N on top."""
    names = [f"b{i}" for i in range(bars)]
    frames = tuple(
        Frame(n, names[i - 1] if i else "ground", (Rotate((0, 0, 1), n),), Body(1e-3, inertia=1e-3),
              position=(0.0, LENGTH if i else 0.0, 0.0))
        for i, n in enumerate(names)
    )  # fmt: skip
    tree = Tree(tuple(Coordinate(n) for n in names), frames)
    load = PointLoad("top", Point(names[-1], (0.0, LENGTH, 0.0)), (0.0, -1.0, 0.0))
    laws = {n: CoordinateLaw(stiffness=STIFFNESS) for n in names}
    return Mechanism(tree, (0.0, 0.0, 0.0), loads=(load,), laws=laws)


@pytest.mark.parametrize(("bars", "critical"), [(1, 1.0), (2, (3.0 - np.sqrt(5.0)) / 2.0)])
def test_a_column_of_hinged_bars_buckles_at_the_textbook_load(bars: int, critical: float) -> None:
    """k / L for one bar, (3 - sqrt 5) / 2 of it for two (Timoshenko and Gere, Theory of Elastic Stability)."""
    outputs = solve(column(bars), "equilibrium", buckling=["top"]).outputs
    assert outputs["buckling_factor"] == pytest.approx(critical * STIFFNESS / LENGTH, rel=1e-6)
    assert outputs["stable"] == 1.0


def test_a_spring_that_pulls_down_never_buckles() -> None:
    mechanism = column(1)
    load = PointLoad("top", Point("b0", (0.0, LENGTH, 0.0)), (0.0, 1.0, 0.0))
    upward = Mechanism(mechanism.tree, (0.0, 0.0, 0.0), loads=(load,), laws=mechanism.laws)
    assert solve(upward, "equilibrium", buckling=["top"]).outputs["buckling_factor"] == np.inf


def test_a_linkage_hangs_where_its_potential_is_least() -> None:
    """The four-bar in weight: no small turn of the crank lowers the centre of mass; the pins carry the weight."""
    mechanism = four_bar()
    result = solve(mechanism, "equilibrium")
    assert result.outputs["stable"] == 1.0
    from designopt_mechanics.mechanism.loops import LoopSolver

    loops = LoopSolver(mechanism)
    z = np.array([result.outputs[n] for n in mechanism.tree.names])

    def height(crank: float) -> float:
        row = loops.follow(z, [[crank]], []).z[0]
        a, b, c = row[0], row[0] + row[1], row[2]
        centres = [
            0.135 * np.sin(a) + 0.03 * np.cos(a),
            0.3 * np.sin(a) + 0.36 * np.sin(b) + 0.03 * np.cos(b),
            0.27 * np.sin(c) + 0.03 * np.cos(c),
        ]
        return float(9.81 * sum(centres))

    h = 1e-3
    low, middle, high = (height(z[0] + s * h) for s in (-1.0, 0.0, 1.0))
    assert (high - low) / (2 * h) == pytest.approx(0.0, abs=1e-4)
    assert (high - 2 * middle + low) / h**2 == pytest.approx(result.outputs["stiffness_crank"], rel=1e-4)


def test_a_start_in_an_unstable_posture_stays_and_is_called_unstable() -> None:
    tree = Tree((Coordinate("q", reference=np.pi / 2),), (link("q", "ground", (0.0, 0.0), 1.0),))
    upright = np.arctan2(0.45, 0.03)  # the centre of mass above the hinge
    outputs = solve(Mechanism(tree, GRAVITY), "equilibrium", initial={"q": float(upright)}).outputs
    assert outputs["q"] == pytest.approx(upright)
    assert outputs["stable"] == 0.0
    assert outputs["stiffness_q"] == pytest.approx(-9.81 * np.hypot(0.45, 0.03))


def test_without_a_posture_at_rest_the_sentence_says_so() -> None:
    tree = Tree((Coordinate("x", "m"),), (Frame("mass", motions=()), link("x", "mass", (0.0, 0.0), 1.0)))
    load = PointLoad("push", Point("x"), moment=(0.0, 0.0, 5.0))
    with pytest.raises(Diverged, match="no posture at rest was reached in 200 steps"):
        solve(Mechanism(tree, (0.0, 0.0, 0.0), loads=(load,)), "equilibrium")


def test_springs_hold_a_platform_with_the_stiffness_of_their_wires() -> None:
    tree = Tree((Coordinate("turn"),), (link("turn", "ground", (0.0, 0.0), 1.0),))
    spring = Spring(Wire("s", (Point("ground", (1.0, 1.0, 0.0)), Point("turn", (1.0, 0.0, 0.0)))), 100.0, 1.0)
    outputs = solve(Mechanism(tree, (0.0, 0.0, 0.0), springs=(spring,)), "equilibrium", initial={"turn": 0.1}).outputs
    assert outputs["turn"] == pytest.approx(0.0, abs=1e-9)
    assert outputs["stiffness_turn"] == pytest.approx(100.0, rel=1e-9)
    assert outputs["tension_s"] == pytest.approx(0.0, abs=1e-8)
