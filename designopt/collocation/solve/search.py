"""Runs of a solver on a program: from a point, with or without multipliers, or to finish a previous run.

The solver is the interior point method of this package if there is a C compiler and no other is requested, else IPOPT,
which also takes over if the former fails, with the remaining iterations and time. Only IPOPT has an adaptive barrier.

A run is finished when the optimisation error is below the tolerance, for any size of the cost. IPOPT's tolerance is
absolute, and the size of the cost at the optimum is available only at the optimum. With
multipliers z of bounds and lambda of equations the cost of an iterate is above the optimum by sum z_i s_i + sum
|lambda_i c_i|, to first order: s_i is the distance to the bound, c_i the violation of an equation (Fiacco, McCormick,
Nonlinear Programming, 1968, section 6; Nocedal, Wright, Numerical Optimization, 2006, chapter 19). An inactive bound,
touched only by the barrier, moves the optimum by z_i over the curvature of the cost, taken as its size over the number
of variables, and changes the cost by z_i times that. The residual gradient of the Lagrangian contributes at most its
size times the last step.
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
from designopt.collocation.interior.search import LIMIT, LOST, NEAR, SOLVED, Interior, Run
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
#: Additional iterations of a run of the package's own solver that finishes.
FEW_TO_FINISH = 60
#: Number of solves of one program after which its functions are compiled (a second or two, once).
SOLVES = {"auto": 1000, "always": 1}
#: Return status of a run of it by its end, unless stopped.
ENDS = {SOLVED: Status.SOLVED, NEAR: Status.ACCEPTABLE, LIMIT: Status.ITERATION_LIMIT}


@dataclass(frozen=True, eq=False)
class End:
    """The end of a run: scaled numbers, scaled rows of the constraints, statistics of the solver.

    `error` is that of the optimisation, relative to the cost, NaN if not available; `cost` is scaled. `run` is one of
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
    """Runs the solver on a program; one instance for each type of start is cached."""

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

    def _solver(self, start: Start, *, with_callback: bool) -> tuple[Any, Any]:
        """IPOPT for this program and, if `with_callback`, its iteration callback."""
        solver = self._solvers.get((start, with_callback))
        if solver is None:
            begin = time.perf_counter()
            solver = ipopt(self.transcription, self._nlp, self.options, start, with_callback=with_callback)
            self.building += time.perf_counter() - begin
            if not start.iterations and not start.seconds:  # the remaining limits differ each time
                self._solvers[start, with_callback] = solver
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
        if stopping.host_error is not None:
            raise stopping.host_error
        return end

    def _by_ipopt(
        self, bounds: ProgramBounds, x: Floats, multipliers: Iterate | None, start: Start, stopping: StopRequests
    ) -> End:
        """The end of IPOPT, as of `run`; its time is not known."""
        solver, watch = self._solver(start, with_callback=StopRequests.possible())
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
        if status in (Status.INVALID_NUMBER, Status.FAILED):  # the solver has none then
            rows = self.rows(x, bounds)
        if status is Status.LOCALLY_INFEASIBLE and self._feasible(rows, bounds):  # only the continuation failed
            status = Status.STALLED
        iterate = Iterate(x, constraint_multipliers, bound_multipliers)
        return End(iterate, rows, status, stats, math.nan, cost=float(result["f"]))

    @cached_property
    def _interior(self) -> Interior | None:
        """The solver of this package; None if IPOPT is requested, or there is no compiler."""
        options = self.options
        wants_ipopt = options.compile == "never" or options.hessian != "exact" or bool(options.ipopt)
        code = None if wants_ipopt else library.loaded()
        return None if code is None else Interior(self.transcription, code)

    def continuation(self, run: Run, tolerance: float, constraint_tolerance: float) -> End | None:
        """The end of `run` after its continuation to the `tolerance` of multipliers and the violation
        `constraint_tolerance`, within the limits of a run that finishes another; None if it fails. Raises the
        exceptions of signal handlers."""
        with StopRequests() as stopping:
            end = self._continuation(run, tolerance, constraint_tolerance, stopping)
        if stopping.host_error is not None:
            raise stopping.host_error
        return end

    def _continuation(
        self, run: Run, tolerance: float, constraint_tolerance: float, stopping: StopRequests
    ) -> End | None:
        """The end of `run` as of `continuation`, with its requests to stop."""
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


#: Share of the usual cost of the iterations below which a cost is zero.
ZERO = 1e-6
#: Smaller scaled costs are zero.
NOTHING = 1e-100
#: Maximum number of runs that finish a solve, and the share of the permitted error for each.
RUNS, AIM = 3, 0.3
#: Smallest useful tolerance with 16 digits.
TIGHTEST = 1e-13
#: Share of the error beyond which a run has not helped.
HELPFUL = 0.5
#: Factors of the cost lie between the inverse of this and this.
LARGEST_FACTOR = 1e10


def optimisation_error(search: Search, bounds: ProgramBounds, end: End, *, flat: bool) -> float:
    """Estimated distance of the cost of `end` from the optimum of the discretised problem, relative to the cost; of a
    cost that was zero in all iterations it is absolute, of a constant one 0.

    For a `flat` problem (a singular arc), inactive bounds also change the cost.
    """
    if search.transcription.constant_cost:
        return 0.0
    iterate = end.iterate
    size = _size(end)
    bend = 0.0 if flat else size / len(iterate.x)
    columns, rows = _gaps(end, *search.transcription.limits(bounds), bend)
    gradient = search.gradient(bounds, iterate) if end.gradient is None else end.gradient
    left = np.abs(gradient + iterate.bound_multipliers)[bounds.low < bounds.high].sum()
    step = _last(end.stats.get("iterations", {}), "d_norm")
    return float((columns + rows + left * step) / size)


