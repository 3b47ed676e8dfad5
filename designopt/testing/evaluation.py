"""A problem around a plain function, and its evaluation in this process: what tests of solvers need of a run."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import Diverged, InvalidDesign, ModelPlugin, Use, find
from designopt.problem import (
    Outcomes,
    Problem,
    Programs,
    Solved,
    SolvedPrograms,
    StageEnded,
    derivative_name,
    evaluation_seed,
)
from designopt.space import Matrix, Space
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import DesignVariable, Objective, Scenario, StudyConstraint


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

    `minimize` are expressions of the function's outputs; `limits` gives expressions their largest value.
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
    """What a solver is given as `start` when there is no earlier stage."""
    none = np.empty((0, len(problem.scenarios)))
    return problem.judge(np.empty((0, len(problem.space.free))), _Figures(none), np.zeros(none.shape, dtype=bool))


class InProcess:
    """An `evaluate` for `Solver.solve` that computes in this process and keeps nothing on disk.

    Counts designs as a stage does: `budget` designs (None: any number), those that break a relation or are refused by
    the model for free; the batch that exceeds it is evaluated as far as it goes and ends with `StageEnded`. A model's
    `Diverged` makes a design fail, its `InvalidDesign` makes it invalid; any other exception passes, so that a test
    shows it. Objective plugins are not computed. `batches` holds everything that was asked, `notes` what the solver had
    to tell. Programs are those of the `solver`, and cost no budget. `cheap_batches` holds the designs of cheap
    evaluations, which cost their share of it.
    """

    def __init__(self, problem: Problem, budget: int | None = None, *, solver: Any = None) -> None:
        self.problem = problem
        self.budget = budget
        self.solver = solver
        self.notes: list[tuple[str, str]] = []
        self.batches: list[Matrix] = []
        self.cheap_batches: list[Matrix] = []
        self._cheap = 0.0
        self.ended = False
        self._model = prepared(problem.model)

    @property
    def X(self) -> Matrix:
        """All designs that were evaluated, in the order in which they were asked."""
        return np.concatenate([np.empty((0, len(self.problem.space.free))), *self.batches])

    def __call__(self, X: Matrix) -> Outcomes:
        """Outcomes of the designs `X`, in their order."""
        self._check_open()
        outcomes = self._paid(self.problem.space.impute(np.array(X, dtype=float)))
        self.batches.append(outcomes.X)
        if self.ended:
            raise StageEnded
        return outcomes

    def ahead(self, ask: Callable[[], Matrix], tell: Callable[[Outcomes], None], look_ahead: int) -> None:
        """Evaluate designs one by one, `look_ahead` of them on their way: told as late as the protocol allows."""
        self._check_open()
        queued: deque[Matrix] = deque()  # asked for in their turn, but beyond the budget until one is refused
        waiting: deque[Outcomes] = deque()
        more = True
        while True:
            if queued and self._left > 1.0 - 1e-9:
                outcomes = self.outcomes(queued.popleft())
                self.batches.append(outcomes.X)
                waiting.append(outcomes)
                self._pay(self.problem.space.relation_violation(outcomes.X) == 0.0)
            elif queued and not waiting:
                self.ended = True
                raise StageEnded
            elif more and len(waiting) + len(queued) < look_ahead:
                X = self.problem.space.impute(np.array(ask(), dtype=float))
                more = len(X) > 0
                queued.extend([X] if more else [])
            elif waiting:
                outcomes = waiting.popleft()
                self._pay(outcomes.invalid & (self.problem.space.relation_violation(outcomes.X) == 0.0), back=True)
                tell(outcomes)
            else:
                return

    def programs(self, X: Matrix, chains: Sequence[int], seeds: Sequence[int]) -> SolvedPrograms:
        """Solve programs of the solver, chain by chain."""
        self._check_open()
        programs: Programs = self.solver.program(self.problem)
        solved: list[Solved] = []
        last, state = None, None
        for x, chain, seed in zip(X, chains, seeds, strict=True):
            state, last = (state if chain == last else None), chain
            solved.append(programs.solve(np.array(x, dtype=float), int(seed), state))
            state = solved[-1].state if solved[-1].ok else state
        names = dict.fromkeys(name for one in solved for name in one.figures)
        figures = {name: np.array([one.figures.get(name, np.nan) for one in solved]) for name in names}
        return SolvedPrograms(np.array([one.ok for one in solved]), figures, tuple(one.reason for one in solved))

    def cheap(self, X: Matrix) -> Outcomes:
        """Outcomes of the designs `X` by cheap evaluations."""
        self._check_open()
        problem = self.problem
        if problem.cheap is None or problem.fidelity is None:
            raise ValueError("this problem has no cheap evaluations")
        X = problem.space.impute(np.array(X, dtype=float))
        cost = problem.fidelity.cost * np.cumsum(problem.space.relation_violation(X) <= 0.0)
        rows = len(X) if self.budget is None else int(np.searchsorted(cost, self._left + 1e-9, side="right"))
        outcomes = InProcess(problem.cheap).outcomes(X[:rows])
        self.cheap_batches.append(X[:rows])
        if self.budget is not None and rows:
            self._cheap += float(cost[rows - 1])
        if rows < len(X):
            self.ended = True
            raise StageEnded
        return outcomes

    @property
    def _left(self) -> float:
        """What of the budget is left, cheap evaluations paid."""
        return np.inf if self.budget is None else self.budget - self._cheap

    def note(self, kind: str, text: str) -> None:
        """Remember what the solver tells."""
        self.notes.append((kind, text))

    def _pay(self, designs: NDArray[np.bool_], back: bool = False) -> None:
        if self.budget is not None:
            self.budget += int(designs.sum()) * (1 if back else -1)

    def outcomes(self, X: Matrix) -> Outcomes:
        """Outcomes of `X` outside the count: what an earlier stage may have left."""
        return self._paid(np.array(X, dtype=float), free=True)

    def _check_open(self) -> None:
        if self.ended:
            raise AssertionError("evaluate was called again after it had raised StageEnded; a solver lets that pass")

    def _paid(self, X: Matrix, free: bool = False) -> Outcomes:
        """Outcomes of the first rows of `X`, as many as the budget allows."""
        problem = self.problem
        relation_violation = problem.space.relation_violation(X)
        shape = (len(X), len(problem.scenarios))
        figures: dict[str, Matrix] = {}
        failed, refused = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        rows = len(X)
        for i in range(len(X)):
            if relation_violation[i] > 0.0:
                continue
            if self._left < 1.0 - 1e-9 and not free:
                rows, self.ended = i, True
                break
            for s in range(shape[1]):
                try:
                    for name, value in self._computed(X[i], s).items():
                        figures.setdefault(name, np.full(shape, np.nan))[i, s] = value
                except Diverged:
                    failed[i, s] = True
                except InvalidDesign:
                    refused[i, s] = True
            if self.budget is not None and not free and not refused[i].any():
                self.budget -= 1
        known = _Figures(np.full((rows, shape[1]), np.nan), {name: values[:rows] for name, values in figures.items()})
        return problem.judge(X[:rows], known, failed[:rows], relation_violation[:rows], refused[:rows])

    def _computed(self, x: Matrix, scenario: int) -> Mapping[str, float]:
        """The figures of one evaluation, with derivatives in a problem that records them."""
        problem, plugin = self.problem, self.problem.model.plugin
        design, conditions = problem.space.design(x.tolist()), problem.scenarios[scenario].values
        seed = None
        if plugin.takes_rng:
            seed = evaluation_seed(problem.keys(x[None])[0][scenario], problem.seed or 0)
        outputs = dict(outputs_of(self._model, plugin, design, conditions, seed))
        if problem.gradients:
            given = special(self._model, plugin, conditions, seed)
            with contextlib.suppress(Diverged):
                for output, slopes in self._model.gradient(design, conditions, **given).items():
                    outputs.update({derivative_name(output, name): float(slope) for name, slope in slopes.items()})
        return outputs


class _Figures(dict[str, Matrix]):
    """Raw figures by name; all are missing when no design of the batch gave any."""

    def __init__(self, missing: Matrix, known: Mapping[str, Matrix] = MappingProxyType({})) -> None:
        super().__init__(known)
        self.missing = missing

    def __missing__(self, name: str) -> Matrix:
        if self:
            raise KeyError(f"the model gives no '{name}' (it gives {', '.join(self)})")
        return self.missing


def prepared(use: Use[ModelPlugin]) -> Any:
    """A model with its settings, its costly set-up done."""
    model = use.build()
    if use.plugin.has_prepare:
        model.prepare()
    return model


def outputs_of(
    model: Any, plugin: ModelPlugin, design: Mapping[str, Any], scenario: Mapping[str, Any], seed: int | None
) -> Mapping[str, Any]:
    """The outputs of a model, whatever else it takes and gives."""
    arrays: tuple[frozenset[str], ...] = (frozenset(),) if plugin.takes_arrays else ()
    given = model.evaluate(design, scenario, *arrays, **special(model, plugin, scenario, seed))
    outputs: Mapping[str, Any] = given[0] if plugin.takes_arrays else given
    return outputs


def special(model: Any, plugin: ModelPlugin, scenario: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """What methods of a model take by name: what it prepares for the scenario, and random numbers of the seed."""
    prepared = {"prepared": model.prepare_scenario(scenario)} if plugin.takes_prepared else {}
    return prepared | ({"rng": np.random.default_rng(seed)} if plugin.takes_rng else {})
