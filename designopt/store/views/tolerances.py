"""Results of designs within the tolerances of their parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt.problem import EQUAL, Outcomes, Problem
from designopt.store.journal import recorded_designs
from designopt.store.journal.reader import JournalReader
from designopt.study.neighbours import shifts
from designopt.study.study import Tolerances

#: Share of neighbours within the limits below which a design is not recommended without a remark.
ENOUGH = 0.9
#: Default number of neighbours: all together are this share of the designs of the stages, ...
SHARE = 0.1
#: ... and at least this number per chosen design, unless the study gives tolerances.
LEAST = 8
#: Minimum number of neighbours with a result, beyond the number of parameters, for effects of parameters.
MIN_SPARE = 4


@dataclass(frozen=True)
class ToleranceResults:
    """Designs (r) with their neighbours (k).

    `rows` are their rows in the outcomes. `is_recorded` (r, k) marks recorded neighbours, `feasible` (r, k) those that
    meet all limits; `share` (r,) is that of the feasible ones among the recorded. `objectives` (r, k, m) are those of
    the neighbours in their own direction, NaN without a result; `worst` and `spread` (r, m) are their worst values and
    standard deviations. `effects` (r, d, m + 1) are the squared correlations between the tolerated parameters (`names`)
    and the objectives, and last the violation of the limits: the share of the variance explained by a linear dependence
    on the parameter (Saltelli et al. 2008, chapter 1); NaN without variation.
    """

    rows: Integers
    names: tuple[str, ...]
    is_recorded: Mask
    feasible: Mask
    objectives: Floats
    effects: Floats

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def share(self) -> Floats:
        """See the class."""
        return np.asarray((self.feasible & self.is_recorded).sum(axis=1) / np.maximum(self.is_recorded.sum(axis=1), 1))

    @property
    def spread(self) -> Floats:
        """See the class."""
        return _ignoring_gaps(np.nanstd, self.objectives)

    def worst(self, signs: Floats) -> Floats:
        """See the class; `signs` (m,) are those of the objectives."""
        return signs * _ignoring_gaps(np.nanmax, signs * self.objectives)

    def index_of(self, row: int) -> int | None:
        """The index of the design `row` in `rows`; None without neighbours."""
        matches = np.flatnonzero(self.rows == row)
        return int(matches[0]) if len(matches) else None

    def within_limits(self, row: int) -> tuple[int, int] | None:
        """Number of neighbours of the design `row` that meet all limits, and their total; None without neighbours."""
        index = self.index_of(row)
        if index is None:
            return None
        return int((self.feasible[index] & self.is_recorded[index]).sum()), int(self.is_recorded[index].sum())

    def words(self, row: int) -> str:
        """The same in words: "7 of 8", or a dash."""
        counts = self.within_limits(row)
        return "–" if counts is None else f"{counts[0]} of {counts[1]}"

    def matters(self, index: int) -> str:
        """The most important parameter: for meeting the limits if neighbours violate them, else for the objectives; ""
        without variation."""
        effects = self.effects[index]
        violates = bool(np.any(self.is_recorded[index] & ~self.feasible[index]))
        shares = effects[:, -1] if violates and np.isfinite(effects[:, -1]).any() else _mean(effects[:, :-1])
        return self.names[int(np.nanargmax(shares))] if np.isfinite(shares).any() else ""


def enough_for(choice_count: int) -> int:
    """Minimum number of designs before `choice_count` chosen ones get neighbours within default tolerances."""
    return math.ceil(LEAST * choice_count / SHARE)


def _mean(effects: Floats) -> Floats:
    """Mean over the objectives that vary."""
    varying = effects[:, ~np.isnan(effects.sum(axis=0))]
    return np.asarray(varying.mean(axis=1)) if varying.shape[1] else np.full(len(effects), np.nan)


def _ignoring_gaps(statistic: object, values: Floats) -> Floats:
    """`statistic` over the neighbours (r, k, m) with a result; NaN without any."""
    gone = np.asarray(np.isnan(values).all(axis=1))
    complete = np.where(gone[:, None, :], 0.0, values)
    return np.asarray(np.where(gone, np.nan, statistic(complete, axis=1)))  # type: ignore[operator]


def neighbours(problem: Problem, tolerances: Tolerances, X: Floats, count: int, seed: int) -> Floats:
    """The first `count` neighbours of designs `X` (r, d): (r, count, d)."""
    return np.stack([problem.space.shifted(X, shift) for shift in shifts(tolerances, count, seed)], axis=1)


def read_neighbours(
    journal: JournalReader,
    problem: Problem,
    scoring_problem: Problem,
    tolerances: Tolerances,
    seed: int,
    X: Floats,
    numbers: Integers,
) -> ToleranceResults | None:
    """The recorded neighbours of the designs `X` (n, d), which have `numbers` in the journal of `problem`, scored by
    `scoring_problem`; None without any."""
    problem, scoring_problem = problem.without_shifts, scoring_problem.without_shifts
    s = len(problem.scenarios)
    counts: dict[int, int] = {}
    for design, number in journal.evaluations("design, number", "neighbour"):
        counts[design] = max(counts.get(design, 0), number // s + 1)
    rows = np.flatnonzero(np.isin(numbers, list(counts)))
    if not len(rows):
        return None
    k = max(counts[int(number)] for number in numbers[rows])
    N = neighbours(problem, tolerances, X[rows], k, seed)
    is_planned = np.array([[i < counts[int(number)] for i in range(k)] for number in numbers[rows]])
    outcomes, is_recorded = _outcomes(
        journal, problem, scoring_problem, N.reshape(len(rows) * k, -1), is_planned.ravel()
    )
    signs = np.array([o.sign for o in scoring_problem.objectives])
    objectives = np.where(outcomes.failed[:, None], np.nan, signs * outcomes.objectives).reshape(len(rows), k, -1)
    names = tuple(tolerance.parameter for tolerance in tolerances.of)
    columns = [problem.space.names.index(name) for name in names]
    limits = beyond_limits(scoring_problem, outcomes).reshape(len(rows), k)
    effects = [_effects(N[i][:, columns], np.c_[objectives[i], limits[i]]) for i in range(len(rows))]
    is_recorded = is_recorded.reshape(len(rows), k)
    feasible = outcomes.feasible.reshape(len(rows), k) & is_recorded
    has_records = is_recorded.any(axis=1)  # not those of other tolerances, of an earlier session
    if not has_records.any():
        return None
    return ToleranceResults(
        rows[has_records],
        names,
        is_recorded[has_records],
        feasible[has_records],
        objectives[has_records],
        np.array(effects)[has_records],
    )


def _outcomes(
    journal: JournalReader, problem: Problem, scoring_problem: Problem, N: Floats, planned: Mask
) -> tuple[Outcomes, Mask]:
    """The outcomes of the neighbours `N` (n, d), and a mask of those `planned` with complete records."""
    shape = (len(N), len(problem.scenarios))
    records: list[tuple[str, str | None]] = []
    violation = problem.space.relation_violation(N)
    for keys, is_planned, violates in zip(problem.keys(N), planned.tolist(), (violation > 0.0).tolist(), strict=True):
        for key in keys:
            row = journal.evaluation(key, "status, outputs") if is_planned and not violates else None
            records.append((str(row[0]), row[1]) if row else ("", None))
    status = np.array([status_text for status_text, _ in records], "U12").reshape(shape)
    names, values = recorded_designs.outputs(
        [text for _, text in records], recorded_designs.figure_names(scoring_problem)
    )
    figures: Mapping[str, Floats] = {n: v.reshape(shape) for n, v in zip(names, values.T, strict=True)}
    outcomes = scoring_problem.judge(N, figures, status != "ok", violation, status == "invalid")
    return outcomes, np.asarray(planned & ((status != "").all(axis=1) | (violation > 0.0)))


def beyond_limits(problem: Problem, outcomes: Outcomes) -> Floats:
    """The largest constraint violation (n,), relative to the size of the limit; negative within all limits.

    Equalities count only where they are violated. NaN without limits that allow a margin.
    """
    values = problem.constraint_values(outcomes.figures)
    equal = np.array([limit.equality for limit in problem.limits], bool)
    if equal.all():
        return np.full(len(outcomes), np.nan)
    differs = np.where(np.abs(values[:, equal]) > EQUAL, np.abs(values[:, equal]), -np.inf)
    differences = np.c_[values[:, ~equal], differs]
    return np.where(np.isnan(differences).any(axis=1), np.nan, differences.max(axis=1))


def _effects(P: Floats, Y: Floats) -> Floats:
    """Squared correlations (d, q) of the columns of `P` (k, d) with those of `Y` (k, q), where `Y` is finite."""
    effects = np.full((P.shape[1], Y.shape[1]), np.nan)
    for j, y in enumerate(Y.T):
        has_result = np.isfinite(y)
        if has_result.sum() < P.shape[1] + MIN_SPARE:
            continue
        p, q = P[has_result] - P[has_result].mean(axis=0), y[has_result] - y[has_result].mean()
        size = np.sqrt((p**2).sum(axis=0) * (q**2).sum())
        if np.abs(q).max() > 1e-12 * max(float(np.abs(y[has_result]).max()), np.finfo(float).tiny):
            effects[:, j] = np.where(size > 0.0, (p.T @ q) / np.where(size > 0.0, size, 1.0), 0.0) ** 2
    return effects


def spread_over(rows: Sequence[int], count: int) -> list[int]:
    """`count` of `rows`, evenly spread in their order."""
    if count >= len(rows):
        return list(rows)
    return [rows[i] for i in np.unique(np.linspace(0, len(rows) - 1, count).round().astype(int))] if count > 0 else []
