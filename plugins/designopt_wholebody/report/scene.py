"""The moving scene of a trial: measured, consistent and simulated over each other, forces from the ground, surfaces."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats
from designopt.report.designs import Arrays, Plot
from designopt.report.drawing import DrawnMotion, draw

#: Arrays of lines by the name in the drawing; only the first is needed.
LINES = {"used": "sticks", "measured": "raw_sticks", "simulated": "simulated_sticks"}


def scene(arrays: Arrays) -> Plot:
    """The Plotly figure with its animation, Y up, seen from the right and ahead."""
    lines = {name: _joined(arrays[array]) for name, array in LINES.items() if array in arrays}
    if "surfaces" in arrays and np.isfinite(arrays["surfaces"]).any():
        lines["surfaces"] = np.asarray(arrays["surfaces"], dtype=np.float64)
    forces = {}
    if "ground_forces" in arrays and np.isfinite(arrays["ground_forces"]).any():
        forces["ground"] = np.asarray(arrays["ground_forces"], dtype=np.float64)
    plot = draw(DrawnMotion(np.asarray(arrays["time"], dtype=np.float64), lines, forces=forces))
    if "scene" in plot["layout"]:
        plot["layout"]["scene"]["camera"] = {
            "up": {"x": 0, "y": 1, "z": 0},
            "eye": {"x": 0.5, "y": 0.25, "z": 1.6},
            "projection": {"type": "orthographic"},
        }
    for trace in plot["data"]:
        trace["marker"] = {**trace.get("marker", {}), "size": trace["marker"]["size"] if trace["name"] in forces else 2}
    return plot


def _joined(sticks: Floats) -> Floats:
    """(n, vertices, 3) lines with NaN between them of sticks (n, k, 2, 3)."""
    sticks = np.asarray(sticks, dtype=np.float64)
    gap = np.full((*sticks.shape[:2], 1, 3), np.nan)
    return np.concatenate([sticks, gap], axis=2).reshape(len(sticks), -1, 3)
