"""The trajectory problems of all scenarios as one, with the objective, the limits and the relations of a study."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from designopt.aggregations import TIMES
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.symbols import Ends
from designopt.collocation.statement.terms import Constraint
from designopt.dynamics.system import Variable
from designopt.lazy import casadi as ca
from designopt.plugin import InvalidSetting
from designopt.problem import Problem
from designopt.solvers.collocation.symbolic import symbolic_value
from designopt.space import display_value, in_model_unit
from designopt.study.language.expressions.expression import Expression
from designopt.study.study import Objective, StudyConstraint

#: Margin of relations between parameters, relative to their size: a design that violates one is not evaluated.
INSIDE = 1e-7
#: The variable that bounds the objective of the worst scenario.
WORST = "worst_of_scenarios"
#: Relative smoothing of a standard deviation over scenarios near 0.
NO_SPREAD = 1e-6


class MergedProblem:
    """The trajectory problems of all scenarios (`parts`) as one, with shared parameters."""

    def __init__(self, problem: Problem, parts: Sequence[TrajectoryProblem], size: float) -> None:
        self.problem, self.parts, self.size = problem, parts, size
        self.scenarios = [s.name for s in problem.scenarios]
        self.alone = len(parts) == 1

    def _scenario_label(self, scenario: str, name: str) -> str:
        return name if self.alone else f"{scenario}: {name}"

    def _in_scenario(self, s: int, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A function of the ends of one scenario as a function of all ends."""
        if self.alone:
            return function
        names = {phase.name: self._scenario_label(self.scenarios[s], phase.name) for phase in self.parts[s].phases}

        def value(e: Ends) -> Any:
            return function(Ends({own_name: e.phase[name] for own_name, name in names.items()}, e.parameters))

        return value

    def _value(self, expression: Expression, s: int) -> Callable[[Any], Any]:
        """An expression of figures in scenario `s`."""
        figures = {name: self._in_scenario(s, self.parts[s].figures[name]) for name in expression.names}
        return lambda e: symbolic_value(expression.root, {name: figure(e) for name, figure in figures.items()})

    def _values(self, item: Objective | StudyConstraint) -> list[tuple[str, Callable[[Any], Any]]]:
        """The expression in each scenario that counts, or its mean over all, with a word for this choice."""
        each = [self._value(item.expression, s) for s in range(len(self.parts))]
        if self.alone or item.over.plugin.name == "nominal":
            return [("", each[0])]
        if item.over.plugin.name == "mean":
            return [("", lambda e: sum(value(e) for value in each) / len(each))]
        if item.over.plugin.name == "mean_plus_deviation":
            return self._with_deviation(item, each)
        return [(f" in {name}", value) for name, value in zip(self.scenarios, each, strict=True)]

    def _with_deviation(
        self, item: Objective | StudyConstraint, each: Sequence[Callable[[Any], Any]]
    ) -> list[tuple[str, Callable[[Any], Any]]]:
        """The mean plus or minus some standard deviations, on the unfavourable side."""
        times = float(item.over.settings.get("times", TIMES))
        if isinstance(item, Objective):
            ends, size = {"": item.sign}, self.size
        else:
            ends, size = {}, limit_size(item)
            if item.minimum is not None:
                ends[" less its deviation"] = -1.0
            if item.maximum is not None:
                ends[" with its deviation"] = 1.0

        def end(sign: float) -> Callable[[Any], Any]:
            def value(e: Ends) -> Any:
                values = ca.vertcat(*(value_of(e) for value_of in each))
                mean = ca.sum1(values) / len(each)
                variance = ca.sumsqr(values - mean) / len(each)
                return mean + sign * times * (ca.sqrt(variance + (NO_SPREAD * size) ** 2))

            return value

        return [(suffix, end(sign)) for suffix, sign in ends.items()]

    def _goal(self, objective: Objective) -> tuple[Callable[[Any], Any], tuple[Variable, ...], dict[str, Constraint]]:
        """The objective; for the worst of several scenarios an additional variable with a constraint for each
        scenario."""
        sign, size, values = objective.sign, self.size, self._values(objective)
        if len(values) == 1:
            of_all = values[0][1]
            return (lambda e: sign * of_all(e)), (), {}

        def below(value: Callable[[Any], Any]) -> Constraint:
            return Constraint(lambda e: sign * value(e) / size - e[WORST], high=0.0)

        rows = {f"{objective.name}{suffix}": below(value) for suffix, value in values}
        return (lambda e: size * e[WORST]), (Variable(WORST, ""),), rows

    def trajectory(self, objective: Objective, relations: Mapping[str, Expression], margin: float) -> TrajectoryProblem:
        """The whole problem; parameters of the study have their ranges, fixed ones their values."""
        phases, constraints, figures, peaks = [], {}, {}, {}
        for s, (scenario, part) in enumerate(zip(self.scenarios, self.parts, strict=True)):
            phases += [replace(phase, name=self._scenario_label(scenario, phase.name)) for phase in part.phases]
            for name, rows in part.constraints.items():
                constraints[self._scenario_label(scenario, name)] = replace(
                    rows, value=self._in_scenario(s, rows.value)
                )
            figures.update(
                {self._scenario_label(scenario, n): self._in_scenario(s, f) for n, f in part.figures.items()}
            )
            for n, peak in part.peaks.items():
                peaks[self._scenario_label(scenario, n)] = replace(
                    peak, phase=self._scenario_label(scenario, peak.phase)
                )
        cost, extra, below = self._goal(objective)
        terms = {
            _distinct_name(f"{objective.name}{suffix}", "objective", figures): value
            for suffix, value in self._values(objective)
        }
        for c in self.problem.constraints:
            for suffix, value in self._values(c):
                label = _distinct_name(f"{c.name}{suffix}", "limit", constraints)
                constraints[label] = _limit_constraint(c, value, margin)
        for name, rows in below.items():
            constraints[_distinct_name(name, "objective", constraints)] = rows
        for name, relation in relations.items():
            constraints[name] = _relation_constraint(self.problem, relation)
        boxes = self._boxes()
        guess: dict[str, float] = {WORST: objective.sign} if extra else {}
        for part in self.parts:
            guess.update(part.guess)
        return TrajectoryProblem(
            phases,
            cost,
            constraints=constraints,
            parameters=boxes,
            guess=guess,
            terms=terms,
            figures=figures,
            extra=(*extra, *{v.name: v for part in self.parts for v in part.extra}.values()),
            peaks=peaks,
        )

    def _boxes(self) -> dict[str, Any]:
        boxes: dict[str, Any] = {}
        for scenario, part in zip(self.scenarios, self.parts, strict=True):
            for name, box in part.parameters.items():
                if name not in {p.name for p in self.problem.space.parameters} and boxes.setdefault(name, box) != box:
                    raise InvalidSetting(
                        "use",
                        f"the trajectory problem gives '{name}' another value in scenario '{scenario}' than in"
                        f" '{self.scenarios[0]}', but scenarios share parameters: state it as data of the phases",
                    )
        for p in self.problem.space.parameters:
            ends = p.values if p.kind in ("fixed", "choice") else (p.low, p.high)
            bounds = [float(in_model_unit(p, end)) for end in ends]
            boxes[p.name] = bounds[0] if p.kind == "fixed" else (min(bounds), max(bounds))
        return boxes


