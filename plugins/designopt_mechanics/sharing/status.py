"""Status of a frame."""

from __future__ import annotations

from designopt_recordings.frames import StatusEnum


class SharingStatus(StatusEnum):
    """Outcome of sharing in one frame. Frames below 100 have activations that balance the moments."""

    OPTIMAL = 0, "the moments are balanced at minimum cost"
    EDGE = 10, "balanced, but close to an end of the recording, where derivatives are less accurate"
    RESERVE_ACTIVE = 20, "balanced, but a reserve exceeds its limit: the muscles are too weak here"
    INFEASIBLE = (
        100,
        "no activations balance the moments: see the certificate, the missing moments and the saturated muscles",
    )
    TOO_FAST = 105, "balanced alone, but not within the rate limit: activations cannot change so fast"
    EMPTY_BOUNDS = 110, "the band around measured activity leaves no activation between a muscle's bounds"
    BAD_INPUT = 120, "a needed number is missing or not finite"
    NOT_CONVERGED = 130, "the solver ended without a solution: report the frame with its numbers"
