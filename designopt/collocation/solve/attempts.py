"""Alternative solves after a failed one, tried in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from designopt.collocation.solution.solution import Solution
from designopt.collocation.solve.guess.initial_point import default_trajectory
from designopt.collocation.solve.guess.multistart import perturbed, rolled
from designopt.collocation.solve.guess.rollout import rollout
from designopt.collocation.solve.ipopt import ADAPTIVE
from designopt.collocation.solve.outcomes import ADAPTIVE_BARRIER, Way, first_success
from designopt.collocation.solve.program import Program
from designopt.collocation.solve.scaling import WIDEST
from designopt.collocation.statement.guess import Guess, SampledTrajectory
from designopt.collocation.statement.mesh import Mesh
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.stated_values import Box

#: Intervals per interval of the coarse mesh, and its minimum number of intervals.
COARSER, FEWEST = 5, 4
#: Successive positions of the ends of phases, as shares of the way from the statement to the end of the guess's motion.
SHARES = (1.0, 0.75, 0.5, 0.25, 0.1)
#: Factors of the guessed free times.
TIMES = (0.3, 0.1, 3.0)
#: Number of perturbed guesses; every second one is a rollout.
STARTS = 6


def persist(program: Program, problem: TrajectoryProblem, guess: Guess | None, failure: Solution) -> Solution:
    """A solution of `problem`, a variant of that of `program`, by the first way that succeeds; else `failure`.

    In turn: rollout of the guessed controls; a coarse mesh first; unit scales for unbounded variables; the final values
    of the phases moved to the end of the rollout, and back in steps; other guesses of free times; perturbed guesses;
    an adaptive barrier. `Solution.attempts` records the attempts, and the message names the successful one. Ways that
    do not apply (no free times, a rollout beyond all bounds, a barrier of `Options.ipopt`) are skipped.
    """
    return first_success(failure, ways(program, problem, guess))


def ways(program: Program, problem: TrajectoryProblem, guess: Guess | None) -> Iterator[tuple[str, Way]]:
    """The ways by name, in their order."""
    if not program.options.rollout:
        yield "rollout", lambda: (program.attempt(problem, guess=rollout(problem, guess)),)
    yield "coarse mesh first", lambda: _from_coarse(program, problem, guess)
    yield "unit scales", lambda: (_with_unit_scales(program, problem, guess),)
    yield "final values moved", lambda: _with_moved_ends(program, problem, guess)
    if any(phase.free_times[1] for phase in problem.phases):
        for factor in TIMES:
            yield f"times guessed {factor:g} times", lambda f=factor: (_with_scaled_times(program, problem, guess, f),)  # type: ignore[misc]
    for i in range(1, STARTS + 1):
        yield f"start {i}", lambda i=i: (_from_start(program, problem, guess, i),)  # type: ignore[misc]
    if "mu_strategy" not in program.options.ipopt:
        yield ADAPTIVE_BARRIER, lambda: (program.attempt(problem, guess, cold=ADAPTIVE),)


def _from_coarse(program: Program, problem: TrajectoryProblem, guess: Guess | None) -> tuple[Solution, ...]:
    meshes = []
    for phase, mesh in zip(problem.phases, program.meshes, strict=True):
        meshes.append(Mesh.uniform(mesh.schemes[0], max(len(mesh) // COARSER, FEWEST), phase.pieces.values()))
    coarse = Program(
        problem, program.options, guess, meshes=meshes, problem_functions=program.problem_functions
    ).attempt(guess=guess)
    return (coarse, program.attempt(problem, guess=Guess.from_solution(coarse))) if coarse.success else (coarse,)


def _with_unit_scales(program: Program, problem: TrajectoryProblem, guess: Guess | None) -> Solution:
    """Solved with a scale of 1 for variables without a range; the result is in the scales of `program`."""
    names: set[str] = set()
    transcription = program.transcription
    points, layouts = transcription.problem_functions.points, transcription.layout.phases
    for point, layout, phase in zip(points, layouts, problem.phases, strict=True):
        names |= set(layout.times)
        names |= {name for name in point.names if not phase.ranges[name][1] - phase.ranges[name][0] <= WIDEST}
    options = replace(program.options, scales={**dict.fromkeys(names, 1.0), **program.options.scales})
    return program.attempt_with(options, problem, guess)


def _with_moved_ends(program: Program, problem: TrajectoryProblem, guess: Guess | None) -> tuple[Solution, ...]:
    start = begin = rollout(problem, guess)
    chain: list[Solution] = []
    for share in SHARES:
        chain.append(program.attempt(_with_moved_boxes(problem, begin, share), guess=start))
        if not chain[-1].success:
            return tuple(chain)
        start = Guess.from_solution(chain[-1])
    return (*chain, program.attempt(problem, guess=start))


def _with_moved_boxes(problem: TrajectoryProblem, motion: Guess, share: float) -> TrajectoryProblem:
    """`problem` with final boxes moved by a share of their distance to the end of a `motion`."""
    phases = []
    for phase in problem.phases:
        final: dict[str, Box] = dict(phase.final)
        values = motion.phases[phase.name].at(np.ones(1))
        for name in final.keys() & {v.name for v in phase.system.states}:
            low, high = phase.final_ranges[name]
            first_value = float(np.clip(values[name][0], *phase.ranges[name]))
            distance = share * (first_value - min(max(first_value, low), high))
            final[name] = (low + distance, high + distance) if low < high else low + distance
        phases.append(replace(phase, final=final))
    return replace(problem, phases=phases)


def _with_scaled_times(program: Program, problem: TrajectoryProblem, guess: Guess | None, factor: float) -> Solution:
    phases: dict[str, SampledTrajectory] = {}
    before, shift = 0.0, 0.0
    for phase in problem.phases:
        trajectory = (guess or Guess()).phases.get(phase.name)
        default = default_trajectory(phase, trajectory, before)
        before = default.tf
        fractions = default.fractions if trajectory is None else np.linspace(0.0, 1.0, 101)
        values = {**default.at(fractions), **(trajectory.at(fractions) if trajectory else {})}
        t0 = default.t0 + shift if phase.t0 is None else default.t0
        tf = float(np.clip(t0 + factor * (default.tf - default.t0), *phase.tf_range))
        phases[phase.name] = SampledTrajectory(fractions, values, t0, tf if t0 < tf else t0 + (default.tf - default.t0))
        shift = phases[phase.name].tf - default.tf
    return program.attempt(problem, guess=rolled(problem, Guess(phases, (guess or Guess()).parameters)))


def _from_start(program: Program, problem: TrajectoryProblem, guess: Guess | None, i: int) -> Solution:
    start = perturbed(problem, guess, np.random.default_rng([program.options.seed, i]))
    return program.attempt(problem, guess=rolled(problem, start) if i % 2 else start)
