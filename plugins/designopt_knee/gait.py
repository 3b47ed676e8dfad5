"""Recorded gait: the bundled cycle, cycles and Fourier coefficients from a user's file.

A cycle is turned into a Fourier series by least squares, so that velocities and accelerations are those of the series.
The hip's forward position is ``x(t) = v t + series``: v is the belt speed on a treadmill, the trend over ground.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InvalidSetting
from designopt_knee.gait_checks import (
    ADVANCE,
    CLOSED_LENGTH,
    check_angles,
    check_closed,
    check_gaps,
    check_lengths,
    check_phase,
    check_radians,
    check_stated_period,
    check_times,
    spikes,
)
from designopt_knee.gait_file import GaitFile, numbers, parse, refused
from designopt_knee.gait_heads import check_heads, cycle_column

#: Signals that drive the leg, in the order of the data of the equations of motion.
DRIVING = ("hip_x", "hip_y", "thigh", "ankle")
SIGNALS = ("hip_x", "hip_y", "thigh", "knee", "ankle")
_COLUMN_OF = {
    "hip_x": "hip_x_m",
    "hip_y": "hip_y_m",
    "thigh": "thigh_deg",
    "knee": "knee_deg",
    "ankle": "ankle_deg",
}

DEFAULT_HARMONICS = 8
_MIN_SAMPLES = 20
_ALIKE = 0.1  # share of the knee's range by which the halves of one cycle differ at least
_HIP_HEIGHT, _LOW_HIP = (0.3, 1.3), 0.65  # m; lower than an adult's
_PERIODS = (0.3, 10.0)  # s: of a gait cycle


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
    file = parse(text)
    period = period if period is not None else file.header.get("period_s")
    if period is not None and (clause := _no_period(period)):
        raise InvalidSetting("period", clause)
    belt_speed = belt_speed if belt_speed is not None else file.header.get("belt_speed_m_s")
    if belt_speed is not None and not (np.isfinite(belt_speed) and belt_speed >= 0.0):
        raise InvalidSetting("belt_speed", f"{belt_speed!r} m/s is not a forward speed")
    read = _from_coefficients if file.names[:3] == ("signal", "unit", "c0") else _from_cycle
    gait = read(file, harmonics, period, belt_speed)
    height = gait.series("hip_y", np.linspace(0.0, 1.0, 101))
    low, high = _HIP_HEIGHT
    if height.min() < low or height.max() > high:
        is_height = _LOW_HIP < float(gait.coefficients["hip_x"][0]) < high
        cause = "are hip_x_m and hip_y_m exchanged?" if is_height else "heights count from the ground, upwards"
        raise refused(f"hip height {height.min():.3f} to {height.max():.3f} m is outside {low} to {high} m; {cause}")
    knee = np.degrees(gait.series("knee", np.linspace(0.0, 1.0, 101)))
    halves = np.roll(knee[:-1], 50) - knee[:-1]
    if np.abs(halves).max() < _ALIKE * np.ptp(knee):
        raise refused("both halves of the cycle bend the knee alike: are they two cycles? Leave one, with its period")
    return gait


def _from_coefficients(file: GaitFile, harmonics: int | None, period: float | None, belt_speed: float | None) -> Gait:
    count = (len(file.names) - 3) // 2
    column_names = ("signal", "unit", "c0", *(f"{c}{k}" for k in range(1, count + 1) for c in "cs"))
    if file.names != column_names or count < 1:
        raise refused("the columns of a coefficient file are signal, unit, c0, c1, s1, c2, s2, ...")
    if harmonics is not None and harmonics > count:
        raise InvalidSetting("harmonics", f"{harmonics} requested, but the gait file has {count}")
    use = count if harmonics is None else harmonics
    coefficients = {}
    for row in file.rows:
        name, unit = row.cells[0], row.cells[1] if len(row.cells) > 1 else ""
        if name not in SIGNALS or name in coefficients:
            raise refused(f"row '{name}' is unknown or given twice; the rows are {', '.join(SIGNALS)}")
        units = {"m": 1.0} if name.startswith("hip") else {"rad": 1.0, "deg": np.pi / 180.0}
        if unit not in units:
            raise refused(f"row '{name}': unit '{unit}' must be {' or '.join(units)}")
        values = numbers(row.cells[2:], file.names[2:], f"row '{name}'")
        if len(values) and not name.startswith("hip") and np.abs(values).max() * units[unit] > np.pi:
            raise refused(f"row '{name}': a coefficient of more than 180 deg")
        coefficients[name] = values[: 2 * use + 1] * units[unit]
    missing = [s for s in SIGNALS if s not in coefficients]
    if missing:
        raise refused(f"row '{missing[0]}' is missing")
    if period is None or belt_speed is None:
        setting, name = ("period", "period_s") if period is None else ("belt_speed", "belt_speed_m_s")
        near_miss = file.near_misses.get(name, "")
        raise InvalidSetting(setting, f"the gait file does not state it (# {name}=...){near_miss}; give it here")
    gait = Gait(period, belt_speed, coefficients, dict.fromkeys(SIGNALS, 0.0))
    thigh, knee, ankle = (np.degrees(gait.series(s, np.linspace(0.0, 1.0, 101))) for s in SIGNALS[2:])
    warnings = check_radians(
        {"thigh": thigh, "shank": thigh - knee, "foot": thigh - knee + ankle, "knee": knee, "ankle": ankle}
    )
    return replace(gait, warnings=tuple(warnings))


def _from_cycle(file: GaitFile, harmonics: int | None, period: float | None, belt_speed: float | None) -> Gait:
    names, factors = zip(*map(cycle_column, file.names), strict=True)
    check_heads(file.names, names)
    if len(file.rows) < _MIN_SAMPLES:
        raise refused(f"{len(file.rows)} samples; at least {_MIN_SAMPLES} are needed")
    samples = [
        numbers(row.cells, file.names, at) * np.array(factors)
        for row, at in zip(file.rows, file.locations(), strict=True)
    ]
    columns = dict(zip(names, np.array(samples).T, strict=True))
    phase = columns["phase"]
    check_phase(phase, file.locations())
    check_times(columns["time_s"], phase, period, file.locations())
    if period is not None and period == file.header.get("period_s"):
        check_stated_period(columns["time_s"], period)
    check_lengths(columns)
    warnings = check_angles(columns, file.locations())
    use = DEFAULT_HARMONICS if harmonics is None else harmonics
    if 2 * use + 2 > len(phase) - 1:
        raise InvalidSetting("harmonics", f"{use} are too many for {len(phase)} samples")
    check_gaps(phase, use)
    if period is None:
        period = float(columns["time_s"][-1] - columns["time_s"][0])
        if clause := _no_period(period):
            raise refused(f"column 'time_s' (s): {clause}")
    trend = _trend(columns["hip_x_m"], phase, use)
    over_ground = abs(columns["hip_x_m"][-1] - columns["hip_x_m"][0]) > CLOSED_LENGTH
    if over_ground and belt_speed:
        remedy = (
            "over ground, leave the belt speed out"
            if abs(trend) > ADVANCE
            else "take the drift on the belt off, in proportion to the phase, or average over more strides"
        )
        raise refused(
            f"hip_x_m moves {trend:.3f} m in the cycle although a belt speed is given; on a treadmill it must end where"
            f" it began (within 5 mm); {remedy}"
        )
    if over_ground and trend < 0.0:
        raise refused(
            "hip_x_m moves backward; x is forward: reverse it, and the angles if they count towards the same axis"
        )
    if not over_ground and belt_speed is None:
        raise InvalidSetting(
            "belt_speed",
            "hip_x_m ends where it began, as on a treadmill, whose speed the gait file does not state: set belt_speed"
            f" (m/s), or write # belt_speed_m_s=... into the file{file.near_misses.get('belt_speed_m_s', '')}",
        )
    basis = _basis(phase, use)
    coefficients, residuals, errors = {}, {}, {}
    for name, column in _COLUMN_OF.items():
        values = columns[column] if name.startswith("hip") else np.radians(columns[column])
        if name == "hip_x":
            values = values - trend * phase
        check_closed(column, values)
        coefficients[name] = np.asarray(np.linalg.lstsq(basis, values, rcond=None)[0], dtype=float)
        difference = basis @ coefficients[name] - values
        residuals[name] = float(np.sqrt(np.mean(difference**2)))
        errors[column] = difference if name.startswith("hip") else np.degrees(difference)
    speed = trend / period if over_ground else float(belt_speed or 0.0)
    return Gait(period, speed, coefficients, residuals, (*warnings, *spikes(errors)))


def _trend(values: Floats, phase: Floats, harmonics: int) -> float:
    """Advance per cycle: the slope fitted together with the series, so that the series does not lean on it."""
    basis = np.column_stack([_basis(phase, harmonics), phase])
    return float(np.linalg.lstsq(basis, values, rcond=None)[0][-1])


def _basis(phase: Floats, harmonics: int) -> Floats:
    """Columns 1, cos, sin, cos 2, sin 2, ... of the phase in cycles."""
    angle = 2.0 * np.pi * np.asarray(phase, dtype=float)[:, None] * np.arange(1, harmonics + 1)
    pairs = np.stack([np.cos(angle), np.sin(angle)], axis=2).reshape(len(angle), -1)
    return np.column_stack([np.ones(len(angle)), pairs])


def _no_period(period: float) -> str:
    """Why `period` (s) is not that of a gait cycle, in a clause; "" if it may be."""
    low, high = _PERIODS
    if not (np.isfinite(period) and period > 0.0):
        return f"{period!r} must be greater than 0"
    if low <= period <= high:
        return ""
    milliseconds = "; convert it from milliseconds (divide by 1000)" if low <= 1e-3 * period <= high else ""
    return f"{period:g} s is not the period of a gait cycle ({low:g} to {high:g} s){milliseconds}"
