"""Mesh refinement until the error estimate of every interval is below a tolerance.

Source: Patterson, Hager, Rao, "A ph mesh refinement method for optimal control", Optim. Control Appl. Meth. 36 (2015)
398-421, section 4, and its variant of fixed order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.solution import Attempt, PhaseSolution, Round, Solution, Status
from designopt.collocation.solution.verification.between_points import interval_errors, pulse_errors
from designopt.collocation.solution.verification.resimulate import segment_errors
from designopt.collocation.solve.program import Program
from designopt.collocation.solve.pulses import controls_with_pulses, without_pulses
from designopt.collocation.statement.guess import Guess
from designopt.collocation.statement.mesh import Mesh, Scheme, radau, refined
from designopt.collocation.statement.options import Refinement
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.transcription.functions.functions import ProblemFunctions

#: Share of the error beyond which a round has made no progress.
PROGRESS = 0.8
#: Number of successive rounds without progress that ends a refinement.
PATIENCE = 2
#: Maximum number of coarse places in a message.
LISTED = 3
#: Maximum number of parts of an interval per round.
MOST_PARTS = 5
#: A re-simulation of an interval agrees with the estimate if its error is at most this multiple of the tolerance.
AGREES = 10.0
#: Retries after a failed round, with settings of IPOPT: from its end; from the solution before it with a small barrier
#: parameter, or with an adaptive one; from the first guess.
RETRIES: Mapping[str, Mapping[str, float | str]] = {
    "from its end": {},
    "with a small barrier": {"mu_init": 1e-3},
    "with an adaptive barrier": {"mu_strategy": "adaptive"},
    "cold": {},
}
#: Relative increase of the objective in a round after which the controls are searched for pulses, until that does not
#: help.
WORSE = 1e-5
#: Relative difference of objectives above which the optima of rounds differ, unless the error estimate of the lower one
#: is larger.
ANOTHER = 1e-3
#: Errors are clipped at this multiple of the tolerance.
LARGEST = 1e9


def with_errors(problem: TrajectoryProblem, solution: Solution) -> Solution:
    """The solution with its error estimates."""
    phases, parameters = solution.phases, solution.parameters
    return _with(solution, {p.name: interval_errors(p, phases[p.name], parameters) for p in problem.phases})


def _with(solution: Solution, errors: Mapping[str, Floats]) -> Solution:
    """The solution with the `errors` (N,) of the intervals of each phase, and the largest of them."""
    phases = {name: replace(solution.phases[name], error=error) for name, error in errors.items()}
    return replace(solution, phases=phases, error_estimate=max(float(error.max()) for error in errors.values()))


def verified(problem: TrajectoryProblem, functions: ProblemFunctions, solution: Solution, tolerance: float) -> Solution:
    """The solution with larger errors where a re-simulation of its controls, or a search for pulses, does not agree."""
    errors = {}
    for phase, point in zip(problem.phases, functions.points, strict=True):
        phase_solution = solution.phases[phase.name]
        segments = segment_errors(phase, phase_solution, solution.parameters)
        largest = np.maximum(segments, pulse_errors(phase, point, phase_solution, solution.parameters))
        disagrees, error = largest > AGREES * tolerance, phase_solution.error
        errors[phase.name] = np.where(disagrees, np.maximum(error, largest), error)
    return _with(solution, errors)


def refine(program: Program, first: Solution, refinement: Refinement, start: Guess | None = None) -> Solution:
    """The solution of the program's problem on meshes refined as `refinement` requires, from the `first` solution.

    Each round starts from the solution before it and divides only the intervals whose error estimate is too large. When
    no estimate is, the intervals are re-simulated and searched for pulses; those that do not agree are divided further.
    A failed round is retried as in `RETRIES`, the last time from `start`, the first guess; `Solution.attempts` lists
    the retries. The result is the round with the smallest error, or a cancelled one. With the status
    REFINEMENT_STALLED the message names the intervals, with MESH_UNRESOLVED the remaining error.
    """
    problem, options = program.problem, program.options
    tolerance = refinement.tolerance
    solution = best = lowest = _with_error_estimate(program, first, tolerance)
    rounds = [Round(_intervals(solution), solution.error_estimate, solution.iterations)]
    timing, idle, smooths = dict(solution.timing), 0, True
    status, message, attempts = solution.status, solution.message, first.attempts
    while solution.error_estimate > tolerance:
        if len(rounds) > refinement.rounds:
            status = Status.MESH_UNRESOLVED
            message = f"{status.value} It is {best.error_estimate:.1e} after {refinement.rounds} rounds."
            break
        meshes = [
            finer_mesh(
                solution.phases[phase.name].mesh,
                solution.phases[phase.name].error,
                refinement,
                options.scheme_for(problem),
            )
            for phase in problem.phases
        ]
        result, round_attempts = _round(program, solution, meshes, start, smooths=smooths)
        smooths = smooths and not (_is_worse(result, solution) and controls_with_pulses(result))
        attempts += tuple(a._replace(way=f"round {len(rounds)} {a.way}") for a in round_attempts)
        result = replace(result, starts=first.starts, seed=first.seed, warm_path=first.warm_path)
        # these fields record the way to the first solution
        timing = {key: timing.get(key, 0.0) + seconds for key, seconds in result.timing.items()} | {
            key: seconds for key, seconds in timing.items() if key not in result.timing
        }
        if result.status is Status.CANCELLED:
            return replace(result, rounds=tuple(rounds), timing=timing, attempts=attempts)
        if not result.success:
            status = Status.MESH_UNRESOLVED
            text = f"round {len(rounds)} with {sum(map(len, meshes))} intervals ended with: {result.message}"
            message = f"{status.value} It is {best.error_estimate:.1e}; {text}"
            break
        result = _with_error_estimate(program, result, tolerance)
        rounds.append(Round(_intervals(result), result.error_estimate, result.iterations))
        idle = idle + 1 if result.error_estimate > PROGRESS * best.error_estimate else 0
        solution = result
        lowest = min(lowest, solution, key=lambda s: s.objective)
        best = solution if solution.error_estimate < best.error_estimate else best
        status, message = best.status, best.message
        if idle == PATIENCE and best.error_estimate > tolerance:
            status = Status.REFINEMENT_STALLED
            segments = too_coarse(best.phases, tolerance)
            others_text = f" and {len(segments) - LISTED} more" if len(segments) > LISTED else ""
            intervals = f"{'; '.join(segments[:LISTED])}{others_text}"
            message = f"{status.value} The estimate is {best.error_estimate:.1e}, above the tolerance in {intervals}."
            break
    best = replace(best, warnings=(*best.warnings, *_worse_optimum(best, lowest)))
    return replace(best, status=status, message=message, rounds=tuple(rounds), timing=timing, attempts=attempts)


def _is_worse(result: Solution, before: Solution) -> bool:
    return result.success and result.objective > before.objective + WORSE * abs(before.objective)


def _worse_optimum(best: Solution, lowest: Solution) -> Iterator[str]:
    """A warning if the objective of the result is worse than the lowest of all rounds, beyond the error of that."""
    if best.objective > lowest.objective + max(ANOTHER, lowest.error_estimate) * abs(lowest.objective):
        yield (
            f"worse_optimum: a coarser mesh of {_intervals(lowest)} intervals had the objective {lowest.objective:.6g}"
            f" with an error estimate of {lowest.error_estimate:.1e}, the refined one has {best.objective:.6g}: a local"
            " optimum; start from a guess of the controls, or try other guesses (starts)"
        )


def _with_error_estimate(program: Program, solution: Solution, tolerance: float) -> Solution:
    """The solution with its errors, verified once they are small."""
    solution = with_errors(program.problem, solution)
    if solution.error_estimate > tolerance:
        return solution
    return verified(program.problem, program.problem_functions, solution, tolerance)


def _round(
    program: Program, before: Solution, meshes: Sequence[Mesh], start: Guess | None, *, smooths: bool
) -> tuple[Solution, list[Attempt]]:
    """The round on finer `meshes` from the solution `before`, and its retries; the first failure if all fail. A round
    that is worse than before is solved from smooth controls if `smooths`."""
    problem, options, guess = program.problem, program.options, Guess.from_solution(before)
    finer = Program(problem, options, guess, meshes=meshes, problem_functions=program.problem_functions)
    result = finer.attempt(guess=guess)
    if smooths and _is_worse(result, before):
        result = without_pulses(finer, problem, result)
    if result.success or result.status is Status.CANCELLED or not options.persistent:
        return result, []
    attempts = [Attempt("as stated", result.status, result.iterations)]
    for way, settings in RETRIES.items():
        begin = {"from its end": Guess.from_solution(result), "cold": start}.get(way, guess)
        round_options = replace(options, ipopt={**settings, **options.ipopt})
        program_of_round = Program(
            problem, round_options, guess, meshes=meshes, problem_functions=program.problem_functions
        )
        attempt = program_of_round.attempt(guess=begin)
        attempts.append(Attempt(way, attempt.status, attempt.iterations))
        if attempt.success or attempt.status is Status.CANCELLED:
            return attempt, attempts
    return result, attempts


def finer_mesh(mesh: Mesh, errors: Floats, refinement: Refinement, first: Scheme) -> Mesh:
    """The mesh of the next round for the `errors` (N,) of its intervals; `first` is the scheme of the first mesh."""
    if refinement.method == "split":
        ratios = errors / refinement.tolerance
        return refined(mesh, [_parts(r, s.estimate_order) for r, s in zip(ratios, mesh.schemes, strict=True)])
    nodes, schemes = [], []
    for (a, b), scheme, error in zip(itertools.pairwise(mesh.nodes), mesh.schemes, errors, strict=True):
        degree, parts = _degree_and_parts(scheme.degree, float(error), refinement, first.degree)
        nodes += np.linspace(a, b, parts, endpoint=False).tolist()
        schemes += [radau(degree)] * parts
    return Mesh(np.array([*nodes, 1.0]), tuple(schemes))


def _degree_and_parts(degree: int, error: float, refinement: Refinement, least: int) -> tuple[int, int]:
    """Degree and number of the parts of an interval."""
    if error <= refinement.tolerance:
        return degree, 1
    added_degree = math.ceil(math.log(min(error / refinement.tolerance, LARGEST)) / math.log(max(degree, 2)))
    if degree + added_degree <= refinement.max_degree:
        return degree + added_degree, 1
    return least, min(max(math.ceil((degree + added_degree) / least), 2), MOST_PARTS)


def _parts(ratio: float, order: int) -> int:
    """Number of parts of an interval whose error is `ratio` times the tolerance."""
    if ratio <= 1.0:
        return 1
    return int(np.clip(math.ceil(min(ratio, LARGEST) ** (1.0 / order)), 2, MOST_PARTS))


def too_coarse(phases: Mapping[str, PhaseSolution], tolerance: float) -> list[str]:
    """The times between which the estimate is above `tolerance`; neighbouring intervals are merged."""
    segments = []
    for phase in phases.values():
        times = phase.times[phase.mesh.bases]
        above = np.concatenate([[False], phase.error > tolerance, [False]])
        begins, ends = np.flatnonzero(above[1:] & ~above[:-1]), np.flatnonzero(above[:-1] & ~above[1:])
        segments += [f"{phase.name} {times[a]:.6g} to {times[b]:.6g} s" for a, b in zip(begins, ends, strict=True)]
    return segments


def _intervals(solution: Solution) -> int:
    return sum(len(phase.mesh) for phase in solution.phases.values())
