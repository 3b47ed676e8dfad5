"""The unit of time in figures of motions: s, or ms or µs where all of them are short."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from designopt.report.section import Figure

if TYPE_CHECKING:
    from designopt.collocation.solution.solution import PhaseSolution

#: Units of time by their size in s, and the least duration (s) in each.
_UNITS = (("s", 1.0, 0.1), ("ms", 1e-3, 1e-4), ("µs", 1e-6, 0.0))


def time_unit(phases: Iterable[PhaseSolution]) -> tuple[str, float]:
    """The unit of time of figures of these phases, and its size (s)."""
    last = max((abs(time) for phase in phases for time in (phase.t0, phase.tf)), default=1.0)
    return next((unit, size) for unit, size, least in _UNITS if last >= least)


def in_time_unit(figure: Figure, unit: str, size: float) -> Figure:
    """The `figure`, whose x axis is a time in s, in the `unit` of a `size` (s)."""
    if size == 1.0:
        return figure
    variants = {key: _rescaled(plot, unit, size) for key, plot in figure.variants.items()}
    return replace(figure, plot=_rescaled(figure.plot, unit, size), variants=variants)


def _rescaled(plot: Mapping[str, Any], unit: str, size: float) -> dict[str, Any]:
    """The plot with all times divided by `size`."""
    data = []
    for trace in plot["data"]:
        times = {name: np.asarray(trace[name], dtype=float) / size for name in ("x", "width") if name in trace}
        hover = trace.get("hovertemplate", "").replace("%{x:.4~g} s", f"%{{x:.4~g}} {unit}")
        data.append({**trace, **times, **({"hovertemplate": hover} if hover else {})})
    layout = plot["layout"]
    shapes = [{**shape, "x0": shape["x0"] / size, "x1": shape["x1"] / size} for shape in layout.get("shapes", ())]
    time_axis = {**layout["xaxis"], "title": {**layout["xaxis"]["title"], "text": f"time [{unit}]"}}
    return {**plot, "data": data, "layout": {**layout, "xaxis": time_axis, **({"shapes": shapes} if shapes else {})}}
