"""Report part `front`: the Pareto front among all designs that were evaluated."""

from __future__ import annotations

import shlex
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import report
from designopt.report.colours import axis, layout
from designopt.report.labels import (
    count,
    design_values,
    hover,
    objective_labels,
    objective_values,
    parameter_label,
    plain,
    plural,
    recompute,
    thinned,
    titled,
    with_unit,
)
from designopt.report.parts.best import without_feasible
from designopt.report.section import Figure, Section, Table
from designopt.store.result import Result

Rows = NDArray[np.intp]

#: At most this many dominated designs are drawn, and as many front designs; the CSV has every design of the front.
DRAWN = 3000
#: And fewer where every pair of several objectives is drawn: so many points of one kind in all of them together.
POINTS = 7000
#: Designs in the table of the front.
LISTED = 5000
#: With more objectives than this, the first ones only are drawn against each other.
PAIRED = 5


@report("front", version=1)
def front(result: Result) -> Section | None:
    """The Pareto front: two objectives against each other, every pair of more, three of them in space too."""
    problem = result.problem
    if len(problem.objectives) < 2:
        return None
    rows = np.asarray(result.front(), dtype=np.intp)
    if not len(rows):
        return Section("Pareto front", introduction=without_feasible(result))
    others = np.setdiff1d(np.flatnonzero(~result.outcomes.failed), rows)
    dominated = others[result.outcomes.feasible[others]]
    outside = others[~result.outcomes.feasible[others]]
    m = min(len(problem.objectives), PAIRED)
    limit = min(DRAWN, POINTS // (m * (m - 1) // 2))
    drawn = {
        "breaks a limit": thinned(outside, limit // 2),
        "dominated": thinned(dominated, limit),
        "Pareto front": thinned(rows, limit),
    }
    notes = []
    for name, every in (("breaks a limit", outside), ("dominated", dominated), ("Pareto front", rows)):
        if len(drawn[name]) < len(every):
            notes.append(
                f"{plural(len(drawn[name]), 'design')} of {plural(len(every), 'design')} marked “{name}” are drawn, "
                "evenly taken over the order in which they were evaluated."
            )
    figures = [_planes(result, drawn)]
    if len(problem.objectives) == 3:
        figures.append(_space(result, drawn))
    if len(problem.objectives) > PAIRED:
        notes.append(f"The first {PAIRED} of {len(problem.objectives)} objectives are drawn; the table has all.")
    return Section(
        "Pareto front",
        introduction=(
            f"{plural(len(rows), 'design')} on the front: no other evaluated design within the limits is at least as "
            "good in every objective and better in one. It is taken from all designs ever evaluated, not from the last "
            "ones that the solver held."
        ),
        figures=tuple(figures),
        tables=(_table(result, rows),),
        notes=tuple(notes),
    )


def view(values: NDArray[np.float64], every: NDArray[np.float64], minimised: bool) -> list[float] | None:
    """Axis range that shows the front (`values`) and something of `every` design on its worse side.

    None (all designs) when the front has no extent.
    """
    low, high = float(values.min()), float(values.max())
    span = high - low
    if not span > 0.0:
        return None
    room = 0.1 * span
    if minimised:
        return [low - room, min(high + 0.6 * span, float(np.nanmax(every))) + room]
    return [max(low - 0.6 * span, float(np.nanmin(every))) - room, high + room]


def _ranges(result: Result, drawn: dict[str, Rows]) -> list[list[float] | None]:
    """`view` of each objective."""
    values = objective_values(result)
    every = np.concatenate(list(drawn.values()))
    return [
        view(values[drawn["Pareto front"], j], values[every, j], o.direction == "minimize")
        for j, o in enumerate(result.problem.objectives)
    ]


def _styles() -> dict[str, dict[str, Any]]:
    return {
        "breaks a limit": {"color": "@dim", "size": 5, "symbol": "x-thin-open", "opacity": 0.6},
        "dominated": {"color": "@dim", "size": 5, "opacity": 0.5},
        "Pareto front": {"color": "@accent", "size": 7, "line": {"color": "@surface", "width": 0.5}},
    }


def _planes(result: Result, drawn: dict[str, Rows]) -> Figure:
    """Every pair of the objectives as a lower triangle of plots; one plot for two objectives."""
    problem = result.problem
    m = min(len(problem.objectives), PAIRED)
    # Two lines of what a plot has room for; the direction is kept where there is some.
    room = {2: 70, 3: 34, 4: 24}.get(m, 18)
    values = objective_values(result)
    labels = [titled(t, room) for t in objective_labels(problem)]
    pairs = list(combinations(range(m), 2))
    gap = 0.08 if m > 2 else 0.0
    size = (1.0 - gap * (m - 2)) / (m - 1)
    data: list[dict[str, Any]] = []
    designs: dict[int, Rows] = {}
    axes: dict[str, Any] = {}
    annotations = []
    ranges = _ranges(result, drawn)
    chosen = result.chosen()
    rules = [label for label in chosen if label not in {f"best {o.name}" for o in problem.objectives}]
    for k, (x, y) in enumerate(pairs, start=1):
        column, line = x, y - 1
        suffix = "" if k == 1 else str(k)
        left, top = column * (size + gap), 1.0 - line * (size + gap)
        axes[f"xaxis{suffix}"] = axis(
            labels[x] if line == m - 2 else "", domain=[left, left + size], anchor=f"y{suffix}", range=ranges[x]
        )
        axes[f"yaxis{suffix}"] = axis(
            labels[y] if column == 0 else "", domain=[max(top - size, 0.0), top], anchor=f"x{suffix}", range=ranges[y]
        )
        for name, rows in drawn.items():
            if not len(rows):
                continue
            # Steps, not straight lines: they bound what the front dominates, whichever way the objectives go.
            line_up = m == 2 and name == "Pareto front"
            designs[len(data)] = rows
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers" if line_up else "markers",
                    "line": {"color": "@accent", "width": 1, "shape": "hv"} if line_up else {},
                    "name": name,
                    "legendgroup": name,
                    "showlegend": k == 1,
                    "x": values[rows, x],
                    "y": values[rows, y],
                    "xaxis": f"x{suffix}",
                    "yaxis": f"y{suffix}",
                    "marker": _styles()[name],
                    "hovertemplate": hover(result, figures=name == "Pareto front"),
                }
            )
        for place, (label, row) in enumerate(chosen.items()):
            mark = label in rules
            first = label == rules[0] if mark else place == 0
            designs[len(data)] = np.array([row])
            data.append(_marked(result, label, row, (x, y), suffix, star=mark, shown=k == 1 and first))
            if mark or m == 2:
                annotations.append(_annotation(label, values[row, x], values[row, y], suffix, mark))
    return Figure(
        "Objectives against each other",
        {"data": data, "layout": layout(**axes, annotations=_spread(annotations))},
        note="The view opens on the front; double-click shows every design. Click on the legend hides a group.",
        height=540 if m == 2 else 300 * (m - 1) + 120,
        designs=designs,
    )


