"""Runs of a solver on a program: from a point, with or without multipliers, or to finish a previous run.

The solver is the interior point method of this package if there is a C compiler and no other is requested, else IPOPT,
which also takes over if the former fails, with the remaining iterations and time. Only IPOPT has an adaptive barrier.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.interior import library
from designopt.collocation.interior.search import LIMIT, LOST, NEAR, SOLVED, Interior, Run
from designopt.collocation.solution.solution import Iterate
from designopt.collocation.solution.status import OF_SOLVER, Status
from designopt.collocation.solve.interrupt import Stopping
from designopt.collocation.solve.ipopt import COLD, SHARE_TO_FINISH, Start, ipopt
from designopt.collocation.statement.options import Options
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.transcription import Transcription
from designopt.evaluation_progress import progress
from designopt.lazy import casadi as ca

#: Violation, relative to its scale, below which a constraint is satisfied.
ROUNDED = 1e-10
#: Additional iterations of a run of the package's own solver that finishes.
FEW_TO_FINISH = 60
#: Number of solves of one program after which its functions are compiled (a second or two, once).
SOLVES = {"auto": 1000, "always": 1}
#: Return status of a run of it by its end, unless stopped.
ENDS = {SOLVED: Status.SOLVED, NEAR: Status.ACCEPTABLE, LIMIT: Status.ITERATION_LIMIT}


@dataclass(frozen=True, eq=False)
class End:
    """The end of a run: scaled numbers, scaled rows of the constraints, statistics of the solver.

    `error` is that of the optimisation, relative to the cost, NaN if not available; `cost` is scaled. `own` is a run of
    the package's own solver, which can continue. It also provides the `gradient` (n,) of cost and constraints, for
    variables that are not fixed.
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


