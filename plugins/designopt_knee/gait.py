"""Recorded gait: the bundled cycle, cycles and Fourier coefficients from a user's file, and their checks.

A cycle is turned into a Fourier series by least squares, so that velocities and accelerations are those of the series.
The hip's forward position is ``x(t) = v t + series``: v is the belt speed on a treadmill, the trend over ground.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InvalidSetting

#: What drives the leg, in the order of the data of the equations of motion.
DRIVING = ("hip_x", "hip_y", "thigh", "ankle")
SIGNALS = ("hip_x", "hip_y", "thigh", "knee", "ankle")
CYCLE_COLUMNS = (
    "phase", "time_s", "hip_x_m", "hip_y_m", "thigh_deg", "shank_deg", "foot_deg", "knee_deg", "ankle_deg",
)  # fmt: skip
_COLUMN_OF = {
    "hip_x": "hip_x_m",
    "hip_y": "hip_y_m",
    "thigh": "thigh_deg",
    "knee": "knee_deg",
    "ankle": "ankle_deg",
}

DEFAULT_HARMONICS = 8
_MIN_SAMPLES = 20
#: Largest distance of a time from its phase, in median steps: room for rounded times.
_TIME_TOLERANCE = 0.25
_SAME_PERIOD = 0.05  # relative difference of a stated period from the times of the samples
_CLOSED_ANGLE, _CLOSED_LENGTH = 2.0, 5e-3  # deg, m: a cycle ends where it began
_HIGHEST_HIP, _MILLIMETRES = 10.0, 300.0  # m: of a hip in other units; above, in millimetres
_INCONSISTENT_ANGLE = 5.0  # deg between a joint's angle and the difference of its links'
_LEAST_FLEXION = 15.0  # deg: a knee that bends less in the whole cycle does not walk
_HIP_HEIGHT = (0.3, 1.3)  # m
_RADIANS_SUSPECTED = 3.2  # angles in deg that all stay below this in size were probably written in rad


@dataclass(frozen=True)
class Gait:
    """One gait cycle as Fourier series.

    `coefficients` holds for each of `SIGNALS` (2 h + 1,): c0, c1, s1, c2, s2, ... in m and rad. `residuals` are the
    root mean square differences between the samples and the series (m and rad; 0 when coefficients were given).
    """

    period: float
    belt_speed: float
    coefficients: Mapping[str, Floats]
    residuals: Mapping[str, float]
    warnings: tuple[str, ...] = field(default=())

    @property
    def harmonics(self) -> int:
        """Number of harmonics of every series."""
        return (len(self.coefficients["knee"]) - 1) // 2

    def series(self, signal: str, phase: Floats) -> Floats:
        """Values of `signal` at `phase` (in cycles), m or rad; the forward motion at speed v is not part of hip_x."""
        return np.asarray(_basis(phase, self.harmonics) @ self.coefficients[signal])

    def data(self) -> Floats:
        """Data of the equations of motion: period, belt speed, then the coefficients of `DRIVING`."""
        return np.concatenate([[self.period, self.belt_speed], *(self.coefficients[s] for s in DRIVING)])


@lru_cache(maxsize=1)
def bundled_text() -> str:
    """The bundled gait's file: level treadmill walking at 1 m/s, with its source and licence (CC BY 3.0)."""
    return Path(__file__).with_name("gait_treadmill_1p0.csv").read_text(encoding="utf-8")


