"""Report part `best`: comparison of the chosen designs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from designopt.counts import first_of, plural
from designopt.plugin import report_part
from designopt.report.labels import (
    answer_digits,
    baseline_label,
    chosen_once,
    design_rows,
    difference_from_program,
    figure_meaning,
    listed,
    motion_of_program,
    number,
    objective_values,
    parameter_digits,
    parameter_text,
    recompute,
)
from designopt.report.no_design import without_feasible
from designopt.report.parts.answer.limits import sentence, warnings
from designopt.report.section import Section, Table
from designopt.store.result import Result
from designopt.store.views.choices import ROBUST
from designopt.store.views.table import stated_constraints

if TYPE_CHECKING:
    from designopt.problem import Problem
    from designopt.study.language.expressions.expression import Expression
    from designopt.study.study import Objective, StudyConstraint

#: Maximum number of parameters for a description in words.
MAX_LISTED = 8
#: First rows of the table that are never folded: objectives, limits and parameters, and at least so many.
UNFOLDED = 12


@report_part("best", version=1)
def best(result: Result) -> Section | None:
    """Comparison of the chosen designs (best of each objective, compromise) with all their results."""
    if not result.problem.objectives:
        return None
    rows_by_label = chosen_once(result)
    if not rows_by_label:
        return Section("Best designs", introduction=without_feasible(result))
    values_by_name = design_rows(result, rows_by_label)
    rows = [(name, *values, meaning(result, name)) for name, values in values_by_name]
    row_digits = tuple(
        max(parameter_digits(result, p.name, value) for value in values)
        for p, (_, values) in zip(result.problem.space.parameters, values_by_name, strict=False)
    )
    head = ("", *rows_by_label, "meaning")
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    several = len(result.problem.objectives) > 1
    introduction = "The chosen designs: the best of each objective" if several else "The chosen designs: the best one"
    baseline_rows, labels = set(result.baseline.values()), result.chosen()
    if result.study.choose:
        introduction += ", and the selections of the study's rules"
    elif "compromise" in labels:
        introduction += (
            ", and the compromise: the design of the front nearest to the ideal point, with every "
            "objective scaled to its range on the front"
        )
    if ROBUST in labels and not any(choice.method == ROBUST for choice in result.study.choose):
        introduction += "; the most robust design, because the first choice violates limits within its tolerances"
    findings = [
        f"{label[:1].upper()}{label[1:]}: {describe(result, row)}."
        for label, row in rows_by_label.items()
        if not label.startswith("best ") and row not in baseline_rows
    ]
    if len(result.outcomes) == 1:
        introduction = "The only design" if result.problem.space.free else "All results"
    if baseline_rows:
        introduction += "; and the study's baseline"
        findings += [_baseline_comparison(result, name, row) for name, row in result.baseline.items()]
    findings += [sentence(clause) for clause in warnings(result)]
    row_count = len(result.problem.space.parameters) + len(result.problem.objectives)
    row_count += len(stated_constraints(result.problem))
    arrays = first_of(list(result.problem.model.plugin.arrays), 4)
    clauses = [difference_from_program(result, row) for row in rows_by_label.values()]
    note = next((f"The {clause}." for clause in clauses if clause), "")
    commands = Table(
        "Commands to recompute them",
        ("design", "row", "command"),
        tuple((label, row, recompute(result, row)) for label, row in rows_by_label.items()),
        note=f"--arrays FILE.npz at its end saves the arrays of the design: {arrays}." if arrays else "",
    )
    return Section(
        "Best designs",
        introduction=introduction + ".",
        findings=tuple(findings),
        tables=(
            Table(
                "Chosen designs",
                head,
                tuple(rows),
                visible_rows=200,
                note=note,
                digits=answer_digits(result),
                row_digits=row_digits,
                folded_from=max(row_count, UNFOLDED),
            ),
            *((commands,) if not result.made_elsewhere else ()),
        ),
    )


def meaning(result: Result, label: str) -> str:
    """The meaning of the parameter or output of a row, as the model declares it, or that of an objective or limit."""
    problem, name = result.problem, re.split(r" [\[(]", label)[0]
    if " (" in label:
        aims: list[Objective | StudyConstraint] = [*problem.objectives, *stated_constraints(problem)]
        return _meaning_of_expression(problem, name, next(aim.expression for aim in aims if aim.name == name))
    inputs = problem.model.plugin.inputs or {}
    if name in inputs:
        quantity = inputs[name].quantity
        return "" if quantity is None else quantity.description
    return figure_meaning(problem, name) if name in result.outcomes.figures else ""


def _meaning_of_expression(problem: Problem, name: str, expression: Expression) -> str:
    """``1 - rho; rho: correlation of the angles``; the meaning alone where the expression is the output `name`."""
    meanings = {output: figure_meaning(problem, output) for output, _, _ in expression.uses()}
    if expression.text == name:
        return meanings[name]
    lines = [f"{output}: {meaning}" for output, meaning in meanings.items() if meaning]
    return "; ".join(lines if lines and expression.text in meanings else [expression.text, *lines])


def _baseline_comparison(result: Result, name: str, row: int) -> str:
    """Whether a design of the baseline is on the front, and the number of feasible designs that are better in every
    objective."""
    outcomes = result.outcomes
    F = outcomes.objectives
    if not outcomes.feasible[row]:
        return f"{baseline_label(name)} violates a limit: {describe(result, row)}."
    better = int((outcomes.feasible & (F[row] >= F).all(axis=1) & (F[row] > F).any(axis=1)).sum())
    if F.shape[1] > 1:
        standing = f"is dominated by {plural(better, 'evaluated design')}" if better else "is on the front"
    else:
        standing = f"is worse than {plural(better, 'evaluated design')}" if better else "is the best design"
    return f"{baseline_label(name)} {standing}: {describe(result, row)}."


def describe(result: Result, row: int) -> str:
    """A design in words: its parameters and objectives."""
    problem = result.problem
    values = problem.space.values(result.outcomes.X[row].tolist())
    digits = answer_digits(result)
    active = [p for p in problem.space.free if p.name in values]
    free = [f"{p.name} {parameter_text(result, p.name, values[p.name])} {p.unit}".rstrip() for p in active]
    objective_row = zip(problem.objectives, objective_values(result)[row], strict=True)
    aims = [f"{o.name} {number(float(v), digits)} {o.unit}".rstrip() for o, v in objective_row]
    if motion := motion_of_program(result, row):  # of a study with one objective
        aims[0] += f" ({motion})"
    if len(free) > MAX_LISTED:
        return f"its {len(free)} parameters give {listed(aims)}"
    if not free:
        return listed(aims)
    return f"{listed(free)} give {listed(aims)}" if len(free) > 1 else f"{listed(free)} gives {listed(aims)}"
