"""Checks of one recorded gait cycle: impossible columns are refused, with the likely cause; doubtful ones are noted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from designopt.arrays import Floats
from designopt.counts import plural
from designopt_knee.gait_file import refused
from designopt_knee.mistakes import LINKS_OF, Angles, apart, cause_of_contradiction, shapes_apart

#: Largest distance of a time from its phase, in median steps: room for rounded times.
_TIME_TOLERANCE = 0.25
_STATED_PERIOD = 0.01  # relative difference of the period in the comment of a file from the times of its samples
_SAME_PERIOD = 0.05  # relative difference of a stated period from the times of the samples
CLOSED_LENGTH, _CLOSED_ANGLE = 5e-3, 2.0  # m, deg: a cycle ends where it began
ADVANCE = 0.3  # m in a cycle: a walk over ground
_HIGHEST_HIP, _MILLIMETRES = 10.0, 300.0  # m: of a hip in other units; above, in millimetres
_TO_AND_FRO = 0.5  # m: of a hip about its mean motion, in other units
_OFF_SERIES, _SPIKE = {"deg": 4.0, "m": 0.02}, 4.0  # distance of one sample from the series, absolute and by the rms
_INCONSISTENT_ANGLE = 5.0  # deg between a joint's angle and the difference of its links'
_FEW = 0.15  # share of samples that differ because of a gap, not of their angle
_RADIANS_SUSPECTED = 2.0  # deg: no angle of a leg that walks stays below it, except that of a fixed ankle
_LARGEST_ANGLE = 720.0  # deg: beyond it a number marks a gap
_CONSTANT = 1e-3  # deg: of an angle that was not recorded, or does not change
#: A last phase from which on phases are not shares of the cycle.
_PERCENT = 2.0


def check_phase(phase: Floats, locations: Sequence[str]) -> None:
    """Phases increase from 0 to 1; `locations` are those of the samples in the file."""
    late = np.flatnonzero(np.diff(phase) <= 0.0)
    if phase[0] == 0.0 and phase[-1] == 1.0 and not len(late):
        return
    mistake = f"; {locations[late[0] + 1]} is not after the one before" if len(late) else f"; it ends at {phase[-1]:g}"
    if not len(late) and phase[-1] > _PERCENT:
        mistake = f"; it ends at {phase[-1]:g}: divide it by {phase[-1]:g}"
        mistake += " (it is in percent)" if phase[-1] == 100.0 else ""
    raise refused(f"phase must increase from 0 in the first row to 1 in the last{mistake}")


def check_times(time: Floats, phase: Floats, period: float | None, locations: Sequence[str]) -> None:
    """Times increase and advance with the phase, by which the series is fitted; they are not a stated `period` (s) in
    milliseconds. `locations` are those of the samples in the file."""
    steps = np.diff(time)
    if not (steps > 0.0).all():
        row = int(np.argmax(steps <= 0.0)) + 1
        raise refused(f"time_s must increase: {locations[row]} ({time[row]:g} s) is not later than the one before")
    if period is not None and abs(1e-3 * (time[-1] - time[0]) - period) < _SAME_PERIOD * period:
        raise refused(
            f"time_s spans {time[-1] - time[0]:g} and the period is {period:g} s; convert it from milliseconds"
        )
    off = np.abs(time - time[0] - phase * (time[-1] - time[0]))
    if (off > _TIME_TOLERANCE * np.median(steps)).any():
        row = int(np.argmax(off > _TIME_TOLERANCE * np.median(steps)))
        raise refused(
            f"time_s does not advance with the phase: {locations[row]} is off by {off[row]:.3g} s; phase is the share"
            " of the cycle's time"
        )


def check_stated_period(time: Floats, period: float) -> None:
    """The period (s) that the file states in a comment is the time that its samples span."""
    span = float(time[-1] - time[0])
    if abs(span - period) > _STATED_PERIOD * period:
        raise refused(f"time_s spans {span:g} s, but the file states period_s={period:g}; correct one of them")


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
    """A hip higher than any person's, or one that moves further to and fro, is one in other units than metres; one that
    advances upwards is another axis."""
    height = float(np.abs(columns["hip_y_m"]).mean())
    if height > _HIGHEST_HIP:
        unit, factor = ("millimetres", 1000) if height > _MILLIMETRES else ("centimetres", 100)
        names = "hip_x_m and hip_y_m" if np.ptp(columns["hip_x_m"]) > _TO_AND_FRO else "hip_y_m"
        raise refused(
            f"column 'hip_y_m' is {height:.4g} on average, but a hip is about 0.9 m above the ground; convert {names}"
            f" from {unit} (divide by {factor})"
        )
    advances = {name: abs(float(columns[name][-1] - columns[name][0])) for name in ("hip_x_m", "hip_y_m")}
    if advances["hip_x_m"] <= CLOSED_LENGTH and advances["hip_y_m"] > ADVANCE:
        raise refused(
            f"hip_y_m advances by {advances['hip_y_m']:.3f} m in the cycle, and hip_x_m ends where it began;"
            " exchange them"
        )
    forward = columns["hip_x_m"] - columns["phase"] * (columns["hip_x_m"][-1] - columns["hip_x_m"][0])
    if np.ptp(forward) > _TO_AND_FRO:
        unit, factor = ("millimetres", 1000) if np.ptp(forward) > _HIGHEST_HIP else ("centimetres", 100)
        raise refused(
            f"column 'hip_x_m' moves by {np.ptp(forward):.4g} to and fro, but a hip by less than 0.1 m; convert it from"
            f" {unit} (divide by {factor})"
        )


def check_angles(columns: Mapping[str, Floats], locations: Sequence[str]) -> tuple[str, ...]:
    """Angles are in degrees, and those of joints agree with those of their links; sentences on doubtful ones.
    `locations` are those of the samples in the file."""
    angles = {name.removesuffix("_deg"): values for name, values in columns.items() if name.endswith("_deg")}
    for name, values in angles.items():
        if np.abs(values).max() > 180.0:
            row = int(np.argmax(np.abs(values)))
            is_gap = np.abs(values[row]) > _LARGEST_ANGLE
            remedy = "close gaps of the recording first" if is_gap else "write it between -180 and 180"
            raise refused(
                f"column '{name}_deg': an angle of more than 180 deg, {values[row]:g} in {locations[row]}; {remedy}"
            )
    warnings = [*check_radians(angles)]
    contradictions = [joint for joint in LINKS_OF if np.abs(apart(angles, joint)).max() > _INCONSISTENT_ANGLE]
    if any(shapes_apart(angles, joint) > _INCONSISTENT_ANGLE for joint in contradictions) and (
        cause := cause_of_contradiction(angles, _INCONSISTENT_ANGLE)
    ):
        raise refused(f"{cause}; then the angles of the joints agree with those of their links")
    for joint in contradictions:
        upper, lower = LINKS_OF[joint]
        difference, links = apart(angles, joint), f"{upper}_deg - {lower}_deg"
        curves = _side_by_side(f"{joint}_deg", angles[joint], links, angles[upper] - angles[lower])
        rows = np.flatnonzero(np.abs(difference) > _INCONSISTENT_ANGLE)
        if len(rows) < _FEW * len(difference):
            warnings.append(
                f"gait: {joint}_deg differs from {links} by up to {np.abs(difference).max():.1f} deg in"
                f" {plural(len(rows), 'sample')} from {locations[rows[0]]} on: is it an outlier, or a filled gap?"
            )
            continue
        question = (
            "is a sign reversed, or an angle measured from another posture?"
            if shapes_apart(angles, joint) > _INCONSISTENT_ANGLE
            else f"one of them counts from another posture, {difference.mean():+.1f} deg away"
        )
        warnings.append(
            f"gait: {joint}_deg differs from {links} by up to {np.abs(difference).max():.1f} deg; {question} ({curves})"
        )
    return tuple(warnings)


def check_radians(angles: Angles) -> list[str]:
    """No angle of a leg that walks stays below `_RADIANS_SUSPECTED`; a sentence on an ankle alone, which may be fixed.
    Raises `InvalidSetting` for the others."""
    suspects = [
        name
        for name, values in angles.items()
        if np.abs(values).max() < _RADIANS_SUSPECTED and np.ptp(values) > _CONSTANT
    ]
    ranges = ", ".join(f"{name}_deg {angles[name].min():.3g} to {angles[name].max():.3g}" for name in suspects)
    remedy = "convert from radians (times 57.3), and compute anew what came from it"
    if suspects == ["ankle"] and np.abs(apart(angles, "ankle")).max() < _RADIANS_SUSPECTED:
        return [f"gait: an ankle that moves does not stay below 2 deg ({ranges}); if it moves, {remedy}"]
    if suspects:
        raise refused(f"no angle of a leg that walks stays below 2 deg ({ranges}); {remedy}")
    return []


def _side_by_side(name: str, values: Floats, other_name: str, other_values: Floats) -> str:
    """Two curves at quarters of the cycle."""
    rows = np.linspace(0, len(values) - 1, 5).round().astype(int)[:-1]
    curves = [", ".join(str(round(float(v))) for v in curve[rows]) for curve in (values, other_values)]
    return f"at 0, 25, 50, 75 % of the cycle {name} is {curves[0]}, {other_name} {curves[1]}"


def spikes(errors: Mapping[str, Floats]) -> list[str]:
    """A sentence on columns in which one sample is far from the series, and alone in it, by their `errors` (deg, m);
    none without any."""
    samples = []
    for column, column_errors in errors.items():
        row, rms = int(np.argmax(np.abs(column_errors))), float(np.sqrt(np.mean(column_errors**2)))
        size, unit = float(np.abs(column_errors[row])), column.rpartition("_")[2]
        if size > max(_OFF_SERIES[unit], _SPIKE * rms):
            samples.append(f"{column} of sample {row + 1} by {size:.3g} {unit}, {size / rms:.0f} times")
    cause = "is it an outlier, the edge of a filled gap, or are frames missing there?"
    return [f"gait: off the series is {'; '.join(samples)} the root mean square: {cause}"] if samples else []


def check_closed(column: str, values: Floats) -> None:
    """`values` in m or rad, trend removed."""
    length = column.endswith("_m")
    step = abs(float(values[-1] - values[0])) * (1.0 if length else 180.0 / np.pi)
    limit, unit = (CLOSED_LENGTH, "m") if length else (_CLOSED_ANGLE, "deg")
    if step > limit:
        raise refused(f"column '{column}': first and last row differ by {step:.3g} {unit}, more than {limit:g} {unit}")
