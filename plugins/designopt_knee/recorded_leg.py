"""Checks of a recorded gait against the leg that is to walk by it: does its sole reach the ground, and move with it?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from designopt_knee import linkage
from designopt_knee.gait import Gait

#: Least and greatest depth (m) of the sole below the ground in the recorded posture, rigid ground taken away.
_ABOVE, _BELOW = 5e-3, 0.05
#: Share of the cycle in which the sole is lowest, and difference of its speed from that of the ground.
_STANCE, _SPEED = 0.4, 0.35
#: The foot's speed in stance varies less with the hip's forward motion reversed, by this factor, if its sign is wrong.
_STEADIER = 0.7


def leg_remarks(gait: Gait, g: Mapping[str, float]) -> list[str]:
    """Sentences on a leg with the parameters `g` (SI units) that does not fit the recorded hip, thigh, knee and ankle.

    The leg is put into the recorded posture at 200 phases: the lowest point of its sole must reach the ground, and
    where the sole is lowest it must move backward with the belt, at a speed that a reversed `hip_x` makes no steadier.
    """
    phase = np.linspace(0.0, 1.0, 201)
    hip_x, hip_y, thigh, knee, ankle = (gait.series(s, phase) for s in ("hip_x", "hip_y", "thigh", "knee", "ankle"))
    eta = linkage.eta_of_flexion(g, np.maximum(knee, 0.0))
    ad, shank = linkage.relative_angles(g, eta)
    hip = (hip_x, g["hip_hike"] * hip_y)
    places = linkage.points(g, hip, thigh, thigh + shank, thigh + ad, thigh + eta, thigh + shank + ankle)
    sole = np.minimum(places["heel"][1], places["toe"][1])
    lowest = float(sole.min())
    leg = float(np.hypot(places["ankle"][0] - hip[0], places["ankle"][1] - hip[1]).max())
    lengths = f"hip to ankle {leg:.3f} m, hip height {hip[1].min():.3f} to {hip[1].max():.3f} m"
    if lowest > _ABOVE:
        return [
            f"gait: in the recorded posture the sole stays at least {1e3 * lowest:.0f} mm above the ground, so the leg"
            f" never stands ({lengths}); lengthen shank_length or thigh_length, or correct hip_y_m"
        ]
    remarks = []
    if lowest < -_BELOW:
        remarks.append(
            f"gait: in the recorded posture the sole is up to {-1e3 * lowest:.0f} mm below the ground ({lengths});"
            " shorten shank_length or thigh_length, or correct hip_y_m"
        )
    stance = sole <= np.quantile(sole, _STANCE)
    ankle_x, of_reversed_hip = places["ankle"][0], places["ankle"][0] - 2.0 * hip_x
    speeds, reversed_speeds = (-np.gradient(x, phase * gait.period)[stance] for x in (ankle_x, of_reversed_hip))
    speed = float(speeds.mean())
    if abs(speed - gait.belt_speed) > _SPEED * max(gait.belt_speed, speed):
        remarks.append(
            f"gait: in stance the foot moves backward under the hip at {speed:.2f} m/s, but the walking speed is"
            f" {gait.belt_speed:.2f} m/s; check belt_speed, period and the lengths of the leg"
        )
    elif reversed_speeds.std() < _STEADIER * speeds.std():
        remarks.append(
            f"gait: in stance the foot's speed under the hip varies by {speeds.std():.2f} m/s, and by"
            f" {reversed_speeds.std():.2f} m/s with hip_x_m reversed; x is forward: is its sign wrong?"
        )
    return remarks
