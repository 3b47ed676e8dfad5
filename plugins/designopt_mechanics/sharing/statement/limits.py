"""Limits of sharing problems besides bounds: linear ones, and of the norm of a joint reaction."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from designopt.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class LinearLimits:
    """``G x <= h`` in each frame: `matrix` (n, c, v) and `right` (n, c).

    `arrow`: each row has an entry for one variable and for the last one.
    """

    matrix: Floats
    right: Floats
    arrow: bool = False

    @property
    def count(self) -> int:
        return int(self.right.shape[1])

    def take(self, frames: Integers) -> LinearLimits:
        return LinearLimits(self.matrix[frames], self.right[frames], self.arrow)

    def at(self, x: Floats, frames: Integers) -> tuple[Floats, Floats]:
        matrix = self.matrix[frames]
        return np.asarray(np.matmul(matrix, x[:, :, None])[:, :, 0] - self.right[frames]), matrix

    def bend(self, multipliers: Floats, frames: Integers) -> Floats | None:
        return None


@dataclass(frozen=True, eq=False)
class NormLimit:
    """``|c0 + C x| <= 1`` in each frame, as half the difference of the squares: `offset` (n, 3), `gain` (n, 3, v)."""

    offset: Floats
    gain: Floats
    arrow: bool = field(default=False, init=False)

    @property
    def count(self) -> int:
        return 1

    def take(self, frames: Integers) -> NormLimit:
        return NormLimit(self.offset[frames], self.gain[frames])

    def at(self, x: Floats, frames: Integers) -> tuple[Floats, Floats]:
        gain = self.gain[frames]
        c = self.offset[frames] + np.matmul(gain, x[:, :, None])[:, :, 0]
        return 0.5 * ((c * c).sum(axis=1, keepdims=True) - 1.0), np.asarray(np.matmul(c[:, None, :], gain))

    def bend(self, multipliers: Floats, frames: Integers) -> Floats | None:
        gain = self.gain[frames]
        return np.asarray(multipliers[:, :, None] * np.matmul(gain.transpose(0, 2, 1), gain))


@dataclass(frozen=True, eq=False)
class AllLimits:
    """Limits one after the other."""

    parts: tuple[LinearLimits | NormLimit, ...]

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def arrow(self) -> bool:
        return all(part.arrow for part in self.parts)

    def take(self, frames: Integers) -> AllLimits:
        return AllLimits(tuple(part.take(frames) for part in self.parts))

    def at(self, x: Floats, frames: Integers) -> tuple[Floats, Floats]:
        values, gradients = zip(*(part.at(x, frames) for part in self.parts), strict=True)
        return np.concatenate(values, axis=1), np.concatenate(gradients, axis=1)

    def bend(self, multipliers: Floats, frames: Integers) -> Floats | None:
        total: Floats | None = None
        begin = 0
        for part in self.parts:
            bend = part.bend(multipliers[:, begin : begin + part.count], frames)
            begin += part.count
            if bend is not None:
                total = bend if total is None else total + bend
        return total
