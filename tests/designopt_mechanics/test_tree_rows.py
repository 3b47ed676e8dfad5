"""A tree over rows gives for each frame what its expressions give."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.body import Body
from designopt_mechanics.dynamics.recursion import efforts, inverse_dynamics
from designopt_mechanics.loads import Load
from designopt_mechanics.motions import Slide
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Coordinate, Frame, Point, Tree, TreeError
from designopt_mechanics.tree_rows import TreeRows
from designopt_mechanics.wires import Wire, lengths, moment_arms
from random_trees import GRAVITY, random_case

CASE = random_case(4, 6, 3)
RNG = np.random.default_rng(8)
Z, DZ, DDZ = RNG.uniform(-1.0, 1.0, (3, 5, 3))
LOADS = {"b4": RNG.normal(size=(5, 6)), "b6": RNG.normal(size=6)}


@pytest.fixture(scope="module")
def rows() -> TreeRows:
    return TreeRows(CASE.tree, GRAVITY, CASE.wires, loaded=("b4", "b6"), compiled=False, couplers=True)


def by_hand(expression: Any, s: TreeState, *more: Any) -> Any:
    return ca.Function("f", [s.z, s.dz, s.ddz, *more], [ca.densify(expression)])


def test_lengths_and_moment_arms_of_all_frames(rows: TreeRows) -> None:
    s = TreeState.symbols(CASE.tree)
    evaluate = by_hand(ca.horzcat(lengths(s, CASE.wires), moment_arms(s, CASE.wires).T), s)
    for i in range(5):
        expected = np.asarray(evaluate(Z[i], 0.0, 0.0), float)
        assert np.allclose(rows.lengths(Z)[i], expected[:, 0], rtol=1e-13)
        assert np.allclose(rows.moment_arms(Z)[i], expected[:, 1:].T, rtol=1e-12, atol=1e-14)


def test_positions_and_velocities_of_points(rows: TreeRows) -> None:
    points = [Point("b3", (0.1, 0.2, 0.3)), Point("ground", (1.0, 2.0, 3.0)), Point("b6")]
    places, speeds = rows.positions(points, Z), rows.velocities(points, Z, DZ)
    assert places.shape == speeds.shape == (5, 3, 3)
    assert np.array_equal(places[:, 1], np.tile([1.0, 2.0, 3.0], (5, 1)))
    assert not speeds[:, 1].any()
    h = 1e-6
    differences = (rows.positions(points, Z + h * DZ) - rows.positions(points, Z - h * DZ)) / (2.0 * h)
    assert np.abs(speeds - differences).max() < 1e-8


def test_inverse_dynamics_and_joint_forces_with_loads_on_frames(rows: TreeRows) -> None:
    s = TreeState.symbols(CASE.tree)
    w = ca.SX.sym("w", 12)
    loads = [Load("b4", w[:3], w[3:6]), Load("b6", w[6:9], w[9:12])]
    forces = by_hand(inverse_dynamics(s, GRAVITY, loads), s, w)
    joint = by_hand(ca.vertcat(*efforts(s, GRAVITY, loads, couplers=True).joints["b5"]), s, w)
    computed = rows.inverse_dynamics(Z, DZ, DDZ, LOADS)
    joints = rows.joint_forces(Z, DZ, DDZ, LOADS)
    for i in range(5):
        at = (Z[i], DZ[i], DDZ[i], np.concatenate([LOADS["b4"][i], LOADS["b6"]]))
        assert np.allclose(computed[i], np.asarray(forces(*at), float).ravel(), rtol=1e-12, atol=1e-12)
        assert np.allclose(joints["b5"][i], np.asarray(joint(*at), float).ravel(), rtol=1e-12, atol=1e-12)


def test_the_balance_is_what_the_wires_must_carry(rows: TreeRows) -> None:
    time = np.arange(5) * 0.01
    balance = rows.balance(time, Z, DZ, DDZ, LOADS, status=[0, 10, 120, 0, 0])
    assert balance.rows == ("q0", "q1", "q2")
    assert balance.columns == ("w0", "w1", "w2")
    assert balance.row_units == ("N m", "N m", "N m")
    assert np.array_equal(balance.moments, rows.inverse_dynamics(Z, DZ, DDZ, LOADS))
    assert np.array_equal(balance.arms, rows.moment_arms(Z))
    assert balance.usable.tolist() == [True, True, False, True, True]


def test_compiled_and_interpreted_numbers_are_equal(rows: TreeRows) -> None:
    compiled = TreeRows(CASE.tree, GRAVITY, CASE.wires, loaded=("b4", "b6"))
    a, b = (r.inverse_dynamics(Z, DZ, DDZ, LOADS) for r in (compiled, rows))
    assert np.abs(a - b).max() < 1e-13 * np.abs(b).max()


def test_an_array_of_a_wrong_shape_is_named(rows: TreeRows) -> None:
    with pytest.raises(ValueError, match=r"lengths: z has shape \(5, 9\), not"):
        rows.lengths(np.zeros((5, 9)))


def test_points_of_a_wire_that_meet_are_reported_with_the_frame() -> None:
    tree = Tree((Coordinate("x", "m"),), (Frame("block", motions=(Slide((1, 0, 0), "x"),), body=Body(1.0)),))
    wire = Wire("string", (Point("ground", (0.3, 0.0, 0.0)), Point("block")))
    rows = TreeRows(tree, wires=[wire], compiled=False)
    assert rows.moment_arms([[0.1], [0.5]]).ravel() == pytest.approx([1.0, -1.0])
    with pytest.raises(TreeError, match="'string', points: two of them meet in frame 1: its moment arms are undefined"):
        rows.moment_arms([[0.1], [0.3], [0.5]])
    assert np.isnan(rows.moment_arms([[0.1], [np.nan]])[1]).all()  # a missing frame stays one


def test_loads_on_other_frames_and_of_other_shapes_are_refused(rows: TreeRows) -> None:
    with pytest.raises(TreeError, match="'b5', loads: is not among the loaded frames"):
        rows.inverse_dynamics(Z, DZ, DDZ, {"b5": np.zeros(6)})
    with pytest.raises(TreeError, match=r"'b4', loads: has shape \(5, 3\)"):
        rows.inverse_dynamics(Z, DZ, DDZ, {"b4": np.zeros((5, 3))})
    with pytest.raises(TreeError, match="there is no such frame; did you mean 'b4'"):
        TreeRows(CASE.tree, loaded=("b44",))
