"""Report part `decision`: the selection of each rule from the front, and its sensitivity to weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from designopt import decision as rules
from designopt.arrays import Floats
from designopt.counts import plural
from designopt.plugin import report_part
from designopt.report.colours import axis, bare_layout
from designopt.report.labels import (
    design_values,
    hover,
    listed,
    number,
    objective_labels,
    objective_values,
    parameter_label,
    thinned,
)
from designopt.report.parts.answer.best import describe
from designopt.report.parts.designs.convergence import OBJECTIVES, reference_words
from designopt.report.section import Figure, Section, Table
from designopt.report.traces import selected
from designopt.store.result import Result
from designopt.store.views.choices import KNEE
from designopt.study.study import Choice

if TYPE_CHECKING:
    from typing import Literal

Rows = NDArray[np.intp]

#: Default rules.
DEFAULT = (Choice("knee"), Choice("utopia"), Choice("topsis", norm="vector"), Choice("topsis", norm="minmax"))
#: Maximum number of designs for the weight study, and of drawn designs.
WEIGHED, DRAWN = 2000, 12

_MEANING = {
    "knee": "beyond which a gain in one objective is most expensive in another",
    "utopia": "nearest to the ideal point, with each objective scaled to its range on the front",
    "topsis": "largest relative distance from the worst point",
    "nearest_to": "nearest to the given values, in ranges of the front",
    "weighted_tchebycheff": "smallest maximum deviation from a reference point",
    "epsilon_constraint": "the best in one objective within limits on others",
    "robust": "the design with the largest share of neighbours within tolerances that satisfy all limits, "
    "from the front and from feasible designs with margins behind it; of equals, the one whose "
    "worst neighbour is nearest to the ideal point",
}


@report_part("decision", version=1)
def decision(result: Result) -> Section | None:
    """The hypervolume, the design that each rule selects from the front, and the sensitivity to weights."""
    m = len(result.problem.objectives)
    front = np.asarray(result.front(), dtype=np.intp)
    if m < 2 or len(front) < 2:
        return None
    F = result.outcomes.objectives[front]
    selection, findings = _select(result, F, front)
    volume, words = _volume(result, F)
    figures, tables = _weights(result, F, front, selection)
    choices = result.study.choose or DEFAULT
    meanings = {KNEE if c.method == "knee" else c.method: _MEANING[c.method] for c in choices}
    return Section(
        "Choosing from the front",
        introduction="Every design of the front is optimal for some preference. Rules that select one: "
        + "; ".join(f"{name.replace('_', ' ')}, {meaning}" for name, meaning in meanings.items())
        + ".",
        facts=(*volume, ("designs to choose from", str(len(front)))),
        findings=tuple(findings),
        figures=figures,
        tables=(*_table(result, front, selection), *tables),
        notes=words,
    )


def _select(result: Result, F: Floats, front: Rows) -> tuple[dict[str, int | None], list[str]]:
    """The index on the front selected by each rule, and its notes."""
    objectives = result.problem.objectives
    names, signs = [o.name for o in objectives], [o.sign for o in objectives]
    selection: dict[str, int | None] = {}
    findings = []
    labels_by_index: dict[int, list[str]] = {}
    for choice in result.study.choose or DEFAULT:
        label = rules.label(choice)
        try:
            if choice.method == "robust":
                findings += _robust(result)
                continue
            index = rules.choose(F, names, signs, choice)
        except rules.DecisionError as error:
            findings.append(f"{label}: {error}.")
            continue
        selection[label] = index
        if index is None:
            why = (
                "none of its designs satisfies the limits"
                if choice.method == "epsilon_constraint"
                else "no design lies before the plane through its extremes"
            )
            findings.append(f"{label}: the front has none; {why}.")
        else:
            labels_by_index.setdefault(index, []).append(label)
    for index, labels in labels_by_index.items():
        verb = "pick" if len(labels) > 1 else "picks"
        chosen_row = int(front[index])
        text = f"{listed(labels)} {verb} design {chosen_row}: {describe(result, chosen_row)}."
        findings.append(text[0].upper() + text[1:])
    if len(labels_by_index) == 1 and len(selection) > 1:
        findings.append("All rules agree.")
    return selection, findings


def _robust(result: Result) -> list[str]:
    """The selection of the rule by tolerances, which may be dominated."""
    row = result.most_robust()
    if row is None:
        return ["Robust: no design has neighbours yet."]
    return [f"Robust picks design {row}: {describe(result, row)}."]


def _volume(result: Result, F: Floats) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The hypervolume as a fact, and the note on its reference point."""
    reference = result.reference() if F.shape[1] <= OBJECTIVES else None
    if reference is None:
        return (), ()
    note = f"Hypervolume: what the front dominates up to {reference_words(result)}, in the objectives' units."
    return (("hypervolume", number(rules.hypervolume(F, reference))),), (note,)


