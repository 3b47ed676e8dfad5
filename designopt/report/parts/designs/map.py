"""Report part `map`: every figure over the space."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.counts import plural
from designopt.plugin import report_part
from designopt.report.chosen_markers import MARKERS, kinds_of_rows
from designopt.report.colours import ORDERED, ORDERED_LINES, axis, colour_bar, layout, log_ticks
from designopt.report.grid import Grid, grid_over
from designopt.report.labels import (
    active_values,
    displayed_figures,
    hover,
    listed,
    number,
    objective_labels,
    objective_values,
    parameter_label,
    plain,
    thinned,
    titled,
    with_unit,
)
from designopt.report.parts.designs.colouring import Colouring, colouring
from designopt.report.section import Figure, Section, Selector
from designopt.report.traces import above, beside, trace
from designopt.store.result import Result

if TYPE_CHECKING:
    from designopt.study.study import DesignVariable

Rows = NDArray[np.intp]

#: Maximum number of drawn designs outside a grid.
DRAWN = 3000
#: Maximum number of values of all figures in all scenarios together; at least `MIN_DESIGNS` designs.
VALUES, MIN_DESIGNS = 150_000, 300
#: A grid with fewer nodes is drawn only if it contains a third of all designs.
NODES = 100
#: Maximum number of points in the plots of all pairs together.
POINTS = 7000
#: Label of the crosses, and the number of Plotly's symbol.
BREAKS, CROSS = "violates a limit", 4
#: Maximum number of marked designs of the front, and number of designs below which their points are large.
MARKED, FEW = 60, 40
#: Look of a marker that stands out on each colour of a scale.
ON_COLOURS = {"color": "#ffffff", "line": {"width": 1, "color": "#1b2430"}}
#: Maximum number of figures that a note names.
NAMED = 4
#: Maximum number of parameters in pairs.
PAIRED = 5


@report_part("map", version=1)
def map_figures(result: Result) -> Section | None:
    """Every figure over the space: a heat map on a grid, else coloured points, by pairs of parameters."""
    free = result.problem.space.free
    rows = np.flatnonzero(~result.outcomes.failed)
    if not free or len(result.outcomes) == 1:
        return None
    if not len(rows):
        return Section("Maps", introduction="No evaluation gave a result, so there is nothing to map.")
    d = min(len(free), PAIRED)
    layers = (len(result.outcomes.figures) + len(result.problem.objectives)) * len(result.problem.scenarios)
    limit = min(DRAWN, POINTS // max(d * (d - 1) // 2, 1), VALUES // max(layers, 1))
    thinned_rows, notes = thinned(rows, max(MIN_DESIGNS, limit)), []
    grid = grid_over(result, 0, 1) if len(free) == 2 and all(p.kind != "choice" for p in free) else None
    if grid is not None and _sparse(grid, len(rows)):
        grid = None
    if grid is not None:
        figure = _heat_map(result, grid)
        introduction = (
            f"Each figure over {listed([p.name for p in free])} on the grid of {len(grid.x)} × {len(grid.y)} designs; "
            "cells without a result are left blank."
        )
    else:
        figure = _points(result, thinned_rows, d)
        introduction = "Each figure over the parameters, as the colour of the evaluated designs."
        if len(thinned_rows) < len(rows):
            notes.append(
                f"{len(thinned_rows)} of {plural(len(rows), 'design')} are shown, evenly spaced in "
                "the order of evaluation."
            )
    if len(free) > d:
        notes.append(f"The first {d} of {len(free)} parameters are drawn: {listed([p.name for p in free[:d]])}.")
    return Section("Maps", introduction=introduction, figures=(figure,), notes=tuple(notes))


def _sparse(grid: Grid, designs: int) -> bool:
    """Whether a few nodes (of a screening, for example) would represent many designs elsewhere."""
    nodes = int(np.sum(grid.rows >= 0))
    return nodes < NODES and 3 * nodes < designs


def _layers(result: Result) -> tuple[list[str], list[list[Floats]]]:
    """Quantities to map: objectives (the same for every scenario), then figures by scenario: names and values (n,)."""
    scenarios = len(result.problem.scenarios)
    names, values = [], []
    objectives = objective_values(result)
    for j, label in enumerate(objective_labels(result.problem)):
        names.append(label)
        values.append([objectives[:, j]] * scenarios)
    for name, (unit, figure) in displayed_figures(result).items():
        if np.isfinite(figure).any():
            names.append(with_unit(name, unit))
            values.append([figure[:, s] for s in range(scenarios)])
    return names, values


def _choices(result: Result, names: list[str]) -> tuple[Selector, ...]:
    scenarios = result.problem.scenarios
    several = (Selector("Scenario", tuple(s.name for s in scenarios)),) if len(scenarios) > 1 else ()
    return (Selector("Figure", tuple(names)), *several)


def scale_of(p: DesignVariable, limit: int = 8) -> dict[str, Any]:
    """Axis type and ticks for a parameter, at most `limit` on a log axis."""
    if p.kind == "choice":
        return {
            "tickvals": list(range(len(p.values))),
            "ticktext": [plain(number(v)) for v in p.values],
            "range": [-0.5, len(p.values) - 0.5],
        }
    if p.kind == "real" and p.scale == "log":
        return {"type": "log", "tickvals": log_ticks(p.low, p.high, limit), "exponentformat": "power"}
    return {}


def _heat_map(result: Result, grid: Grid) -> Figure:
    names, values = _layers(result)
    x, y = result.problem.space.free
    several = len(result.problem.scenarios) > 1
    point = f"{plain(parameter_label(x))}: %{{x:.5~g}}<br>{plain(parameter_label(y))}: %{{y:.5~g}}<br>"
    variants: dict[tuple[int, ...], Any] = {}
    colourings = _colourings(values, result.outcomes.feasible)
    for k, (name, by_scenario) in enumerate(zip(names, values, strict=True)):
        for s, column in enumerate(by_scenario):
            colours = colourings[k][s]
            low, high = colours.limits
            words = [[f"{value:.5g}" for value in line] for line in grid.take(column)] if colours.is_log else None
            update = {
                "z": grid.take(colours.numbers),
                "text": words,
                "hovertemplate": point + f"<b>%{{{'text' if words else 'z:.5~g'}}}</b><extra></extra>",
                "colorbar": {"title": {"text": titled(name, 48)}, **colours.ticks},
                "zmin": low,
                "zmax": high,
            }
            variants[(k, s) if several else (k,)] = {"data": {"0": update}}
    first = next(iter(variants.values()))["data"]["0"]
    data: list[dict[str, Any]] = [
        {
            "type": "heatmap",
            "x": edges(grid.x, x),
            "y": edges(grid.y, y),
            **first,
            "colorscale": ORDERED,
            "colorbar": colour_bar(**first["colorbar"] | {"title": first["colorbar"]["title"]["text"]}),
            "hoverongaps": False,
        },
    ]
    marks = _overlay(result, (0, 1), "", on_colours=True)
    designs = {len(data) + k: rows for k, (_, rows) in enumerate(marks)}
    data += [points for points, _ in marks]
    violating_rows = np.flatnonzero(_breaks(result) & np.isin(np.arange(len(result.outcomes)), grid.rows))
    if len(violating_rows):
        X = result.outcomes.X[violating_rows]
        data.append(_crosses(violating_rows, X[:, 0], X[:, 1]))
    axes = {
        "xaxis": axis(plain(parameter_label(x)), **scale_of(x)),
        "yaxis": axis(plain(parameter_label(y)), **scale_of(y)),
    }
    return Figure(
        "Figures over the grid",
        {"data": data, "layout": layout(**axes, meta={"maps": []})},
        note=_note(names, colourings),
        height=500,
        designs=designs,
        choices=_choices(result, names),
        variants=variants,
    )


def _colourings(values: Sequence[Sequence[Floats]], feasible: NDArray[np.bool_]) -> list[list[Colouring]]:
    """The colours of each figure in each scenario."""
    return [[colouring(column, feasible) for column in by_scenario] for by_scenario in values]


def _note(names: Sequence[str], colourings: Sequence[Sequence[Colouring]], *, has_bar: bool = True) -> str:
    """A note: which figures have values beyond the bar of colours, if there is one, and over which scenarios they
    are."""
    figure_names = [
        name
        for name, by_scenario in zip(names, colourings, strict=True)
        if has_bar and any(colours.is_clipped for colours in by_scenario)
    ]
    subject = f"{listed(figure_names)}" if len(figure_names) <= NAMED else f"{len(figure_names)} of the figures"
    sentences = (
        [f"Some values of {subject} are beyond the scale and have the colour of its end."] if figure_names else []
    )
    if len(colourings[0]) > 1:
        sentences.append("Objectives are aggregated over all scenarios; figures are those of one scenario.")
    return " ".join(sentences)


def edges(nodes: Floats, p: DesignVariable | None = None) -> Floats:
    """Borders (n + 1,) of a heat map's cells, halfway between `nodes` (n,) on the scale of parameter `p`.

    Plotly needs them for cells of unequal width and on a log axis.
    """
    log = p is not None and p.kind == "real" and p.scale == "log"
    t = np.log(nodes) if log else np.asarray(nodes, dtype=float)
    if len(t) == 1:
        t = t + np.array([-0.5, 0.5]) * (1e-2 if log else abs(t[0]) * 1e-2 or 1.0)
    else:
        middle = (t[1:] + t[:-1]) / 2
        t = np.concatenate([[2 * t[0] - middle[0]], middle, [2 * t[-1] - middle[-1]]])
    return np.exp(t) if log else t


def _overlay(
    result: Result, pair: tuple[int, int], suffix: str, *, legend: bool = True, on_colours: bool = False
) -> list[tuple[dict[str, Any], Rows]]:
    """Markers of the front and the recommended design over a map: traces and their designs. Those of the front are
    rings around points, or `on_colours` of cells discs that stand out on each of them."""
    front = thinned(np.asarray(result.front(), dtype=np.intp), MARKED)
    several = len(result.problem.objectives) > 1
    recommended = result.recommended() if several else None
    marks: list[tuple[str, Rows, dict[str, Any]]] = [
        (
            "Pareto front" if several else "best design",
            front,
            {"size": 7, **ON_COLOURS}
            if on_colours
            else {"size": 8, "symbol": "circle-open", "color": "@ink", "line": {"width": 0.8, "color": "@ink"}},
        )
    ]
    if recommended is not None:
        label, row = recommended
        marks.append((f"recommended: {plain(label)}", np.array([row]), MARKERS[kinds_of_rows(result)[row]]))
    traces = []
    for name, rows, marker in marks:
        if not len(rows):
            continue
        x, y = (active_values(result)[rows, column] for column in pair)
        points = trace(
            x, y, name, mode="markers", marker=marker, hover=hover(result, figures=len(result.problem.space.free) < 3),
            legendgroup=name, showlegend=legend, xaxis=f"x{suffix}", yaxis=f"y{suffix}",
        )  # fmt: skip
        traces.append((points, rows))
    return traces


def _breaks(result: Result) -> NDArray[np.bool_]:
    """Mask (n,) of the evaluated designs that violate a limit."""
    return np.asarray(~result.outcomes.feasible & ~result.outcomes.failed)


def _crosses(rows: Rows, x: Any, y: Any) -> dict[str, Any]:
    """Crosses for designs that violate a limit, with a legend entry; without designs the entry alone."""
    marker = {"symbol": "x", "size": 7, **ON_COLOURS}
    x, y = (x, y) if len(rows) else ([None], [None])
    return trace(x, y, BREAKS, mode="markers", marker=marker, legendgroup=BREAKS)


def _points(result: Result, rows: Rows, d: int) -> Figure:
    """Designs over every pair of the first `d` parameters (over the figure itself for a single one), coloured."""
    free = result.problem.space.free
    names, values = _layers(result)
    several = len(result.problem.scenarios) > 1
    pairs = list(combinations(range(d), 2))
    data: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    across, down = beside(max(d - 1, 1), 0.07), above(max(d - 1, 1), 0.07)
    room = {1: 70, 2: 70, 3: 34, 4: 24}.get(d, 18)
    violates = _breaks(result)[rows]
    symbols = {"symbol": np.where(violates, CROSS, 0).tolist()} if violates.any() else {}
    for k, (x, y) in enumerate(pairs or [(0, 0)], start=1):
        suffix = "" if k == 1 else str(k)
        bottom = max(y, 1) == max(d - 1, 1)
        axes[f"xaxis{suffix}"] = axis(
            titled(parameter_label(free[x]), room) if bottom else "",
            domain=across[x],
            anchor=f"y{suffix}",
            showticklabels=bottom,
            **scale_of(free[x], 4 if d > 2 else 8),
        )
        up = (
            {"title": titled(parameter_label(free[y]), room) if x == 0 else "", **scale_of(free[y], 4 if d > 2 else 8)}
            if pairs
            else {"title": ""}
        )
        axes[f"yaxis{suffix}"] = axis(
            up.pop("title"),
            domain=down[max(y, 1) - 1],
            anchor=f"x{suffix}",
            showticklabels=x == 0,
            **up,
        )
        marker = {"size": 10 if len(rows) < FEW else 6 if d < 3 else 5, "coloraxis": "coloraxis", **symbols}
        heights = active_values(result)[rows, y] if pairs else values[0][0][rows]
        data.append(
            trace(active_values(result)[rows, x], heights, mode="markers", marker=marker,
                  hover=hover(result, figures=d < 3), xaxis=f"x{suffix}", yaxis=f"y{suffix}")
        )  # fmt: skip
    trace_numbers = ",".join(str(k) for k in range(len(data)))
    designs = dict.fromkeys(range(len(data)), rows)
    if pairs:
        for k, pair in enumerate(pairs, start=1):
            for marks, marker_rows in _overlay(result, pair, "" if k == 1 else str(k), legend=k == 1):
                designs[len(data)] = marker_rows
                data.append(marks)
    if symbols:
        entry = _crosses(rows[:0], [], [])
        data.append({**entry, "marker": {"symbol": "x", "size": 8, "color": "@dim"}, "showlegend": True})
    variants: dict[tuple[int, ...], Any] = {}
    values = [[column[rows] for column in by_scenario] for by_scenario in values]
    colourings = _colourings(values, result.outcomes.feasible[rows])
    for k, (name, by_scenario) in enumerate(zip(names, values, strict=True)):
        for s, column in enumerate(by_scenario):
            colours = colourings[k][s]
            update: dict[str, Any] = {"marker": {"color": colours.numbers}}
            if not pairs:
                update["y"] = column
            title = {"text": titled(name, 48)}
            low, high = colours.limits
            ends = {"cmin": low, "cmax": high}
            change = (
                {"coloraxis": {"colorbar": {"title": title, **colours.ticks}, **ends}}
                if pairs
                else {"yaxis": {"title": title, "type": "log" if colours.is_log else "linear"}}
            )
            variants[(k, s) if several else (k,)] = {"data": {trace_numbers: update}, "layout": change}
    low, high = colourings[0][0].limits
    bar = colour_bar(titled(names[0], 48), **colourings[0][0].ticks)
    coloraxis = {"colorscale": ORDERED_LINES, "colorbar": bar, "showscale": bool(pairs), "cmin": low, "cmax": high}
    labels = [titled(parameter_label(p), 34) for p in free]  # of panels below one another, on a narrow screen
    meta = {"meta": {"maps": [(labels[x], labels[y]) for x, y in pairs]}} if pairs else {}
    return Figure(
        "Figures over the parameters",
        {"data": data, "layout": layout(**axes, coloraxis=coloraxis, **meta)},
        note=_note(names, colourings, has_bar=bool(pairs)),
        height=500 if d < 3 else 200 * (d - 1) + 140,
        designs=designs,
        choices=_choices(result, names),
        variants=variants,
    )
