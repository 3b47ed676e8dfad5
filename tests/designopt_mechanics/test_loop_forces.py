"""Joint forces of loops that joint functions close are refused; open trees and couplers have them."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.andrews.mechanism import ANGLES, ENDS, START, closed_tree, gaps, open_tree
from designopt_mechanics.body import Body
from designopt_mechanics.dynamics.recursion import efforts, inverse_dynamics
from designopt_mechanics.functions.affine import Affine
from designopt_mechanics.loads import Load
from designopt_mechanics.model_file.reading import bundled, read
from designopt_mechanics.motions import Rotate
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Coordinate, Frame, Point, Tree, TreeError
from designopt_mechanics.tree_rows import TreeRows

GRAVITY = (0.0, -9.81, 0.0)

FOUR_BAR = b"""
gravity: [0, -9.81, 0]
coordinates: {crank: {unit: rad, range: [0.5, 1.5], reference: 1}}
loops:
  link: {coordinates: {crank: [0.4, 1.6]}, unknowns: {coupler: -1, rocker: 1},
         equations: ["cos(crank) + cos(crank + coupler) - 1 - cos(rocker)", "sin(crank) + sin(crank + coupler) - sin(rocker)"]}
frames:
  crank: {motions: [rotate: {axis: [0, 0, 1], by: crank}], body: {mass: 1, centre: [0.5, 0, 0]}}
  coupler: {parent: crank, place: [1, 0, 0], motions: [rotate: {axis: [0, 0, 1], by: coupler}], body: {mass: 1, centre: [0.5, 0, 0]}}
  rocker: {place: [1, 0, 0], motions: [rotate: {axis: [0, 0, 1], by: rocker}], body: {mass: 1, centre: [0.5, 0, 0]}}
