"""Present processes of a problem, and the acquisition of designs by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.problem import EQUAL
from designopt.solvers.surrogate.cokriging import CoKriging
from designopt.solvers.surrogate.gaussian_process import GaussianProcess
from designopt.solvers.surrogate.improvement import (
    Boxes,
    expected_improvement,
    feasibility_slopes,
    improvement_slopes,
    log_feasibility,
)
from designopt.solvers.surrogate.scale import Scale
from designopt.solvers.surrogate.stack import StackedProcesses

Process = GaussianProcess | CoKriging

#: Lower bound of gains before the logarithm.
TINY = 1e-200
#: Number of observations per parameter from which jumps are distinguished from curvature.
JUMPS = 50


@dataclass(frozen=True)
class Processes:
    """The present processes: `objectives` with their `scales`, `limits` over `limit_sizes`.

    If evaluations have failed, the process of success is the last of `limits`: failed designs have 1/2, the others
    -1/2. The same applies to an equality that many designs meet and whose values repeat, such as integers. Their
    `limit_sizes` are infinite.
    """

    scales: tuple[Scale, ...]
    objectives: tuple[Process, ...]
    limits: tuple[Process, ...]
    equality: NDArray[np.bool_]
    limit_sizes: Floats
    boxes: Boxes | None
    front: Floats
    """Designs of the present front, or of the smallest violation as long as none is feasible."""
    front_values: Floats
    """Their objectives (k, m), as transformed for the processes."""
    hypervolume: float
    ends: Floats
    """The minimum (m,) of each objective on the front, including pending designs."""
    widths: Floats
    """The width (m,) of the front in each objective, or the range between the 10 % and 90 % quantiles of all values if
    the front is much shorter."""

    def along_front(self, rng: np.random.Generator) -> int:
        """The index of a design of the front: the one nearest to a random value of a random objective.

        Isolated designs are drawn more often.
        """
        values = self.front_values[:, int(rng.integers(self.front_values.shape[1]))]
        return int(np.argmin(np.abs(values - rng.uniform(values.min(), values.max()))))

    def toward_end(self, j: int) -> Processes:
        """The model of objective `j` alone: designs are compared by the expected decrease below the end of the
        front."""
        end = self.ends[j : j + 1]
        return replace(self, objectives=self.objectives[j : j + 1], boxes=Boxes.above(end[None], end))

    def cheap_share(self, feature: Floats) -> float:
        """The share of the variance at `feature` (e,) that a cheap evaluation would remove, mean of all outputs."""
        varying = [
            p for p, size in zip((*self.objectives, *self.limits), self._sizes, strict=True) if np.isfinite(size)
        ]
        shares = [float(p.share(feature[None])[0]) if isinstance(p, CoKriging) else 0.0 for p in varying]
        return float(np.mean(shares)) if shares else 0.0

    @property
    def jump(self) -> bool:
        """Whether values jump, so that an expected gain may be spurious."""
        return any(isinstance(p, GaussianProcess) and p.jumps > 0.0 for p in (*self.objectives, *self.limits))

    @property
    def _sizes(self) -> Floats:
        return np.append(np.ones(len(self.objectives)), self.limit_sizes)

    def near(self, feature: Floats, count: int) -> Processes:
        """The model from the `count` designs nearest to `feature` (e,) alone, for local behaviour.

        Processes of success stay global. With enough designs values may jump.
        """

        def model_of_surroundings(p: Process) -> Process:
            if isinstance(p, CoKriging):
                return p.near(feature, count)
            return p.near(feature, count, jumps=len(p.points) >= JUMPS * p.points.shape[1])

        return replace(
            self,
            objectives=tuple(map(model_of_surroundings, self.objectives)),
            limits=tuple(
                p if np.isinf(size) else model_of_surroundings(p)
                for p, size in zip(self.limits, self.limit_sizes, strict=True)
            ),
        )

    def gain(self, objectives: Floats) -> float:
        """The hypervolume, in scaled values, that a feasible design with these `objectives` (m,) adds to the expected
        front."""
        if self.boxes is None:
            return 0.0
        values = [float(scale.scaled(value)) for scale, value in zip(self.scales, objectives, strict=True)]
        return self.boxes.volume_above(np.array(values))

    def acquisition(self, features: Floats) -> Floats:
        """The log acquisition (n,) at designs with `features` (n, e); the next design maximises it."""
        total = np.zeros(len(features))
        if self.boxes is not None:
            mean, sd = _predictions(self.objectives, features)
            total += np.log(np.maximum(expected_improvement(mean, sd, self.boxes), TINY))
        if self.limits:
            mean, sd = _predictions(self.limits, features)
            total += log_feasibility(mean, sd, self.equality, EQUAL / self.limit_sizes)
        return total

    def acquisition_slopes(self, feature: Floats) -> tuple[float, Floats]:
        """`acquisition` of one design and its derivatives (e,) with respect to its features."""
        total, slopes = 0.0, np.zeros(len(feature))
        all_slopes, m = self._stacked_processes.slopes(feature), len(self.objectives)
        if self.boxes is not None:
            mean, sd, d_mean, d_sd = (part[:m] for part in all_slopes)
            gain, by_mean, by_sd = improvement_slopes(mean, sd, self.boxes)
            total += float(np.log(max(gain, TINY)))
            if gain > TINY:
                slopes += (by_mean @ d_mean + by_sd @ d_sd) / gain
        if self.limits:
            mean, sd, d_mean, d_sd = (part[m:] for part in all_slopes)
            value, by_mean, by_sd = feasibility_slopes(mean, sd, self.equality, EQUAL / self.limit_sizes)
            total += value
            slopes += by_mean @ d_mean + by_sd @ d_sd
        return total, slopes

    @cached_property
    def _stacked_processes(self) -> StackedProcesses:
        return StackedProcesses.from_processes((*self.objectives, *self.limits))


def _predictions(processes: Sequence[Process], features: Floats) -> tuple[Floats, Floats]:
    mean, sd = zip(*(p.predict(features) for p in processes), strict=True)
    return np.column_stack(mean), np.column_stack(sd)
