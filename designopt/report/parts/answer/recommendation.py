"""The recommended design for a decision: its values with tolerances, against the baseline, its margins to the limits,
what would change the answer, and how to reproduce it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from designopt.counts import percent
from designopt.report.labels import (
    answer_digits,
    baseline_label,
    difference_from_program,
    displayed_figures,
    figure_meaning,
    limited_values,
    listed,
    motion_of_program,
    number,
    objective_values,
    parameter_digits,
    recompute,
    tolerances_in_use,
)
from designopt.report.parts.answer import best
from designopt.report.parts.designs.scenarios import values_in_scenarios
from designopt.report.section import Table, with_a_value
from designopt.report.traces import scenario_names
from designopt.store.errors import budget_option
from designopt.store.provenance import versions
from designopt.store.result import Result
from designopt.store.views.activity import NEAR, is_count
from designopt.store.views.table import stated_constraints
from designopt.study.study import Objective, StudyConstraint, Tolerance

#: Most scenarios in the table of a result.
SCENARIOS = 8
#: Most parameters and objectives whose meanings stand with the answer.
MEANINGS = 8
#: Change of an objective that is none.
_SAME = 0.0005


def tables(result: Result) -> tuple[Table, ...]:
    """The values of the recommended design, and its limits; none without a feasible design."""
    recommendation = result.recommended()
    if recommendation is None:
        return ()
    label, row = recommendation
    by_scenario = not result.problem.space.free and 1 < len(result.problem.scenarios) <= SCENARIOS
    values = _in_scenarios(result, row) if by_scenario else _values(result, label, row)
    return tuple(table for table in (values, _limits(result, row)) if table is not None)


def _in_scenarios(result: Result, row: int) -> Table:
    """The objectives of the only design in each scenario."""
    problem, names = result.problem, scenario_names(result)
    figures = {name: v[[row]] for name, v in result.outcomes.figures.items()}
    rows = tuple(
        (f"{o.name} ({o.direction})", *values_in_scenarios(o, figures, (1, len(names)))[0].tolist(), o.unit)
        for o in problem.objectives
    )
    columns, kept_rows = with_a_value(("", *names, "unit"), rows)
    return Table("Result in each scenario", columns, kept_rows, digits=answer_digits(result))


def _values(result: Result, label: str, row: int) -> Table:
    """Parameters with units and tolerances, then objectives, each beside the designs of the baseline."""
    problem = result.problem
    values, baseline = problem.space.values(result.outcomes.X[row].tolist()), dict(result.baseline)
    baseline = {name: i for name, i in baseline.items() if i != row}
    tolerances = tolerances_in_use(result)
    of_baseline = [problem.space.values(result.outcomes.X[i].tolist()) for i in baseline.values()]
    rows: list[list[Any]] = []
    row_digits: list[int] = []
    for p in problem.space.free:
        if p.name in values:
            baseline_cells = [design.get(p.name, "–") for design in of_baseline]
            rows.append([p.name, values[p.name], _tolerance(tolerances.get(p.name)), p.unit, *baseline_cells])
            row_digits.append(parameter_digits(result, p.name, values[p.name]))
    objectives, digits = objective_values(result), answer_digits(result)
    for j, o in enumerate(problem.objectives):
        baseline_cells = [
            _against(float(objectives[row, j]), float(objectives[i, j]), digits) for i in baseline.values()
        ]
        rows.append([f"{o.name} ({o.direction})", float(objectives[row, j]), "", o.unit, *baseline_cells])
    feasible = result.outcomes.feasible
    marks = ["" if feasible[i] else ", violates limits" for i in baseline.values()]
    labels = [baseline_label(name) + mark for name, mark in zip(baseline, marks, strict=True)]
    head = ["", label, "±", "unit", *labels]
    columns = [k for k in range(len(head)) if k in (0, 1) or any(line[k] != "" for line in rows)]
    kept_rows = tuple(tuple(line[k] for k in columns) for line in rows)
    notes = ["In brackets: the change from this design to the recommended one."] if baseline else []
    notes += [f"A better motion is known: {motion}."] if (motion := motion_of_program(result, row)) else []
    notes += [f"The {clause}."] if (clause := difference_from_program(result, row)) else []
    head = [head[k] for k in columns]
    title = "Recommended design" if problem.space.free else "Result"
    return Table(
        title,
        tuple(head),
        kept_rows,
        visible_rows=40,
        note=" ".join(notes),
        digits=digits,
        row_digits=tuple(row_digits),
    )


def _tolerance(tolerance: Tolerance | None) -> str:
    if tolerance is None:
        return ""
    size = f"{number(100.0 * tolerance.size)} %" if tolerance.relative else number(tolerance.size)
    return f"{size} (standard deviation)" if tolerance.normal else size


def _against(value: float, baseline: float, digits: int) -> str:
    """The baseline's value of an objective, and the change from it."""
    if not np.isfinite(baseline) or baseline == 0.0:
        return number(baseline, digits)
    change = (value - baseline) / abs(baseline)
    if abs(change) < _SAME:
        return number(baseline, digits)
    return f"{number(baseline, digits)} ({'+' if change > 0 else '−'}{percent(abs(change))})"


