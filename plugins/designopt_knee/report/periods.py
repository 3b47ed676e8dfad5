"""Report parts `period_map`, `critical_stiffness` and `hip_hiking`: how many gait cycles a response takes to repeat."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import report
from designopt.report.colours import axis, bare_layout, category, colour_bar, layout
from designopt.report.grid import Grid
from designopt.report.labels import parameter_label, plain, plural, with_unit
from designopt.report.parts.designs.map import edges, scale_of
from designopt.report.section import Figure, Section, Selector, Table
from designopt.store.result import Result
from designopt_knee.report.angle import (
    no_scan,
    ratio_names,
    reservations,
    scan,
    selectors,
    stiffness_axis,
    stiffness_of,
)

Matrix = NDArray[np.float64]

#: Colours of the periods, in the order 0 (longer or irregular), 1, 2, 3, 4 gait cycles.
PERIODS = ("#7f7f7f", "#009e73", "#e69f00", "#cc79a7", "#0072b2")
PERIOD_NAMES = ("longer or irregular", "T", "2T", "3T", "4T")


@report("period_map", version=1)
def period_map(result: Result) -> Section | None:
    """After how many gait cycles the response repeats, over stiffness and damping, and the peaks over stiffness."""
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
        known = np.isfinite(n)
        where = f"{scenario.name}: of" if len(scenarios) > 1 else "Of"
        counted = [
            f"{PERIOD_NAMES[i]} {share(float(np.mean(n[known] == i)))}"
            for i in (1, 2, 3, 4, 0)
            if (n[known] == i).any()
        ]
        findings.append(f"{where} {plural(int(known.sum()), 'scanned design')} with a result: {', '.join(counted)}.")
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
    scenarios = result.problem.scenarios
    columns = [grid.take(result.outcomes.figures["period_n"][:, s]) for s in range(len(scenarios))]
    steps = [(edge / 5, colour) for i, colour in enumerate(PERIODS) for edge in (i, i + 1)]
    p = next((p for p in result.problem.space.free if p.name == "damping_ratio"), None)
    data: dict[str, Any] = {
        "type": "heatmap",
        "x": edges(grid.x, stiffness_of(result)),
        "y": edges(grid.y, p) if p else [-0.5, 0.5],
        **_cells(columns[0]),
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
        data |= {"texttemplate": "%{text}", "textfont": {"size": 10, "color": "#ffffff"}}
    up = axis(plain(parameter_label(p)), **scale_of(p)) if p else axis("", showticklabels=False)
    several = len(scenarios) > 1
    return Figure(
        "Period over stiffness and damping",
        {"data": [data], "layout": bare_layout(xaxis=stiffness_axis(result), yaxis=up)},
        note="“–” in a cell: longer than four cycles, or irregular. Cells without a result are blank.",
        height=440 if p else 260,
        choices=(Selector("Scenario", tuple(s.name for s in scenarios)),) if several else (),
        variants={(s,): {"data": {"0": _cells(z)}} for s, z in enumerate(columns)} if several else {},
    )


def _cells(periods: Matrix) -> dict[str, Any]:
    """Periods for the colours of the map, as words for the pointer and as signs to stand in the cells."""
    words = [[PERIOD_NAMES[int(n)] if np.isfinite(n) else "" for n in line] for line in periods.tolist()]
    signs = [["–" if word == PERIOD_NAMES[0] else word for word in line] for line in words]
    return {"z": periods, "customdata": words, "text": signs}


def _peaks(result: Result, grid: Grid) -> Figure | None:
    """Largest knee angle of each of the last cycles over stiffness: one point where every cycle is alike."""
    choices, keys = selectors(result, grid)
    variants: dict[tuple[int, ...], Any] = {}
    recorded = None
    for key, q, s in keys:
        x, y = [], []
        for k, row in zip(grid.x.tolist(), grid.rows[q].tolist(), strict=True):
            arrays = result.arrays(row, s) if row >= 0 else {}
            peaks = arrays.get("knee_peaks", np.empty(0))
            x += [k] * len(peaks)
            y += peaks.tolist()
            if recorded is None and "knee_angle_recorded" in arrays:
                recorded = float(arrays["knee_angle_recorded"].max())
        variants[key] = {"data": {"0": {"x": np.array(x), "y": np.array(y)}}}
    if not any(len(v["data"]["0"]["x"]) for v in variants.values()):
        return None
    first = next(iter(variants.values()))["data"]["0"]
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "one cycle each",
            **first,
            "marker": {"size": 4, "color": "@accent", "opacity": 0.75},
            "hovertemplate": "k %{x:.5~g}: <b>%{y:.2f} deg</b><extra></extra>",
        }
    ]
    if recorded is not None:
        ends = [float(grid.x.min()), float(grid.x.max())]
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": "recorded peak",
                "x": ends,
                "y": [recorded, recorded],
                "line": {"color": "@good", "dash": "dash", "width": 1.6},
                "hoverinfo": "skip",
            }
        )
    axes = {"xaxis": stiffness_axis(result), "yaxis": axis("largest knee angle of a cycle [deg]")}
    return Figure(
        "Peaks of the last cycles over stiffness",
        {"data": data, "layout": layout(**axes)},
        height=440,
        note="Where points of one stiffness lie on top of each other the response repeats every cycle; two groups are "
        "a period of two cycles, a smear is irregular.",
        choices=choices,
        variants=variants,
    )


@report("critical_stiffness", version=1)
def critical_stiffness(result: Result) -> Section | None:
    """Smallest stiffness from which on every scanned one has a response of one gait cycle, for each damping ratio."""
    title = "Critical stiffness"
    grid = scan(result)
    if grid is None or "period_n" not in result.outcomes.figures:
        return no_scan(title)
    p, scenarios = stiffness_of(result), result.problem.scenarios
    several = len(scenarios) > 1
    ratios = ratio_names(result, grid)
    rows: list[tuple[Any, ...]] = []
    data: list[dict[str, Any]] = []
    for s, scenario in enumerate(scenarios):
        periods = grid.take(result.outcomes.figures["period_n"][:, s])
        points = []
        for q, name in enumerate(ratios):
            critical, below = critical_value(grid.x, periods[q])
            step = critical - below
            if np.isnan(critical):
                said = "the largest scanned stiffness is not of period T"
            elif np.isnan(below):
                said = "every scanned stiffness is of period T: the critical one lies at or below the smallest"
            else:
                said = ""
            rows.append((*((scenario.name,) if several else ()), name, critical, below, step, said))
            points.append((critical, step if np.isfinite(step) else 0.0))
        y, down = np.array(points).T
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": plain(scenario.name),
                "showlegend": several,
                "x": grid.y if len(grid.y) > 1 else list(ratios),
                "y": y,
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "array": np.zeros(len(y)),
                    "arrayminus": down,
                    "thickness": 1.2,
                    "width": 5,
                },
                "line": {"color": category(s), "width": 1.6},
                "marker": {"size": 7},
                "hovertemplate": "c/k %{x:.4~g}: <b>%{y:.5~g}</b><extra></extra>",
            }
        )
    c = next((c for c in result.problem.space.parameters if c.name == "damping_ratio"), None)
    across = axis(plain(parameter_label(c)) if c else "")
    if len(grid.y) == 1:
        across["type"] = "category"
    axes = {"xaxis": across, "yaxis": axis(f"critical {plain(parameter_label(p))}")}
    unit = f" [{p.unit}]" if p.unit else ""
    head = (
        *(("scenario",) if several else ()),
        "c/k",
        f"critical stiffness{unit}",
        f"next smaller scanned{unit}",
        f"grid step there{unit}",
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
        tables=(Table("Critical stiffness", head, tuple(rows), shown=60),),
        notes=reservations(result),
    )


def critical_value(stiffness: Matrix, period: Matrix) -> tuple[float, float]:
    """Critical stiffness and the next smaller scanned one; NaN where there is none.

    `stiffness` (p,) rises; `period` (p,) is 1 where the response repeats every cycle; a design without a result (NaN)
    counts as one that does not.
    """
    broken = np.flatnonzero(period != 1.0)
    first = int(broken[-1]) + 1 if len(broken) else 0
    critical = float(stiffness[first]) if first < len(stiffness) else float("nan")
    return critical, float(stiffness[first - 1]) if first else float("nan")


@report("hip_hiking", version=1)
def hip_hiking(result: Result) -> Section | None:
    """Agreement, peak and period over stiffness, scenario against scenario (a raised hip, usually)."""
    title = "Hip hiking"
    scenarios = result.problem.scenarios
    grid = scan(result)
    if len(scenarios) < 2:
        return None
    if grid is None:
        return no_scan(title)
    outputs = result.problem.model.plugin.outputs
    names = [n for n in ("rho", "peak_flexion", "period_n") if n in result.outcomes.figures]
    choices, keys = selectors(result, grid)
    choices = choices[:1]
    m, gap = len(names), 0.06
    size = (1.0 - gap * (m - 1)) / m
    axes: dict[str, Any] = {"xaxis": stiffness_axis(result, anchor=f"y{m}" if m > 1 else "y")}
    data: list[dict[str, Any]] = []
    variants: dict[tuple[int, ...], Any] = {(k[0],): {"data": {}} for k, _, _ in keys}
    for j, name in enumerate(names):
        suffix = "" if j == 0 else str(j + 1)
        top = 1.0 - j * (size + gap)
        quantity = outputs[name].quantity if name in outputs else None
        ticks = {"tickvals": [0, 1, 2, 3, 4], "range": [-0.4, 4.4]} if name == "period_n" else {}
        title_text = with_unit(name, quantity.unit if quantity is not None else "")
        axes[f"yaxis{suffix}"] = axis(title_text, domain=[max(top - size, 0.0), top], **ticks)
        for s, scenario in enumerate(scenarios):
            for key, q, at in keys:
                if at == s:
                    y = grid.take(result.outcomes.figures[name][:, s])[q]
                    variants[(key[0],)]["data"][str(len(data))] = {"y": y}
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "name": plain(scenario.name),
                    "legendgroup": str(s),
                    "showlegend": j == 0,
                    "x": grid.x,
                    "y": variants[(0,)]["data"][str(len(data))]["y"],
                    "yaxis": f"y{suffix}",
                    "line": {"color": category(s), "width": 1.6},
                    "marker": {"size": 5, "symbol": s % 8, "color": category(s)},
                    "hovertemplate": f"{plain(scenario.name)}, k %{{x:.5~g}}: <b>%{{y:.4~g}}</b><extra></extra>",
                }
            )
    findings = []
    if "period_n" in names:
        for s, scenario in enumerate(scenarios):
            n = grid.take(result.outcomes.figures["period_n"][:, s])
            share = np.mean(n[np.isfinite(n)] == 1) if np.isfinite(n).any() else 0.0
            findings.append(f"{scenario.name}: {share:.0%} of the scanned designs have period T.".replace("%", " %"))
    return Section(
        title,
        introduction="The same dampers under every scenario: what the conditions change in the agreement with the "
        "recorded knee (rho), in the flexion and in the period.",
        findings=tuple(findings),
        figures=(
            Figure(
                "Scenarios over stiffness",
                {"data": data, "layout": layout(**axes)},
                height=190 * m + 120,
                choices=choices,
                variants=variants,
            ),
        ),
        notes=reservations(result),
    )
