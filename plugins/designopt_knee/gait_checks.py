"""Checks of one recorded gait cycle: impossible columns are refused, with the likely cause; doubtful ones are noted."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from designopt.arrays import Floats
from designopt_knee.gait_file import refused

#: Largest distance of a time from its phase, in median steps: room for rounded times.
_TIME_TOLERANCE = 0.25
_STATED_PERIOD = 0.01  # relative difference of the period in the comment of a file from the times of its samples
_SAME_PERIOD = 0.05  # relative difference of a stated period from the times of the samples
CLOSED_LENGTH, _CLOSED_ANGLE = 5e-3, 2.0  # m, deg: a cycle ends where it began
_ADVANCE = 0.3  # m in a cycle: a walk over ground
_HIGHEST_HIP, _MILLIMETRES = 10.0, 300.0  # m: of a hip in other units; above, in millimetres
_INCONSISTENT_ANGLE = 5.0  # deg between a joint's angle and the difference of its links'
_RADIANS_SUSPECTED = 3.2  # angles in deg that all stay below this in size were probably written in rad
#: A last phase from which on phases are not shares of the cycle.
_PERCENT = 2.0
#: Joints whose angle is that of the first link less that of the second.
_LINKS = {"knee": ("thigh", "shank"), "ankle": ("foot", "shank")}
#: Angles that may be in radians together.
_TOGETHER = (("thigh",), ("shank",), ("foot",), ("knee",), ("ankle",), ("thigh", "shank", "foot"), ("knee", "ankle"))


def check_phase(phase: Floats) -> None:
    """Phases increase from 0 to 1."""
    late = np.flatnonzero(np.diff(phase) <= 0.0)
    if phase[0] == 0.0 and phase[-1] == 1.0 and not len(late):
        return
    where = f"; sample {late[0] + 2} is not after the one before" if len(late) else ""
    if not len(late) and phase[-1] > _PERCENT:
        where = f"; it ends at {phase[-1]:g}: divide it by {phase[-1]:g}"
        where += " (it is in percent)" if phase[-1] == 100.0 else ""
    raise refused(f"phase must increase from 0 in the first row to 1 in the last{where}")


def check_times(time: Floats, phase: Floats, period: float | None) -> None:
    """Times increase and advance with the phase, by which the series is fitted; they are not a stated `period` (s) in
    milliseconds."""
    steps = np.diff(time)
    if not (steps > 0.0).all():
        row = int(np.argmax(steps <= 0.0)) + 2
        raise refused(f"time_s must increase: sample {row} ({time[row - 1]:g} s) is not later than the one before")
    if period is not None and abs(1e-3 * (time[-1] - time[0]) - period) < _SAME_PERIOD * period:
        raise refused(
            f"time_s spans {time[-1] - time[0]:g} and the period is {period:g} s; convert it from milliseconds"
        )
    off = np.abs(time - time[0] - phase * (time[-1] - time[0]))
    if (off > _TIME_TOLERANCE * np.median(steps)).any():
        row = int(np.argmax(off > _TIME_TOLERANCE * np.median(steps))) + 1
        raise refused(
            f"time_s does not advance with the phase: sample {row} is off by {off[row - 1]:.3g} s; phase is the share"
            " of the cycle's time"
        )


def check_stated_period(time: Floats, stated: float) -> None:
    """The period (s) that the file states in a comment is the time that its samples span."""
    span = float(time[-1] - time[0])
    if abs(span - stated) > _STATED_PERIOD * stated:
        raise refused(f"time_s spans {span:g} s, but the file states period_s={stated:g}; correct one of them")


def check_gaps(phase: Floats, harmonics: int) -> None:
    """No two samples are further apart than half a period of the last harmonic: between them the series would be
    free."""
    steps = np.diff(phase)
    row = int(np.argmax(steps)) + 1
    if harmonics * steps[row - 1] > 0.5:
        raise refused(
            f"between the samples {row} and {row + 1} {100.0 * steps[row - 1]:.3g} % of the cycle are missing;"
            f" {harmonics} harmonics need steps of at most {50.0 / harmonics:.3g} %: add samples, or take fewer"
        )


def check_lengths(columns: Mapping[str, Floats]) -> None:
    """A hip higher than any person's is one in other units than metres; one that advances upwards is another axis."""
    advances = {name: abs(float(columns[name][-1] - columns[name][0])) for name in ("hip_x_m", "hip_y_m")}
    if advances["hip_x_m"] <= CLOSED_LENGTH and advances["hip_y_m"] > _ADVANCE:
        raise refused(
            f"hip_y_m advances by {advances['hip_y_m']:.3f} m in the cycle, and hip_x_m ends where it began;"
            " exchange them"
        )
    height = float(np.abs(columns["hip_y_m"]).mean())
    if height > _HIGHEST_HIP:
        unit, factor = ("millimetres", 1000) if height > _MILLIMETRES else ("centimetres", 100)
        raise refused(
            f"column 'hip_y_m' is {height:.4g} on average, but a hip is about 0.9 m above the ground; convert hip_x_m"
            f" and hip_y_m from {unit} (divide by {factor})"
        )


