"""Surrogate model of a problem: a process for every objective, every limit and for success."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.lazy import moocore
from designopt.problem import EQUAL, Problem
from designopt.solvers.surrogate.cokriging import CoKriging, predicts_better
from designopt.solvers.surrogate.coordinates import Coordinates
from designopt.solvers.surrogate.gaussian_process import (
    CholeskyFactor,
    GaussianProcess,
    Hyperparameters,
    first_guess,
    fit_hyperparameters,
)
from designopt.solvers.surrogate.improvement import Boxes
from designopt.solvers.surrogate.matern import Slopes
from designopt.solvers.surrogate.observations import Observations
from designopt.solvers.surrogate.processes import Process, Processes
from designopt.solvers.surrogate.scale import Scale

#: Processes of success: their length scales over the root of the number of parameters, and their noise.
SUCCESS_LENGTHS = (0.2, 0.1, 0.05, 0.025)
SUCCESS_NOISE = 0.02
#: Number of observations up to which hyperparameters are fitted more often.
SOON = 100
#: Number of observations per parameter from which short length scales are tried.
MANY = 10
#: Share of designs that meet an equality from which it is a classification: its process is that of success.
OFTEN = 0.1
#: Noise relative to the variance of a process from which its mean, not the observation, represents a design.
NOISY = 1e-4
#: Limit of the number of observations, values included, with slopes: time grows with the third power. The slopes of as
#: many designs as fit are used.
OBSERVATIONS = 400
#: Minimum numbers of full and of cheap evaluations for a process of both.
LEAST = 4
#: Distance of the reference point beyond the worst values of the front, in widths of the front. If the front is shorter
#: than the share SHORT of the range between the 10 % and 90 % quantiles of all values, only one end of it is known:
#: then this range applies.
BEYOND, SHORT = 0.1, 0.25


def _repeat(values: Floats) -> bool:
    """Whether `values` (n,) repeat, like integers: at most half of them are distinct."""
    return len(np.unique(np.round(values / EQUAL))) <= max(0.5 * len(values), 1.0)


class Surrogate:
    """Processes of all observations so far. Hyperparameters are fitted again when there are a tenth more of them, from
    SOON observations on a fifth; the transformation of values is chosen again when there are half as many more."""

    def __init__(self, problem: Problem, noise: bool | None = None, *, independent_lengths: bool = False) -> None:
        """`noise` is the setting of the solver: None means that the model decides. With one objective and without
        `independent_lengths`, length scales may have a common level, if that is more probable."""
        self.problem = problem
        #: The possible values of `common_level` of the hyperparameters.
        self.priors = (False,) if independent_lengths or len(problem.objectives) > 1 else (True, False)
        self.noisy = problem.model.plugin.takes_rng if noise is None else noise
        self.coordinates = Coordinates(problem.space)
        self._equality = np.array([limit.equality for limit in problem.limits], dtype=bool)
        self._fits: dict[str, _ModelChoice] = {}
        self._lengths: dict[str, tuple[float, int]] = {}
        self._factors: dict[str, tuple[CholeskyFactor, ...]] = {}

    def processes(self, observations: Observations, pending: Floats, cheap: Observations | None = None) -> Processes:
        """The model with the pending designs `pending` (k, d), with predictions as values (Kriging believer:
        Ginsbourger, Le Riche & Carraro 2010). Processes of objectives and limits use `cheap` evaluations if that
        improves them."""
        problem = self.problem
        good = ~observations.failed
        features = self.coordinates.features(observations.X)
        on_their_way = self.coordinates.features(pending) if len(pending) else np.empty((0, features.shape[1]))
        X, feasible = observations.X[good], observations.feasible[good]
        objective_values, m = observations.objectives[good], len(problem.objectives)
        slopes = self._observed_slopes(observations, features)
        fitted_objectives = [
            self._with_cheap(
                f"objective {j}",
                self._process(
                    f"objective {j}", _Sample(features[good], values, slopes[j]), Scale.choices(values, feasible)
                ),
                _with_result(cheap, cheap.objectives[:, j]) if cheap else None,
            )
            for j, values in enumerate(objective_values.T)
        ]
        fitted_limits = [
            self._with_cheap(
                f"limit {j}",
                self._process(
                    f"limit {j}", _Sample(features[good], values, slopes[m + j]), Scale.choices_of_limit(values)
                ),
                _with_result(cheap, cheap.limits[:, j]) if cheap else None,
            )
            for j, values in enumerate(observations.limits[good].T)
        ]
        scales = tuple(s for s, _ in fitted_objectives)
        objectives: list[Process] = [p for _, p in fitted_objectives]
        limits: list[Process] = [p for _, p in fitted_limits]
        sizes = np.array([s.sd for s, _ in fitted_limits])
        equality = self._equality.copy()
        for j in np.flatnonzero(self._equality):
            differs = np.abs(observations.limits[good, j]) > EQUAL
            if differs.mean() < 1.0 - OFTEN and _repeat(observations.limits[good, j][differs]):
                limits[j], equality[j], sizes[j] = self._success(f"limit {j}", features[good], differs), False, np.inf
        if observations.failed.any():
            limits.append(self._success("result", features, observations.failed))
            equality, sizes = np.append(equality, False), np.append(sizes, np.inf)
        values = np.column_stack(
            [
                p.predict(features[good])[0] if self.noisy and p.hyperparameters.noise > NOISY else p.values
                for p in objectives
            ]
        )
        fantasised_objectives = tuple(p.fantasised(on_their_way) for p in objectives)
        fantasised_limits = tuple(p.fantasised(on_their_way) for p in limits)
        processes = scales, fantasised_objectives, fantasised_limits, equality, sizes
        if not feasible.any():
            nearest = X[self._least_violation_index(observations)]
            none = np.full(m, np.inf)
            return Processes(*processes, None, nearest, none[None], 0.0, none, none)
        on_front = _nondominated_mask(values[feasible])
        front = values[feasible][on_front]
        widths = _widths(front, values[feasible])
        beyond = np.where(np.ptp(front, axis=0) < widths, widths, BEYOND * widths)
        reference = front.max(axis=0) + (beyond if m > 1 else 0.0)
        expected_front = front
        if len(pending):
            mean = np.column_stack([p.values[-len(pending) :] for p in fantasised_objectives])
            promising = np.ones(len(pending), dtype=bool)
            for p, is_equal in zip(fantasised_limits, equality, strict=True):
                promising &= is_equal | (p.values[-len(pending) :] <= 0.0)
            expected_front = np.vstack([front, mean[promising]])
            expected_front = expected_front[_nondominated_mask(expected_front)]
        return Processes(
            *processes,
            Boxes.above(expected_front, reference),
            X[feasible][on_front],
            front,
            _hypervolume(front, reference),
            expected_front.min(axis=0),
            widths,
        )

    def _observed_slopes(self, observations: Observations, features: Floats) -> list[Slopes | None]:
        """The known slopes of each objective and each limit by real parameters, of as many designs as permitted.

        Those next to the front (to the design with the smallest violation) are selected.
        """
        count = len(self.problem.objectives) + len(self.problem.limits)
        columns, real = self.coordinates.real_features, self.coordinates.real
        if observations.slopes is None or not len(columns):
            return [None] * count
        good = ~observations.failed
        X, slopes, n = features[good], observations.slopes[good][:, :, real], int(good.sum())
        feasible = observations.feasible[good]
        best = (
            X[feasible][_nondominated_mask(observations.objectives[good][feasible])]
            if feasible.any()
            else X[self._least_violation_index(observations)]
        )
        apart = np.sqrt(((X[:, None] - best[None]) ** 2).sum(axis=2)).min(axis=1)
        slopes_by_output: list[Slopes | None] = []
        for j in range(count):
            with_slopes = np.flatnonzero(np.isfinite(slopes[:, j]).all(axis=1))
            room = max(OBSERVATIONS - n, 0) // len(columns)
            rows = np.sort(with_slopes[np.argsort(apart[with_slopes], kind="stable")[:room]])
            slopes_by_output.append(Slopes(rows, columns, slopes[rows, j]) if len(rows) else None)
        return slopes_by_output

    def _least_violation_index(self, observations: Observations) -> NDArray[np.int64]:
        """The index (1,) of the smallest violation, among the designs that have not failed."""
        limits = observations.limits[~observations.failed]
        violation = np.maximum(np.where(self._equality, np.abs(limits), limits), 0.0).sum(axis=1)
        return np.argsort(violation, kind="stable")[:1]

    def _success(self, name: str, features: Floats, failed: NDArray[np.bool_]) -> GaussianProcess:
        """Only its length scale is fitted, among a few values by the prediction of each design from the others: maximum
        likelihood would fit a step with a length scale near 0."""
        values, n = failed.astype(np.float64) - 0.5, len(failed)
        alike = np.zeros(features.shape[1], dtype=np.int64)

        def process(length: float) -> GaussianProcess:
            lengths = np.array([length * np.sqrt(len(self.problem.space.free))])
            hyperparameters = Hyperparameters(lengths, SUCCESS_NOISE, self.noisy)
            return GaussianProcess(features, values, alike, hyperparameters, reusable=self._factors.get(name, ()))

        length, found_at = self._lengths.get(name, (SUCCESS_LENGTHS[0], 0))
        if n >= 1.1 * found_at:
            length = max(SUCCESS_LENGTHS, key=lambda candidate: process(candidate).label_likelihood())
            self._lengths[name] = length, n
        best_process = process(length)
        self._factors[name] = best_process.factors
        return best_process

    def _with_cheap(
        self, name: str, full_model: tuple[Scale, GaussianProcess], cheap: tuple[Floats, Floats] | None
    ) -> tuple[Scale, Process]:
        """The process with the `cheap` designs (k, d) and values (k,), if these improve it."""
        scale, full = full_model
        if cheap is None or len(full.values) < LEAST or np.ptp(full.values) == 0.0 or np.ptp(cheap[1]) == 0.0:
            return scale, full
        X, values = cheap
        _, level = self._process(f"cheap {name}", _Sample(self.coordinates.features(X), values), [scale])

        def differences_model(differences: Floats) -> Hyperparameters:
            identity = Scale(np.inf, 1.0)
            return self._process(f"difference {name}", _Sample(full.points, differences), [identity])[1].hyperparameters

        cokriging = CoKriging.fitted_to(level, replace(full, observed_slopes=None), differences_model)
        return scale, cokriging if predicts_better(cokriging, full) else full

    def _guesses(self, count: int) -> list[Hyperparameters]:
        """Initial values of fits to `count` observations: slow variation and, unless that would fit noise, fast
        variation, each with effects that add up or not."""
        d = len(self.problem.space.free)
        lengths = (0.5, 0.1) if count >= MANY * d else (0.5,)
        shares = (0.0, 0.5) if d > 1 else (0.0,)
        return [
            first_guess(d, self.noisy, length, common, share)
            for length in lengths
            for common in self.priors
            for share in shares
        ]

    def _process(self, name: str, sample: _Sample, scales: Sequence[Scale]) -> tuple[Scale, GaussianProcess]:
        """The process of a `sample`, on one of `scales`."""
        features, values, groups, n = sample.features, sample.values, self.coordinates.groups, len(sample.values)
        fit = self._fits.get(name)
        if np.ptp(values) == 0.0:
            return scales[0], GaussianProcess(features, scales[0].scaled(values), groups, self._guesses(0)[0])
        if fit is None or n >= 1.5 * fit.chosen_at:
            fit = min(
                (
                    _ModelChoice.fitted_on(i, scale, sample, groups, start)
                    for i, scale in enumerate(scales)
                    for start in self._guesses(n)
                ),
                key=lambda choice: choice.badness,
            )
            self._fits[name] = fit
        elif n >= (1.1 if fit.fitted_at < SOON else 1.2) * fit.fitted_at:
            new_fit = _ModelChoice.fitted_on(fit.scale, scales[fit.scale], sample, groups, fit.hyperparameters)
            self._fits[name] = fit = replace(new_fit, chosen_at=fit.chosen_at)
        scale = scales[fit.scale]
        seen_slopes = sample.scaled_slopes(scale)
        reusable = self._factors.get(name, ())
        process = GaussianProcess(features, scale.scaled(values), groups, fit.hyperparameters, seen_slopes, reusable)
        self._factors[name] = process.factors
        return scale, process


def _with_result(cheap: Observations, values: Floats) -> tuple[Floats, Floats] | None:
    """Designs and values of cheap evaluations with a result; None if there are too few for a process."""
    has_result = ~cheap.failed
    return (cheap.X[has_result], values[has_result]) if int(has_result.sum()) >= LEAST else None


@dataclass(frozen=True)
class _Sample:
    """The `values` (n,) of a quantity at designs with the `features` (n, e), and its known `slopes`."""

    features: Floats
    values: Floats
    slopes: Slopes | None = None

    def scaled_slopes(self, scale: Scale) -> Slopes | None:
        """The slopes after the transformation of the values by `scale`."""
        if self.slopes is None:
            return None
        return replace(self.slopes, values=self.slopes.values * scale.slopes(self.values)[self.slopes.rows, None])


@dataclass(frozen=True)
class _ModelChoice:
    """The model of a quantity: the index of its scale, the hyperparameters, and the number of observations of their
    fit."""

    scale: int
    hyperparameters: Hyperparameters
    badness: float
    chosen_at: int
    fitted_at: int

    @classmethod
    def fitted_on(
        cls, index: int, scale: Scale, sample: _Sample, groups: NDArray[np.int64], start: Hyperparameters
    ) -> _ModelChoice:
        """Fitted to a `sample` on a `scale`; `badness` is the negative logarithm of the posterior density of the values
        themselves, and of their slopes."""
        values, slopes = sample.values, sample.slopes
        scaled_slopes = sample.scaled_slopes(scale)
        hyperparameters, negative = fit_hyperparameters(
            sample.features, scale.scaled(values), groups, start, scaled_slopes
        )
        density = scale.log_slopes(values)
        if slopes is not None:
            density += len(slopes.columns) * scale.log_slopes(values[slopes.rows])
        return cls(index, hyperparameters, negative - density, len(values), len(values))


def _widths(front: Floats, values: Floats) -> Floats:
    """The width (m,) of a `front` (k, m) in each objective, see `Processes.widths`; `values` (n, m) are all values."""
    width, spread = np.ptp(front, axis=0), np.ptp(np.quantile(values, (0.1, 0.9), axis=0), axis=0)
    width = np.where(width < SHORT * spread, spread, width)
    return np.asarray(np.where(width > 0.0, width, 1.0))


def _nondominated_mask(F: Floats) -> NDArray[np.bool_]:
    return np.asarray(moocore.is_nondominated(F, maximise=False, keep_weakly=False), dtype=bool)


def _hypervolume(front: Floats, reference: Floats) -> float:
    return float(moocore.hypervolume(front, ref=reference)) if front.shape[1] > 1 else 1.0
