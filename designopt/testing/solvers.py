"""The conformance test of solvers."""

from __future__ import annotations

import dataclasses
import itertools
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InvalidSetting, SolverPlugin, Use
from designopt.problem import AFTER_END, Outcomes, Problem, SolvedPrograms, StageEnded
from designopt.space import Space
from designopt.testing.evaluation import InProcess, no_outcomes
from designopt.testing.problems import conformance_problems
from designopt.workers.executor import Chunk, ChunkResult


def check_solver(
    solver_class: Any,
    settings: Mapping[str, Any] | None = None,
    *,
    problems: Sequence[Problem] | None = None,
    budget: int = 150,
) -> None:
    """Check the rules for solvers on `problems`.

    The default `problems` are those of `conformance_problems` that the solver's `check` accepts, with one objective or
    two according to its class attribute ``objectives`` (``"one"``, ``"several"``, ``"any"`` by default).

    - Designs are finite, within the bounds, with integer values for integers and choices.
    - Designs depend on the generator and the outcomes alone: a used instance, a larger budget, the order of computation
      in a batch and other global random states change nothing. Global random states stay unchanged.
    - `StageEnded` and any other exception of `evaluate` end the solver, in any batch.
    - Failed, rejected, invalid and infeasible designs do not break it; it does not modify outcomes.

    Raises `AssertionError` otherwise.
    """
    name = getattr(solver_class, "__name__", str(solver_class))
    plugin = getattr(solver_class, "__designopt__", None)
    if not isinstance(plugin, SolverPlugin):
        raise AssertionError(f"{name} is not a solver plugin; decorate it with @designopt.plugin.solver")
    use = Use(plugin, settings or {})
    problem_names = list(problems) if problems is not None else _problems(use, name)
    states = np.random.get_state(), random.getstate()
    try:
        for problem in problem_names:
            _check_endings(name, use, problem)
            _check_asks(name, use, problem, budget)
            if plugin.uses_start:
                _check_start(name, use, problem, budget)
    finally:
        np.random.set_state(states[0])
        random.setstate(states[1])


def _problems(use: Use[SolverPlugin], name: str) -> list[Problem]:
    """The conformance problems that the solver accepts."""
    counts = {"one": (1,), "several": (2,)}.get(use.plugin.objectives, (2, 1))
    accepted_names, reasons = [], []
    for problem in itertools.chain.from_iterable(map(conformance_problems, counts)):
        try:
            if use.plugin.has("check"):
                use.build().check(problem)
        except InvalidSetting as error:
            reasons.append(str(error))
        else:
            accepted_names.append(problem)
    if not accepted_names:
        raise AssertionError(f"{name} refuses all problems ({reasons[0]}); give others with problems=")
    return accepted_names


