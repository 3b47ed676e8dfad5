"""Rollout: a guess whose states are the motion that its controls cause."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.verification.equations import data_at, explicit_rates, integrate
from designopt.collocation.solve.guess.initial_point import default_trajectory, within_ranges
from designopt.collocation.statement.guess import Guess, SampledTrajectory
from designopt.collocation.statement.problem import Phase, TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.transcription.functions.functions import PerPoint
from designopt.dynamics.system import Variable

#: Number of points of the guess, and its relative accuracy.
POINTS, TOLERANCE = 201, 1e-6
#: Maximum number of steps.
MOST_STEPS = 5000
#: Growth, relative to 1 + the first states, beyond which a motion has diverged.
FARTHEST = 1e6


def rollout(problem: TrajectoryProblem, guess: Guess | None = None) -> Guess:
    """`guess` with the states that its controls cause from its initial states; omitted parts are those of the default.

    Fixed initial states remain. Initial states in neither the problem nor the guess are the final ones of the previous
    phase, if it has them. Final states may violate their bounds. Raises `ProblemError` (bad_guess) for a motion that
    diverges.
    """
    guess = guess or Guess()
    parameters = within_ranges(problem, guess)
    phases: dict[str, SampledTrajectory] = {}
    last: dict[str, float] = {}
    before = 0.0
    for phase in problem.phases:
        trajectory = guess.phases.get(phase.name)
        default = default_trajectory(phase, trajectory, before)
        before = default.tf
        fractions = np.linspace(0.0, 1.0, POINTS)
        stated_values = dict(trajectory.at(fractions)) if trajectory else {}
        values = {**default.at(fractions), **stated_values}
        begin = {}
        for v in phase.system.states:
            has_start = (
                v.name in phase.initial or v.name in stated_values or v.name in phase.guess or v.name not in last
            )
            start = float(values[v.name][0]) if has_start else last[v.name]
            begin[v.name] = float(np.clip(start, *phase.initial_ranges.get(v.name, phase.ranges[v.name])))
        states = _simulation(phase, begin, SampledTrajectory(fractions, values, default.t0, default.tf), parameters)
        last = {name: float(state[-1]) for name, state in states.items()}
        controls = {v.name: values[v.name] for v in phase.system.controls}
        algebraic = {v.name: stated_values[v.name] for v in phase.system.algebraic if v.name in stated_values}
        phases[phase.name] = SampledTrajectory(fractions, {**states, **controls, **algebraic}, default.t0, default.tf)
    return Guess(phases, parameters)


def _simulation(
    phase: Phase, first: dict[str, float], trajectory: SampledTrajectory, parameters: dict[str, float]
) -> dict[str, Floats]:
    """The states (n,) at the fractions of `trajectory`, from the `first` ones, with its controls."""
    system = phase.system
    rates = PerPoint(explicit_rates(system), 1)
    duration = trajectory.tf - trajectory.t0
    p = [parameters[v.name] for v in system.parameters]
    data = data_at(phase, trajectory.fractions, trajectory.t0, trajectory.tf)

    def row(table: tuple[Variable, ...], fraction: float) -> list[float]:
        return [float(np.interp(fraction, trajectory.fractions, trajectory.values[v.name])) for v in table]

    def rhs(fraction: float, x: Floats) -> Floats:
        q = [float(np.interp(fraction, trajectory.fractions, column)) for column in data.T]
        t = trajectory.t0 + fraction * duration
        state_rates, _ = rates(x, row(system.controls, fraction), row(system.algebraic, fraction), p, q, t)
        return np.asarray(state_rates[0] * duration)

    begin = np.array(list(first.values()))
    states = integrate(rhs, 0.0, begin, trajectory.fractions, TOLERANCE, FARTHEST * (1.0 + np.abs(begin)), MOST_STEPS)
    if np.isnan(states).any():
        lost = int(np.isnan(states).any(axis=0).argmax())
        at = trajectory.t0 + duration * trajectory.fractions[max(lost - 1, 0)]
        text = (
            f"with the guessed controls the motion diverges after {at:.6g} s; guess other controls, or the states too"
        )
        raise ProblemError("bad_guess", f"{phase.name}: rollout", text)
    return dict(zip(first, states, strict=True))
