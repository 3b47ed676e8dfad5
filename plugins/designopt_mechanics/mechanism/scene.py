"""The drawing of a mechanism from its own data: joints, bodies, wires, springs, meeting points and contacts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt_mechanics.mechanism.mechanism import Mechanism
from designopt_mechanics.scene import with_gaps
from designopt_mechanics.state import TreeState
from designopt_mechanics.surfaces.over import Surface
from designopt_mechanics.tree import GROUND, Point
from designopt_mechanics.wires import Wire, wire_path

#: Places along an arc of a wire, and along the circle of a surface.
_ARC, _RING = 13, 37


def scene_of(mechanism: Mechanism, z: ArrayLike, p: ArrayLike) -> Floats:
    """(n, vertices, 3) m: lines through points at the postures `z` (n, m), NaN between lines.

    Lines lead from the origin of each frame to the joints that it carries, to its points that meet others, to its
    centre of mass, and along wires and springs; surfaces that these touch are circles.
    """
    state = TreeState.symbols(mechanism.tree)
    lines: list[Sequence[Any]] = [[state.position(point) for point in line] for line in _lines(mechanism)]
    wires = [*mechanism.wires, *(spring.wire for spring in mechanism.springs)]
    obstacles = [c.surface for c in mechanism.clearances.values() if c.surface is not None]
    lines += [*drawn_wires(state, wires), *_rings(state, obstacles)]
    return drawing(state, lines, z, mechanism.p, p)


def drawn_wires(state: TreeState, wires: Sequence[Wire]) -> list[Sequence[Any]]:
    """Places (3, 1) along wires, with arcs over surfaces, and circles of these surfaces."""
    surfaces = dict.fromkeys(over.surface for wire in wires for overs in wire.overs for over in overs)
    return [*(_wire_places(state, wire) for wire in wires), *_rings(state, surfaces)]


def drawing(
    state: TreeState, lines: Sequence[Sequence[Any]], z: ArrayLike, symbols: Any = None, p: ArrayLike = ()
) -> Floats:
    """(n, vertices, 3) m: lines through places (3, 1), expressions of the state and `symbols`, at the postures `z` (n,
    m) and the values `p`; NaN between lines."""
    positions = ca.horzcat(*(position for line in lines for position in line))
    function = ca.Function("scene", [state.z, ca.SX(0, 1) if symbols is None else symbols], [ca.densify(positions.T)])
    postures = np.atleast_2d(np.asarray(z, dtype=np.float64))
    rows = Rows(function, compiled=False)(postures, np.asarray(p, dtype=np.float64))
    return with_gaps(rows[0].reshape(len(postures), -1, 3), [len(line) for line in lines])


def _lines(mechanism: Mechanism) -> list[Sequence[Point]]:
    """The lines of the drawing."""
    tree = mechanism.tree
    ends: dict[str, list[Any]] = {frame.name: [] for frame in tree.frames} | {GROUND: []}
    for frame in tree.frames:
        ends[frame.parent].append(frame.position)
        if frame.body is not None:
            ends[frame.name].append(frame.body.centre)
    points = [point for meet in mechanism.meets for point in (meet.first, meet.second)]
    points += [point for path in (*mechanism.wires, *(s.wire for s in mechanism.springs)) for point in path.points]
    points += [contact.point for contact in mechanism.contacts] + list(mechanism.points.values())
    for point in points:
        ends[point.frame].append(point.position)
    lines: list[Sequence[Point]] = [[Point(GROUND), Point(GROUND)]]
    for name, positions in ends.items():
        if name != GROUND:
            lines += [[Point(name), Point(name, position)] for position in _different_positions(positions)]
    return [*lines, *([Point(f.parent, f.position), Point(f.name)] for f in tree.frames if f.motions)]


def _wire_places(state: TreeState, wire: Wire) -> list[Any]:
    """Places along a wire: its points, and arcs over surfaces."""
    touches = iter(wire_path(state, wire).touches)
    positions = [state.position(wire.points[0])]
    for end, overs in zip(wire.points[1:], wire.overs, strict=True):
        for _ in overs:
            arc = next(touches).arc
            positions += [arc(share) for share in np.linspace(0.0, 1.0, _ARC).tolist()]
        positions.append(state.position(end))
    return positions


def _rings(state: TreeState, surfaces: Iterable[Surface]) -> list[list[Any]]:
    """A circle for each cylinder, three for each sphere."""
    circles = []
    for surface in surfaces:
        for axis in np.eye(3).tolist() if surface.axis is None else [surface.axis]:
            across = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
            across /= np.linalg.norm(across)
            turns = np.linspace(0.0, 2.0 * np.pi, _RING)
            circle = np.outer(np.cos(turns), across) + np.outer(np.sin(turns), np.cross(axis, across))
            axes, centre = state.axes(surface.centre.frame), state.position(surface.centre)
            circles.append([centre + surface.radius * axes @ ca.SX(direction.tolist()) for direction in circle])
    return circles


def _different_positions(positions: Sequence[Any]) -> list[Any]:
    """Positions other than the origin, each once; expressions are kept."""
    distinct_positions: list[Any] = []
    for position in positions:
        expression = ca.SX(list(position) if isinstance(position, tuple) else position)
        if expression.is_constant() and not np.asarray(ca.evalf(expression)).any():
            continue
        if not any(
            ca.is_equal(expression, ca.SX(list(q) if isinstance(q, tuple) else q), 3) for q in distinct_positions
        ):
            distinct_positions.append(position)
    return distinct_positions
