"""A study's question as one trajectory problem: what varies in it, what it minimises, and its limits.

Parameters of a study are in the study's units, those of the trajectory problem in the model's. Figures are the outputs
that the model's trajectory problem states, in the model's units; expressions of a study have theirs written out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from designopt.aggregations import TIMES
from designopt.collocation.solution.solution import Solution
from designopt.collocation.statement.peaks import with_peaks
from designopt.collocation.statement.problem import Constraint as Rows
from designopt.collocation.statement.problem import Ends, ProblemError, TrajectoryProblem, ends
from designopt.dynamics.system import Variable
from designopt.lazy import casadi as ca
from designopt.plugin import InvalidSetting, Use, find
from designopt.problem import Problem
from designopt.solvers.study_controls import AS_STATED, Controls
from designopt.solvers.study_margins import NONE, WORST, Margins
from designopt.solvers.trajectory_checks import (
    check_expression,
    check_parameters,
    check_peak,
    check_single,
    check_symbolic,
)
from designopt.space import Matrix, in_model_unit, shown_value
from designopt.study.language.expressions.expression import Expression
from designopt.study.language.expressions.grammar import Term
from designopt.study.study import Constraint, Objective, Parameter, Scenario

#: Relations between parameters are kept by this, relative to their size: a design that breaks one is not evaluated.
INSIDE = 1e-7
#: A deviation over scenarios is smooth where it is less than this share of the size of what it is of.
NO_SPREAD = 1e-6


@dataclass(frozen=True)
class StudyTrajectory:
    """The trajectory problem of a study, in which all scenarios are phases, with its parameters in their ranges.

    `released` are the free parameters of the study that the program chooses, the other free ones are `fixed` at what a
    design says. `relations` are those of released parameters, by the names of their constraints; `inactive` are the
    values that conditional parameters have where their condition does not hold. `controls` are those that change slowly
    or are held, `margins` those of limits. `at` gives the problem for a design.
    """

    problem: Problem
    base: TrajectoryProblem
    released: tuple[str, ...]
    fixed: tuple[str, ...]
    relations: Mapping[str, Expression]
    inactive: Mapping[str, float]
    margin: float
    controls: Controls = AS_STATED
    margins: Margins = NONE

    @property
    def with_mean(self) -> StudyTrajectory | None:
        """The same question with the mean of what is the worst otherwise; None without a worst of several scenarios."""
        if all(v.name != WORST for v in self.base.extra):
            return None
        mean = replace(self.problem.objectives[0], over=Use(find("aggregation", "mean")))
        mean_problem = replace(self.problem, objectives=(mean,))
        return study_trajectory(mean_problem, self.fixed, self.margin, controls=self.controls, margins=self.margins)

    def sized(self, size: float) -> StudyTrajectory:
        """The same for an objective of about this size."""
        return study_trajectory(
            self.problem, self.fixed, self.margin, size, controls=self.controls, margins=self.margins
        )

    def penalty(self, found: Solution) -> float:
        """What rates of controls add to the cost of a solution of the problem."""
        return self.controls.penalty(found, len(self.problem.scenarios))

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of all variables that have a scale."""
        names = []
        for phase in self.base.phases:
            form = phase.system.residual_form
            unknowns = form.unknowns if form else ()
            names += [*phase.system.states, *unknowns, *phase.system.controls, *phase.system.algebraic]
        limits = [
            (n, box) for phase in self.base.phases for n, box in (("t0", phase.t0), ("tf", phase.tf)) if box is not None
        ]
        times = [name for name, box in limits if len(set(ends(box))) > 1]
        return tuple(dict.fromkeys((*(v.name for v in (*names, *self.base.variables)), *times)))

    @cached_property
    def _column(self) -> dict[str, int]:
        return {p.name: j for j, p in enumerate(self.problem.space.free)}

    @cached_property
    def _parameter(self) -> dict[str, Parameter]:
        return {p.name: p for p in self.problem.space.parameters}

    def at(self, x: Matrix) -> TrajectoryProblem:
        """The problem for the design `x` (d,): its fixed parameters have their values there, its released ones begin
        there. An inactive parameter has the number that the model's trajectory problem gives it."""
        active = self.problem.space.active(x[None])[0]
        boxes, guess = dict(self.base.parameters), dict(self.base.guess)
        for name, j in self._column.items():
            if not active[j]:
                boxes[name] = self.inactive[name]
                continue
            value = float(in_model_unit(self._parameter[name], shown_value(self._parameter[name], float(x[j]))))
            if name in self.fixed:
                boxes[name] = value
            guess[name] = value
        idle = {name for name, j in self._column.items() if not active[j]}
        constraints = dict(self.base.constraints)
        for name, relation in self.relations.items():
            if relation.names & idle:
                constraints[name] = replace(constraints[name], low=-math.inf, high=math.inf)
        return replace(self.base, parameters=boxes, guess=guess, constraints=constraints)

    def first(self) -> Matrix:
        """The design (d,) at which programs begin: the model's guess, else the middle of the space."""
        space = self.problem.space
        x: Matrix = space.from_search(0.5 * (space.lower + space.upper)[None])[0]
        for name in self.released:
            if name in self.base.guess:
                p = self._parameter[name]
                x[self._column[name]] = np.clip((self.base.guess[name] - p.offset) / p.factor, p.low, p.high)
        return x

    def design(self, x: Matrix, parameters: Mapping[str, float]) -> Matrix:
        """The design `x` (d,) with the values of the released parameters among `parameters`, within their ranges."""
        found = np.array(x, dtype=float)
        for name in self.released:
            p = self._parameter[name]
            found[self._column[name]] = np.clip((parameters[name] - p.offset) / p.factor, p.low, p.high)
        return np.asarray(self.problem.space.impute(found[None])[0])


