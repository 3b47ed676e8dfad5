"""Tree-structured Parzen estimator of Optuna (ask and tell), for slow models."""

from __future__ import annotations

import contextlib
import importlib.util
from collections import deque
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from designopt.arrays import Matrix
from designopt.plugin import InvalidSetting, Quantity, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.space import Space
from designopt.study.study import DesignVariable


@solver("tpe", version=1)
class TPE:
    """Tree-structured Parzen estimator, Bergstra et al. (2011, 2013), through Optuna: for slow models.

    Compares the densities of good designs and of the others, and proposes designs with a large ratio. Supports
    integers, choices, log scales and conditions, one objective or several (Ozaki et al. 2022). Designs that violate
    limits are never among the good ones as long as there are others; invalid ones rank behind, failed ones last.

    Designs are requested one by one, with `look_ahead` pending, which keeps as many workers busy; each is chosen
    without the results of the `look_ahead` - 1 before it. Designs of ``start_from`` are used from the start.
    """

    needs_budget: ClassVar[bool] = True
    uses_start: ClassVar[bool] = True
    objectives: ClassVar[Literal["one", "several", "any"]] = "any"

    startup: Annotated[
        int,
        Quantity("", "number of random designs before the model, including those of start_from", ge=1, le=1_000_000),
    ] = 10
    candidates: Annotated[int, Quantity("", "number of candidates for each design", ge=1, le=100_000)] = 24
    joint: (
        Annotated[bool, Quantity("", "model the parameters jointly, not separately; default: with one objective")]
        | None
    ) = None
    look_ahead: Annotated[int, Quantity("", "number of pending designs", ge=1, le=10_000)] = 4
    liar: Annotated[bool, Quantity("", "treat pending designs as bad ones, so that the next are farther from them")] = (
        False
    )

    def check(self, problem: Problem) -> None:
        """Raises `InvalidSetting` without Optuna or free parameters."""
        if importlib.util.find_spec("optuna") is None:
            raise InvalidSetting("use", "tpe needs Optuna; install it with: pip install 'designopt[surrogate]'")
        if not problem.space.free:
            raise InvalidSetting("use", "tpe needs a free parameter")
        if not problem.objectives:
            raise InvalidSetting("use", "tpe needs an objective")

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> None:
        """Search design by design; all random numbers come from `rng`."""
        self.check(problem)
        with _quiet():
            import optuna

            sampler = optuna.samplers.TPESampler(
                n_startup_trials=self.startup,
                n_ei_candidates=self.candidates,
                multivariate=self.joint,
                constant_liar=self.liar,
                seed=int(rng.integers(0, 2**32)),
            )
            study = optuna.create_study(sampler=sampler, directions=["minimize"] * len(problem.objectives))
        search = _Search(problem.space, study)
        for i in range(len(start)):
            search.add(start.take(np.array([i])))
        evaluate.ahead(search.ask, search.tell, self.look_ahead)


class _Search:
    """Conversion between Optuna's trials and designs."""

    def __init__(self, space: Space, study: Any) -> None:
        self._space = space
        self._study = study
        self._column = {p.name: j for j, p in enumerate(space.free)}
        conditional = [p for p in space.conditional if p.kind != "fixed"]
        always = [p for p in space.free if p not in conditional]
        #: Each parameter after those that decide whether it is active.
        self._order = [*always, *conditional]
        self._waiting: dict[bytes, deque[Any]] = {}

    def ask(self) -> Matrix:
        """The next design (1, d)."""
        trial = self._study.ask()
        X = self._space.impute(self._space.from_search((self._space.lower + self._space.upper)[None] / 2.0))
        for p in self._order:
            j = self._column[p.name]
            if not p.when or self._space.active(X)[0, j]:
                X[0, j] = _suggested(trial, p)
        X = self._space.impute(X) + 0.0
        self._waiting.setdefault(X.tobytes(), deque()).append(trial)
        return X

    def tell(self, outcomes: Outcomes) -> None:
        """Called with the outcome of a requested design (1 row)."""
        values, constraint = _as_trial(outcomes)
        trial = self._waiting[(outcomes.X + 0.0).tobytes()].popleft()
        trial.set_constraint("violation", constraint)
        self._study.tell(trial, values)

    def add(self, outcomes: Outcomes) -> None:
        """Add a design with a known outcome (1 row)."""
        import optuna

        values, constraint = _as_trial(outcomes)
        active = self._space.active(outcomes.X)[0]
        entries = [(p, outcomes.X[0, j]) for j, p in enumerate(self._space.free) if active[j]]
        trial = optuna.trial.create_trial(
            params={p.name: int(x) if p.kind != "real" else float(x) for p, x in entries},
            distributions={p.name: _distribution(p) for p, _ in entries},
            values=values,
            constraints={"violation": constraint},
        )
        self._study.add_trial(trial)


def _as_trial(outcomes: Outcomes) -> tuple[list[float], float]:
    """Objectives (0 if there are none: the constraint alone ranks the design) and the constraint, 0 for feasible."""
    F = outcomes.objectives[0]
    return np.where(np.isfinite(F), F, 0.0).tolist(), float(outcomes.rank_violation[0])


def _distribution(p: DesignVariable) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if p.kind == "choice":
        return CategoricalDistribution(range(len(p.values)))
    if p.kind == "int":
        return IntDistribution(int(p.low), int(p.high))
    return FloatDistribution(float(p.low), float(p.high), log=p.scale == "log")


def _suggested(trial: Any, p: DesignVariable) -> float:
    """The column entry that Optuna suggests for `p`."""
    if p.kind == "choice":
        return float(trial.suggest_categorical(p.name, range(len(p.values))))
    if p.kind == "int":
        return float(trial.suggest_int(p.name, int(p.low), int(p.high)))
    return float(np.clip(trial.suggest_float(p.name, float(p.low), float(p.high), log=p.scale == "log"), p.low, p.high))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress Optuna's report of each new study on standard error, where the progress is shown."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
