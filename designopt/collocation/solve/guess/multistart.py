"""Multi-start: one problem solved from several guesses, because a solution may be a local optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.solution import Solution, StartRecord, Status
from designopt.collocation.solve.guess.initial_point import default_trajectory, guessed_parameters
from designopt.collocation.solve.guess.rollout import rollout
from designopt.collocation.solve.program import Program
from designopt.collocation.solve.scaling import WIDEST
from designopt.collocation.statement.guess import Guess, PhaseGuess, SampledTrajectory
from designopt.collocation.statement.problem import Phase, TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError

#: Number of points and of waves of perturbed trajectories.
POINTS, WAVES = 41, 3
#: Amplitude of the first wave, as a share of half the range of a variable, or of the largest value of the guess.
SIZE = 0.3
#: Factor by which a guessed duration varies.
LARGEST_FACTOR = 3.0
#: Relative difference below which objectives are equal.
SAME = 1e-7


def solve_from_starts(program: Program, guess: Guess | None, *, roll: bool = False) -> Solution:
    """The best solution from `guess` and from perturbed ones; the options of `program` give the number of starts.

    Start 0 is the guess itself, start i > 0 is perturbed with random numbers of the seed and of i alone. With `roll`
    each guess is replaced by a rollout of its controls. The best is the feasible one with the smallest objective, else
    the one with the smallest violation. `Solution.starts` reports all.
    """
    problem, options = program.problem, program.options
    begin = rollout(problem, guess) if roll else guess
    best = program.attempt(guess=begin)
    if options.starts == 1:
        return best
    records, timing = [_record(0, best)], dict(best.timing)
    for i in range(1, options.starts):
        if best.status is Status.CANCELLED:
            break
        start = perturbed(problem, guess, np.random.default_rng([options.seed, i]))
        if roll:
            start = rolled(problem, start)
        solution = program.attempt(guess=start)
        timing["solve"] = timing.get("solve", 0.0) + solution.timing.get("solve", 0.0)
        records.append(_record(i, solution))
        if solution.status is Status.CANCELLED or _better(solution, best):
            best = solution
    return replace(best, starts=tuple(records), seed=options.seed, timing=timing)


def perturbed(problem: TrajectoryProblem, guess: Guess | None, rng: np.random.Generator) -> Guess:
    """A guess near `guess`, within all bounds.

    A phase with a start of its own has that start perturbed in its own way. Otherwise states and controls are perturbed
    by smooth waves, which do not change fixed end values; parameters and free times
    are redrawn from their boxes, or vary by a third if these are not finite. Trajectories that are not arrays (results
    of a solve) are replaced by the default.
    """
    guess = guess or Guess()
    values = guessed_parameters(problem, guess)
    parameters = {name: _random_number(limits, values[name], rng) for name, limits in problem.parameter_ranges.items()}
    phases: dict[str, PhaseGuess] = {}
    before = 0.0
    for phase in problem.phases:
        trajectory = guess.phases.get(phase.name)
        if phase.start is not None and trajectory is None:
            phases[phase.name] = phase.start(parameters, rng)
            before = phases[phase.name].tf
            continue
        phases[phase.name] = _perturbed_trajectory(
            phase, trajectory if isinstance(trajectory, SampledTrajectory) else None, before, rng
        )
        before = phases[phase.name].tf
    return Guess(phases, parameters)


def _perturbed_trajectory(
    phase: Phase, stated_trajectory: SampledTrajectory | None, before: float, rng: np.random.Generator
) -> SampledTrajectory:
    default = default_trajectory(phase, stated_trajectory, before)
    fractions = np.linspace(0.0, 1.0, POINTS)
    values: dict[str, Floats] = dict(stated_trajectory.at(fractions)) if stated_trajectory else {}
    trajectories: Mapping[str, Floats] = {**default.at(fractions), **values}
    for v in (*phase.system.states, *phase.system.controls):
        low, high = phase.ranges[v.name]
        trajectory = trajectories[v.name]
        size = 0.5 * (high - low) if high - low <= WIDEST else max(1.0, float(np.abs(trajectory).max()))
        waves = rng.standard_normal((2, WAVES)) / np.arange(1, WAVES + 1)
        angles = math.pi * np.outer(np.arange(1, WAVES + 1), fractions)
        bump = waves[0] @ np.sin(angles)
        if v in phase.system.controls:
            bump += waves[1] @ np.cos(angles)
        values[v.name] = np.clip(trajectory + SIZE * size * bump, low, high)
    t0 = before if phase.t0_range is None else _random_number(phase.t0_range, default.t0, rng)
    tf = _random_number(phase.tf_range, default.tf, rng)
    if phase.guess_duration is not None:
        tf = float(np.clip(t0 + phase.guess_duration * LARGEST_FACTOR ** rng.uniform(-1.0, 1.0), *phase.tf_range))
    if not t0 < tf:  # the previous duration from there
        tf = t0 + default.tf - default.t0
    return SampledTrajectory(fractions, values, t0, tf)


def _random_number(limits: tuple[float, float], first: float, rng: np.random.Generator) -> float:
    low, high = limits
    share = rng.uniform(-1.0, 1.0)
    if high - low <= WIDEST:
        return 0.5 * (low + high) + 0.5 * share * (high - low)
    return float(np.clip(first + share * max(1.0, abs(first)) / 3.0, low, high))


def rolled(problem: TrajectoryProblem, guess: Guess) -> Guess:
    """The rollout of the guess; the guess itself if the rollout is beyond all bounds."""
    try:
        return rollout(problem, guess)
    except ProblemError:
        return guess


def _record(i: int, solution: Solution) -> StartRecord:
    return StartRecord(i, solution.status, solution.objective, solution.iterations)


def _better(solution: Solution, best: Solution) -> bool:
    """Whether a later start wins: by more than the solver's tolerance, so that one optimum counts once."""
    if solution.success != best.success:
        return solution.success
    first, second = (s.objective if s.success else s.violation for s in (solution, best))
    return not math.isfinite(second) or first < second - SAME * max(abs(first), abs(second))


def spread(records: Sequence[StartRecord]) -> str:
    """The number of solved starts, and the range of their objectives, in a sentence."""
    objectives = [record.objective for record in records if record.status.success]
    text = f"{len(objectives)} of {len(records)} starts were solved"
    return f"{text}, with objectives from {min(objectives):.6g} to {max(objectives):.6g}." if objectives else f"{text}."
