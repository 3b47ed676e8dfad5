"""A single plant with a held input as difference equations, with one or more outputs, each with a delay of its own.

The state ``x[k+1] = x[k] + R x[k] + G u[k]`` is driven without delay. An output with the delay tau is
``y[k] = w[k-m]``, where m is the next whole number of samples above tau and ``w[j] = P x[j] + q u[j]`` the motion from
sample j to the time m T - tau after it. That is exact for every delay, and two outputs have no state twice. The
measurement is just before a sample: direct feedthrough is not in the output of the sample at which the input changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt_regulator.plants.linear import Plant

Complex = NDArray[np.complexfloating[Any, Any]]


@dataclass(frozen=True)
class LateOutput:
    """``w = P x + q u``, seen `samples` later."""

    P: Floats
    q: float
    samples: int


@dataclass(frozen=True)
class SampledPlant:
    """`R` (s, s), `G` (s,) and its outputs; all zeros of `sample_time` (s) are samples."""

    R: Floats
    G: Floats
    outputs: tuple[LateOutput, ...]
    sample_time: float

    def responses(self, z: Complex) -> tuple[NDArray[np.complex128], ...]:
        """G(z) of each output, for z of any shape."""
        states = np.linalg.solve((z - 1.0)[..., None, None] * np.eye(len(self.R)) - self.R, self.G[:, None])[..., 0]
        return tuple(np.asarray((states @ out.P + out.q) * z ** (-float(out.samples))) for out in self.outputs)

    def poles(self) -> NDArray[np.complex128]:
        """Its poles in 1/s without those that decay within a sample."""
        z = 1.0 + np.linalg.eigvals(self.R).astype(np.complex128)
        return np.asarray(np.log(z[np.abs(z) > 0.0]) / self.sample_time)


def hold(plant: Plant, sample_time: float, extra_outputs: Sequence[tuple[Floats, float, float]] = ()) -> SampledPlant:
    """The plant with its output and `extra_outputs` outputs of the same states: each C, D and delay (s)."""
    from scipy.linalg import expm

    s = len(plant.A)
    generator = np.zeros((s + 1, s + 1))
    generator[:s, :s], generator[:s, s] = plant.A, plant.B

    def late(C: Floats, D: float, delay: float) -> LateOutput:
        ago = delay / sample_time
        samples = int(np.floor(ago + 1e-9)) + 1
        ahead = expm(generator * (min(samples - ago, 1.0) * sample_time))
        return LateOutput(C @ ahead[:s, :s], float(C @ ahead[:s, s]) + D, samples)

    transition = expm(generator * sample_time)
    first = (plant.C, float(plant.D), float(plant.delay))
    outputs = tuple(late(*output_terms) for output_terms in (first, *extra_outputs))
    return SampledPlant(transition[:s, :s] - np.eye(s), transition[:s, s], outputs, sample_time)
