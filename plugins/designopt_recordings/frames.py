"""Statuses per frame: a number for arrays, a sentence for people."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Statuses = NDArray[np.int64]


class StatusEnum(IntEnum):
    """Base of enumerations whose members are numbers with a sentence; other packages declare their own by it.

    Zero is ok, values below 100 are usable frames that need a look, values from 100 are frames without a result.
    The greater of two values is the one to report.
    """

    sentence: str

    def __new__(cls, value: int, sentence: str) -> Self:
        member = int.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        return member

    @property
    def usable(self) -> bool:
        """Whether the frame has a result."""
        return self < 100


class FrameStatus(StatusEnum):
    """Outcome of a recording's preparation for one frame."""

    OK = 0, "measured and complete"
    EDGE = 10, "close to an end of the recording: filters and derivatives are less accurate here"
    BESIDE = (
        15,
        "beside a frame that is missing or rebuilt: its velocity and acceleration are taken from that frame too",
    )
    REBUILT = 20, "a missing marker was rebuilt from other markers of its cluster"
    INTERPOLATED = 30, "a missing marker was interpolated in time"
    AMBIGUOUS_PLATE = 40, "a force plate carries two segments at once or changes its segment: check the contact"
    MISSING_MARKER = 100, "a needed marker is missing and could not be rebuilt"
    MISSING_LOAD = 110, "a force plate has no finite value here"
    NOT_FINITE = 120, "a needed value is not a finite number"


def worst_status(*statuses: ArrayLike) -> Statuses:
    """The greater status of each frame; arrays (n,) of members or of their numbers."""
    return np.asarray(np.maximum.reduce([np.asarray(status, dtype=np.int64) for status in statuses]))


def usable(statuses: ArrayLike) -> NDArray[np.bool_]:
    """Which frames have a result."""
    return np.asarray(np.asarray(statuses, dtype=np.int64) < 100)


def count_statuses(statuses: Iterable[int], kind: type[StatusEnum] = FrameStatus) -> dict[StatusEnum, int]:
    """How many frames have each status of `kind`, in the order of their numbers; statuses of no frame stay away."""
    values = np.asarray(list(statuses), dtype=np.int64)
    return {member: count for member in sorted(kind) if (count := int(np.sum(values == member)))}
