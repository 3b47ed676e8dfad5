"""Scores of runs: the share of the known hypervolume after numbers of designs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from designopt import decision
from designopt.arrays import Floats
from designopt.benchmarking.cells import Benchmark, BenchmarkCell, CellState, ProblemStatement, RecordedScore, states
from designopt.counts import first_of, plural
from designopt.problem import Problem
from designopt.store.provenance import code_differences, plugin_code
from designopt.store.result import Result
from designopt.store.views.volume import study_reference_point
from designopt.study.study import Objective

#: Score of a first design that is the best value, and problems in a sentence.
_AT_BEST, NAMED = 0.9999, 4
#: Properties of a problem that may be taken from its runs, with the keys of the benchmark file that state them.
KEYS = {"reference point": "'reference'", "best value": "'best'", "largest hypervolume": "'best'"}
#: Excess of a score over 1 that is rounding.
_SAME_SCORE = 1e-9
#: Maximum number of points of a curve.
POINTS = 40


@dataclass(frozen=True)
class BenchmarkRun:
    """A complete run: minimised objectives (n, m) of its evaluated designs in their order, infinite where a limit is
    violated or a result is missing, and the time of the search itself per design (ms). Designs that violate a relation
    or are rejected by the model cost no evaluation and are not among them."""

    cell: BenchmarkCell
    F: Floats
    search_ms: float

    def front(self, evaluations: int | None = None) -> Floats:
        """The nondominated feasible vectors after a number of designs, by default all."""
        F = self.F[:evaluations]
        F = F[np.isfinite(F).all(axis=1)]
        return F[decision.nondominated(F)]


def read_run(cell: BenchmarkCell, folder: Path) -> BenchmarkRun:
    """The run in the store of `cell`. Raises `StoreError`."""
    result = Result.open(cell.store(folder), cell.study)
    outcomes = result.outcomes
    F = np.where(outcomes.feasible[:, None], outcomes.objectives, np.inf)[~outcomes.invalid]
    spent = max(0.0, (result.elapsed or 0.0) - float(np.nansum(result.wall)))
    return BenchmarkRun(cell, F, 1e3 * spent / max(1, len(F)))


@dataclass(frozen=True)
class ProblemScores:
    """The runs of one problem with what their scores refer to.

    `reference` (m,) is the reference point of minimised objectives, `volume` the known hypervolume with it. `estimates`
    names what of both was taken from the runs.
    """

    problem: ProblemStatement
    runs: tuple[BenchmarkRun, ...]
    reference: Floats
    volume: float
    estimates: tuple[str, ...]

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives of the problem."""
        return self.problem.study.objectives

    def score(self, run: BenchmarkRun, evaluations: int) -> float:
        """The share of the known hypervolume after a number of designs; 0 before the first design that is better than
        the reference point. With one objective it is the share of the way from the reference to the best value."""
        if self.volume <= 0.0:
            return 0.0
        return decision.hypervolume(run.front(evaluations), self.reference) / self.volume

    def curve(self, run: BenchmarkRun, numbers: Sequence[int]) -> Floats:
        """The score after each of some rising numbers of designs."""
        return np.array([self.score(run, evaluations) for evaluations in numbers])


def _problem_scores(problem: ProblemStatement, runs: tuple[BenchmarkRun, ...], least: int) -> ProblemScores:
    """`least` is the first number of designs after which runs are compared."""
    objectives = problem.study.objectives
    reference_point = study_reference_point(problem.study, Problem.from_study(problem.study))
    if problem.reference is not None:
        reference_point = {objectives[0].name: problem.reference}
    point = np.array([o.sign * reference_point.get(o.name, math.nan) for o in objectives])
    estimates = []
    fronts = [run.front() for run in runs]
    union = np.concatenate([*fronts, np.empty((0, len(objectives)))])
    union = union[decision.nondominated(union)]
    if np.isnan(point).any():
        estimates.append("reference point")
        if len(objectives) == 1:  # the worst run after the first budget
            first = [float(run.front(least).min(initial=np.inf)) for run in runs]
            worst = np.array([max((v for v in first if math.isfinite(v)), default=math.nan)])
            span = worst - union.min(axis=0, initial=np.inf)
        else:
            worst = union.max(axis=0, initial=-np.inf)
            span = np.ptp(union, axis=0) if len(union) else np.zeros(len(objectives))
        point = np.where(np.isnan(point), decision.beyond(worst, span), point)
    volume = decision.hypervolume(union, point) if len(union) else 0.0
    if problem.best is None:
        estimates.append("best value" if len(objectives) == 1 else "largest hypervolume")
    elif len(objectives) == 1:
        volume = float(point[0] - objectives[0].sign * problem.best)
    else:
        volume = problem.best
    return ProblemScores(problem, runs, point, volume, tuple(estimates))


