"""Report part `arm_reach`: the path of an arm, the excitations and activations of its muscles, and torques."""

from __future__ import annotations

from typing import Any

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, caption, category, layout
from designopt.report.designs import Arrays, Plot, line, motion_section, poses
from designopt.report.drawing import DrawnMotion, draw
from designopt.report.section import Section
from designopt.store.result import Result
from designopt_motion.arm_equations import MUSCLES

_COLUMNS, _ROWS = 2, 3


_NAMES = ("time", "path", "excitations", "activations", "torques")


@report_part("arm_reach", version=1, arrays=_NAMES)
def arm_reach(result: Result) -> Section | None:
    """Movements of an arm: its path, excitation and activation of each muscle, torques at the joints."""
    note = "Excitations are lines, activations dashed."
    return motion_section(
        result,
        "The reaching arm",
        _NAMES,
        ("Way of the arm", _way, {"height": 480, "note": "Drawn to scale, at equal times."}),
        ("The arm in motion", _motion, {"height": 480, "note": "Drawn to scale."}),
        ("Excitation and activation of the muscles", _muscles, {"height": 560, "note": note}),
        ("Torques", _torques, {"height": 360}),
        introduction="Seen from above; the shoulder is at the origin and y points forward.",
    )


def _way(arrays: Arrays) -> Plot:
    path = arrays["path"]
    hand = path[:, 1]
    drawn_poses = poses(len(path))
    data = []
    for k, i in enumerate(drawn_poses):
        x, y = ([0.0, *path[i, :, n]] for n in (0, 1))
        data.append(line(x, y, opacity=0.25 + 0.75 * k / (len(drawn_poses) - 1), line={"color": "@ink", "width": 2.5}))
    data.append(line(hand[:, 0], hand[:, 1], "hand", line={"color": "@mark", "width": 2}))
    ends = {"mode": "markers", "marker": {"size": 9, "color": "@mark", "symbol": ["circle-open", "circle"]}}
    data.append({**line(hand[[0, -1], 0], hand[[0, -1], 1], "start and target"), **ends})
    axes = {"xaxis": axis("x [m]", zeroline=False), "yaxis": axis("y [m]", zeroline=False, scaleanchor="x")}
    return {"data": data, "layout": layout(**axes)}


def _motion(arrays: Arrays) -> Plot:
    path = np.asarray(arrays["path"], dtype=np.float64)
    lines = np.concatenate([np.zeros((len(path), 1, 2)), path], axis=1)
    return draw(DrawnMotion(np.asarray(arrays["time"], dtype=np.float64), {"arm": lines}))


def _muscles(arrays: Arrays) -> Plot:
    """A panel for each muscle, flexors on the left, all with one scale."""
    time = arrays["time"]
    top = 1.05 * max(float(np.max(arrays["excitations"])), float(np.max(arrays["activations"])))
    data: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    annotations = []
    for i, muscle in enumerate(MUSCLES):
        row, column = divmod(i, _COLUMNS)
        suffix = "" if i == 0 else str(i + 1)
        left, upper = column * 0.56, 1.0 - row * 0.38
        on = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        colour = category(row)
        data.append(line(time, arrays["excitations"][:, i], line={"color": colour, "width": 2}, **on))
        data.append(line(time, arrays["activations"][:, i], line={"color": colour, "width": 1.5, "dash": "dash"}, **on))
        title = "time [s]" if row == _ROWS - 1 else ""
        axes[f"xaxis{suffix}"] = axis(title, domain=[left, left + 0.44], anchor=f"y{suffix}")
        axes[f"yaxis{suffix}"] = axis("", domain=[upper - 0.24, upper], anchor=f"x{suffix}", range=[0.0, top])
        annotations.append(caption(muscle.name.replace("_", " "), left, upper, font={"size": 12}))
    return {"data": data, "layout": layout(**axes, annotations=annotations)}


def _torques(arrays: Arrays) -> Plot:
    names = ("muscles at the shoulder", "muscles at the elbow", "spring at the elbow")
    data = [line(arrays["time"], arrays["torques"][:, i], n, line={"color": category(i)}) for i, n in enumerate(names)]
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("torque [N m]"))}
