"""Curves of several runs as their median with a band between the quartiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.report.colours import THEMED, category
from designopt.report.labels import number, plain
from designopt.report.traces import trace


def median_with_band(x: Sequence[float], curves: Floats, name: str, i: int) -> list[dict[str, Any]]:
    """Traces of the median of `curves` (runs, places) over `x` and, of several runs, of the band between its quartiles;
    colour number `i`."""
    low, median, high = np.nanquantile(curves, (0.25, 0.5, 0.75), axis=0)
    colour = category(i)
    runs = f"{len(curves)} runs" if len(curves) > 1 else "1 run"
    hover = [f"{number(float(a))} to {number(float(b))}" for a, b in zip(low, high, strict=True)]
    line = trace(
        x, median, plain(f"{name} ({runs})"), line={"color": colour, "width": 2.2, "shape": "hv"},
        hover=f"{plain(name)}, %{{x}} designs: <b>%{{y:.4~g}}</b> (%{{customdata}})", customdata=hover,
        legendgroup=f"g{i}",
    )  # fmt: skip
    if len(curves) < 2:
        return [line]
    edge: dict[str, Any] = {
        "line": {"width": 0, "color": colour, "shape": "hv"},
        "hoverinfo": "skip",
        "legendgroup": f"g{i}",
    }
    light = THEMED[colour][0]
    fill = f"rgba({','.join(str(int(light[k : k + 2], 16)) for k in (1, 3, 5))},0.18)"
    return [trace(x, low, **edge), trace(x, high, **edge, fill="tonexty", fillcolor=fill), line]
