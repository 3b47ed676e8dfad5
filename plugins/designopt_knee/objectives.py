"""Objectives of knee studies beyond the outputs of the model."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Quantity, objective
from designopt_knee.figures import correlation


@objective("gait_correlation", version=1)
def gait_correlation(
    knee_angle: Floats, knee_angle_recorded: Floats
) -> Annotated[float, Quantity("", "correlation of simulated and recorded knee angle")]:
    """rho of two angles (time,) that end with the first sample of the next cycle, which is left out (24)."""
    return correlation(knee_angle[:-1], knee_angle_recorded[:-1])


@objective("healthy_band_share", version=1)
def healthy_band_share(
    knee_angle: Floats,
    knee_angle_recorded: Floats,
    *,
    half_width: Annotated[float, Quantity("deg", "half the width of the band around the recorded angle", gt=0)] = 5.0,
) -> Annotated[float, Quantity("", "share of the time with the knee angle inside the healthy band")]:
    """Share of the samples (time,), end point left out, that lie within `half_width` of the recorded angle."""
    return float(np.mean(np.abs(knee_angle[:-1] - knee_angle_recorded[:-1]) <= half_width))
