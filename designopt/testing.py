"""Tests for authors of plugins: `check_model` and `check_solver` in one line each, and evaluation without a runner.

>>> from designopt.testing import check_model
>>> check_model(my_model, {"mass": 3.0}, designs=[{"stiffness": 2e4}, {"stiffness": 3e4}])  # doctest: +SKIP

Both raise `AssertionError` with a sentence that says what the plugin did and what it has to do.
"""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from designopt.plugin import Diverged, InvalidDesign, Plugin, Use, find
from designopt.problem import Outcomes, Problem, StageEnded
from designopt.space import Matrix, Space
from designopt.study.expression import Expression
from designopt.study.study import Constraint, Objective, Parameter, Scenario

#: What a model raises for a design that it refuses or cannot compute; anything else is a bug of the model.
_REFUSALS = (InvalidDesign, Diverged)


def problem_from(
    function: Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, float]],
    space: Sequence[Parameter],
    *,
    minimize: Sequence[str],
    limits: Mapping[str, float] | None = None,
    relations: Sequence[str] = (),
    scenarios: Sequence[Scenario] = (Scenario("nominal"),),
) -> Problem:
    """A problem around a plain function of (design, scenario), without plugins or files: for tests of solvers.

    `minimize` are expressions of the function's outputs; `limits` gives expressions their largest value.
    """
    plugin = Plugin("model", "function", 1, function, {}, "")
    worst = Use(find("aggregation", "worst"))
    return Problem(
        model=Use(plugin),
        space=Space(tuple(space), tuple(Expression.parse(r) for r in relations)),
        scenarios=tuple(scenarios),
        objectives=tuple(
            Objective(f"objective_{i}", Expression.parse(e), "minimize", worst) for i, e in enumerate(minimize)
        ),
        constraints=tuple(
            Constraint(f"limit_{i}", Expression.parse(e), worst, maximum=m)
            for i, (e, m) in enumerate((limits or {}).items())
        ),
    )


def no_outcomes(problem: Problem) -> Outcomes:
    """What a solver is given as `start` when there is no earlier stage."""
    none = np.empty((0, len(problem.scenarios)))
    return problem.judge(np.empty((0, len(problem.space.free))), _Figures(none), np.zeros(none.shape, dtype=bool))


class InProcess:
    """An `evaluate` for `Solver.solve` that computes in this process and keeps nothing on disk.

    Counts designs as a stage does: `budget` designs (None: any number), those that break a relation for free; the batch
    that exceeds it is evaluated as far as it goes and ends with `StageEnded`. A model's `Diverged` or `InvalidDesign`
    makes a design fail; any other exception passes, so that a test shows it. Objective plugins are not computed.
    `batches` holds everything that was asked.
    """

    def __init__(self, problem: Problem, budget: int | None = None) -> None:
        self.problem = problem
        self.budget = budget
        self.batches: list[Matrix] = []
        self.ended = False
        self._model = problem.model.build()
        if hasattr(self._model, "prepare"):
            self._model.prepare()

    @property
    def X(self) -> Matrix:
        """All designs that were evaluated, in the order in which they were asked."""
        return np.concatenate([np.empty((0, len(self.problem.space.free))), *self.batches])

    def __call__(self, X: Matrix) -> Outcomes:
        if self.ended:
            raise AssertionError("evaluate was called again after it had raised StageEnded; a solver lets that pass")
        X = np.array(X, dtype=float)
        excess = self.problem.space.excess(X)
        if self.budget is not None:
            cost = np.cumsum(excess == 0.0)
            self.ended = len(X) > 0 and int(cost[-1]) > self.budget
            X, excess = X[cost <= self.budget], excess[cost <= self.budget]
            self.budget -= int((excess == 0.0).sum())
        self.batches.append(X)
        outcomes = self._outcomes(X, excess)
        if self.ended:
            raise StageEnded
        return outcomes

    def outcomes(self, X: Matrix) -> Outcomes:
        """Outcomes of `X` outside the count: what an earlier stage may have left."""
        X = np.array(X, dtype=float)
        return self._outcomes(X, self.problem.space.excess(X))

    def _outcomes(self, X: Matrix, excess: Matrix) -> Outcomes:
        shape = (len(X), len(self.problem.scenarios))
        figures = _Figures(np.full(shape, np.nan))
        failed = np.zeros(shape, dtype=bool)
        for i in np.flatnonzero(excess == 0.0):
            design = self.problem.space.design(X[i].tolist())
            for s, scenario in enumerate(self.problem.scenarios):
                try:
                    for name, value in _evaluated(self._model, self.problem.model.plugin, design, scenario.values):
                        figures.setdefault(name, np.full(shape, np.nan))[i, s] = value
                except _REFUSALS:
                    failed[i, s] = True
        return self.problem.judge(X, figures, failed, excess)


