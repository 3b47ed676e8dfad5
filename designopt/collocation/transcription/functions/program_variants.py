"""Test whether a problem differs only in numbers from that of a program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.statement.problem import Phase, TrajectoryProblem, is_added
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.transcription.functions.functions import EndSymbols, ProblemFunctions, end_symbols
from designopt.collocation.transcription.functions.points import CollocationPoint
from designopt.collocation.transcription.functions.samples import phase_samples
from designopt.lazy import casadi as ca

Functions = Sequence[Callable[..., Any]]

#: Relative difference at random points below which expressions are equal.
SAME = 1e-9
#: Number of random points, and the ranges of all symbols.
DRAWN = ((0.1, 1.0), (-2.0, 2.0))
TABLES = ("states", "controls", "algebraic", "parameters", "data", "outputs")


def check_expressions(functions: ProblemFunctions, problem: TrajectoryProblem) -> None:
    """Raises `ProblemError` (bad_statement) if an expression of `problem` differs from that of `functions`.

    Identical function and system objects are equal; for others the values are compared at some points. Other checks
    report names that differ from the statement.
    """
    before = functions.problem
    if _names(before) != _names(problem):
        return
    for table in ("terms", "figures"):
        check_names_of(table, list(getattr(before, table)), list(getattr(problem, table)))
    for built_phase, phase, point in zip(before.phases, problem.phases, functions.points, strict=True):
        _check_phase(functions, built_phase, phase, point)
    after = _functions(problem, before)
    if not _equal(_functions(before, before), after):
        names = ["cost", *(f"constraints.{n}" for n in before.constraints)]
        # a figure may have the name of a term, which it then replaces in the figures of the ends
        names += [f"{'figures' if n in before.figures else 'terms'}.{n}" for n in {**before.terms, **before.figures}]
        cost, *expressions = after
        limits = dict(zip(before.constraints, expressions, strict=False))
        remaining_expressions = expressions[len(limits) :]
        terms = dict(zip(before.terms, remaining_expressions, strict=False))
        figures = dict(zip(before.figures, remaining_expressions[len(terms) :], strict=True))
        constraints = {n: replace(c, value=limits[n]) for n, c in before.constraints.items()}
        variant = replace(before, cost=cost, constraints=constraints, terms=terms, figures=figures)
        ends_before, ends_after = functions.ends, end_symbols(variant, functions.points)
        _compare(
            names, (ends_before.all, list(_end_names(ends_before))), (ends_after.all, list(_end_names(ends_after)))
        )


def _names(problem: TrajectoryProblem) -> list[Any]:
    phases = [(p.name, list(p.path), list(p.integrals), list(p.samples)) for p in problem.phases]
    return [phases, [n for n, c in problem.constraints.items() if not is_added(c)]]


def check_names_of(position: str, before: Sequence[str], after: Sequence[str]) -> None:
    """Raises `ProblemError` (bad_statement) if a variant has other names than the problem of the program."""
    if before != after:
        text = f"{', '.join(after) or 'none'} were {', '.join(before) or 'none'} when the program was built"
        raise ProblemError("bad_statement", position, f"{text}: build it again")


def _functions(problem: TrajectoryProblem, before: TrajectoryProblem) -> Functions:
    """The functions of the ends; a variant need not repeat constraints that the problem adds itself."""
    constraints = [problem.constraints.get(name, c).value for name, c in before.constraints.items()]
    return [problem.cost, *constraints, *problem.terms.values(), *problem.figures.values()]


def _check_phase(built_functions: ProblemFunctions, built_phase: Phase, phase: Phase, point: CollocationPoint) -> None:
    def functions(phase: Phase) -> Functions:
        tables = (phase.path, phase.integrals, phase.samples)
        return [entry.value for table in tables for entry in table.values()]

    is_same_system = built_phase.system is phase.system
    if is_same_system and _equal(functions(built_phase), functions(phase)):
        return
    if not is_same_system:
        for table in TABLES:
            before, after = ([v.name for v in getattr(s, table)] for s in (built_phase.system, phase.system))
            check_names_of(f"{phase.name}: {table} of the system", before, after)
    # times and data may be other numbers, or numbers instead of ranges: the expressions are the same
    with_stated_numbers = replace(phase, t0=built_phase.t0, tf=built_phase.tf, data=built_phase.data)
    variant_point = CollocationPoint(with_stated_numbers, residual=point.form is not None)
    names = [f"{phase.name}: rate of {v.name}" for v in phase.system.states]
    names += [f"{phase.name}: equations of the system"] * 2
    names += [f"{phase.name}: path.{n}" for n in phase.path]
    names += [f"{phase.name}: integrals.{n}" for n in phase.integrals]
    _compare(
        names,
        (point.arguments, list(_point_expressions(point))),
        (variant_point.arguments, list(_point_expressions(variant_point))),
    )
    for sample in phase_samples(0, variant_point):
        (stated_sample,) = [s for s in built_functions.samples if s.where == sample.where]
        if stated_sample.data_names == sample.data_names:
            _compare(
                [sample.where], (stated_sample.arguments, [stated_sample.value]), (sample.arguments, [sample.value])
            )


def _point_expressions(point: CollocationPoint) -> Iterator[Any]:
    rows, row_ranges = point.equations([])
    yield from ca.vertsplit(point.rates)
    yield rows[row_ranges.residuals.start : row_ranges.residuals.stop]
    yield rows[row_ranges.algebraic.start : row_ranges.algebraic.stop]
    edges = np.cumsum([row_ranges.path.start, *point.path_sizes]).tolist()
    yield from (rows[a:b] for a, b in itertools.pairwise(edges))
    yield from point.integrands


def _end_names(ends: EndSymbols) -> Iterator[Any]:
    yield ends.cost
    yield from ends.constraints
    yield from ends.figures.values()


def _equal(before: Functions, after: Functions) -> bool:
    return all(a is b or a == b for a, b in zip(before, after, strict=True))


def _compare(names: Sequence[str], before: tuple[Any, list[Any]], after: tuple[Any, list[Any]]) -> None:
    """Raises `ProblemError` for the first of `names` whose expressions, given with their arguments, differ."""
    values = [_values(*functions) for functions in (before, after)]
    for name, a, b in zip(names, *values, strict=True):
        if a.shape != b.shape or not np.allclose(a, b, rtol=SAME, atol=0.0, equal_nan=True):
            text = (
                "differs from the one with which the program was built: build it again; numbers that change from"
                " solve to solve belong in data or in parameters"
            )
            raise ProblemError("bad_statement", name, text)


def _values(arguments: Sequence[Any], expressions: Sequence[Any]) -> list[Floats]:
    """The values (points, rows) of each expression at the random points."""
    function = ca.Function("expressions", list(arguments), [ca.densify(e) for e in expressions])
    rng = np.random.default_rng(0)
    results = [
        function.call([rng.uniform(low, high, (a.numel(), 1)) for a in arguments]) for low, high in DRAWN
    ]  # the arguments are equal in number and length for both
    return [np.hstack([np.asarray(row[k], float) for row in results]) for k in range(len(expressions))]
