"""Checks of a recorded gait against the leg that is to walk by it: does its sole reach the ground, and move with it?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from designopt.plugin import InvalidSetting
from designopt_knee import linkage
from designopt_knee.gait import Gait
from designopt_knee.leg_ranges import range_remarks
from designopt_knee.mistakes import CHAINS, LEAST_FLEXION, column_names, exchanged, mistakes_in, reversed_in
from designopt_knee.posture import (
    PHASE,
    Posture,
    backward_speed,
    heel_strike,
    misfit,
    recorded_posture,
    recorded_signals,
    sole_angle,
    sole_height,
    standing,
)

#: Least and greatest depth (m) of the sole below the ground in the recorded posture, rigid ground taken away. A slow
#: walk ended with `linkage_limit` from 48 mm on with every damper tried, and up to 40 mm with none.
_ABOVE, _BELOW = 5e-3, 0.045
#: Depth (m) of the sole in the bundled walk with the legs of the parameter sets, and the range of factors on lengths
#: that are tried to reach it.
_FITTING, _FACTORS = 8.5e-3, (0.6, 1.4)
#: Distance of the walking speed from the foot's speed while it stands, relative to the latter, from which on it is
#: doubtful (recorded walks have 0.02 to 0.05), and factor between them, either way, from which on it is refused.
_SPEED, _WRONG_SPEED = 0.12, 2.0
_STILL = 2e-3  # m: of a hip that was not recorded; that of the bundled walk moves by 30 and 37 mm
_LONGER = 1e-2  # m: from which on a straight leg is longer than the hip is high; the legs that fit are by 2 and 3 mm
_NEAR = 5e-3  # m: a swing with a damper reaches what the recorded one has, and little more
_KMH, _SAME_SPEED = 3.6, 0.2  # km/h in 1 m/s; relative difference of speeds that are the same in other units
#: Distance of the cycle's beginning from heel strike, as a share of the cycle, from which on it is doubtful. In
#: recorded and predicted walks, also of an amputee, the heel is farthest in front of the hip within 0.03 of the force's
#: onset.
_LATE_START = 0.1
#: How far (rad) the toe may point up, or down, while the sole stands: nobody walks on the heels alone. Predicted walks
#: reach 7 deg; a toe walker's heel stays up.
_TOE_UP, _TOE_DOWN = np.radians(8.0), np.radians(25.0)
#: Angle (rad) from which on the toe points up there and the ankle's path rises forward, both, in a leg that is turned
#: as a whole: the path is level within 2 deg in recorded walks, and in a predicted one whose toe points up by 7 deg.
_TURNED = np.radians(4.0)
#: The foot's speed in stance varies less with the hip's forward motion reversed, by this factor, if its sign is wrong.
_STEADIER = 0.7
#: Misfits of a recorded posture that needs a cause and of one that walks, and the share that the right correction
#: leaves. Nothing in the table explains legs 20 % too long or short, wrong speeds, turned links, or shifted cycles.
_DOUBTFUL, _WALKS, _EXPLAINED = 0.75, 0.9, 0.6


def leg_remarks(gait: Gait, g: Mapping[str, float]) -> list[str]:
    """Sentences on a leg with the parameters `g` (SI units) that does not fit the recorded hip, thigh, knee and ankle.

    The leg is put into the recorded posture: the lowest point of its sole must reach the ground, and where the sole is
    lowest it must move backward with the belt, at a speed that a reversed `hip_x` makes no steadier. The cycle must
    begin at heel strike, and soon after it the sole is level, or the toe points down. If the whole leg is turned,
    nothing else is said of the posture.
    """
    signals = recorded_signals(gait)
    posture = recorded_posture(signals, g)
    hip_y, sole = posture["hip"][1], sole_height(posture)
    lowest = float(sole.min())
    leg = float(np.hypot(posture["ankle"][0] - posture["hip"][0], posture["ankle"][1] - hip_y).max())
    remarks = range_remarks(g) or _length_remarks(g)
    remarks += [
        f"gait: {column_names([name])} does not change in the cycle, but a hip moves by centimetres: was it recorded?"
        for name in ("hip_x", "hip_y")
        if np.ptp(signals[name]) < _STILL
    ]
    if not gait.warnings:
        if remark := _turned_remark(posture):
            return [*remarks, remark]
        remarks += _posture_remarks(posture)
    lengths = f"hip to ankle {leg:.3f} m, hip height {hip_y.min():.3f} to {hip_y.max():.3f} m"
    if lowest > _ABOVE:
        return [
            *remarks,
            f"gait: in the recorded posture the sole stays at least {1e3 * lowest:.0f} mm above the ground, so the leg"
            f" never stands ({lengths}); {_fitting_lengths(gait, g, 'lengthen')}",
        ]
    if lowest < -_BELOW:
        remarks.append(
            f"gait: in the recorded posture the sole is up to {-1e3 * lowest:.0f} mm below the ground ({lengths}), and"
            f" such a leg folded up with every damper tried (linkage_limit); {_fitting_lengths(gait, g, 'shorten')}"
        )
    ankle_x, stands = posture["ankle"][0], standing(posture)
    varies, varies_reversed = (
        float(backward_speed(x, gait.period)[stands].std()) for x in (ankle_x, ankle_x - 2.0 * signals["hip_x"])
    )
    speed = _foot_speed(gait, posture)
    if varies_reversed < _STEADIER * varies:
        remarks.append(
            f"gait: while the foot stands, its speed under the hip varies by {varies:.2f} m/s, and by"
            f" {varies_reversed:.2f} m/s with hip_x_m reversed; x is forward: is its sign wrong?"
        )
    elif abs(speed - gait.belt_speed) > _SPEED * speed:
        remarks.append(f"gait: {_speeds_differ(gait, speed)}")
    return remarks


def clearance_remarks(gait: Gait, g: Mapping[str, float], window: tuple[float, float], least: float) -> list[str]:
    """A sentence on the lowest toe of the leg `g` in the recorded posture between the phases `window`, if the `least`
    height (m) that it is to have is above that, or near it; none where the leg does not fit the walk."""
    posture = recorded_posture(recorded_signals(gait), g)
    toe, hip_height = posture["toe"][1], posture["hip"][1]
    toe = np.where((window[0] <= PHASE) & (window[1] >= PHASE), toe, np.inf)
    lowest = float(toe.min())
    if least < lowest - _NEAR or gait.warnings or leg_remarks(gait, g):
        return []
    height = f"{1e3 * abs(lowest):.1f} mm {'above' if lowest >= 0.0 else 'below'} the ground"
    share = 100.0 * PHASE[np.argmin(toe)]
    advice = "lower the limit, or " if least > lowest else "that leaves little room; "
    leg = -float(linkage.straight_leg(g)["ankle"][1])
    link_length = leg - g["thigh_length"] - g["shank_length"]
    lengths = "foot_length and the other lengths"
    if leg > hip_height.max() + _LONGER:
        lengths += (
            f": the straight leg of thigh_length, the linkage ({link_length:.3f} m) and shank_length is {leg:.3f} m"
            f" long, and the hip at most {hip_height.max():.3f} m high"
        )
    return [
        f"toe_clearance is to be at least {1e3 * least:.3g} mm, and in the recorded swing itself the toe of this leg is"
        f" {height} at {share:.0f} % of the cycle: {advice}check {lengths}"
    ]


def _likely_cause(gait: Gait, g: Mapping[str, float]) -> str:
    """The mistake that explains best why the leg `g` does not walk, with its remedy; "" if it walks, or none does."""
    signals = recorded_signals(gait)
    misfit_as_recorded = misfit(signals, gait, g)
    if misfit_as_recorded < _DOUBTFUL:
        return ""
    shank = signals["thigh"] - signals["knee"]
    table = {**signals, "shank": shank, "foot": shank + signals["ankle"]}
    causes = {}
    for chain in CHAINS:
        links = "foot" in chain
        computed_names = column_names(("knee", "ankle") if links else ("shank", "foot"))
        for mistake in mistakes_in(chain):
            table_if_right = {**table, **mistake.correction(table)}
            if links:
                shank = table_if_right["shank"]
                table_if_right |= {"knee": table_if_right["thigh"] - shank, "ankle": table_if_right["foot"] - shank}
            clause = f"{mistake.clause}, and compute {computed_names} from {column_names(chain)}"
            causes[clause] = misfit(table_if_right, gait, g)
    for mistake in (reversed_in(("hip_x", *CHAINS[0])), exchanged("hip_x", "hip_y")):
        causes[mistake.clause] = misfit({**table, **mistake.correction(table)}, gait, g)
    clause = min(causes, key=causes.__getitem__)
    if causes[clause] > min(_WALKS, _EXPLAINED * misfit_as_recorded):
        return ""
    return f"the recorded leg does not walk: {clause}; then the foot stands, and moves with the belt"


def _length_remarks(g: Mapping[str, float]) -> list[str]:
    """A sentence on a thigh (to E, above the knee) longer than the shank (from F): of a person they are alike between
    the joints (0.245 and 0.246 of the height: Winter 2009, Biomechanics and Motor Control of Human Movement, 4.1)."""
    thigh, shank = g["thigh_length"], g["shank_length"]
    if thigh <= shank:
        return []
    return [
        f"gait: thigh_length {thigh:.3f} m (hip to E) is longer than shank_length {shank:.3f} m (F to ankle), and E"
        " lies above the knee: are they exchanged?"
    ]


def _turned_remark(posture: Posture) -> str:
    """A sentence on a thigh that counts from the pelvis, which turns the whole leg about the hip: the foot and the path
    of the ankle; "" if it does not."""
    ankle_x, ankle_y = posture["ankle"]
    stands = standing(posture)
    path_rise = float(np.arctan(np.polyfit(ankle_x[stands], ankle_y[stands], 1)[0]))
    if min(_toe_up(posture), path_rise) <= _TURNED:
        return ""
    return (
        f"gait: {_toe_points(posture)}, and the ankle's path over the belt rises forward by"
        f" {np.degrees(path_rise):.0f} deg, as if the whole leg were turned; is thigh_deg the flexion of the hip? It"
        " counts from the vertical: subtract the pelvis' forward tilt"
    )


def _posture_remarks(posture: Posture) -> list[str]:
    """Sentences on a cycle that begins far from heel strike, and on a toe that points up or down in stance."""
    remarks = []
    strike = heel_strike(posture)
    if min(strike, 1.0 - strike) > _LATE_START:
        percent = f"{100.0 * strike:.0f} %"
        remarks.append(
            f"gait: the cycle does not begin at heel strike: the heel is farthest in front of the hip at {percent} of"
            " it, and swing_window and the phases of the outputs count from heel strike; shift all columns but phase"
            f" and time_s by {percent}, so that the row there is the first (only the angles, if hip_x_m and hip_y_m"
            " already begin at it)"
        )
    if not -_TOE_DOWN < _toe_up(posture) < _TOE_UP:
        remarks.append(f"gait: {_toe_points(posture)}, so the sole never stands flat; is ankle_deg not 0 in standing?")
    return remarks


def _toe_up(posture: Posture) -> float:
    """The median angle (rad) of the sole while it stands, positive with the toe up."""
    return float(np.median(sole_angle(posture)[standing(posture)]))


def _toe_points(posture: Posture) -> str:
    angle = _toe_up(posture)
    return (
        "from 10 to 40 % of the cycle after heel strike the toe points"
        f" {'up' if angle > 0.0 else 'down'} by {abs(np.degrees(angle)):.0f} deg (median)"
    )


def check_walk(gait: Gait, g: Mapping[str, float]) -> None:
    """Raise `InvalidSetting` for a knee that does not bend, a leg `g` that does not walk because of a mistake in the
    columns, and a walking speed that is more than `_WRONG_SPEED` times the speed of its standing foot, or less than its
    inverse."""
    signals = recorded_signals(gait)
    knee, contradiction = np.degrees(signals["knee"]), " ".join(gait.warnings).removeprefix("gait: ")
    cause = _likely_cause(gait, g)
    if knee.max() < LEAST_FLEXION:
        question = cause or contradiction or "is it in degrees, and of a whole cycle?"
        raise InvalidSetting("gait", f"the knee is between {knee.min():.3g} and {knee.max():.3g} deg; {question}")
    if cause:
        raise InvalidSetting("gait", cause)
    posture = recorded_posture(signals, g)
    speed = _foot_speed(gait, posture)
    if speed > 0.0 and not 1.0 / _WRONG_SPEED <= gait.belt_speed / speed <= _WRONG_SPEED:
        if contradiction:
            raise InvalidSetting("gait", contradiction)
        raise InvalidSetting("belt_speed", _speeds_differ(gait, speed))


def _foot_speed(gait: Gait, posture: Posture) -> float:
    """The median backward speed (m/s) of the ankle under the hip while the foot stands."""
    return float(np.median(backward_speed(posture["ankle"][0], gait.period)[standing(posture)]))


def _speeds_differ(gait: Gait, speed: float) -> str:
    """A sentence for a foot whose `speed` (m/s) in stance is not that of the gait, with the likely cause."""
    if abs(gait.belt_speed - _KMH * speed) < _SAME_SPEED * gait.belt_speed:
        cause = f"is it in km/h? Divide by 3.6: {gait.belt_speed / _KMH:.2f} m/s"
    else:
        cause = "check belt_speed, period and the lengths of the leg"
    share = f" ({100.0 * (gait.belt_speed / speed - 1.0):+.0f} %)" if speed > 0.0 else ""
    way = "backward" if speed >= 0.0 else "forward"
    return (
        f"while it stands, the foot moves {way} under the hip at {abs(speed):.2f} m/s, but the walking speed is"
        f" {gait.belt_speed:.2f} m/s{share}; {cause}"
    )


def _fitting_lengths(gait: Gait, g: Mapping[str, float], change: str) -> str:
    """Lengths of thigh and shank, changed by one factor, with which the sole is as deep as in the bundled walk, as the
    end of a sentence."""
    signals = recorded_signals(gait)
    low, high = _FACTORS
    for _ in range(20):
        factor = 0.5 * (low + high)
        scaled_leg = {**g, "thigh_length": factor * g["thigh_length"], "shank_length": factor * g["shank_length"]}
        deep = sole_height(recorded_posture(signals, scaled_leg)).min() < -_FITTING
        low, high = (low, factor) if deep else (factor, high)
    if not _FACTORS[0] + 1e-3 < factor < _FACTORS[1] - 1e-3:
        return f"{change} shank_length or thigh_length, or correct hip_y_m"
    thigh, shank = (factor * g[name] for name in ("thigh_length", "shank_length"))
    return (
        f"thigh_length {thigh:.3f} m and shank_length {shank:.3f} m, both times {factor:.3f}, fit this hip height"
        f" ({change} either), or correct hip_y_m"
    )
