"""Evaluations of designs outside of a run, in this process: one design, the middle of the space, trials."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from designopt import evaluation_progress
from designopt.arrays import Floats
from designopt.plugin import Permission, PluginError, ProgramFailed
from designopt.problem import ENDED_WITH_CAUSE, Problem, evaluation_seed, figure_unit
from designopt.problem.scoring import aggregate, limited_values
from designopt.solvers.listed_designs import EvaluateListed
from designopt.space import Space
from designopt.study.stated_units import in_words, stated_value
from designopt.study.study import StudyDefinition
from designopt.workers.evaluation.evaluate import NO_PERMISSION, Evaluation, Evaluator

#: Random designs for each trial, of which those within the relations are evaluated.
CANDIDATES = 100


def evaluate_one(
    study: StudyDefinition,
    values: Mapping[str, Any],
    *,
    scenario: str | None = None,
    arrays: Sequence[str] = (),
    permission: Permission = NO_PERMISSION,
) -> Evaluation:
    """Evaluate one design in this process, without recording it: `values` by name in the study's units, all active free
    parameters.

    `scenario` defaults to the first. Raises `KeyError` for an unknown or missing name, `ValueError` for a value that
    the parameter does not admit, `CannotRun` if the model runs something that `permission` does not contain.
    """
    problem = dataclasses.replace(Problem.from_study(study), fidelity=None)
    names = [s.name for s in problem.scenarios]
    if scenario is not None and scenario not in names:
        raise KeyError(f"no scenario '{scenario}' (known: {', '.join(names)})")
    unknown = set(values) - {p.name for p in problem.space.parameters}
    if unknown:
        raise KeyError(f"no parameter '{sorted(unknown)[0]}' (known: {', '.join(problem.space.names)})")
    x = []
    for p in problem.space.free:
        if p.name not in values and not p.when:
            raise KeyError(f"parameter '{p.name}' has no value")
        value = values.get(p.name, p.values[0] if p.kind == "choice" else p.low)
        if p.kind == "choice" and value not in p.values:
            raise ValueError(f"{p.name}: {value!r} is not one of {', '.join(map(str, p.values))}")
        x.append(float(p.values.index(value)) if p.kind == "choice" else float(value))
        if p.kind != "choice" and not p.low <= x[-1] <= p.high:
            raise ValueError(f"{p.name}: {value!r} is outside {p.low!r} to {p.high!r} {p.unit}".rstrip())
        if p.kind == "int" and not x[-1].is_integer():
            raise ValueError(f"{p.name}: {value!r} is not an integer")
    design = problem.space.design(x)
    if missing := [name for name in design if name in problem.space.names and name not in values]:
        raise KeyError(f"parameter '{missing[0]}' has no value")
    index = names.index(scenario) if scenario is not None else 0
    seed = None if problem.seed is None else evaluation_seed(problem.keys(np.array([x]))[0][index], study.seed)
    evaluator = Evaluator.for_problem(problem, permission=permission)
    return evaluator.evaluate(evaluator.design(x, index), index, arrays, seed=seed)


def middle(study: StudyDefinition) -> list[str]:
    """Names of the model's outputs for the design at the centre of the space, in the first scenario.

    Raises `PluginError`, with the model's message, if the evaluation fails.
    """
    problem = dataclasses.replace(Problem.from_study(study), fidelity=None)
    x = problem.space.centre[None]
    evaluator = dataclasses.replace(Evaluator.for_problem(problem), required_outputs=())
    seed = None if problem.seed is None else evaluation_seed(problem.keys(x)[0][0], study.seed)
    evaluation = evaluator.evaluate(evaluator.design(x[0].tolist(), 0), 0, seed=seed)
    if not evaluation.outputs:
        at = in_words(study.space, problem.space.values(x[0].tolist()))
        reason = (evaluation.message.strip() or evaluation.reason or evaluation.status).splitlines()[-1]
        reason += f" ({evaluation.raise_location})" if evaluation.raise_location else ""
        raise PluginError(f"the model returns no figure at the centre of the space ({at}): {reason}")
    return list(evaluation.outputs)


def _assignment(name: str, value: Any, unit: str) -> str:
    """A value with its name and unit, in words."""
    number = f"{value:.6g}" if isinstance(value, float) else value
    return f"{name} = {number} {unit}".rstrip()


def _score(problem: Problem, outputs: Sequence[Mapping[str, float]]) -> str:
    """The objectives of a design that are more than an output, and the limits that it violates, from its `outputs` in
    all scenarios."""
    names = set.intersection(*map(set, outputs))
    figures = {name: np.array([[row[name] for row in outputs]]) for name in names}
    several = len(outputs) > 1
    parts = [
        _assignment(o.name, float(aggregate(problem, o, figures, 1, o.sign)[0]), o.unit)
        for o in problem.objectives
        if (several or o.expression.text not in names) and o.expression.names <= names
    ]
    for c in problem.constraints:
        if c.expression.names <= names:
            low, high = (float(end[0]) for end in limited_values(problem, c, figures, 1))
            for value, limit, sign, is_violated in (
                (low, c.minimum, "≥", c.minimum is not None and low < c.minimum),
                (high, c.maximum, "≤", c.maximum is not None and high > c.maximum),
            ):
                if is_violated:
                    parts.append(f"{c.name} = {value:.6g}, not {sign} {limit:g} {c.unit}".rstrip())
    return "; ".join(parts)


@contextlib.contextmanager
def _limited(seconds: float | None) -> Iterator[None]:
    """Raises `ProgramFailed` in an evaluation inside this context that takes longer; without effect outside the main
    thread, and on code that does not return to Python."""
    if seconds is None or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise ProgramFailed(f"no result within {seconds:g} s", status="timeout")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _trial_designs(study: StudyDefinition, space: Space, count: int) -> Floats:
    """The first `count` designs (n, d) that the first stage lists after the baselines, or random ones, those within the
    relations first."""
    solver = next(stage.solver.build() for stage in study.stages if not stage.baseline)
    if isinstance(solver, EvaluateListed):
        return solver.rows(space)[:count]
    rng = np.random.default_rng(study.seed)
    X = space.in_box(rng.random((CANDIDATES * count, len(space.free))))
    return np.asarray(X[np.argsort(space.relation_violation(X) > 0.0, kind="stable")[:count]])


def trial(
    study: StudyDefinition, count: int, permission: Permission = NO_PERMISSION, show: Callable[[str], object] = str
) -> tuple[list[str], int]:
    """Evaluate `count` designs here in all scenarios, for ``validate --try``: the first ones that the study lists, or
    random ones. A line of text for each evaluation, below it what the model reports at the end, a traceback or what a
    program printed; and the number of failures.

    `show` receives each line as soon as it is known, and the design before its evaluation where these have a time limit
    (`execution.timeout`), which holds here, too. A rejected or diverged design is a valid result, unless there are no
    others.
    """
    limit = study.execution.timeout
    problem = dataclasses.replace(Problem.from_study(study), fidelity=None)
    space = problem.space
    X = _trial_designs(study, space, count)
    evaluator = Evaluator.for_problem(problem, permission=permission)
    lines, statuses = list[str](), list[str]()
    for x, relation_violation, keys in zip(
        X.tolist(), space.relation_violation(X).tolist(), problem.keys(X), strict=True
    ):
        values = space.values(x)
        at = ", ".join(
            _assignment(p.name, stated_value(p, values[p.name]), p.stated or p.unit)
            for p in space.parameters
            if p.name in values
        )
        at = at or "the design, which has no parameters"
        if relation_violation > 0.0:
            lines.append(f"{at}: invalid, a relation is broken")
            show(lines[-1])
            statuses.append("invalid")
            continue
        of_design: list[Mapping[str, float]] = []
        for s, (scenario, key) in enumerate(zip(problem.scenarios, keys, strict=True)):
            scenario_text = f", {scenario.name}" if len(problem.scenarios) > 1 else ""
            if limit is not None:
                show(f"trying {at}{scenario_text}, for at most {limit:g} s")
            with evaluation_progress.remarks() as remarks, _limited(limit):
                evaluation = evaluator.evaluate(evaluator.design(x, s), s, seed=evaluation_seed(key, study.seed))
            statuses.append(evaluation.status)
            outputs = {
                k: v for k, v in evaluation.outputs.items() if not k.startswith("d(")
            }  # derivatives are not needed here
            outcome = ", ".join(_assignment(k, v, figure_unit(problem, k)) for k, v in outputs.items())
            message = evaluation.message.splitlines() if evaluation.status in ENDED_WITH_CAUSE else [evaluation.message]
            *report_lines, cause = message or [""]
            outcome = outcome if evaluation.ok else cause
            of_evaluation = [f"{at}{scenario_text}: {evaluation.status} in {evaluation.wall:.3g} s: {outcome}"]
            of_evaluation += [f"    {line}".rstrip() for line in (remarks if evaluation.ok else report_lines)]
            lines += of_evaluation
            for line in of_evaluation:
                show(line)
            of_design += [evaluation.outputs] if evaluation.ok else []
        if len(of_design) == len(problem.scenarios) and (score := _score(problem, of_design)):
            lines.append(f"  gives {score}")
            show(lines[-1])
    return lines, sum(s in ("error", "nonfinite", "timeout") for s in statuses) if "ok" in statuses else max(
        1, len(statuses)
    )
