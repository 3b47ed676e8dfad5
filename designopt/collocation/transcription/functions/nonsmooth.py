"""Detection of kinks and jumps in the expressions of a problem: the solver assumes two continuous derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from designopt.collocation.statement.expressions import nodes, operation, operation_names, part_text
from designopt.collocation.transcription.functions.functions import ProblemFunctions
from designopt.collocation.transcription.functions.points import CollocationPoint
from designopt.collocation.transcription.functions.tables import degrees
from designopt.lazy import casadi as ca

#: Operations with a kink or a jump, in the user's words.
WORDS = {
    "fabs": "abs",
    "fmin": "min",
    "fmax": "max",
    "sign": "sign",
    "copysign": "copysign",
    "floor": "floor",
    "ceil": "ceil",
    "fmod": "fmod",
    "remainder": "remainder",
    "if_else_zero": "if_else",
    "lt": "if_else",
    "le": "if_else",
    "eq": "if_else",
    "ne": "if_else",
}

#: Degree from which a spline has continuous second derivatives.
SMOOTH = 3

_KNOWN: WeakKeyDictionary[ProblemFunctions, tuple[str, ...]] = WeakKeyDictionary()


def nonsmooth_warnings(functions: ProblemFunctions) -> tuple[str, ...]:
    """One warning for each rate, equation, constraint or integrand with a kink in a variable of the point."""
    if functions not in _KNOWN:
        _KNOWN[functions] = tuple(_warnings(functions))
    return _KNOWN[functions]


def _warnings(functions: ProblemFunctions) -> Iterator[str]:
    for i, point in enumerate(functions.points):
        if not _has_kinks(functions, i):
            continue
        for name, expression in parts(point):
            kinks, tables = _kinks(expression, point.w), _rough_tables(expression, point.w)
            sources = point.phase.kink_sources if kinks else ()
            origin = f", probably {' and '.join(sources)}" if sources else ""
            ways = ["replace it by a smooth form with a stated width"] if kinks else []
            ways += ["give the table degree 3 (casadi.interpolant of kind bspline)"] if tables else []
            if ways:
                yield (
                    f"nonsmooth_model: the {name} of {point.phase.name} has {' and '.join([*kinks, *tables])}{origin};"
                    f" {' and '.join(ways)}, else the solver may stall there"
                )


def parts(point: CollocationPoint) -> Iterator[tuple[str, Any]]:
    """The expressions of a point, each with its description."""
    phase = point.phase
    expressions, row_ranges = point.equations(range(len(phase.integrals)))
    path = [name for name, size in zip(phase.path, point.path_sizes, strict=True) for _ in range(size)]
    tables: list[tuple[str, Sequence[str], range]] = [
        ("rate of", [v.name for v in phase.system.states], row_ranges.rates),
        ("equation of", [v.name for v in point.form.unknowns] if point.form else [], row_ranges.residuals),
        ("algebraic equation of", [v.name for v in phase.system.algebraic], row_ranges.algebraic),
        ("path constraint", path, row_ranges.path),
        ("integrand", list(phase.integrals), row_ranges.integrands),
    ]
    for word, names, rows in tables:
        for name, row in zip(names, rows, strict=True):
            yield f"{word} '{name}'", expressions[row]


def _has_kinks(problem_functions: ProblemFunctions, i: int) -> bool:
    """Whether there is any operation with a kink at all: a quick test of the functions of a point."""
    names = operation_names()
    functions = [problem_functions.functions[i].values, problem_functions.functions[i].cost]
    if not all(function.is_a("SXFunction") for function in functions):  # compiled ones cannot be inspected
        point = problem_functions.points[i]
        functions = [ca.Function("all", point.arguments, [point.equations(range(len(point.integrands)))[0]])]
    kinds = {names[f.instruction_id(k)] for f in functions for k in range(f.n_instructions())}
    return bool(kinds & {*WORDS, "call"})


def _kinks(expression: Any, variables: Any) -> list[str]:
    text_of: dict[str, str] = {}
    for node in nodes(expression):
        word = WORDS.get(operation(node), "")
        if word and word not in text_of and ca.depends_on(node, variables):
            text_of[word] = part_text(node)
    return [f"{word} ({text})" if text else word for word, text in text_of.items()]


def _rough_tables(expression: Any, variables: Any) -> list[str]:
    """The tables of a degree below three, whose second derivatives jump."""
    texts = []
    for node in nodes(expression):
        if operation(node) == "call" and ca.depends_on(node, variables):
            table = node.which_function()
            least = min(degrees(table), default=SMOOTH)
            if least < SMOOTH:
                texts.append(f"the table '{table.name()}' of degree {least}")
    return list(dict.fromkeys(texts))
