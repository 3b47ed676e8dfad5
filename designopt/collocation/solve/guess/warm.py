"""Neighbouring problems, one solved from the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from designopt.collocation.solution.solution import Solution
from designopt.collocation.solution.status import Status
from designopt.collocation.solve.program import Program
from designopt.collocation.statement.problem import TrajectoryProblem

#: A warm start that takes more than this share of the iterations of the cold one has not helped.
HELPFUL = 0.5
#: Optima that differ by more than this, relative, are different ones.
EQUAL = 1e-6
#: An objective below this is zero.
TINY = 1e-300


def nearest_neighbour_path(points: ArrayLike) -> NDArray[np.int64]:
    """An order (n,) of `points` (n, d) in which each is followed by the nearest one that is left.

    From the first point; every column counts by its range.
    """
    given = np.asarray(points, float)
    spans = np.ptp(given, axis=0)
    scaled = given / np.where(spans > 0.0, spans, 1.0)
    left = np.ones(len(scaled), bool)
    order = []
    at = 0
    while left.any():
        order.append(at)
        left[at] = False
        distances = np.where(left, ((scaled - scaled[at]) ** 2).sum(axis=1), np.inf)
        at = int(distances.argmin())
    return np.array(order, np.int64)


def solve_near(program: Program, problem: TrajectoryProblem, previous: Solution, cold_iterations: int) -> Solution:
    """The solution of `problem` from the `previous` one of this `program`.

    With its multipliers first; should that fail, or take more than half of `cold_iterations`, with its variables alone,
    and cold should that fail. `Solution.warm_path` says what was tried.
    """
    tried = []
    best: Solution | None = None
    for warm in ("full", "primal", "none"):
        found = program.solve(problem, warm=warm, previous=None if warm == "none" else previous)
        tried.append(warm)
        if found.success and (best is None or not best.success or found.objective < best.objective):
            best = found
        best = best or found
        if found.status is Status.CANCELLED:
            return replace(found, warm_path=tuple(tried))
        helped = found.success and (warm != "full" or found.iterations <= max(HELPFUL * cold_iterations, 1.0))
        if helped:
            break
    assert best is not None
    return replace(best, warm_path=tuple(tried))


def solve_chain(program: Program, problems: Sequence[TrajectoryProblem]) -> Iterator[Solution]:
    """Solutions of neighbouring `problems`, in their order: the first cold, each other from the one before.

    One that was stopped on request is the last.
    """
    previous: Solution | None = None
    cold = 0
    for problem in problems:
        if previous is None:
            found = program.solve(problem)
            cold = max(cold, found.iterations)
        else:
            found = solve_near(program, problem, previous, cold)
        yield found
        if found.status is Status.CANCELLED:
            return
        previous = found if found.success else previous


@dataclass(frozen=True)
class Difference:
    """A problem of a chain (its number) whose cold solution differs: objectives of both."""

    number: int
    warm: float
    cold: float


def verify(
    program: Program, problems: Sequence[TrajectoryProblem], solutions: Mapping[int, Solution], count: int, seed: int
) -> list[Difference]:
    """Solve `count` of the problems cold, drawn with `seed`: those whose objective differs by more than `EQUAL`.

    A chain may follow a local optimum that a cold start does not find, and the other way round.
    """
    numbers = sorted(solutions)
    drawn = np.random.default_rng(seed).choice(numbers, size=min(count, len(numbers)), replace=False)
    found = []
    for number in sorted(drawn.tolist()):
        cold, warm = program.solve(problems[number]), solutions[number]
        apart = abs(cold.objective - warm.objective) / max(abs(cold.objective), abs(warm.objective), TINY)
        if apart > EQUAL or not cold.success:
            found.append(Difference(number, warm.objective, cold.objective))
    return found
