"""Solution of a trajectory problem with all options."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from designopt.collocation.solution.solution import PhaseSolution, Solution, Status
from designopt.collocation.solution.verification.between_points import (
    NOTICEABLE,
    ViolationBetweenPoints,
    oscillations,
    violations_between_points,
)
from designopt.collocation.solution.verification.equations import is_determined
from designopt.collocation.solution.verification.resimulate import resimulate
from designopt.collocation.solve.attempts import persist
from designopt.collocation.solve.guess.multistart import solve_from_starts, spread
from designopt.collocation.solve.guess.rollout import rollout
from designopt.collocation.solve.outcomes import against_ringing
from designopt.collocation.solve.program import Program, check_arguments
from designopt.collocation.solve.pulses import controls_with_pulses, without_pulses
from designopt.collocation.solve.refine import refine, with_errors
from designopt.collocation.statement.guess import Guess
from designopt.collocation.statement.mesh import Mesh
from designopt.collocation.statement.options import Options
from designopt.collocation.statement.problem import Phase, TrajectoryProblem
from designopt.collocation.transcription.functions.functions import ProblemFunctions
from designopt.interrupts import HostHandlers

#: Error estimate above which only its order of magnitude is correct (measured on the cart-pole).
COARSE = 1e-3
#: Error estimate above which an optimum may live on the errors of its mesh: a boat in a current crossed 25 % late, or
#: 4 % late, with pulses of a single interval (estimates 0.05).
WRONG = 1e-2
#: A run with a larger multiple of the sum of its segments' differences has left an unstable motion.
UNSTABLE = 1e3
#: Segments with a larger multiple of the estimate contradict it; smaller errors than SMALL are ignored.
DISAGREES, SMALL = 100.0, 1e-7


@HostHandlers()
def solve(
    problem: TrajectoryProblem,
    options: Options | None = None,
    guess: Guess | None = None,
    *,
    meshes: Sequence[Mesh] | None = None,
) -> Solution:
    """The solution of `problem` from `guess`: from several starts, by alternatives after a failure, then refined, then
    checked, according to the options.

    `meshes`, one per phase, are the first ones; the default are uniform ones of the options. A failed solve is a
    solution with its status and its last iterate. Raises `ProblemError` for invalid statements, bounds and guesses.
    """
    check_arguments(problem, options, guess, meshes)
    options = options or Options()
    begin = rollout(problem, guess) if options.rollout else guess
    program = Program(problem, options, begin, meshes=meshes)
    solution = solve_from_starts(program, guess, roll=options.rollout)
    if options.persistent:
        solution = persist(program, problem, guess, solution)
    if solution.success:
        solution = without_pulses(program, problem, solution)
    if solution.success and options.refinement is not None:
        solution = refine(program, solution, options.refinement, begin)
    if solution.starts:
        solution = replace(solution, message=f"{solution.message} {spread(solution.starts)}")
    if solution.success and options.check:
        solution = checked(problem, program.problem_functions, solution)
    return solution


def checked(problem: TrajectoryProblem, functions: ProblemFunctions, solution: Solution) -> Solution:
    """The solution of `problem` with all accuracy checks, also in its message.

    The error estimate of each interval, re-simulations with its controls, violations between the points: see
    `interval_errors`, `Resimulation` and `violations_between_points`.
    """
    begin = time.perf_counter()
    solution = with_errors(problem, solution)
    phases: dict[str, PhaseSolution] = {}
    ends: list[str] = []
    between: list[str] = []
    for phase, point in zip(problem.phases, functions.points, strict=True):
        phase_solution = solution.phases[phase.name]
        resimulation = resimulate(phase, phase_solution, solution.parameters)
        if resimulation.end < resimulation.times[-1]:
            ends.append(f" It diverges in {phase.name} after {resimulation.end:.6g} s.")
        violations = violations_between_points(phase, point, phase_solution, solution.parameters)
        between += [*_beyond(phase, violations), *_oscillating(phase_solution)]
        phases[phase.name] = replace(
            phase_solution,
            segment_errors=resimulation.segment_errors,
            resimulation_error=resimulation.error,
            path_violation_between_points=max((v.share for v in violations.values()), default=0.0),
        )
    largest = max(phase.resimulation_error for phase in phases.values())
    segments = max(float(phase.segment_errors.max()) for phase in phases.values())
    intervals = sum(len(phase.mesh) for phase in solution.phases.values())
    simulation_text = (
        f"re-simulation of the controls differs by {largest:.1e}, by {segments:.1e} when it restarts at every node."
    )
    if largest > UNSTABLE * max(intervals * segments, SMALL):
        simulation_text = (
            f"re-simulation of the controls differs by {segments:.1e} when it restarts at every node; the motion is"
            " unstable, so that a run over the whole of it leaves it and says nothing."
        )
    simulation_text += "".join(ends)
    text = f"Error estimate {solution.error_estimate:.1e}; {simulation_text} {_optimisation_error(solution)}"
    if math.isinf(solution.error_estimate):
        text += (
            " Between the points of the mesh the equations are not finite: the solution is not checked there; see the"
            " warnings."
        )
    elif solution.error_estimate > COARSE:
        text += " The mesh is coarse: take more intervals, or refine."
    elif segments > DISAGREES * max(solution.error_estimate, SMALL):
        text += (
            " The re-simulation does not agree with the estimate: a pulse or a switch lies between points; take more"
            " intervals, or refine."
        )
    doubts = tuple(
        f"{phase.name}: the algebraic equations do not determine {', '.join(v.name for v in phase.system.algebraic)}"
        " (a higher index): the checks take them from the solution and do not see their error"
        for phase in problem.phases
        if not is_determined(phase.system)
    )
    doubts += (*_wrong_mesh(solution), *_not_finite(solution), *between)
    timing = {**solution.timing, "check": time.perf_counter() - begin}
    return replace(
        solution,
        phases=phases,
        message=f"{solution.message} {text}",
        timing=timing,
        warnings=(*solution.warnings, *doubts),
    )


def _optimisation_error(solution: Solution) -> str:
    """A sentence; the error of a cost that is zero to all digits is absolute."""
    error = solution.optimisation_error
    if error > 1.0 or solution.objective == 0.0 != error:
        size = abs(solution.objective) or 1.0
        return f"The cost is zero to within its optimisation error of {error * size:.1e}."
    return f"Optimisation error {error:.1e}."


def _beyond(phase: Phase, violations: Mapping[str, ViolationBetweenPoints]) -> Iterator[str]:
    """Warnings about limits that are violated between the points of the mesh."""
    units = {v.name: v.unit for v in phase.system.states}
    units |= {f"path constraint '{name}'": constraint.unit for name, constraint in phase.path.items()}
    for name, violation in violations.items():
        if NOTICEABLE < violation.share < math.inf:
            amount = f"{violation.amount:.3g} {units[name]}".rstrip()
            yield (
                f"between_points: {name} of {phase.name} is violated by up to {amount} at {violation.time:.6g} s,"
                " between the points of the mesh, where no limit is imposed; take more intervals, or refine"
            )


def _oscillating(phase_solution: PhaseSolution) -> Iterator[str]:
    """Warnings about controls that oscillate with the mesh."""
    for o in oscillations(phase_solution):
        unit = f" {phase_solution.units[o.control]}".rstrip()
        violation = (
            f", and exceeds its bounds between the points by up to {o.beyond:.3g}{unit}" if o.beyond > 0.0 else ""
        )
        how = f"has {o.pulses} pulses of about an interval" if o.pulses else "turns in nearly every interval"
        yield (
            f"oscillating_control: {o.control} of {phase_solution.name} {how} from {o.begin:.6g} to"
            f" {o.end:.6g} s, by up to {o.swing:.3g}{unit}{violation}; {against_ringing(phase_solution, [o.control])}"
        )


def _wrong_mesh(solution: Solution) -> Iterator[str]:
    """Warnings about a mesh so coarse that the optimum may be one of its errors, or that pulses of a control leave
    unresolved."""
    if WRONG < solution.error_estimate < math.inf:
        yield (
            f"coarse_mesh: the error estimate is {solution.error_estimate:.2g}, and an optimum may live on such errors"
            " (pulses of an interval in a control); take more intervals, refine, give a guess of the controls, or try"
            " other guesses (starts)"
        )
    elif solution.status in (Status.MESH_UNRESOLVED, Status.REFINEMENT_STALLED):
        for name, phase in controls_with_pulses(solution).items():
            yield (
                f"local_optimum: {name} of {phase.name} jumps for single intervals of the mesh, which a refinement"
                " follows without end; most such optima are local; give a guess of it, or try other guesses (starts)"
            )


def _not_finite(solution: Solution) -> Iterator[str]:
    """Warnings about intervals on which the error could not be estimated, with the first times."""
    for phase in solution.phases.values():
        rows = np.flatnonzero(np.isinf(phase.error))
        if len(rows):
            times = phase.times[phase.mesh.bases]
            yield (
                f"error_estimate: infinite in {len(rows)} of {len(phase.mesh)} intervals of {phase.name}, first from"
                f" {times[rows[0]]:.6g} to {times[rows[0] + 1]:.6g} s: an equation is not finite between the points"
                " there (a table or a joint function that ends, a root of a negative number, algebraic equations"
                " without a solution); keep the states away from it by bounds, or take more intervals"
            )