def study_trajectory(
    problem: Problem,
    fixed: Sequence[str] = (),
    margin: float = 0.0,
    size: float = 1.0,
    *,
    controls: Controls = AS_STATED,
    margins: Margins = NONE,
) -> StudyTrajectory:
    """State the question of `problem` for all its scenarios; `fixed` names real parameters that are not to be released.

    Limits are tightened by `margin`, relative to their size. `size` is about that of the objective, for the worst of
    several scenarios: the unknown that bounds it is relative to this. `controls` change slowly or are held; `margins`
    are added to limits. Raises `InvalidSetting` ("use") for what a program cannot state, and says what to do instead.
    """
    check_symbolic(problem)
    objective = check_single(problem)
    model = problem.model.build()
    parts = [_of_scenario(model, scenario) for scenario in problem.scenarios]
    check_parameters(problem, parts[0])
    items: tuple[Objective | Constraint, ...] = (objective, *problem.constraints)
    parts = _with_used_peaks(items, parts)
    for item in items:
        check_expression(problem, item, parts)
    reals = [p.name for p in problem.space.free if p.kind == "real" and p.name not in fixed]
    rest = [p.name for p in problem.space.free if p.name not in reals]
    relations = {f"relation {r}": r for r in problem.space.relations if r.names & set(reals)}
    for relation in relations.values():
        if relation.root.kind == "==":
            text = f"the relation '{relation}' is met exactly by no program; express one parameter by the other"
            raise InvalidSetting("use", text)
    merged = _Merged(problem, parts, size)
    base = controls.applied(merged.trajectory(objective, relations, margin), len(parts))
    used = {item.name: item.expression.names & parts[0].peaks.keys() for item in items}
    sizes = {c.name: _size(c) for c in problem.constraints}
    base = margins.applied(base, merged.limits, sizes, objective.name, used)
    inactive = {p.name: ends(parts[0].parameters[p.name])[0] for p in problem.space.conditional}
    return StudyTrajectory(problem, base, tuple(reals), tuple(rest), relations, inactive, margin, controls, margins)


def _with_used_peaks(
    items: Sequence[Objective | Constraint], parts: Sequence[TrajectoryProblem]
) -> list[TrajectoryProblem]:
    """The trajectory problems with the peaks that `items` name; raises `InvalidSetting` for what they cannot ask."""
    sizes: dict[str, float] = {}
    for item in items:
        symbols = {name: ca.SX.sym(name) for name in item.expression.names}
        for name in sorted(symbols.keys() & parts[0].peaks.keys()):
            slope = ca.jacobian(symbolic(item.expression.root, symbols), symbols[name])
            steady = float(slope) if slope.is_constant() else math.nan
            check_peak(item, name, parts[0].peaks[name], steady)
            size = _size(item) / abs(steady) if isinstance(item, Constraint) else 1.0
            sizes[name] = min(size, sizes.get(name, math.inf))
    return [with_peaks(part, sizes, sizes) if sizes else replace(part, peaks={}) for part in parts]