def _limits(result: Result, row: int) -> Table | None:
    rows = [
        (c.name, value, f"{sign} {number(limit)}", c.unit, percent(margin) if limit else "")
        for c, sign, limit, value, margin in _sides(result, row)
    ]
    for c in stated_constraints(result.problem):
        if c.equals is not None:  # met within its tolerance, without a margin
            values, _ = limited_values(result, c)
            rows.append((c.name, float(values[row]), f"= {number(c.equals)}", c.unit, "met"))
    return (
        Table("Its limits", *with_a_value(("limit", "value", "limit value", "unit", "margin"), rows)) if rows else None
    )


def _sides(result: Result, row: int) -> list[tuple[StudyConstraint, str, float, float, float]]:
    """Each one-sided limit: the sign, the limit, the value in the worst scenario, and its relative margin."""
    sides: list[tuple[StudyConstraint, str, float, float, float]] = []
    for c in stated_constraints(result.problem):
        ends = limited_values(result, c)
        low, high = (float(end[row]) for end in ends)
        for sign, limit, value in (("≥", c.minimum, low), ("≤", c.maximum, high)):
            if limit is not None and np.isfinite(value):
                distance = value - limit if sign == "≥" else limit - value
                size = max(abs(limit), abs(value))
                sides.append((c, sign, limit, value, distance / size if size else 0.0))
    return sides


def search_without_gain(result: Result) -> list[str]:
    """A clause if the only objective is least in a design of the baseline: the search has found nothing better."""
    recommendation, stages = result.recommended(), result.study.stages
    searches = [stage for stage in stages if not stage.baseline and not stage.solver.plugin.takes_designs]
    if recommendation is None or len(result.problem.objectives) != 1 or not searches or result.ended != "done":
        return []
    if result.programs() and result.best_program() is None:  # it has found nothing: see its programs
        return []
    name = next((name for name, row in result.baseline.items() if row == recommendation[1]), "")
    rows = np.concatenate([result.designs_of(stage.name) for stage in searches])
    if not name or recommendation[1] in rows.tolist():
        return []
    return [
        f"no design of the search is better than '{name}' of the baseline: raise the budget, or search smaller ranges, "
        "logarithmic where they span decades"
    ]


