"""Optimisation error, and its reduction to the tolerance for any size of the cost.

IPOPT's tolerance is absolute, and the size of the cost at the optimum is available only at the optimum. With
multipliers z of bounds and lambda of equations the cost of an iterate is above the optimum by sum z_i s_i + sum
|lambda_i c_i|, to first order: s_i is the distance to the bound, c_i the violation of an equation (Fiacco, McCormick,
Nonlinear Programming, 1968, section 6; Nocedal, Wright, Numerical Optimization, 2006, chapter 19). An inactive bound,
touched only by the barrier, moves the optimum by z_i over the curvature of the cost, taken as its size over the number
of variables, and changes the cost by z_i times that. The residual gradient of the Lagrangian contributes at most its
size times the last step.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.status import Status
from designopt.collocation.solve.ipopt import SHARE_TO_FINISH, Start
from designopt.collocation.solve.search import End, Search, joined
from designopt.collocation.transcription.boxes import ProgramBounds

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
    columns = _gaps(iterate.x, iterate.bound_multipliers, *search.transcription.box(bounds), bend)
    rows = _gaps(end.rows, iterate.constraint_multipliers, *search.transcription.row_box(bounds), bend)
    gradient = search.gradient(bounds, iterate) if end.gradient is None else end.gradient
    left = np.abs(gradient + iterate.bound_multipliers)[bounds.low < bounds.high].sum()
    step = _last(end.stats.get("iterations", {}), "d_norm")
    return float((columns + rows + left * step) / size)


def _gaps(values: Floats, multipliers: Floats, low: Floats, high: Floats, bend: float) -> float:
    """Gains promised by the multipliers (k,) of limits that `values` (k,) do not touch.

    A cost with the curvature `bend` in each value has its minimum before a distant limit; with zero curvature it has
    not.
    """
    limit = np.where(multipliers > 0.0, high, low)
    distance = np.abs(values - limit)
    counted = np.isfinite(distance) & (multipliers != 0.0)
    size, distance = np.abs(multipliers[counted]), distance[counted]
    equal = (low == high)[counted]
    if bend > 0.0:
        distance = np.where(equal, distance, np.minimum(distance, size / bend))
    return float((size * distance).sum())


def _last(history: Mapping[str, Any], name: str) -> float:
    values = history.get(name, ())
    return float(values[-1]) if len(values) else 0.0


def _size(end: End) -> float:
    """The size of the scaled cost: that at the end, unless it is near zero compared with the iterations; 1 if all were
    zero."""
    final_cost = abs(end.cost)
    costs = [abs(cost) for cost in end.stats.get("iterations", {}).get("obj", [])]
    is_near_zero = bool(costs) and not final_cost >= ZERO * max(costs)
    size = max(final_cost, ZERO * statistics.median(costs)) if is_near_zero else final_cost
    return size if size > NOTHING else 1.0


def finished(search: Search, bounds: ProgramBounds, end: End, *, flat: bool) -> End:
    """`end`, continued until its optimisation error is below the tolerance, with that error.

    A run that fails or does not help keeps the previous result.
    """
    best = replace(end, error=optimisation_error(search, bounds, end, flat=flat))
    if end.status is not Status.SOLVED:
        return best
    return _by_ipopt(search, bounds, best, flat) if best.run is None else _interior_solution(search, bounds, best, flat)


def _unfinished(search: Search, best: End) -> bool:
    limit = search.options.time_limit
    in_time = limit is None or best.seconds <= SHARE_TO_FINISH * limit
    return best.error > search.options.tolerance and in_time


def _interior_solution(search: Search, bounds: ProgramBounds, best: End, flat: bool) -> End:
    """Continues the run that led to `best`, to a tolerance for the remaining error; equations hold to one relative to
    the cost."""
    requested = tolerance = search.options.tolerance
    for _ in range(RUNS):
        if best.run is None or not _unfinished(search, best):
            break
        size = _size(best)
        tolerance = max(tolerance * AIM * requested / best.error, TIGHTEST * size)
        continued = search.further(best.run, tolerance, min(max(tolerance / size, TIGHTEST), requested))
        if continued is None:
            break
        continued, helped = _compared(search, bounds, best, continued, flat)
        if not helped:
            return continued
        best = continued
    return best


def _compared(search: Search, bounds: ProgramBounds, best: End, continued: End, flat: bool) -> tuple[End, bool]:
    """The run `continued` with its error and the total time, and True if it helped; else `best`, or a cancelled run."""
    continued = replace(continued, seconds=best.seconds + continued.seconds)
    if continued.status is Status.CANCELLED:
        return continued, False
    continued = replace(continued, error=optimisation_error(search, bounds, continued, flat=flat))
    if not continued.status.success or not continued.error < HELPFUL * best.error:
        return replace(best, seconds=continued.seconds), False
    return continued, True


def _by_ipopt(search: Search, bounds: ProgramBounds, best: End, flat: bool) -> End:
    """Each run starts from the end of the previous one, with the cost scaled to 1 and a tolerance for the remaining
    error."""
    options = search.options
    tolerance, factor, barrier = options.tolerance, 1.0, _last(best.stats.get("iterations", {}), "mu")
    for _ in range(RUNS):
        if not _unfinished(search, best) or barrier <= 0.0:
            break
        more = 10.0 ** round(-math.log10(_size(best) * factor))
        more = float(np.clip(more, 1.0 / (LARGEST_FACTOR * factor), LARGEST_FACTOR / factor))
        tolerance = max(_ten(tolerance * more * AIM * options.tolerance / best.error), TIGHTEST)
        factor *= more
        start = Start(True, True, max(_ten(10.0 * barrier * factor), TIGHTEST), factor, tolerance)
        continued = search.run(bounds, best.iterate.x, best.iterate, start)
        continued, helped = _compared(search, bounds, best, continued, flat)
        if not helped:
            return continued
        barrier = _last(continued.stats["iterations"], "mu") / factor
        stats = joined(best.stats, continued.stats, factor)
        best = replace(continued, status=Status.SOLVED, stats=stats)
    return best


def _ten(value: float) -> float:
    """The power of ten below a number: few distinct settings need few solvers."""
    return float(10.0 ** math.floor(math.log10(value)))
