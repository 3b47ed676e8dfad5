"""Report part `damper_families`: agreement and flexion over stiffness, one curve for each damping."""

from __future__ import annotations

from functools import partial

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.grid import Grid
from designopt.report.labels import plain, thinned, with_unit
from designopt.report.section import Section
from designopt.report.traces import Trace, scenario_names, selected, trace
from designopt.store.result import Result
from designopt_knee.report.angle import lacks_scan, no_scan, ratio_names, reservations, scan, stiffness_axis

#: Figures of the model that are drawn, with their titles and units.
_CURVES = (
    ("rho", "Correlation with the recorded knee angle", ""),
    ("peak_flexion", "Largest knee angle", "deg"),
    ("peak_error", "Largest knee angle less the recorded one", "deg"),
    ("rms_error", "Difference to the recorded knee angle", "deg"),
    ("toe_clearance", "Toe clearance in swing", "m"),
)
#: Maximum number of drawn dampings, evenly spread.
FAMILIES = 8


@report_part("damper_families", version=1, lacks=lacks_scan)
def damper_families(result: Result) -> Section | None:
    """Agreement, flexion and clearance over stiffness for each damping ratio; joined points have period T."""
    title = "Damping by damping"
    grid = scan(result)
    figures = result.outcomes.figures
    if grid is None or "period_n" not in figures:
        return no_scan(title)
    choices, x = {"Scenario": scenario_names(result)}, stiffness_axis(result)
    family_figures = tuple(
        selected(heading, choices, partial(_curves, result, grid, name), height=400,
                 layout=layout(xaxis=x, yaxis=axis(with_unit(name, unit))))
        for name, heading, unit in _CURVES
        if name in figures
    )  # fmt: skip
    return Section(
        title,
        introduction="One curve for each c/k. Filled points repeat every gait cycle and are joined; open "
        "points do not, "
        "and their figures are those of the last cycles.",
        figures=family_figures,
        notes=reservations(result),
    )


def _curves(result: Result, grid: Grid, name: str, s: int) -> list[Trace]:
    """Two traces for each damping ratio: the points of period T, joined, and the others."""
    values, periods = (grid.take(result.outcomes.figures[f][:, s]) for f in (name, "period_n"))
    ratios, traces = ratio_names(result, grid), []
    for k, q in enumerate(thinned(np.arange(len(ratios)), FAMILIES).tolist()):
        words, is_period_one = plain(f"c/k {ratios[q]}"), periods[q] == 1.0
        marker = {"size": 5, "color": category(k), "symbol": k % 8}
        open_marker = {**marker, "symbol": k % 8 + 100, "opacity": 0.6}
        hover = f"{words}, k %{{x:.5~g}}: <b>%{{y:.4~g}}</b>"
        line_values, alone = np.where(is_period_one, values[q], np.nan), np.where(is_period_one, np.nan, values[q])
        traces += [
            trace(grid.x, line_values, words, mode="lines+markers", colour=category(k), width=1.6, marker=marker,
                  hover=hover, legendgroup=str(k)),
            trace(grid.x, alone, words, mode="markers", marker=open_marker, hover=hover, legendgroup=str(k),
                  showlegend=False),
        ]  # fmt: skip
    return traces
