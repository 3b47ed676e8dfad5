"""What is known of a problem after some evaluations: a process for every objective, every limit and for success."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designopt.lazy import moocore
from designopt.problem import EQUAL, Outcomes, Problem
from designopt.solvers.surrogate.coordinates import Coordinates
from designopt.solvers.surrogate.gaussian_process import GaussianProcess, Hyperparameters, first_guess, fitted
from designopt.solvers.surrogate.improvement import (
    Boxes,
    expected_improvement,
    feasibility_slopes,
    improvement_slopes,
    log_feasibility,
)
from designopt.space import Matrix

#: Logarithms of gains are not smaller than this.
TINY = 1e-200
#: The process of success: its length scale over the root of the number of parameters, and its noise.
SUCCESS_LENGTH = 0.2
SUCCESS_NOISE = 0.02
#: From this noise on, relative to the variance of a process, its mean counts for a design, not what was observed.
NOISY = 1e-4
#: How far the reference point lies beyond the worst of the front in each objective, in widths of the front.
BEYOND = 0.1


@dataclass(frozen=True)
class Observations:
    """Designs that were evaluated: `objectives` (n, m) to be minimised, `limits` (n, k) that are not above 0, or equal
    to 0, in a feasible design, and `failed` (n,) for those without numbers."""

    X: Matrix
    objectives: Matrix
    limits: Matrix
    feasible: NDArray[np.bool_]
    failed: NDArray[np.bool_]

    @classmethod
    def of(cls, problem: Problem, outcomes: Sequence[Outcomes]) -> Observations:
        """What outcomes tell. Designs that break a relation are left out: they are known before."""
        rows = [
            (o.X, o.objectives, _limit_values(problem, o), o.feasible, o.failed | o.invalid)
            for o in outcomes
            if not (problem.space.relation_violation(o.X) > 0.0).all()
        ]
        if not rows:
            d, m, k = len(problem.space.free), len(problem.objectives), len(problem.limits)
            none = np.zeros(0, dtype=bool)
            return cls(np.empty((0, d)), np.empty((0, m)), np.empty((0, k)), none, none)
        X, objectives, limits, feasible, failed = (np.concatenate(part) for part in zip(*rows, strict=True))
        lost = failed | ~np.isfinite(limits).all(axis=1) | ~np.isfinite(objectives).all(axis=1)
        return cls(X, objectives, limits, feasible & ~lost, lost)


@dataclass(frozen=True)
class Processes:
    """The processes of one moment: `objectives` by their `scales`, `limits` over `limit_sizes`.

    Where evaluations failed, the last of `limits` is for success: failed designs have 1/2, the others -1/2.
    """

    scales: tuple[Scale, ...]
    objectives: tuple[GaussianProcess, ...]
    limits: tuple[GaussianProcess, ...]
    equality: NDArray[np.bool_]
    limit_sizes: Matrix
    boxes: Boxes | None
    front: Matrix
    """Designs of the present front, of the one with least violation as long as none is feasible."""
    hypervolume: float

    def acquisition(self, features: Matrix) -> Matrix:
        """The logarithm of the expected gain (n,) at designs with `features` (n, e); the next design maximises it."""
        total = np.zeros(len(features))
        if self.boxes is not None:
            mean, sd = _stacked(self.objectives, features)
            total += np.log(np.maximum(expected_improvement(mean, sd, self.boxes), TINY))
        if self.limits:
            mean, sd = _stacked(self.limits, features)
            total += log_feasibility(mean, sd, self.equality, EQUAL / self.limit_sizes)
        return total

    def acquisition_slopes(self, feature: Matrix) -> tuple[float, Matrix]:
        """`acquisition` of one design and its derivatives (e,) by its features."""
        total, slopes = 0.0, np.zeros(len(feature))
        if self.boxes is not None:
            mean, sd, d_mean, d_sd = _stacked_slopes(self.objectives, feature)
            gain, by_mean, by_sd = improvement_slopes(mean, sd, self.boxes)
            total += float(np.log(max(gain, TINY)))
            if gain > TINY:
                slopes += (by_mean @ d_mean + by_sd @ d_sd) / gain
        if self.limits:
            mean, sd, d_mean, d_sd = _stacked_slopes(self.limits, feature)
            value, by_mean, by_sd = feasibility_slopes(mean, sd, self.equality, EQUAL / self.limit_sizes)
            total += value
            slopes += by_mean @ d_mean + by_sd @ d_sd
        return total, slopes


def _limit_values(problem: Problem, outcomes: Outcomes) -> Matrix:
    return problem.constraint_values(outcomes.figures) if problem.limits else np.empty((len(outcomes), 0))


def _stacked(processes: Sequence[GaussianProcess], features: Matrix) -> tuple[Matrix, Matrix]:
    mean, sd = zip(*(p.predict(features) for p in processes), strict=True)
    return np.column_stack(mean), np.column_stack(sd)


def _stacked_slopes(processes: Sequence[GaussianProcess], feature: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    mean, sd, d_mean, d_sd = zip(*(p.slopes(feature) for p in processes), strict=True)
    return np.array(mean), np.array(sd), np.array(d_mean), np.array(d_sd)


class Surrogate:
    """Processes that follow the observations. Hyperparameters are fitted anew when there are a tenth more of them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.coordinates = Coordinates(problem.space)
        self._hyperparameters: dict[str, Hyperparameters] = {}
        self._fitted_at: dict[str, int] = {}

    def processes(self, seen: Observations, pending: Matrix) -> Processes:
        """What is known with the designs `pending` (k, d) on their way, believed to give what is predicted."""
        problem = self.problem
        good = ~seen.failed
        features = self.coordinates.features(seen.X)
        on_their_way = self.coordinates.features(pending) if len(pending) else np.empty((0, features.shape[1]))
        X, feasible = seen.X[good], seen.feasible[good]
        found = seen.objectives[good]
        scales = tuple(Scale.of(found[:, j], feasible) for j in range(len(problem.objectives)))
        objectives = [
            self._process(f"objective {j}", features[good], scale.seen(found[:, j])) for j, scale in enumerate(scales)
        ]
        limited = [_tamed(seen.limits[good, j]) for j in range(len(problem.limits))]
        limits = [self._process(f"limit {j}", features[good], y) for j, (y, _) in enumerate(limited)]
        sizes = np.array([size for _, size in limited])
        equality = of_study = np.array([limit.equality for limit in problem.limits], dtype=bool)
        if seen.failed.any():
            limits.append(self._success(features, seen.failed))
            equality, sizes = np.append(equality, False), np.append(sizes, np.inf)
        values = np.column_stack(
            [p.predict(features[good])[0] if p.hyperparameters.noise > NOISY else p.values for p in objectives]
        )
        believed_objectives = tuple(p.believing(on_their_way) for p in objectives)
        believed_limits = tuple(p.believing(on_their_way) for p in limits)
        if not feasible.any():
            violation = np.maximum(np.where(of_study, np.abs(seen.limits[good]), seen.limits[good]), 0.0).sum(axis=1)
            nearest = X[np.argsort(violation, kind="stable")[:1]]
            return Processes(scales, believed_objectives, believed_limits, equality, sizes, None, nearest, 0.0)
        on_front = _nondominated(values[feasible])
        front = values[feasible][on_front]
        width = np.maximum(np.ptp(front, axis=0), 0.05 * np.ptp(values[feasible], axis=0))
        reference = front.max(axis=0) + (BEYOND * np.where(width > 0.0, width, 1.0) if values.shape[1] > 1 else 0.0)
        expected = front
        if len(pending):
            mean = np.column_stack([p.values[-len(pending) :] for p in believed_objectives])
            kept = np.ones(len(pending), dtype=bool)
            for p, is_equal in zip(believed_limits, equality, strict=True):
                kept &= is_equal | (p.values[-len(pending) :] <= 0.0)
            expected = np.vstack([front, mean[kept]])
            expected = expected[_nondominated(expected)]
        return Processes(
            scales,
            believed_objectives,
            believed_limits,
            equality,
            sizes,
            Boxes.above(expected, reference),
            X[feasible][on_front],
            _hypervolume(front, reference),
        )

    def _success(self, features: Matrix, failed: NDArray[np.bool_]) -> GaussianProcess:
        """Its hyperparameters are fixed: what is a step in truth would be fitted by a length scale near 0."""
        values = failed.astype(np.float64) - 0.5
        length = SUCCESS_LENGTH * np.sqrt(len(self.problem.space.free))
        alike = np.zeros(features.shape[1], dtype=np.int64)
        return GaussianProcess(features, values, alike, Hyperparameters(np.array([length]), SUCCESS_NOISE))

    def _process(self, name: str, features: Matrix, values: Matrix) -> GaussianProcess:
        groups = self.coordinates.groups
        count = len(self.problem.space.free)
        before = self._hyperparameters.get(name, first_guess(count))
        if len(values) >= 1.1 * self._fitted_at.get(name, 0) and np.ptp(values) > 0.0:
            before = fitted(features, values, groups, before)
            self._hyperparameters[name] = before
            self._fitted_at[name] = len(values)
        return GaussianProcess(features, values, groups, before)


