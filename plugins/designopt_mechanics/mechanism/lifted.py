"""A mechanism with every joint variable free: what the forces in the joints of closed loops are solved from.

Joint functions and loops leave a mechanism few coordinates, but the bodies feel each joint: the lifted tree has one
coordinate per joint variable, and what meets is cut. A cut along a direction in which the two points cannot part (the
normal of a planar loop) is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from operator import itemgetter
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import casadi as ca
from designopt_mechanics.mechanism.mechanism import Coincidence, Mechanism
from designopt_mechanics.motions import Ball, Motion
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import GROUND, Coordinate, Frame, Tree, TreeError

_VARIABLES = ("angle", "distance", "azimuth", "elevation", "length")
_SAMPLES, _FIXED = 5, 1e-9


@dataclass(frozen=True, eq=False)
class Cut:
    """A meeting point whose points can part along the columns of `axes` (3, k) and not along those of `fixed`."""

    meet: Coincidence
    axes: Floats
    fixed_axes: Floats


@dataclass(frozen=True, eq=False)
class LiftedTree:
    """The `tree` with one coordinate per joint variable, and the `cuts` of the mechanism.

    `functions` are those of the variables that are functions of the mechanism's coordinates, by name; all other
    variables are coordinates of the mechanism. `frame_of` names the frame that a variable moves.
    """

    tree: Tree
    functions: Mapping[str, Callable[[Mapping[str, Any]], Any]]
    frame_of: Mapping[str, str]
    cuts: tuple[Cut, ...]

    def variables(self, coordinates: Mapping[str, Any]) -> Any:
        """(n, 1) the joint variables as expressions of the mechanism's coordinates."""
        parts = [self.functions[n](coordinates) if n in self.functions else coordinates[n] for n in self.tree.names]
        return ca.vertcat(ca.SX(0, 1), *(ca.SX(part) for part in parts))

    def gap(self, state: TreeState) -> Any:
        """(k, 1) m between the points that meet, along the axes of the cuts."""
        return ca.vertcat(ca.SX(0, 1), *(gap_along(state, cut.meet, cut.axes) for cut in self.cuts))

    def frames_between(self, meet: Coincidence) -> list[str]:
        """The frames from one point of a meeting to the other, whose joints carry its force."""
        ways = [self._way(point.frame) for point in (meet.first, meet.second)]
        return [name for way, beside in (ways, ways[::-1]) for name in way if name not in beside]

    def _way(self, frame: str) -> list[str]:
        names = []
        while frame != GROUND:
            names.append(frame)
            frame = self.tree.frame(frame).parent
        return names


def gap_along(state: TreeState, meet: Coincidence, axes: Floats) -> Any:
    """(k, 1) m from the second to the first point, along the columns of `axes`."""
    return ca.SX(axes.T) @ (state.position(meet.first) - state.position(meet.second))


def lift(mechanism: Mechanism) -> LiftedTree:
    """The lifted tree of a mechanism. Raises `TreeError` for points that no joint can bring together."""
    tree = mechanism.tree
    by_name = {c.name: c for c in tree.coordinates}
    coordinates: dict[str, Coordinate] = {}
    functions: dict[str, Callable[[Mapping[str, Any]], Any]] = {}
    frame_of: dict[str, str] = {}

    z = {c.name: ca.SX.sym(c.name) for c in tree.coordinates}

    def variable(frame: Frame, value: Any) -> Any:
        value = _coordinate_of(value, z)
        if isinstance(value, str) and value not in coordinates:
            coordinates[value], frame_of[value] = by_name[value], frame.name
            return value
        if not isinstance(value, str) and not callable(value):
            return value
        name = f"{frame.name}_{len(coordinates)}"
        while name in by_name or name in coordinates:
            name += "_"
        functions[name] = itemgetter(value) if isinstance(value, str) else value
        coordinates[name], frame_of[name] = Coordinate(name), frame.name
        return name

    frames = []
    for frame in tree.frames:
        motions: list[Motion] = []
        for motion in frame.motions:
            if isinstance(motion, Ball):
                motions.append(replace(motion, quaternion=_four(variable(frame, v) for v in motion.quaternion)))
                continue
            names = [f.name for f in fields(motion) if f.name in _VARIABLES]
            motions.append(replace(motion, **{n: variable(frame, getattr(motion, n)) for n in names}))
        frames.append(replace(frame, motions=tuple(motions)))
    free = Tree(tuple(coordinates.values()), tuple(frames))
    return LiftedTree(free, functions, frame_of, _cuts(mechanism, free))


def _coordinate_of(value: Any, z: Mapping[str, Any]) -> Any:
    """The name of the coordinate that a joint function is, or the function."""
    if not callable(value):
        return value
    expression = ca.SX(value(z))
    return next((name for name, symbol in z.items() if ca.is_equal(expression, symbol, 2)), value)


def _four(values: Iterable[Any]) -> tuple[Any, Any, Any, Any]:
    a, b, c, d = values
    return a, b, c, d


def _cuts(mechanism: Mechanism, tree: Tree) -> tuple[Cut, ...]:
    """Along which directions each pair of points can part, from the derivatives at random postures."""
    if not mechanism.meets:
        return ()
    state = TreeState.symbols(tree)
    rng = np.random.default_rng(0)
    postures = rng.uniform(-1.0, 1.0, (_SAMPLES, len(tree.names)))
    cuts = []
    for meet in mechanism.meets:
        gap = gap_along(state, meet, np.eye(3))
        f = ca.Function("gap", [state.z, mechanism.p], [gap, ca.densify(ca.jacobian(gap, state.z))])
        values = [[np.asarray(r, dtype=np.float64) for r in f(c, mechanism.column())] for c in postures]
        slopes = np.hstack([slope for _, slope in values]) if tree.names else np.zeros((3, 0))
        largest = np.linalg.norm(slopes, 2) if slopes.size else 0.0
        along = np.linalg.norm(slopes, axis=1) if slopes.size else np.zeros(3)
        moving = along > _FIXED * max(largest, 1e-30)
        basis, sizes, _ = np.linalg.svd(slopes) if slopes.size else (np.eye(3), np.zeros(0), None)
        rank = int((sizes > _FIXED * max(largest, 1e-30)).sum())
        if rank == moving.sum():
            axes, fixed_axes = np.eye(3)[:, moving], np.eye(3)[:, ~moving]
        else:
            axes, fixed_axes = basis[:, :rank], basis[:, rank:]
        apart = np.abs(fixed_axes.T @ values[0][0]).max(initial=0.0)
        if apart > 1e-9:
            raise TreeError(meet.name, "meet", f"the points stay {apart:.3g} m apart: no joint moves them together")
        cuts.append(Cut(meet, axes, fixed_axes))
    return tuple(cuts)
