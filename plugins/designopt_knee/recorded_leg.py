"""Checks of a recorded gait against the leg that is to walk by it: does its sole reach the ground, and move with it?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InvalidSetting
from designopt_knee import linkage
from designopt_knee.gait import Gait

#: Least and greatest depth (m) of the sole below the ground in the recorded posture, rigid ground taken away. A slow
#: walk ended with `linkage_limit` from 48 mm on with every damper tried, and up to 40 mm with none.
_ABOVE, _BELOW = 5e-3, 0.045
#: That depth (m) of the bundled walk with the legs of the parameter sets, and factors on lengths tried to reach it.
_FITTING, _FACTORS = 8.5e-3, (0.6, 1.4)
#: Share of the cycle in which the sole is lowest.
_STANCE = 0.4
#: Distance of the walking speed from the foot's speed in stance, relative to the latter, from which on it is doubtful
#: (the bundled walk has 0.14), and factor between them, either way, from which on it is refused.
_SPEED, _WRONG_SPEED = 0.25, 2.0
_LOW_HIP = 0.65  # m: lower than an adult's hip
_KMH, _SAME_SPEED = 3.6, 0.2  # km/h in 1 m/s; relative difference of speeds that are the same in other units
#: Distance of the cycle's beginning from heel strike, as a share of the cycle, from which on it is doubtful. In
#: recorded and predicted walks, also of an amputee, the heel is farthest in front of the hip within 0.03 of the force's
#: onset.
_LATE_START = 0.1
#: Phases after heel strike between which the sole stands, and how far (rad) the toe may point up there: nobody walks on
#: the heels alone. Predicted walks reach 7 deg.
_STANDING, _TOE_UP = (0.1, 0.4), np.radians(8.0)
#: Angle (rad) from which on the toe points up there and the ankle's path rises forward, both, in a leg that is turned
#: as a whole: the path is level within 2 deg in recorded walks, and in a predicted one whose toe points up by 7 deg.
_TURNED = np.radians(4.0)
#: The foot's speed in stance varies less with the hip's forward motion reversed, by this factor, if its sign is wrong.
_STEADIER = 0.7


def leg_remarks(gait: Gait, g: Mapping[str, float]) -> list[str]:
    """Sentences on a leg with the parameters `g` (SI units) that does not fit the recorded hip, thigh, knee and ankle.

    The leg is put into the recorded posture at 200 phases: the lowest point of its sole must reach the ground, and
    where the sole is lowest it must move backward with the belt, at a speed that a reversed `hip_x` makes no steadier.
    The heel is farthest in front of the hip at heel strike (Zeni, Richards & Higginson 2008, Gait & Posture 27,
    710-714): there the cycle must begin, and soon after it the sole is level, or the toe points down.
    """
    phase = np.linspace(0.0, 1.0, 201)
    hip_x = gait.series("hip_x", phase)
    places = _recorded_posture(gait, g, phase)
    hip_y, sole = places["hip"][1], np.minimum(places["heel"][1], places["toe"][1])
    lowest = float(sole.min())
    leg = float(np.hypot(places["ankle"][0] - places["hip"][0], places["ankle"][1] - hip_y).max())
    strike = float(phase[np.argmax(places["heel"][0] - hip_x)])
    remarks = [] if gait.warnings else _posture_remarks(phase, strike, places)
    lengths = f"hip to ankle {leg:.3f} m, hip height {hip_y.min():.3f} to {hip_y.max():.3f} m"
    if lowest > _ABOVE:
        return [
            *remarks,
            f"gait: in the recorded posture the sole stays at least {1e3 * lowest:.0f} mm above the ground, so the leg"
            f" never stands ({lengths}); {_fitting_lengths(gait, g, 'lengthen')}",
        ]
    if lowest < -_BELOW:
        with_other_ankle = _recorded_posture(gait, g, phase, ankle_sign=-1.0)
        has_other_sign = min(with_other_ankle[point][1].min() for point in ("heel", "toe")) > -_BELOW
        ankle = " is the sign of ankle_deg reversed (toe up is positive)? With the other one the foot fits; or else"
        remarks.append(
            f"gait: in the recorded posture the sole is up to {-1e3 * lowest:.0f} mm below the ground ({lengths}), and"
            f" such a leg folded up with every damper tried (linkage_limit);{ankle if has_other_sign else ''}"
            f" {_fitting_lengths(gait, g, 'shorten')}"
        )
    ankle_x = places["ankle"][0]
    speeds, reversed_speeds = (_in_stance(x, sole, gait.period) for x in (ankle_x, ankle_x - 2.0 * hip_x))
    speed = float(speeds.mean())
    if abs(speed - gait.belt_speed) > _SPEED * speed:
        remarks.append(f"gait: {_speeds_differ(gait, speed)}")
    elif reversed_speeds.std() < _STEADIER * speeds.std():
        remarks.append(
            f"gait: in stance the foot's speed under the hip varies by {speeds.std():.2f} m/s, and by"
            f" {reversed_speeds.std():.2f} m/s with hip_x_m reversed; x is forward: is its sign wrong?"
        )
    return remarks


def _posture_remarks(phase: Floats, strike: float, places: Mapping[str, linkage.Point]) -> list[str]:
    """Sentences on a cycle that begins far from the heel's `strike`, a phase, and on a toe that points up in stance.

    A thigh that counts from the pelvis turns the whole leg about the hip: the foot and the path of the ankle.
    """
    remarks = []
    if min(strike, 1.0 - strike) > _LATE_START:
        percent = f"{100.0 * strike:.0f} %"
        remarks.append(
            f"gait: the cycle does not begin at heel strike: the heel is farthest in front of the hip at {percent} of"
            " it, and swing_window and the phases of the outputs count from heel strike; shift all columns but phase"
            f" and time_s by {percent}, so that the row there is the first"
        )
    after = (phase - strike) % 1.0
    standing = (after >= _STANDING[0]) & (after <= _STANDING[1])
    rise, run = (places["toe"][i] - places["heel"][i] for i in (1, 0))
    toe_up = float(np.median(np.arctan2(rise, run)[standing]))
    ankle_x, ankle_y = places["ankle"]
    path_rise = float(np.arctan(np.polyfit(ankle_x[standing], ankle_y[standing], 1)[0]))
    when = f"from {100.0 * _STANDING[0]:.0f} to {100.0 * _STANDING[1]:.0f} % of the cycle after heel strike the"
    up = f"toe points up by {np.degrees(toe_up):.0f} deg (median)"
    if min(toe_up, path_rise) > _TURNED:
        remarks.append(
            f"gait: {when} {up}, and the ankle's path over the belt rises forward by {np.degrees(path_rise):.0f} deg,"
            " as if the whole leg were turned; is thigh_deg the flexion of the hip? It counts from the vertical:"
            " subtract the pelvis' forward tilt"
        )
    elif toe_up > _TOE_UP:
        remarks.append(f"gait: {when} {up}, so the sole never stands flat; is ankle_deg not 0 in standing?")
    return remarks


def check_speed(gait: Gait, g: Mapping[str, float]) -> None:
    """Raise `InvalidSetting` for a walking speed that is more than `_WRONG_SPEED` times the speed of the foot of the
    leg `g` in stance, or less than its inverse."""
    phase = np.linspace(0.0, 1.0, 201)
    places = _recorded_posture(gait, g, phase)
    sole = np.minimum(places["heel"][1], places["toe"][1])
    speed = float(_in_stance(places["ankle"][0], sole, gait.period).mean())
    if speed > 0.0 and not 1.0 / _WRONG_SPEED <= gait.belt_speed / speed <= _WRONG_SPEED:
        raise InvalidSetting("belt_speed", _speeds_differ(gait, speed))


def _in_stance(x: Floats, sole: Floats, period: float) -> Floats:
    """Backward speeds (m/s) of the position `x` (m) over one cycle, where the `sole` is lowest."""
    time = np.linspace(0.0, period, len(x))
    return np.asarray(-np.gradient(x, time)[sole <= np.quantile(sole, _STANCE)])


def _speeds_differ(gait: Gait, speed: float) -> str:
    """That the foot moves at another `speed` (m/s) in stance than the gait, with the likely cause."""
    height = float(gait.coefficients["hip_x"][0])
    if abs(gait.belt_speed - _KMH * speed) < _SAME_SPEED * gait.belt_speed:
        cause = f"is it in km/h? Divide by 3.6: {gait.belt_speed / _KMH:.2f} m/s"
    elif gait.coefficients["hip_y"][0] < _LOW_HIP < height:
        cause = (
            f"are hip_x_m and hip_y_m exchanged? The hip is {gait.coefficients['hip_y'][0]:.2f} m above the ground on"
            f" average, and {height:.2f} m forward"
        )
    else:
        cause = "check belt_speed, period and the lengths of the leg"
    share = f" ({100.0 * (gait.belt_speed / speed - 1.0):+.0f} %)" if speed > 0.0 else ""
    way = "backward" if speed >= 0.0 else "forward"
    return (
        f"in stance the foot moves {way} under the hip at {abs(speed):.2f} m/s, but the walking speed is"
        f" {gait.belt_speed:.2f} m/s{share}; {cause}"
    )


def _recorded_posture(
    gait: Gait, g: Mapping[str, float], phase: Floats, *, ankle_sign: float = 1.0
) -> dict[str, linkage.Point]:
    """Positions of the joints (m) with the recorded hip, thigh, knee and ankle at `phase` (n,), the last one times
    `ankle_sign`."""
    hip_x, hip_y, thigh, knee, ankle = (gait.series(s, phase) for s in ("hip_x", "hip_y", "thigh", "knee", "ankle"))
    eta = linkage.eta_of_flexion(g, np.maximum(knee, 0.0))
    ad, shank = linkage.relative_angles(g, eta)
    hip = (hip_x, g["hip_hike"] * hip_y)
    return linkage.points(g, hip, thigh, thigh + shank, thigh + ad, thigh + eta, thigh + shank + ankle_sign * ankle)


def _fitting_lengths(gait: Gait, g: Mapping[str, float], change: str) -> str:
    """Lengths of thigh and shank, changed by one factor, with which the sole is as deep as in the bundled walk, as the
    end of a sentence."""
    phase = np.linspace(0.0, 1.0, 201)
    low, high = _FACTORS
    for _ in range(20):
        factor = 0.5 * (low + high)
        scaled = {**g, "thigh_length": factor * g["thigh_length"], "shank_length": factor * g["shank_length"]}
        places = _recorded_posture(gait, scaled, phase)
        deep = min(places["heel"][1].min(), places["toe"][1].min()) < -_FITTING
        low, high = (low, factor) if deep else (factor, high)
    if not _FACTORS[0] + 1e-3 < factor < _FACTORS[1] - 1e-3:
        return f"{change} shank_length or thigh_length, or correct hip_y_m"
    thigh, shank = (factor * g[name] for name in ("thigh_length", "shank_length"))
    return (
        f"thigh_length {thigh:.3f} m and shank_length {shank:.3f} m, both times {factor:.3f}, fit this hip height"
        f" ({change} either), or correct hip_y_m"
    )
