"""The function of a problem that is not finite at an iterate, with time and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.reading import Reader
from designopt.collocation.solution.solution import PhaseValues
from designopt.collocation.statement.expressions import first_invalid
from designopt.collocation.transcription.functions.nonsmooth import parts
from designopt.collocation.transcription.functions.points import CollocationPoint
from designopt.lazy import casadi as ca


def invalid_number(reader: Reader, x: Floats, parameters: Floats) -> str:
    """A sentence on the first number that is not finite at the unscaled variables `x` (n,), of the functions, then of
    their first and second derivatives; "" if all are finite."""
    for order in (0, 1, 2):
        for i in range(len(reader.layout.phases)):
            message = _invalid_phase(reader, i, x, parameters, order)
            if message:
                return message
        message = _invalid_ends(reader, x, parameters, order)
        if message:
            return message
    return ""


def _invalid_phase(reader: Reader, i: int, x: Floats, parameters: Floats, order: int) -> str:
    layout, point = reader.layout.phases[i], reader.problem_functions.points[i]
    mesh, count = layout.mesh, len(layout.point)
    phase_values = reader.phase(i, x, parameters)
    variables = ca.vertcat(point.w, point.theta)
    arguments = layout.arguments(x, phase_values.constants, phase_values.signals)
    worst: tuple[int, str, Any] | None = None
    for name, expression in parts(point):
        for by, derivative in _derivatives(expression, variables, order):
            values = np.asarray(
                ca.Function("part", point.arguments, [derivative]).map(count)(*arguments), float
            ).ravel()
            nonfinite_points = np.flatnonzero(~np.isfinite(values))
            if len(nonfinite_points) and (worst is None or nonfinite_points[0] < worst[0]):
                worst = int(nonfinite_points[0]), f"{_ORDERS[order]}{name}{by}", derivative
    if worst is None:
        return ""
    k, name, derivative = worst
    slot = k + mesh.first
    t0, tf = phase_values.t0, phase_values.tf
    time = t0 + mesh.fractions[slot] * (tf - t0)
    j = max(int(np.searchsorted(mesh.bases, slot)) - 1, 0)
    begin, end = (t0 + mesh.nodes[n] * (tf - t0) for n in (j, j + 1))
    at_point = [argument[:, k] for argument in arguments]
    cause = first_invalid(derivative, point.arguments, at_point)
    point_values = _values(point, at_point)
    text = f"The {name} of {point.phase.name} is not finite at {time:.4g} s (interval {begin:.4g} to {end:.4g} s)"
    return f"{text}{': ' + cause if cause else ''}. There {point_values}."


#: Names of a function and of its derivatives, by their order.
_ORDERS = ("", "first derivative of the ", "second derivative of the ")


def _derivatives(expression: Any, variables: Any, order: int) -> Iterator[tuple[str, Any]]:
    """An expression, or its structurally nonzero derivatives, with the names of their variables."""
    if order == 0:
        yield "", expression
        return
    matrix: Any = ca.gradient(expression, variables) if order == 1 else ca.triu(ca.hessian(expression, variables)[0])
    rows, columns = matrix.sparsity().row(), matrix.sparsity().get_col()
    for k, (row, column) in enumerate(zip(rows, columns, strict=True)):
        by = str(variables[row]) if order == 1 else f"{variables[row]} and {variables[column]}"
        yield f" by {by}", matrix.nz[k]


def _values(point: CollocationPoint, at_point: list[Floats]) -> str:
    """The values of all symbols at one point, as text."""
    value_of: Mapping[str, float] = {
        str(symbol[k]): float(np.ravel(value)[k])
        for symbol, value in zip(point.arguments[:4], at_point, strict=False)
        for k in range(symbol.numel())
    }
    return ", ".join(f"{name} = {value:.6g}" for name, value in value_of.items())


def _invalid_ends(reader: Reader, x: Floats, parameters: Floats, order: int) -> str:
    problem_functions = reader.problem_functions
    symbols = problem_functions.ends
    phases: list[PhaseValues] = [reader.phase(i, x, parameters) for i in range(len(reader.layout.phases))]
    numbers: list[Any] = reader.ends(phases, x)
    flat = ca.vertcat(*symbols.all)
    expressions = [("objective", symbols.cost)]
    for name, value in zip(problem_functions.problem.constraints, symbols.constraints, strict=True):
        expressions += [(f"constraint '{name}'", value[k]) for k in range(value.numel())]
    for name, expression in expressions:
        for by, derivative in _derivatives(expression, flat, order):
            value = float(ca.Function("part", symbols.all, [derivative])(*numbers))
            if not np.isfinite(value):
                cause = first_invalid(derivative, symbols.all, numbers)
                return f"The {_ORDERS[order]}{name}{by} is not finite{': ' + cause if cause else ''}."
    return ""