def _check_asks(name: str, use: Use[SolverPlugin], problem: Problem, budget: int) -> None:
    solver = use.build()
    if use.plugin.has("minimum_budget"):
        least = solver.minimum_budget(problem)
        if not isinstance(least, int) or least < 1:
            raise AssertionError(f"{name}: minimum_budget gives {least!r}; it must be an integer of at least 1")
        budget = max(budget, least)
    designs, spent = _designs(name, solver, problem, budget)
    if not len(designs):
        raise AssertionError(f"{name} asked for no design at all")
    for solver_to_repeat, comparison, larger in (
        (solver, "the same instance", 0),
        (use.build(), "a new instance", budget // 2),
    ):
        np.random.seed(len(comparison))  # exposes a solver that draws from the global generators
        random.seed(len(comparison))
        before = _global_states()
        repeated_designs, _ = _designs(name, solver_to_repeat, problem, budget + larger, backwards=True)
        if not np.array_equal(designs, repeated_designs[: len(designs)] if spent and larger else repeated_designs):
            raise AssertionError(f"{name}: {comparison} asked for other designs although its generator was equal")
        if before != _global_states():
            raise AssertionError(f"{name} uses the global generator of numpy.random or random; it has to use rng alone")


def _global_states() -> str:
    name, keys, *generator_state = np.random.get_state()
    return repr((name, np.asarray(keys).tobytes(), generator_state, random.getstate()))


def _check_start(name: str, use: Use[SolverPlugin], problem: Problem, budget: int) -> None:
    """Designs of an earlier stage, failed ones included, are accepted and affect only the subsequent search."""
    U = np.random.default_rng(2).random((12, len(problem.space.free)))
    start = InProcess(problem).outcomes(problem.space.in_box(U))
    first, second = (_designs(name, use.build(), problem, budget // 2, start=start)[0] for _ in range(2))
    if not np.array_equal(first, second):
        raise AssertionError(f"{name} asked for other designs although its generator and start were equal")


def _check_batch(name: str, space: Space, X: Floats) -> None:
    if np.shape(X)[1:] != (len(space.free),):
        raise AssertionError(f"{name}: a batch has the shape (designs, {len(space.free)}), not {np.shape(X)}")
    for j, p in enumerate(space.free):
        low, high = (0, len(p.values) - 1) if p.kind == "choice" else (p.low, p.high)
        column = X[:, j]
        wrong = ~((column >= low) & (column <= high))  # NaN is wrong too
        if p.kind != "real":
            wrong |= column != np.rint(column)
        if wrong.any():
            requirement = "within its bounds" if p.kind == "real" else "an integer within its bounds"
            raise AssertionError(
                f"{name} asked for {p.name} = {column[wrong][0]}; it must be {requirement}, {low} to {high}"
            )


class _UnexpectedStop(Exception):
    """Any exception of `evaluate` except `StageEnded`."""


def _check_endings(name: str, use: Use[SolverPlugin], problem: Problem) -> None:
    for ending, batches in itertools.product((StageEnded, _UnexpectedStop), (0, 2)):
        solver = use.build()
        evaluate = _WatchedEvaluate(name, InProcess(problem, solver=solver), 10_000, ending=ending, batches=batches)
        error = _ended_with(solver, problem, evaluate)
        if isinstance(error, ending):
            continue
        if evaluate.has_raised and (error is None or evaluate.goes_on.is_set()):
            raise AssertionError(f"{name} swallows {ending.__name__}; what evaluate raises has to pass through solve")
        if error is not None:
            raise error


def _ended_with(solver: Any, problem: Problem, evaluate: _WatchedEvaluate) -> BaseException | None:
    """The exception that ends `solver`, if any. It runs in a thread, which is left behind if it never ends."""
    errors: list[BaseException] = []

    def solve() -> None:
        try:
            solver.solve(problem, evaluate, np.random.default_rng(1), no_outcomes(problem))
        except BaseException as error:
            errors.append(error)
        finally:
            evaluate.over.set()

    threading.Thread(target=solve, daemon=True).start()
    evaluate.over.wait()
    return errors[0] if errors else None


def _designs(
    name: str, solver: Any, problem: Problem, budget: int, *, start: Outcomes | None = None, backwards: bool = False
) -> tuple[Floats, bool]:
    """The designs that `solver` requests, and whether the budget ended it."""
    inner = (_BackwardsExecutor if backwards else InProcess)(problem, budget, solver=solver)
    evaluate = _WatchedEvaluate(name, inner, budget)
    try:
        reason = solver.solve(problem, evaluate, np.random.default_rng(1), start or no_outcomes(problem))
        has_ended = False
    except StageEnded:
        reason, has_ended = None, True
    if reason is not None and not isinstance(reason, str):
        raise AssertionError(f"{name}: solve returns {reason!r}; it may return a sentence that says why it ended")
    evaluate.check_unchanged()
    return inner.X, has_ended


class _BackwardsExecutor(InProcess):
    """Computes the last row of each batch first, as a worker may."""

    def computed(self, chunk: Chunk) -> ChunkResult:
        if chunk.programs:
            return super().computed(chunk)
        last_first = dataclasses.replace(
            chunk, X=chunk.X[::-1], scenarios=chunk.scenarios[::-1], seeds=chunk.seeds[::-1]
        )
        return super().computed(last_first).take(range(len(chunk))[::-1])


class _WatchedEvaluate:
    """An `evaluate` that checks the requests and actions of a solver.

    Raises `ending` after the given number of `batches`. Ends a stage after `SHARE` times the budget in requests, most
    of them invalid, as a run does; detects a solver that repeats empty requests.
    """

    SHARE = 5

    def __init__(
        self, name: str, inner: InProcess, budget: int, *, ending: type[Exception] | None = None, batches: int = 0
    ) -> None:
        self._name, self._inner, self._budget = name, inner, budget
        self._ending, self._left = ending, batches
        self._calls, self._rows = 0, 0
        self._outcomes: list[tuple[Outcomes, list[bytes]]] = []
        self.has_raised = False
        self._raise_count = 0
        #: The solver has ended, or goes on after its end.
        self.over, self.goes_on = threading.Event(), threading.Event()

    def __call__(self, X: Floats) -> Outcomes:
        self._check_outcome(X)
        return self._unique_designs(self._inner(X))

    def ahead(self, ask: Callable[[], Floats], tell: Callable[[Outcomes], None], look_ahead: int) -> None:
        if not isinstance(look_ahead, int) or look_ahead < 1:
            raise AssertionError(
                f"{self._name} looks {look_ahead!r} designs ahead; it must be an integer of at least 1"
            )

        def checked_ask() -> Floats:
            X = ask()
            if len(X) > 1:
                raise AssertionError(f"{self._name} asks ahead for {len(X)} designs at once; it must be one or none")
            self._check_outcome(X)
            return X

        self._inner.ahead(checked_ask, lambda outcomes: tell(self._unique_designs(outcomes)), look_ahead)

    def programs(self, X: Floats, chains: Sequence[int], seeds: Sequence[int]) -> SolvedPrograms:
        self._check_outcome(X)
        return self._inner.programs(X, chains, seeds)

    def note(self, kind: str, text: str) -> None:
        self._inner.note(kind, text)

    def _check_outcome(self, X: Floats) -> None:
        if self._ending and self._left == 0:
            self.has_raised = True
            self._raise_count += 1
            if self._raise_count > AFTER_END:
                self.goes_on.set()
                self.over.set()
                threading.Event().wait()
            raise self._ending
        self._left -= 1
        _check_batch(self._name, self._inner.problem.space, X)
        self._calls, self._rows = self._calls + 1, self._rows + len(X)
        if self._calls > 20 * self._budget:
            raise AssertionError(
                f"{self._name}: {self._calls} batches did not spend a budget of {self._budget} designs"
            )
        if self._rows > self.SHARE * self._budget:
            raise StageEnded

    def _unique_designs(self, outcomes: Outcomes) -> Outcomes:
        self._outcomes.append((outcomes, _contents(outcomes)))
        return outcomes

    def check_unchanged(self) -> None:
        """Raise `AssertionError` if the receiver has modified outcomes."""
        for outcomes, before in self._outcomes:
            for part, content, earlier_content in zip(PARTS, _contents(outcomes), before, strict=True):
                if content != earlier_content:
                    raise AssertionError(f"{self._name} changes the {part} of the outcomes that it is given")


#: Fields of outcomes that a solver reads.
PARTS = ("X", "objectives", "violation", "failed", "invalid")


def _contents(outcomes: Outcomes) -> list[bytes]:
    return [getattr(outcomes, part).tobytes() for part in PARTS]
