"""One symbolic statement of a dynamic system: its equations of motion and its named variables.

Simulation, linearisation and collocation all start from a `System`; the physics is not stated anywhere else.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from designopt.dynamics.expressions import Expressions, column
from designopt.dynamics.residual import RESIDUAL_ARGUMENTS, ResidualForm, explicit, linear_in_unknowns
from designopt.dynamics.variable import Variable, Vector
from designopt.lazy import casadi as ca

__all__ = ["ARGUMENTS", "RESIDUAL_ARGUMENTS", "ResidualForm", "System", "Variable", "Vector"]

#: Arguments of every function of a system, in this order.
ARGUMENTS = ("x", "u", "z", "p", "q", "t")


class _ExplicitFunction:
    """A function of a system, given or derived from its residual form at first access."""

    def __init__(self, of_form: str) -> None:
        self._of_form = of_form

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, system: System | None, owner: type) -> ca.Function | None:
        if system is None:
            return None  # value for a function omitted in the constructor
        function_or_none: ca.Function | None = system.__dict__[self._name]
        if function_or_none is None and system.residual_form is not None:
            function = getattr(system.residual_form, self._of_form)
            if function is not None:
                function_or_none = system.__dict__[self._name] = explicit(system.residual_form, function)
        return function_or_none

    def __set__(self, system: System, value: ca.Function | None) -> None:
        system.__dict__[self._name] = value


@dataclass(frozen=True, eq=False)
class System:
    """``xdot = rhs(x, u, z, p, q, t)`` with tables that name every component of its arguments.

    `states` x, `controls` u, `algebraic` z (defined by ``0 = algebraic_residual(x, u, z, p, q, t)``), `parameters` p
    (design variables), `data` q (measured or given numbers), time t (s). `rhs`, `output` (y, named by `outputs`),
    `guard` (g, named by `guards`; a simulation ends where any g <= 0) and `algebraic_residual` are CasADi functions of
    exactly these six arguments, with these names, each a column (t a scalar; unused ones are empty). `residual_form` is
    the same dynamics without an inverted mass matrix, if available: simulation and linearisation then start from it,
    and `rhs` and `output` may be omitted; they are derived at first access. `vectors` groups variables of the tables
    under one name.

    Raises `ValueError` if tables and functions do not match.
    """

    name: str
    states: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    rhs: ca.Function = _ExplicitFunction("rates")  # type: ignore[assignment]
    controls: tuple[Variable, ...] = ()
    algebraic: tuple[Variable, ...] = ()
    data: tuple[Variable, ...] = ()
    outputs: tuple[Variable, ...] = ()
    output: ca.Function | None = _ExplicitFunction("output")  # type: ignore[assignment]
    guards: tuple[str, ...] = ()
    guard: ca.Function | None = None
    algebraic_residual: ca.Function | None = None
    residual_form: ResidualForm | None = None
    vectors: tuple[Vector, ...] = ()

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name.isidentifier()):
            raise ValueError(f"'{self.name}' is not a valid name for a system: use only letters, digits and _")
        if not self.states:
            raise ValueError(f"system '{self.name}' has no states")
        for table in ("states", "controls", "algebraic", "parameters", "data", "outputs"):
            self._check_unique(table, [v.name for v in getattr(self, table)])
        self._check_unique("guards", list(self.guards))
        if self.residual_form is not None:
            self._check_residual_form(self.residual_form)
        explicit_functions = {"states": self.__dict__["rhs"], "outputs": self.__dict__["output"]}
        for label, table in (("rhs", "states"), ("output", "outputs")):
            follows = self.residual_form is not None and (label == "rhs" or self.residual_form.output is not None)
            if explicit_functions[table] is not None or not follows:
                self._check_function(label, explicit_functions[table], table)
        self._check_function("guard", self.guard, "guards")
        self._check_function("algebraic_residual", self.algebraic_residual, "algebraic")

    @classmethod
    def from_expressions(
        cls,
        name: str,
        *,
        states: Sequence[tuple[Variable | Vector, Any, Any]],
        parameters: Sequence[tuple[Variable | Vector, Any]] = (),
        controls: Sequence[tuple[Variable | Vector, Any]] = (),
        algebraic: Sequence[tuple[Variable | Vector, Any, Any]] = (),
        data: Sequence[tuple[Variable | Vector, Any]] = (),
        outputs: Sequence[tuple[Variable | Vector, Any]] = (),
        guards: Mapping[str, Any] | None = None,
        time: Any = None,
        unknowns: Sequence[tuple[Variable | Vector, Any, Any]] = (),
    ) -> Self:
        """A system from SX symbols: states are (variable, symbol, rate), the others (variable, symbol or value).

        Symbols and expressions are scalars, or for a `Vector` columns of its size.

        `algebraic` variables are (variable, symbol, expression that is zero). `time` is the symbol of time, if
        expressions contain it; `guards` maps names to expressions that end a simulation when they are not positive.

        A mechanism has its accelerations as `unknowns`, (variable, symbol, expression that is zero): rates of states
        may be these symbols, and the expressions are linear in all of them. The right-hand side is solved from them,
        and the system keeps its `residual_form`. Guards and algebraic equations must not contain the unknowns; outputs
        may.

        Raises `ValueError`, with a sentence, for invalid expressions.
        """
        expressions = Expressions(name)
        states, controls, algebraic, parameters, data, unknowns, outputs = map(
            expressions.components, (states, controls, algebraic, parameters, data, unknowns, outputs)
        )
        tables = (
            [expressions.symbol("state", v, s) for v, s, _ in states],
            [expressions.symbol("control", v, s) for v, s in controls],
            [expressions.symbol("algebraic variable", v, s) for v, s, _ in algebraic],
            [expressions.symbol("parameter", v, s) for v, s in parameters],
            [expressions.symbol("number of the data", v, s) for v, s in data],
        )
        t = ca.SX.sym("t") if time is None else expressions.symbol("time", Variable("time", "s"), time)
        x, u, z, p, q = (column(symbols) for symbols in tables)
        check = expressions.only_known_names
        equations = [check(f"the equation of '{v.name}'", e) for v, _, e in algebraic]
        guard_expressions = [check(f"guard '{label}'", e) for label, e in (guards or {}).items()]
        s = column(expressions.symbol("unknown", v, s) for v, s, _ in unknowns)
        rates = [check(f"the rate of '{v.name}'", rate) for v, _, rate in states]
        results = [check(f"output '{v.name}'", e) for v, e in outputs]
        residuals = [check(f"the equation of '{v.name}'", e) for v, _, e in unknowns]

        def function(label: str, entries: Sequence[Any], result: str, *, full: bool = False) -> Any:
            if not entries:
                return None
            arguments, names = ([x, s, u, z, p, q, t], RESIDUAL_ARGUMENTS) if full else ([x, u, z, p, q, t], ARGUMENTS)
            return ca.Function(label, arguments, [ca.vertcat(*entries)], list(names), [result])

        form, functions = None, {}
        if unknowns:
            try:
                linear_in_unknowns(ca.vertcat(*residuals), s)
            except ValueError as error:
                raise ValueError(f"system '{name}': {error}") from None
            form = ResidualForm(
                tuple(v for v, _, _ in unknowns),
                function("residual", residuals, "F", full=True),
                function("rhs", rates, "xdot", full=True),
                function("output", results, "y", full=True),
            )
        else:
            functions = {"rhs": function("rhs", rates, "xdot"), "output": function("output", results, "y")}
        return cls(
            name=name,
            states=tuple(v for v, _, _ in states),
            parameters=tuple(v for v, _ in parameters),
            controls=tuple(v for v, _ in controls),
            algebraic=tuple(v for v, _, _ in algebraic),
            data=tuple(v for v, _ in data),
            algebraic_residual=function("algebraic_residual", equations, "a"),
            residual_form=form,
            outputs=tuple(v for v, _ in outputs),
            guards=tuple(guards or ()),
            guard=function("guard", guard_expressions, "g"),
            vectors=tuple(expressions.vectors.values()),
            **functions,
        )

    def values(
        self, table: str, entries: ArrayLike | Mapping[str, float], without: Sequence[str] = ()
    ) -> NDArray[np.float64]:
        """`entries` as a contiguous array (n,) in the order of `table` ("states", "parameters", "controls", "data").

        A mapping must name every entry. Entries in `without` are omitted, and zero. Raises `ValueError` for a wrong
        length or name and for values that are not finite.
        """
        every = [v.name for v in getattr(self, table)]
        names = [n for n in every if n not in without]
        if isinstance(entries, Mapping):
            entries = self._by_component(entries)
            if unknown := sorted(set(entries) - set(names)):
                raise ValueError(
                    f"{self.name}: {', '.join(map(repr, unknown))} not among its {table}: {_names_text(names)}"
                )
            if missing := [n for n in names if n not in entries]:
                raise ValueError(f"{self.name}: no value for {', '.join(map(repr, missing))} ({table})")
            entries = [entries[n] for n in names]
        try:
            array = np.ascontiguousarray(entries, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.name}: {table}: {_no_number(names, entries)}") from error
        if array.shape != (len(names),):
            raise ValueError(
                f"{self.name}: {table} have shape ({len(names)},), not {array.shape}: {_names_text(names)}"
            )
        if not np.isfinite(array).all():
            first = int(np.flatnonzero(~np.isfinite(array))[0])
            raise ValueError(f"{self.name}: {table}: {names[first]} is {array[first]}")
        if len(names) < len(every):
            names_of_table = dict(zip(names, array.tolist(), strict=True))
            array = np.array([names_of_table.get(n, 0.0) for n in every])
        return array

    def _by_component(self, entries: Mapping[str, Any]) -> dict[str, Any]:
        """`entries` with the numbers of components in place of vectors (k,), or of one number for all components."""
        scalar_entries: dict[str, Any] = dict(entries)
        for vector in self.vectors:
            if vector.name in scalar_entries:
                k, value = len(vector.parts), np.asarray(scalar_entries.pop(vector.name), dtype=np.float64)
                if value.shape not in ((), (k,)):
                    raise ValueError(f"{self.name}: {vector.name} has shape {value.shape}, not ({k},)")
                scalar_entries = {
                    **dict(zip(vector.names, np.broadcast_to(value, k).tolist(), strict=True)),
                    **scalar_entries,
                }
        return scalar_entries

    def _check_unique(self, table: str, names: list[str]) -> None:
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(f"system '{self.name}': {table} name {', '.join(map(repr, twice))} more than once")

    def _check_residual_form(self, form: ResidualForm) -> None:
        self._check_unique("unknowns", [v.name for v in form.unknowns])
        tables = (self.states, form.unknowns, self.controls, self.algebraic, self.parameters, self.data, (0,))
        functions = [("residual", form.residual, form.unknowns), ("rates", form.rates, self.states)]
        if form.output is not None:
            functions.append(("output", form.output, self.outputs))
        for label, function, rows in functions:
            position = f"system '{self.name}', function '{label}'"
            if tuple(function.name_in()) != RESIDUAL_ARGUMENTS:
                raise ValueError(f"{position}: arguments must be {RESIDUAL_ARGUMENTS}, not {tuple(function.name_in())}")
            sizes = [function.numel_in(i) for i in range(function.n_in())]
            if sizes != [len(table) for table in tables]:
                raise ValueError(f"{position}: arguments have sizes {sizes}, not {[len(table) for table in tables]}")
            if function.numel_out(0) != len(rows):
                raise ValueError(f"{position}: {function.numel_out(0)} rows, not {len(rows)}")

    def _check_function(self, label: str, function: ca.Function | None, table: str) -> None:
        rows = len(getattr(self, table))
        if function is None:
            if rows:
                raise ValueError(f"system '{self.name}' has {table} but no function '{label}'")
            return
        if not rows:
            raise ValueError(f"system '{self.name}' has a function '{label}' but no {table}")
        position = f"system '{self.name}', function '{label}'"
        if tuple(function.name_in()) != ARGUMENTS:
            raise ValueError(f"{position}: arguments must be named {ARGUMENTS}, not {tuple(function.name_in())}")
        tables = ("states", "controls", "algebraic", "parameters", "data")
        sizes = [(len(getattr(self, t)), t) for t in tables] + [(1, "time")]
        for i, (size, t) in enumerate(sizes):
            if function.numel_in(i) != size or (size and function.size2_in(i) != 1):
                raise ValueError(
                    f"{position}: argument {ARGUMENTS[i]} has shape {function.size_in(i)}, but there are {size} ({t})"
                )
        if function.n_out() != 1 or function.size_out(0) != (rows, 1):
            shapes = [function.size_out(i) for i in range(function.n_out())]
            raise ValueError(f"{position}: gives {shapes}, not one column of {rows} ({table})")


def _no_number(names: Sequence[str], entry: Any) -> str:
    """Describe a value that is not a number."""
    for name, value in zip(names, entry if isinstance(entry, list | tuple) else (), strict=False):
        if not isinstance(value, Real):
            return f"{name} is {reprlib.repr(value)}, not a number"
    return f"{reprlib.repr(entry)} is neither a row of numbers nor a mapping of names: {_names_text(names)}"


def _names_text(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "(none)"
