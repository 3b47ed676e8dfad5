"""Recorded sagittal angles of normal gait as Fourier series, and the directions of rods that follow from them.

Source: normal.mot of the OpenSim introductory tutorial (opensim-org/opensim-models), Creative Commons Attribution 3.0;
right leg, 50 samples of one cycle. Changes: fitted with eight harmonics by least squares, with root mean square
differences of 0.02 (thigh), 0.06 (knee) and 0.17 degrees (ankle). The time of the cycle is not in the source.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from designopt.lazy import casadi as ca

#: c0, c1, s1, c2, s2, ... (rad): thigh from the vertical, forward positive; knee flexion; ankle dorsiflexion.
SERIES: Mapping[str, tuple[float, ...]] = {
    "thigh": (
        0.099341, 0.363517, -0.066341, -0.064506, -0.008593, 0.001383, 0.027038, -0.002834, -0.002048, -0.003060,
        0.003702, 0.001494, -0.000135, -0.000478, -0.000334, 0.000405, -0.000173,
    ),
    "knee": (
        0.354396, -0.031666, -0.338285, -0.241492, 0.144666, 0.000114, 0.078677, -0.012264, 0.008736, -0.005938,
        0.014222, 0.004116, 0.002578, -0.000166, -0.000259, 0.001159, 0.000530,
    ),
    "ankle": (
        0.019499, -0.040338, 0.087582, 0.015623, -0.101363, -0.062691, 0.009085, 0.032130, -0.000947, -0.006788,
        -0.018904, 0.006126, 0.006741, 0.007278, -0.008741, -0.001331, -0.000560,
    ),
}  # fmt: skip
#: Single support, in cycles from heel strike: toe off to heel strike of the other leg (Perry, Gait Analysis, 1992).
#: Five rods stand on the ankle, which rests until the heel rises: beyond, the recorded motion takes more moment at the
#: ankle than any drive has, and the model ends there.
BEGIN = 0.12
END: Mapping[int, float] = {5: 0.42, 11: 0.50}
#: Angle over which the sole goes over from flat to lifted (rad).
_LIFT = 0.02


def angle(name: str, phase: Any) -> Any:
    """One of `SERIES` (rad) at `phase` (cycles)."""
    constant, *waves = SERIES[name]
    total = ca.SX(constant)
    for k in range(len(waves) // 2):
        at = 2.0 * math.pi * (k + 1) * phase
        total += waves[2 * k] * ca.cos(at) + waves[2 * k + 1] * ca.sin(at)
    return total


def leg(phase: Any) -> tuple[Any, Any, Any]:
    """Angles of thigh and shank from the vertical, of the foot from the ground (rad); forward and toes up positive."""
    thigh = angle("thigh", phase)
    shank = thigh - angle("knee", phase)
    return thigh, shank, shank + angle("ankle", phase)


def sole_angle(foot: Any) -> Any:
    """The angle (rad, at most 0) of a sole that stays flat until the heel lifts; smooth."""
    return 0.5 * (foot - ca.sqrt(foot**2 + _LIFT**2))
