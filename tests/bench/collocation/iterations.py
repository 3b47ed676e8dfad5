"""Iterations of a solve: ours, and of IPOPT on the program written by hand, from the same guess. Counts are the same in
every run. ``python iterations.py`` prints the table."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "collocation" / "problems"))

import hard_starts
import machines
import numpy as np
from by_hand import ByHand
from published import PUBLISHED

from designopt.collocation import Options, Program, TrajectoryProblem
from designopt.collocation.solve.guess.multistart import perturbed

#: Problem, cost (as in `ByHand`) and intervals.
PROBLEMS: dict[str, tuple[Callable[[], TrajectoryProblem], str, int]] = {
    "quadrotor": (machines.quadrotor, "integral", 50),
    "point past disc": (machines.point_past_disc, "integral", 50),
    "two-link arm": (machines.two_link_arm, "duration", 200),
    "crane": (machines.crane, "integral", 50),
    "hovercraft": (hard_starts.hovercraft, "duration", 50),
    **{
        name: (PUBLISHED[name].problem, cost, 50)
        for cost, names in (
            ("duration", ("double integrator", "sliding mass", "brachistochrone", "linear tangent", "robot arm")),
            ("integral", ("cart-pole", "van der pol", "lander", "quarter car", "bryson-denham", "damped to rest")),
            ("integral", ("four peaks", "hyper-sensitive, 1000 s")),
            ("final", ("goddard", "catalyst")),
        )
        for name in names
    },
}
GUESSES = 20


class Count(NamedTuple):
    """Iterations and objectives; infinitely many where the solve fails."""

    ours: float
    by_hand: float
    objective: float
    objective_by_hand: float


def count(name: str) -> Count:
    problem, cost, intervals = PROBLEMS[name]
    solution = Program(problem(), Options(intervals=intervals)).solve()
    by_hand = ByHand(problem(), intervals, cost, abs(solution.objective))
    objective = by_hand.objective()
    return Count(
        solution.iterations if solution.success else math.inf,
        math.inf if objective is None else by_hand.iterations,
        solution.objective,
        math.nan if objective is None else objective,
    )


def solved_guesses(optimum: float = 5.0 * math.pi) -> tuple[int, int]:
    """How many of `GUESSES` lead the oscillator in least time to its optimum or a better one: ours, and by hand.

    On 50 intervals the program has an optimum of 15.598 s beside that of 15.712 s near the oscillator's (5 pi s)."""
    problem = hard_starts.oscillator()
    program = Program(problem, Options(intervals=50))
    by_hand = ByHand(problem, 50, "duration", optimum)
    ours = theirs = 0
    for i in range(GUESSES):
        guess = perturbed(problem, None, np.random.default_rng([0, i]))
        solution = program.solve(guess=guess)
        hand_optimum = by_hand.solve_from(guess.phases[problem.phases[0].name], guess.parameters)
        ours += solution.success and solution.objective <= 1.002 * optimum
        theirs += hand_optimum is not None and hand_optimum <= 1.002 * optimum
    return ours, theirs


if __name__ == "__main__":
    for name in PROBLEMS:
        print(f"{name:25s}", *(f"{number:12.8g}" for number in count(name)))
    print("guesses of the oscillator:", *solved_guesses())