def _marked(
    result: Result, label: str, row: int, pair: tuple[int, int], suffix: str, *, star: bool, shown: bool
) -> dict[str, Any]:
    values = objective_values(result)[row]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": ("compromise" if label == "compromise" else "picked by a rule") if star else "best of an objective",
        "legendgroup": "chosen star" if star else "chosen ring",
        "showlegend": shown,
        "x": [values[pair[0]]],
        "y": [values[pair[1]]],
        "xaxis": f"x{suffix}",
        "yaxis": f"y{suffix}",
        "marker": {
            "symbol": "star" if star else "circle-open",
            "size": 17 if star else 14,
            "color": "@mark" if star else "@ink",
            "line": {"width": 1 if star else 1.5, "color": "@surface" if star else "@ink"},
        },
        "hovertemplate": f"<b>{plain(label)}</b><br>" + hover(result),
    }


def _annotation(label: str, x: float, y: float, suffix: str, star: bool) -> dict[str, Any]:
    return {
        "text": plain(label),
        "x": x,
        "y": y,
        "xref": f"x{suffix}",
        "yref": f"y{suffix}",
        "showarrow": True,
        "arrowhead": 0,
        "arrowwidth": 1,
        "arrowcolor": "@muted",
        "ax": 36,
        "ay": -30,
        "xanchor": "left",
        "standoff": 8,
        "bgcolor": "@veil",
        "font": {"color": "@mark" if star else "@ink", "size": 12},
    }


