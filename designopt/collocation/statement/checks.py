"""Checks of a trajectory problem before any expression is formed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from reprlib import repr as short
from typing import Any

from designopt.collocation.statement.problem import Phase, TrajectoryProblem
from designopt.collocation.statement.stated_values import MOST_INTERVALS, ProblemError, check_names
from designopt.collocation.statement.terms import Constraint, Integral
from designopt.dynamics.signals import Signal
from designopt.dynamics.system import Variable


def check_statement(problem: TrajectoryProblem) -> None:
    """Raises `ProblemError` (bad_statement) for inconsistent phases and names."""
    if not problem.phases:
        raise ProblemError("bad_statement", "phases", "there are none: give at least one")
    names = [phase.name for phase in problem.phases]
    if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
        raise ProblemError("bad_statement", "phases", f"two are called '{twice}': give each a name of its own")
    for phase in problem.phases:
        _check_system_names(phase)
        _check_tables(phase)
        _check_data(phase)
        _check_held_controls(phase)
        _check_constraints(f"{phase.name}: path", phase.path, Constraint)
        _check_constraints(f"{phase.name}: integrals", phase.integrals, Integral)
        _check_constraints(f"{phase.name}: samples", phase.samples, Constraint)
        _check_samples(phase)
    _check_constraints("constraints", problem.constraints, Constraint)
    _check_at("constraints", problem.constraints)
    _check_shared(problem)


def _check_system_names(phase: Phase) -> None:
    """Checks that each name has one meaning."""
    system = phase.system
    form = system.residual_form
    tables: dict[str, Sequence[Variable]] = {
        "state": system.states,
        "unknown rate": form.unknowns if form else (),
        "control": system.controls,
        "algebraic variable": system.algebraic,
        "parameter": system.parameters,
        "data entry": system.data,
    }
    table_of: dict[str, str] = {}
    for table, variables in tables.items():
        for v in variables:
            if v.name in table_of:
                text = f"'{v.name}' is the name of a {table_of[v.name]} and of a {table}: rename one of them"
                raise ProblemError("bad_statement", f"{phase.name}: system {system.name}", text)
            table_of[v.name] = table


def _check_tables(phase: Phase) -> None:
    system = phase.system
    unknowns = system.residual_form.unknowns if system.residual_form else ()
    on_the_way = [v.name for v in (*system.states, *unknowns, *system.controls, *system.algebraic)]
    for side in ("bounds", "initial", "final"):
        check_names(f"{phase.name}: {side}", getattr(phase, side), on_the_way, "variable")


def _check_data(phase: Phase) -> None:
    names = [v.name for v in phase.system.data]
    for name in names:
        if name not in phase.data:
            raise ProblemError("bad_statement", f"{phase.name}: data.{name}", "has no value: give a number or a Signal")
        if not isinstance(phase.data[name], Signal | Real):
            text = f"is {type(phase.data[name]).__name__}, not a number or a Signal"
            raise ProblemError("bad_statement", f"{phase.name}: data.{name}", text)
    check_names(f"{phase.name}: data", phase.data, names, "data entry")


def _check_held_controls(phase: Phase) -> None:
    check_names(f"{phase.name}: held", phase.held_controls, [v.name for v in phase.system.controls], "control")
    for name, pieces in phase.held_controls.items():
        if isinstance(pieces, int) and not isinstance(pieces, bool) and 1 <= pieces <= MOST_INTERVALS:
            continue
        if (
            isinstance(pieces, tuple)
            and 1 <= len(pieces) <= MOST_INTERVALS
            and all(isinstance(v, Real) and math.isfinite(v) for v in pieces)
        ):
            continue
        text = (
            f"is {short(pieces)}: give the number of equal pieces of the phase, from 1 to {MOST_INTERVALS}, or the"
            " value on each of them"
        )
        raise ProblemError("bad_statement", f"{phase.name}: held_controls.{name}", text)


def _check_constraints(position: str, entries: Mapping[str, Any], kind: type) -> None:
    for name, entry in entries.items():
        if "[" in name:  # names of the rows of a constraint
            raise ProblemError("bad_statement", f"{position}.{name}", "a name must not contain '[': rename it")
        if not isinstance(entry, kind):
            text = f"is a {type(entry).__name__}, not {kind.__name__}(function, low, high)"
            raise ProblemError("bad_statement", f"{position}.{name}", text)


def _check_samples(phase: Phase) -> None:
    """Checks that each constraint has a unique name and is either a path constraint or one at samples."""
    _check_at(f"{phase.name}: path", phase.path)
    for name, constraint in phase.samples.items():
        position = f"{phase.name}: samples.{name}"
        if constraint.at is None:
            raise ProblemError("bad_statement", position, "has no samples: give Constraint(..., at=Samples(times))")
        if name in phase.path:
            raise ProblemError("bad_statement", position, "is also the name of a path constraint: rename one of them")


def _check_at(position: str, constraints: Mapping[str, Constraint]) -> None:
    for name, constraint in constraints.items():
        if constraint.at is not None:
            text = "holds at samples: state it in the `samples` of a phase"
            raise ProblemError("bad_statement", f"{position}.{name}", text)


def _check_shared(problem: TrajectoryProblem) -> None:
    """Checks that parameters of one name have one unit and, unless the problem gives it, one range."""
    first: dict[str, tuple[str, Variable]] = {}
    of_phases = [(f"phase {phase.name}", v) for phase in problem.phases for v in phase.system.parameters]
    for owner, v in (*of_phases, *(("extra", v) for v in problem.extra)):
        first_place, first_variable = first.setdefault(v.name, (owner, v))
        if v.unit != first_variable.unit:
            text = (
                f"its unit is '{first_variable.unit}' in {first_place} and '{v.unit}' in {owner}: a shared parameter "
                f"must have one unit"
            )
            raise ProblemError("bad_statement", f"parameters.{v.name}", text)
        if (v.low, v.high) != (first_variable.low, first_variable.high) and v.name not in problem.parameters:
            text = (
                f"its range is {first_variable.low:g} to {first_variable.high:g} in {first_place}"
                f" and {v.low:g} to {v.high:g} in {owner}:"
                " state the intended one in the problem's `parameters`"
            )
            raise ProblemError("bad_bounds", f"parameters.{v.name}", text)
