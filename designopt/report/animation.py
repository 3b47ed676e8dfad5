"""Animations on the page: buttons, time slider, and number of frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Duration of a frame at the speed of `play_buttons` (ms).
SHOWN = 50


def animation_frames(count: int, limit: int) -> NDArray[np.intp]:
    """At most `limit` of the `count` instants of a motion, evenly spread, including both ends."""
    return np.unique(np.linspace(0, count - 1, min(limit, count)).round().astype(np.intp))


def time_labels(time: NDArray[np.float64]) -> list[str]:
    """Times (n,) in s as texts, in ms for motions shorter than a second."""
    return [f"{1e3 * t:.4g} ms" if abs(time[-1]) < 1.0 else f"{t:.4g} s" for t in time.tolist()]


def play(duration: int, *, redraw: bool = True) -> dict[str, Any]:
    """Animation settings for Plotly: each frame for `duration` ms, redrawn if the axes need it (`redraw`)."""
    frame = {"duration": duration, "redraw": redraw}
    return {"frame": frame, "transition": {"duration": 0}, "fromcurrent": True, "mode": "immediate"}


def play_buttons(frame_time: int = SHOWN, *, slow: int = 0, redraw: bool = True, below: int = 34) -> dict[str, Any]:
    """Buttons to play (each frame for `frame_time` ms), to play slower if `slow` (ms) is given, and to pause."""
    slower = [("slow", "▶ Slow", [None, play(slow, redraw=redraw)])] if slow else []
    buttons = [
        {"name": name, "label": label, "method": "animate", "args": args}
        for name, label, args in (
            ("play", "▶ Play", [None, play(frame_time, redraw=redraw)]),
            *slower,
            ("pause", "❚❚ Pause", [[None], play(0, redraw=redraw)]),
        )
    ]
    position = {"x": 0.0, "y": 0.0, "xanchor": "left", "yanchor": "top", "pad": {"t": below, "r": 10}}
    return {"type": "buttons", "direction": "left", "showactive": False, "buttons": buttons, **position}


def time_slider(
    labels: Sequence[str], prefix: str = "time ", *, redraw: bool = True, below: int = 24
) -> dict[str, Any]:
    """A slider with a step for each frame; the frames are named "0", "1", ..."""
    steps = [
        {"label": label, "method": "animate", "args": [[str(i)], play(0, redraw=redraw) | {"fromcurrent": False}]}
        for i, label in enumerate(labels)
    ]
    position = {"x": 0.3, "len": 0.7, "y": 0.0, "yanchor": "top", "pad": {"t": below, "b": 8}}
    return {
        "steps": steps,
        **position,
        "ticklen": 0,
        "minorticklen": 0,
        "font": {"size": 1, "color": "rgba(0,0,0,0)"},
        "currentvalue": {"prefix": prefix, "font": {"size": 12, "color": "@ink"}, "xanchor": "right"},
    }