class _Figures(dict[str, Matrix]):
    """Raw figures by name; all are missing when no design of the batch gave any."""

    def __init__(self, missing: Matrix) -> None:
        super().__init__()
        self.missing = missing

    def __missing__(self, name: str) -> Matrix:
        if self:
            raise KeyError(f"the model gives no '{name}' (it gives {', '.join(self)})")
        return self.missing


def _evaluated(model: Any, plugin: Plugin, design: Mapping[str, Any], scenario: Mapping[str, Any]) -> Any:
    if plugin.takes_arrays:
        return model.evaluate(design, scenario, frozenset())[0].items()
    return model.evaluate(design, scenario).items()


# --------------------------------------------------------------------------------------------------------- solvers


def check_solver(
    solver_class: Any,
    settings: Mapping[str, Any] | None = None,
    *,
    problems: Sequence[Problem] | None = None,
    budget: int = 150,
) -> None:
    """The rules every solver keeps, tried on `problems` (by default one with every kind of parameter and failures).

    Its designs are finite, inside the bounds, integers and choices whole; they follow from the generator alone (a new
    and a used instance, and other global random states, make no difference); `StageEnded` and any other exception of
    `evaluate` end it; failed designs do not break it. Raises `AssertionError`.
    """
    name = getattr(solver_class, "__name__", str(solver_class))
    plugin = getattr(solver_class, "__designopt__", None)
    if not isinstance(plugin, Plugin) or plugin.kind != "solver":
        raise AssertionError(f"{name} is not a solver plugin; decorate it with @designopt.plugin.solver")
    states = np.random.get_state(), random.getstate()
    try:
        for problem in problems or (_mixed_problem(), _hopeless_problem()):
            _check_asks(name, Use(plugin, settings or {}), problem, budget)
            _check_endings(name, Use(plugin, settings or {}), problem)
    finally:
        np.random.set_state(states[0])
        random.setstate(states[1])


def _check_asks(name: str, use: Use, problem: Problem, budget: int) -> None:
    solver = use.build()
    if hasattr(solver, "minimum_budget"):
        budget = max(budget, solver.minimum_budget(problem))
    asked = _asked(name, solver, problem, budget)
    if not len(asked):
        raise AssertionError(f"{name} asked for no design at all")
    for again, what in ((solver, "the same instance"), (use.build(), "a new instance")):
        np.random.seed(len(what))  # a solver that draws from the global generators now shows it
        random.seed(len(what))
        if not np.array_equal(asked, _asked(name, again, problem, budget)):
            raise AssertionError(f"{name}: {what} asked for other designs although its generator was equal")


def _check_batch(name: str, space: Space, X: Matrix) -> None:
    if np.shape(X)[1:] != (len(space.free),):
        raise AssertionError(f"{name}: a batch has the shape (designs, {len(space.free)}), not {np.shape(X)}")
    for j, p in enumerate(space.free):
        low, high = (0, len(p.values) - 1) if p.kind == "choice" else (p.low, p.high)
        column = X[:, j]
        wrong = ~((column >= low) & (column <= high))  # NaN is wrong too
        if p.kind != "real":
            wrong |= column != np.rint(column)
        if wrong.any():
            what = "within its bounds" if p.kind == "real" else "a whole number within its bounds"
            raise AssertionError(
                f"{name} asked for {p.name} = {column[wrong][0]}; it has to be {what}, {low} to {high}"
            )


