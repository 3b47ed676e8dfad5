"""Is the knee straight when the heel strikes, and does the load keep it so?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from designopt_knee import linkage
from designopt_knee.outputs import STABLE

#: Difference (deg) of the knee angle at heel strike from the recorded one from which on the knee counts as bent.
_BENT = 10.0


def straight_knee_remarks(g: Mapping[str, float]) -> list[str]:
    """A sentence on a leg `g` whose straight knee the load at heel strike does not keep straight (`centre_offset`)."""
    _, offset = linkage.centre_offset(g)
    if offset >= STABLE[0]:
        return []
    side = "behind" if offset >= 0.0 else "before"
    return [
        f"parameters: the instant centre of the straight knee lies {1e3 * abs(offset):.2g} mm {side} the line from hip"
        f" to heel (centre_offset; at least {1e3 * STABLE[0]:g} mm behind it the load at heel strike keeps the knee"
        " straight): check ab_length, heel_fraction, foot_length, thigh_length and shank_length"
    ]


def bent_knee_remarks(angles: Sequence[tuple[float, float]]) -> list[str]:
    """A sentence on simulated and recorded `angles` (deg) of the knee at heel strike, one pair for each scenario, where
    they differ most."""
    knee, recorded_knee = max(angles, key=lambda pair: pair[0] - pair[1], default=(0.0, 0.0))
    if knee - recorded_knee <= _BENT:
        return []
    return [
        f"the knee is bent by {knee:.1f} deg at heel strike, and by {recorded_knee:.1f} deg in the recording: a knee"
        " that is not straight there may give way under the load; read knee_angle, and limit rms_error (max: 5 deg)"
    ]
