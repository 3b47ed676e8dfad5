"""Figures of a transient and of its command, gathered while many simulations run side by side.

Integrals follow the trapezoidal rule over the integration steps. Set points, disturbances and commands change only
between samples, so that no step straddles a jump: each step is integrated with the reference that holds in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designopt_regulator.regulator import wrap

Vector = NDArray[np.float64]

SETTLED = 0.02  # share of the step within which a transient counts as settled
_RISE = (0.9, 0.1)  # error left, as a share of the step, where the rise begins and ends


@dataclass(frozen=True)
class Quality:
    """Figures of n transients, arrays (n,); errors are shares of the step, times in s."""

    iae: Vector
    ise: Vector
    itae: Vector
    iae_step: Vector
    iae_load: Vector
    overshoot: Vector
    settling: Vector
    not_settled: Vector
    rise: Vector  # inf where the transient does not reach 90 %
    load_peak: Vector
    tv: Vector
    effort: Vector
    sat_fraction: Vector


@dataclass(frozen=True)
class Times:
    """When the references step and the disturbance comes (s), and the samples and integration steps between."""

    step_at: float
    load_at: float
    sample_time: float
    substeps: int


class Watch:
    """Watches one measurement of n simulations and the command that is meant to move it.

    `before` and `after` (n,) are the references before and from the step on. Errors are in shares of the difference, or
    as they are where there is none. `trim` (n,) is the command at rest.
    """

    def __init__(self, before: Vector, after: Vector, trim: Vector, times: Times, *, angle: bool = False) -> None:
        n, T, substeps = len(before), times.sample_time, times.substeps
        self._before, self._after, self._trim = before, after, trim
        self._per_step = 1.0 / np.where(after == before, 1.0, after - before)
        self._step, self._load = round(times.step_at / T), round(times.load_at / T)
        self._sample_time, self._h, self._substeps, self._angle = T, T / substeps, substeps, angle
        self._since = np.arange(substeps + 1)[:, None] * self._h
        self._error = np.empty((substeps + 1, n))
        self._weighted = np.empty((substeps + 1, n))
        self._row, self._sum = np.empty(n), np.empty(n)
        zeros = np.zeros((10, n))
        self._iae_before, self._iae_step, self._iae_load, self._ise, self._itae = zeros[:5]
        self._lowest, self._peak, self._tv, self._effort, self._saturated = zeros[5:]
        self._outside = np.zeros(n)
        self._crossed = np.full((2, n), np.inf)
        self._command = trim.copy()

    def sample(self, sample: int, y: Vector, output: Vector, raw: Vector) -> None:
        """What happened from one sample to the next: measurement `y` (substeps + 1, n), the regulator's output."""
        error, row = self._error, self._row
        np.subtract(self._after if sample >= self._step else self._before, y, out=error)
        if self._angle:
            wrap(error)
        error *= self._per_step
        self._commands(output, raw)
        if self._step <= sample < self._load:
            self._transient(sample, error)
        np.multiply(error, error, out=self._weighted)
        self._ise += self._integral(self._weighted)
        np.abs(error, out=error)
        integral = self._integral(error)
        if sample < self._step:
            self._iae_before += integral
            return
        begin = self._step
        if sample < self._load:
            self._iae_step += integral
            self._settling(sample, error)
        else:
            begin = self._load
            self._iae_load += integral
            np.max(error, axis=0, out=row)
            np.maximum(self._peak, row, out=self._peak)
        np.multiply(error, (sample - begin) * self._sample_time + self._since, out=self._weighted)
        self._itae += self._integral(self._weighted)

    def _integral(self, values: Vector) -> Vector:
        """Over one sample (n,), step by step; the array is overwritten by the next integral."""
        total = self._sum
        np.add(values[0], values[-1], out=total)
        total *= 0.5
        for inner in values[1:-1]:
            total += inner
        total *= self._h
        return total

    def _commands(self, output: Vector, raw: Vector) -> None:
        row = self._row
        np.subtract(output, self._command, out=row)
        np.abs(row, out=row)
        self._tv += row
        self._command[:] = output
        np.subtract(output, self._trim, out=row)
        row *= row
        row *= self._sample_time
        self._effort += row
        self._saturated += output != raw

    def _transient(self, sample: int, error: Vector) -> None:
        """Overshoot and rise, from the signed error."""
        row = self._row
        np.min(error[:-1], axis=0, out=row)
        np.minimum(self._lowest, row, out=self._lowest)
        np.minimum(row, error[-1], out=row)
        for level, crossed in zip(_RISE, self._crossed, strict=True):
            rows = np.flatnonzero((row <= level) & np.isinf(crossed))
            if len(rows):
                found = error[:, rows]
                first = np.argmax(found <= level, axis=0)
                later = np.maximum(first, 1)
                columns = np.arange(len(rows))
                e0, e1 = found[later - 1, columns], found[later, columns]
                share = np.where(first > 0, (e0 - level) / np.where(first > 0, e0 - e1, 1.0), 0.0)
                at = np.where(first > 0, first - 1 + share, 0.0)
                crossed[rows] = (sample - self._step) * self._sample_time + at * self._h

    def _settling(self, sample: int, error: Vector) -> None:
        """The last node outside the band, counted from 1 at the step."""
        if error.max() > SETTLED:
            nodes = (sample - self._step) * self._substeps + np.arange(1.0, self._substeps + 1.0)[:, None]
            np.maximum(self._outside, ((error[:-1] > SETTLED) * nodes).max(axis=0), out=self._outside)

    def quality(self, samples: int) -> Quality:
        """The figures after so many samples."""
        settling = np.maximum(self._outside - 1.0, 0.0) * self._h
        window = (self._load - self._step) * self._substeps
        not_settled = self._outside >= window
        return Quality(
            iae=self._iae_before + self._iae_step + self._iae_load,
            ise=self._ise,
            itae=self._itae,
            iae_step=self._iae_before + self._iae_step,
            iae_load=self._iae_load,
            overshoot=-self._lowest + 0.0,
            settling=np.where(not_settled, window * self._h, settling),
            not_settled=not_settled.astype(float),
            rise=self._crossed[1] - np.where(np.isinf(self._crossed[0]), 0.0, self._crossed[0]),
            load_peak=self._peak,
            tv=self._tv,
            effort=self._effort,
            sat_fraction=self._saturated / samples,
        )
