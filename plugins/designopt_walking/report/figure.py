"""Report parts `walking_figure` and `ground_force`: the predicted walk in motion, and the force of the ground."""

from __future__ import annotations

import numpy as np

from designopt.plugin import report
from designopt.report.colours import axis, layout
from designopt.report.designs import Arrays, Plot, line, motion_section
from designopt.report.drawing import DrawnMotion, draw
from designopt.report.section import Section
from designopt.store.result import Result

#: What a reader of any predicted walk must know.
ASSUMPTIONS = (
    "A predicted walk is a local optimum of the stated cost: other walks, some of them cheaper, may exist.",
    "The model is planar, each foot is one rigid body, tendons are rigid. As distributed, the model of the walker is "
    "not for research or clinical use.",
)
FEET = ("right", "left")
_STYLES = ({"color": "@accent", "width": 2}, {"color": "@mark", "width": 2})


_OF_WALK = ("time", "skeleton", "left_leg", "ground_arrows")
_OF_FORCE = ("percent", "ground_force")


@report("walking_figure", version=1, arrays=_OF_WALK)
def walking_figure(result: Result) -> Section | None:
    """The walker in motion with the forces of the ground as arrows, over one cycle with a time slider."""
    return motion_section(
        result,
        "The walk",
        _OF_WALK,
        ("One cycle", _motion, {"height": 520, "loop": True, "note": _SCALE}),
        notes=ASSUMPTIONS,
    )


_SCALE = "Drawn to scale. Arrows are the forces of the ground, all with one scale."


@report("ground_force", version=1, arrays=_OF_FORCE)
def ground_force(result: Result) -> Section | None:
    """Vertical and fore-aft force of the ground on each foot over the cycle."""
    return motion_section(
        result,
        "Ground force",
        _OF_FORCE,
        ("Vertical force", _vertical, {"height": 340}),
        ("Fore-aft force", _fore_aft, {"height": 300, "note": "Positive pushes forward; braking is negative."}),
        introduction="0 % is right heel strike: the vertical force rises through 5 % of body weight.",
    )


def _motion(arrays: Arrays) -> Plot:
    skeleton, left_leg = (np.asarray(arrays[name], dtype=np.float64) for name in ("skeleton", "left_leg"))
    x = skeleton[..., 0]
    ground = np.tile([[np.nanmin(x) - 0.1, 0.0], [np.nanmax(x) + 0.1, 0.0]], (len(skeleton), 1, 1))
    return draw(
        DrawnMotion(
            np.asarray(arrays["time"], dtype=np.float64),
            {"trunk and right leg": skeleton, "left leg": left_leg, "ground": ground},
            forces={"ground force": np.asarray(arrays["ground_arrows"], dtype=np.float64)},
        )
    )


def _vertical(arrays: Arrays) -> Plot:
    return _forces(arrays, 1, "vertical force [N]")


def _fore_aft(arrays: Arrays) -> Plot:
    return _forces(arrays, 0, "fore-aft force [N]")


def _forces(arrays: Arrays, component: int, title: str) -> Plot:
    force = np.asarray(arrays["ground_force"], dtype=np.float64)
    data = [
        line(arrays["percent"], force[:, i, component], f"{foot} foot", line=style)
        for i, (foot, style) in enumerate(zip(FEET, _STYLES, strict=True))
    ]
    total = {"color": "@muted", "width": 1.2, "dash": "dot"}
    data.append(line(arrays["percent"], force[:, :, component].sum(axis=1), "both", line=total))
    return {"data": data, "layout": layout(xaxis=axis("cycle [%]", range=[0, 100]), yaxis=axis(title))}
