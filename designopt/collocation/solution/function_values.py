"""Values of the functions of a program at an iterate: those of a phase along its trajectory, and all constraints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.transcription.rows import Block


@dataclass(frozen=True, eq=False)
class PhaseValues:
    """Values of one phase at the variables of a program.

    `constants` (nc,) are its numeric data, then its fixed times; `signals` (points, ns) its sampled data. `rates`
    (points, nx) of the states, times the duration; `path` (points, np); `outputs` (points, no); `integrals` of the
    whole phase.
    """

    constants: Floats
    signals: Floats
    t0: float
    tf: float
    rates: Floats
    path: Floats
    outputs: Floats
    integrals: Floats

    @property
    def duration(self) -> float:
        """tf - t0 (s)."""
        return self.tf - self.t0


@dataclass(frozen=True, eq=False)
class ConstraintValues:
    """All constraints of a program at the last iterate, not scaled: `values` (m,) within `low` and `high` (m,).

    `blocks` describe the rows, `units` (one per block) are their units, `scale` (m,) the reference of violations.
    """

    blocks: tuple[Block, ...]
    units: tuple[str, ...]
    values: Floats
    low: Floats
    high: Floats
    scale: Floats

    @cached_property
    def relative(self) -> Floats:
        """The size of each violation (m,) relative to its scale; infinite for NaN."""
        return np.nan_to_num(np.abs(self.missed) / self.scale, nan=math.inf)

    @cached_property
    def missed(self) -> Floats:
        """Violations (m,) in their own units; negative below the lower limit."""
        below, above = np.minimum(self.values - self.low, 0.0), np.maximum(self.values - self.high, 0.0)
        return np.asarray(below + above)

    @property
    def violation(self) -> float:
        """The largest violation relative to the scales; NaN if one is NaN."""
        return float(np.abs(self.missed / self.scale).max(initial=0.0))
