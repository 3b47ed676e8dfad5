"""Limits for which a margin cannot be stated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from designopt.collocation.statement.checks import check_names
from designopt.collocation.statement.problem import Continued, TrajectoryProblem, is_added
from designopt.collocation.statement.stated_values import ProblemError, ends
from designopt.collocation.statement.symbols import Ends, EndVariables
from designopt.collocation.statement.terms import Constraint
from designopt.lazy import casadi as ca


def check_margins(problem: TrajectoryProblem, margins: Mapping[str, float], cost: float) -> None:
    """Raises `ProblemError` (bad_statement) for invalid names and numbers of `margins` and of the `cost`, and for
    phases without sensitivities."""
    limit_names = [
        *dict.fromkeys(
            name for p in problem.phases for name in (*p.path, *p.samples, *(v.name for v in p.system.states))
        ),
        *(name for name, c in problem.constraints.items() if not is_added(c)),
    ]
    for name, times in {**margins, "cost": cost}.items():
        if not isinstance(times, Real) or not 0.0 <= times < math.inf:
            raise ProblemError("bad_statement", f"margins.{name}", f"is {times!r}: give a number from 0 on")
    check_names("margins", margins, limit_names, "limit", "bad_statement")
    for name in margins:
        tables = [problem.constraints, *(table for p in problem.phases for table in (p.path, p.samples))]
        if any(name in table and table[name].low == table[name].high for table in tables):
            raise ProblemError("bad_statement", f"margins.{name}", "is an equality, which leaves no room for a margin")
    if problem.complementary:
        text = "contacts open and close elsewhere for other numbers, and are not followed: use scenarios instead"
        raise ProblemError("bad_statement", "margins", text)
    for phase in problem.phases:
        for what, occurrences in (
            ("algebraic variables", phase.system.algebraic),
            ("delays", phase.delays),
            ("a start where the phase before it ends", phase.t0 is None or isinstance(phase.t0, Continued)),
        ):
            if occurrences:
                text = f"the phase has {what}, through which deviations are not followed: use scenarios instead"
                raise ProblemError("bad_statement", f"{phase.name}: margins", text)
    for name in margins:
        if not any(math.isfinite(limit) for limit in _limits(problem, name)):
            raise ProblemError("bad_statement", f"margins.{name}", "has no limit to keep a margin from: give it one")


def _limits(problem: TrajectoryProblem, name: str) -> list[float]:
    """All limits with the `name`: of constraints, and of states along the phase."""
    tables = [problem.constraints, *(table for p in problem.phases for table in (p.path, p.samples))]
    limits = [limit for table in tables if name in table for limit in (table[name].low, table[name].high)]
    for phase in problem.phases:
        boxes = [phase.bounds.get(name, (v.low, v.high)) for v in phase.system.states if v.name == name]
        limits += [limit for box in boxes for limit in ends(box)]
    return limits


def unlinked(problem: TrajectoryProblem) -> dict[str, Constraint]:
    """The constraints of `problem`; those that link the start of one phase to the end of another raise an error when
    called: sensitivities would restart there."""
    if len(problem.phases) == 1:
        return dict(problem.constraints)
    states = {phase.name: tuple(v.name for v in phase.system.states) for phase in problem.phases}
    return {
        name: c if is_added(c) or c.low < c.high else replace(c, value=_Unlinked(name, c.value, states))
        for name, c in problem.constraints.items()
    }


@dataclass(frozen=True)
class _Unlinked:
    name: str
    value: Callable[[Ends], Any]
    states: Mapping[str, tuple[str, ...]]

    def __call__(self, e: Ends) -> Any:
        value = self.value(e)
        begins = self._unlinked_states(value, {n: e.phase[n].initial for n in self.states})
        ends = self._unlinked_states(value, {n: e.phase[n].final for n in self.states})
        if any(begin != end for begin in begins for end in ends):
            text = "links phases, between which deviations are not followed: use scenarios instead"
            raise ProblemError("bad_statement", f"constraints.{self.name}", text)
        return value

    def _unlinked_states(self, value: Any, sides: Mapping[str, EndVariables]) -> list[str]:
        """The phases whose states at one of their `sides` enter the value."""
        states = {n: ca.vertcat(*(side[v] for v in self.states[n])) for n, side in sides.items()}
        return [n for n, column in states.items() if ca.depends_on(ca.SX(value), column)]
