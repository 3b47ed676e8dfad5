"""Settings of a controller and measures of a loop that several models have: type, unit, meaning and range, once."""

from __future__ import annotations

from typing import Annotated

from designopt.plugin import Quantity

Q = Quantity

ProportionalGain = Annotated[float, Q("", "proportional gain", gt=0)]
IntegralTime = Annotated[float, Q("s", "integral time", gt=0)]
DerivativeTime = Annotated[float, Q("s", "derivative time", ge=0)]
SetpointWeight = Annotated[float, Q("", "set-point weight; 1 if left out", ge=0, le=1.5)]
TrackingTime = Annotated[
    float, Q("s", "tracking time of the anti-windup; sqrt(ti td), without D ti, if left out", gt=0)
]

Ms = Annotated[float, Q("", "peak of the sensitivity; inf if unstable")]
Mt = Annotated[float, Q("", "peak of the complementary sensitivity; inf if unstable")]
GainMargin = Annotated[
    float, Q("", "smallest factor above 1 on the gain that makes the loop unstable; -inf if unstable")
]
GainMarginDown = Annotated[
    float, Q("", "largest factor below 1 on the gain that makes the loop unstable; inf if unstable")
]
PhaseMargin = Annotated[float, Q("rad", "phase margin; -inf if unstable")]
DelayMargin = Annotated[float, Q("s", "smallest further delay that makes the loop unstable; -inf if unstable")]
Crossover = Annotated[float, Q("rad/s", "highest frequency at which the loop's gain is 1; -inf if unstable")]
StabilityDegree = Annotated[float, Q("1/s", "of a sampled loop: -ln(spectral_radius) / sample time")]
