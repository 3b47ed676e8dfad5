"""Report part `rhythm_map`: where a simplified rhythm of the shoulder misses the torques, over elevation and travel."""

from __future__ import annotations

from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import report_part
from designopt.report.colours import axis, bare_layout, colour_bar
from designopt.report.designs import Plot
from designopt.report.section import Section
from designopt.report.traces import selected
from designopt.store.result import Result

#: Share of the reference's range from which a torque counts as missed.
_MISSED = 0.05
_TORQUES = {"plane_difference": "Torque of the plane of elevation", "elevation_difference": "Torque of elevation"}


@report_part("rhythm_map", version=1)
def rhythm_map(result: Result) -> Section | None:
    """Differences of the torques on a logarithmic scale over elevation angle and travel, with the line of 5 %."""
    outcomes, space = result.outcomes, result.problem.space
    if not len(outcomes.X) or not set(_TORQUES) <= set(outcomes.figures):
        return None
    values = [space.values(x.tolist()) for x in outcomes.X]
    if not all({"elevation_angle", "travel", "rhythm"} <= set(v) for v in values):
        return None
    units = {p.name: p.unit for p in space.parameters}
    axes = {
        "xaxis": axis(f"elevation [{units['elevation_angle']}]"),
        "yaxis": axis(f"travel [{units['travel']}]"),
    }
    words = sorted({str(v["rhythm"]) for v in values})
    figures, findings = [], []
    for name, title in _TORQUES.items():
        worst = np.nanmax(outcomes.figures[name], axis=1)  # over scenarios
        maps = []
        for word in words:
            rows = [i for i, v in enumerate(values) if v["rhythm"] == word and np.isfinite(worst[i])]
            count = int((worst[rows] > _MISSED).sum())
            findings.append(f"{title}, {word}: beyond 5 % in {count} of {len(rows)} designs.")
            angles, travels = ([float(values[i][n]) for i in rows] for n in ("elevation_angle", "travel"))
            maps.append(_plot(angles, travels, worst[rows]))
        figures.append(selected(title, {"Rhythm": words}, maps.__getitem__, bare_layout(**axes), height=420))
    return Section(
        "Where the rhythm fails",
        introduction="Root mean square error of the torque with the design's rhythm, relative to the range "
        "of the torque "
        "with the original one; the worst of the scenarios. The line is at 5 %.",
        figures=tuple(figures),
        findings=tuple(findings),
    )


def _plot(angles: list[float], travels: list[float], differences: Floats) -> list[Plot]:
    x, y = sorted(set(angles)), sorted(set(travels))
    percent = np.full((len(y), len(x)), np.nan)
    for angle, travel, difference in zip(angles, travels, differences, strict=True):
        percent[y.index(travel), x.index(angle)] = 100.0 * difference
    low, high = np.floor(np.log10(np.nanmin(percent))), np.ceil(np.log10(np.nanmax(percent)))
    ticks = np.arange(low, high + 1.0)
    grid: dict[str, Any] = {"x": x, "y": y, "z": np.round(np.log10(percent), 4)}
    bar = colour_bar("difference [%]", tickvals=ticks.tolist(), ticktext=[f"{10.0**t:g}" for t in ticks])
    line = {"start": np.log10(100.0 * _MISSED), "end": np.log10(100.0 * _MISSED), "size": 1.0, "coloring": "none"}
    return [
        {"type": "heatmap", **grid, "zmin": low, "zmax": high, "colorscale": "Viridis", "colorbar": bar,
         "text": [[f"{p:.3g} %" for p in row] for row in percent],
         "hovertemplate": "%{x}, %{y}: %{text}<extra></extra>"},
        {"type": "contour", **grid, "contours": line, "showscale": False, "hoverinfo": "skip",
         "line": {"width": 3, "color": "#ffffff"}},
    ]  # fmt: skip
