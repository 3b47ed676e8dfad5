"""Report part `damper_families`: agreement and flexion over stiffness, one curve for each damping."""

from __future__ import annotations

from typing import Any

import numpy as np

from designopt.plugin import report
from designopt.report.colours import axis, category, layout
from designopt.report.labels import plain, with_unit
from designopt.report.section import Figure, Section, Selector
from designopt.store.result import Result
from designopt_knee.report.angle import no_scan, ratio_names, reservations, scan, stiffness_axis

#: Figures of the model that are drawn, with their titles and units.
_CURVES = (
    ("rho", "Correlation with the recorded knee angle", ""),
    ("peak_flexion", "Largest knee angle", "deg"),
    ("peak_error", "Largest knee angle less the recorded one", "deg"),
    ("rms_error", "Difference to the recorded knee angle", "deg"),
    ("toe_clearance", "Toe clearance in swing", "m"),
)
#: At most so many dampings are drawn, evenly spread.
FAMILIES = 8


@report("damper_families", version=1)
def damper_families(result: Result) -> Section | None:
    """Agreement, flexion and clearance over stiffness for each damping ratio; joined points have period T."""
    title = "Damping by damping"
    grid = scan(result)
    figures, scenarios = result.outcomes.figures, result.problem.scenarios
    if grid is None or "period_n" not in figures:
        return no_scan(title)
    names = ratio_names(result, grid)
    taken = np.unique(np.linspace(0, len(names) - 1, min(len(names), FAMILIES)).round().astype(int)).tolist()
    drawn = []
    for name, heading, unit in _CURVES:
        if name not in figures:
            continue
        variants: dict[tuple[int, ...], Any] = {}
        for s in range(len(scenarios)):
            values, periods = (grid.take(figures[f][:, s]) for f in (name, "period_n"))
            once = np.where(periods == 1.0, values, np.nan)
            changes = {}
            for k, q in enumerate(taken):
                changes[str(2 * k)] = {"y": once[q]}
                changes[str(2 * k + 1)] = {"y": np.where(periods[q] == 1.0, np.nan, values[q])}
            variants[(s,)] = {"data": changes}
        data: list[dict[str, Any]] = []
        for k, q in enumerate(taken):
            words, colour, symbol = plain(f"c/k {names[q]}"), category(k), k % 8
            line = {
                "type": "scatter",
                "x": grid.x,
                "name": words,
                "legendgroup": str(k),
                "hovertemplate": f"{words}, k %{{x:.5~g}}: <b>%{{y:.4~g}}</b><extra></extra>",
            }
            first = variants[(0,)]["data"]
            marker = {"size": 5, "color": colour, "symbol": symbol}
            data += [
                {
                    **line,
                    **first[str(2 * k)],
                    "mode": "lines+markers",
                    "line": {"color": colour, "width": 1.6},
                    "marker": marker,
                },
                {
                    **line,
                    **first[str(2 * k + 1)],
                    "mode": "markers",
                    "showlegend": False,
                    "marker": {**marker, "symbol": symbol + 100, "opacity": 0.6},
                },
            ]
        axes = {"xaxis": stiffness_axis(result), "yaxis": axis(with_unit(name, unit))}
        several = len(scenarios) > 1
        drawn.append(
            Figure(
                heading,
                {"data": data, "layout": layout(**axes)},
                height=400,
                choices=(Selector("Scenario", tuple(s.name for s in scenarios)),) if several else (),
                variants=variants if several else {},
            )
        )
    return Section(
        title,
        introduction="One curve for each c/k. Full points repeat every gait cycle and are joined; open points do not, "
        "and their figures are those of the last cycles.",
        figures=tuple(drawn),
        notes=reservations(result),
    )
