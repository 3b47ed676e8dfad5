"""Velocities and accelerations that fulfil the constraints (Nunes 2017, 2.71, 2.75; the exact projections)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt_wholebody.consistency.blocks import Blocks, FactoredBlocks
from designopt_wholebody.consistency.projection import RecursiveProjection
from designopt_wholebody.consistency.recursion import Recursion
from designopt_wholebody.kinematics.tree import NoTree
from designopt_wholebody.subject import Subject

#: Frames at once, by blocks and by recursion.
_CHUNK, _LARGE_CHUNK = 16, 256
#: Recursion takes bodies as rigid: norm of the constraints up to which coordinates are.
_RIGID = 1e-9
#: Rows that depend on others are eased by ε; each further solution takes the error of that down by this factor.
_EASE = 1e-8
_REPEATS = 3


@dataclass(frozen=True, eq=False)
class Motion:
    """Coordinates q, q̇, q̈ (f, n) at `time` (f,) s; NaN where missing. `one_sided` (f,) marks frames whose
    derivatives are of frames to one side only, next to missing frames and at the ends."""

    time: Floats
    q: Floats
    qdot: Floats
    qddot: Floats
    one_sided: Mask

    @property
    def complete_frames(self) -> Mask:
        """(f,) frames with position, velocity and acceleration."""
        return np.asarray(np.isfinite(self.q).all(1) & np.isfinite(self.qdot).all(1) & np.isfinite(self.qddot).all(1))


class Projection:
    """The nearest velocities with J q̇ = 0 and accelerations with J q̈ = -J̇ q̇, in the metric of W.

    `metric` are the blocks of W, (size, size) for each body; the identity where none are given (`Subject.mass_blocks`
    is the other choice of the thesis). Without, frames of trees of rigid segments whose coordinates are consistent are
    projected by recursion, others with all constraints as rows.
    """

    def __init__(self, subject: Subject, metric: Sequence[Floats] | None = None) -> None:
        self.subject = subject
        self._recursion: Recursion | None = None
        if metric is None:
            with suppress(NoTree):
                self._recursion = Recursion(subject)
        self._blocks = Blocks(subject)
        sizes = [np.eye(body.size) for body in subject.bodies.values()]
        self._inverse = self._blocks.inverse_metric(sizes if metric is None else metric)

    def velocities(self, q: Floats, qdot: Floats) -> Floats:
        """(f, n) for consistent q (f, n) and measured q̇ (f, n); NaN where either is."""
        return self._project(q, qdot, None)

    def accelerations(self, q: Floats, qdot: Floats, qddot: Floats) -> Floats:
        """(f, n) for consistent q and q̇ (f, n) and measured q̈ (f, n); NaN where any of them is."""
        return self._project(q, qddot, qdot)

    def _project(self, q: Floats, raw_rates: Floats, qdot: Floats | None) -> Floats:
        rates = np.full(q.shape, np.nan)
        is_complete = np.isfinite(q).all(axis=1) & np.isfinite(raw_rates).all(axis=1)
        if qdot is not None:
            is_complete &= np.isfinite(qdot).all(axis=1)
        constraints = self.subject.constraints
        rigid = np.zeros(len(q), dtype=bool)
        if self._recursion is not None:
            rigid[is_complete] = np.linalg.norm(constraints.values(q[is_complete]), axis=1) < _RIGID
            for chunk in _chunks(is_complete & rigid, _LARGE_CHUNK):
                recursive = RecursiveProjection(self._recursion, q[chunk])
                if qdot is None:
                    rates[chunk] = recursive.velocities(raw_rates[chunk])
                else:
                    rates[chunk] = recursive.accelerations(qdot[chunk], raw_rates[chunk])
        for chunk in _chunks(is_complete & ~rigid, _CHUNK):
            entries = constraints.entries(q[chunk])
            factors = self._blocks.factorise(self._blocks.rows_of(entries, None), self._inverse, 0.0, _EASE)
            target = np.zeros((len(chunk), constraints.m))
            if qdot is not None:
                target = -constraints.bias(q[chunk], qdot[chunk])
            rates[chunk] = self._nearest(factors, entries, raw_rates[chunk], target)
        return rates

    def _nearest(self, factors: FactoredBlocks, entries: Floats, raw_rates: Floats, target: Floats) -> Floats:
        iterate = raw_rates
        for _ in range(_REPEATS):
            missing = target - self.subject.constraints.product(entries, iterate)
            iterate = iterate + factors.solve(np.zeros_like(raw_rates), missing)[0]
        return np.asarray(iterate)


def _chunks(frames: Mask, size: int) -> Iterator[Integers]:
    """The indices of true `frames` (f,), in chunks."""
    ready = np.flatnonzero(frames)
    for start in range(0, len(ready), size):
        yield ready[start : start + size]


def motion(subject: Subject, time: Floats, q: Floats, rate: float, *, project: bool = True) -> Motion:
    """Velocities and accelerations of consistent positions q (f, n) sampled at `rate` Hz, by differences.

    With `project` the velocities are projected before they are differentiated and the accelerations after it (the
    thesis's way); without it they are as the differences have them.
    """
    qdot, first = derivative(q, rate)
    if project:
        projection = Projection(subject)
        qdot = projection.velocities(q, qdot)
        qddot, second = derivative(qdot, rate)
        qddot = projection.accelerations(q, qdot, qddot)
    else:
        qddot, second = derivative(qdot, rate)
    return Motion(np.asarray(time, dtype=float), q, qdot, qddot, first | second)


def derivative(values: Floats, rate: float) -> tuple[Floats, Mask]:
    """Derivative (f, ...) of `values` (f, ...) sampled at `rate` Hz, and (f,) where it is one-sided.

    Central differences of second order; next to a missing frame or an end, one-sided differences of second order over
    three frames. A frame is missing if any of its values is; missing frames, and frames that lack neighbours on both
    sides, are NaN. A missing frame affects no other frame.
    """
    values = np.asarray(values, dtype=float)
    frames = len(values)
    have = np.zeros(frames, dtype=bool)
    have[:] = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    derivatives = np.full(values.shape, np.nan)

    def shifted(by: int) -> Mask:
        """Whether the frame `by` frames later is present."""
        is_present = np.zeros(frames, dtype=bool)
        if by >= 0:
            is_present[: max(0, frames - by)] = have[by:]
        else:
            is_present[-by:] = have[:by]
        return is_present

    central = have & shifted(1) & shifted(-1)
    forward = have & ~central & shifted(1) & shifted(2)
    backward = have & ~central & ~forward & shifted(-1) & shifted(-2)
    k = np.flatnonzero(central)
    derivatives[k] = 0.5 * rate * (values[k + 1] - values[k - 1])
    k = np.flatnonzero(forward)
    derivatives[k] = rate * (-1.5 * values[k] + 2.0 * values[k + 1] - 0.5 * values[k + 2])
    k = np.flatnonzero(backward)
    derivatives[k] = rate * (1.5 * values[k] - 2.0 * values[k - 1] + 0.5 * values[k - 2])
    return derivatives, forward | backward
