"""Statuses of the frames of an inverse kinematics, and its errors."""

from __future__ import annotations

from designopt_recordings.frames import StatusEnum


class MarkerError(ValueError):
    """Markers, model and tasks that do not fit each other: which, and what to do."""


class MotionStatus(StatusEnum):
    """Outcome of the inverse kinematics for one frame."""

    OPTIMAL = 0, "the weighted errors are at a minimum"
    MISSING_MARKER = 10, "a weighted marker is missing: the others determine the pose"
    AT_LIMIT = 20, "a coordinate is at an end of its range"
    LARGE_ERROR = 30, "a marker is far from where the model has it: look for swapped or misplaced markers"
    UNOBSERVABLE = 40, "the markers of the frame do not determine a coordinate, which stays where it was"
    NOT_CONVERGED = 110, "the iterations ended before a minimum was reached"
    NO_MARKER = 120, "no weighted marker is there"
