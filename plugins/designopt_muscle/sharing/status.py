"""What became of a frame."""

from __future__ import annotations

from designopt_recordings.frames import StatusEnum


class SharingStatus(StatusEnum):
    """What sharing says of one frame. Frames below 100 have activations that balance the moments."""

    OPTIMAL = 0, "the moments are balanced at the least cost"
    EDGE = 10, "balanced, but close to an end of the recording, where derivatives are less accurate"
    RESERVE_ACTIVE = 20, "balanced, but a reserve gives more than the limit set for it: the muscles are too weak here"
    INFEASIBLE = 100, "no activations balance the moments: see the proof, what is missing and which muscles saturate"
    TOO_FAST = 105, "balanced alone, but not within the rate limit: activations cannot change so fast"
    EMPTY_BOUNDS = 110, "the band around measured activity leaves no activation between a muscle's bounds"
    BAD_INPUT = 120, "a needed number is missing or not finite"
    NOT_CONVERGED = 130, "the solver ended without an answer: report the frame with its numbers"
