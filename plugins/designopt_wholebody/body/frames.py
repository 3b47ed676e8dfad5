"""Segment frames from landmarks (Nunes 2017, tables 4.1 and 4.2)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.model.schema import Axis, BodyModel, Cross, Factor, SegmentFrame

#: Reflection of the left side into the right one.
_MIRROR = np.array([1.0, 1.0, -1.0])


def with_derived(model: BodyModel, landmarks: Mapping[str, Floats]) -> dict[str, Floats]:
    """`landmarks` (..., 3) and their means; a given derived landmark is kept.

    Means of missing landmarks are omitted.
    """
    positions = dict(landmarks)
    for name, parts in model.derived.items():
        if name not in positions and all(part in positions for part in parts):
            positions[name] = np.mean([positions[part] for part in parts], axis=0)
    return positions


def axes_of(frame: SegmentFrame, landmarks: Mapping[str, Floats], *, mirrored: bool) -> Floats:
    """(..., 3, 3) axes u, v, w of a segment as columns, right-handed; NaN where a landmark is missing or axes vanish.

    A segment of the left side (`mirrored`) is reflected into the right side, where the formulas of the frame hold, and
    its axes are reflected back with w turned round: so w points to the right on both sides.
    """
    factor = _MIRROR if mirrored else np.ones(3)
    ready: dict[str, Floats] = {}
    waiting = ["u", "v", "w"]
    while waiting:
        name = next(n for n in waiting if _is_ready(getattr(frame, n), ready))
        ready[name] = _axis(getattr(frame, name), landmarks, factor, ready)
        waiting.remove(name)
    axes = np.stack([ready["u"], ready["v"], ready["w"]], axis=-1)
    if mirrored:
        axes = _MIRROR[:, None] * axes * np.array([1.0, 1.0, -1.0])
    return axes


def _is_ready(axis: Axis, ready_axes: Mapping[str, Floats]) -> bool:
    return not isinstance(axis, Cross) or all(f in ready_axes for f in axis.cross if isinstance(f, str))


def _axis(axis: Axis, landmarks: Mapping[str, Floats], factor: Floats, axes: Mapping[str, Floats]) -> Floats:
    def vector(factor_entry: Factor) -> Floats:
        if isinstance(factor_entry, str):
            return axes[factor_entry]
        return (landmarks[factor_entry[1]] - landmarks[factor_entry[0]]) * factor

    direction = np.cross(vector(axis.cross[0]), vector(axis.cross[1])) if isinstance(axis, Cross) else vector(axis)
    length = np.linalg.norm(direction, axis=-1, keepdims=True)
    return np.asarray(direction / np.where(length > 0.0, length, np.nan))
