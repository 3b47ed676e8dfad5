"""Comparison of stores with one common objective: best values and convergence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.report.colours import axis, category, layout, scale_for
from designopt.report.comparison.bands import median_with_band
from designopt.report.comparison.compared_store import ComparedStore
from designopt.report.comparison.differences import other_question
from designopt.report.comparison.groups import run_groups
from designopt.report.labels import listed, number, plain, with_unit
from designopt.report.section import Figure, Section, Table
from designopt.report.traces import trace
from designopt.study.study import Objective

#: Relative difference below which best values are equal.
SAME = 1e-6


def best_values(entries: Sequence[ComparedStore], objective: Objective) -> Section:
    """The best value of each store, its distance from the best of all, and the history of the best over the designs."""
    histories = [_history(entry) for entry in entries]
    best = np.array([history[-1] if len(history) else np.inf for history in histories])
    least = float(best.min())
    size = max(abs(least), float(np.finfo(float).tiny))
    behind = (best - least) / size
    rows = [
        (entry.label, objective.sign * float(value), _share(float(apart)))
        if np.isfinite(value)
        else (entry.label, "–", "–")
        for entry, value, apart in zip(entries, best, behind, strict=True)
    ]
    name = with_unit(objective.name, objective.unit)
    leaders = [entry.label for entry, apart in zip(entries, behind, strict=True) if apart <= SAME]
    worse = [(e.label, float(a)) for e, a in zip(entries, behind, strict=True) if SAME < a < np.inf]
    if len(leaders) > 1:
        findings = [f"{listed(leaders)} have the same best {objective.name} to within a millionth."]
    else:
        findings = [f"{leaders[0]} has the best {objective.name}, {number(objective.sign * least)}."]
    findings += [f"{label} is worse by {_share(apart)}." for label, apart in worse]
    if any(other_question(entries[0].result, entry.result) for entry in entries[1:]):
        findings.append("The stores answer different questions: see what differs before comparing their values.")
    return Section(
        "Best values",
        findings=tuple(findings),
        figures=(_figure(entries, histories, objective),),
        tables=(Table("Best value of each store", ("store", name, "relative distance to the best"), tuple(rows)),),
    )


def _share(apart: float) -> str:
    return f"{number(100.0 * apart, 3)} %" if apart else "0"


def _history(entry: ComparedStore) -> Floats:
    """The best feasible value after each requested design."""
    values = np.where(entry.result.outcomes.feasible, entry.objectives[:, 0], np.inf)
    return np.asarray(np.minimum.accumulate(values))


def _figure(entries: Sequence[ComparedStore], histories: Sequence[Floats], objective: Objective) -> Figure:
    data: list[dict[str, Any]] = []
    groups, repeats = run_groups(entries)
    for i, group in enumerate([*groups, *repeats]):
        history, label = histories[group.rows[0]], group.label
        if len(group.rows) > 1:
            longest = max(len(histories[row]) for row in group.rows)
            curves = [np.pad(histories[row], (0, longest - len(histories[row])), "edge") for row in group.rows]
            curve = np.where(np.isfinite(curves), objective.sign * np.array(curves), np.nan)
            first = int(np.argmax(np.isfinite(curve).all(axis=0)))  # before, a run has no feasible design
            data += median_with_band(list(range(first + 1, longest + 1)), curve[:, first:], label, i)
            continue
        steps = np.flatnonzero(history < np.concatenate([[np.inf], history[:-1]]))
        corners = np.append(steps, len(history) - 1) if len(steps) else steps
        stair = {"shape": "hv", "color": category(i), "width": 2}
        data.append(
            trace(corners + 1, objective.sign * history[corners], plain(label), mode="lines+markers", line=stair,
                  marker={"size": 5}, hover=f"{plain(label)}, %{{x}} designs: <b>%{{y:.6~g}}</b>")
        )  # fmt: skip
    scale = scale_for([value for curve_trace in data for value in curve_trace["y"]])
    title = plain(with_unit(objective.name, objective.unit))
    axes = {"xaxis": axis("designs asked for"), "yaxis": axis(title, **scale)}
    return Figure("Best so far, over the designs", {"data": data, "layout": layout(**axes)}, height=360)
