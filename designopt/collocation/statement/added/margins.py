"""Limits with a margin: a multiple of the standard deviation of the limited quantity due to uncertain numbers.

The controls are those of the nominal motion. To first order a deviation of a number changes the states by their
sensitivities, S' = f_x S + f_q, which become additional states of the problem. The margin thus depends on the motion,
and the optimum is that of the problem with margins (Diehl, Bock, Kostina, Math. Program. 107 (2006) 213). For normally
distributed values, a limit with a margin of k deviations is met with the probability Phi(k): 0.977 for 2, 0.9987 for 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from designopt.collocation.statement.added.margin_checks import check_margins, unlinked
from designopt.collocation.statement.problem import Phase, TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.statement.symbols import Ends, Symbols
from designopt.collocation.statement.terms import Constraint, Integral
from designopt.dynamics.system import ARGUMENTS, System, Variable
from designopt.lazy import casadi as ca

#: The figure that is added to the cost.
OF_COST = "margin(cost)"
#: Relative smoothing of a standard deviation of several numbers near 0, as a share of the limit, or of the cost, of at
#: least `NO_COST`.
NO_SPREAD, NO_COST = 1e-6, 1e-6


@dataclass(frozen=True)
class UncertainNumber:
    """An uncertain number with its standard `deviation`: a parameter or a data entry, or with `phase` (and `state`, for
    an initial value) that of one phase alone."""

    name: str
    deviation: float
    entry: str = ""
    state: str = ""
    phase: str = ""

    @property
    def label(self) -> str:
        """Its part in names."""
        return self.name.replace(".", "_").replace(" ", "_").replace(":", "")

    def by(self, name: str) -> str:
        """The name of the sensitivity of a quantity."""
        return f"{name}_by_{self.label}"

    def moves(self, phase: Phase) -> bool:
        """Whether a phase depends on it."""
        if self.phase and self.phase != phase.name:
            return False
        return bool(self.state) or self.entry in {v.name for v in (*phase.system.data, *phase.system.parameters)}


def with_margins(
    problem: TrajectoryProblem, deviations: Mapping[str, float], margins: Mapping[str, float], *, cost: float = 0.0
) -> TrajectoryProblem:
    """`problem` with `margins` on its limits, in standard deviations, by the names of path constraints, of those at
    samples and between ends, and of states (their bounds along the phase).

    `deviations` are the standard deviations of independent numbers: of parameters and data by their names (of one phase
    alone by "phase.entry"), of initial values by "phase.initial.x"; parameters may be free. `cost` times the standard
    deviation of the cost is added to it. Sensitivities are states ``<state>_by_<number>``; the margin of a constraint
    between ends is the figure "margin(name)", the addition to the cost "margin(cost)". Raises `ProblemError`
    (bad_statement) for unknown names, for equalities, for phases with algebraic variables or delays, and for phases
    linked to one another (if only a constraint links them, during transcription).
    """
    sources = [_source(problem, name, deviation) for name, deviation in deviations.items()]
    sources = [source for source in sources if source.deviation > 0.0]
    check_margins(problem, margins, cost)
    if not sources:
        return problem
    ended = [name for name in margins if name in problem.constraints]
    phases = [
        _phase(phase, [s for s in sources if s.moves(phase)], margins, bool(ended or cost)) for phase in problem.phases
    ]
    constraints, figures = unlinked(problem), dict(problem.figures)
    for name in ended:
        stated = constraints[name]
        limited = _AtEnds(stated.value, tuple(sources), tuple(phases), margins[name], (stated.low, stated.high))
        constraints[name] = replace(stated, value=limited)
        figures[f"margin({name})"] = limited.margin
    paid = _AtEnds(problem.cost, tuple(sources), tuple(phases), cost, (-math.inf, math.inf))
    if cost:
        figures[OF_COST] = paid.margin
    return replace(
        problem,
        phases=phases,
        constraints=constraints,
        figures=figures,
        cost=(lambda e: problem.cost(e) + paid.margin(e)) if cost else problem.cost,
    )


def _source(problem: TrajectoryProblem, name: str, deviation: float) -> UncertainNumber:
    """The number of a `name`. Raises `ProblemError` for an unknown one."""
    if not isinstance(deviation, Real) or not 0.0 <= deviation < math.inf:
        raise ProblemError("bad_statement", f"deviations.{name}", f"is {deviation!r}: give a number from 0 on")
    number_of: dict[str, UncertainNumber] = {}
    for phase in problem.phases:
        for v in (*phase.system.parameters, *phase.system.data):
            number_of[v.name] = UncertainNumber(v.name, deviation, v.name)
        for v in phase.system.data:
            number_of.setdefault(
                f"{phase.name}.{v.name}", UncertainNumber(f"{phase.name}.{v.name}", deviation, v.name, "", phase.name)
            )
        for v in phase.system.states:
            label = f"{phase.name}.initial.{v.name}"
            number_of[label] = UncertainNumber(label, deviation, "", v.name, phase.name)
    if name not in number_of:
        text = f"is not a number whose deviation moves a motion; known: {', '.join(number_of)}"
        raise ProblemError("bad_statement", f"deviations.{name}", text)
    return number_of[name]


def _phase(
    phase: Phase, sources: Sequence[UncertainNumber], margins: Mapping[str, float], with_integrals: bool
) -> Phase:
    """`phase` with the sensitivities to its `sources` as states, and margins on its limits."""
    if not sources:
        return phase
    names = [v.name for v in phase.system.states]
    added = {source.by(name) for source in sources for name in (*names, *phase.integrals)}
    used_names = {*names, *phase.integrals, *(v.name for v in (*phase.system.controls, *phase.system.parameters))}
    if clashes := added & used_names:
        text = f"'{min(clashes)}' is the name of a sensitivity: rename the variable"
        raise ProblemError("bad_statement", f"{phase.name}: system {phase.system.name}", text)
    initial = dict(phase.initial)
    for source in sources:
        initial |= {source.by(name): float(name == source.state) for name in names}
    path = {name: _limited(c, sources, names, margins.get(name, 0.0)) for name, c in phase.path.items()}
    for v in phase.system.states:
        if margins.get(v.name, 0.0) > 0.0 and v.name not in path:
            bounds = Constraint(_State(v.name), *phase.bounds.get(v.name, (v.low, v.high)), v.unit)
            if math.isfinite(bounds.low) or math.isfinite(bounds.high):
                path[f"{v.name} with its margin"] = _limited(bounds, sources, names, margins[v.name])
    integrals = dict(phase.integrals)
    if with_integrals:
        for name, integral in phase.integrals.items():
            for source in sources:
                slope = _Slope(integral.value, source, tuple(names))
                integrals[source.by(name)] = Integral(slope, at=integral.at)
    return replace(
        phase,
        system=_system(phase.system, sources),
        initial=initial,
        path=path,
        samples={name: _limited(c, sources, names, margins.get(name, 0.0)) for name, c in phase.samples.items()},
        integrals=integrals,
    )


def _system(system: System, sources: Sequence[UncertainNumber]) -> System:
    """`system` in explicit form, followed by the sensitivities of its states."""
    nx, count = len(system.states), len(sources)
    symbols = [ca.SX.sym(name, system.rhs.numel_in(i)) for i, name in enumerate(ARGUMENTS)]
    rates = system.rhs(*symbols)
    extended_state = ca.SX.sym("x", nx * (1 + count))
    parts = ca.vertsplit(extended_state, nx)
    slopes = ca.jacobian(rates, symbols[0])
    tables = {v.name: symbols[3][i] for i, v in enumerate(system.parameters)}
    tables |= {v.name: symbols[4][i] for i, v in enumerate(system.data)}
    rate_parts = [rates]
    for source, part in zip(sources, parts[1:], strict=True):
        moved = slopes @ part
        rate_parts.append(moved if source.state else moved + ca.jacobian(rates, tables[source.entry]))

    def casadi_function(label: str, result: Any, name: str) -> Any:
        result = ca.substitute(ca.SX(result), symbols[0], parts[0])
        return ca.Function(label, [extended_state, *symbols[1:]], [ca.densify(ca.cse(result))], list(ARGUMENTS), [name])

    states = list(system.states)
    for source in sources:
        states += [Variable(source.by(v.name), "", description=f"d {v.name} / d {source.name}") for v in system.states]
    output = None if system.output is None else casadi_function("output", system.output(*symbols), "y")
    return System(
        name=system.name,
        states=tuple(states),
        parameters=system.parameters,
        rhs=casadi_function("rhs", ca.vertcat(*rate_parts), "xdot"),
        controls=system.controls,
        data=system.data,
        outputs=system.outputs,
        output=output,
        vectors=system.vectors,
    )


@dataclass(frozen=True)
class _State:
    name: str

    def __call__(self, v: Symbols) -> Any:
        return v[self.name]


@dataclass(frozen=True)
class _Slope:
    """The total derivative of a value along the phase with respect to a number, at constant controls."""

    value: Callable[[Any], Any]
    source: UncertainNumber
    states: tuple[str, ...]

    def __call__(self, v: Symbols) -> Any:
        value = ca.SX(self.value(v))
        slope = ca.jacobian(value, ca.vertcat(*(v[n] for n in self.states))) @ ca.vertcat(
            *(v[self.source.by(n)] for n in self.states)
        )
        return slope + ca.jacobian(value, v[self.source.entry]) if self.source.entry else slope


def _limited(stated: Constraint, sources: Sequence[UncertainNumber], states: Sequence[str], times: float) -> Constraint:
    """A constraint along the phase, or at samples, with its margin."""
    if times == 0.0:
        return stated
    return replace(
        stated, value=_OnTheWay(stated.value, tuple(sources), tuple(states), times, (stated.low, stated.high))
    )


@dataclass(frozen=True)
class _OnTheWay:
    value: Callable[[Any], Any]
    sources: tuple[UncertainNumber, ...]
    states: tuple[str, ...]
    times: float
    limits: tuple[float, float]

    def __call__(self, v: Symbols) -> Any:
        slopes = [self.times * s.deviation * _Slope(self.value, s, self.states)(v) for s in self.sources]
        return _with_margin(self.value(v), slopes, self.limits)


@dataclass(frozen=True, eq=False)
class _AtEnds:
    """A constraint between ends, or the cost, and its margin."""

    value: Callable[[Ends], Any]
    sources: tuple[UncertainNumber, ...]
    phases: tuple[Phase, ...]
    times: float
    limits: tuple[float, float]

    def __call__(self, e: Ends) -> Any:
        return _with_margin(self.value(e), self._slopes(e), self.limits)

    def margin(self, e: Ends) -> Any:
        """The given number of standard deviations; of a column the largest."""
        size = _size(self.limits) if self.is_limited else ca.sqrt(ca.SX(self.value(e)) ** 2 + NO_COST**2)
        return ca.mmax(_deviation(self._slopes(e), size))

    @property
    def is_limited(self) -> bool:
        """Whether it is a constraint; the cost has no limits."""
        return any(math.isfinite(limit) for limit in self.limits)

    def _slopes(self, e: Ends) -> list[Any]:
        value = ca.SX(self.value(e))
        return [self.times * source.deviation * self._slope(e, value, source) for source in self.sources]

    def _slope(self, e: Ends, value: Any, source: UncertainNumber) -> Any:
        total = ca.SX.zeros(value.numel())
        for phase in self.phases:
            if not source.moves(phase):
                continue
            phase_ends = e.phase[phase.name]
            state_names = [v.name for v in phase.system.states]
            pairs = [
                (end[n], end[source.by(n)])
                for end in (phase_ends.initial, phase_ends.final)
                for n in state_names
                if source.by(n) in state_names
            ]
            pairs += [
                (phase_ends.integral[n], phase_ends.integral[source.by(n)])
                for n in phase.integrals
                if source.by(n) in phase.integrals
            ]
            if source.entry in phase_ends.data:
                pairs.append((phase_ends.data[source.entry], 1.0))
            for symbol, moved in pairs:
                total += ca.jacobian(value, symbol) * moved
        if source.entry in e.parameters:
            total += ca.jacobian(value, e[source.entry])
        return total


def _with_margin(value: Any, slopes: Sequence[Any], limits: tuple[float, float]) -> Any:
    """The rows that are within the limits if the value keeps its margin."""
    if len(slopes) == 1:  # its absolute value has a kink, two rows have none
        return ca.vertcat(value + slopes[0], value - slopes[0])
    deviation = _deviation(slopes, _size(limits))
    low, high = (math.isfinite(limit) for limit in limits)
    return ca.vertcat(*([value - deviation] if low else []), *([value + deviation] if high or not low else []))


def _deviation(slopes: Sequence[Any], size: Any) -> Any:
    """The root of the sum of squares, smoothed at zero for something of this `size`."""
    return ca.sqrt(sum(slope**2 for slope in slopes) + (NO_SPREAD * size) ** 2)


def _size(limits: tuple[float, float]) -> float:
    return max((abs(limit) for limit in limits if math.isfinite(limit)), default=1.0) or 1.0