"""  # noqa: E501


def test_joint_forces_of_closed_loops_are_refused_and_the_message_says_what_is_available() -> None:
    z = np.array([[START["beta"]]])
    rows = TreeRows(closed_tree(), GRAVITY, compiled=False)
    with pytest.raises(
        TreeError, match=r"'beta', joint forces: joint functions couple the frames k1, .*inverse_dynamics .*avail"
    ):
        rows.joint_forces(z, 0 * z, 0 * z)
    assert np.isfinite(rows.inverse_dynamics(z, 0 * z, 0 * z)).all()
    linkage = read(FOUR_BAR, "four_bar.yaml")
    with pytest.raises(
        TreeError, match="'crank', joint forces: joint functions couple the frames crank, coupler, rocker"
    ):
        TreeRows(linkage.tree, linkage.gravity, compiled=False).joint_forces([[1.0]], [[0.0]], [[0.0]])
    spine = bundled("lumbo_pelvic")
    with pytest.raises(
        TreeError, match="'flexion, bending', joint forces: joint functions couple the frames L5, L4, L3, L2, L1"
    ):
        efforts(TreeState.symbols(spine.tree))


def test_a_parallelogram_shares_the_weight_of_its_coupler_between_both_cranks() -> None:
    """The pins of the four-bar at rest by statics, free body by free body: not those of the tree cut at the rocker.

    Six pins' components and the moment of the crank balance nine equations of three bodies of 1 kg with centres in
    their middles; the pins are ground-crank (A), crank-coupler (B), coupler-rocker (C) and rocker-ground (D).
    """
    t, weight = 1.0, 9.81
    c, s = np.cos(t), np.sin(t)
    places = {"A": (0.0, 0.0), "B": (c, s), "C": (1.0 + c, s), "D": (1.0, 0.0)}
    bodies = [("A", 1, "B", -1, (c / 2, s / 2)), ("B", 1, "C", -1, (c + 0.5, s)), ("C", 1, "D", 1, (1 + c / 2, s / 2))]
    matrix, right = np.zeros((9, 9)), np.zeros(9)
    for i, (first, sign_a, second, sign_b, centre) in enumerate(bodies):
        for pin, sign in ((first, sign_a), (second, sign_b)):
            k = 2 * "ABCD".index(pin)
            x, y = np.subtract(places[pin], centre)
            matrix[3 * i : 3 * i + 3, k : k + 2] += sign * np.array([[1.0, 0.0], [0.0, 1.0], [-y, x]])
        right[3 * i + 1] = weight
    matrix[2, 8] = 1.0  # the moment on the crank
    solution = np.linalg.solve(matrix, right)
    linkage = read(FOUR_BAR, "four_bar.yaml")
    rows = TreeRows(linkage.tree, linkage.gravity, compiled=False, couplers=True)
    at = np.array([[t]]), np.zeros((1, 1)), np.zeros((1, 1))
    assert rows.inverse_dynamics(*at).item() == pytest.approx(solution[8], rel=1e-12)
    cut = rows.joint_forces(*at)
    assert cut["crank"][0, 1] == pytest.approx(2 * weight)  # of the open tree: crank and all of the coupler
    assert solution[1] == pytest.approx(1.5 * weight)  # of the linkage: the rocker carries half of the coupler
    assert cut["rocker"][0, 1] == pytest.approx(weight)
    assert solution[7] == pytest.approx(1.5 * weight)


def test_the_pins_of_the_squeezer_by_multipliers_are_far_from_those_of_its_driven_open_tree() -> None:
    """At the start, at rest, with its spring left out: weight and reactions of the three closures at E."""
    tree = open_tree()
    symbols = TreeState(tree, ca.SX.sym("z", 7))
    closure = gaps(symbols)
    J = ca.Function("J", [symbols.z], [ca.densify(ca.jacobian(closure, symbols.z))])
    z = np.array([START[name] for name in ANGLES])[:, None].ravel()[[ANGLES.index(name) for name in tree.names]]
    still = TreeState(tree, symbols.z, ca.SX.zeros(7), ca.SX.zeros(7))
    needed = np.asarray(ca.Function("w", [symbols.z], [inverse_dynamics(still, GRAVITY)])(z), float).ravel()
    crank = np.eye(7)[:, [tree.names.index("beta")]]
    solution = np.linalg.solve(np.hstack([np.asarray(J(z), float).T, crank]), needed)
    torque, multipliers = solution[-1], solution[:-1].reshape(3, 2)
    closed = TreeRows(closed_tree(), GRAVITY, compiled=False, couplers=True)
    at = np.array([[START["beta"]]]), np.zeros((1, 1)), np.zeros((1, 1))
    assert closed.inverse_dynamics(*at).item() == pytest.approx(torque, rel=1e-9)
    rows = TreeRows(tree, GRAVITY, loaded=[point.frame for point in ENDS], compiled=False)
    meeting = rows.positions([ENDS[0]], z[None])[0, 0]
    forces = [np.append(f, 0.0) for f in (multipliers.sum(axis=0), *-multipliers)]
    loads = {e.frame: np.concatenate([f, np.cross(meeting, f)]) for e, f in zip(ENDS, forces, strict=True)}
    true = rows.joint_forces(z[None], 0 * z[None], 0 * z[None], loads)
    cut = closed.joint_forces(*at)
    assert max(np.linalg.norm(true[f][0, :2] - cut[f][0, :2]) / np.linalg.norm(true[f][0, :2]) for f in cut) > 0.3


def test_couplers_within_joints_leave_the_forces_that_balance_the_bodies_beyond() -> None:
    """Base of the spine in motion: the rate of the linear momentum of all that it carries, less the weight."""
    spine = bundled("lumbo_pelvic")
    state = TreeState.symbols(spine.tree)
    body = spine.tree.frame("L1").body
    assert body is not None
    centre = state.position(Point("L1", body.centre))
    force = body.mass * (state.acceleration(centre) - ca.SX(list(spine.gravity)))
    at = [[0.4, -0.2], [1.0, 2.0], [-3.0, 5.0]]
    expected = np.asarray(ca.Function("f", [state.z, state.dz, state.ddz], [force])(*at), float).ravel()
    rows = TreeRows(spine.tree, spine.gravity, compiled=False, couplers=True)
    joints = rows.joint_forces(*(np.array([v]) for v in at))
    for level in ("L5", "L3", "L1"):
        assert joints[level][0, :3] == pytest.approx(expected, rel=1e-11)
    with pytest.raises(TreeError, match="'flexion, bending', joint forces"):
        efforts(state, spine.gravity, [Load("L1", ca.SX.zeros(3), ca.SX.zeros(3))])


def test_absolute_angles_leave_each_joint_free_so_that_its_forces_follow_from_the_tree() -> None:
    """Two links of a pendulum by relative angles, and by absolute ones as functions: the same forces."""

    def pendulum(second: Any) -> TreeRows:
        body = Body(2.0, (0.3, 0.0, 0.0), (0.1, 0.1, 0.1))
        frames = (
            Frame("a", motions=(Rotate((0, 0, 1), "first"),), body=body),
            Frame("b", "a", (Rotate((0, 0, 1), second),), body, position=(0.5, 0.0, 0.0)),
        )
        return TreeRows(Tree((Coordinate("first"), Coordinate("second")), frames), GRAVITY, compiled=False)

    relative, absolute = (np.array(v)[None] for v in ([0.3, 0.4], [0.3, 0.7]))
    by_relative = pendulum("second").joint_forces(relative, relative, relative)
    by_absolute = pendulum(Affine({"second": 1.0, "first": -1.0})).joint_forces(absolute, absolute, absolute)
    for name in ("a", "b"):
        assert by_relative[name] == pytest.approx(by_absolute[name], rel=1e-12, abs=1e-12)
