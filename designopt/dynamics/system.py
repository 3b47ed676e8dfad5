"""One symbolic statement of a system: a pure CasADi function with tables of names, units and bounds.

Simulation, linearisation, compiled code and (later) transcription all derive from this statement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]

#: The arguments of every function of a system, in order.
ARGUMENTS = ("x", "u", "z", "p", "q", "t")


@dataclass(frozen=True)
class Variable:
    """Name, unit, bounds and meaning of one component of a state, control or parameter vector."""

    name: str
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    description: str = ""


@dataclass(frozen=True)
class System:
    """Equations of motion ``dx/dt = rhs(x, u, z, p, q, t)`` and what is read from them.

    `rhs`, `output` and `guard` are CasADi functions of the six arguments (column vectors, `t` a scalar; an empty table
    means an argument of length 0): states `x`, controls `u`, algebraic variables `z`, parameters `p` (those that a
    design may change), data `q` (recorded signals and the like). `output` gives the figures named in `outputs`;
    a simulation ends where a component of `guard`, named in `guards`, is no longer positive.

    Raises `ValueError` when a function's arguments or results do not have the lengths of the tables.
    """

    name: str
    states: tuple[Variable, ...]
    rhs: Any
    parameters: tuple[Variable, ...] = ()
    controls: tuple[Variable, ...] = ()
    algebraic: tuple[Variable, ...] = ()
    data: tuple[Variable, ...] = ()
    outputs: tuple[Variable, ...] = ()
    output: Any = None
    guards: tuple[str, ...] = ()
    guard: Any = None

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"the system's name '{self.name}' must be letters, digits and underscores")
        if not self.states:
            raise ValueError(f"{self.name}: a system has at least one state")
        for table in (self.states, self.controls, self.algebraic, self.parameters, self.data, self.outputs):
            names = [v.name for v in table]
            if len(set(names)) < len(names):
                raise ValueError(f"{self.name}: the name '{max(names, key=names.count)}' stands twice in one table")
        for label, function, length in (
            ("rhs", self.rhs, len(self.states)),
            ("output", self.output, len(self.outputs)),
            ("guard", self.guard, len(self.guards)),
        ):
            if function is None:
                if length:
                    raise ValueError(f"{self.name}: {length} names are given for '{label}' but no function")
                continue
            self._check(label, function, length)

    def _check(self, label: str, function: Any, length: int) -> None:
        if function.n_in() != len(ARGUMENTS) or function.n_out() != 1:
            raise ValueError(f"{self.name}: '{label}' must be a function of {', '.join(ARGUMENTS)} with one result")
        for i, (argument, expected) in enumerate(zip(ARGUMENTS, self.lengths, strict=True)):
            if function.numel_in(i) != expected:
                found = function.numel_in(i)
                raise ValueError(f"{self.name}: '{label}' takes {found} values of {argument}, its table has {expected}")
        if function.numel_out(0) != length:
            raise ValueError(f"{self.name}: '{label}' gives {function.numel_out(0)} values, {length} are named")

    @property
    def lengths(self) -> tuple[int, int, int, int, int, int]:
        """Lengths of x, u, z, p, q, t."""
        return len(self.states), len(self.controls), len(self.algebraic), len(self.parameters), len(self.data), 1

    @classmethod
    def from_expressions(
        cls,
        name: str,
        symbols: Mapping[str, Any],
        rates: Any,
        *,
        output: Any = None,
        guard: Any = None,
        **tables: Any,
    ) -> System:
        """A system from CasADi expressions: `symbols` maps ``x, u, z, p, q, t`` (missing ones are empty) to SX or MX.

        `rates`, `output` and `guard` are expressions of them; `tables` are the other fields of `System`.
        """
        import casadi as ca

        kind = type(symbols["x"])
        arguments = [symbols.get(a, kind.sym(a, 1 if a == "t" else 0)) for a in ARGUMENTS]

        def function(label: str, expression: Any) -> Any:
            if expression is None:
                return None
            return ca.Function(label, arguments, [ca.densify(kind(expression))], list(ARGUMENTS), [label])

        return cls(
            name=name,
            rhs=function("rhs", rates),
            output=function("output", output),
            guard=function("guard", guard),
            **tables,
        )

    @cached_property
    def derivatives(self) -> Any:
        """CasADi function of the six arguments: ``(rhs, d rhs/dx, d rhs/dt)``, dense.

        The last is the partial derivative with respect to time alone, which a Rosenbrock method for non-autonomous
        systems needs beside the Jacobian.
        """
        import casadi as ca

        arguments = [ca.MX.sym(a, n) for a, n in zip(ARGUMENTS, self.lengths, strict=True)]
        if self.rhs.is_a("SXFunction"):
            arguments = [ca.SX.sym(a, n) for a, n in zip(ARGUMENTS, self.lengths, strict=True)]
        rates = self.rhs(*arguments)
        results = [rates, ca.jacobian(rates, arguments[0]), ca.jacobian(rates, arguments[5])]
        return ca.Function("derivatives", arguments, [ca.densify(r) for r in results], {"cse": True})

    def vector(self, table: Sequence[Variable], values: ArrayLike | Mapping[str, float], label: str) -> Vector:
        """`values` (a mapping by name, or numbers in the table's order) as a vector of finite doubles.

        Raises `ValueError` that names what is missing, unknown, too many or not finite.
        """
        if isinstance(values, Mapping):
            names = [v.name for v in table]
            wrong = sorted(set(names) ^ set(values))
            if wrong:
                word = "missing" if wrong[0] in names else "unknown"
                raise ValueError(f"{self.name}: {word} {label} '{wrong[0]}'")
            values = [float(values[n]) for n in names]
        vector = np.ascontiguousarray(values, dtype=float).reshape(-1)
        if len(vector) != len(table):
            raise ValueError(f"{self.name}: {label} has {len(vector)} values, its table has {len(table)}")
        if not np.isfinite(vector).all():
            bad = table[int(np.argmin(np.isfinite(vector)))].name
            raise ValueError(f"{self.name}: {label} '{bad}' is {vector[~np.isfinite(vector)][0]}")
        return vector

    def linearise(
        self,
        x: ArrayLike,
        *,
        u: ArrayLike = (),
        p: ArrayLike | Mapping[str, float] = (),
        q: ArrayLike | Mapping[str, float] = (),
        t: float = 0.0,
    ) -> tuple[Vector, Vector, Vector, Vector]:
        """Exact ``(A, B, C, D)`` at a point: derivatives of rates and outputs by states (n, n) and controls (n, m)."""
        import casadi as ca

        values = [
            self.vector(self.states, x, "x"),
            self.vector(self.controls, u, "u"),
            self.vector(self.algebraic, (), "z"),
            self.vector(self.parameters, p, "p"),
            self.vector(self.data, q, "q"),
            t,
        ]
        arguments = [ca.MX.sym(a, n) for a, n in zip(ARGUMENTS, self.lengths, strict=True)]
        rates = self.rhs(*arguments)
        figures = self.output(*arguments) if self.output is not None else ca.MX(0, 1)
        blocks = [ca.jacobian(e, arguments[i]) for e in (rates, figures) for i in (0, 1)]
        A, B, C, D = (np.asarray(m.full()) for m in ca.Function("linear", arguments, blocks)(*values))
        return A, B, C, D
