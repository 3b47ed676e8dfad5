"""Where on the curve of active force the fibres of muscles work."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from designopt.report.colours import axis, layout
from designopt.report.designs import Arrays, Plot, line, selectable
from designopt.report.section import Figure
from designopt_muscle.curves import OPENSIM


def fibre_ranges(found: Mapping[tuple[str, str], Arrays]) -> Figure:
    """Range and median of each muscle's fibre length over the trial, below the curve of active force."""
    count = max(len(arrays["muscles"]) for arrays in found.values())
    return selectable(
        "Fibre lengths", found, _plot, height=int(np.clip(140 + 16 * count, 300, 1600)),
        note="Lines are ranges over the trial, points medians, in optimal lengths; the area is the active force.",
    )  # fmt: skip


def _plot(arrays: Arrays) -> Plot:
    lengths = np.asarray(arrays["fibre_lengths"], dtype=float)
    names = [str(name) for name in arrays["muscles"]]
    low, middle, high = (np.nanquantile(lengths, share, axis=0) for share in (0.0, 0.5, 1.0))
    ends = np.full((3, len(names)), np.nan)
    ends[0], ends[1] = low, high
    rows = np.repeat(np.arange(len(names)), 3)
    x = np.linspace(min(0.4, float(low.min())), max(1.6, float(high.max())), 200)
    data = [
        line(x, OPENSIM.active_length(x), line={"color": "@faint", "width": 0}, fill="tozeroy"),
        line(ends.T.ravel(), rows, line={"color": "@accent", "width": 3}, yaxis="y2"),
        {"type": "scatter", "mode": "markers", "x": np.round(middle, 5), "y": np.arange(len(names)), "text": names,
         "showlegend": False, "yaxis": "y2", "marker": {"color": "@accent", "size": 8},
         "hovertemplate": "%{text}: %{x:.3f}<extra></extra>"},
    ]  # fmt: skip
    ticks = {"tickmode": "array", "tickvals": np.arange(len(names)), "ticktext": names, "automargin": True}
    return {
        "data": data,
        "layout": layout(
            xaxis=axis("fibre length [optimal lengths]"),
            yaxis=axis("active force", side="right", range=[0.0, 1.05], dtick=0.5, showgrid=False),
            yaxis2=axis("", overlaying="y", side="left", range=[len(names) - 0.5, -0.5], showgrid=False, **ticks),
        ),
    }