class Search:
    """Runs the solver on the program `made`; one instance for each type of start is cached."""

    def __init__(self, transcription: Transcription, options: Options) -> None:
        self.transcription, self.options = transcription, options
        self.building = 0.0
        self._solves = 0
        self._solvers: dict[tuple[Start, bool], tuple[Any, Any]] = {}

    @cached_property
    def _nlp(self) -> dict[str, Any]:
        transcription = self.transcription
        x, p = ca.MX.sym("x", transcription.layout.size), ca.MX.sym("p", transcription.parameter_size)
        return {"x": x, "p": p, "f": transcription.objective(x, p), "g": transcription.constraints(x, p)}

    def _solver(self, start: Start, *, watched: bool) -> tuple[Any, Any]:
        """IPOPT for this program and, if `watched`, its iteration callback."""
        solver = self._solvers.get((start, watched))
        if solver is None:
            begin = time.perf_counter()
            solver = ipopt(self.transcription, self._nlp, self.options, start, watched=watched)
            self.building += time.perf_counter() - begin
            if not start.iterations and not start.seconds:  # the remaining limits differ each time
                self._solvers[start, watched] = solver
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
        """The end of the solver from scaled variables `x`, with the `multipliers` for a warm `start`. Raises the
        exceptions of signal handlers."""
        begin, lost = time.perf_counter(), None
        if self._interior is not None and not (start.finishes or start.adaptive):
            self._solves += 1
            if self._solves > SOLVES[self.options.compile]:
                self._interior.functions.compile()
            interior_run = Run(self._interior, bounds, x, multipliers)
            end = self.further(interior_run, self.options.tolerance, self.options.tolerance)
            if end is not None:
                return end
            lost = interior_run.stats()
            seconds = 0.0 if self.options.time_limit is None else time.perf_counter() - begin
            start = start._replace(iterations=interior_run.iterations, seconds=seconds)
        solver, watch = self._solver(start, watched=Stopping.possible())
        low, high = self.transcription.box(bounds)
        row_low, row_high = self.transcription.row_box(bounds)
        arguments = {"x0": x, "p": bounds.parameters, "lbx": low, "ubx": high, "lbg": row_low, "ubg": row_high}
        if multipliers is not None:
            arguments |= {"lam_x0": multipliers.bound_multipliers, "lam_g0": multipliers.constraint_multipliers}
        with Stopping() as stopping:
            if watch is not None:
                watch.stopping, watch.iterations = stopping, start.iterations
            result = solver(**arguments)
        seconds = time.perf_counter() - begin
        if stopping.raised is not None:
            raise stopping.raised
        stats = solver.stats() if lost is None else joined(lost, solver.stats())
        status = OF_SOLVER.get(stats["return_status"], Status.FAILED)
        if stopping.requested:
            status = Status.CANCELLED
        x, constraint_multipliers, bound_multipliers, rows = (
            np.asarray(result[key], float).ravel() for key in ("x", "lam_g", "lam_x", "g")
        )
        if status in (Status.INVALID_NUMBER, Status.FAILED):  # the solver has none then
            rows = self.rows(x, bounds)
        if status is Status.LOCALLY_INFEASIBLE and self._feasible(rows, bounds):  # only the continuation failed
            status = Status.STALLED
        return End(
            Iterate(x, constraint_multipliers, bound_multipliers), rows, status, stats, seconds, cost=float(result["f"])
        )

    @cached_property
    def _interior(self) -> Interior | None:
        """The solver of this package; None if IPOPT is requested, or there is no compiler."""
        options = self.options
        wants_ipopt = options.compile == "never" or options.hessian != "exact" or bool(options.ipopt)
        code = None if wants_ipopt else library.loaded()
        return None if code is None else Interior(self.transcription, code)

    def further(self, run: Run, tolerance: float, constraint_tolerance: float) -> End | None:
        """The end of `run` after its continuation to the `tolerance` of multipliers and the violation
        `constraint_tolerance`, within the limits of a run that finishes another; None if it fails. Raises the
        exceptions of signal handlers."""
        options, begin = self.options, time.perf_counter()
        limit = float("inf") if options.time_limit is None else options.time_limit
        most, acceptable = options.max_iterations, options.acceptable_tolerance
        if run.iterations:
            most, limit, acceptable = min(most, run.iterations + FEW_TO_FINISH), SHARE_TO_FINISH * limit, 0.0
        with Stopping() as stopping:

            def stops() -> bool:
                progress(None, f"iteration {run.iterations}")
                return stopping.requested or time.perf_counter() > begin + limit

            end_code = run.go(tolerance, constraint_tolerance, acceptable, most, stops)
        if stopping.raised is not None:
            raise stopping.raised
        if end_code == LOST and not stopping.requested:
            return None
        status = Status.CANCELLED if stopping.requested else ENDS.get(end_code, Status.TIME_LIMIT)
        iterate, rows, gradient = run.iterate()
        seconds = time.perf_counter() - begin
        return End(iterate, rows, status, run.stats(), seconds, cost=run.cost, gradient=gradient, run=run)

    def _feasible(self, rows: Floats, bounds: ProgramBounds) -> bool:
        low, high = self.transcription.row_box(bounds)
        missed = np.maximum(low - rows, rows - high)
        return float(missed.max(initial=0.0)) <= max(self.options.tolerance, ROUNDED)


def joined(first: Mapping[str, Any], then: Mapping[str, Any], factor: float = 1.0) -> dict[str, Any]:
    """The statistics of two successive runs, the second with a cost multiplied by `factor`."""
    before, after = first.get("iterations", {}), then.get("iterations", {})
    of_cost = {"inf_du": 1.0 / factor, "mu": 1.0 / factor}  # `obj` is reported without the factor
    iterations = {
        name: [*before[name], *(v * of_cost.get(name, 1.0) for v in after[name][1:])]
        for name in before
        if name in after
    }
    return {**then, "iter_count": first["iter_count"] + then["iter_count"], "iterations": iterations}
