"""Report part `walking_step`: the step of a walker as stick figures, its torques and the ground forces."""

from __future__ import annotations

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, line, motion_section, poses
from designopt.report.drawing import DrawnMotion, draw
from designopt.report.section import Section
from designopt.store.result import Result
from designopt_motion.biped_equations import JOINTS, TORQUES

_STANCE = tuple(JOINTS.index(name) for name in ("stance_foot", "stance_knee", "hip", "head"))
_SWING = tuple(JOINTS.index(name) for name in ("hip", "swing_knee", "swing_foot"))


_NAMES = ("time", "figure", "torques", "ground_force")


@report_part("walking_step", version=1, arrays=_NAMES)
def walking_step(result: Result) -> Section | None:
    """Steps of a walker: stick figures, torques of the joints and force of the ground over time."""
    return motion_section(
        result,
        "The walking step",
        _NAMES,
        ("Stick figures", _figures, {"height": 480, "note": _STICKS}),
        ("The step in motion", _motion, {"height": 480, "note": "Drawn to scale."}),
        ("Torques of the joints", _torques, {"height": 420}),
        ("Force of the ground", _ground, {"height": 380, "note": _GLUED}),
        introduction="One step from impact to impact; the next one is the same with the legs exchanged.",
    )


_STICKS = (
    "Drawn to scale, at equal times. Stance leg and trunk are dark, the swing leg is coloured; the dotted line is the "
    "swing foot's way."
)
_GLUED = "On the stance foot. Where the normal force is negative, the foot would have to be glued to the ground."


def _figures(arrays: Arrays) -> Plot:
    figure = arrays["figure"]
    data = [line([figure[..., 0].min() - 0.1, figure[..., 0].max() + 0.1], [0, 0], line={"color": "@muted"})]
    foot = figure[:, _SWING[-1]]
    data.append(line(foot[:, 0], foot[:, 1], line={"color": "@mark", "width": 1, "dash": "dot"}))
    drawn_poses = poses(len(figure))
    for k, i in enumerate(drawn_poses):
        opacity = 0.25 + 0.75 * k / (len(drawn_poses) - 1)
        for joints, colour in ((_STANCE, "@ink"), (_SWING, "@mark")):
            x, y = figure[i, joints, 0], figure[i, joints, 1]
            data.append(line(x, y, opacity=opacity, line={"color": colour, "width": 2.5}))
    axes = {
        "xaxis": axis("forward [m]", zeroline=False),
        "yaxis": axis("height [m]", zeroline=False, scaleanchor="x", rangemode="tozero"),
    }
    return {"data": data, "layout": layout(**axes)}


def _motion(arrays: Arrays) -> Plot:
    figure = np.asarray(arrays["figure"], dtype=np.float64)
    gap = np.full((len(figure), 1, 2), np.nan)
    lines = np.concatenate([figure[:, _STANCE], gap, figure[:, _SWING]], axis=1)
    ground = np.tile([[figure[..., 0].min(), 0.0], [figure[..., 0].max(), 0.0]], (len(figure), 1, 1))
    return draw(DrawnMotion(np.asarray(arrays["time"], dtype=np.float64), {"walker": lines, "ground": ground}))


def _torques(arrays: Arrays) -> Plot:
    time, torques = arrays["time"], arrays["torques"]
    data = [
        line(time, torques[:, i], name.removesuffix("_torque").replace("_", " "), line={"color": category(i)})
        for i, name in enumerate(TORQUES)
    ]
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("torque [N m]"))}


def _ground(arrays: Arrays) -> Plot:
    time, force = arrays["time"], np.asarray(arrays["ground_force"])
    data = [
        line(time, force[:, 1], "normal", line={"color": "@accent"}),
        line(time, force[:, 0], "tangential", line={"color": "@mark"}),
    ]
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("force [N]"))}
