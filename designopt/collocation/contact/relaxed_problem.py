"""Complementary pairs as relaxed path constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from designopt.collocation.statement.complementary import Complementary
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.statement.symbols import Symbols
from designopt.collocation.statement.terms import Constraint


def relaxed_problem(
    problem: TrajectoryProblem, pairs: Mapping[str, Complementary], relaxation: float
) -> TrajectoryProblem:
    """`problem` with path constraints for the `pairs`: both parts are nonnegative and their product is at most the
    `relaxation`, all relative to their sizes. Raises `ProblemError` (bad_statement) for unknown phases and names
    already in use."""
    phases = {phase.name: phase for phase in problem.phases}
    for name, pair in pairs.items():
        where = f"complementary.{name}"
        if not isinstance(pair, Complementary):
            raise ProblemError("bad_statement", where, f"is a {type(pair).__name__}, not Complementary(first, second)")
        if pair.phase not in phases:
            text = f"there is no phase '{pair.phase}'; known: {', '.join(phases)}"
            raise ProblemError("bad_statement", where, text)
        phase = phases[pair.phase]
        first, second, product = rows_of(name)
        if clashes := {first, second, product} & {*phase.path, *phase.samples}:
            text = f"'{min(clashes)}' is added by the pair: rename the path constraint"
            raise ProblemError("bad_statement", where, text)
        added = {
            first: Constraint(_Part(pair.first, pair.sizes[0]), 0.0),
            second: Constraint(_Part(pair.second, pair.sizes[1]), 0.0),
            product: Constraint(_Product(pair), high=relaxation),
        }
        phases[pair.phase] = replace(phase, path={**phase.path, **added})
    return replace(problem, phases=list(phases.values()), complementary={})


@dataclass(frozen=True)
class _Part:
    value: Callable[[Any], Any]
    size: float

    def __call__(self, v: Symbols) -> Any:
        return self.value(v) / self.size


@dataclass(frozen=True)
class _Product:
    pair: Complementary

    def __call__(self, v: Symbols) -> Any:
        return self.pair.first(v) * self.pair.second(v) / math.prod(self.pair.sizes)


def rows_of(name: str) -> tuple[str, str, str]:
    """The names of the path constraints of a pair: both parts, and their product."""
    return f"{name}: first", f"{name}: second", f"{name}: product"