class _Merged:
    """The trajectory problems of all scenarios (`parts`) in one, with shared parameters."""

    def __init__(self, problem: Problem, parts: Sequence[TrajectoryProblem], size: float) -> None:
        self.problem, self.parts, self.size = problem, parts, size
        self.scenarios = [s.name for s in problem.scenarios]
        self.alone = len(parts) == 1
        self.limits: dict[str, list[str]] = {}  # the constraints of each limit of the study, once they are stated

    def _named(self, scenario: str, name: str) -> str:
        return name if self.alone else f"{scenario}: {name}"

    def _in(self, s: int, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A function of the ends of one scenario as one of all ends."""
        if self.alone:
            return function
        names = {phase.name: self._named(self.scenarios[s], phase.name) for phase in self.parts[s].phases}

        def value(e: Ends) -> Any:
            return function(Ends({own: e.phase[name] for own, name in names.items()}, e.parameters))

        return value

    def _value(self, expression: Expression, s: int) -> Callable[[Any], Any]:
        """An expression of figures in scenario `s`."""
        figures = {name: self._in(s, self.parts[s].figures[name]) for name in expression.names}
        return lambda e: symbolic(expression.root, {name: figure(e) for name, figure in figures.items()})

    def _values(self, item: Objective | Constraint) -> list[tuple[str, Callable[[Any], Any]]]:
        """The expression in each scenario that counts, or its mean over all of them, with a word for which it is."""
        each = [self._value(item.expression, s) for s in range(len(self.parts))]
        if self.alone or item.over.plugin.name == "nominal":
            return [("", each[0])]
        if item.over.plugin.name == "mean":
            return [("", lambda e: sum(value(e) for value in each) / len(each))]
        if item.over.plugin.name == "mean_plus_deviation":
            return self._with_deviation(item, each)
        return [(f" in {name}", value) for name, value in zip(self.scenarios, each, strict=True)]

    def _with_deviation(
        self, item: Objective | Constraint, each: Sequence[Callable[[Any], Any]]
    ) -> list[tuple[str, Callable[[Any], Any]]]:
        """The mean and some standard deviations more, or less, as what is asked for needs it."""
        times = float(item.over.settings.get("times", TIMES))
        if isinstance(item, Objective):
            ends, size = {"": item.sign}, self.size
        else:
            ends, size = {}, _size(item)
            if item.minimum is not None:
                ends[" less its deviation"] = -1.0
            if item.maximum is not None:
                ends[" with its deviation"] = 1.0

        def end(sign: float) -> Callable[[Any], Any]:
            def value(e: Ends) -> Any:
                values = ca.vertcat(*(of(e) for of in each))
                mean = ca.sum1(values) / len(each)
                variance = ca.sumsqr(values - mean) / len(each)
                return mean + sign * times * (ca.sqrt(variance + (NO_SPREAD * size) ** 2))

            return value

        return [(where, end(sign)) for where, sign in ends.items()]

    def _goal(self, objective: Objective) -> tuple[Callable[[Any], Any], tuple[Variable, ...], dict[str, Rows]]:
        """What is minimised; with the worst of several scenarios an unknown, and constraints that none is above it."""
        sign, size, values = objective.sign, self.size, self._values(objective)
        if len(values) == 1:
            of_all = values[0][1]
            return (lambda e: sign * of_all(e)), (), {}

        def below(value: Callable[[Any], Any]) -> Rows:
            return Rows(lambda e: sign * value(e) / size - e[WORST], high=0.0)

        rows = {f"{objective.name}{where}": below(value) for where, value in values}
        return (lambda e: size * e[WORST]), (Variable(WORST, ""),), rows

    def trajectory(self, objective: Objective, relations: Mapping[str, Expression], margin: float) -> TrajectoryProblem:
        """All of it; the parameters of the study have their ranges, those that are fixed their values."""
        phases, constraints, figures, peaks, complementary = [], {}, {}, {}, {}
        for s, (scenario, part) in enumerate(zip(self.scenarios, self.parts, strict=True)):
            phases += [replace(phase, name=self._named(scenario, phase.name)) for phase in part.phases]
            for name, rows in part.constraints.items():
                constraints[self._named(scenario, name)] = replace(rows, value=self._in(s, rows.value))
            figures.update({self._named(scenario, n): self._in(s, f) for n, f in part.figures.items()})
            for n, peak in part.peaks.items():
                peaks[self._named(scenario, n)] = replace(peak, phase=self._named(scenario, peak.phase))
            for n, pair in part.complementary.items():
                complementary[self._named(scenario, n)] = replace(pair, phase=self._named(scenario, pair.phase))
        cost, extra, below = self._goal(objective)
        terms = {
            _other(f"{objective.name}{where}", "objective", figures): value for where, value in self._values(objective)
        }
        for c in self.problem.constraints:
            for where, value in self._values(c):
                label = _other(f"{c.name}{where}", "limit", constraints)
                constraints[label] = _limited(c, value, margin)
                self.limits.setdefault(c.name, []).append(label)
        for name, rows in below.items():
            constraints[_other(name, "objective", constraints)] = rows
        for name, relation in relations.items():
            constraints[name] = _related(self.problem, relation)
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
            complementary=complementary,
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
            given = [float(in_model_unit(p, end)) for end in ends]
            boxes[p.name] = given[0] if p.kind == "fixed" else (min(given), max(given))
        return boxes


def _other(name: str, what: str, taken: Mapping[str, Any]) -> str:
    """The study's `name`, told apart from those that the model's trajectory problem has `taken`."""
    return f"{what} {name}" if name in taken else name


def symbolic(term: Term, values: Mapping[str, Any]) -> Any:
    """The value of a term whose units are resolved, for CasADi expressions `values` by name."""
    if term.kind == "number":
        return term.value
    if term.kind == "name":
        return values[term.text]
    parts = [symbolic(part, values) for part in term.parts]
    if term.kind == "neg":
        return -parts[0]
    if term.kind == "call":
        if term.text in ("min", "max"):
            found = parts[0]
            for part in parts[1:]:
                found = (ca.fmin if term.text == "min" else ca.fmax)(found, part)
            return found
        return {"abs": ca.fabs, "sqrt": ca.sqrt, "log": ca.log, "exp": ca.exp}[term.text](parts[0])
    left, right = parts
    if term.kind == "+":
        return left + right
    if term.kind == "-":
        return left - right
    if term.kind == "*":
        return left * right
    return left / right if term.kind == "/" else left**right


def _limited(c: Constraint, value: Callable[[Any], Any], margin: float) -> Any:
    """A limit as a constraint, relative to its size."""
    size = _size(c)
    low = -math.inf if c.minimum is None else c.minimum / size + margin
    high = math.inf if c.maximum is None else c.maximum / size - margin
    if low > high:
        low = high = 0.5 * (low + high)
    if c.equals is not None:
        low = high = c.equals / size
    return Rows(lambda e: value(e) / size, low, high)


def _size(c: Constraint) -> float:
    """That of the numbers of a limit."""
    return max(abs(bound) for bound in (c.minimum, c.maximum, c.equals) if bound is not None) or 1.0


def _related(problem: Problem, relation: Expression) -> Any:
    """A relation between parameters as a constraint, relative to the size of its sides in the middle of the space."""
    space = problem.space
    parameters = {p.name: p for p in space.parameters if p.name in relation.names}
    middle = space.from_search(0.5 * (space.lower + space.upper)[None])[0].tolist()
    everything = dict(zip(space.names, middle, strict=True))
    numbers = {n: p.values[0] if p.kind == "fixed" else shown_value(p, everything[n]) for n, p in parameters.items()}
    sides = [float(Expression(part).evaluate(numbers)) for part in relation.root.parts]
    size = abs(sides[0]) + abs(sides[1])
    size = size if math.isfinite(size) and size > 0.0 else 1.0

    def value(e: Ends) -> Any:
        given = {n: (e[n] - p.offset) / p.factor for n, p in parameters.items()}
        left, right = (symbolic(part, given) for part in relation.root.parts)
        return (left - right) / size

    if relation.root.kind in ("<", "<="):
        return Rows(value, high=-INSIDE)
    return Rows(value, low=INSIDE)


def _of_scenario(model: Any, scenario: Scenario) -> TrajectoryProblem:
    try:
        made = model.trajectory_problem(dict(scenario.values))
    except ProblemError as error:
        raise InvalidSetting("use", f"{error.status}: in scenario '{scenario.name}': {error}") from error
    except SystemExit as error:  # it would end the check without a word
        raise InvalidSetting("use", f"the model's 'trajectory_problem' called sys.exit({error.code})") from error
    if not isinstance(made, TrajectoryProblem):
        text = f"the model's 'trajectory_problem' gives {type(made).__name__}, not a TrajectoryProblem"
        raise InvalidSetting("use", text)
    return made
