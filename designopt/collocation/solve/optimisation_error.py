"""The optimisation error of a run, and the continuation of the run until that error is below the tolerance.

IPOPT's tolerance is absolute, and the size of the cost at the optimum is known only there. With multipliers z of bounds
and lambda of equations the cost of an iterate is above the optimum by sum z_i s_i + sum |lambda_i c_i|, to first order:
s_i is the distance to the bound, c_i the violation of an equation (Fiacco, McCormick, Nonlinear Programming, 1968,
section 6; Nocedal, Wright, Numerical Optimization, 2006, chapter 19). An inactive bound, touched only by the barrier,
moves the optimum by z_i over the curvature of the cost, taken as its size over the number of variables, and changes the
cost by z_i times that. The residual gradient of the Lagrangian contributes at most its size times the last step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.interior.method import Run
from designopt.collocation.solution.solution import Status
from designopt.collocation.solve.ipopt import SHARE_TO_FINISH, Start
from designopt.collocation.solve.solver import End, Solver, joint_statistics
from designopt.collocation.transcription.boxes import ProgramBounds

#: Share of the usual cost of the iterations below which a cost is zero.
ZERO = 1e-6
#: Scaled cost below which a cost is zero.
NOTHING = 1e-100
#: Maximum number of runs that finish a solve, and the share of the permitted error for each.
RUNS, AIM = 3, 0.3
#: Smallest tolerance that 16 digits allow.
TIGHTEST = 1e-13
#: Share of the error beyond which a run has not helped.
HELPFUL = 0.5
#: Largest factor of the cost; its inverse is the smallest.
LARGEST_FACTOR = 1e10


def optimisation_error(solver: Solver, bounds: ProgramBounds, end: End, *, flat: bool) -> float:
    """Estimated distance of the cost of `end` from the optimum of the discretised problem, relative to the cost.

    It is absolute if the cost is zero in all iterations, and 0 for a constant cost. In a `flat` problem (a singular
    arc), inactive bounds also change the cost.
    """
    if solver.transcription.constant_cost:
        return 0.0
    iterate = end.iterate
    size = _size(end)
    bend = 0.0 if flat else size / len(iterate.x)
    gap = _complementarity_gap(end, *solver.transcription.limits(bounds), bend)
    gradient = solver.gradient(bounds, iterate) if end.gradient is None else end.gradient
    residual = np.abs(gradient + iterate.bound_multipliers)[bounds.low < bounds.high].sum()
    step = _last(end.stats.get("iterations", {}), "d_norm")
    return float((gap + residual * step) / size)


def _complementarity_gap(end: End, low: Floats, high: Floats, bend: float) -> float:
    """Decrease of the cost, to first order, if variables and rows move to those limits `low` and `high` (n + m,) that
    have multipliers.

    A cost with the curvature `bend` in each value has its minimum before a distant limit.
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
    return float(gaps[:count].sum() + gaps[count:].sum())


def _last(history: Mapping[str, Any], name: str) -> float:
    values = history.get(name, ())
    return float(values[-1]) if len(values) else 0.0


def _size(end: End) -> float:
    """The size of the scaled cost: that at the end, unless it is near zero compared with the iterations; 1 if all are
    zero."""
    final_cost = abs(end.cost)
    costs = np.abs(end.stats.get("iterations", {}).get("obj", []))
    is_near_zero = len(costs) > 0 and not final_cost >= ZERO * costs.max()
    size = max(final_cost, ZERO * float(np.median(costs))) if is_near_zero else final_cost
    return size if size > NOTHING else 1.0


def finished(solver: Solver, bounds: ProgramBounds, end: End, *, flat: bool) -> End:
    """The end of a run with its optimisation error, after a continuation until that is below the tolerance.

    A continuation that fails or does not reduce the error is discarded.
    """
    best = replace(end, error=optimisation_error(solver, bounds, end, flat=flat))
    if end.status is not Status.SOLVED:
        return best
    if best.run is None:
        return _by_ipopt(solver, bounds, best, flat)
    return _by_interior_point(solver, bounds, best, best.run, flat)


def _needs_more(solver: Solver, best: End) -> bool:
    limit = solver.options.time_limit
    in_time = limit is None or best.seconds <= SHARE_TO_FINISH * limit
    return best.error > solver.options.tolerance and in_time


def _by_interior_point(solver: Solver, bounds: ProgramBounds, best: End, run: Run, flat: bool) -> End:
    """Continues the `run` that led to `best`, to a tolerance for the remaining error; the tolerance of equations is
    relative to the cost."""
    target = tolerance = solver.options.tolerance
    for _ in range(RUNS):
        if not _needs_more(solver, best):
            break
        size = _size(best)
        tolerance = max(tolerance * AIM * target / best.error, TIGHTEST * size)
        iterations = run.iterations
        end = solver.continuation(run, tolerance, min(max(tolerance / size, TIGHTEST), target))
        if end is None:
            break
        if end.status is Status.SOLVED and run.iterations == iterations:  # the tolerance held before
            continue
        end, is_better = _better_end(solver, bounds, best, end, flat)
        if not is_better:
            return end
        best = end
    return best


def _better_end(solver: Solver, bounds: ProgramBounds, best: End, end: End, flat: bool) -> tuple[End, bool]:
    """`end` with its error and the total time, and True if it reduces the error; else `best`, or a cancelled `end`."""
    seconds = best.seconds + end.seconds
    if end.status is Status.CANCELLED:
        return replace(end, seconds=seconds), False
    end = replace(end, seconds=seconds, error=optimisation_error(solver, bounds, end, flat=flat))
    if not end.status.success or not end.error < HELPFUL * best.error:
        return replace(best, seconds=end.seconds), False
    return end, True


def _by_ipopt(solver: Solver, bounds: ProgramBounds, best: End, flat: bool) -> End:
    """The end of up to `RUNS` runs, each from the end of the previous one, with the cost scaled to 1 and a tolerance
    for the remaining error."""
    options = solver.options
    tolerance, factor, barrier = options.tolerance, 1.0, _last(best.stats.get("iterations", {}), "mu")
    for _ in range(RUNS):
        if not _needs_more(solver, best) or barrier <= 0.0:
            break
        factor_change = 10.0 ** round(-math.log10(_size(best) * factor))
        factor_change = float(np.clip(factor_change, 1.0 / (LARGEST_FACTOR * factor), LARGEST_FACTOR / factor))
        tolerance = max(_ten(tolerance * factor_change * AIM * options.tolerance / best.error), TIGHTEST)
        factor *= factor_change
        start = Start(True, True, max(_ten(10.0 * barrier * factor), TIGHTEST), factor, tolerance)
        end = solver.run(bounds, best.iterate.x, best.iterate, start)
        end, is_better = _better_end(solver, bounds, best, end, flat)
        if not is_better:
            return end
        barrier = _last(end.stats["iterations"], "mu") / factor
        stats = joint_statistics(best.stats, end.stats, factor)
        best = replace(end, status=Status.SOLVED, stats=stats)
    return best


def _ten(value: float) -> float:
    """The power of ten below a number, because few distinct settings need few instances of IPOPT."""
    return float(10.0 ** math.floor(math.log10(value)))