def _check_endings(name: str, use: Use, problem: Problem) -> None:
    class Stopped(Exception):
        pass

    for ending in (StageEnded, Stopped):

        def evaluate(X: Matrix, ending: type[Exception] = ending) -> Outcomes:
            raise ending

        try:
            use.build().solve(problem, evaluate, np.random.default_rng(1), no_outcomes(problem))
        except ending:
            continue
        raise AssertionError(f"{name} swallows {ending.__name__}; what evaluate raises has to pass through solve")


def _asked(name: str, solver: Any, problem: Problem, budget: int) -> Matrix:
    """What `solver` asks for; a solver that never spends its budget is stopped after many batches."""
    evaluate = InProcess(problem, budget)

    def limited(X: Matrix) -> Outcomes:
        _check_batch(name, problem.space, X)
        if len(evaluate.batches) > 100 * budget:
            raise AssertionError(f"{name}: {len(evaluate.batches)} batches did not spend a budget of {budget} designs")
        return evaluate(X)

    with contextlib.suppress(StageEnded):
        solver.solve(problem, limited, np.random.default_rng(1), no_outcomes(problem))
    return evaluate.X


def _mixed_problem() -> Problem:
    """Two objectives over every kind of parameter, a limit, a relation, and a corner where the model fails."""

    def function(design: Mapping[str, Any], scenario: Mapping[str, Any]) -> Mapping[str, float]:
        x, k, n = design["x"], design["k"], design["n"]
        if x > 0.9 and n > 0:
            raise Diverged("no answer here")
        shift = {"soft": 0.0, "hard": 0.3}[design["kind"]] + 0.1 * scenario.get("slope", 0.0)
        return {"f": x**2 + 0.1 * n**2 + shift, "g": (x - 1.0) ** 2 + np.log10(k) ** 2 + 0.05 * n, "h": x * k}

    parameters = (
        Parameter("x", "real", -1.0, 2.0),
        Parameter("k", "real", 0.01, 100.0, scale="log"),
        Parameter("n", "int", -2, 3),
        Parameter("kind", "choice", values=("soft", "hard")),
        Parameter("mass", "fixed", values=(3.0,)),
    )
    scenarios = (Scenario("flat"), Scenario("steep", {"slope": 1.0}))
    return problem_from(
        function, parameters, minimize=("f", "g"), limits={"h": 50.0}, relations=("n <= 3 + x",), scenarios=scenarios
    )


def _hopeless_problem() -> Problem:
    """A problem in which every evaluation fails."""

    def function(design: Mapping[str, Any], scenario: Mapping[str, Any]) -> Mapping[str, float]:
        raise Diverged("never an answer")

    return problem_from(function, (Parameter("x", "real", 0.0, 1.0), Parameter("y", "real", 0.0, 1.0)), minimize=("x",))


# ---------------------------------------------------------------------------------------------------------- models


def check_model(
    target: Any,
    settings: Mapping[str, Any] | None = None,
    designs: Sequence[Mapping[str, Any]] = ({},),
    *,
    scenarios: Sequence[Mapping[str, Any]] = ({},),
    refused: Sequence[Mapping[str, Any]] = (),
    diverging: Sequence[Mapping[str, Any]] = (),
) -> None:
    """The rules every model keeps, tried on `designs` (in the model's units) in each of `scenarios`.

    The same design has the same answer bit for bit, whatever was evaluated before, in this instance and in a new one;
    it gives the outputs and arrays it declares, finite and with the declared axes, and changes neither its arguments
    nor earlier answers. It raises `InvalidDesign` for each of `refused` and `Diverged` for each of `diverging`.
    Raises `AssertionError`.
    """
    plugin = target if isinstance(target, Plugin) else getattr(target, "__designopt__", None)
    if not isinstance(plugin, Plugin) or plugin.kind != "model":
        raise AssertionError(f"{target!r} is not a model plugin; decorate it with @designopt.plugin.model")
    unknown = sorted(set(settings or {}) - set(plugin.settings))
    if unknown:
        raise AssertionError(f"{plugin.name} has no setting '{unknown[0]}' (it has {', '.join(plugin.settings)})")
    use = Use(plugin, settings or {})
    cases = [(d, s) for d in designs for s in scenarios]
    model = _prepared(use)
    first, kept = [], []
    for case in cases:
        first.append(_answer(model, plugin, *case))
        _check_answer(plugin, case, *first[-1])
        kept.append(copy.deepcopy(first[-1]))
    for i in reversed(range(len(cases))):
        _check_same(plugin, cases[i], kept[i], first[i], "after others were evaluated: it shares its memory with them")
        _check_same(plugin, cases[i], kept[i], _answer(model, plugin, *cases[i]), "when it is asked again")
        _check_same(plugin, cases[i], kept[i], _answer(_prepared(use), plugin, *cases[i]), "in a new instance")
    for bad, expected in [(d, InvalidDesign) for d in refused] + [(d, Diverged) for d in diverging]:
        _check_raises(plugin, model, bad, scenarios[0], expected)
    for i, case in enumerate(cases):
        _check_same(plugin, case, kept[i], _answer(model, plugin, *case), "after a design that it refused")