@dataclass(frozen=True)
class BenchmarkScores:
    """All scores of a benchmark: `problems` with the runs in its folder, `records` of these and of runs made elsewhere,
    the cells without a complete run, and by plugin the number of runs with `changed_code` of the same version."""

    benchmark: Benchmark
    folder: Path
    problems: tuple[ProblemScores, ...]
    records: tuple[RecordedScore, ...]
    incomplete: tuple[BenchmarkCell, ...]
    changed_code: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def solvers(self) -> tuple[str, ...]:
        """Solvers with a score: those of the file in its order, then others of the records."""
        names = dict.fromkeys(record.solver for record in self.records)
        return tuple(dict.fromkeys([*(s for s in self.benchmark.solvers if s in names), *names]))

    @cached_property
    def problem_names(self) -> tuple[str, ...]:
        """Problems with a score, likewise."""
        names = dict.fromkeys(record.problem for record in self.records)
        return tuple(dict.fromkeys([*(p.name for p in self.benchmark.problems if p.name in names), *names]))

    @cached_property
    def _values(self) -> Mapping[tuple[str, str, int], Floats]:
        values: dict[tuple[str, str, int], list[float]] = {}
        for r in self.records:
            values.setdefault((r.problem, r.solver, r.evaluations), []).append(r.score)
        return {key: np.array(scores) for key, scores in values.items()}

    def values(self, problem: str, solver: str, evaluations: int) -> Floats:
        """The scores (runs,) of a solver on a problem after a number of designs; empty without any."""
        return self._values.get((problem, solver, evaluations), np.empty(0))

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """Sentences on scores that mean less than they seem: those of changed code, those relative to the runs
        themselves, equal runs of all seeds, a first design that is the best value, where the search starts, runs that
        end before their budget, and stated best values that cannot be."""
        problem_names: dict[str, list[str]] = {}
        equal: dict[str, list[str]] = {}
        at_start: dict[str, list[str]] = {}
        short: dict[str, list[str]] = {}
        beaten: list[str] = []
        budget = self.benchmark.budgets[-1]
        for p in self.problems:
            for reference in p.estimates:
                problem_names.setdefault(reference, []).append(p.problem.name)
            if p.volume <= 0.0 or max((p.score(run, budget) for run in p.runs), default=0.0) > 1.0 + _SAME_SCORE:
                beaten.append(p.problem.name)
            for solver in self.solvers:
                runs = [run for run in p.runs if run.cell.solver == solver]
                if len(runs) > 1 and all(np.array_equal(run.F, runs[0].F) for run in runs):
                    equal.setdefault(solver, []).append(p.problem.name)
                if fewest := min((len(run.F) for run in runs if len(run.F) < budget), default=0):
                    short.setdefault(solver, []).append(f"{p.problem.name} ({fewest})")
                if runs and p.problem.name not in beaten and min(p.score(run, 1) for run in runs) > _AT_BEST:
                    at_start.setdefault(solver, []).append(p.problem.name)
        return (
            *(
                f"the code of {name} has changed since {plural(count, 'run')}, but not its version: they count as runs "
                "of the new code. Increase the version, and make them again with --replace."
                for name, count in self.changed_code.items()
            ),
            *(
                f"The {reference} of {first_of(names, NAMED)} is taken from these runs, so that another solver or seed "
                f"changes all scores there: state {KEYS[reference]}."
                for reference, names in problem_names.items()
            ),
            *(
                f"{solver}: the runs of all seeds are the same on {first_of(names, NAMED)}; their quartiles, marks and "
                "tests rest on one run."
                for solver, names in equal.items()
            ),
            *(
                f"{solver}: the first design is the best value of {first_of(names, NAMED)}, so its score tells where "
                "the search starts, not how it searches: shift the space."
                for solver, names in at_start.items()
            ),
            *(
                f"{solver}: runs have fewer than {budget} different designs on {first_of(names, NAMED)}; later scores "
                "are those of the last one."
                for solver, names in short.items()
            ),
            *(
                f"{name}: the stated best value is not beyond every run and the reference: its scores mean nothing."
                for name in beaten
            ),
        )

    def medians(self, evaluations: int) -> Floats:
        """Median scores (problems, solvers), NaN without a run."""
        medians = np.full((len(self.problem_names), len(self.solvers)), np.nan)
        for i, problem in enumerate(self.problem_names):
            for j, solver in enumerate(self.solvers):
                values = self.values(problem, solver, evaluations)
                medians[i, j] = float(np.median(values)) if len(values) else np.nan
        return medians

    def complete_medians(self, evaluations: int) -> Floats:
        """The `medians` of the problems that all solvers have run."""
        medians = self.medians(evaluations)
        return np.asarray(medians[~np.isnan(medians).any(axis=1)])


def read_scores(benchmark: Benchmark, folder: Path) -> BenchmarkScores:
    """The scores of all complete runs in `folder`, and of the records. Raises `StoreError`."""
    by_state = states(benchmark.cells_to_compute, folder)
    complete = by_state[CellState.COMPLETE]
    problems = []
    for problem in benchmark.problems:
        runs = tuple(read_run(cell, folder) for cell in complete if cell.problem == problem.name)
        if runs:
            problems.append(_problem_scores(problem, runs, benchmark.budgets[0]))
    records = {(r.problem, r.solver, r.seed, r.evaluations): r for r in benchmark.records}
    for problem_scores in problems:
        for run in problem_scores.runs:
            for budget in benchmark.budgets:
                score = problem_scores.score(run, budget)
                records[(*run.cell.key, budget)] = RecordedScore(*run.cell.key, budget, score, run.search_ms)
    complete_keys = {cell.key for cell in complete}
    changed_code = Counter(name for cell in complete for name in _changed_code(cell, folder))
    incomplete = tuple(cell for cell in benchmark.cells_to_compute if cell.key not in complete_keys)
    order = {name: i for i, name in enumerate(p.name for p in benchmark.problems)}
    rows = sorted(records.values(), key=lambda r: (order.get(r.problem, len(order)), r.problem, r.solver, r.seed))
    rows.sort(key=lambda r: (order.get(r.problem, len(order)), r.problem))
    return BenchmarkScores(benchmark, folder, tuple(problems), tuple(rows), incomplete, changed_code)


def _changed_code(cell: BenchmarkCell, folder: Path) -> list[str]:
    """The plugins in files of the user whose code has changed since the run of the cell."""
    facts = {"code": plugin_code(cell.study), "plugin_code": {}}
    return code_differences(cell.store(folder), facts)[0]
