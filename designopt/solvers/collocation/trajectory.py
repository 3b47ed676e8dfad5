"""A study as one trajectory problem: free parameters, objective and limits.

Parameters of a study are in the study's units, those of the trajectory problem in the model's. Figures are the outputs
of the model's trajectory problem, in the model's units; expressions of a study contain the conversions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.solution import Solution
from designopt.collocation.statement.added.peaks import with_peaks
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError
from designopt.lazy import casadi as ca
from designopt.plugin import InvalidSetting, Use, find
from designopt.problem import Problem
from designopt.solvers.collocation.controls import AS_STATED, Controls
from designopt.solvers.collocation.merged_problem import WORST, MergedProblem, limit_size
from designopt.solvers.collocation.refusals import (
    check_expression,
    check_parameters,
    check_peak,
    check_single,
    check_symbolic,
)
from designopt.solvers.collocation.symbolic import symbolic_value
from designopt.space import display_value, in_model_unit
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import DesignVariable, Objective, Scenario, StudyConstraint


@dataclass(frozen=True)
class StudyTrajectory:
    """The trajectory problem of a study: all scenarios are phases, parameters have their ranges.

    `optimum_names` are the free parameters that the program optimises; the other free ones are `fixed` at their values
    in a design. `relations` are those of released parameters, by the names of their constraints; `inactive` are the
    values of conditional parameters whose condition is false. `controls` are rate-limited or held.
    `at` returns the problem for a design.
    """

    problem: Problem
    base: TrajectoryProblem
    optimum_names: tuple[str, ...]
    fixed: tuple[str, ...]
    relations: Mapping[str, Expression]
    inactive: Mapping[str, float]
    margin: float
    controls: Controls = AS_STATED

    @property
    def with_mean(self) -> StudyTrajectory | None:
        """The same problem with the mean instead of the worst case; None unless the objective is the worst of several
        scenarios."""
        if all(v.name != WORST for v in self.base.extra):
            return None
        mean = replace(self.problem.objectives[0], over=Use(find("aggregation", "mean")))
        mean_problem = replace(self.problem, objectives=(mean,))
        return study_trajectory(mean_problem, self.fixed, self.margin, controls=self.controls)

    def with_objective_size(self, size: float) -> StudyTrajectory:
        """The same problem for an objective of about this size."""
        return study_trajectory(self.problem, self.fixed, self.margin, size, controls=self.controls)

    def penalty(self, solution: Solution) -> float:
        """The cost of control rates in a solution of the problem."""
        return self.controls.penalty(solution, len(self.problem.scenarios))

    @cached_property
    def _column(self) -> dict[str, int]:
        return {p.name: j for j, p in enumerate(self.problem.space.free)}

    @cached_property
    def _parameter(self) -> dict[str, DesignVariable]:
        return {p.name: p for p in self.problem.space.parameters}

    def at(self, x: Floats) -> TrajectoryProblem:
        """The problem for the design `x` (d,): fixed parameters have these values, released ones start from them. An
        inactive parameter has the value of the model's trajectory problem."""
        active = self.problem.space.active(x[None])[0]
        boxes, guess = dict(self.base.parameters), dict(self.base.guess)
        for name, j in self._column.items():
            if not active[j]:
                boxes[name] = self.inactive[name]
                continue
            value = float(in_model_unit(self._parameter[name], display_value(self._parameter[name], float(x[j]))))
            if name in self.fixed:
                boxes[name] = value
            guess[name] = value
        idle = {name for name, j in self._column.items() if not active[j]}
        constraints = dict(self.base.constraints)
        for name, relation in self.relations.items():
            if relation.names & idle:
                constraints[name] = replace(constraints[name], low=-math.inf, high=math.inf)
        return replace(self.base, parameters=boxes, guess=guess, constraints=constraints)

    def first(self) -> Floats:
        """The initial design (d,): the model's guess, else the centre of the space."""
        space = self.problem.space
        x: Floats = space.centre
        for name in self.optimum_names:
            if name in self.base.guess:
                p = self._parameter[name]
                x[self._column[name]] = np.clip((self.base.guess[name] - p.offset) / p.factor, p.low, p.high)
        return x

    def design(self, x: Floats, parameters: Mapping[str, float]) -> Floats:
        """The design `x` (d,) with the released parameters from `parameters`, clipped to their ranges."""
        entries = np.array(x, dtype=float)
        for name in self.optimum_names:
            p = self._parameter[name]
            entries[self._column[name]] = np.clip((parameters[name] - p.offset) / p.factor, p.low, p.high)
        return np.asarray(self.problem.space.impute(entries[None])[0])