def _spread(annotations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Labels of one design become one label, so that they do not lie on top of each other."""
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for a in annotations:
        known = merged.setdefault((a["xref"], a["x"], a["y"]), a)
        if known is not a:
            known["text"] += "<br>" + a["text"]
    # Neighbours along the first axis stand at different heights.
    for k, a in enumerate(sorted(merged.values(), key=lambda a: (a["xref"], a["x"]))):
        a["ay"] = -30 - 28 * (k % 3)
    return list(merged.values())


def _space(result: Result, drawn: dict[str, Rows]) -> Figure:
    values = objective_values(result)
    data: list[dict[str, Any]] = []
    designs: dict[int, Rows] = {}
    groups = dict(drawn)
    compromise = result.compromise()
    if compromise is not None:
        groups["compromise"] = np.array([compromise])
    styles = _styles() | {"compromise": {"color": "@mark", "size": 8, "symbol": "diamond"}}
    for name, rows in groups.items():
        if name == "breaks a limit" or not len(rows):
            continue
        designs[len(data)] = rows
        style = styles[name]
        data.append(
            {
                "type": "scatter3d",
                "mode": "markers",
                "name": name,
                "x": values[rows, 0],
                "y": values[rows, 1],
                "z": values[rows, 2],
                "marker": style | {"size": max(2, style["size"] // 2 + 1), "line": {"width": 0}},
                "hovertemplate": hover(result, figures=False),
            }
        )
    ranges = _ranges(result, drawn)
    short = [titled(with_unit(o.name, o.unit), 30) for o in result.problem.objectives]
    scene = {f"{a}axis": {"title": {"text": short[j]}, "range": ranges[j]} for j, a in enumerate("xyz")}
    return Figure(
        "The three objectives in space",
        {
            "data": data,
            "layout": layout(scene=scene | _CUBE, margin={"l": 0, "r": 0, "t": 60, "b": 0}),
        },
        note="Drag turns the view, the wheel zooms.",
        height=560,
        designs=designs,
    )


# Far enough away for the titles of the axes to be seen whole.
_CUBE = {
    "aspectmode": "cube",
    "camera": {"eye": {"x": 1.55, "y": 1.55, "z": 0.95}, "center": {"x": 0.0, "y": 0.0, "z": -0.15}},
}


def _table(result: Result, rows: Rows) -> Table:
    problem = result.problem
    values = objective_values(result)
    chosen = set(result.chosen().values())
    kept = np.unique(np.concatenate([thinned(np.arange(len(rows)), LISTED), np.flatnonzero(np.isin(rows, [*chosen]))]))
    left = (
        f" {count(len(kept))} of {count(len(rows))} designs are in this table, evenly taken along the front; all are "
        f"written by: designopt report {shlex.quote(str(result.path))} --export csv"
        if len(kept) < len(rows)
        else ""
    )
    rows = rows[kept]
    lines = [(i, *design_values(result, i), *(float(v) for v in values[i])) for i in rows.tolist()]
    return Table(
        "Designs of the front",
        ("design", *(parameter_label(p) for p in problem.space.free), *objective_labels(problem)),
        tuple(lines),
        note="Sorted by the first objective; the chosen designs are set off. "
        f"A design is computed again with its number: {recompute(result, int(rows[0]))}.{left}",
        shown=12,
        designs=tuple(rows.tolist()),
        marked=frozenset(k for k, i in enumerate(rows.tolist()) if i in chosen),
    )
