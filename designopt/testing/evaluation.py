"""A problem around a plain function, and its evaluation in this process and in memory, for tests of solvers."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import ModelPlugin, SolverPlugin, Use, find
from designopt.problem import Outcomes, Problem, SolvedPrograms, StageEnded
from designopt.run.evaluations.dispatch import Dispatcher
from designopt.run.evaluations.ledger import Ledger
from designopt.run.progress import SilentProgress
from designopt.run.stage import StageRun
from designopt.run.stopping import Signals
from designopt.space import Space
from designopt.store.folder import Store
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import Budget, DesignVariable, Execution, Objective, Scenario, Stage, StudyConstraint
from designopt.workers.evaluation.evaluate import ERROR, Evaluator
from designopt.workers.evaluation.programs import ProgramWorker
from designopt.workers.executor import Chunk, ChunkResult, Completion, UneventfulExecutor


def problem_from(
    function: Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, float]],
    space: Sequence[DesignVariable],
    *,
    minimize: Sequence[str],
    limits: Mapping[str, float] | None = None,
    relations: Sequence[str] = (),
    scenarios: Sequence[Scenario] = (Scenario("nominal"),),
) -> Problem:
    """A problem around a plain function of (design, scenario), without plugins or files: for tests of solvers.

    `minimize` are expressions of the function's outputs; `limits` maps expressions to their maximum.
    """
    plugin = ModelPlugin("function", 1, function, {}, "")
    worst = Use(find("aggregation", "worst"))
    return Problem(
        model=Use(plugin),
        space=Space(tuple(space), tuple(Expression.parse(r) for r in relations)),
        scenarios=tuple(scenarios),
        objectives=tuple(
            Objective(f"objective_{i}", Expression.parse(e), "minimize", worst) for i, e in enumerate(minimize)
        ),
        constraints=tuple(
            StudyConstraint(f"limit_{i}", Expression.parse(e), worst, maximum=m)
            for i, (e, m) in enumerate((limits or {}).items())
        ),
    )


def no_outcomes(problem: Problem) -> Outcomes:
    """Empty outcomes: the `start` of a solver without an earlier stage."""
    n, s = 0, len(problem.scenarios)
    return Ledger(problem).outcomes(np.empty((n, len(problem.space.free))), np.empty((n, s), np.int64), np.empty(n))


class InProcess(StageRun):
    """An `evaluate` for the `solve` of a solver that computes in this process and stores nothing on disk.

    Its `budget` counts designs (None: unlimited); beyond it `StageEnded` is raised as in a run. `Diverged` makes a
    design fail, `InvalidDesign` makes it invalid; any other error of the model becomes an `AssertionError` with its
    traceback. `batches` contains the evaluated designs, one array per request, `cheap_batches` those of cheap
    evaluations, `notes` the notes of the solver. Programs are those of the `solver`, and use no budget.

    Subclasses may override `record`, called with all outcomes before the solver receives them, and `computed`, which
    returns the results of some evaluations.
    """

    def __init__(self, problem: Problem, budget: int | None = None, *, solver: Any = None) -> None:
        self._evaluator = Evaluator.for_problem(problem, ProgramWorker(problem, [lambda: solver]))
        plugin = getattr(type(solver), "__designopt__", None) or SolverPlugin("none", 1, type(solver), {}, "")
        stage = Stage("in_process", Use(plugin), Budget(evaluations=budget))
        super().__init__(stage, 1, 1, in_memory(problem, self.computed))
        self.solver = solver
        self.notes: list[tuple[str, str]] = []
        self.batches: list[Floats] = []
        self.cheap_batches: list[Floats] = []
        self.has_ended = False

    @property
    def X(self) -> Floats:
        """All evaluated designs (n, d), in the order of the requests."""
        return np.concatenate([np.empty((0, len(self.problem.space.free))), *self.batches])

    def __call__(self, X: Floats) -> Outcomes:
        """Outcomes of the designs `X` (n, d), in their order. Raises `StageEnded`."""
        with self._open(self.batches):
            return super().__call__(X)

    def ahead(self, ask: Callable[[], Floats], tell: Callable[[Outcomes], None], look_ahead: int) -> None:
        """Evaluate designs one by one, `look_ahead` of them pending: results come as late as the protocol allows."""
        with self._open():
            super().ahead(ask, tell, look_ahead)

    def programs(self, X: Floats, chains: Sequence[int], seeds: Sequence[int]) -> SolvedPrograms:
        """Solve programs of the solver, chain by chain."""
        with self._open():
            return super().programs(X, chains, seeds)

    def cheap(self, X: Floats) -> Outcomes:
        """Outcomes of the designs `X` by cheap evaluations."""
        with self._open(self.cheap_batches):
            return super().cheap(X)

    def note(self, kind: str, text: str) -> None:
        """Store a note of the solver."""
        self.notes.append((kind, text))

    def outcomes(self, X: Floats) -> Outcomes:
        """Outcomes of `X` outside the budget, such as those of an earlier stage."""
        return InProcess(self.problem)(X)

    def record(self, outcomes: Outcomes, relation_violation: Floats) -> None:
        """Called with the complete `outcomes` of designs."""
        super().record(outcomes, relation_violation)
        self.batches.append(outcomes.X)

    def computed(self, chunk: Chunk) -> ChunkResult:
        """The results of a chunk of evaluations or programs. Raises `AssertionError` for an unexpected error of the
        model."""
        result = self._evaluator.run(chunk)
        if chunk.cheap:
            self.cheap_batches.append(chunk.X[chunk.scenarios == 0])
        for i, (_, message, _) in result.messages.items():
            if result.status[i] == ERROR:
                raise AssertionError(message)
        return result

    @contextlib.contextmanager
    def _open(self, batches: list[Floats] | None = None) -> Iterator[None]:
        """One request of the solver; entries added to `batches` meanwhile are merged into one."""
        if self.has_ended:
            raise AssertionError("evaluate was called again after it had raised StageEnded; a solver lets that pass")
        before = len(batches or ())
        try:
            yield
        except StageEnded:
            self.has_ended = True
            raise
        finally:
            if batches is not None and len(batches) > before:
                batches[before:] = [np.concatenate(batches[before:])]


#: Returns the results of a chunk.
Compute = Callable[[Chunk], ChunkResult]


def in_memory(problem: Problem, compute: Compute) -> Dispatcher:
    """The dispatcher of such a run. `compute` returns the results of evaluations and programs; arrays are not
    stored."""
    start = lambda evaluations: _InProcess(compute)  # noqa: E731
    return Dispatcher(Store.in_memory(problem), Ledger(problem), Execution(), start, Signals(), SilentProgress())


class _InProcess(UneventfulExecutor):
    """The executor of a run in memory."""

    name = "here"
    workers = 1
    slots = 1
    target = shortest = 1e9  # s: a batch is one chunk of any duration

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self._waiting: deque[Chunk] = deque()

    def submit(self, chunk: Chunk) -> None:
        """Accept a chunk."""
        self._waiting.append(chunk)

    def wait(self, timeout: float) -> Sequence[Completion]:
        """Compute the next chunk, however long it takes."""
        chunk = self._waiting.popleft()
        result = self._compute(chunk)
        return [Completion(chunk, self.name, dataclasses.replace(result, arrays={}) if result.arrays else result)]

    def cancel(self) -> None:
        """Drop pending chunks."""
        self._waiting.clear()
