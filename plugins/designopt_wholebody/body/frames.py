"""Segment frames from landmarks (Nunes 2017, tables 4.1 and 4.2)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from designopt.arrays import Array
from designopt_wholebody.model.schema import Axis, BodyModel, Cross, Factor, SegmentFrame

#: Reflection of the left side into the right one.
_MIRROR = np.array([1.0, 1.0, -1.0])


def with_derived(model: BodyModel, landmarks: Mapping[str, Array]) -> dict[str, Array]:
    """`landmarks` (..., 3) and their means; a given derived landmark is kept.

    Means of missing landmarks are omitted.
    """
    known = dict(landmarks)
    for name, parts in model.derived.items():
        if name not in known and all(part in known for part in parts):
            known[name] = np.mean([known[part] for part in parts], axis=0)
    return known


def axes_of(frame: SegmentFrame, landmarks: Mapping[str, Array], *, mirrored: bool) -> Array:
    """(..., 3, 3) axes u, v, w of a segment as columns, right-handed; NaN where a landmark is missing or axes vanish.

    A segment of the left side (`mirrored`) is reflected into the right side, where the formulas of the frame hold, and
    its axes are reflected back with w turned round: so w points to the right on both sides.
    """
    factor = _MIRROR if mirrored else np.ones(3)
    made: dict[str, Array] = {}
    waiting = ["u", "v", "w"]
    while waiting:
        name = next(n for n in waiting if _known(getattr(frame, n), made))
        made[name] = _axis(getattr(frame, name), landmarks, factor, made)
        waiting.remove(name)
    axes = np.stack([made["u"], made["v"], made["w"]], axis=-1)
    if mirrored:
        axes = _MIRROR[:, None] * axes * np.array([1.0, 1.0, -1.0])
    return axes


def _known(axis: Axis, made: Mapping[str, Array]) -> bool:
    return not isinstance(axis, Cross) or all(f in made for f in axis.cross if isinstance(f, str))


def _axis(axis: Axis, landmarks: Mapping[str, Array], factor: Array, made: Mapping[str, Array]) -> Array:
    def vector(given: Factor) -> Array:
        if isinstance(given, str):
            return made[given]
        return (landmarks[given[1]] - landmarks[given[0]]) * factor

    direction = np.cross(vector(axis.cross[0]), vector(axis.cross[1])) if isinstance(axis, Cross) else vector(axis)
    length = np.linalg.norm(direction, axis=-1, keepdims=True)
    return np.asarray(direction / np.where(length > 0.0, length, np.nan))