def _distinct_name(name: str, kind: str, names: Mapping[str, Any]) -> str:
    """The study's `name`, made distinct from the names `names` by the model's trajectory problem."""
    return f"{kind} {name}" if name in names else name


def _limit_constraint(c: StudyConstraint, value: Callable[[Any], Any], margin: float) -> Any:
    """A limit as a constraint, relative to its size."""
    size = limit_size(c)
    low = -math.inf if c.minimum is None else c.minimum / size + margin
    high = math.inf if c.maximum is None else c.maximum / size - margin
    if low > high:
        low = high = 0.5 * (low + high)
    if c.equals is not None:
        low = high = c.equals / size
    return Constraint(lambda e: value(e) / size, low, high)


def limit_size(c: StudyConstraint) -> float:
    """The scale of a limit."""
    return max(abs(bound) for bound in (c.minimum, c.maximum, c.equals) if bound is not None) or 1.0


def _relation_constraint(problem: Problem, relation: Expression) -> Any:
    """A relation between parameters as a constraint, relative to the size of its sides at the centre of the space."""
    space = problem.space
    parameters = {p.name: p for p in space.parameters if p.name in relation.names}
    middle = space.centre.tolist()
    entries = dict(zip(space.names, middle, strict=True))
    numbers = {n: p.values[0] if p.kind == "fixed" else display_value(p, entries[n]) for n, p in parameters.items()}
    sides = [float(Expression(part).evaluate(numbers)) for part in relation.root.parts]
    size = abs(sides[0]) + abs(sides[1])
    size = size if math.isfinite(size) and size > 0.0 else 1.0

    def value(e: Ends) -> Any:
        study_values = {n: (e[n] - p.offset) / p.factor for n, p in parameters.items()}
        left, right = (symbolic_value(part, study_values) for part in relation.root.parts)
        return (left - right) / size

    if relation.root.kind in ("<", "<="):
        return Constraint(value, high=-INSIDE)
    return Constraint(value, low=INSIDE)