def changes(result: Result) -> list[str]:
    """Sentences on what would change the answer: the limits that are nearest, or none that is near."""
    recommendation = result.recommended()
    sides = _sides(result, recommendation[1]) if recommendation is not None else []
    sides = [
        side for side in sides if side[3] != side[2] or not _is_count(result, side[0])
    ]  # it meets limits by nature
    if not sides:
        return []
    close = [_in_words(side) for side in sides if side[4] <= NEAR]
    if close:
        noun = "limit" if len(close) == 1 else "limits"
        return [f"Another value of the {noun} {listed(close)} would change the answer."]
    nearest = min(sides, key=lambda side: side[4])
    _, _, limit, _, margin = nearest
    text = _in_words(nearest)
    share = f", with a margin of {percent(margin)}" if limit else ""
    return [f"The nearest limit is {text}{share}."]


def _is_count(result: Result, c: StudyConstraint) -> bool:
    """Whether what `c` limits is an integer in every design."""
    return is_count(np.concatenate(result.problem.limited(c, result.outcomes.figures, len(result.outcomes))))


def _in_words(side: tuple[StudyConstraint, str, float, float, float]) -> str:
    """A limit with the value of the recommended design."""
    c, sign, limit, value, _ = side
    return f"{c.name} ({number(value)} {sign} {number(limit)} {c.unit}".rstrip() + ")"


def meanings(result: Result) -> tuple[str, ...]:
    """A sentence on what the parameters and objectives of the recommended design mean, with the values of the outputs
    from which an objective is computed; none for more than `MEANINGS`, which the part `best` has in its table."""
    recommendation, problem = result.recommended(), result.problem
    if recommendation is None or len(problem.space.free) + len(problem.objectives) > MEANINGS:
        return ()
    texts = {p.name: best.meaning(result, p.name) for p in problem.space.free}
    texts |= {o.name: _of_objective(result, recommendation[1], o) for o in problem.objectives}
    clauses = [f"{name}: {text}" for name, text in texts.items() if text]
    return (f"{'; '.join(clauses)}.",) if clauses else ()


def _of_objective(result: Result, row: int, o: Objective) -> str:
    """``abs(error), with error -5.3 deg (peak less the recorded one)``; the meaning alone of an output."""
    names = dict.fromkeys(name for name, _, _ in o.expression.uses() if name in result.outcomes.figures)
    if o.expression.text in names:
        return figure_meaning(result.problem, o.expression.text)
    outputs = []
    for name in names:
        unit, values = displayed_figures(result)[name]
        ends = dict.fromkeys(number(float(end)) for end in (values[row].min(), values[row].max()))
        text = f"{name} {' to '.join(ends)} {unit}".rstrip()
        outputs.append(f"{text} ({about})" if (about := figure_meaning(result.problem, name)) else text)
    return f"{o.expression.text}, with {listed(outputs)}" if outputs else o.expression.text


def reproduce(result: Result) -> str:
    """How to repeat the recommended design and the study."""
    recommendation = result.recommended()
    command = recompute(result, recommendation[1]) if recommendation is not None else ""
    return (
        f"To reproduce: the study with seed {result.study.seed}{_budgets(result)} and designopt"
        f" {versions()['designopt']}, in the store as study.yaml{f': {command}' if command else ''}"
    )


def _budgets(result: Result) -> str:
    """The options, after a comma, for the numbers of designs that the run had in the end; "" without any."""
    stages = [] if result.made_elsewhere else result.study.stages
    limit_of = {stage.name: stage.budget.evaluations for stage in stages if stage.budget.evaluations is not None}
    options = [
        budget_option(result.study.stages, name, max(limit, used_budget(result, name)))
        for name, limit in limit_of.items()
    ]
    return f",{''.join(options)}" if options else ""


def used_budget(result: Result, stage: str) -> int:
    """The completed designs of a stage, with the cost of cheap evaluations and without invalid designs, which cost
    nothing."""
    rows, fidelity = result.designs_of(stage), result.problem.fidelity
    valid = int((~result.outcomes.invalid[rows[rows >= 0]]).sum())
    cheap = result.cheap if stage == result.study.stages[-1].name else None
    cost = 0.0 if cheap is None or fidelity is None else len(cheap) * fidelity.cost
    return math.ceil(valid + cost - 1e-9)
