"""Tables (`casadi.interpolant`) that a solution uses beyond their grid, where CasADi extrapolates without a message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.reading import Reader
from designopt.collocation.statement.expressions import nodes, operation, part_text
from designopt.collocation.transcription.functions.functions import ProblemFunctions
from designopt.collocation.transcription.functions.tables import grid
from designopt.lazy import casadi as ca

#: Share of the span of a grid by which an argument may leave it: the tolerance of bounds.
_ROUNDING = 1e-6

_CALLS: WeakKeyDictionary[ProblemFunctions, list[list[Any]]] = WeakKeyDictionary()


def beyond_tables(reader: Reader, x: Floats, parameters: Floats) -> tuple[str, ...]:
    """A warning for each argument of a table that is beyond its grid at the unscaled variables `x` (n,)."""
    problem_functions = reader.problem_functions
    if problem_functions not in _CALLS:
        _CALLS[problem_functions] = _calls_of(problem_functions)
    *at_points, at_ends = _CALLS[problem_functions]
    if not any(_CALLS[problem_functions]):
        return ()
    phases = [reader.phase(i, x, parameters) for i in range(len(reader.layout.phases))]
    warnings: list[str] = []
    for point, calls, layout, values in zip(
        problem_functions.points, at_points, reader.layout.phases, phases, strict=True
    ):
        arguments = layout.arguments(x, values.constants, values.signals)
        times = values.t0 + arguments[-1][0] * values.duration
        warnings += [
            f"beyond_table: {text} in {point.phase.name} at {times[worst]:.4g} s"
            for text, worst in _excursions(calls, point.arguments, arguments)
        ]
    numbers = [np.asarray(value, dtype=np.float64).reshape(-1, 1) for value in reader.ends(phases, x)]
    warnings += [
        f"beyond_table: {text} at the ends" for text, _ in _excursions(at_ends, problem_functions.ends.all, numbers)
    ]
    return tuple(dict.fromkeys(warnings))


def _calls_of(functions: ProblemFunctions) -> list[list[Any]]:
    """The calls of tables in the equations of each phase, then those in the functions of ends."""
    ends = functions.ends
    expressions = [(point.equations(range(len(point.integrands)))[0], point.arguments) for point in functions.points]
    expressions.append((ca.vertcat(ca.SX(ends.cost), *(ca.vec(value) for value in ends.constraints)), ends.all))
    return [
        [node for node in nodes(expression) if operation(node) == "call" and grid(node.which_function())]
        if ca.Function("all", list(symbols), [expression]).find_functions()
        else []
        for expression, symbols in expressions
    ]


def _excursions(calls: Sequence[Any], symbols: Sequence[Any], arguments: Sequence[Floats]) -> Iterator[tuple[str, int]]:
    """A text for each argument of a table beyond its grid, and the column of `arguments` (rows, points) where it is
    farthest."""
    for call in calls:
        table_arguments = [call.dep(k) for k in range(call.n_dep())]
        function = ca.Function("arguments", list(symbols), [ca.vertcat(*table_arguments)])
        values = np.asarray(function.map(arguments[0].shape[1])(*arguments), dtype=np.float64)
        for axis, argument, argument_values in zip(grid(call.which_function()), table_arguments, values, strict=False):
            low, high = axis[0], axis[-1]
            violation = np.maximum(low - argument_values, argument_values - high)
            worst = int(np.argmax(violation))
            if violation[worst] > _ROUNDING * (high - low):
                text = (
                    f"the table '{call.which_function().name()}', whose grid of"
                    f" {part_text(argument) or 'an argument'} is from {low:.6g} to {high:.6g}, is extrapolated"
                    f" to {argument_values[worst]:.6g}"
                )
                yield text, worst