def read_gait(
    text: str, *, harmonics: int | None = None, period: float | None = None, belt_speed: float | None = None
) -> Gait:
    """Gait from the text of a CSV file: samples of one cycle (`CYCLE_COLUMNS`) or Fourier coefficients.

    `period` (s) and `belt_speed` (m/s) replace the values of a comment ``# period_s=... belt_speed_m_s=...`` in the
    file. Raises `InvalidSetting`, which names the wrong value. Suspicious values are listed in `Gait.warnings`.
    """
    rows, header = _rows(text)
    period = _positive("period", period if period is not None else header.get("period_s"))
    belt_speed = belt_speed if belt_speed is not None else header.get("belt_speed_m_s")
    if belt_speed is not None and not (np.isfinite(belt_speed) and belt_speed >= 0.0):
        raise InvalidSetting("belt_speed", f"{belt_speed!r} m/s is not a forward speed")
    if rows[0][:3] == ["signal", "unit", "c0"]:
        gait = _from_coefficients(rows, harmonics, period, belt_speed)
    else:
        gait = _from_cycle(rows, harmonics, period, belt_speed)
    height = gait.series("hip_y", np.linspace(0.0, 1.0, 101))
    if height.min() < _HIP_HEIGHT[0] or height.max() > _HIP_HEIGHT[1]:
        raise _refused(
            f"hip height {height.min():.3f} to {height.max():.3f} m is outside {_HIP_HEIGHT[0]} to {_HIP_HEIGHT[1]} m;"
            " heights count from the ground"
        )
    knee = np.degrees(gait.series("knee", np.linspace(0.0, 1.0, 101)))
    if knee.max() < _LEAST_FLEXION:
        reversed_sign = -knee.min() >= _LEAST_FLEXION
        hint = (
            "flexion counts positive: reverse its sign" if reversed_sign else "is it in degrees, and of a whole cycle?"
        )
        raise _refused(f"the knee is between {knee.min():.3g} and {knee.max():.3g} deg; {hint}")
    return gait


def _from_coefficients(
    rows: list[list[str]], harmonics: int | None, period: float | None, belt_speed: float | None
) -> Gait:
    head = rows[0]
    count = (len(head) - 3) // 2
    expected = ["signal", "unit", "c0", *(f"{c}{k}" for k in range(1, count + 1) for c in "cs")]
    if head != expected or count < 1:
        raise _refused("the columns of a coefficient file are signal, unit, c0, c1, s1, c2, s2, ...")
    if harmonics is not None and harmonics > count:
        raise InvalidSetting("harmonics", f"{harmonics} requested, but the gait file has {count}")
    use = count if harmonics is None else harmonics
    coefficients = {}
    for row in rows[1:]:
        name, unit = row[0], row[1] if len(row) > 1 else ""
        if name not in SIGNALS or name in coefficients:
            raise _refused(f"row '{name}' is unknown or given twice; the rows are {', '.join(SIGNALS)}")
        units = {"m": 1.0} if name.startswith("hip") else {"rad": 1.0, "deg": np.pi / 180.0}
        if unit not in units:
            raise _refused(f"row '{name}': unit '{unit}' must be {' or '.join(units)}")
        values = _numbers(row[2:], len(head) - 2, f"row '{name}'")
        if len(values) and not name.startswith("hip") and np.abs(values).max() * units[unit] > np.pi:
            raise _refused(f"row '{name}': a coefficient of more than 180 deg")
        coefficients[name] = values[: 2 * use + 1] * units[unit]
    missing = [s for s in SIGNALS if s not in coefficients]
    if missing:
        raise _refused(f"row '{missing[0]}' is missing")
    if period is None:
        raise InvalidSetting("period", "the gait file does not state it (# period_s=...); give it here")
    if belt_speed is None:
        raise InvalidSetting("belt_speed", "the gait file does not state it (# belt_speed_m_s=...); give it here")
    return Gait(period, belt_speed, coefficients, dict.fromkeys(SIGNALS, 0.0))


