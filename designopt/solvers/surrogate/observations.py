"""Evaluated designs as the processes learn from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.problem import Outcomes, Problem
from designopt.solvers.surrogate.coordinates import Coordinates


@dataclass(frozen=True)
class Observations:
    """Evaluated designs: `objectives` (n, m), minimised, `limits` (n, k), at most 0, or equal to 0, in a feasible
    design, and `failed` (n,) for those without numbers. If the model provides them, `slopes` (n, m + k, d) are the
    derivatives of objectives and limits with respect to the parameters' coordinates, NaN where missing."""

    X: Floats
    objectives: Floats
    limits: Floats
    feasible: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    slopes: Floats | None = None

    @classmethod
    def from_outcomes(cls, problem: Problem, outcomes: Sequence[Outcomes], slopes: bool = False) -> Observations:
        """The observations in `outcomes`; with `slopes` also their derivatives. Designs that violate a relation are
        left out: the solver checks relations before it proposes a design."""
        valid_outcomes = [(o, problem.space.relation_violation(o.X) <= 0.0) for o in outcomes]
        valid_outcomes = [(o, valid) for o, valid in valid_outcomes if valid.any()]
        rows = [
            (o.X[valid], o.objectives[valid], _limit_values(problem, o)[valid], o.feasible[valid],
             (o.failed | o.invalid)[valid])
            for o, valid in valid_outcomes
        ]  # fmt: skip
        if not rows:
            d, m, k = len(problem.space.free), len(problem.objectives), len(problem.limits)
            none = np.zeros(0, dtype=bool)
            return cls(np.empty((0, d)), np.empty((0, m)), np.empty((0, k)), none, none)
        X, objectives, limits, feasible, failed = (np.concatenate(part) for part in zip(*rows, strict=True))
        lost = failed | ~np.isfinite(limits).all(axis=1) | ~np.isfinite(objectives).all(axis=1)
        of_outcomes = np.concatenate([_slopes(problem, o)[valid] for o, valid in valid_outcomes]) if slopes else None
        return cls(X, objectives, limits, feasible & ~lost, lost, of_outcomes)

    @classmethod
    def union(cls, parts: Sequence[Observations]) -> Observations:
        """The union of `parts`, at least one."""
        slopes = [part.slopes for part in parts if part.slopes is not None and len(part.X)]
        return cls(
            np.concatenate([part.X for part in parts]),
            np.concatenate([part.objectives for part in parts]),
            np.concatenate([part.limits for part in parts]),
            np.concatenate([part.feasible for part in parts]),
            np.concatenate([part.failed for part in parts]),
            np.concatenate(slopes) if slopes else None,
        )


def _limit_values(problem: Problem, outcomes: Outcomes) -> Floats:
    return problem.constraint_values(outcomes.figures) if problem.limits else np.empty((len(outcomes), 0))


def _slopes(problem: Problem, outcomes: Outcomes) -> Floats:
    """Derivatives (n, m + k, d) of objectives and limits with respect to coordinates."""
    X, figures = outcomes.X, outcomes.figures
    slopes = [problem.objective_gradients(X, figures), problem.constraint_gradients(X, figures)]
    return np.asarray(np.concatenate(slopes, axis=1) * Coordinates(problem.space).stretch(X)[:, None, :])
