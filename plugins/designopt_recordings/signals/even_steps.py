"""Tables over time whose rows are not evenly spaced: their rate, their steps, and the even table for a filter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from designopt.arrays import Floats, Mask
from designopt_recordings.errors import RecordingError
from designopt_recordings.signals.runs import finite_runs
from designopt_recordings.table import TimeTable

#: Distance from even times, in steps, up to which a table is filtered as it is.
EVEN = 1e-3
#: The same for samples of a device, whose file rounds the times.
ROUNDED = 0.25
#: Largest step over the smallest one, up to which a table is differentiated as it is: a spline through closer rows
#: turns the last digits of a file into accelerations.
STEP_RATIO = 10.0
#: Rows nearer to the row before than this share of the median step are left out of the spline that resamples a table.
_NEAR = 0.25
#: Share of even steps from which the others are doubted.
_MOSTLY = 0.9


def deviations(time: Floats) -> Floats:
    """(n,) distances of `time` (n,) s from even times between its ends, in steps."""
    steps = len(time) - 1
    if steps < 2:
        return np.zeros(len(time))
    return np.asarray(np.abs((time - time[0]) * (steps / (time[-1] - time[0])) - np.arange(len(time))))


def even_rate(time: Floats) -> float:
    """Rate (Hz) of times (n,) s that are even to within `ROUNDED` steps, as rounded ones are.

    Raises `RecordingError` with the row where they are not even.
    """
    if len(time) < 2:
        raise RecordingError("a single row has no rate; at least two are needed")
    off = deviations(time)
    if off.max() > ROUNDED:
        raise RecordingError(
            f"the times are not evenly spaced: row {int(np.argmax(off > ROUNDED)) + 1} is off by more than a quarter"
            f" of a step; {_widest_gap(time)}"
        )
    return float((len(time) - 1) / (time[-1] - time[0]))


def check_steps(time: Floats) -> None:
    """Raise `RecordingError` for steps of `time` (n,) s that differ by more than `STEP_RATIO`: no table to
    differentiate."""
    if len(time) > 2 and np.diff(time).max() > STEP_RATIO * np.diff(time).min():
        raise RecordingError(
            f"the times are too unevenly spaced for derivatives: {_widest_gap(time)}; filter the table with a cutoff,"
            " or resample it at even times"
        )


def for_filter(table: TimeTable, cutoff: float) -> TimeTable:
    """`table`, or where its times are off by more than `EVEN` steps, an even one with its median step and a note.

    A quintic spline through each run between gaps gives the values. Raises `RecordingError` where two rows are further
    apart than half a period of `cutoff` (Hz): between them the filter would have no data.
    """
    time = table.time
    if len(time) < 3 or deviations(time).max() <= EVEN:
        return table
    step, widest = float(np.median(np.diff(time))), float(np.diff(time).max())
    if 2.0 * cutoff * widest > 1.0:
        raise RecordingError(
            f"a cut-off of {cutoff:g} Hz needs steps of at most {0.5 / cutoff:.4g} s: {_widest_gap(time)}"
        )
    even = np.linspace(time[0], time[-1], max(2, round(float(time[-1] - time[0]) / step) + 1))
    note = (
        f"the times are not evenly spaced (steps of {np.diff(time).min():.4g} to {widest:.4g} s): resampled every"
        f" {even[1] - even[0]:.4g} s before filtering"
    )
    return replace(table, time=even, values=spline_values(time, table.values, even), notes=(*table.notes, note))


def in_gaps(time: Floats, at: Floats) -> Mask:
    """(m,) whether `at` (m,) s lies between two of `time` (n,) s that are more than `STEP_RATIO` usual steps apart:
    rows are missing there, and interpolation would invent them. A quarter of the table's time lies in steps up to the
    usual one, whatever the number of tiny steps of an integrator."""
    if len(time) < 3:
        return np.zeros(len(at), dtype=bool)
    after = np.clip(np.searchsorted(time, at), 1, len(time) - 1)
    between = (at - time[after - 1] > 1e-9) & (time[after] - at > 1e-9)
    return np.asarray(between & _is_gap(time)[after - 1])


def gap_notes(time: Floats) -> list[str]:
    """A note on the gaps of a table that is interpolated (see `in_gaps`), if it has any."""
    rows = np.flatnonzero(_is_gap(time))
    if not len(rows):
        return []
    first = f"{time[rows[0]]:.6g} and {time[rows[0] + 1]:.6g} s"
    further_gaps = f", nor in {len(rows) - 1} further gap{'s' if len(rows) > 2 else ''}" if len(rows) > 1 else ""
    return [f"no rows between {first}{further_gaps}: nothing is known there"]


def irregular_steps(time: Floats) -> str:
    """A clause on rows that are missing in, or stand between, `time` (n,) s that is even otherwise; "" where none is
    and where less than `_MOSTLY` of the steps are even."""
    if len(time) < 3:
        return ""
    step = float(np.median(np.diff(time)))
    shares = np.diff(time) / step
    is_even = np.abs(shares - 1.0) < ROUNDED
    if is_even.all() or is_even.mean() < _MOSTLY:
        return ""
    lost = int(np.round(shares[~is_even] - 1.0).clip(0).sum())
    if lost:
        clause = "a sample seems to be missing" if lost == 1 else f"{lost} samples seem to be missing"
    else:
        clause = f"{int((~is_even).sum())} samples are not"
    return f"the samples are {step:.4g} s apart, and {clause}, the first after {time[int(np.argmin(is_even))]:.6g} s"


def step_notes(time: Floats) -> list[str]:
    """A note on the `irregular_steps` of a motion at `time` (n,) s that is differentiated as it is."""
    if not (irregular := irregular_steps(time)):
        return []
    return [f"{irregular}: check the times; a spline through these rows gives speeds and accelerations"]


def _is_gap(time: Floats) -> Mask:
    """(n - 1,) whether a step of `time` (n,) s is a gap."""
    steps = np.diff(time)
    increasing = np.sort(steps)
    usual = np.searchsorted(np.cumsum(increasing), 0.25 * increasing.sum())
    return np.asarray(steps > STEP_RATIO * increasing[usual]) if len(steps) > 1 else np.zeros(len(steps), dtype=bool)


def linear_values(time: Floats, values: Floats, at: Floats) -> Floats:
    """(m,) of `values` (n,) at `time` (n,) s on the times `at` (m,) s: linear between rows, NaN outside and in gaps."""
    return np.where(in_gaps(time, at), np.nan, np.interp(at, time, values, left=np.nan, right=np.nan))


def spline_values(time: Floats, values: Floats, at: Floats, degree: int = 5) -> Floats:
    """(m, c) of `values` (n, c) at `time` (n,) s on the times `at` (m,) s: the spline of `degree` through each run
    between gaps, NaN outside. Rows much closer than the median step are left out."""
    from scipy.interpolate import make_interp_spline

    close = _NEAR * float(np.median(np.diff(time))) if len(time) > 1 else 0.0
    margin = 1e-9 * max(1.0, float(np.abs(time).max()))
    result = np.full((len(at), values.shape[1]), np.nan)
    for rows, columns in finite_runs(values):
        t = time[rows]
        knots = _uneven_rows(t, close)
        inside = (at >= t[0] - margin) & (at <= t[-1] + margin)
        usable = min(degree, len(knots) - 1)
        usable -= 1 - usable % 2  # an odd degree
        if usable < 1:
            continue
        spline = make_interp_spline(t[knots], values[rows][knots][:, columns], k=usable)
        result[np.ix_(inside, columns)] = spline(at[inside])
    return result


def _uneven_rows(time: Floats, step: float) -> list[int]:
    """Rows of `time` (n,) at least `step` after the row chosen before, and the last row."""
    rows = [0]
    for i in range(1, len(time)):
        if time[i] - time[rows[-1]] >= step:
            rows.append(i)
    if rows[-1] != len(time) - 1:
        rows[-1 if len(rows) > 1 else len(rows) :] = [len(time) - 1]
    return rows


def _widest_gap(time: Floats) -> str:
    steps = np.diff(time)
    row = int(np.argmax(steps))
    return (
        f"row {row + 2} ({time[row + 1]:.6g} s) is {steps[row]:.4g} s after the row before; the median step is"
        f" {np.median(steps):.4g} s"
    )
