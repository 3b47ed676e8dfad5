"""Settings of a controller and measures of a loop that several models have: type, unit, meaning and range, once; and
what a study of either should not leave open."""

from __future__ import annotations

from collections.abc import Collection
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

#: Figures that say how busy the command is, with noise or without, and the command itself.
_ACTIVITY = (
    "noise_gain", "noise_command", "ks_peak", "tv", "tv_load", "effort", "energy", "sat_fraction", "command",
    "course_command",
)  # fmt: skip


def noise_remarks(parameters: Collection[str], judged: Collection[str], measure: str) -> list[str]:
    """A sentence for a study that tunes the derivative without any limit on noise in the command. `judged` are the
    outputs in objectives and limits, `measure` is that of noise which the model has."""
    free = [name for name in parameters if name.removesuffix("_v") in ("td", "kd", "tf")]
    if not free or any(name.removeprefix("speed_") in _ACTIVITY for name in judged):
        return []
    return [
        f"no objective or limit holds back what the controller makes of noise, while {', '.join(free)} may vary: "
        f"expect derivatives that no sensor allows; limit {measure} or tv, or minimize one of them"
    ]