def study_trajectory(
    problem: Problem,
    fixed: Sequence[str] = (),
    margin: float = 0.0,
    size: float = 1.0,
    *,
    controls: Controls = AS_STATED,
) -> StudyTrajectory:
    """State `problem` as a trajectory problem for all its scenarios; `fixed` names real parameters that stay fixed.

    Limits are tightened by `margin`, relative to their size. `size` scales the variable that bounds the objective of
    the worst scenario. `controls` are rate-limited or held. Raises
    `InvalidSetting` ("use") for what a program cannot state, with a hint.
    """
    check_symbolic(problem)
    objective = check_single(problem)
    model = problem.model.build()
    parts = [_scenario_problem(model, scenario) for scenario in problem.scenarios]
    check_parameters(problem, parts[0])
    items: tuple[Objective | StudyConstraint, ...] = (objective, *problem.constraints)
    parts = _with_used_peaks(items, parts)
    for item in items:
        check_expression(problem, item, parts)
    reals = [p.name for p in problem.space.free if p.kind == "real" and p.name not in fixed]
    fixed_names = [p.name for p in problem.space.free if p.name not in reals]
    relations = {f"relation {r}": r for r in problem.space.relations if r.names & set(reals)}
    for relation in relations.values():
        if relation.root.kind == "==":
            text = f"no program meets the relation '{relation}' exactly; express one parameter by the other"
            raise InvalidSetting("use", text)
    merged_problem = MergedProblem(problem, parts, size)
    base = controls.apply(merged_problem.trajectory(objective, relations, margin), len(parts))
    inactive = {p.name: parts[0].parameter_ranges[p.name][0] for p in problem.space.conditional}
    return StudyTrajectory(problem, base, tuple(reals), tuple(fixed_names), relations, inactive, margin, controls)


def _with_used_peaks(
    items: Sequence[Objective | StudyConstraint], parts: Sequence[TrajectoryProblem]
) -> list[TrajectoryProblem]:
    """The trajectory problems with the peaks that `items` name. Raises `InvalidSetting` for unsupported ones."""
    sizes: dict[str, float] = {}
    for item in items:
        symbols = {name: ca.SX.sym(name) for name in item.expression.names}
        for name in sorted(symbols.keys() & parts[0].peaks.keys()):
            slope = ca.jacobian(symbolic_value(item.expression.root, symbols), symbols[name])
            steady = float(slope) if slope.is_constant() else math.nan
            check_peak(item, name, parts[0].peaks[name], steady)
            size = limit_size(item) / abs(steady) if isinstance(item, StudyConstraint) else 1.0
            sizes[name] = min(size, sizes.get(name, math.inf))
    return [with_peaks(part, sizes, sizes) if sizes else replace(part, peaks={}) for part in parts]


def _scenario_problem(model: Any, scenario: Scenario) -> TrajectoryProblem:
    try:
        problem = model.trajectory_problem(dict(scenario.values))
    except ProblemError as error:
        raise InvalidSetting("use", f"{error.status}: in scenario '{scenario.name}': {error}") from error
    except SystemExit as error:  # it would end the check without a message
        raise InvalidSetting("use", f"the model's 'trajectory_problem' called sys.exit({error.code})") from error
    if not isinstance(problem, TrajectoryProblem):
        text = f"the model's 'trajectory_problem' gives {type(problem).__name__}, not a TrajectoryProblem"
        raise InvalidSetting("use", text)
    return problem
