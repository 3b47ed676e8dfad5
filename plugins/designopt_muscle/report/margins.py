"""How far every frame is from the edge of what the muscles can do, over time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from designopt.report.colours import axis, layout
from designopt.report.designs import Arrays, Plot, line, selectable
from designopt.report.section import Figure

#: Frames that lack more than ten times the strength are drawn at this.
_LOWEST = -10.0


def margin_figure(found: Mapping[tuple[str, str], Arrays]) -> Figure:
    """The share of the strength that is left in every frame; below 0 what is lacking."""
    return selectable(
        "Feasibility margin", found, _plot, height=320,
        note="The share of their strength that all muscles could lose and still balance the frame without reserves."
        " Frames below 0 are beyond them; those that no strength balances are drawn at the lower edge.",
    )  # fmt: skip


def _plot(arrays: Arrays) -> Plot:
    time, margin = np.asarray(arrays["time"]), np.asarray(arrays["margin"], dtype=float)
    finite = margin[np.isfinite(margin)]
    shown = np.maximum(margin, max(_LOWEST, float(finite.min(initial=-1.0 if np.isinf(margin).any() else 0.0))))
    data = [line(time, shown, "margin", line={"color": "@accent", "width": 1.8}, showlegend=False)]
    short = margin < 0.0
    if short.any():
        data.append(
            {"type": "scatter", "mode": "markers", "x": np.round(time[short], 5), "y": np.round(shown[short], 5),
             "name": "beyond the muscles", "marker": {"color": "@mark", "size": 5},
             "hovertemplate": "%{x:.4g} s: %{y:.1%}<extra>beyond the muscles</extra>"}
        )  # fmt: skip
    edge = {"color": "@ink", "width": 1.2, "dash": "dash"}
    data.append(line(time[[0, -1]], np.zeros(2), "edge", line=edge, showlegend=False))
    lowest = min(float(np.nanmin(shown, initial=0.0)) * 1.08, -0.05)
    return {
        "data": data,
        "layout": layout(xaxis=axis("time [s]"), yaxis=axis("strength left", range=[lowest, 1.02], tickformat=".0%")),
    }
