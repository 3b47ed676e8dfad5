"""The order in which curves interest a reader, which of them vary, and the direction in which they are positive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from designopt_laboratory.curves.pool import PooledCurves

#: Quantities in the order of a report.
KINDS = (
    "angle", "moment", "power", "ground force", "joint force", "joint reaction moment", "activation", "EMG",
    "muscle force", "fibre length", "metabolic rate",
)  # fmt: skip
#: Quantities of coordinates and joints, of which locked ones are left out.
_OF_JOINTS = ("angle", "moment", "power", "joint force", "joint reaction moment")
#: Share of the largest range of a quantity below which a curve is constant, by rounding or by a locked coordinate.
LEAST_RANGE = 0.005
#: Beginnings of names, the most interesting first; the pelvis is last, as it has the residuals and the place.
_JOINTS = ("hip", "knee", "ankle", "walker_knee", "ground", "lumbar", "back", "")
_LAST = "pelvis"
#: The component that stands for a joint, and its others.
_PARTS = {"ground force": ("_y", "_x", "_z"), "joint force": ("_size", "_y", "_x", "_z")}
#: The curves that stand for a joint.
_MAIN = ("hip_flexion", "knee_angle", "ankle_angle", "ground_y", "hip_size", "knee_size", "ankle_size")

_POSITIVE = {
    "hip_flexion": "flexion", "hip_adduction": "adduction", "hip_rotation": "internal",
    "ankle_angle": "dorsiflexion",
}  # fmt: skip


def is_main(curve: PooledCurves) -> bool:
    """Whether the curve is one of those that stand for hip, knee, ankle and ground."""
    return curve.name.removeprefix("walker_") in _MAIN


def by_interest(curves: Iterable[PooledCurves]) -> list[PooledCurves]:
    """The `curves` by quantity; those of joints from the hip down, forces with their size or vertical part first."""

    def rank(curve: PooledCurves) -> tuple[int, int, int]:
        kind = KINDS.index(curve.kind) if curve.kind in KINDS else len(KINDS)
        if curve.kind not in (*_OF_JOINTS, "ground force"):
            return kind, 0, 0
        joint = len(_JOINTS) if curve.name.startswith(_LAST) else _first(curve.name, _JOINTS, str.startswith)
        return kind, joint, _first(curve.name, _PARTS.get(curve.kind, ()), str.endswith)

    return sorted(curves, key=rank)


def _first(name: str, parts: Sequence[str], matches: Callable[[str, str], bool]) -> int:
    return next((k for k, part in enumerate(parts) if matches(name, part)), len(parts))


def varying(curves: Iterable[PooledCurves]) -> tuple[list[PooledCurves], list[PooledCurves]]:
    """The `curves` that vary, and those of joints whose range is below `LEAST_RANGE` of the largest one of their
    quantity and unit: locked coordinates, and moments that a free joint bears by rounding alone."""
    every = list(curves)
    range_of = {id(curve): max(float(np.ptp(part.mean)) for part in curve.sets) for curve in every}
    largest: dict[tuple[str, str], float] = {}
    for curve in every:
        key = curve.kind, curve.unit
        largest[key] = max(largest.get(key, 0.0), range_of[id(curve)])
    constant = [
        curve
        for curve in every
        if curve.kind in _OF_JOINTS and range_of[id(curve)] <= LEAST_RANGE * largest[curve.kind, curve.unit]
    ]
    return [curve for curve in every if curve not in constant], constant


def positive_direction(curve: PooledCurves, angle_curves: PooledCurves | None) -> str:
    """The word for the positive direction of a curve of a coordinate, as OpenSim's models name them; "" if unknown.

    The knee is positive in flexion or in extension, which its `angle_curves` over the cycle tell: it bends more than
    it extends.
    """
    if curve.kind not in ("angle", "moment"):
        return ""
    if curve.name == "knee_angle" and angle_curves is not None:
        mean = np.mean([part.mean for part in angle_curves.sets], axis=0)
        return "flexion" if mean[np.argmax(np.abs(mean))] > 0.0 else "extension"
    return _POSITIVE.get(curve.name, "")
