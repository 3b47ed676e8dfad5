"""Where a muscle's path jumps between frames: a surface that engages, a point that appears or disappears."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt.counts import plural
from designopt_muscle.geometry.geometry import MuscleGeometry

#: Lengths may differ by this (m) from what the moment arms say, moment arms by this (m) between frames.
_LENGTH, _ARM = 1e-3, 5e-3
#: Jumps that are listed one by one.
_LISTED = 3


@dataclass(frozen=True)
class Jump:
    """A jump of `muscle` between the frame at `time` (s) and the previous one: `by` (m) of its length, or of its
    moment arm about `coordinate`. `is_engaged`: a surface joins or leaves the path there.
    """

    muscle: str
    time: float
    by: float
    coordinate: str = ""
    is_engaged: bool = False

    def __str__(self) -> str:
        quantity = f"moment arm about {self.coordinate}" if self.coordinate else "length"
        why = ", where a surface engages or leaves" if self.is_engaged else ""
        return f"{self.muscle} at {self.time:.4g} s: its {quantity} jumps by {1e3 * self.by:.3g} mm{why}"


def jumps(geometry: MuscleGeometry, time: Floats, values: dict[str, Floats]) -> list[Jump]:
    """The jumps over a trial: lengths that change by 1 mm more than moment arms and motion predict, and moment arms
    that change their sign or by more than 5 mm. Frames are consecutive in `time` (n,).
    """
    q = np.column_stack([values.get(name, np.zeros(len(time))) for name in geometry.coordinates])
    mean = 0.5 * (geometry.arms[1:] + geometry.arms[:-1])
    predictions = -np.einsum("nmk,nm->nk", mean, np.diff(q, axis=0))
    off = np.abs(np.diff(geometry.lengths, axis=0) - predictions)
    contact_changes = np.diff(geometry.touch_counts, axis=0) != 0
    arm_changes = np.abs(np.diff(geometry.arms, axis=0))
    sign_changes = (geometry.arms[1:] * geometry.arms[:-1] < 0) & (arm_changes > _LENGTH)
    jump_list = [
        Jump(geometry.muscles[k], float(time[i + 1]), float(off[i, k]), is_engaged=bool(contact_changes[i, k]))
        for i, k in np.argwhere(off > _LENGTH)
    ]
    jump_list += [
        Jump(
            geometry.muscles[k],
            float(time[i + 1]),
            float(arm_changes[i, m, k]),
            geometry.coordinates[m],
            bool(contact_changes[i, k]),
        )
        for i, m, k in np.argwhere((arm_changes > _ARM) | sign_changes)
    ]
    return sorted(jump_list, key=lambda jump: (jump.time, jump.muscle, jump.coordinate))


def in_words(jump_list: Sequence[Jump]) -> list[str]:
    """A sentence for each of a few jumps, else one on those of moment arms and one on those of lengths."""
    if len(jump_list) <= _LISTED:
        return [str(jump) for jump in jump_list]
    sentences = []
    for quantity, group in (
        ("moment arms", [jump for jump in jump_list if jump.coordinate]),
        ("lengths", [jump for jump in jump_list if not jump.coordinate]),
    ):
        if group:
            muscles = plural(len({jump.muscle for jump in group}), "muscle")
            largest = max(group, key=lambda jump: jump.by)
            count = plural(len(group), "jump")
            sentences.append(f"{count} of {quantity} between frames, of {muscles}, the largest: {largest}")
    return sentences
