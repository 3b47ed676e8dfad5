"""Limits and penalties on control rates: a control becomes a state, and its rate the control."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from designopt.collocation.statement.added.augmented import augment
from designopt.collocation.statement.problem import Phase, TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError, check_names
from designopt.collocation.statement.symbols import Ends
from designopt.collocation.statement.terms import Integral
from designopt.dynamics.system import System, Variable
from designopt.lazy import casadi as ca


@dataclass(frozen=True)
class Rate:
    """Limits of the rate of a control, `low` to `high` in its unit per second, and the weight of its square.

    `penalty` times the integral of the squared rate is added to the cost. Raises `ValueError` for contradictory limits
    and for a penalty that is negative or not finite.
    """

    low: float = -math.inf
    high: float = math.inf
    penalty: float = 0.0

    def __post_init__(self) -> None:
        for name in ("low", "high", "penalty"):
            if not isinstance(getattr(self, name), Real):
                raise ValueError(f"{name} of a rate is {getattr(self, name)!r}: give a number")
        if not self.low < self.high:
            raise ValueError(f"the limits of a rate are {self.low:g} to {self.high:g}: the first is the smaller one")
        if not 0.0 <= self.penalty < math.inf:
            raise ValueError(f"the penalty of a rate is {self.penalty!r}: give a number from 0 on")


def with_rates(problem: TrajectoryProblem, rates: Mapping[str, Rate]) -> TrajectoryProblem:
    """`problem` with the rates of some controls, by name, limited or penalised, in all phases that have them.

    Such a control becomes a state, continuous within its phase and with the same limits; the new control is
    ``<name>_rate``, the integral of its square ``<name>_rate_squared``. Its initial value is free within its limits
    unless `initial` of its phase gives one, and it may jump between phases unless a constraint links them. Raises
    `ProblemError` (bad_statement) for names that are not controls, or already in use.
    """
    if not isinstance(rates, Mapping):
        text = f"are {type(rates).__name__}: give each control its Rate, as {{'u': Rate(low=-1, high=1)}}"
        raise ProblemError("bad_statement", "rates", text)
    controls = dict.fromkeys(v.name for phase in problem.phases for v in phase.system.controls)
    for name, rate in rates.items():
        if not isinstance(rate, Rate):
            raise ProblemError("bad_statement", f"rates.{name}", f"is {rate!r}: give a Rate, as Rate(low=-1, high=1)")
        check_names("rates", [name], controls, "control", "bad_statement")
    phases = [_phase(phase, {n: rates[n] for n in rates if _has_variable(phase, n)}) for phase in problem.phases]
    penalties = [
        (phase.name, f"{name}_rate_squared", rate.penalty)
        for phase in problem.phases
        for name, rate in rates.items()
        if rate.penalty > 0.0 and _has_variable(phase, name)
    ]
    return replace(problem, phases=phases, cost=_Cost(problem.cost, tuple(penalties)))


@dataclass(frozen=True)
class _Cost:
    """A cost and the weights of squared rates: (phase, integral, weight)."""

    cost: Callable[[Ends], Any]
    weights: tuple[tuple[str, str, float], ...]

    def __call__(self, e: Ends) -> Any:
        return self.cost(e) + sum(weight * e.phase[phase].integral[name] for phase, name, weight in self.weights)


def _has_variable(phase: Phase, name: str) -> bool:
    return any(v.name == name for v in phase.system.controls)


def _phase(phase: Phase, rates: Mapping[str, Rate]) -> Phase:
    if not rates:
        return phase
    guess = dict(phase.guess)
    for v in phase.system.controls:
        if v.name in rates and v.name not in phase.initial and v.name not in phase.final:
            level = float(np.clip(0.0, *phase.ranges[v.name]))
            guess.setdefault(v.name, (level, level))
    squares = {f"{n}_rate_squared": Integral(_Square(f"{n}_rate")) for n, rate in rates.items() if rate.penalty > 0.0}
    if used_names := [n for n in squares if n in phase.integrals]:
        raise ProblemError("bad_statement", f"{phase.name}: integrals.{used_names[0]}", "is added by a rate: rename it")
    return replace(phase, system=_system(phase, rates), integrals={**phase.integrals, **squares}, guess=guess)


@dataclass(frozen=True)
class _Square:
    name: str

    def __call__(self, v: Any) -> Any:
        return v[self.name] ** 2


def _system(phase: Phase, rates: Mapping[str, Rate]) -> System:
    """The system of `phase` with the controls of `rates` among its states."""
    system = phase.system
    rate_controls = [v for v in system.controls if v.name in rates]
    remaining = [v for v in system.controls if v.name not in rates]
    new = [
        Variable(f"{v.name}_rate", f"{v.unit or '1'}/s", rates[v.name].low, rates[v.name].high) for v in rate_controls
    ]
    if clashes := {v.name for v in new} & {v.name for v in (*system.states, *system.controls, *system.parameters)}:
        text = f"'{min(clashes)}' is the name of the rate of a control: rename the variable"
        raise ProblemError("bad_statement", f"{phase.name}: system {system.name}", text)
    nx = len(system.states)

    def enter(x: Any, u: Any) -> tuple[Any, Any, Any]:
        """The controls from the present states; the rates are the last of the new ones."""
        states, remaining_columns = iter(range(nx, nx + len(rate_controls))), iter(range(len(remaining)))
        controls = [x[next(states)] if v.name in rates else u[next(remaining_columns)] for v in system.controls]
        return x[:nx], ca.vertcat(*controls), u[len(remaining) :]

    return augment(system, rate_controls, (*remaining, *new), enter)
