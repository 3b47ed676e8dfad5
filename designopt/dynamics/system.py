"""One symbolic statement of a dynamic system: its right-hand side and what its variables are called.

Simulation, linearisation and collocation all start from a `System`; nothing else states the physics a second time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import casadi as ca

#: Arguments of every function of a system, in this order.
ARGUMENTS = ("x", "u", "z", "p", "q", "t")


@dataclass(frozen=True)
class Variable:
    """One scalar of a system: its name, unit, range (in that unit) and meaning.

    The range bounds what an optimisation may choose; a simulation goes where the equations lead.
    """

    name: str
    unit: str
    low: float = -math.inf
    high: float = math.inf
    description: str = ""

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"'{self.name}' is no name for a variable: letters, digits and _ only")
        if not self.low <= self.high:
            raise ValueError(f"variable '{self.name}': low {self.low!r} is not below high {self.high!r}")


@dataclass(frozen=True, eq=False)
class System:
    """``xdot = rhs(x, u, z, p, q, t)`` with tables that name every component of its arguments.

    `states` x, `controls` u, `algebraic` z (fixed by ``0 = algebraic_residual(x, u, z, p, q, t)``), `parameters` p
    (what a design may change), `data` q (numbers fixed by measurement), time t. `rhs`, `output` (gives y, named by
    `outputs`), `guard` (gives g, named by `guards`; a simulation ends where any g <= 0) and `algebraic_residual` are
    CasADi functions of exactly these six arguments, named so, each a column (t a scalar; unused ones are empty).

    Raises `ValueError` when tables and functions do not fit.
    """

    name: str
    states: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    rhs: ca.Function
    controls: tuple[Variable, ...] = ()
    algebraic: tuple[Variable, ...] = ()
    data: tuple[Variable, ...] = ()
    outputs: tuple[Variable, ...] = ()
    output: ca.Function | None = None
    guards: tuple[str, ...] = ()
    guard: ca.Function | None = None
    algebraic_residual: ca.Function | None = None

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"'{self.name}' is no name for a system: letters, digits and _ only")
        if not self.states:
            raise ValueError(f"system '{self.name}' has no states")
        for table in ("states", "controls", "algebraic", "parameters", "data", "outputs"):
            self._check_unique(table, [v.name for v in getattr(self, table)])
        self._check_unique("guards", list(self.guards))
        self._check_function("rhs", self.rhs, "states")
        self._check_function("output", self.output, "outputs")
        self._check_function("guard", self.guard, "guards")
        self._check_function("algebraic_residual", self.algebraic_residual, "algebraic")

    @classmethod
    def from_expressions(
        cls,
        name: str,
        *,
        states: Sequence[tuple[Variable, Any, Any]],
        parameters: Sequence[tuple[Variable, Any]] = (),
        controls: Sequence[tuple[Variable, Any]] = (),
        data: Sequence[tuple[Variable, Any]] = (),
        outputs: Sequence[tuple[Variable, Any]] = (),
        guards: Mapping[str, Any] | None = None,
        time: Any = None,
    ) -> Self:
        """A system from scalar SX symbols: states are (variable, symbol, rate), the others (variable, symbol or value).

        `time` is the symbol of time where an expression holds it; `guards` maps a name to the expression that ends a
        simulation where it is not positive. For algebraic variables use the constructor.
        """
        import casadi as ca

        def column(entries: Sequence[Any]) -> Any:
            return ca.vertcat(*entries) if entries else ca.SX(0, 1)

        arguments = [
            column([s for _, s, _ in states]),
            column([s for _, s in controls]),
            ca.SX(0, 1),
            column([s for _, s in parameters]),
            column([s for _, s in data]),
            ca.SX.sym("t") if time is None else time,
        ]

        def function(label: str, entries: Sequence[Any], result: str) -> Any:
            return ca.Function(label, arguments, [column([ca.SX(e) for e in entries])], list(ARGUMENTS), [result])

        guards = guards or {}
        return cls(
            name=name,
            states=tuple(v for v, _, _ in states),
            parameters=tuple(v for v, _ in parameters),
            controls=tuple(v for v, _ in controls),
            data=tuple(v for v, _ in data),
            rhs=function("rhs", [rate for _, _, rate in states], "xdot"),
            outputs=tuple(v for v, _ in outputs),
            output=function("output", [e for _, e in outputs], "y") if outputs else None,
            guards=tuple(guards),
            guard=function("guard", list(guards.values()), "g") if guards else None,
        )

    def values(self, table: str, given: ArrayLike | Mapping[str, float]) -> NDArray[np.float64]:
        """`given` as a contiguous array (n,) in the order of `table` ("states", "parameters", "controls", "data").

        A mapping must name every entry. Raises `ValueError` for a wrong length or name and for what is not finite.
        """
        names = [v.name for v in getattr(self, table)]
        if isinstance(given, Mapping):
            if unknown := sorted(set(given) - set(names)):
                raise ValueError(
                    f"{self.name}: {', '.join(map(repr, unknown))} not among its {table}: {_listed(names)}"
                )
            if missing := [n for n in names if n not in given]:
                raise ValueError(f"{self.name}: no value for {', '.join(map(repr, missing))} ({table})")
            given = [given[n] for n in names]
        array = np.ascontiguousarray(given, dtype=np.float64)
        if array.shape != (len(names),):
            raise ValueError(f"{self.name}: {table} have shape ({len(names)},), not {array.shape}: {_listed(names)}")
        if not np.isfinite(array).all():
            first = int(np.flatnonzero(~np.isfinite(array))[0])
            raise ValueError(f"{self.name}: {table}: {names[first]} is {array[first]}")
        return array

    def _check_unique(self, table: str, names: list[str]) -> None:
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(f"system '{self.name}': {table} name {', '.join(map(repr, twice))} more than once")

    def _check_function(self, label: str, function: ca.Function | None, table: str) -> None:
        rows = len(getattr(self, table))
        if function is None:
            if rows:
                raise ValueError(f"system '{self.name}' has {table} but no function '{label}'")
            return
        if not rows:
            raise ValueError(f"system '{self.name}' has a function '{label}' but no {table}")
        where = f"system '{self.name}', function '{label}'"
        if tuple(function.name_in()) != ARGUMENTS:
            raise ValueError(f"{where}: arguments must be named {ARGUMENTS}, not {tuple(function.name_in())}")
        tables = ("states", "controls", "algebraic", "parameters", "data")
        sizes = [(len(getattr(self, t)), t) for t in tables] + [(1, "time")]
        for i, (size, what) in enumerate(sizes):
            if function.numel_in(i) != size or (size and function.size2_in(i) != 1):
                raise ValueError(
                    f"{where}: argument {ARGUMENTS[i]} has shape {function.size_in(i)}, but there are {size} ({what})"
                )
        if function.n_out() != 1 or function.size_out(0) != (rows, 1):
            shapes = [function.size_out(i) for i in range(function.n_out())]
            raise ValueError(f"{where}: gives {shapes}, not one column of {rows} ({table})")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "(none)"
