"""A tree as parts of a `System` in residual form: accelerations are unknowns, nothing is inverted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from designopt.dynamics.system import Variable
from designopt.lazy import casadi as ca
from designopt.plugin import closest
from designopt_mechanics.dynamics.recursion import NO_GRAVITY, inverse_dynamics
from designopt_mechanics.loads import Load
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Tree, TreeError


@dataclass(frozen=True, eq=False)
class TreeEquations:
    """Entries for `System.from_expressions`: coordinates and their speeds as `states`, accelerations as `unknowns`."""

    states: Sequence[tuple[Variable, Any, Any]]
    unknowns: Sequence[tuple[Variable, Any, Any]]


def equations_of(
    state: TreeState,
    forces: Any | Mapping[str, Any] = 0.0,
    gravity: Any = NO_GRAVITY,
    loads: Sequence[Load] = (),
    speeds: Mapping[str, tuple[float, float]] | None = None,
) -> TreeEquations:
    """Equations of motion of a tree under generalised `forces`, `gravity` and `loads`.

    `forces` are a column (m, 1), or by the names of coordinates. Raises `TreeError` for an unknown name.
    `state` has symbols for coordinates, rates and accelerations. States are called like the coordinates and
    ``<coordinate>_speed``, with their ranges and those of `speeds`; unknowns ``<coordinate>_acceleration``.
    """
    column = by_coordinate(state.tree, forces) if isinstance(forces, Mapping) else forces
    residual = ca.cse(inverse_dynamics(state, gravity, loads) - column)
    states: list[tuple[Variable, Any, Any]] = []
    unknowns: list[tuple[Variable, Any, Any]] = []
    ranges = speeds or {}
    for i, c in enumerate(state.tree.coordinates):
        states.append((Variable(c.name, c.unit, c.low, c.high), state.z[i], state.dz[i]))
        unknowns.append((Variable(f"{c.name}_acceleration", f"{c.unit}/s^2"), state.ddz[i], residual[i]))
    for i, c in enumerate(state.tree.coordinates):
        speed = Variable(f"{c.name}_speed", f"{c.unit}/s", *ranges.get(c.name, ()))
        states.append((speed, state.dz[i], state.ddz[i]))
    return TreeEquations(states, unknowns)


def by_coordinate(tree: Tree, forces: Mapping[str, Any]) -> Any:
    """(m, 1) generalised forces from those by the names of coordinates. Raises `TreeError` for an unknown name."""
    for name in forces:
        if name not in tree.names:
            near = closest(name, tree.names)
            raise TreeError(name, "forces", f"there is no such coordinate{f'; did you mean {near!r}?' if near else ''}")
    return ca.vertcat(ca.SX(0, 1), *(ca.SX(forces.get(name, 0.0)) for name in tree.names))
