"""Consistency of units in an equation: the units of its symbols are propagated through its operations.

A literal number in an equation may have any unit (the 9.81 of a weight), and so may the term that it multiplies. All
other terms are compared, with their scale: millimetres cannot be added to metres.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from designopt.dynamics.expressions import column
from designopt.dynamics.system import System
from designopt.dynamics.variable import Variable
from designopt.lazy import casadi as ca
from designopt.study.language import units
from designopt.study.language.units import Measure

#: Maximum length of the part of an equation in a message.
_SHOWN = 60
_NUMBER: Measure = (1.0, (0.0,) * 7)

#: A unit as written, and its dimension; None for a number that may have any.
Unit = tuple[str, Measure] | None


class UnitsDiffer(Exception):
    """Two units in an equation are inconsistent; the message is a sentence without the name of the equation."""


def findings(symbols: Sequence[tuple[Any, str]], equations: Sequence[tuple[str, Any, str | None]]) -> list[str]:
    """Unit errors in `equations`: (description, expression, required unit). At most one sentence for each.

    `symbols` are all symbols of the expressions with their units; a required unit of None accepts any. Expressions with
    operations that are not scalar (look-up tables) are skipped.
    """
    units_of_symbols = [(symbol, _unit(unit)) for symbol, unit in symbols]
    sentences = []
    for description, expression, required_unit in equations:
        try:
            unit = _unit_of(units_of_symbols, expression)
            target = None if required_unit is None else _unit(required_unit)
            if unit is not None and target is not None and not _fits(unit, target):
                raise UnitsDiffer(
                    f"{_expression_text(expression)} is in {units.unit_text(unit[0])}, not {units.unit_text(target[0])}"
                )
        except UnitsDiffer as error:
            sentences.append(f"incompatible units in {description}: {error}")
        except RuntimeError:  # operations that CasADi cannot expand to scalar ones have no units to propagate
            continue
    return sentences


def check_units(system: System) -> None:
    """Raise `ValueError`, with a sentence for each, for equations of a system with inconsistent units.

    The rate of a state has its unit per second, an output its own. A literal number in an equation may have any unit,
    and so may the term that it multiplies. A system without units is not checked.
    """
    if sentences := _unit_conflicts(system):
        raise ValueError(f"system '{system.name}': " + "; ".join(sentences))


def _unit_conflicts(system: System) -> list[str]:
    form = system.residual_form
    tables = {"x": system.states, "s": form.unknowns if form else (), "u": system.controls, "z": system.algebraic,
              "p": system.parameters, "q": system.data}  # fmt: skip
    if not any(v.unit for table in (*tables.values(), system.outputs) for v in table):
        return []
    columns = {label: [ca.SX.sym(v.name) for v in table] for label, table in tables.items()}
    time = ca.SX.sym("time")
    symbols = [(e, v.unit) for label, table in tables.items() for v, e in zip(table, columns[label], strict=True)]
    full = [column(symbols_of_table) for symbols_of_table in columns.values()] + [time]
    without_controls = [full[0], *full[2:]]

    def equations(
        description: str, function: Any, table: Sequence[Variable], arguments: list[Any], required_unit: Any
    ) -> list[Any]:
        rows = ca.vertsplit(function(*arguments)) if function is not None and table else []
        return [(description.format(v.name), row, required_unit(v.unit)) for v, row in zip(table, rows, strict=True)]

    none: Any = lambda unit: None  # noqa: E731
    rates, outputs = ("the rate of '{}'", "output '{}'")
    equation_groups = [("the equation of '{}'", system.algebraic_residual, system.algebraic, without_controls, none)]
    if form is None:
        equation_groups += [
            (rates, system.rhs, system.states, without_controls, rate_of),
            (outputs, system.output, system.outputs, without_controls, str),
        ]
    else:
        equation_groups += [
            (rates, form.rates, system.states, full, rate_of),
            (outputs, form.output, system.outputs, full, str),
        ]
        equation_groups += [("the equation of '{}'", form.residual, form.unknowns, full, none)]
    return findings([*symbols, (time, "s")], [equation for entry in equation_groups for equation in equations(*entry)])


def rate_of(unit: str) -> str:
    """The unit of the time derivative of a variable in `unit`."""
    return units.product(unit, "s", -1.0)


def _unit(text: str) -> Unit:
    measure = units.measure(text)
    return None if measure is None else (text, measure)


def _fits(a: Unit, b: Unit) -> bool:
    if a is None or b is None:
        return True
    (_, (size, dimension)), (_, (second_size, of_other)) = a, b
    is_same_dimension = all(math.isclose(x, y, abs_tol=1e-9) for x, y in zip(dimension, of_other, strict=True))
    return is_same_dimension and math.isclose(size, second_size, rel_tol=1e-9)


def _unit_of(units_of_symbols: Sequence[tuple[Any, Unit]], expression: Any) -> Unit:
    """The unit of `expression`. Raises `UnitsDiffer`."""
    function = ca.Function("units", [symbol for symbol, _ in units_of_symbols], [expression])
    steps = _Steps()
    work: dict[int, tuple[Any, Unit]] = {}
    last: Unit = None
    for k in range(function.n_instructions()):
        operation, inputs = function.instruction_id(k), function.instruction_input(k)
        if operation == ca.OP_INPUT:
            work[function.instruction_output(k)[0]] = units_of_symbols[inputs[0]]
        elif operation == ca.OP_CONST:
            work[function.instruction_output(k)[0]] = (ca.SX(function.instruction_constant(k)), None)
        elif operation == ca.OP_OUTPUT:
            last = work[inputs[0]][1]
        else:
            work[function.instruction_output(k)[0]] = steps.step(operation, [work[i] for i in inputs])
    return last


class _Steps:
    """CasADi operations, grouped by their effect on units."""

    def __init__(self) -> None:
        def codes_of(names: str) -> set[int]:
            return {getattr(ca, f"OP_{name}") for name in names.split()}

        self._operations_of_equal_units = codes_of("ADD SUB FMIN FMAX FMOD REMAINDER HYPOT LT LE EQ NE ATAN2")
        self._to_number = codes_of("LT LE EQ NE ATAN2 SIGN NOT AND OR")
        self._of_number = codes_of(
            "SIN COS TAN ASIN ACOS ATAN SINH COSH TANH ASINH ACOSH ATANH EXP EXPM1 LOG LOG1P ERF ERFINV"
        )
        self._power = {ca.OP_SQ: 2.0, ca.OP_SQRT: 0.5, ca.OP_INV: -1.0}
        self._exponentiation = codes_of("POW CONSTPOW")
        self._second = codes_of("IF_ELSE_ZERO")

    def step(self, operation: int, parts: Sequence[tuple[Any, Unit]]) -> tuple[Any, Unit]:
        """The expression of an operation on `parts`, and its unit. Raises `UnitsDiffer`."""
        make = ca.SX.unary if len(parts) == 1 else ca.SX.binary
        return make(operation, *(e for e, _ in parts)), self._unit(operation, parts)

    def _unit(self, operation: int, parts: Sequence[tuple[Any, Unit]]) -> Unit:
        first, last = parts[0][1], parts[-1][1]
        if operation in self._operations_of_equal_units:
            if not _fits(first, last):
                operands = [f"{_expression_text(e)} in {units.unit_text(u[0])}" for e, u in parts if u is not None]
                raise UnitsDiffer(f"{operands[0]} is combined with {operands[1]}")
            return _dimensionless(True) if operation in self._to_number else (first or last)
        if operation in self._of_number:
            if not _fits(first, ("", _NUMBER)):
                assert first is not None
                name = str(ca.SX.unary(operation, ca.SX.sym("x"))).split("(")[0]
                raise UnitsDiffer(
                    f"the argument of {name}, {_expression_text(parts[0][0])}, is in {units.unit_text(first[0])}"
                )
            return _dimensionless(first is not None)
        if operation in (ca.OP_MUL, ca.OP_DIV):
            power = 1.0 if operation == ca.OP_MUL else -1.0
            return None if first is None or last is None else _product(first, last, power)
        if operation in self._power:
            return None if first is None else _power_of_unit(first, self._power[operation])
        if operation in self._exponentiation:
            return self._power_unit(parts)
        if operation in self._to_number:
            return _dimensionless(True)
        return last if operation in self._second else first  # NEG, FABS, TWICE, FLOOR, CEIL, COPYSIGN, ...

    def _power_unit(self, parts: Sequence[tuple[Any, Unit]]) -> Unit:
        (base, of_base), (exponent, of_exponent) = parts
        if not _fits(of_exponent, ("", _NUMBER)):
            assert of_exponent is not None
            raise UnitsDiffer(f"the exponent {_expression_text(exponent)} is in {units.unit_text(of_exponent[0])}")
        if of_base is None:
            return None
        if exponent.is_constant():
            return _power_of_unit(of_base, float(exponent))
        if not _fits(of_base, ("", _NUMBER)):
            raise UnitsDiffer(
                f"{_expression_text(base)} in {units.unit_text(of_base[0])} has an exponent that is not a constant"
            )
        return of_base


def _dimensionless(is_known: bool) -> Unit:
    return ("", _NUMBER) if is_known else None


def _product(a: tuple[str, Measure], b: tuple[str, Measure], power: float) -> Unit:
    size = a[1][0] * b[1][0] ** power
    dimension = tuple(x + power * y for x, y in zip(a[1][1], b[1][1], strict=True))
    return units.product(a[0], b[0], power), (size, dimension)


def _power_of_unit(a: tuple[str, Measure], power: float) -> Unit:
    return units.power_unit(a[0], power), (a[1][0] ** power, tuple(power * x for x in a[1][1]))


def _expression_text(expression: Any) -> str:
    text = str(expression)
    return f"'{text}'" if len(text) <= _SHOWN else f"'{text[:_SHOWN]}...'"
