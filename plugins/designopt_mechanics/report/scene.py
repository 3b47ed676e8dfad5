"""Report part `mechanism_scene`: the mechanism of a design in motion, in the plane or in space."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import report
from designopt.report.colours import axis, layout
from designopt.report.designs import Arrays, Plot, kept, missing, selectable
from designopt.report.section import Section
from designopt.store.result import Result

Matrix = NDArray[np.float64]

#: Frames of an animation, and milliseconds that one is shown.
FRAMES, SHOWN = 60, 50
_LINE = {"color": "@accent", "width": 4}
_DOT = {"size": 4, "color": "@ink"}


@report("mechanism_scene", version=1)
def mechanism_scene(result: Result) -> Section | None:
    """The moving drawing of a mechanism, from the arrays `time` and `scene`."""
    title = "The mechanism in motion"
    motions = kept(result, "time", "scene")
    if not motions:
        return missing(title, "time", "scene") if len(result.outcomes.X) else None
    figure = selectable(
        "Motion", motions, _plot, height=560, note="Drawn to scale; faint lines are the ways of points."
    )
    return Section(title, figures=(figure,))


def _plot(arrays: Arrays) -> Plot:
    places, time = np.asarray(arrays["scene"], dtype=np.float64), np.asarray(arrays["time"], dtype=np.float64)
    shown = np.unique(np.linspace(0, len(time) - 1, min(FRAMES, len(time))).round().astype(int))
    spatial = places.shape[2] == 3
    ways = _ways(places[shown])
    data = [
        _trace(ways, mode="lines", line={"color": "@faint", "width": 1}),
        _trace(places[0], mode="lines+markers", line=_LINE, marker=_DOT),
    ]
    frames = [
        {"name": str(k), "data": [_coordinates(places[i])], "traces": [1]} for k, i in enumerate(shown)
    ]  # fmt: skip
    low, high = np.nanmin(places, axis=(0, 1)), np.nanmax(places, axis=(0, 1))
    margin = 0.05 * float((high - low).max())
    ranges = [[float(a) - margin, float(b) + margin] for a, b in zip(low, high, strict=True)]
    names = [f"{1e3 * time[i]:.4g} ms" if time[-1] < 1.0 else f"{time[i]:.3g} s" for i in shown]
    axes: dict[str, Any]
    if spatial:
        sides = {f"{n}axis": axis(f"{n} [m]", range=r) for n, r in zip("xyz", ranges, strict=True)}
        axes = {"scene": {"aspectmode": "data", **sides}}
    else:
        axes = {
            "xaxis": axis("x [m]", range=ranges[0], zeroline=False),
            "yaxis": axis("y [m]", range=ranges[1], zeroline=False, scaleanchor="x"),
        }
    margins = {"l": 60, "r": 20, "t": 30, "b": 20}
    below = {"updatemenus": [_buttons()], "sliders": [_slider(names)]}
    return {"data": data, "frames": frames, "layout": layout(**axes, **below, showlegend=False, margin=margins)}


def _ways(places: Matrix) -> Matrix:
    """The way of every vertex, NaN between them."""
    gap = np.full((1, *places.shape[1:]), np.nan)
    return np.concatenate([places, gap]).transpose(1, 0, 2).reshape(-1, places.shape[2])


def _coordinates(places: Matrix) -> dict[str, Any]:
    """Coordinates rounded to 10 micrometres; a gap is None."""
    return {
        name: [None if np.isnan(v) else round(float(v), 5) for v in column]
        for name, column in zip("xyz", places.T, strict=False)
    }


def _trace(places: Matrix, **more: Any) -> dict[str, Any]:
    kind = "scatter3d" if places.shape[1] == 3 else "scatter"
    return {"type": kind, "hoverinfo": "skip", **_coordinates(places), **more}


def _play(duration: int, *, redraw: bool = True) -> dict[str, Any]:
    frame = {"duration": duration, "redraw": redraw}
    return {"frame": frame, "transition": {"duration": 0}, "fromcurrent": True, "mode": "immediate"}


def _buttons() -> dict[str, Any]:
    buttons = [
        {"name": "play", "label": "▶ Play", "method": "animate", "args": [None, _play(SHOWN)]},
        {"name": "pause", "label": "❚❚ Pause", "method": "animate", "args": [[None], _play(0)]},
    ]
    place = {"x": 0.0, "y": 0.0, "xanchor": "left", "yanchor": "top", "pad": {"t": 34, "r": 10}}
    return {"type": "buttons", "direction": "left", "showactive": False, "buttons": buttons, **place}


def _slider(names: list[str]) -> dict[str, Any]:
    steps = [
        {"label": name, "method": "animate", "args": [[str(i)], _play(0) | {"fromcurrent": False}]}
        for i, name in enumerate(names)
    ]
    hidden = {"size": 1, "color": "rgba(0,0,0,0)"}
    shown = {"prefix": "time ", "font": {"size": 12, "color": "@ink"}, "xanchor": "right"}
    place = {"x": 0.3, "len": 0.7, "y": 0.0, "yanchor": "top", "pad": {"t": 24, "b": 8}}
    return {"steps": steps, **place, "ticklen": 0, "font": hidden, "currentvalue": shown}
