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
#: Arguments of the functions of a residual form: s are the rates that it leaves unknown.
RESIDUAL_ARGUMENTS = ("x", "s", "u", "z", "p", "q", "t")


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
class ResidualForm:
    """``0 = residual(x, s, u, z, p, q, t)`` and ``xdot = rates(x, s, u, z, p, q, t)`` with `unknowns` s.

    The unknowns are the rates that are not given at once, as accelerations are; the residual has as many rows. Nothing
    is inverted: derivatives are many times smaller than those of the right-hand side of a mechanism.
    """

    unknowns: tuple[Variable, ...]
    residual: ca.Function
    rates: ca.Function


@dataclass(frozen=True, eq=False)
class System:
    """``xdot = rhs(x, u, z, p, q, t)`` with tables that name every component of its arguments.

    `states` x, `controls` u, `algebraic` z (fixed by ``0 = algebraic_residual(x, u, z, p, q, t)``), `parameters` p
    (what a design may change), `data` q (numbers fixed by measurement), time t. `rhs`, `output` (gives y, named by
    `outputs`), `guard` (gives g, named by `guards`; a simulation ends where any g <= 0) and `algebraic_residual` are
    CasADi functions of exactly these six arguments, named so, each a column (t a scalar; unused ones are empty).
    `residual_form` is the same dynamics without an inverted mass matrix, if the system has one.

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
    residual_form: ResidualForm | None = None

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
        if self.residual_form is not None:
            self._check_residual_form(self.residual_form)

    @classmethod
    def from_expressions(
        cls,
        name: str,
        *,
        states: Sequence[tuple[Variable, Any, Any]],
        parameters: Sequence[tuple[Variable, Any]] = (),
        controls: Sequence[tuple[Variable, Any]] = (),
        algebraic: Sequence[tuple[Variable, Any, Any]] = (),
        data: Sequence[tuple[Variable, Any]] = (),
        outputs: Sequence[tuple[Variable, Any]] = (),
        guards: Mapping[str, Any] | None = None,
        time: Any = None,
        unknowns: Sequence[tuple[Variable, Any, Any]] = (),
    ) -> Self:
        """A system from scalar SX symbols: states are (variable, symbol, rate), the others (variable, symbol or value).

        `algebraic` variables are (variable, symbol, expression that is zero). `time` is the symbol of time where an
        expression holds it; `guards` maps a name to the expression that ends a simulation where it is not positive.

        A mechanism gives its accelerations as `unknowns`, (variable, symbol, expression that is zero): rates of states
        may be these symbols, and the expressions are linear in all of them. The right-hand side is solved from them,
        and the system keeps its `residual_form`. Guards and algebraic equations do not contain the unknowns; outputs
        may.
        """
        import casadi as ca

        def column(entries: Sequence[Any]) -> Any:
            return ca.vertcat(*(ca.SX(e) for e in entries)) if entries else ca.SX(0, 1)

        arguments = [
            column([s for _, s, _ in states]),
            column([s for _, s in controls]),
            column([s for _, s, _ in algebraic]),
            column([s for _, s in parameters]),
            column([s for _, s in data]),
            ca.SX.sym("t") if time is None else time,
        ]
        rates = column([rate for _, _, rate in states])
        s, residual = column([s for _, s, _ in unknowns]), column([e for _, _, e in unknowns])
        form = None
        if unknowns:
            full = [arguments[0], s, *arguments[1:]]
            form = ResidualForm(
                tuple(v for v, _, _ in unknowns),
                ca.Function("residual", full, [residual], list(RESIDUAL_ARGUMENTS), ["F"]),
                ca.Function("rates", full, [rates], list(RESIDUAL_ARGUMENTS), ["xdot"]),
            )
            solved = _solved(name, residual, s)

        def function(label: str, entries: Sequence[Any], result: str) -> Any:
            made = column(entries)
            if unknowns:
                made = ca.cse(ca.substitute(made, s, solved))
            return ca.Function(label, arguments, [made], list(ARGUMENTS), [result])

        guards = guards or {}
        return cls(
            name=name,
            states=tuple(v for v, _, _ in states),
            parameters=tuple(v for v, _ in parameters),
            controls=tuple(v for v, _ in controls),
            algebraic=tuple(v for v, _, _ in algebraic),
            data=tuple(v for v, _ in data),
            rhs=function("rhs", [rate for _, _, rate in states], "xdot"),
            algebraic_residual=function("algebraic_residual", [e for _, _, e in algebraic], "a") if algebraic else None,
            residual_form=form,
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

    def _check_residual_form(self, form: ResidualForm) -> None:
        self._check_unique("unknowns", [v.name for v in form.unknowns])
        tables = (self.states, form.unknowns, self.controls, self.algebraic, self.parameters, self.data, (0,))
        for label, function, rows in (("residual", form.residual, form.unknowns), ("rates", form.rates, self.states)):
            where = f"system '{self.name}', function '{label}'"
            if tuple(function.name_in()) != RESIDUAL_ARGUMENTS:
                raise ValueError(f"{where}: arguments must be {RESIDUAL_ARGUMENTS}, not {tuple(function.name_in())}")
            sizes = [function.numel_in(i) for i in range(function.n_in())]
            if sizes != [len(table) for table in tables]:
                raise ValueError(f"{where}: arguments have sizes {sizes}, not {[len(table) for table in tables]}")
            if function.numel_out(0) != len(rows):
                raise ValueError(f"{where}: {function.numel_out(0)} rows, not {len(rows)}")

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


def _solved(name: str, residual: Any, s: Any) -> Any:
    """The unknowns `s` that make a `residual` zero, which is linear in them."""
    import casadi as ca

    matrix = ca.jacobian(residual, s)
    if matrix.size1() != matrix.size2():
        raise ValueError(f"system '{name}': {residual.numel()} residuals for {s.numel()} unknowns")
    if ca.depends_on(matrix, s):
        raise ValueError(f"system '{name}': the residuals are not linear in the unknowns")
    right = -ca.substitute(residual, s, ca.SX.zeros(s.numel()))
    if _is_definite(matrix):
        D, LT, order = ca.ldl(ca.densify(matrix), False)
        return ca.ldl_solve(right, D, LT, order)
    return ca.solve(matrix, right)


def _is_definite(matrix: Any) -> bool:
    """Whether a `matrix` of expressions is symmetric and definite, as a mass matrix is.

    Definite at one point it is so wherever it is regular, for an eigenvalue changes its sign through zero. L D L' needs
    no pivots then, and derivatives of the solution are two to five times smaller than with CasADi's general QR from
    three unknowns on. Symmetry is looked at with numbers: expressions that are equal may be written differently.
    """
    import casadi as ca

    symbols = ca.symvar(matrix)
    entries = ca.Function("entries", symbols, [ca.densify(matrix)])
    rng = np.random.default_rng(0)
    for _ in range(3):
        numbers = np.asarray(entries.call(rng.uniform(0.5, 1.5, len(symbols)).tolist())[0], float)  # as masses are
        if not np.isfinite(numbers).all() or np.abs(numbers - numbers.T).max() > 1e-13 * np.abs(numbers).max():
            return False
    eigenvalues = np.linalg.eigvalsh(numbers)
    return bool((eigenvalues > 0.0).all() or (eigenvalues < 0.0).all())
