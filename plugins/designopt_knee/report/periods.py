"""Report parts `period_map`, `critical_stiffness` and `hip_hiking`: how many gait cycles a response takes to repeat."""

from __future__ import annotations

from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.counts import plural
from designopt.plugin import report_part
from designopt.report.colours import CELL_TEXT, axis, bare_layout, category, colour_bar, layout
from designopt.report.grid import Grid
from designopt.report.labels import figure_unit, parameter_label, plain, with_unit
from designopt.report.parts.designs.map import edges, scale_of
from designopt.report.section import Figure, Section
from designopt.report.traces import Trace, scenario_names, selected, stacked_axes, trace
from designopt.store.result import Result
from designopt_knee.report.angle import (
    SWEEP,
    lacks_scan,
    no_scan,
    ratio_names,
    reservations,
    scan,
    scan_choices,
    scenario_table,
    stiffness_axis,
    stiffness_of,
)

#: Colours of the periods, in the order 0 (longer or irregular), 1, 2, 3, 4 gait cycles.
PERIODS = ("#7f7f7f", "#009e73", "#e69f00", "#cc79a7", "#0072b2")
PERIOD_NAMES = ("longer or irregular", "T", "2T", "3T", "4T")


@report_part("period_map", version=1, lacks=lacks_scan)
def period_map(result: Result) -> Section | None:
    """Period of the response in gait cycles over stiffness and damping, and the peaks over stiffness."""
    title = "Period of the response"
    grid = scan(result)
    if grid is None or "period_n" not in result.outcomes.figures:
        return no_scan(title)
    figures = [_period_heat_map(result, grid)]
    peaks = _peaks(result, grid)
    if peaks is not None:
        figures.append(peaks)
    scenarios = result.problem.scenarios
    findings = []
    for s, scenario in enumerate(scenarios):
        n = grid.take(result.outcomes.figures["period_n"][:, s])
        is_known = np.isfinite(n)
        prefix = f"{scenario.name}: of" if len(scenarios) > 1 else "Of"
        counts = [
            f"{PERIOD_NAMES[i]} {share(float(np.mean(n[is_known] == i)))}"
            for i in (1, 2, 3, 4, 0)
            if (n[is_known] == i).any()
        ]
        findings.append(f"{prefix} {plural(int(is_known.sum()), 'scanned design')} with a result: {', '.join(counts)}.")
    notes = reservations(result)
    if peaks is None:
        notes = ("The peaks over stiffness need execution: {arrays: {knee_peaks: all}}.", *notes)
    return Section(
        title,
        introduction="T is one gait cycle. A period of T means that every step is like the one before; 2T that every "
        "second one is.",
        findings=tuple(findings),
        figures=tuple(figures),
        notes=notes,
    )


def share(part: float) -> str:
    """A share in percent that is neither "0 %" nor "100 %" unless it is nothing or all."""
    if 0.0 < part < 0.005:
        return "<1 %"
    return ">99 %" if 0.995 <= part < 1.0 else f"{100 * part:.0f} %"


def _period_heat_map(result: Result, grid: Grid) -> Figure:
    steps = [(edge / 5, colour) for i, colour in enumerate(PERIODS) for edge in (i, i + 1)]
    p = next((p for p in result.problem.space.free if p.name == "damping_ratio"), None)
    map_: Trace = {
        "type": "heatmap",
        "x": edges(grid.x, stiffness_of(result)),
        "y": edges(grid.y, p) if p else [-0.5, 0.5],
        "zmin": -0.5,
        "zmax": 4.5,
        "colorscale": steps,
        "colorbar": colour_bar("", tickvals=[0, 1, 2, 3, 4], ticktext=list(PERIOD_NAMES)),
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
        "hovertemplate": "k %{x:.5~g}, c/k %{y:.4~g}: <b>%{customdata}</b><extra></extra>",
    }
    if grid.rows.size <= 400:  # the period in each cell: colour is not the only sign
        map_ |= {"texttemplate": "%{text}", "textfont": {**CELL_TEXT, "size": 10}}
    up = axis(plain(parameter_label(p)), **scale_of(p)) if p else axis("", showticklabels=False)
    return selected(
        "Period over stiffness and damping",
        {"Scenario": scenario_names(result)},
        lambda s: [map_ | _cells(grid.take(result.outcomes.figures["period_n"][:, s]))],
        bare_layout(xaxis=stiffness_axis(result), yaxis=up),
        note="“–” in a cell: longer than four cycles, or irregular. Cells without a result are blank.",
        height=440 if p else 260,
    )


