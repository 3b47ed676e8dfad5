"""Report part `front`: the Pareto front among all evaluated designs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.counts import plural
from designopt.plugin import Quantity, report_part
from designopt.report.chosen_markers import BASELINE, BEST, MARKERS, choice_kinds
from designopt.report.colours import axis, layout, over_decades, scale_for
from designopt.report.labels import (
    RECOMMENDED,
    design_values,
    hover,
    listed,
    number,
    objective_labels,
    objective_values,
    parameter_label,
    plain,
    recompute,
    thinned,
    titled,
    with_unit,
)
from designopt.report.no_design import without_feasible
from designopt.report.section import Figure, Section, Table
from designopt.report.traces import Trace, above, beside, trace
from designopt.store.result import Result

Rows = NDArray[np.intp]

#: Maximum number of drawn dominated designs, and of front designs; the CSV has every design of the front.
DRAWN = 3000
#: The same in total over all plots if every pair of several objectives is drawn.
POINTS = 7000
#: Distance of a baseline from the front, in its ranges, beyond which it is not drawn at first.
FAR = 1.5
#: Maximum number of designs in the table of the front.
LISTED = 5000
#: Left, top, right, bottom in pixels.
Box = tuple[float, float, float, float]
#: Ranges of both axes of a plot, its width and height in pixels.
Frame = tuple[tuple[float, float], tuple[float, float], float, float]

#: Approximate width of the plots, width of a letter and height of a line, in pixels.
PLOT_WIDTH, LETTER, LINE = 820.0, 7.0, 18.0
#: Positions of labels relative to their points; the first free one is used.
OFFSETS = tuple((side * ax, ay) for ax in (36, 90) for side in (1, -1) for ay in (-30, -58, -86, -114, 30, 58, 86, 114))
#: Maximum number of objectives in the plots of pairs.
PAIRED = 5


@report_part("front", version=2)
def front(
    result: Result,
    *,
    symbol: Annotated[
        str | None, Quantity("", "parameter with values whose value is the symbol of a design; default: the first")
    ] = None,
) -> Section | None:
    """The Pareto front: two objectives in one plot, all pairs of more, three also in 3D; a symbol for each value of a
    choice such as a material."""
    problem = result.problem
    if len(problem.objectives) < 2:
        return None
    rows = np.asarray(result.front(), dtype=np.intp)
    if not len(rows):
        return Section("Pareto front", introduction=without_feasible(result))
    other_rows = np.setdiff1d(np.flatnonzero(~result.outcomes.failed), rows, assume_unique=True)
    dominated_rows = other_rows[result.outcomes.feasible[other_rows]]
    outside = other_rows[~result.outcomes.feasible[other_rows]]
    m = min(len(problem.objectives), PAIRED)
    limit = min(DRAWN, POINTS // (m * (m - 1) // 2))
    groups = {
        "violates a limit": thinned(outside, limit // 2),
        "dominated": thinned(dominated_rows, limit),
        "Pareto front": thinned(rows, limit),
    }
    notes = []
    for name, every in (("violates a limit", outside), ("dominated", dominated_rows), ("Pareto front", rows)):
        if len(groups[name]) < len(every):
            notes.append(
                f"{len(groups[name])} of {plural(len(every), 'design')} marked “{name}” are "
                "shown, evenly spaced in the order of evaluation."
            )
    if far := far_baselines(result):
        verb = "lies" if len(far) == 1 else "lie"
        notes.append(f"{listed(far)}, of the baseline, {verb} far outside of what is drawn.")
    figures = [_planes(result, groups, _symbols(result, symbol))]
    if len(problem.objectives) == 3:
        figures.append(_space(result, groups))
    if len(problem.objectives) > PAIRED:
        notes.append(f"The first {PAIRED} of {len(problem.objectives)} objectives are drawn; the table contains all.")
    return Section(
        "Pareto front",
        introduction=(
            f"{plural(len(rows), 'design')} on the front: no other feasible design is at least as good in "
            "every objective and better in one. The front includes all evaluated designs, not only the "
            "last population."
        ),
        figures=tuple(figures),
        tables=(_table(result, rows),),
        notes=tuple(notes),
    )


def view(values: NDArray[np.float64], every: NDArray[np.float64], is_minimised: bool) -> list[float] | None:
    """Axis range that shows the front (`values`) and part of `every` design on its worse side.

    None (all designs) if the front has no extent.
    """
    low, high = float(values.min()), float(values.max())
    span = high - low
    if not span > 0.0:
        return None
    room = 0.1 * span
    if is_minimised:
        return [low - room, min(high + 0.6 * span, float(np.nanmax(every))) + room]
    return [max(low - 0.6 * span, float(np.nanmin(every))) - room, high + room]


def _ranges(result: Result, groups: dict[str, Rows]) -> list[list[float] | None]:
    """The range of each objective that shows the front and the chosen designs; see `view`."""
    values = objective_values(result)
    every = np.concatenate(list(groups.values()))
    far = far_baselines(result)
    near = [row for name, row in result.chosen().items() if name not in far]
    visible = np.unique([*groups["Pareto front"], *near]).astype(np.intp)
    return [
        view(v[visible], v[every], o.direction == "minimize")
        for v, o in zip(_on_axes(values, groups["Pareto front"]).T, result.problem.objectives, strict=True)
    ]


def far_baselines(result: Result) -> list[str]:
    """Names of baselines so far from the front in some objective that a common figure would compress it."""
    front = result.front()
    axis_values = _on_axes(objective_values(result), np.asarray(front, dtype=np.intp))
    low, high = axis_values[front].min(axis=0), axis_values[front].max(axis=0)
    reach = FAR * np.where(high > low, high - low, np.inf)
    rows = result.baseline.items()
    return [name for name, row in rows if ((axis_values[row] < low - reach) | (axis_values[row] > high + reach)).any()]


def _on_axes(values: Floats, rows: Rows) -> Floats:
    """`values` (n, m) in axis coordinates: the logarithm if those of `rows` range over decades."""
    logs = [over_decades(column) for column in values[rows].T]
    with np.errstate(all="ignore"):
        return np.where(logs, np.log10(values), values)


def _styles() -> dict[str, dict[str, Any]]:
    return {
        "violates a limit": {"color": "@muted", "size": 6, "symbol": "x-thin-open", "opacity": 0.8},
        "dominated": {"color": "@dim", "size": 6, "opacity": 0.75},
        "Pareto front": {"color": "@accent", "size": 7, "line": {"color": "@surface", "width": 0.5}},
    }


#: Symbols of the values of a choice, which differ from those of the chosen designs.
SYMBOLS = ("circle", "square", "triangle-up", "cross", "hexagon", "triangle-down", "pentagon", "star-diamond")


@dataclass(frozen=True)
class _Symbols:
    """The symbol of each design (n,) by the value of a parameter, and the symbols by label."""

    by_design: NDArray[np.str_]
    labels: Mapping[str, str]


def _symbols(result: Result, name: str | None) -> _Symbols | None:
    """The symbols by the choice `name`, or the first free one with as many values as there are symbols; None without.
    Raises `ValueError` for a parameter that is none."""
    space = result.problem.space
    choices = [p for p in space.free if p.kind == "choice" and len(p.values) <= len(SYMBOLS)]
    if name is not None:
        choices = [p for p in choices if p.name == name]
        if not choices:
            raise ValueError(f"symbol: '{name}' is no parameter with up to {len(SYMBOLS)} values")
    if not choices:
        return None
    p = choices[0]
    symbol_of = dict(zip(map(str, p.values), SYMBOLS, strict=False))
    values = [str(space.values(x).get(p.name, "")) for x in result.outcomes.X.tolist()]
    labels = {with_unit(f"{p.name} {number(v)}", p.unit): symbol_of[str(v)] for v in p.values}
    return _Symbols(np.array([symbol_of.get(value, "circle") for value in values]), labels)


def _planes(result: Result, groups: dict[str, Rows], symbols: _Symbols | None) -> Figure:
    """Every pair of the objectives as a lower triangle of plots; one plot for two objectives."""
    problem = result.problem
    m = min(len(problem.objectives), PAIRED)
    # Two lines of what fits; the direction is kept if there is room.
    room = {2: 70, 3: 34, 4: 24}.get(m, 18)
    values = objective_values(result)
    labels = [titled(t, room) for t in objective_labels(problem)]
    pairs = list(combinations(range(m), 2))
    across, down = beside(m - 1, 0.08), above(m - 1, 0.08)
    size = across[0][1]
    data: list[dict[str, Any]] = []
    designs: dict[int, Rows] = {}
    axes: dict[str, Any] = {}
    annotations = []
    ranges, axis_values = _ranges(result, groups), _on_axes(values, groups["Pareto front"])
    scales = [scale_for(column) for column in values[groups["Pareto front"]].T]
    frames: dict[str, Frame] = {}
    height = 540 if m == 2 else 300 * (m - 1) + 120
    rows_by_label, kinds = result.chosen(), choice_kinds(result)
    recommended_rows = {(result.recommended() or ("", -1))[1]}
    rows_of = {kind: {row for label, row in rows_by_label.items() if kinds[label] == kind} for kind in kinds.values()}
    mark_of = {kind: RECOMMENDED * (rows == recommended_rows and len(rows_of) > 1) for kind, rows in rows_of.items()}
    for k, (x, y) in enumerate(pairs, start=1):
        column, line = x, y - 1
        suffix = "" if k == 1 else str(k)
        on: Trace = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        horizontal = {"domain": across[column], "anchor": on["yaxis"], "range": ranges[x], **scales[x]}
        vertical = {"domain": down[line], "anchor": on["xaxis"], "range": ranges[y], **scales[y]}
        axes[f"xaxis{suffix}"] = axis(labels[x] if line == m - 2 else "", **horizontal)
        axes[f"yaxis{suffix}"] = axis(labels[y] if column == 0 else "", **vertical)
        sides = (_extent(ranges[x], axis_values[:, x]), _extent(ranges[y], axis_values[:, y]))
        frames[f"x{suffix}"] = (*sides, size * PLOT_WIDTH, size * (height - 120.0))
        for name, rows in groups.items():
            if not len(rows):
                continue
            # Steps, not straight lines: they bound the region that the front dominates, for any directions.
            line_up = m == 2 and name == "Pareto front"
            designs[len(data)] = rows
            steps: Trace = {"line": {"color": "@accent", "width": 1, "shape": "hv"}} if line_up else {}
            style = _styles()[name]
            if symbols is not None and name != "violates a limit":
                style["symbol"] = symbols.by_design[rows].tolist()
            data.append(
                trace(values[rows, x], values[rows, y], name, mode="lines+markers" if line_up else "markers",
                      marker=style, hover=hover(result, figures=name == "Pareto front"), legendgroup=name,
                      showlegend=k == 1, **on, **steps)
            )  # fmt: skip
        for label, row in rows_by_label.items():
            kind = kinds[label]
            first = label == next(candidate for candidate in rows_by_label if kinds[candidate] == kind)
            designs[len(data)] = np.array([row])
            data.append(
                trace(values[[row], x], values[[row], y], kind + mark_of[kind], mode="markers",
                      marker=MARKERS[kind], **on, hover=f"<b>{plain(label)}</b><br>{hover(result)}",
                      legendgroup=f"chosen {kind}", showlegend=k == 1 and first)
            )  # fmt: skip
            if kind != BEST or m == 2:
                by_rule = kind not in (BEST, BASELINE)
                annotations.append(_annotation(label, axis_values[row, x], axis_values[row, y], suffix, by_rule))
    for label, shape in symbols.labels.items() if symbols is not None else ():
        entry = {"color": "@accent", "size": 7, "symbol": shape}
        data.append(trace([None], [None], plain(label), mode="markers", marker=entry))
    return Figure(
        "Objectives against each other",
        {"data": data, "layout": layout(**axes, annotations=_spread(annotations, frames))},
        note="The view shows the front.",
        hint="A double click shows every design, a click on the legend hides a group.",
        height=height,
        designs=designs,
    )


def _annotation(label: str, x: float, y: float, suffix: str, star: bool) -> dict[str, Any]:
    return {
        "text": plain(label), "x": x, "y": y, "xref": f"x{suffix}", "yref": f"y{suffix}", "ax": 36, "ay": -30,
        "showarrow": True, "arrowhead": 0, "arrowwidth": 1, "arrowcolor": "@muted", "standoff": 8, "xanchor": "left",
        "bgcolor": "@veil", "font": {"color": "@mark" if star else "@ink", "size": 12},
    }  # fmt: skip


def _spread(annotations: list[dict[str, Any]], frames: Mapping[str, Frame]) -> list[dict[str, Any]]:
    """Labels of one design are joined; each is placed inside its plot without covering others.

    `frames` gives the range of both axes, and width and height in pixels, of the plot of each horizontal axis.
    """
    labels_by_point: dict[tuple[Any, ...], dict[str, Any]] = {}
    for a in annotations:
        label = labels_by_point.setdefault((a["xref"], a["x"], a["y"]), a)
        if label is not a:
            label["text"] += "<br>" + a["text"]
    boxes_by_plot: dict[str, list[Box]] = {}
    for a in sorted(labels_by_point.values(), key=lambda a: (a["xref"], a["x"])):
        (x0, x1), (y0, y1), width, height = frames[a["xref"]]
        x, y = (a["x"] - x0) / (x1 - x0) * width, (y1 - a["y"]) / (y1 - y0) * height
        boxes_placed = boxes_by_plot.setdefault(a["xref"], [])
        boxes = [_box(x, y, offset, a["text"]) for offset in OFFSETS]
        costs = [
            sum(_overlap(box, placed_box) for placed_box in boxes_placed)
            + _area(box)
            - _overlap(box, (0.0, 0.0, width, height))
            for box in boxes
        ]
        best = int(np.argmin(np.round(costs, 6)))
        boxes_placed.append(boxes[best])
        a["ax"], a["ay"] = OFFSETS[best]
        a["xanchor"] = "left" if OFFSETS[best][0] > 0 else "right"
    return list(labels_by_point.values())


def _extent(axis_range: list[float] | None, values: NDArray[np.float64]) -> tuple[float, float]:
    """The range of an axis: as given, else that of the values."""
    low, high = axis_range or (float(np.nanmin(values)), float(np.nanmax(values)))
    return (low, high) if high > low else (low - 1.0, low + 1.0)


def _box(x: float, y: float, offset: tuple[int, int], text: str) -> Box:
    """The box of a label with this offset from its point (x, y): left, top, right, bottom in pixels."""
    lines = text.split("<br>")
    width, height = LETTER * max(map(len, lines)) + 6.0, LINE * len(lines)
    left = x + offset[0] if offset[0] > 0 else x + offset[0] - width
    top = y + offset[1] - height / 2.0
    return left, top, left + width, top + height


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _overlap(a: Box, b: Box) -> float:
    """The common area of two boxes."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)