def _gaps(end: End, low: Floats, high: Floats, bend: float) -> tuple[float, float]:
    """Gains promised by the multipliers of limits that variables do not touch, and of those that rows do not; `low` and
    `high` (n + m,) are the limits of both.

    A cost with the curvature `bend` in each value has its minimum before a distant limit; with zero curvature it has
    not.
    """
    iterate = end.iterate
    values = np.concatenate([iterate.x, end.rows])
    multipliers = np.concatenate([iterate.bound_multipliers, iterate.constraint_multipliers])
    distance = np.abs(values - np.where(multipliers > 0.0, high, low))
    is_counted = np.isfinite(distance) & (multipliers != 0.0)
    size, distance = np.abs(multipliers[is_counted]), distance[is_counted]
    if bend > 0.0:
        distance = np.where((low == high)[is_counted], distance, np.minimum(distance, size / bend))
    gaps, count = size * distance, np.count_nonzero(is_counted[: len(iterate.x)])
    return float(gaps[:count].sum()), float(gaps[count:].sum())


def _last(history: Mapping[str, Any], name: str) -> float:
    values = history.get(name, ())
    return float(values[-1]) if len(values) else 0.0


def _size(end: End) -> float:
    """The size of the scaled cost: that at the end, unless it is near zero compared with the iterations; 1 if all were
    zero."""
    final_cost = abs(end.cost)
    costs = np.abs(end.stats.get("iterations", {}).get("obj", []))
    is_near_zero = len(costs) > 0 and not final_cost >= ZERO * costs.max()
    size = max(final_cost, ZERO * float(np.median(costs))) if is_near_zero else final_cost
    return size if size > NOTHING else 1.0


def finished(search: Search, bounds: ProgramBounds, end: End, *, flat: bool) -> End:
    """`end`, continued until its optimisation error is below the tolerance, with that error.

    A run that fails or does not help keeps the previous result.
    """
    best = replace(end, error=optimisation_error(search, bounds, end, flat=flat))
    if end.status is not Status.SOLVED:
        return best
    return _by_ipopt(search, bounds, best, flat) if best.run is None else _interior_solution(search, bounds, best, flat)


def _needs_more(search: Search, best: End) -> bool:
    limit = search.options.time_limit
    in_time = limit is None or best.seconds <= SHARE_TO_FINISH * limit
    return best.error > search.options.tolerance and in_time


def _interior_solution(search: Search, bounds: ProgramBounds, best: End, flat: bool) -> End:
    """Continues the run that led to `best`, to a tolerance for the remaining error; equations hold to one relative to
    the cost."""
    target = tolerance = search.options.tolerance
    for _ in range(RUNS):
        if best.run is None or not _needs_more(search, best):
            break
        size = _size(best)
        tolerance = max(tolerance * AIM * target / best.error, TIGHTEST * size)
        iterations = best.run.iterations
        end = search.continuation(best.run, tolerance, min(max(tolerance / size, TIGHTEST), target))
        if end is None:
            break
        if end.status is Status.SOLVED and best.run.iterations == iterations:  # it held already
            continue
        end, is_better = _better_end(search, bounds, best, end, flat)
        if not is_better:
            return end
        best = end
    return best


def _better_end(search: Search, bounds: ProgramBounds, best: End, end: End, flat: bool) -> tuple[End, bool]:
    """The run `end` with its error and the total time, and True if it helped; else `best`, or a cancelled run."""
    end = replace(end, seconds=best.seconds + end.seconds)
    if end.status is Status.CANCELLED:
        return end, False
    end = replace(end, error=optimisation_error(search, bounds, end, flat=flat))
    if not end.status.success or not end.error < HELPFUL * best.error:
        return replace(best, seconds=end.seconds), False
    return end, True


def _by_ipopt(search: Search, bounds: ProgramBounds, best: End, flat: bool) -> End:
    """Each run starts from the end of the previous one, with the cost scaled to 1 and a tolerance for the remaining
    error."""
    options = search.options
    tolerance, factor, barrier = options.tolerance, 1.0, _last(best.stats.get("iterations", {}), "mu")
    for _ in range(RUNS):
        if not _needs_more(search, best) or barrier <= 0.0:
            break
        factor_change = 10.0 ** round(-math.log10(_size(best) * factor))
        factor_change = float(np.clip(factor_change, 1.0 / (LARGEST_FACTOR * factor), LARGEST_FACTOR / factor))
        tolerance = max(_ten(tolerance * factor_change * AIM * options.tolerance / best.error), TIGHTEST)
        factor *= factor_change
        start = Start(True, True, max(_ten(10.0 * barrier * factor), TIGHTEST), factor, tolerance)
        end = search.run(bounds, best.iterate.x, best.iterate, start)
        end, is_better = _better_end(search, bounds, best, end, flat)
        if not is_better:
            return end
        barrier = _last(end.stats["iterations"], "mu") / factor
        stats = joint_statistics(best.stats, end.stats, factor)
        best = replace(end, status=Status.SOLVED, stats=stats)
    return best


def _ten(value: float) -> float:
    """The power of ten below a number: few distinct settings need few solvers."""
    return float(10.0 ** math.floor(math.log10(value)))