def check_angles(columns: Mapping[str, Floats]) -> tuple[str, ...]:
    angles = {name: values for name, values in columns.items() if name.endswith("_deg")}
    for name, values in angles.items():
        if np.abs(values).max() > 180.0:
            raise refused(f"column '{name}': an angle of more than 180 deg")
    warnings = []
    if all(np.abs(values).max() < _RADIANS_SUSPECTED for values in angles.values()):
        raise refused(
            "all angles are below 3.2, but the columns are in degrees; convert them from radians (times 57.3)"
        )
    if mistake := _wrong_columns(angles):
        raise refused(mistake)
    for name, (upper, lower) in _LINKS.items():
        joint, of_links = angles[f"{name}_deg"], angles[f"{upper}_deg"] - angles[f"{lower}_deg"]
        apart = _apart(angles, name, (upper, lower))
        if apart <= _INCONSISTENT_ANGLE:
            continue
        curves = _side_by_side(f"{name}_deg", joint, f"{upper}_deg - {lower}_deg", of_links)
        if np.abs(joint + of_links).max() <= _INCONSISTENT_ANGLE:
            if name == "knee" and joint.max() > -joint.min():  # it bends as a knee does: both links are wrong
                is_exchange = np.ptp(angles["thigh_deg"]) > np.ptp(angles["shank_deg"])  # a shank swings further
                mistake = "are exchanged" if is_exchange else "both have the opposite sign; reverse both"
                raise refused(f"thigh_deg and shank_deg {mistake} ({curves})")
            raise refused(f"{name}_deg has the opposite sign of {upper}_deg - {lower}_deg; reverse it ({curves})")
        warnings.append(
            f"gait: {name}_deg differs from {upper}_deg - {lower}_deg by up to {apart:.1f} deg; is a sign reversed, or"
            f" an angle measured from another posture? ({curves})"
        )
    return tuple(warnings)


def _wrong_columns(angles: Mapping[str, Floats]) -> str:
    """Columns in radians, or a link's angle with the opposite sign, in a sentence: with the correction, joints agree
    with their links; "" if nothing of this explains a difference."""
    for names in _TOGETHER:
        columns = [f"{name}_deg" for name in names]
        radians = all(np.abs(angles[column]).max() < _RADIANS_SUSPECTED for column in columns)
        if radians and _agree(angles, names, {column: np.degrees(angles[column]) for column in columns}):
            return (
                f"{' and '.join(columns)} stay below 3.2, and read as radians fit the other angles; convert to degrees"
                " (times 57.3)"
            )
    for name in ("thigh", "shank", "foot"):
        column = f"{name}_deg"
        if _agree(angles, (name,), {column: -angles[column]}):
            positive = "toe up" if name == "foot" else "its lower end forward"
            return f"{column} has the opposite sign: {positive} is positive; reverse it"
    return ""


def _agree(angles: Mapping[str, Floats], names: Collection[str], corrected: Mapping[str, Floats]) -> bool:
    """Whether the joints that involve `names` differ from their links, but not with the `corrected` angles."""
    pairs = [(joint, links) for joint, links in _LINKS.items() if {joint, *links} & {*names}]

    def agree(some: Mapping[str, Floats]) -> bool:
        return all(_apart(some, joint, links) <= _INCONSISTENT_ANGLE for joint, links in pairs)

    return not agree(angles) and agree({**angles, **corrected})


def _apart(angles: Mapping[str, Floats], joint: str, links: tuple[str, str]) -> float:
    upper, lower = (angles[f"{link}_deg"] for link in links)
    return float(np.abs(angles[f"{joint}_deg"] - (upper - lower)).max())


def _side_by_side(name: str, values: Floats, other_name: str, other_values: Floats) -> str:
    """Two curves at quarters of the cycle."""
    rows = np.linspace(0, len(values) - 1, 5).round().astype(int)[:-1]
    curves = [", ".join(str(round(float(v))) for v in curve[rows]) for curve in (values, other_values)]
    return f"at 0, 25, 50, 75 % of the cycle {name} is {curves[0]}, {other_name} {curves[1]}"


def check_closed(column: str, values: Floats) -> None:
    """`values` in m or rad, trend removed."""
    length = column.endswith("_m")
    step = abs(float(values[-1] - values[0])) * (1.0 if length else 180.0 / np.pi)
    limit, unit = (CLOSED_LENGTH, "m") if length else (_CLOSED_ANGLE, "deg")
    if step > limit:
        raise refused(f"column '{column}': first and last row differ by {step:.3g} {unit}, more than {limit:g} {unit}")
