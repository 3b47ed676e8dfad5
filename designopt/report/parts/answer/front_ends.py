"""Ends of a front that a local search would improve, by a linear estimate from the evaluated designs around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from designopt.arrays import Floats, Mask
from designopt.lazy import scipy
from designopt.report.labels import listed, number

if TYPE_CHECKING:
    from designopt.store.result import Result

#: Neighbours of an end for each real parameter, and in addition.
_NEIGHBOURS_PER_PARAMETER, _MORE_NEIGHBOURS = 4, 4
#: Largest distance of a neighbour and largest step, as shares of the ranges.
_NEIGHBOURHOOD, _STEP = 0.3, 0.1
#: Least coefficient of determination of the estimate.
_DETERMINED = 0.9
#: Least gain, as a share of the value at the end.
_GAIN = 0.02


def improvable_ends(result: Result) -> list[str]:
    """A clause if the neighbours of the best design in an objective of several show a better one close to it.

    Around each end a linear function of the real parameters is fitted to the objective and to each limit, over its
    nearest evaluated designs with the same integers and choices; a linear program gives the step within the ranges and
    limits. Ends with few neighbours, whose functions are not linear there, or whose step violates a relation, have no
    estimate.
    """
    problem, outcomes = result.problem, result.outcomes
    if len(problem.objectives) < 2 or problem.space.conditional:
        return []
    gains = {}
    for j, objective in enumerate(problem.objectives):
        values = np.where(outcomes.feasible, outcomes.objectives[:, j], np.inf)
        end = int(values.argmin()) if len(values) else 0
        if len(values) and np.isfinite(values[end]):
            gain = _gain(result, end, outcomes.objectives[:, j])
            gain /= max(abs(float(values[end])), gain) or 1.0
            if gain > _GAIN:
                gains[objective.name] = gain
    if not gains:
        return []
    shares = listed([f"{name} by about {number(100.0 * gain, 1)} %" for name, gain in gains.items()])
    first, last = next(iter(gains)), result.study.stages[-1].name
    discrete_names = [p.name for p in problem.space.free if p.kind != "real"]
    condition = f" to a study with {listed(discrete_names)} fixed" if discrete_names else ""
    return [
        f"a local search would improve the {'end' if len(gains) == 1 else 'ends'} of the front in {shares} or more, by"
        f" a linear estimate from the designs around: raise the budget, or add a stage with {{use: nelder_mead,"
        f" objective: {first}}} and start_from: {{stage: {last}, nondominated: all}}{condition}"
    ]


def _gain(result: Result, end: int, objective: Floats) -> float:
    """The estimated decrease of the `objective` (n,) of all designs by a step from the design `end`; 0 without an
    estimate."""
    problem, outcomes, space = result.problem, result.outcomes, result.problem.space
    real: Mask = np.array([p.kind == "real" for p in space.free])
    U = (space.to_search(outcomes.X) - space.lower) / (space.upper - space.lower)
    steps = U - U[end]
    alike = np.isfinite(objective) & ~outcomes.failed & (outcomes.X[:, ~real] == outcomes.X[end, ~real]).all(axis=1)
    distance = np.abs(steps[:, real]).max(axis=1, initial=0.0)
    near = np.flatnonzero(alike & (distance > 0.0) & (distance <= _NEIGHBOURHOOD))
    neighbour_limit = _NEIGHBOURS_PER_PARAMETER * int(real.sum()) + _MORE_NEIGHBOURS
    near = near[np.argsort(distance[near], kind="stable")][:neighbour_limit]
    if len(near) < 2 * real.sum() + 2 or not real.any():
        return 0.0
    columns = np.column_stack([objective, problem.constraint_values(outcomes.figures)])
    sample = np.append(near, end)
    if not np.isfinite(columns[sample]).all():
        return 0.0
    moves, changes = (a - a.mean(axis=0) for a in (steps[np.ix_(sample, real)], columns[sample]))
    slopes, *_ = np.linalg.lstsq(moves, changes, rcond=None)
    residual, spread = ((a**2).sum(axis=0) for a in (changes - moves @ slopes, changes))
    if (residual > (1.0 - _DETERMINED) * spread).any():
        return 0.0
    u = U[end, real]
    reach = min(_STEP, float(distance[near].max()))
    boxes = np.column_stack([np.maximum(-reach, -u), np.minimum(reach, 1.0 - u)])
    equal: Mask = np.array([limit.equality for limit in problem.limits], dtype=bool)
    rows, margins = slopes[:, 1:].T, -columns[end, 1:]
    program = scipy.optimize.linprog(slopes[:, 0], rows[~equal], margins[~equal], rows[equal], margins[equal], boxes)
    if not program.success:
        return 0.0
    coordinates = U[[end]]
    coordinates[0, real] += program.x
    design = space.in_box(coordinates)
    return -float(program.fun) if space.relation_violation(design)[0] <= 0.0 else 0.0