def _prepared(use: Use) -> Any:
    model = use.build()
    if hasattr(model, "prepare"):
        model.prepare()
    return model


def _answer(model: Any, plugin: Plugin, design: Mapping[str, Any], scenario: Mapping[str, Any]) -> tuple[Any, Any]:
    given = copy.deepcopy(dict(design)), copy.deepcopy(dict(scenario))
    if plugin.takes_arrays:
        outputs, arrays = model.evaluate(*given, frozenset(plugin.arrays))
        bare, none = model.evaluate(*given, frozenset())
        if none:
            raise AssertionError(f"{plugin.name} gives arrays ({', '.join(none)}) when none is wanted")
        if bare != outputs:
            raise AssertionError(f"{plugin.name} has other outputs when no arrays are wanted")
    else:
        outputs, arrays = model.evaluate(*given), {}
    if given != (dict(design), dict(scenario)):
        raise AssertionError(f"{plugin.name} changes the design or scenario that it is given")
    return outputs, arrays


def _check_answer(plugin: Plugin, case: Any, outputs: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    where = f"for design {dict(case[0])} in scenario {dict(case[1])}"
    if plugin.outputs and set(outputs) != set(plugin.outputs):
        odd = sorted(set(outputs) ^ set(plugin.outputs))[0]
        what = "an undeclared output" if odd in outputs else "no output"
        raise AssertionError(f"{plugin.name} gives {what} '{odd}' {where}")
    for name, value in outputs.items():
        if not isinstance(value, (int, float, np.number, np.bool_)) or not np.isfinite(value):
            raise AssertionError(f"{plugin.name} gives {name} = {value!r} {where}; an output is a finite number")
    if set(arrays) != set(plugin.arrays):
        odd = sorted(set(arrays) ^ set(plugin.arrays))[0]
        raise AssertionError(f"{plugin.name} gives {'an undeclared' if odd in arrays else 'no'} array '{odd}' {where}")
    for name, value in arrays.items():
        axes = plugin.arrays[name].axes
        if np.ndim(value) != len(axes):
            raise AssertionError(f"{plugin.name}: array {name} has {np.ndim(value)} axes, declared are {axes}")


def _check_same(plugin: Plugin, case: Any, expected: Any, found: Any, when: str) -> None:
    for known, now in zip(expected, found, strict=True):
        for name in known.keys() | now.keys():
            if name not in known or name not in now or not _identical(known[name], now[name]):
                was, is_now = known.get(name), now.get(name)
                text = "" if np.ndim(was) else f" ({was!r}, then {is_now!r})"
                raise AssertionError(f"{plugin.name} has another {name}{text} for design {dict(case[0])} {when}")


def _identical(a: Any, b: Any) -> bool:
    return np.shape(a) == np.shape(b) and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def _check_raises(plugin: Plugin, model: Any, design: Any, scenario: Any, expected: type[Exception]) -> None:
    try:
        _answer(model, plugin, design, scenario)
    except expected:
        return
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(
            f"{plugin.name} raises {type(error).__name__} ({error}) for design {dict(design)}; "
            f"it has to raise {expected.__name__}"
        ) from error
    raise AssertionError(f"{plugin.name} answers design {dict(design)}; it has to raise {expected.__name__}")
