"""A trajectory problem as a nonlinear program, built once and solved any number of times."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from reprlib import repr as short
from typing import Any, Literal, get_args

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.interior.method import NAME as INTERIOR_POINT
from designopt.collocation.linear.library import NAME as LINEAR_SOLVER
from designopt.collocation.solution.optimality.singular import SingularArcs
from designopt.collocation.solution.reading import Reader, SolutionReader
from designopt.collocation.solution.solution import Arc, Iterate, PhaseSolution, Solution, Status, versions
from designopt.collocation.solution.sparsity import Sparsity, sparsity
from designopt.collocation.solve.guess.initial_point import initial_point
from designopt.collocation.solve.invalid import invalid_number
from designopt.collocation.solve.ipopt import ADAPTIVE, COLD, WARM, Start, check_settings, linear_solver
from designopt.collocation.solve.optimisation_error import finished
from designopt.collocation.solve.outcomes import (
    ADAPTIVE_BARRIER,
    SMALL_TIMES,
    WORTH,
    Way,
    first_success,
    wide_durations,
    with_message,
)
from designopt.collocation.solve.over_constrained import over_constrained, without_idle_rows
from designopt.collocation.solve.scaling import Conditioning, conditioning, scales
from designopt.collocation.solve.solver import End, Solver
from designopt.collocation.solve.tables import beyond_tables
from designopt.collocation.statement.guess import Guess
from designopt.collocation.statement.mesh import Mesh
from designopt.collocation.statement.options import Options
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.transcription.boxes import ProgramBounds, boxes
from designopt.collocation.transcription.functions.functions import (
    ProblemFunctions,
    state,
    unlinked_warnings,
    with_compiled,
)
from designopt.collocation.transcription.functions.nonsmooth import nonsmooth_warnings
from designopt.collocation.transcription.functions.program_variants import check_expressions
from designopt.collocation.transcription.layout import Layout, layout
from designopt.collocation.transcription.transcription import Transcription, transcribe
from designopt.interrupts import HostHandlers

Warm = Literal["none", "near", "primal", "full"]
WARM_STARTS = get_args(Warm)

#: Size of the cost at the guess up to which it is not scaled, because it says nothing about the size at the optimum. A
#: larger cost is divided by its size, so that the solver's absolute tolerance is relative.
NO_COST = 1e-6

CONSTANT_COST = (
    "constant_cost: the cost has the same value for every trajectory: the solution is feasible, "
    "and nothing is optimised"
)
#: Statuses for which a wide range of a free duration is a likely cause.
WITH_WIDE_DURATIONS = WORTH | {Status.DIVERGING, Status.TIME_LIMIT}
#: Maximum scaled step of a solve whose guess counts as stationary; it may be no minimum.
UNMOVED = 1e-4
#: Scaled distance of the restart from such a guess, and the relative decrease of the cost for which its result counts.
BESIDE, LOWER = 0.1, 1e-6
#: Scale of free times after a failure, as a share of the guessed duration: with it, inertia corrections change times
#: little.
SHARE_OF_DURATION = 0.005


@dataclass(eq=False)
class Variant:
    """A `problem` with the expressions of a program, and the common data of its solves: limits, the fields of solutions
    that do not depend on their values, and, once computed, the scaled initial variables (n,) without a guess."""

    problem: TrajectoryProblem
    bounds: ProgramBounds
    reader: SolutionReader
    start: Floats | None = None


class Program:
    """The program of `problem` on `meshes` (one per phase; by default uniform ones of the options).

    Boxes, limits, data and fixed times may change from solve to solve; expressions and meshes may not. Scales follow
    from the boxes of `problem` and from `guess`. Raises `ProblemError` for statements that cannot be solved.
    """

    @HostHandlers()
    def __init__(
        self,
        problem: TrajectoryProblem,
        options: Options | None = None,
        guess: Guess | None = None,
        *,
        meshes: Sequence[Mesh] | None = None,
        problem_functions: ProblemFunctions | None = None,
    ) -> None:
        begin = time.perf_counter()
        check_arguments(problem, options, guess, meshes)
        options = options or Options()
        if options.ipopt:
            check_settings(options.ipopt)
        self.problem, self.options = problem, options
        functions = problem_functions or state(problem, residual=options.residual_for(problem))
        ready = time.perf_counter()
        # a caller that passes functions has compiled them, if its number of solves is worth it
        self.problem_functions = problem_functions or with_compiled(functions, options, options.starts)
        compile_end = time.perf_counter()
        if meshes is None:
            scheme = options.scheme_for(problem)
            meshes = [Mesh.uniform(scheme, options.intervals, phase.pieces.values()) for phase in problem.phases]
        self.meshes = self.problem_functions.meshes(meshes)
        program_layout = layout(
            problem,
            self.problem_functions.points,
            self.meshes,
            self.problem_functions.integral_variables,
            self.problem_functions.samples,
        )
        guess = guess or Guess()
        program_bounds = boxes(self.problem_functions, problem, program_layout, ())
        self._reader = Reader(self.problem_functions, program_layout)
        x = self._first(problem, program_layout, program_bounds, guess)
        scale, shift = scales(self.problem_functions, program_layout, program_bounds, x, options.scales)
        cost = self._reader.cost(x, program_bounds.parameters)
        cost_scale = 1.0 / abs(cost) if math.isfinite(cost) and abs(cost) > NO_COST else 1.0
        self.transcription = transcribe(self.problem_functions, self.meshes, scale, shift, cost_scale, program_layout)
        build_time = time.perf_counter() - compile_end
        self.timing = {"model": ready - begin, "compile": compile_end - ready, "build": build_time}
        self._solver = Solver(self.transcription, options)
        self._conditioning: Conditioning | None = None
        self._variant: Variant | None = None  # the last one
        # functions and the solver keep their work in memory that threads must not share
        self._lock = threading.Lock()

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the problem's expressions, and about phases without a link."""
        return (
            *nonsmooth_warnings(self.problem_functions),
            *unlinked_warnings(self.problem, self.problem_functions.ends),
        )

    @cached_property
    def sparsity(self) -> Sparsity:
        """Sparsity patterns of the derivatives of the program."""
        return sparsity(self.transcription)

    @cached_property
    def _singular_arcs(self) -> SingularArcs:
        return SingularArcs(self.transcription)

    @cached_property
    def _linear_solver(self) -> str:
        return linear_solver(self.options)

    def solve(
        self,
        problem: TrajectoryProblem | None = None,
        guess: Guess | None = None,
        *,
        warm: Warm = "none",
        previous: Solution | None = None,
    ) -> Solution:
        """Solves the program with the numbers of `problem`, which has the same expressions as the program's own.

        The solve starts from `guess`; or from the `previous` solution of this program, with its variables alone
        (`warm` primal) or with its multipliers (full); or from that of a program on other meshes, without multipliers
        but with the small barrier parameter of a warm start (near), so that the solver stays in its local optimum. A
        failed solve without `warm` is repeated by IPOPT with an adaptive barrier, then with small scales of free times,
        unless the options are not persistent or state a `mu_strategy` of IPOPT; `Solution.attempts` lists all. A failed
        solve is a solution with its status.

        The program calls the functions of a statement only when it is built, and reads the numbers of a problem once:
        later changes of either have no effect. Another problem (`dataclasses.replace`) has other numbers. Threads that
        solve one program wait for each other. Raises `ProblemError` for invalid numbers and for other expressions.
        """
        solution = self.attempt(problem, guess, warm=warm, previous=previous)
        used_up = solution.iterations >= self.options.max_iterations
        if warm != "none" or used_up or not self.options.persistent or "mu_strategy" in self.options.ipopt:
            return solution
        return first_success(solution, self._other_ways(problem or self.problem, guess, previous, solution))

    def _other_ways(
        self, problem: TrajectoryProblem, guess: Guess | None, previous: Solution | None, failure: Solution
    ) -> Iterator[tuple[str, Way]]:
        """The attempts after a `failure`, within the iterations and the time that are left."""
        options, iterations, seconds = self.options, failure.iterations, failure.timing["solve"]
        adaptive_failure: Solution | None = None

        def with_adaptive_barrier() -> tuple[Solution, ...]:
            nonlocal adaptive_failure
            start = ADAPTIVE._replace(iterations=iterations, seconds=seconds)
            adaptive_failure = self.attempt(problem, guess, previous=previous, cold=start)
            return (adaptive_failure,)

        yield ADAPTIVE_BARRIER, with_adaptive_barrier
        if adaptive_failure is not None:
            iterations, seconds = iterations + adaptive_failure.iterations, seconds + adaptive_failure.timing["solve"]
        limit = None if options.time_limit is None else options.time_limit - seconds
        first_guess = guess or (Guess.from_solution(previous) if previous else None)
        times = self._small_scales_of_times(problem, first_guess)
        if (
            iterations < options.max_iterations
            and (limit is None or limit > 0.0)
            and times.keys() - options.scales.keys()
        ):
            left = replace(
                options,
                scales={**times, **options.scales},
                max_iterations=options.max_iterations - iterations,
                time_limit=limit,
            )
            yield SMALL_TIMES, lambda: (self.attempt_with(left, problem, first_guess),)

    def _small_scales_of_times(self, problem: TrajectoryProblem, guess: Guess | None) -> dict[str, float]:
        """The scales (s) of free times by name: a share of the shortest guessed duration of a phase with one."""
        layouts = self.transcription.layout.phases
        program_bounds = boxes(self.problem_functions, problem, self.transcription.layout, self.transcription.blocks)
        x = self._first(problem, self.transcription.layout, program_bounds, guess or Guess())
        durations = [
            self._reader.phase(i, x, program_bounds.parameters).duration
            for i, phase_layout in enumerate(layouts)
            if phase_layout.times
        ]
        shortest = min((duration for duration in durations if duration > 0.0), default=0.0)
        names = {name for phase_layout in layouts for name in phase_layout.times} if shortest else ()
        return dict.fromkeys(names, SHARE_OF_DURATION * shortest)

    def attempt_with(self, options: Options, problem: TrajectoryProblem, guess: Guess | None) -> Solution:
        """`attempt` with other `options` of the same mesh; the result is in the scales of this program."""
        with self._lock:
            program = Program(problem, options, guess, meshes=self.meshes, problem_functions=self.problem_functions)
            solution = program.attempt(guess=guess)
        return replace(solution, iterate=_in_scales_of(solution.iterate, program.transcription, self.transcription))

    @HostHandlers()
    def attempt(
        self,
        problem: TrajectoryProblem | None = None,
        guess: Guess | None = None,
        *,
        warm: Warm = "none",
        previous: Solution | None = None,
        cold: Start = COLD,
    ) -> Solution:
        """`solve` without a second attempt after a failure; without `warm` with the settings of `cold`."""
        _check_guess(guess)
        with self._lock:
            return self._solve(problem or self.problem, guess, warm, previous, cold)

    def _solve(
        self, problem: TrajectoryProblem, guess: Guess | None, warm: Warm, previous: Solution | None, cold: Start
    ) -> Solution:
        variant = self._variant_of(problem)
        if warm not in WARM_STARTS:
            raise ValueError(f"warm must be one of {', '.join(WARM_STARTS)}, not '{warm}'")
        if warm != "none" and previous is None:
            raise ValueError(f"warm is '{warm}', but there is no previous solution")
        if previous is not None and warm in ("primal", "full"):
            self._check_size(previous)
            x = previous.iterate.x
        else:
            x = self._start(variant, guess or (Guess.from_solution(previous) if previous else None))
        # the result of a solve has passed the test for stationary points
        from_guess = previous is None and (
            guess is None or not any(isinstance(c, PhaseSolution) for c in guess.phases.values())
        )
        multipliers = previous.iterate if warm == "full" and previous else None
        if warm == "near":
            multipliers = Iterate(x, np.zeros(len(self.transcription.row_scale)), np.zeros(len(x)))
        return self._run(variant, x, multipliers, cold, from_guess)

    def _variant_of(self, problem: TrajectoryProblem) -> Variant:
        """The variant with the numbers of `problem`; that of the last solve, if it is the same problem."""
        if self._variant is None or self._variant.problem is not problem:
            if problem is not self.problem:
                check_expressions(self.problem_functions, problem)
            transcription = self.transcription
            bounds = boxes(self.problem_functions, problem, transcription.layout, transcription.blocks)
            self._variant = Variant(problem, bounds, SolutionReader(self._reader, problem, transcription, bounds))
        return self._variant

    def _start(self, variant: Variant, guess: Guess | None) -> Floats:
        """The scaled variables (n,) at `guess`."""
        if guess is None and variant.start is not None:
            return variant.start
        transcription = self.transcription
        x = self._first(variant.problem, transcription.layout, variant.bounds, guess or Guess())
        x = (x - transcription.shift) / transcription.scale
        if guess is None and not any(phase.start for phase in variant.problem.phases):
            variant.start = x
        return x

    def _check_size(self, previous: Solution) -> None:
        transcription = self.transcription
        of_program = len(transcription.scale), len(transcription.row_scale)
        sizes = len(previous.iterate.x), len(previous.iterate.constraint_multipliers)
        if sizes != of_program:
            text = (
                f"has {sizes[0]} variables and {sizes[1]} equations, this program {of_program[0]} and {of_program[1]}:"
                " it belongs to another program; give it as a guess (Guess.from_solution)"
            )
            raise ProblemError("bad_guess", "previous", text)

    def _first(self, problem: TrajectoryProblem, layout: Layout, bounds: ProgramBounds, guess: Guess) -> Floats:
        """All variables (n,) at the guess, not scaled; integrals have their values there."""
        x = initial_point(self.problem_functions, problem, layout, bounds, guess)
        for phase in sorted({phase for phase, _ in layout.integrals}):
            values = self._reader.phase(phase, x, bounds.parameters).integrals
            for number, value in enumerate(values.tolist()):
                if (phase, number) in layout.integrals:
                    x[layout.integrals[phase, number]] = np.nan_to_num(value)
        return x

    def _run(self, variant: Variant, x: Floats, warm: Iterate | None, cold: Start, from_guess: bool) -> Solution:
        transcription, bounds = self.transcription, variant.bounds
        if self._conditioning is None:
            self._conditioning = conditioning(transcription, x, bounds.parameters)
        active_bounds, remark = bounds, ""
        if bounds.equality_count > bounds.free_count:
            x = np.clip(x, *self._solver.transcription.box(bounds))
            active_bounds = without_idle_rows(transcription, bounds, self._solver.rows(x, bounds))
            remark = over_constrained(variant.problem, active_bounds)
        arcs: tuple[Arc, ...] = ()
        if remark:
            rows = self._solver.rows(x, bounds)
            iterate = Iterate(x, np.zeros(len(rows)), np.zeros(len(x)))
            end = End(iterate, rows, Status.OVER_CONSTRAINED, {}, 0.0)
        else:
            end = self._solver.run(active_bounds, x, warm, cold if warm is None else WARM)
            if from_guess and end.status is Status.SOLVED and float(np.abs(end.iterate.x - x).max()) <= UNMOVED:
                beside = self._solved_from_neighbour(active_bounds, end)
                if beside is not end:
                    end, remark = beside, "The guess is a stationary point but not a minimum: restarted beside it."
            end, arcs = self._continued_end(active_bounds, end)
        begin = time.perf_counter()
        variables = transcription.shift + transcription.scale * end.iterate.x
        if end.status is Status.INVALID_NUMBER:
            remark = invalid_number(self._reader, variables, bounds.parameters) or (
                "All functions are finite at the last iterate: they are not at a point that the solver tried."
            )
        elif end.status is Status.FAILED:
            remark = f"IPOPT reports {end.stats['return_status']}."
        elif end.status in WITH_WIDE_DURATIONS:
            remark = wide_durations(variant.problem.phases)
        timing = {**self.timing, "solve": end.seconds, "check": 0.0}
        facts = {
            "optimisation_error": end.error,
            "singular_arcs": arcs,
            "warnings": (
                *self.warnings,
                *self._conditioning.warnings,
                *([CONSTANT_COST] if transcription.constant_cost else []),
                *(beyond_tables(self._reader, variables, bounds.parameters) if end.status.success else ()),
            ),
            "scaling_range": (self._conditioning.smallest, self._conditioning.largest),
            "solver": self._solver_name(end),
            "versions": versions(),
            "seed": self.options.seed,
            "timing": timing,
        }
        with np.errstate(all="ignore"):  # the last iterate of a failed solve may contain any numbers
            solution = variant.reader.solution(end, variables, facts)
        timing["read"] = time.perf_counter() - begin
        return with_message(solution, self.options, remark)

    def _solver_name(self, end: End) -> str:
        if end.run is not None:
            return f"{INTERIOR_POINT}, exact hessian, {LINEAR_SOLVER}"
        return f"ipopt, {self.options.hessian} hessian, {self._linear_solver}"

    def _continued_end(self, bounds: ProgramBounds, end: End) -> tuple[End, tuple[Arc, ...]]:
        """`end` with its optimisation error, continued if that is too large, and its singular arcs."""
        if not end.status.success:
            return end, ()
        arcs = self._singular_arcs.at(bounds, end.iterate, end.rows, end.cost / self.transcription.cost_scale)
        return finished(self._solver, bounds, end, flat=bool(arcs)), arcs

    def _solved_from_neighbour(self, bounds: ProgramBounds, first_end: End) -> End:
        """The better of `first_end`, at a guess that the solver did not leave, and of a solve from a point near it.

        The solver also ends at maxima and saddle points, where derivatives are zero; motions at rest often are such.
        """
        low, high = self._solver.transcription.box(bounds)
        if bounds.free_count <= bounds.equality_count:
            return first_end
        x = first_end.iterate.x
        x = np.clip(x + BESIDE * np.random.default_rng(0).standard_normal(len(x)), low, high)
        second_end = self._solver.run(bounds, x)
        better = second_end.status is Status.SOLVED and second_end.cost < first_end.cost - LOWER * max(
            1.0, abs(first_end.cost)
        )
        if better or second_end.status in (Status.DIVERGING, Status.CANCELLED):
            return replace(second_end, seconds=first_end.seconds + second_end.seconds)
        return first_end