def _from_cycle(rows: list[list[str]], harmonics: int | None, period: float | None, belt_speed: float | None) -> Gait:
    missing = [c for c in CYCLE_COLUMNS if c not in rows[0]]
    extra = [c for c in rows[0] if c not in CYCLE_COLUMNS]
    if missing or extra or len(rows[0]) != len(CYCLE_COLUMNS):
        what = (
            f"column '{missing[0]}' is missing" if missing else f"column '{(extra or ['(one twice)'])[0]}' is unknown"
        )
        raise _refused(f"{what}; the columns are {', '.join(CYCLE_COLUMNS)}")
    if len(rows) - 1 < _MIN_SAMPLES:
        raise _refused(f"{len(rows) - 1} samples; at least {_MIN_SAMPLES} are needed")
    table = np.array([_numbers(row, len(rows[0]), f"sample {i}") for i, row in enumerate(rows[1:], 1)])
    columns = {name: table[:, j] for j, name in enumerate(rows[0])}
    phase = columns["phase"]
    if not (phase[0] == 0.0 and phase[-1] == 1.0 and (np.diff(phase) > 0.0).all()):
        late = np.flatnonzero(np.diff(phase) <= 0.0)
        where = f"; sample {late[0] + 2} is not after the one before" if len(late) else ""
        raise _refused(f"phase must increase from 0 in the first row to 1 in the last{where}")
    _check_times(columns["time_s"], phase, period)
    _check_lengths(columns)
    warnings = _check_angles(columns)
    use = DEFAULT_HARMONICS if harmonics is None else harmonics
    if 2 * use + 2 > len(phase) - 1:
        raise InvalidSetting("harmonics", f"{use} are too many for {len(phase)} samples")
    _check_gaps(phase, use)
    period = float(columns["time_s"][-1] - columns["time_s"][0]) if period is None else period
    trend = _trend(columns["hip_x_m"], phase, use)
    over_ground = abs(columns["hip_x_m"][-1] - columns["hip_x_m"][0]) > _CLOSED_LENGTH
    if over_ground and belt_speed:
        raise _refused(
            f"hip_x_m moves {trend:.3f} m in the cycle although a belt speed is given; on a treadmill it must end where"
            " it began (within 5 mm); over ground, leave the belt speed out"
        )
    if over_ground and trend < 0.0:
        raise _refused("hip_x_m moves backward; x is forward")
    if not over_ground and belt_speed is None:
        raise InvalidSetting(
            "belt_speed", "hip_x_m has no trend (treadmill), and the gait file does not state the speed"
        )
    basis = _basis(phase, use)
    coefficients, residuals = {}, {}
    for name, column in _COLUMN_OF.items():
        values = columns[column] if name.startswith("hip") else np.radians(columns[column])
        if name == "hip_x":
            values = values - trend * phase
        _check_closed(column, values)
        coefficients[name], *_ = np.linalg.lstsq(basis, values, rcond=None)
        residuals[name] = float(np.sqrt(np.mean((basis @ coefficients[name] - values) ** 2)))
    speed = trend / period if over_ground else float(belt_speed or 0.0)
    return Gait(period, speed, coefficients, residuals, warnings)


def _check_times(time: Floats, phase: Floats, period: float | None) -> None:
    """Times increase and advance with the phase, by which the series is fitted; they are not a stated `period` (s) in
    milliseconds."""
    steps = np.diff(time)
    if not (steps > 0.0).all():
        row = int(np.argmax(steps <= 0.0)) + 2
        raise _refused(f"time_s must increase: sample {row} ({time[row - 1]:g} s) is not later than the one before")
    if period is not None and abs(1e-3 * (time[-1] - time[0]) - period) < _SAME_PERIOD * period:
        raise _refused(
            f"time_s spans {time[-1] - time[0]:g} and the period is {period:g} s; convert it from milliseconds"
        )
    off = np.abs(time - time[0] - phase * (time[-1] - time[0]))
    if (off > _TIME_TOLERANCE * np.median(steps)).any():
        row = int(np.argmax(off > _TIME_TOLERANCE * np.median(steps))) + 1
        raise _refused(
            f"time_s does not advance with the phase: sample {row} is off by {off[row - 1]:.3g} s; phase is the share"
            " of the cycle's time"
        )


def _check_gaps(phase: Floats, harmonics: int) -> None:
    """No two samples are further apart than half a period of the last harmonic: between them the series would be
    free."""
    steps = np.diff(phase)
    row = int(np.argmax(steps)) + 1
    if harmonics * steps[row - 1] > 0.5:
        raise _refused(
            f"between the samples {row} and {row + 1} {100.0 * steps[row - 1]:.3g} % of the cycle are missing;"
            f" {harmonics} harmonics need steps of at most {50.0 / harmonics:.3g} %: add samples, or take fewer"
        )


def _trend(values: Floats, phase: Floats, harmonics: int) -> float:
    """Advance per cycle: the slope fitted together with the series, so that the series does not lean on it."""
    basis = np.column_stack([_basis(phase, harmonics), phase])
    return float(np.linalg.lstsq(basis, values, rcond=None)[0][-1])


def _check_lengths(columns: Mapping[str, Floats]) -> None:
    """A hip higher than any person's is one in other units than metres."""
    height = float(np.abs(columns["hip_y_m"]).mean())
    if height > _HIGHEST_HIP:
        unit, factor = ("millimetres", 1000) if height > _MILLIMETRES else ("centimetres", 100)
        raise _refused(
            f"column 'hip_y_m' is {height:.4g} on average, but a hip is about 0.9 m above the ground; convert hip_x_m"
            f" and hip_y_m from {unit} (divide by {factor})"
        )


