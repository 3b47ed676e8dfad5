"""A mechanism as data: a tree with loops, elements on its frames, and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from designopt.lazy import casadi as ca
from designopt.study.language.findings import nearest_or_all
from designopt_mechanics.contacts import Contact, contact_loads
from designopt_mechanics.coordinate_laws import CoordinateLaw, coordinate_forces
from designopt_mechanics.loads import Load, load_at
from designopt_mechanics.springs import Spring, WirePull, spring_loads
from designopt_mechanics.state import TreeState
from designopt_mechanics.surfaces.over import Surface
from designopt_mechanics.tree import Point, Tree, TreeError
from designopt_mechanics.wires import Wire

#: A number, a CasADi expression of the parameters, or a function of a scope (see `Mechanism.scope`).
ScopeValue = float | Callable[[Mapping[str, Any]], Any] | Any


@dataclass(frozen=True, eq=False)
class Coincidence:
    """Two points that coincide: a pin or ball that closes a loop."""

    name: str
    first: Point
    second: Point


@dataclass(frozen=True, eq=False)
class Relation:
    """An `equation` of the coordinates by name that is zero, without a cut between bodies: the unknown of a loop
    equation, a coupling of joints, the unit length of a quaternion."""

    name: str
    equation: Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, eq=False)
class MechanismParameter:
    """A number that lengths, masses, stiffnesses and formulas use: its `value` in the SI form of `unit`, with the range
    and reason that the file gives. `symbol` stands for it in expressions of the mechanism."""

    name: str
    unit: str
    value: float
    low: float = -math.inf
    high: float = math.inf
    why: str = ""
    symbol: Any = None

    def __post_init__(self) -> None:
        if self.symbol is None:
            object.__setattr__(self, "symbol", ca.SX.sym(self.name))


@dataclass(frozen=True, eq=False)
class PointLoad:
    """A `force` (3) N at a point and a free `moment` (3) N m, in the axes of the ground: scope values."""

    name: str
    point: Point
    force: Sequence[ScopeValue] = (0.0, 0.0, 0.0)
    moment: Sequence[ScopeValue] = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Clearance:
    """The distance of two points less `radius` (m): of two balls, say.

    With a `surface`, the distance from it of the bar of this radius between the points; a ball where they are one.
    """

    first: Point
    second: Point
    radius: Any = 0.0
    surface: Surface | None = None


@dataclass(frozen=True, eq=False)
class LineAngle:
    """The angle (rad, 0 to pi/2) between a line of one frame and a line of another; each a frame and a direction."""

    first: tuple[str, tuple[float, float, float]]
    second: tuple[str, tuple[float, float, float]]


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A `tree` of all coordinates, in `gravity` (3) m/s^2, with what is attached to it.

    `meets` and `relations` close loops; `independent` names the coordinates that move them, by default the first that
    the loops leave free. `branches` are start values of the dependent coordinates by name of the branch. `loads` and
    `drives` (efforts by coordinate) are functions of the scope; `laws` act along coordinates.
    `reaches` are gaps (m) of joint functions that close loops: positive where they cannot. `couplers` states that
    joint functions which no meet explains act within joints. Positions, masses and constants may be expressions of the
    symbols of `parameters`, of which `unused_parameters` are in no number and no formula of the file.
    """

    tree: Tree
    gravity: Any
    wires: tuple[Wire, ...] = ()
    springs: tuple[Spring | WirePull, ...] = ()
    contacts: tuple[Contact, ...] = ()
    meets: tuple[Coincidence, ...] = ()
    relations: tuple[Relation, ...] = ()
    independent: tuple[str, ...] = ()
    branches: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    parameters: tuple[MechanismParameter, ...] = ()
    loads: tuple[PointLoad, ...] = ()
    drives: Mapping[str, ScopeValue] = field(default_factory=dict)
    laws: Mapping[str, CoordinateLaw] = field(default_factory=dict)
    reaches: Mapping[str, Callable[[Mapping[str, Any]], Any]] = field(default_factory=dict)
    points: Mapping[str, Point] = field(default_factory=dict)
    clearances: Mapping[str, Clearance] = field(default_factory=dict)
    angles: Mapping[str, LineAngle] = field(default_factory=dict)
    couplers: bool = False
    unused_parameters: tuple[str, ...] = ()
    title: str = ""
    time: Any = None

    def __post_init__(self) -> None:
        if self.time is None:
            object.__setattr__(self, "time", ca.SX.sym("time"))
        frames = {f.name for f in self.tree.frames} | {"ground"}
        for meet in self.meets:
            for point in (meet.first, meet.second):
                if point.frame not in frames:
                    raise TreeError(meet.name, "meet", f"no frame '{point.frame}'{nearest_or_all(point.frame, frames)}")
        for name in (*self.independent, *self.drives, *self.laws, *(n for b in self.branches.values() for n in b)):
            if name not in self.tree.names:
                raise TreeError(name, "name", f"is no coordinate{nearest_or_all(name, self.tree.names)}")

    @property
    def values(self) -> dict[str, float]:
        """The numbers of the parameters by name."""
        return {p.name: p.value for p in self.parameters}

    def column(self, numbers: Mapping[str, float] | None = None) -> list[float]:
        """The numbers of the parameters in order, those of `numbers` in place of the file's."""
        return [float((numbers or {}).get(p.name, p.value)) for p in self.parameters]

    @property
    def p(self) -> Any:
        """(k, 1) the symbols of the parameters."""
        return ca.vertcat(ca.SX(0, 1), *(p.symbol for p in self.parameters))

    def scope(self, state: TreeState) -> dict[str, Any]:
        """The names in formulas of loads and drives: coordinates, ``<coordinate>_speed`` and ``time``."""
        names = dict(state.named) | {"time": self.time}
        if state.dz is not None:
            names |= {f"{name}_speed": state.dz[i] for i, name in enumerate(self.tree.names)}
        return names

    def forces_on(self, state: TreeState) -> list[Load]:
        """The forces of springs, contacts and loads on the frames; `state` has rates."""
        scope = self.scope(state)
        point_loads = [
            load_at(
                load.point.frame, state.position(load.point), *(_column(v, scope) for v in (load.force, load.moment))
            )
            for load in self.loads
        ]
        return [*spring_loads(state, self.springs), *contact_loads(state, self.contacts), *point_loads]

    def passive(self, state: TreeState) -> Any:
        """(m, 1) the generalised forces of the laws of the coordinates."""
        return coordinate_forces(state, self.laws)

    def driven(self, state: TreeState) -> Any:
        """(m, 1) the generalised forces of the drives."""
        scope = self.scope(state)
        return ca.vertcat(ca.SX(0, 1), *(value_in(scope, self.drives.get(name, 0.0)) for name in self.tree.names))

    def wire(self, name: str) -> Wire:
        """The wire `name`; raises `ValueError` with those that there are."""
        wires_by_name = {w.name: w for w in self.wires}
        if name not in wires_by_name:
            raise ValueError(f"there is no wire '{name}'{nearest_or_all(name, wires_by_name)}")
        return wires_by_name[name]


def value_in(scope: Mapping[str, Any], value: ScopeValue) -> Any:
    """A scope value as an expression."""
    return ca.SX(value(scope) if callable(value) else value)


def _column(values: Sequence[ScopeValue], scope: Mapping[str, Any]) -> Any:
    return ca.vertcat(*(value_in(scope, value) for value in values))