def _in_scales_of(iterate: Iterate, before: Transcription, after: Transcription) -> Iterate:
    """The iterate of one program in the scales of another one with the same rows and columns."""
    of_cost = after.cost_scale / before.cost_scale
    return Iterate(
        (before.shift + before.scale * iterate.x - after.shift) / after.scale,
        iterate.constraint_multipliers * (after.row_scale / before.row_scale) * of_cost,
        iterate.bound_multipliers * (after.scale / before.scale) * of_cost,
    )


def check_arguments(problem: Any, options: Any, guess: Any, meshes: Any) -> None:
    """Raises `ProblemError` (bad_statement, bad_guess) for wrong types and too few meshes."""
    if not isinstance(problem, TrajectoryProblem):
        raise ProblemError("bad_statement", "problem", f"is {short(problem)}: give a TrajectoryProblem")
    if not isinstance(options, Options | None):
        raise ProblemError("bad_statement", "options", f"are {short(options)}: give Options(...), or none")
    _check_guess(guess)
    if meshes is None:
        return
    if not isinstance(meshes, Sequence) or not all(isinstance(mesh, Mesh) for mesh in meshes):
        raise ProblemError("bad_statement", "meshes", f"are {short(meshes)}: give a list with a Mesh for each phase")
    if (count := len(problem.phases)) != len(meshes):
        text = f"{len(meshes)} given for {count} phase{'s' if count > 1 else ''}: give one for each"
        raise ProblemError("bad_statement", "meshes", text)


def _check_guess(guess: Any) -> None:
    """Raises `ProblemError` (bad_guess) unless `guess` is a guess."""
    if not isinstance(guess, Guess | Solution | None):
        text = (
            f"is {short(guess)}: give a Guess, as Guess.from_solution(solution) or"
            " Guess({phase: sampled(times, values)})"
        )
        raise ProblemError("bad_guess", "guess", text)