@dataclass(frozen=True)
class Scale:
    """An objective as its process sees it: mean 0 and standard deviation 1, and values above the `knee` drawn in.

    Above the knee values grow with the logarithm only: a few huge ones would flatten all others for a process.
    """

    knee: float
    size: float
    mean: float = 0.0
    sd: float = 1.0

    @classmethod
    def of(cls, values: Matrix, feasible: NDArray[np.bool_]) -> Scale:
        """For `values` (n,) of all designs; three quarters of them and the best `feasible` one are not above the knee.

        The worse end of a front may be: on constrained problems (BNH, welded beam, disc brake, 40 and 60 evaluations)
        more hypervolume was found than with the knee at that end.
        """
        knee = float(np.quantile(values, 0.75))
        if feasible.any():
            knee = max(knee, float(values[feasible].min()))
        size = max(knee - float(values.min()), 1e-12 * max(abs(knee), 1e-280))
        seen = cls(knee, size).seen(values)
        return cls(knee, size, float(seen.mean()), float(seen.std()) or 1.0)

    def seen(self, values: Matrix) -> Matrix:
        """What the process sees of `values`."""
        over = np.maximum(values - self.knee, 0.0)
        drawn_in = np.minimum(values, self.knee) + self.size * np.log1p(over / self.size)
        return np.asarray((drawn_in - self.mean) / self.sd)

    def values(self, seen: Matrix) -> Matrix:
        """The inverse of `seen`."""
        drawn_in = np.asarray(seen) * self.sd + self.mean
        over = np.maximum(drawn_in - self.knee, 0.0)
        return np.asarray(np.minimum(drawn_in, self.knee) + self.size * np.expm1(np.minimum(over / self.size, 500.0)))


def _tamed(values: Matrix) -> tuple[Matrix, float]:
    """A limit's values over their size, large ones of either sign drawn in, and that size. 0 stays 0."""
    size = np.abs(values)
    typical = float(np.median(size)) or float(size.max()) or 1.0
    return np.arcsinh(values / (3.0 * typical)) * 3.0, typical


def _nondominated(F: Matrix) -> NDArray[np.bool_]:
    return np.asarray(moocore.is_nondominated(F, maximise=False, keep_weakly=False), dtype=bool)


def _hypervolume(front: Matrix, reference: Matrix) -> float:
    return float(moocore.hypervolume(front, ref=reference)) if front.shape[1] > 1 else 1.0
