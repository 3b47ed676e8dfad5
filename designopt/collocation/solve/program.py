"""A trajectory problem as a nonlinear program, built once and solved any number of times."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from designopt.collocation.solution.reading import Reader, read_solution
from designopt.collocation.solution.solution import Iterate, PhaseSolution, Solution
from designopt.collocation.solution.status import OF_SOLVER, Status
from designopt.collocation.solution.versions import versions
from designopt.collocation.solve.conditioning import Conditioning, conditioning
from designopt.collocation.solve.initial_point import initial_point
from designopt.collocation.solve.interrupt import Stopping
from designopt.collocation.solve.invalid import invalid_number
from designopt.collocation.solve.ipopt import ipopt
from designopt.collocation.solve.outcomes import told
from designopt.collocation.solve.over_constrained import equations, free_variables, over_constrained, without_idle_rows
from designopt.collocation.statement.guess import Guess
from designopt.collocation.statement.options import Options
from designopt.collocation.statement.problem import ProblemError, TrajectoryProblem
from designopt.collocation.transcription.boxes import Boxes, boxes
from designopt.collocation.transcription.compiled import with_compiled
from designopt.collocation.transcription.functions import Statement, state
from designopt.collocation.transcription.layout import Layout, layout
from designopt.collocation.transcription.mesh import Mesh
from designopt.collocation.transcription.nonsmooth import nonsmooth_warnings
from designopt.collocation.transcription.scaling import scales
from designopt.collocation.transcription.transcription import transcribe
from designopt.collocation.transcription.variant import check_expressions
from designopt.lazy import casadi as ca

Vector = NDArray[np.float64]
Warm = Literal["none", "primal", "full"]

#: The cost is divided by its size at the guess, which makes the solver's absolute tolerance one relative to it, unless
#: that is smaller than this: then it tells nothing of the size at the optimum.
NO_COST = 1e-6

#: A guess from which no scaled variable moves by more than this may be stationary without being a minimum.
UNMOVED = 1e-4
#: So far beside it, in scaled variables, the search restarts; to count, it has to find a cost lower by this.
BESIDE, LOWER = 0.1, 1e-6


class Program:
    """The program of `problem` on `meshes` (one per phase; else uniform ones of the options).

    Boxes, limits, data and fixed times may change from solve to solve; expressions and meshes may not. Scales follow
    from the boxes of `problem` and from `guess`. Raises `ProblemError` for statements that cannot be solved.
    """

    def __init__(
        self,
        problem: TrajectoryProblem,
        options: Options | None = None,
        guess: Guess | None = None,
        *,
        meshes: Sequence[Mesh] | None = None,
        statement: Statement | None = None,
    ) -> None:
        begin = time.perf_counter()
        options = options or Options()
        self.problem, self.options = problem, options
        stated = statement or state(problem, residual=options.residual_for(problem))
        ready = time.perf_counter()
        # a statement that is given was compiled by the one who knows how often it will be solved
        self.statement = statement or with_compiled(stated, options, options.starts)
        compiled = time.perf_counter()
        if meshes is None:
            meshes = [Mesh.uniform(options.scheme_for(problem), options.intervals) for _ in problem.phases]
        self.meshes = self.statement.meshes(meshes)
        places = layout(problem, self.statement.points, self.meshes, self.statement.kept)
        guess = guess or Guess()
        given = boxes(self.statement, problem, places, ())
        self._reader = Reader(self.statement, places)
        x = self._first(problem, places, given, guess)
        scale, shift = scales(self.statement, places, given, x, options.scales)
        cost = self._reader.cost(x, given.parameters)
        cost_scale = 1.0 / abs(cost) if math.isfinite(cost) and abs(cost) > NO_COST else 1.0
        self.transcription = transcribe(self.statement, self.meshes, scale, shift, cost_scale, places)
        built = time.perf_counter() - compiled
        self.timing = {"model": ready - begin, "compile": compiled - ready, "build": built}
        self._solvers: dict[tuple[bool, bool], tuple[Any, Any]] = {}
        self._conditioning: Conditioning | None = None
        # functions and the solver keep their work in memory that threads must not share
        self._lock = threading.Lock()

    @cached_property
    def _nlp(self) -> dict[str, Any]:
        made = self.transcription
        x, p = ca.MX.sym("x", made.layout.size), ca.MX.sym("p", made.parameter_size)
        return {"x": x, "p": p, "f": made.objective(x, p), "g": made.constraints(x, p)}

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What is doubtful about the problem's expressions."""
        return nonsmooth_warnings(self.statement)

    def _solver(self, *, warm: bool, watched: bool) -> tuple[Any, Any]:
        """IPOPT for this program and, if it is to be `watched`, what watches its iterations."""
        if (warm, watched) not in self._solvers:
            begin = time.perf_counter()
            self._solvers[warm, watched] = ipopt(
                self.transcription, self._nlp, self.options, warm=warm, watched=watched
            )
            self.timing["build"] += time.perf_counter() - begin
        return self._solvers[warm, watched]

    def solve(
        self,
        problem: TrajectoryProblem | None = None,
        guess: Guess | None = None,
        *,
        warm: Warm = "none",
        previous: Solution | None = None,
    ) -> Solution:
        """Solve for the numbers of `problem`, which states the same expressions as the program's own.

        From `guess`; or from the `previous` solution of this program, its variables alone (`warm` primal) or with its
        multipliers (full). A failed solve is a solution with its status; raises `ProblemError` for bad numbers and for
        other expressions. Functions are called when a program is built: numbers that they take from elsewhere stay.
        Threads that solve one program wait for each other.
        """
        with self._lock:
            return self._solve(problem or self.problem, guess, warm, previous)

    def _solve(
        self, problem: TrajectoryProblem, guess: Guess | None, warm: Warm, previous: Solution | None
    ) -> Solution:
        made = self.transcription
        if problem is not self.problem:
            check_expressions(self.statement, problem)
        given = boxes(self.statement, problem, made.layout, made.blocks)
        if warm not in get_args(Warm):
            raise ValueError(f"warm is '{warm}', not one of {', '.join(get_args(Warm))}")
        if warm != "none" and previous is None:
            raise ValueError(f"warm is '{warm}', but there is no previous solution")
        if previous is not None and warm != "none":
            self._check_size(previous)
        if previous is not None and warm != "none":
            x = previous.iterate.x
        else:
            start = guess or (Guess.of(previous) if previous else Guess())
            x = (self._first(problem, made.layout, given, start) - made.shift) / made.scale
        # the result of a solve is known to be more than stationary
        guessed = previous is None and not any(isinstance(c, PhaseSolution) for c in (guess or Guess()).phases.values())
        return self._run(problem, given, x, previous.iterate if warm == "full" and previous else None, guessed)

    def _check_size(self, previous: Solution) -> None:
        made = self.transcription
        of_program = len(made.scale), len(made.row_scale)
        given = len(previous.iterate.x), len(previous.iterate.constraint_multipliers)
        if given != of_program:
            text = (
                f"has {given[0]} variables and {given[1]} equations, this program {of_program[0]} and {of_program[1]}:"
                " it is of another program; give it as a guess (Guess.of)"
            )
            raise ProblemError("bad_guess", "previous", text)

    def _first(self, problem: TrajectoryProblem, places: Layout, given: Boxes, guess: Guess) -> Vector:
        """All variables (n,) at the guess, not scaled; integrals have the values that it gives them."""
        x = initial_point(self.statement, problem, places, given, guess)
        for phase in sorted({phase for phase, _ in places.integrals}):
            values = self._reader.phase(phase, x, given.parameters).integrals
            for number, value in enumerate(values.tolist()):
                if (phase, number) in places.integrals:
                    x[places.integrals[phase, number]] = np.nan_to_num(value)
        return x

    def _run(
        self, problem: TrajectoryProblem, given: Boxes, x: Vector, warm: Iterate | None, guessed: bool
    ) -> Solution:
        made = self.transcription
        if self._conditioning is None:
            self._conditioning = conditioning(made, x, given.parameters)
        asked = given
        if equations(given) > free_variables(given):
            x = np.clip(x, (given.low - made.shift) / made.scale, (given.high - made.shift) / made.scale)
            asked = without_idle_rows(made, given, x, self._rows(x, given))
        more = over_constrained(problem, asked)
        if more:
            rows = self._rows(x, given)
            iterate = Iterate(x, np.zeros(len(rows)), np.zeros(len(x)))
            end = _End(iterate, rows, Status.OVER_CONSTRAINED, {}, 0.0)
        else:
            end = self._solved(asked, x, warm)
            if guessed and end.status is Status.SOLVED and float(np.abs(end.iterate.x - x).max()) <= UNMOVED:
                beside = self._solved_from_beside(asked, end)
                if beside is not end:
                    end, more = beside, "The guess is a stationary point that is no minimum: restarted beside it."
        begin = time.perf_counter()
        timing = {**self.timing, "solve": end.seconds, "check": 0.0}
        with np.errstate(all="ignore"):  # the last iterate of a failed solve may hold anything
            found = read_solution(
                self._reader, problem, made, given, end.iterate, end.rows, end.status, end.stats, timing
            )
        if end.status is Status.INVALID_NUMBER:
            more = invalid_number(self._reader, made.shift + made.scale * end.iterate.x, given.parameters) or (
                "All functions are finite at the last iterate: it happened at a point that the search tried."
            )
        elif end.status is Status.FAILED:
            more = f"IPOPT says {end.stats['return_status']}."
        found = replace(
            found,
            warnings=(*self.warnings, *self._conditioning.warnings),
            scaling_range=(self._conditioning.smallest, self._conditioning.largest),
            solver=f"ipopt, {self.options.hessian} hessian, mumps",
            versions=versions(),
            seed=self.options.seed,
            timing={**timing, "read": time.perf_counter() - begin},
        )
        return told(found, self.options, more)

    def _solved(self, given: Boxes, x: Vector, warm: Iterate | None) -> _End:
        made = self.transcription
        solver, watch = self._solver(warm=warm is not None, watched=Stopping.possible())
        arguments = {
            "x0": x,
            "p": given.parameters,
            "lbx": (given.low - made.shift) / made.scale,
            "ubx": (given.high - made.shift) / made.scale,
            "lbg": given.row_low / made.row_scale,
            "ubg": given.row_high / made.row_scale,
        }
        if warm is not None:
            arguments |= {"lam_x0": warm.bound_multipliers, "lam_g0": warm.constraint_multipliers}
        begin = time.perf_counter()
        with Stopping() as stopping:
            if watch is not None:
                watch.stopping = stopping
            result = solver(**arguments)
        seconds = time.perf_counter() - begin
        if stopping.raised is not None:
            raise stopping.raised
        stats = solver.stats()
        status = OF_SOLVER.get(stats["return_status"], Status.FAILED)
        if stopping.requested:
            status = Status.CANCELLED
        x, constraint_multipliers, bound_multipliers, rows = (
            np.asarray(result[key], float).ravel() for key in ("x", "lam_g", "lam_x", "g")
        )
        if status in (Status.INVALID_NUMBER, Status.FAILED):  # the solver has none, then
            rows = self._rows(x, given)
        if status is Status.LOCALLY_INFEASIBLE and self._feasible(rows, given):  # it could not go on, no more than that
            status = Status.STALLED
        return _End(Iterate(x, constraint_multipliers, bound_multipliers), rows, status, stats, seconds)

    def _solved_from_beside(self, given: Boxes, found: _End) -> _End:
        """What is found from beside a guess that the solver did not move from, if that is better; else the same.

        The solver ends where derivatives are zero, at a maximum or a saddle too: motions at rest often are.
        """
        made = self.transcription
        low, high = (given.low - made.shift) / made.scale, (given.high - made.shift) / made.scale
        if free_variables(given) <= equations(given):
            return found
        x = found.iterate.x
        x = np.clip(x + BESIDE * np.random.default_rng(0).standard_normal(len(x)), low, high)
        again = self._solved(given, x, None)
        costs = [float(made.objective(end.iterate.x, given.parameters)) for end in (found, again)]
        better = again.status is Status.SOLVED and costs[1] < costs[0] - LOWER * max(1.0, abs(costs[0]))
        if better or again.status in (Status.DIVERGING, Status.CANCELLED):
            return replace(again, seconds=found.seconds + again.seconds)
        return found

    def _feasible(self, rows: Vector, given: Boxes) -> bool:
        scale = self.transcription.row_scale
        missed = np.maximum(given.row_low / scale - rows, rows - given.row_high / scale)
        return float(missed.max(initial=0.0)) <= max(self.options.tolerance, 1e-10)

    def _rows(self, x: Vector, given: Boxes) -> Vector:
        """The scaled constraints (m,) at scaled variables."""
        return np.asarray(self.transcription.constraints(x, given.parameters), float).ravel()


@dataclass(frozen=True, eq=False)
class _End:
    """What the solver left: its numbers, scaled, the scaled rows of the constraints, what it says of itself."""

    iterate: Iterate
    rows: Vector
    status: Status
    stats: Mapping[str, Any]
    seconds: float
