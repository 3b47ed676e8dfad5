"""Moment arms of many wires: the scale of the specification of wires, section 9.4. Run: pytest -m bench -s."""

import time
from typing import Any

import numpy as np
import pytest
from designopt_mechanics.body import Body
from designopt_mechanics.motions import Rotate
from designopt_mechanics.tree import Coordinate, Frame, Point, Tree
from designopt_mechanics.tree_rows import TreeRows
from designopt_mechanics.wires import Wire

pytestmark = pytest.mark.bench

FRAMES = 50


def synthetic(joints: int, wires: int) -> tuple[Tree, list[Wire]]:
    """A tree of hinges in any direction, and wires of three points over two joints."""
    rng = np.random.default_rng(0)
    frames, parents = [], {"ground": "ground"}
    for i in range(joints):
        parent = "ground" if i == 0 else f"b{max(0, i - 1 - int(rng.integers(0, 3)))}"
        axis = rng.normal(size=3)
        turn = Rotate(tuple(axis / np.linalg.norm(axis)), f"q{i}")
        body = Body(1.0, (0.0, 0.0, -0.1), (0.01, 0.01, 0.01))
        frames.append(Frame(f"b{i}", parent, (turn,), body, position=tuple(rng.uniform(-0.2, 0.2, 3))))
        parents[f"b{i}"] = parent
    paths = []
    for k in range(wires):
        last = f"b{k % joints}"
        way = (last, parents[last], parents[parents[last]])
        paths.append(Wire(f"w{k}", tuple(Point(name, tuple(rng.uniform(-0.1, 0.1, 3))) for name in way)))
    return Tree(tuple(Coordinate(f"q{i}") for i in range(joints)), tuple(frames)), paths


@pytest.mark.parametrize(("joints", "wires", "limit"), [(5, 20, 0.05), (44, 300, 0.15), (155, 1000, 3.5)])
def test_moment_arms_take_less_than_their_part_of_a_frame(
    joints: int, wires: int, limit: float, record_property: Any
) -> None:
    """Milliseconds a frame for J_L of all wires; the specification's own figures are the limits."""
    tree, paths = synthetic(joints, wires)
    z = np.random.default_rng(1).uniform(-0.5, 0.5, (FRAMES, joints))
    rows = TreeRows(tree, wires=paths)
    arms = rows.moment_arms(z)
    assert np.isfinite(arms).all()
    took = []
    for _ in range(9):
        begin = time.perf_counter()
        rows.moment_arms(z)
        took.append(time.perf_counter() - begin)
    milliseconds = 1e3 * min(took) / FRAMES
    record_property("moment_arms_ms", milliseconds)
    print(f"\n{joints} joints, {wires} wires: J_L {milliseconds:.4f} ms a frame")
    assert milliseconds < limit
