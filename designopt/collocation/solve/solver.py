"""Runs of a solver on a program: from a point, with or without multipliers, or to finish a previous run.

The solver is the interior point method of this package if there is a C compiler and no other is requested, else IPOPT,
which also takes over if the former fails, with the remaining iterations and time. Only IPOPT has an adaptive barrier.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.interior import library
from designopt.collocation.interior.method import LIMIT, LOST, NEAR, SOLVED, Interior, Run
from designopt.collocation.solution.solution import OF_SOLVER, Iterate, Status
from designopt.collocation.solve.ipopt import COLD, SHARE_TO_FINISH, Start, ipopt
from designopt.collocation.statement.options import Options
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.transcription import Transcription
from designopt.evaluation_progress import progress
from designopt.interrupts import StopRequests
from designopt.lazy import casadi as ca

#: Violation, relative to its scale, below which a constraint is satisfied.
ROUNDED = 1e-10
#: Maximum number of iterations of a run of the interior point method that finishes another.
FEW_TO_FINISH = 60
#: Number of solves of one program after which its functions are compiled (a second or two, once).
SOLVES = {"auto": 1000, "always": 1}
#: Status of a run of the interior point method by its end, unless it is stopped or lost.
ENDS = {SOLVED: Status.SOLVED, NEAR: Status.ACCEPTABLE, LIMIT: Status.ITERATION_LIMIT}


@dataclass(frozen=True, eq=False)
class End:
    """The end of a run: scaled iterate, scaled rows of the constraints, statistics of the solver.

    `error` is the optimisation error, relative to the cost, NaN if not available; `cost` is scaled. The interior point
    method also provides its `run`, which can continue, and the `gradient` (n,) of cost and constraints by variables
    that are not fixed.
    """

    iterate: Iterate
    rows: Floats
    status: Status
    stats: Mapping[str, Any]
    seconds: float
    error: float = float("nan")
    cost: float = float("nan")
    gradient: Floats | None = None
    run: Run | None = None


class Solver:
    """Runs the solver on a program; the instances of IPOPT are cached, one for each type of start."""

    def __init__(self, transcription: Transcription, options: Options) -> None:
        self.transcription, self.options = transcription, options
        self._solves = 0
        self._ipopt_solvers: dict[tuple[Start, bool], tuple[Any, Any]] = {}

    @cached_property
    def _nlp(self) -> dict[str, Any]:
        transcription = self.transcription
        x, p = ca.MX.sym("x", transcription.layout.size), ca.MX.sym("p", transcription.parameter_size)
        return {"x": x, "p": p, "f": transcription.objective(x, p), "g": transcription.constraints(x, p)}

    def _ipopt(self, start: Start, *, with_callback: bool) -> tuple[Any, Any]:
        """IPOPT for this program and, if `with_callback`, its iteration callback."""
        solver = self._ipopt_solvers.get((start, with_callback))
        if solver is None:
            solver = ipopt(self.transcription, self._nlp, self.options, start, with_callback=with_callback)
            if not start.iterations and not start.seconds:  # the remaining limits differ each time
                self._ipopt_solvers[start, with_callback] = solver
        return solver

    def rows(self, x: Floats, bounds: ProgramBounds) -> Floats:
        """The scaled constraints (m,) at scaled variables."""
        return np.asarray(self.transcription.constraints(x, bounds.parameters), float).ravel()

    def gradient(self, bounds: ProgramBounds, iterate: Iterate) -> Floats:
        """The scaled gradient (n,) of cost and constraints, without the boxes."""
        gradient = self._lagrangian(iterate.x, bounds.parameters, iterate.constraint_multipliers)
        return np.asarray(gradient, float).ravel()

    @cached_property
    def _lagrangian(self) -> Any:
        nlp, transcription = self._nlp, self.transcription
        x, p, multipliers = nlp["x"], nlp["p"], ca.MX.sym("lam_g", len(transcription.row_scale))
        gradient = transcription.gradient(x, p)[1] + transcription.jacobian(x, p)[1].T @ multipliers
        return ca.Function("lagrangian", [x, p, multipliers], [gradient])

    def run(self, bounds: ProgramBounds, x: Floats, multipliers: Iterate | None = None, start: Start = COLD) -> End:
        """The end of a run from scaled variables `x`, with the `multipliers` for a warm `start`. Raises the exceptions
        of signal handlers."""
        begin, interior_run = time.perf_counter(), None
        if self._interior is not None and not (start.finishes or start.adaptive):
            self._solves += 1
            if self._solves > SOLVES[self.options.compile]:
                self._interior.functions.compile()
            interior_run = Run(self._interior, bounds, x, multipliers)
        with StopRequests() as stopping:  # also from one solver to the next
            end = None
            if interior_run is not None:
                end = self._continuation(interior_run, self.options.tolerance, self.options.tolerance, stopping)
                if end is None:
                    seconds = 0.0 if self.options.time_limit is None else time.perf_counter() - begin
                    start = start._replace(iterations=interior_run.iterations, seconds=seconds)
            if end is None:
                end = self._by_ipopt(bounds, x, multipliers, start, stopping)
                stats = end.stats if interior_run is None else joint_statistics(interior_run.stats(), end.stats)
                end = replace(end, stats=stats, seconds=time.perf_counter() - begin)
        return end

    def _by_ipopt(
        self, bounds: ProgramBounds, x: Floats, multipliers: Iterate | None, start: Start, stopping: StopRequests
    ) -> End:
        """The end of a run of IPOPT, as of `run`, without its time."""
        solver, watch = self._ipopt(start, with_callback=StopRequests.possible())
        low, high = self.transcription.box(bounds)
        row_low, row_high = self.transcription.row_box(bounds)
        arguments = {"x0": x, "p": bounds.parameters, "lbx": low, "ubx": high, "lbg": row_low, "ubg": row_high}
        if multipliers is not None:
            arguments |= {"lam_x0": multipliers.bound_multipliers, "lam_g0": multipliers.constraint_multipliers}
        if watch is not None:
            watch.stopping, watch.iterations = stopping, start.iterations
        result, stats = solver(**arguments), solver.stats()
        status = OF_SOLVER.get(stats["return_status"], Status.FAILED)
        if stopping.is_requested:
            status = Status.CANCELLED
        x, constraint_multipliers, bound_multipliers, rows = (
            np.asarray(result[key], float).ravel() for key in ("x", "lam_g", "lam_x", "g")
        )
        if status in (Status.INVALID_NUMBER, Status.FAILED):  # IPOPT returns none then
            rows = self.rows(x, bounds)
        if status is Status.LOCALLY_INFEASIBLE and self._feasible(rows, bounds):  # only its continuation failed
            status = Status.STALLED
        iterate = Iterate(x, constraint_multipliers, bound_multipliers)
        return End(iterate, rows, status, stats, math.nan, cost=float(result["f"]))

    @cached_property
    def _interior(self) -> Interior | None:
        """The interior point method; None if IPOPT is requested, or there is no compiler."""
        options = self.options
        wants_ipopt = options.compile == "never" or options.hessian != "exact" or bool(options.ipopt)
        code = None if wants_ipopt else library.loaded()
        return None if code is None else Interior(self.transcription, code)

    def continuation(self, run: Run, tolerance: float, constraint_tolerance: float) -> End | None:
        """The end of `run` after its continuation to the `tolerance` of multipliers and the violation
        `constraint_tolerance`, within the limits of a run that finishes another; None if it fails. Raises the
        exceptions of signal handlers."""
        with StopRequests() as stopping:
            return self._continuation(run, tolerance, constraint_tolerance, stopping)

    def _continuation(
        self, run: Run, tolerance: float, constraint_tolerance: float, stopping: StopRequests
    ) -> End | None:
        """`continuation` with its requests to stop."""
        options, begin = self.options, time.perf_counter()
        limit = float("inf") if options.time_limit is None else options.time_limit
        most_iterations, acceptable = options.max_iterations, options.acceptable_tolerance
        if run.iterations:
            most_iterations = min(most_iterations, run.iterations + FEW_TO_FINISH)
            limit, acceptable = SHARE_TO_FINISH * limit, 0.0

        def stops() -> bool:
            progress(None, f"iteration {run.iterations}")
            return stopping.is_requested or time.perf_counter() > begin + limit

        end_code = run.go(tolerance, constraint_tolerance, acceptable, most_iterations, stops)
        if end_code == LOST and not stopping.is_requested:
            return None
        status = Status.CANCELLED if stopping.is_requested else ENDS.get(end_code, Status.TIME_LIMIT)
        iterate, rows, gradient = run.iterate()
        seconds = time.perf_counter() - begin
        return End(iterate, rows, status, run.stats(), seconds, cost=run.cost, gradient=gradient, run=run)

    def _feasible(self, rows: Floats, bounds: ProgramBounds) -> bool:
        low, high = self.transcription.row_box(bounds)
        violations = np.maximum(low - rows, rows - high)
        return float(violations.max(initial=0.0)) <= max(self.options.tolerance, ROUNDED)


def joint_statistics(first: Mapping[str, Any], second: Mapping[str, Any], factor: float = 1.0) -> dict[str, Any]:
    """The statistics of two successive runs, the second with a cost multiplied by `factor`."""
    before, after = first.get("iterations", {}), second.get("iterations", {})
    of_cost = {"inf_du": 1.0 / factor, "mu": 1.0 / factor}  # `obj` is reported without the factor
    iterations = {
        name: [*before[name], *(v * of_cost.get(name, 1.0) for v in after[name][1:])]
        for name in before
        if name in after
    }
    return {**second, "iter_count": first["iter_count"] + second["iter_count"], "iterations": iterations}
