"""Values of the functions of a phase along a trajectory."""

from __future__ import annotations

from dataclasses import dataclass

from designopt.arrays import Floats


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
