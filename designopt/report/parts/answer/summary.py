"""The short answer at the top of the page: chosen designs, their robustness, and the front."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from designopt.counts import plural
from designopt.report.chosen_markers import MARKERS, kinds_of_rows
from designopt.report.colours import axis, layout, scale_for
from designopt.report.labels import (
    answer_digits,
    listed,
    marked_designs,
    motion_of_program,
    number,
    objective_labels,
    objective_values,
    plain,
    thinned,
    wrapped,
)
from designopt.report.parts.answer.best import describe
from designopt.report.parts.answer.tolerances import assumed_size
from designopt.report.parts.answer.validation import feasible_shares
from designopt.report.parts.designs.front import far_baselines
from designopt.report.section import Figure, Table
from designopt.report.traces import trace
from designopt.store.result import Result
from designopt.store.views.choices import KNEE

#: Maximum number of drawn designs of the front, and height of the figure.
DRAWN, HEIGHT = 300, 340
#: Size of the markers of chosen designs, by that in the larger figure of the front.
SHARE = 0.7
#: Maximum letters of an axis title.
ROOM = 34
#: Letters of the title of an upright axis, which is shorter on paper.
UPRIGHT = 20


def sentence(result: Result) -> list[str]:
    """The recommended design in a sentence, or the objectives where nothing is free; none without a feasible design."""
    recommendation, problem = result.recommended(), result.problem
    if recommendation is None:
        return []
    if problem.space.free:
        return [f"The recommended design is {recommendation_clause(result)}."]
    rules = listed(list(dict.fromkeys(o.over.plugin.name for o in problem.objectives)))
    over = f", the {rules} of {plural(len(problem.scenarios), 'scenario')}" if len(problem.scenarios) > 1 else ""
    return [f"The result is {describe(result, recommendation[1])}{over}."]


def recommendation_clause(result: Result) -> str:
    """The recommended design in a clause, with the number of neighbours that meet the limits, and the less robust first
    choice; "" without a feasible design."""
    recommendation, near = result.recommended(), result.tolerated()
    if recommendation is None:
        return ""
    label, row = recommendation
    text = f"{'the ' if label in ('compromise', KNEE) else ''}{label}: {describe(result, row)}"
    within_limits = None if near is None else near.within_limits(row)
    if within_limits is not None and result.problem.constraints:
        shares = f"{within_limits[0]} of {within_limits[1]} neighbours within the tolerances{assumed_size(result)}"
        text += f"; {shares} satisfy the limits{_instead(result)}"
        if len(result.problem.scenarios) == 1 and result.study.validate is None:
            text += (
                " (neighbours vary the parameters alone, not settings and data of the model, as scenarios or 'report:"
                " {validate: ...}' do)"
            )
    return text


def _instead(result: Result) -> str:
    """A clause about the first choice, if a more robust design is recommended; else ""."""
    recommendation, first, near = result.recommended(), result.first_choice(), result.tolerated()
    if recommendation is None or first is None or near is None or recommendation[1] == first[1]:
        return ""
    return f", where {first[0]} keeps them in {near.words(first[1])}" if near.within_limits(first[1]) else ""


def table(result: Result) -> Table | None:
    """The chosen designs with their objectives, and the shares of neighbours and of validation scenarios that meet the
    limits; None if there is only one, which is recommended. Those of the baseline stand beside the recommended one."""
    baseline, shares = set(result.baseline.values()), feasible_shares(result)
    rows_by_label = {label: row for label, row in marked_designs(result).items() if row not in baseline}
    if len(rows_by_label) < 2:
        return None
    values = objective_values(result)
    head = ["design", *objective_labels(result.problem), *shares]
    rows: list[tuple[Any, ...]] = []
    for label, row in rows_by_label.items():
        violates = "" if result.outcomes.feasible[row] else " (violates limits)"
        rows.append((label + violates, *map(float, values[row]), *(words(row) for words in shares.values())))
    digits = answer_digits(result)
    motions = {label: motion for label, row in rows_by_label.items() if (motion := motion_of_program(result, row))}
    note = " ".join(f"{label}: {motion}." for label, motion in motions.items())
    return Table("In short", tuple(head), tuple(rows), designs=tuple(rows_by_label.values()), digits=digits, note=note)


def front(result: Result) -> Figure | None:
    """The front of the first two objectives with the chosen designs, without baselines that would compress it; None for
    one objective."""
    problem, rows = result.problem, np.asarray(result.front(), dtype=np.intp)
    if len(problem.objectives) < 2 or len(rows) < 2:
        return None
    rows, values = thinned(rows, DRAWN), objective_values(result)
    titles = [
        wrapped(text, room) if len(text) > room else plain(text)
        for text, room in zip(objective_labels(problem), (ROOM, UPRIGHT), strict=False)
    ]
    x, y = values[:, 0], values[:, 1]
    mode = "lines+markers" if len(problem.objectives) == 2 else "markers"
    stair, dots = {"color": "@accent", "width": 1, "shape": "hv"}, {"color": "@accent", "size": 5}
    hover_template = "%{x:.4g}, %{y:.4g}<extra>%{text}</extra>"
    data = [trace(x[rows], y[rows], mode=mode, line=stair, marker=dots, hover="%{x:.4g}, %{y:.4g}")]
    designs, far = {0: rows}, far_baselines(result)
    for kind, row_of in _by_kind(result, {result.baseline[name] for name in far}).items():
        designs[len(data)] = kind_rows = np.array([*row_of.values()], dtype=np.intp)
        text = [plain(f"{label}: {number(float(x[row]))}, {number(float(y[row]))}") for label, row in row_of.items()]
        name = plain(kind if len(row_of) > 1 else next(iter(row_of)))
        marker = MARKERS[kind] | {"size": SHARE * MARKERS[kind]["size"]}
        data.append(
            trace(x[kind_rows], y[kind_rows], name, mode="markers", marker=marker, text=text, hover=hover_template)
        )
    axes = {"xaxis": axis(titles[0], **scale_for(x[rows])), "yaxis": axis(titles[1], **scale_for(y[rows]))}
    margin = {"l": 64, "r": 12, "t": 12, "b": 56}
    return Figure(
        "The front, with the chosen designs",
        {"data": data, "layout": layout(**axes, margin=margin)},
        note=f"Far outside of it: {listed(far)}." if far else "",
        height=HEIGHT,
        designs=designs,
    )


def _by_kind(result: Result, left_out: Collection[int]) -> dict[str, dict[str, int]]:
    """The chosen designs but those `left_out`, each once, by the kind of their marker: the joined labels with the
    rows."""
    kind_of, groups = kinds_of_rows(result), dict[str, dict[str, int]]()
    for label, row in marked_designs(result).items():
        if row in left_out:
            continue
        groups.setdefault(kind_of[row], {})[label] = row
    return groups
