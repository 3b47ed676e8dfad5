"""Report parts `walking_figure` and `ground_force`: the predicted walk in motion, and the force of the ground."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import report_part
from designopt.report.colours import axis, layout
from designopt.report.designs import Arrays, Plot, line, motion_section, stored_arrays
from designopt.report.drawing import DrawnMotion, draw
from designopt.report.section import Section
from designopt.store.result import Result
from designopt_walking.report.sides import STYLES, side_names, which_leg

#: A note for the reader of any computed walk.
ASSUMPTIONS = (
    "A computed walk is a local optimum of the stated cost: other walks, some of them cheaper, may exist.",
    "The model is planar, each foot is one rigid body, tendons are rigid unless the study makes them compliant. As "
    "distributed, the model of the walker is not for research or clinical use.",
)
#: Colour of the forces of the ground: of neither leg.
_FORCE = "@green"

_OF_WALK = ("time", "skeleton", "left_leg", "ground_arrows")
_OF_FORCE = ("percent", "ground_force")
#: The axis of `ground_force` to the right, which motions in space have.
_LATERAL = 2


@report_part("walking_figure", version=1, arrays=_OF_WALK)
def walking_figure(result: Result) -> Section | None:
    """The walker in motion with the forces of the ground as arrows, over one cycle with a time slider."""
    plot = partial(_motion, names=side_names(result))
    return motion_section(
        result,
        "The walk",
        _OF_WALK,
        ("One cycle", plot, {"height": 520, "loop": True, "note": _SCALE}),
        introduction=which_leg(result),
        notes=ASSUMPTIONS,
    )


_SCALE = "Drawn to scale. Arrows are the forces of the ground, all with one scale."


@report_part("ground_force", version=1, arrays=_OF_FORCE)
def ground_force(result: Result) -> Section | None:
    """Vertical, fore-aft and, in space, lateral force of the ground on each foot over the cycle, beside a recording."""
    names = side_names(result)
    motions = stored_arrays(result, *_OF_FORCE).values()
    figures: list[tuple[str, Callable[[Arrays], Plot], Mapping[str, object]]] = [
        ("Vertical force", partial(_forces, 1, "vertical force [N]", names=names), {"height": 340}),
        (
            "Fore-aft force",
            partial(_forces, 0, "fore-aft force [N]", names=names),
            {"height": 300, "note": "Positive pushes forward; braking is negative."},
        ),
    ]
    introduction = "0 % is right heel strike: the vertical force rises through 5 % of body weight."
    if any(np.shape(arrays["ground_force"])[2] > _LATERAL for arrays in motions):
        note = {"height": 300, "note": "Positive pushes to the right."}
        figures.append(("Lateral force", partial(_forces, _LATERAL, "lateral force [N]", names=names), note))
        drawn_too = any(np.isfinite(arrays.get("recorded_force", np.nan)).any() for arrays in motions)
        introduction = f"Over the window of the recording{', which is dotted' if drawn_too else ''}."
    return motion_section(result, "Ground force", _OF_FORCE, *figures, introduction=introduction)


def _motion(arrays: Arrays, *, names: Mapping[str, str]) -> Plot:
    skeleton, left_leg = (np.asarray(arrays[name], dtype=np.float64) for name in ("skeleton", "left_leg"))
    trunk, right_leg = _divided(skeleton)
    _, left_leg = _divided(left_leg)
    return draw(
        DrawnMotion(
            np.asarray(arrays["time"], dtype=np.float64),
            {"trunk": trunk, _leg(names["r"]): right_leg, _leg(names["l"]): left_leg},
            forces={"ground force": np.asarray(arrays["ground_arrows"], dtype=np.float64)},
            colours={
                _leg(names["r"]): str(STYLES["r"]["color"]),
                _leg(names["l"]): str(STYLES["l"]["color"]),
                "ground force": _FORCE,
            },
            floor=0.0,
        )
    )


def _leg(side: str) -> str:
    return side if "(" in side else f"{side} leg"


def _divided(skeleton: Floats) -> tuple[Floats, Floats]:
    """The lines (n, vertices, 2) of trunk and pelvis, closed as a body between its joints, and those of the leg.

    The first vertex is the pelvis: its lines and those above it are of the trunk.
    """
    ends = np.flatnonzero(np.isnan(skeleton[0, :, 0]))
    lines = [skeleton[:, a:b] for a, b in zip([0, *(ends[:-1] + 1)], ends, strict=True)]
    pelvis = skeleton[:, :1]
    of_pelvis = [np.array_equal(line[:, :1], pelvis) for line in lines]
    above = [bool(line[..., 1].mean() > pelvis[..., 1].mean()) for line in lines]
    gap = np.full_like(pelvis, np.nan)

    def joined(lines: Sequence[Floats]) -> Floats:
        return np.concatenate([part for line in lines for part in (line, gap)] or [gap], axis=1)

    joints = [line[:, 1:] for line, is_of_pelvis in zip(lines, of_pelvis, strict=True) if is_of_pelvis]
    trunk = [line for line, *of_trunk in zip(lines, of_pelvis, above, strict=True) if any(of_trunk)]
    leg = [line for line, *of_trunk in zip(lines, of_pelvis, above, strict=True) if not any(of_trunk)]
    return joined([*trunk, np.concatenate(joints, axis=1)]), joined(leg)


def _foot(side: str) -> str:
    return side if "(" in side else f"{side} foot"


def _forces(component: int, title: str, arrays: Arrays, *, names: Mapping[str, str]) -> Plot:
    force = np.asarray(arrays["ground_force"], dtype=np.float64)
    data = [
        line(arrays["percent"], force[:, i, component], _foot(names[side]), line=STYLES[side])
        for i, side in enumerate("rl")
    ]
    if "recorded_force" in arrays:
        recorded_force = np.asarray(arrays["recorded_force"], dtype=np.float64)
        data += [
            line(
                arrays["percent"],
                recorded_force[:, i, component],
                "",
                line={**STYLES[side], "width": 1.2, "dash": "dot"},
            )
            for i, side in enumerate("rl")
        ]
    total = {"color": "@muted", "width": 1.2}
    data.append(line(arrays["percent"], force[:, :, component].sum(axis=1), "both", line=total))
    return {"data": data, "layout": layout(xaxis=axis("cycle [%]", range=[0, 100]), yaxis=axis(title))}