def _cells(periods: Floats) -> dict[str, Any]:
    """Periods for the colours of the map, as words for the pointer and as signs to stand in the cells."""
    words = [[PERIOD_NAMES[int(n)] if np.isfinite(n) else "" for n in line] for line in periods.tolist()]
    signs = [["–" if word == PERIOD_NAMES[0] else word for word in line] for line in words]
    return {"z": periods, "customdata": words, "text": signs}


def _peaks(result: Result, grid: Grid) -> Figure | None:
    """Largest knee angle of each of the last cycles over stiffness: one point where every cycle is alike."""
    choices, rows_shown = scan_choices(result, grid)
    every = range(len(result.problem.scenarios))
    traces_of = {(k, s): _cycles(result, grid, q, s) for k, q in enumerate(rows_shown) for s in every}
    if not any(len(traces[0]["x"]) for traces in traces_of.values()):
        return None
    axes = {"xaxis": stiffness_axis(result), "yaxis": axis("largest knee angle of a cycle [deg]")}
    return selected(
        "Peaks of the last cycles over stiffness",
        choices,
        lambda *at: traces_of[at],
        layout(**axes),
        height=440,
        note="Where points of one stiffness lie on top of each other the response repeats every cycle; two groups are "
        "a period of two cycles, a smear is irregular.",
    )


def _cycles(result: Result, grid: Grid, q: int, s: int) -> list[Trace]:
    """Peaks of every cycle at one damping ratio, and the recorded one."""
    x, y, recorded_peak = [], [], np.empty(0)
    for k, row in zip(grid.x.tolist(), grid.rows[q].tolist(), strict=True):
        arrays = result.arrays(row, s) if row >= 0 else {}
        peaks = arrays.get("knee_peaks", np.empty(0))
        x += [k] * len(peaks)
        y += peaks.tolist()
        if "knee_angle_recorded" in arrays:
            recorded_peak = np.full(2, arrays["knee_angle_recorded"].max())
    marker = {"size": 4, "color": "@accent", "opacity": 0.75}
    hover = "k %{x:.5~g}: <b>%{y:.2f} deg</b>"
    ends = grid.x[[0, -1]][: len(recorded_peak)]
    return [
        trace(np.array(x), np.array(y), "one cycle each", mode="markers", marker=marker, hover=hover),
        trace(ends, recorded_peak, "recorded peak", colour="@good", dash="dash", width=1.6),
    ]


@report_part("critical_stiffness", version=1, lacks=lacks_scan)
def critical_stiffness(result: Result) -> Section | None:
    """Smallest stiffness from which on every scanned one has a response of one gait cycle, for each damping ratio."""
    title = "Critical stiffness"
    grid = scan(result)
    if grid is None or "period_n" not in result.outcomes.figures:
        return no_scan(title)
    p, names, ratios = stiffness_of(result), scenario_names(result), ratio_names(result, grid)
    cells: list[tuple[int, tuple[Any, ...]]] = []
    data: list[Trace] = []
    for s, scenario in enumerate(names):
        periods = grid.take(result.outcomes.figures["period_n"][:, s])
        criticals = [critical_value(grid.x, period) for period in periods]
        y, below = np.array(criticals).T
        down = np.nan_to_num(y - below)
        for ratio, (critical, smaller) in zip(ratios, criticals, strict=True):
            if np.isnan(critical):
                reason = "the largest scanned stiffness is not of period T"
            elif np.isnan(smaller):
                reason = "every scanned stiffness is of period T: the critical one lies at or below the smallest"
            else:
                reason = ""
            cells.append((s, (ratio, critical, smaller, critical - smaller, reason)))
        bars = {"type": "data", "symmetric": False, "array": np.zeros(len(y)), "arrayminus": down}
        data.append(
            trace(grid.y if len(grid.y) > 1 else list(ratios), y, plain(scenario), mode="lines+markers",
                  colour=category(s), width=1.6, error_y={**bars, "thickness": 1.2, "width": 5}, marker={"size": 7},
                  hover="c/k %{x:.4~g}: <b>%{y:.5~g}</b>", showlegend=len(names) > 1)
        )  # fmt: skip
    c = next((c for c in result.problem.space.parameters if c.name == "damping_ratio"), None)
    across = axis(plain(parameter_label(c)) if c else "")
    if len(grid.y) == 1:
        across["type"] = "category"
    axes = {"xaxis": across, "yaxis": axis(f"critical {plain(parameter_label(p))}")}
    columns = (
        "c/k",
        *(with_unit(name, p.unit) for name in ("critical stiffness", "next smaller scanned", "grid step there")),
        "",
    )
    return Section(
        title,
        introduction="The smallest scanned stiffness such that it and every larger one scanned has a response that "
        "repeats every gait cycle. It is known to the step of the grid only: the bars reach down to the next smaller "
        "stiffness, which does not repeat (or gave no result).",
        figures=(
            Figure("Critical stiffness over damping ratio", {"data": data, "layout": layout(**axes)}, height=400),
        ),
        tables=(scenario_table(result, "Critical stiffness", columns, cells),),
        notes=reservations(result),
    )