def _space(result: Result, row_groups: dict[str, Rows]) -> Figure:
    values = objective_values(result)
    data: list[dict[str, Any]] = []
    designs: dict[int, Rows] = {}
    groups = dict(row_groups)
    styles = _styles()
    if (recommended := result.recommended()) is not None:
        label, row = recommended
        groups[name := f"recommended: {plain(label)}"] = np.array([row])
        styles[name] = {"color": "@mark", "size": 8, "symbol": "diamond"}
    for name, rows in groups.items():
        if name == "violates a limit" or not len(rows):
            continue
        designs[len(data)] = rows
        style = styles[name]
        x, y, z = values[rows].T
        marker = style | {"size": max(2, style["size"] // 2 + 1), "line": {"width": 0}}
        points = trace(x, y, name, mode="markers", marker=marker, hover=hover(result, figures=False))
        data.append({**points, "type": "scatter3d", "z": z})
    ranges = _ranges(result, row_groups)
    short = [titled(with_unit(o.name, o.unit), 30) for o in result.problem.objectives]
    legend = layout()["legend"] | {"itemsizing": "constant"}
    scene = {
        f"{a}axis": {
            "title": {"text": short[j]},
            "range": ranges[j],
            **scale_for(values[row_groups["Pareto front"], j]),
        }
        for j, a in enumerate("xyz")
    }
    return Figure(
        "The three objectives in space",
        {
            "data": data,
            "layout": layout(scene=scene | _CUBE, margin={"l": 0, "r": 0, "t": 60, "b": 0}, legend=legend),
        },
        hint="Drag to rotate the view, scroll to zoom.",
        height=560,
        designs=designs,
    )


# Distant enough to show the titles of the axes completely.
_CUBE = {
    "aspectmode": "cube",
    "camera": {"eye": {"x": 1.55, "y": 1.55, "z": 0.95}, "center": {"x": 0.0, "y": 0.0, "z": -0.15}},
}


def _table(result: Result, rows: Rows) -> Table:
    problem = result.problem
    values = objective_values(result)
    rows_of_choices = set(result.chosen().values())
    listed_rows = np.unique(
        np.concatenate([thinned(np.arange(len(rows)), LISTED), np.flatnonzero(np.isin(rows, [*rows_of_choices]))])
    )
    left = (
        f" {len(listed_rows)} of {len(rows)} designs are in this table, evenly spaced along "
        f"the front. To export all: designopt report {shlex.quote(str(result.path))} --export csv"
        if len(listed_rows) < len(rows)
        else ""
    )
    rows = rows[listed_rows]
    command = recompute(result, int(rows[0]))
    how = f"To recompute a design by its number: {command}." if command else ""
    lines = [(i, *design_values(result, i), *(float(v) for v in values[i])) for i in rows.tolist()]
    return Table(
        "Designs of the front",
        ("design", *(parameter_label(p) for p in problem.space.free), *objective_labels(problem)),
        tuple(lines),
        note=f"Sorted by the first objective; the chosen designs are highlighted. {how}{left}".rstrip(),
        visible_rows=12,
        designs=tuple(rows.tolist()),
        marked=frozenset(k for k, i in enumerate(rows.tolist()) if i in rows_of_choices),
    )