def _check_angles(columns: Mapping[str, Floats]) -> tuple[str, ...]:
    angles = {name: values for name, values in columns.items() if name.endswith("_deg")}
    for name, values in angles.items():
        if np.abs(values).max() > 180.0:
            raise _refused(f"column '{name}': an angle of more than 180 deg")
    warnings = []
    if all(np.abs(values).max() < _RADIANS_SUSPECTED for values in angles.values()):
        raise _refused(
            "all angles are below 3.2, but the columns are in degrees; convert them from radians (times 57.3)"
        )
    for name, upper, lower in (("knee", "thigh", "shank"), ("ankle", "foot", "shank")):
        joint, of_links = angles[f"{name}_deg"], angles[f"{upper}_deg"] - angles[f"{lower}_deg"]
        apart = float(np.abs(joint - of_links).max())
        if apart <= _INCONSISTENT_ANGLE:
            continue
        curves = _side_by_side(f"{name}_deg", joint, f"{upper}_deg - {lower}_deg", of_links)
        if np.abs(joint + of_links).max() <= _INCONSISTENT_ANGLE:
            raise _refused(f"{name}_deg has the opposite sign of {upper}_deg - {lower}_deg; reverse it ({curves})")
        warnings.append(
            f"gait: {name}_deg differs from {upper}_deg - {lower}_deg by up to {apart:.1f} deg; is a sign reversed, or"
            f" an angle measured from another posture? ({curves})"
        )
    return tuple(warnings)


def _side_by_side(name: str, values: Floats, other_name: str, other_values: Floats) -> str:
    """Two curves at quarters of the cycle."""
    rows = np.linspace(0, len(values) - 1, 5).round().astype(int)[:-1]
    curves = [", ".join(str(round(float(v))) for v in curve[rows]) for curve in (values, other_values)]
    return f"at 0, 25, 50, 75 % of the cycle {name} is {curves[0]}, {other_name} {curves[1]}"


def _check_closed(column: str, values: Floats) -> None:
    """`values` in m or rad, trend removed."""
    length = column.endswith("_m")
    step = abs(float(values[-1] - values[0])) * (1.0 if length else 180.0 / np.pi)
    limit, unit = (_CLOSED_LENGTH, "m") if length else (_CLOSED_ANGLE, "deg")
    if step > limit:
        raise _refused(f"column '{column}': first and last row differ by {step:.3g} {unit}, more than {limit:g} {unit}")


def _basis(phase: Floats, harmonics: int) -> Floats:
    """Columns 1, cos, sin, cos 2, sin 2, ... of the phase in cycles."""
    angle = 2.0 * np.pi * np.asarray(phase, dtype=float)[:, None] * np.arange(1, harmonics + 1)
    pairs = np.stack([np.cos(angle), np.sin(angle)], axis=2).reshape(len(angle), -1)
    return np.column_stack([np.ones(len(angle)), pairs])


def _rows(text: str) -> tuple[list[list[str]], dict[str, float]]:
    """Cells of the lines that are not comments, and the numbers ``name=value`` of the comments that begin with one."""
    header: dict[str, float] = {}
    lines = []
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            if re.match(r"\s*#\s*\w+=", line):
                for name, value in re.findall(r"(\w+)=(\S+)", line):
                    if name in ("period_s", "belt_speed_m_s"):
                        header[name] = float(_numbers([value], 1, f"comment '{name}'")[0])
        elif line.strip():
            lines.append(line)
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines)]
    if len(rows) < 2:
        raise _refused("no samples in the file")
    return rows, header


def _numbers(cells: Sequence[str], count: int, where: str) -> Floats:
    if len(cells) != count:
        raise _refused(f"{where}: {len(cells)} values, not {count}")
    try:
        values = np.array([float(cell) for cell in cells])
    except ValueError as error:
        raise _refused(f"{where}: {error}") from None
    if not np.isfinite(values).all():
        raise _refused(f"{where}: a value is NaN or infinite")
    return values


def _positive(name: str, value: float | None) -> float | None:
    if value is not None and not (np.isfinite(value) and value > 0.0):
        raise InvalidSetting(name, f"{value!r} must be greater than 0")
    return value


def _refused(message: str) -> InvalidSetting:
    return InvalidSetting("gait", message)