def _table(result: Result, front: Rows, selection: dict[str, int | None]) -> tuple[Table, ...]:
    """The designs of the front that rules select, if any."""
    problem = result.problem
    values = objective_values(result)
    rows = []
    for label, index in selection.items():
        if index is None:
            continue
        row = int(front[index])
        rows.append((label, row, *design_values(result, row), *(float(v) for v in values[row])))
    head = ("rule", "design", *(parameter_label(p) for p in problem.space.free), *objective_labels(problem))
    return (Table("Selections of the rules", head, tuple(rows)),) if rows else ()


def _weights(
    result: Result, F: Floats, front: Rows, selection: dict[str, int | None]
) -> tuple[tuple[Figure, ...], tuple[Table, ...]]:
    """The share of weights of the objectives for which each design is chosen."""
    thinned_rows = thinned(np.arange(len(front)), WEIGHED)
    methods: dict[str, tuple[Literal["utopia", "topsis"], str]] = {
        "utopia l2": ("utopia", "l2"),
        "topsis vector": ("topsis", "vector"),
        "topsis minmax": ("topsis", "minmax"),
    }
    shares = {
        label: rules.weight_sensitivity(F[thinned_rows], method, norm) for label, (method, norm) in methods.items()
    }
    largest_share = np.max(list(shares.values()), axis=0)
    order = np.argsort(-largest_share, kind="stable")
    order = order[largest_share[order] > 0.0]
    bar_rows = np.sort(order[:DRAWN])  # in the order of the front
    rows = front[thinned_rows[bar_rows]]
    bars = {
        "type": "bar",
        "x": [f"design {row}" for row in rows.tolist()],
        "hovertemplate": "selected for <b>%{y:.1%}</b> of all weights<br>" + hover(result),
        "marker": {"color": "@accent"},
    }
    axes = {
        "xaxis": axis("", type="category", showgrid=False),
        "yaxis": axis("share of all weights", tickformat=".0%", rangemode="tozero"),
    }
    figure = selected(
        "Sensitivity of the choice to the weights",
        {"Rule": list(shares)},
        lambda k: [{**bars, "y": list(shares.values())[k][bar_rows]}],
        bare_layout(**axes),
        note="Two thousand weight vectors, uniform on the simplex; bars in the order of the front."
        + (f" The {DRAWN} designs selected most often are shown." if len(order) > DRAWN else ""),
        height=320,
        designs={0: rows},
    )
    values = objective_values(result)
    lines = tuple(
        (
            int(front[thinned_rows[i]]),
            *(round(100.0 * float(share[i]), 1) for share in shares.values()),
            *map(float, values[front[thinned_rows[i]]]),
        )
        for i in order.tolist()
    )
    note = f"{len(order)} of {plural(len(front), 'design')} of the front are selected for some weights."
    if len(thinned_rows) < len(front):
        note += f" Based on {len(thinned_rows)} designs, evenly spaced on the front."
    rows_of_choices = {int(front[p]) for p in selection.values() if p is not None}
    table = Table(
        "Share of all weights that select a design [%]",
        ("design", *shares, *objective_labels(result.problem)),
        lines,
        note=note + " Highlighted: the selections of the rules above.",
        visible_rows=12,
        marked=frozenset(k for k, line in enumerate(lines) if line[0] in rows_of_choices),
    )
    return (figure,), (table,)