def critical_value(stiffness: Floats, period: Floats) -> tuple[float, float]:
    """Critical stiffness and the next smaller scanned one; NaN if there is none.

    `stiffness` (p,) increases; `period` (p,) is 1 for a response that repeats every cycle; a design without a result
    (NaN) counts as one that does not.
    """
    other_periods = np.flatnonzero(period != 1.0)
    first = int(other_periods[-1]) + 1 if len(other_periods) else 0
    critical = float(stiffness[first]) if first < len(stiffness) else float("nan")
    return critical, float(stiffness[first - 1]) if first else float("nan")


@report_part("hip_hiking", version=1, lacks=lacks_scan)
def hip_hiking(result: Result) -> Section | None:
    """Agreement, peak and period over stiffness, scenario against scenario (a raised hip, usually)."""
    title = "Hip hiking"
    scenarios = scenario_names(result)
    grid = scan(result)
    if len(scenarios) < 2:
        return None
    if grid is None:
        return no_scan(title)
    figures = result.outcomes.figures
    names = [n for n in ("rho", "peak_flexion", "period_n") if n in figures]
    choices, rows_shown = scan_choices(result, grid)

    def draw(k: int) -> list[Trace]:
        return [
            trace(grid.x, grid.take(figures[name][:, s])[rows_shown[k]], plain(scenario), mode="lines+markers",
                  colour=category(s), width=1.6, marker={"size": 5, "symbol": s % 8, "color": category(s)},
                  hover=f"{plain(scenario)}, k %{{x:.5~g}}: <b>%{{y:.4~g}}</b>", yaxis=axis_name, legendgroup=str(s),
                  showlegend=axis_name == "y")
            for name, axis_name in zip(names, axis_names, strict=True)
            for s, scenario in enumerate(scenarios)
        ]  # fmt: skip

    ticks = {"period_n": {"tickvals": [0, 1, 2, 3, 4], "range": [-0.4, 4.4]}}
    axis_names, axes = stacked_axes([(with_unit(n, figure_unit(result.problem, n)), ticks.get(n, {})) for n in names])
    findings = []
    if "period_n" in names:
        for s, scenario in enumerate(scenarios):
            n = grid.take(figures["period_n"][:, s])
            share = np.mean(n[np.isfinite(n)] == 1) if np.isfinite(n).any() else 0.0
            findings.append(f"{scenario}: {share:.0%} of the scanned designs have period T.".replace("%", " %"))
    return Section(
        title,
        introduction="The same dampers under every scenario: what the conditions change in the agreement with the "
        "recorded knee (rho), in the flexion and in the period.",
        findings=tuple(findings),
        figures=(
            selected(
                "Scenarios over stiffness",
                {SWEEP: choices[SWEEP]},
                draw,
                layout(xaxis=stiffness_axis(result, anchor=axis_names[-1]), **axes),
                height=190 * len(names) + 120,
            ),
        ),
        notes=reservations(result),
    )
