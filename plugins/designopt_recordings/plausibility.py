"""What a person sees at a glance in recorded curves: times, angles, forces and sides that cannot be as written."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt_recordings.recording import Recording

#: s between rows that no recording of a motion has, at most and at least, and number of rows from which a table is one.
_COARSE, _FINE, _ROWS = 0.5, 5e-5, 10
#: Share of the frames outside of a range from which a curve is doubted, with and without a remedy that fits, and share
#: up to which a remedy fits.
_OUTSIDE, _FAR_OUTSIDE, _FITS = 0.1, 0.25, 0.02
#: Margin of a range: share of its width, and rad or m.
_MARGIN, _LEAST_MARGIN = 0.1, 0.05
#: Second difference of a curve, of that which a tenth of its rows exceed and of its range, from which it is a jump.
_JUMP, _JUMP_OF_RANGE = 10.0, 0.1
#: Accelerations beyond a quarter of the sampling rate over those below it, from which a curve is noise: 3.4 for white
#: noise alone, 0.1 for ten samples per period; rad/s² or m/s² from which noise matters beside gravity; and the size of
#: fourth differences of white noise.
_NOISY, _LEAST_NOISE, _DIFFERENCES = 1.0, 1.0, 70.0**0.5
#: rad: range of a rotation in degrees that was probably written in radians, range of that of the other side, and factor
#: between them.
_TINY, _MOVES, _UNLIKE = 0.06, 0.15, 20.0
#: Vertical forces of the ground in weights of the subject between which they are plausible; a foot is loaded from the
#: first one on.
LEAST_LOAD, _LARGEST_LOAD = 0.05, 20.0
#: m of way from which a subject walks, sine of the angle from it to the left from which the sides are exchanged, and
#: least number of pairs of markers.
_WAY, _EXCHANGED, _PAIRS = 0.5, -0.5, 2
#: Numbers of a curve in a note: at these shares of the record.
_SHARES = (0.0, 0.25, 0.5, 0.75)


@dataclass(frozen=True)
class UsualRange:
    """The range of a coordinate, rad for a rotation and m for a translation."""

    low: float
    high: float
    rotational: bool = False


def time_notes(time: Floats) -> list[str]:
    """A note where `time` (n,) "s" cannot be in seconds."""
    step = float(np.median(np.diff(time))) if len(time) >= _ROWS else _FINE
    if step < _FINE:
        return [
            f"the rows are {step:.3g} s apart: is 'time' in seconds, and its head or the file says milliseconds? Speeds"
            " and accelerations come from it"
        ]
    if step < _COARSE:
        return []
    return [
        f"the rows are {step:.3g} s apart: is 'time' in milliseconds, in frames or in percent of a cycle? Write it in"
        " seconds: speeds and accelerations come from it"
    ]


def range_notes(curves: Mapping[str, Floats], ranges: Mapping[str, UsualRange]) -> list[str]:
    """Notes on `curves` (n,) rad or m that leave their `ranges` for a part of the record, with the probable cause:
    the opposite sign, another unit."""
    notes = []
    for name, curve in curves.items():
        usual = ranges.get(name)
        share_outside = 0.0 if usual is None else _share_outside(curve, usual)
        if usual is None or share_outside <= _OUTSIDE:
            continue
        factor, unit = (180.0 / np.pi, "deg") if usual.rotational else (1.0, "m")
        remedies = {"with the opposite sign: reverse it": -1.0}
        if not usual.rotational:
            remedies |= {
                f"as {unit_name}: divide it by {by}": 1.0 / by for unit_name, by in (("cm", 100), ("mm", 1000))
            }
        in_degrees = usual.rotational and np.nanmax(np.abs(curve)) > 2.0 * np.pi  # a note of `TimeTable.radians`
        fitting = [words for words, by in remedies.items() if _share_outside(by * curve, usual) <= _FITS]
        if not fitting and (in_degrees or share_outside <= _FAR_OUTSIDE):
            continue
        remedy = f"; within it {fitting[0]}" if fitting else "; check its sign, its unit and the posture at zero"
        rows = [round(share * (len(curve) - 1)) for share in _SHARES]
        values = ", ".join(f"{factor * float(curve[row]):.3g}" for row in rows)
        notes.append(
            f"{name} is outside the range of {factor * usual.low:.4g} to {factor * usual.high:.4g} {unit} of the model"
            f" in {share_outside:.0%} of the record (at 0, 25, 50, 75 % of it {values} {unit}){remedy}"
        )
    return notes


def jump_notes(curves: Mapping[str, Floats], time: Floats) -> list[str]:
    """A note on `curves` (n,) that jump within a row or two."""
    jumps = []
    for name, curve in curves.items():
        bends = np.abs(np.diff(curve[np.isfinite(curve)], 2))
        if len(bends) < _ROWS or not np.isfinite(curve).all():
            continue
        row = int(np.argmax(bends))
        if bends[row] > max(_JUMP * np.quantile(bends, 0.9), _JUMP_OF_RANGE * np.ptp(curve)):
            jumps.append(f"{name} at {time[row + 1]:.4g} s")
    cause = "is it an outlier, the edge of a filled gap, or are frames missing there?"
    return [f"the motion jumps: {', '.join(jumps)}; {cause}"] if jumps else []


def noise_notes(curves: Mapping[str, Floats], time: Floats, turning: Set[str], remedy: str) -> list[str]:
    """A note on `curves` (n,) rad or m, those of the `turning` names in rad, at even `time` (n,) s, that are noise once
    they are differentiated twice; `remedy` is the filter."""
    if len(time) < _ROWS:
        return []
    step, noisy = float(np.median(np.diff(time))), {}
    for name, curve in curves.items():
        if not np.isfinite(curve).all():
            continue
        bends = np.diff(curve, 2)
        slow = 0.25 * (bends[:-2] + 2.0 * bends[1:-1] + bends[2:])
        quick_size, slow_size = (float(np.median(np.abs(part))) for part in (bends[1:-1] - slow, slow))
        if quick_size > _NOISY * slow_size and quick_size > _LEAST_NOISE * step**2:
            noise = 4.0 * quick_size / (0.6745 * _DIFFERENCES)
            noisy[name] = noise, quick_size / step**2, slow_size / step**2
    if not noisy:
        return []
    name = max(noisy, key=lambda name: noisy[name][1] / max(noisy[name][2], 1e-300))
    noise, quick_size, slow_size = noisy[name]
    size, unit = (f"{np.degrees(noise):.2g} deg", "rad/s²") if name in turning else (f"{1e3 * noise:.2g} mm", "m/s²")
    further = f" (and {len(noisy) - 1} more coordinates)" if len(noisy) > 1 else ""
    return [
        f"{name}{further} has noise of about {size}, which differentiated twice is {quick_size:.2g} {unit} (median)"
        f" beside {slow_size:.2g} {unit} of the motion: forces and moments computed from it are mostly noise. {remedy}"
    ]


def side_unit_notes(curves: Mapping[str, Floats]) -> list[str]:
    """A note on each rotation (n,) rad that is tiny beside that of the other side, as if it had been in radians in a
    table that says degrees."""
    finite = {name: curve[np.isfinite(curve)] for name, curve in curves.items()}
    sizes = {name: float(np.ptp(values)) for name, values in finite.items() if len(values)}
    notes = []
    for name, size in sizes.items():
        other_name = f"{name[:-1]}{'l' if name.endswith('_r') else 'r'}"
        is_tiny = 0.0 < size < _TINY and sizes.get(other_name, 0.0) > max(_MOVES, _UNLIKE * size)
        if is_tiny and name.endswith(("_r", "_l")):
            notes.append(
                f"{name} moves by {np.degrees(size):.2g} deg, far less than {other_name}: is it in radians in a table"
                " that says degrees?"
            )
    return notes


def _share_outside(curve: Floats, usual: UsualRange) -> float:
    finite = curve[np.isfinite(curve)]
    margin = max(_MARGIN * (usual.high - usual.low), _LEAST_MARGIN)
    return float(np.mean((finite < usual.low - margin) | (finite > usual.high + margin))) if len(finite) else 0.0


def force_notes(vertical: Floats, weight: float) -> list[str]:
    """A note where the `vertical` force (n,) N of the ground on a subject of this `weight` (N) has another sign or
    another unit."""
    if not weight > 0.0:
        return []
    if pull := pull_of_ground(vertical, weight):
        return [f"the ground pulls with up to {pull:.3g} N: reverse the sign of the forces, which act on the subject"]
    return load_notes(vertical, weight)


def pull_of_ground(vertical: Floats, weight: float) -> float:
    """N, the largest pull of a `vertical` force (n,) N that has the wrong sign; zero where the ground carries."""
    finite = vertical[np.isfinite(vertical)]
    highest, pull = float(finite.max(initial=0.0)), float(-finite.min(initial=0.0))
    return pull if pull > max(highest, LEAST_LOAD * weight) else 0.0


def load_notes(vertical: Floats, weight: float) -> list[str]:
    """A note where the largest `vertical` force (n,) N is not that on a subject of this `weight` (N)."""
    finite = vertical[np.isfinite(vertical)]
    if not len(finite) or LEAST_LOAD * weight < finite.max() < _LARGEST_LOAD * weight:
        return []
    return [
        f"the ground carries at most {finite.max():.3g} N of a weight of {weight:.3g} N: check the unit of the forces"
        " (N), the vertical axis, the mass of the subject, and whether they belong to this subject"
    ]


def side_notes(recording: Recording) -> list[str]:
    """A note where the markers of the left are on the right of the way that the subject walks."""
    present = ~recording.missing()
    pairs = [(i, j) for i, j in _pairs(recording.marker_names) if (present[:, i] & present[:, j]).any()]
    has_marker = present.any(axis=1)
    if len(pairs) < _PAIRS or has_marker.sum() < 2:
        return []
    positions = np.where(present[:, :, None], recording.markers, np.nan)[has_marker]
    centre = np.nanmedian(positions, axis=1)
    way = _level(centre[-1] - centre[0])
    across = _level(np.median([np.nanmean(positions[:, i] - positions[:, j], axis=0) for i, j in pairs], axis=0))
    length, size = float(np.linalg.norm(way)), float(np.linalg.norm(way) * np.linalg.norm(across))
    if length < _WAY or not size > 0.0 or float(np.cross(way, across)[1]) / size > _EXCHANGED:
        return []
    left, right = (recording.marker_names[i] for i in pairs[0])
    return [
        f"the left markers ({left}) are to the right of the right ones ({right}), seen along the {length:.2g} m"
        " that the subject moves: is the recording mirrored (an axis reversed), are the sides exchanged, or does the"
        " subject walk backward?"
    ]


def _level(vector: Floats) -> Floats:
    """The horizontal part: Y is up."""
    return np.asarray(vector * np.array([1.0, 0.0, 1.0]))


def _pairs(names: tuple[str, ...]) -> list[tuple[int, int]]:
    """Columns of a left and a right marker whose names differ in an L and an R at the beginning or the end."""
    column = {name.upper(): i for i, name in enumerate(names)}
    pairs = []
    for name, i in column.items():
        partners = [f"R{name[1:]}"] if name.startswith("L") else []
        partners += [f"{name[:-1]}R"] if name.endswith(("_L", ".L", "-L")) else []
        pairs += [(i, column[partner]) for partner in partners if partner in column]
    return pairs
