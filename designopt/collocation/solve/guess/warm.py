"""Solution of neighbouring problems, each from another one, also shifted in time (receding horizon)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from designopt.arrays import Integers
from designopt.collocation.solution.solution import Iterate, Solution, Status
from designopt.collocation.solve.program import Program
from designopt.collocation.statement.problem import TrajectoryProblem

#: Share of the iterations of the cold start beyond which a warm start has not helped.
HELPFUL = 0.5
#: Relative difference of objectives beyond which optima differ.
EQUAL = 1e-6
#: Objective below which it is zero.
TINY = 1e-300


def nearest_neighbour_path(points: ArrayLike) -> NDArray[np.int64]:
    """An order (n,) of `points` (n, d) in which the nearest remaining point follows each.

    From the first point; every column is relative to its range.
    """
    scaled_input = np.asarray(points, float)
    spans = np.ptp(scaled_input, axis=0)
    scaled_points = scaled_input / np.where(spans > 0.0, spans, 1.0)
    left = np.ones(len(scaled_points), bool)
    order = []
    at = 0
    while left.any():
        order.append(at)
        left[at] = False
        distances = np.where(left, ((scaled_points - scaled_points[at]) ** 2).sum(axis=1), np.inf)
        at = int(distances.argmin())
    return np.array(order, np.int64)


def solve_near(program: Program, problem: TrajectoryProblem, previous: Solution, cold_iterations: int) -> Solution:
    """The solution of `problem` from the `previous` one of this `program`.

    First with its multipliers; if this fails, or takes more than half of `cold_iterations`, with its variables alone;
    if this fails, cold. `Solution.warm_path` lists the starts.
    """
    attempts = []
    best: Solution | None = None
    for warm in ("full", "primal", "none"):
        solution = program.attempt(problem, warm=warm, previous=None if warm == "none" else previous)
        attempts.append(warm)
        if solution.success and (best is None or not best.success or solution.objective < best.objective):
            best = solution
        best = best or solution
        if solution.status is Status.CANCELLED:
            return replace(solution, warm_path=tuple(attempts))
        is_helpful = solution.success and (warm != "full" or solution.iterations <= max(HELPFUL * cold_iterations, 1.0))
        if is_helpful:
            break
    assert best is not None
    return replace(best, warm_path=tuple(attempts))


def solve_chain(program: Program, problems: Sequence[TrajectoryProblem]) -> Iterator[Solution]:
    """Solutions of neighbouring `problems`, in their order: the first cold, each other from the one before.

    A stop request ends the chain after the current solution.
    """
    previous: Solution | None = None
    cold = 0
    for problem in problems:
        if previous is None:
            solution = program.attempt(problem)
            cold = max(cold, solution.iterations)
        else:
            solution = solve_near(program, problem, previous, cold)
        yield solution
        if solution.status is Status.CANCELLED:
            return
        previous = solution if solution.success else previous


@dataclass(frozen=True)
class Difference:
    """A problem of a chain (its number) whose cold solution differs: objectives of both."""

    number: int
    warm: float
    cold: float


def verify(
    program: Program, problems: Sequence[TrajectoryProblem], solutions: Mapping[int, Solution], count: int, seed: int
) -> list[Difference]:
    """Solve `count` of the problems cold, drawn with `seed`; returns those whose objective differs by more than
    `EQUAL`.

    A chain may follow a local optimum that a cold start does not find, and vice versa.
    """
    numbers = sorted(solutions)
    indices = np.random.default_rng(seed).choice(numbers, size=min(count, len(numbers)), replace=False)
    differences = []
    for number in sorted(indices.tolist()):
        cold, warm = program.attempt(problems[number]), solutions[number]
        apart = abs(cold.objective - warm.objective) / max(abs(cold.objective), abs(warm.objective), TINY)
        if apart > EQUAL or not cold.success:
            differences.append(Difference(number, warm.objective, cold.objective))
    return differences


def shifted(program: Program, previous: Solution, intervals: int = 1) -> Solution:
    """A `previous` solution of `program` with its iterate shifted by `intervals` mesh intervals; the last one is
    repeated.

    For `Program.solve(problem, warm="full", previous=...)`, or warm primal; `previous.phases` do not change. Raises
    `ValueError` for meshes that are not uniform and for a shift beyond them.
    """
    transcription, iterate = program.transcription, previous.iterate
    x, bound_multipliers = iterate.x.copy(), iterate.bound_multipliers.copy()
    row_multipliers = iterate.constraint_multipliers.copy()
    for i, layout in enumerate(transcription.layout.phases):
        mesh = layout.mesh
        if len(mesh.groups) != 1 or not np.allclose(mesh.widths, mesh.widths[0], rtol=1e-9, atol=0.0):
            raise ValueError("a receding horizon needs equal intervals and one scheme: leave out refinement")
        if not 0 <= intervals < len(mesh):
            raise ValueError(f"a shift by {intervals} intervals is not possible: the mesh has {len(mesh)}")
        slots = intervals * mesh.schemes[0].steps
        for table in (layout.states, layout.point):
            later = table[_later(len(table), slots)]
            x[table], bound_multipliers[table] = iterate.x[later], iterate.bound_multipliers[later]
        for block in transcription.blocks:
            if block.phase == i and block.kind != "sample" and len(block.slots) > 1:
                by = round(slots * len(block.slots) / (mesh.slots - 1))  # some have one row for each interval
                row_multipliers[block.rows] = iterate.constraint_multipliers[block.rows[_later(len(block.slots), by)]]
    return replace(previous, iterate=Iterate(x, row_multipliers, bound_multipliers))


def _later(count: int, by: int) -> Integers:
    """Later numbers (count,), the last repeated."""
    return np.minimum(np.arange(count) + by, count - 1)
