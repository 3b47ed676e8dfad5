"""The output of sampled loops between the samples: its largest value, and when it enters a band for good.

Between arrivals of commands the input is constant, and the output is ``c exp(G t) z`` with z = (x, u), the state and
the input. Its values and rates on a grid, joined by cubics, show in which interval the largest value or the last
crossing is; that interval is divided until the cubic has the digits of the output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats, Mask
from designopt_regulator.plants.linear import Plant, exponentials

#: Lengths relative to the time of the fastest mode: of the grid's intervals, of the last ones, and up to which a cubic
#: gives the extreme, with an error of at most length^4/384 of the mode's amplitude.
_COARSE, _FINE, _SHORT = 0.25, 0.05, 1.0
_FEWEST, _MOST = 4, 128  # intervals between two arrivals
_PARTS, _MOST_DIVISIONS = 8, 8  # of an interval that is divided, and how often it is
_BLOCK = 2000  # intervals of an output at once


@dataclass(frozen=True)
class _Intervals:
    """One interval of each of n outputs: `z` (n, s + 1) at its begin, its `length` and `begin` (n,) in s."""

    z: Floats
    length: Floats
    begin: Floats

    def replaced(self, rows: Mask, replacements: _Intervals) -> _Intervals:
        """With the `replacements` in some rows."""
        return _Intervals(
            np.where(rows[:, None], replacements.z, self.z),
            np.where(rows, replacements.length, self.length),
            np.where(rows, replacements.begin, self.begin),
        )


@dataclass(frozen=True)
class _Cubics:
    """Intervals (n, k) of n outputs: values at their `left` and `right` ends, and `extreme`, the value where the slope
    changes its sign, which is `left` where it does not."""

    left: Floats
    right: Floats
    extreme: Floats

    @classmethod
    def through(cls, values: Floats, slopes: Floats, is_short: Mask) -> _Cubics:
        """Through `values` (n, ..., k + 1) with `slopes` per interval; extremes where `is_short` (n,)."""
        n = len(values)
        left, right = values[..., :-1].reshape(n, -1), values[..., 1:].reshape(n, -1)
        d0, d1 = slopes[..., :-1].reshape(n, -1), slopes[..., 1:].reshape(n, -1)
        extreme = left.copy()
        at = np.nonzero((d0 * d1 < 0.0) & is_short[:, None])
        y, d0, d1, rise = left[at], d0[at], d1[at], right[at] - left[at]
        b, a = 3.0 * rise - 2.0 * d0 - d1, d0 + d1 - 2.0 * rise
        share = d0 / (np.copysign(np.sqrt(b * b - 3.0 * a * d0), d0) - b)
        extreme[at] = y + share * (d0 + share * (b + share * a))
        return cls(left, right, extreme)

    def column(self, j: NDArray[np.intp]) -> _Cubics:
        """One interval of each output."""
        rows = np.arange(len(j))
        return _Cubics(*(part[rows, j][:, None] for part in (self.left, self.right, self.extreme)))

    def replaced(self, rows: Mask, replacements: _Cubics) -> _Cubics:
        """With the `replacements` in some rows."""
        parts = zip(
            (self.left, self.right, self.extreme),
            (replacements.left, replacements.right, replacements.extreme),
            strict=True,
        )
        return _Cubics(*(np.where(rows[:, None], after, before) for before, after in parts))

    @property
    def highest(self) -> Floats:
        """The largest value of each interval."""
        return np.maximum(np.maximum(self.left, self.right), self.extreme)

    def outside(self, band: float) -> Mask:
        """Whether an end or the extreme is farther than `band` from 1."""
        return np.maximum(np.maximum(abs(self.left - 1.0), abs(self.right - 1.0)), abs(self.extreme - 1.0)) > band


def peak_and_settling(
    plant: Plant, sample_time: float, states: Floats, inputs: Floats, band: float
) -> tuple[Floats, Floats]:
    """The largest value of each of n outputs, and the last time (s) at which it is farther than `band` from 1: (n,).

    `states` (n, k, s) are those at samples, `sample_time` s apart; column j + 1 of `inputs` (n, more than k) is the
    command of sample j, which arrives after the plant's delay.
    """
    fastest = np.abs(np.linalg.eigvals(plant.A)).max(axis=1)
    least_counts = np.clip(fastest * sample_time / _COARSE, _FEWEST, _MOST)
    counts = 2 ** np.ceil(np.log2(least_counts)).astype(np.int_)  # an output's figures do not depend on the others
    peak, settling = np.zeros(len(states)), np.zeros(len(states))
    plant = replace(plant, D=np.broadcast_to(plant.D, len(states)))
    for count in np.unique(counts).tolist():
        rows = np.flatnonzero(counts == count)
        plants = Plant(*(getattr(plant, field.name)[rows] for field in fields(Plant)))
        outputs = _Outputs(plants, sample_time, fastest[rows], count)
        peak[rows], settling[rows] = outputs.peak_and_settling(states[rows], inputs[rows], band)
    return peak, settling


class _Outputs:
    """n outputs, with `count` intervals between two arrivals."""

    def __init__(self, plant: Plant, sample_time: float, fastest: Floats, count: int) -> None:
        n, s = plant.B.shape
        self._G = np.zeros((n, s + 1, s + 1))
        self._G[:, :s, :s], self._G[:, :s, s] = plant.A, plant.B
        self._c = np.concatenate([plant.C, plant.D[:, None]], axis=1)
        self._fastest, self._sample_time, self._count = fastest, sample_time, count
        self._rows, samples = np.arange(n), plant.delay / sample_time
        self._late = np.floor(samples + 1e-9).astype(np.int_)
        share = samples - self._late
        self._arrival = np.where(share < 1e-9, 0.0, share) * sample_time
        self._lengths = np.stack([self._arrival, sample_time - self._arrival], axis=1) / count
        parts = [_powers(self._G * h[:, None, None], count) for h in self._lengths.T]
        self._transitions = np.stack(parts, axis=1)  # (n, 2, count + 1, s + 1, s + 1)

    def peak_and_settling(self, states: Floats, inputs: Floats, band: float) -> tuple[Floats, Floats]:
        """The results of the function `peak_and_settling`."""
        n, samples, s = states.shape
        highest = last = _Intervals(np.zeros((n, s + 1)), np.zeros(n), np.zeros(n))
        peak, size = np.zeros(n), max(1, _BLOCK // self._count)
        for first in range(0, samples, size):
            block = np.arange(first, min(first + size, samples))
            since = block - self._late[:, None]
            z = np.zeros((n, len(block), 2, s + 1))
            z[:, :, 0, :s] = states[:, block]
            z[:, :, 0, s] = inputs[self._rows[:, None], np.maximum(since, 0)]
            z[:, :, 1, :s] = (z[:, :, 0] @ self._transitions[:, 0, -1].swapaxes(1, 2))[..., :s]
            z[:, :, 1, s] = inputs[self._rows[:, None], np.maximum(since + 1, 0)]
            cubics = self._cubics(z, self._transitions, self._lengths)
            largest, outside = cubics.highest.max(axis=1), cubics.outside(band)
            higher, leaves = np.asarray(largest > peak), np.asarray(outside.any(axis=1))
            highest = highest.replaced(higher, self._interval(z, first, cubics.highest.argmax(axis=1)))
            last = last.replaced(leaves, self._interval(z, first, _last(outside)))
            peak = np.maximum(peak, largest)
        _, cubics = self._divided(highest, lambda cubics: cubics.highest.argmax(axis=1))
        last, crossing = self._divided(last, lambda cubics: _last(cubics.outside(band)))
        return cubics.highest[:, 0], last.begin + last.length * _share_outside(crossing, band)

    def _cubics(self, z: Floats, transitions: Floats, lengths: Floats) -> _Cubics:
        """From `z` (n, samples, parts, s + 1) over intervals of `lengths` (n, parts), with the `transitions` (n, parts,
        intervals + 1, s + 1, s + 1) from their begins."""
        to_values = np.einsum("ni,npjik->npkj", self._c, transitions)
        to_slopes = np.einsum("ni,npjik->npkj", (self._c[:, None] @ self._G)[:, 0], transitions)
        parts = z.swapaxes(1, 2)
        values = (parts @ to_values).swapaxes(1, 2)
        slopes = (parts @ (to_slopes * lengths[:, :, None, None])).swapaxes(1, 2)
        return _Cubics.through(values, slopes, self._fastest * lengths.max(axis=1) <= _SHORT)

    def _interval(self, z: Floats, first: int, at: NDArray[np.intp]) -> _Intervals:
        """One interval of each output, by its number in the block of samples that begins with `first`."""
        sample, part, j = np.unravel_index(at, (z.shape[1], 2, self._count))
        begin = (first + sample) * self._sample_time + part * self._arrival + j * self._lengths[self._rows, part]
        transition = self._transitions[self._rows, part, j]
        z_begin = (transition @ z[self._rows, sample, part][..., None])[..., 0]
        return _Intervals(z_begin, self._lengths[self._rows, part], begin)

    def _divided(
        self, intervals: _Intervals, select: Callable[[_Cubics], NDArray[np.intp]]
    ) -> tuple[_Intervals, _Cubics]:
        """The part that `select` takes of each interval, divided until a cubic is exact, and the cubic."""
        length = np.maximum(self._fastest * intervals.length, _FINE)
        divisions = np.ceil(np.log(length / _FINE) / np.log(_PARTS)).clip(1, _MOST_DIVISIONS)
        n = len(divisions)
        exact = _Cubics(np.zeros((n, 1)), np.zeros((n, 1)), np.zeros((n, 1)))
        for k in range(int(divisions.max())):
            length = intervals.length / _PARTS
            transitions = _powers(self._G * length[:, None, None], _PARTS)
            cubics = self._cubics(intervals.z[:, None, None], transitions[:, None], length[:, None])
            j = select(cubics)
            z = (transitions[self._rows, j] @ intervals.z[..., None])[..., 0]
            goes_on = k < divisions
            intervals = intervals.replaced(goes_on, _Intervals(z, length, intervals.begin + j * length))
            exact = exact.replaced(goes_on, cubics.column(j))
        return intervals, exact


def _powers(G: Floats, count: int) -> Floats:
    """exp(G j) (n, count + 1, s, s) for j = 0 to `count`."""
    step = exponentials(G)
    powers = np.empty((len(G), count + 1, *G.shape[1:]))
    powers[:, 0] = np.eye(G.shape[1])
    for j in range(count):
        powers[:, j + 1] = powers[:, j] @ step
    return powers


def _last(mask: Mask) -> NDArray[np.intp]:
    """The last column of each row that is true; the last of all where none is."""
    return np.asarray(mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1))


def _share_outside(cubics: _Cubics, band: float) -> Floats:
    """The share of one short interval of each output (n, 1) up to which it is outside the `band` around 1."""
    left, right = abs(cubics.left[:, 0] - 1.0), abs(cubics.right[:, 0] - 1.0)
    crosses = (left > band) & (right <= band)
    return np.where(crosses, (left - band) / np.where(crosses, left - right, 1.0), 1.0)
