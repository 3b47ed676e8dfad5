"""The programs of one amputee at any speed and with any device: all have the same expressions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from designopt.collocation import Guess, Program, Solution, Status, TrajectoryProblem
from designopt.collocation.transcription.functions.functions import ProblemFunctions
from designopt_walking.amputee.problem import AmputeeCost, Prosthesis, amputee_problem, amputee_system
from designopt_walking.programs.gait import program_options, walk_step, with_interval_errors
from designopt_walking.walker import Walker

#: Device of the start with help, by the kind of the knee: knee, damper, ankle.
HELPED = {"single_axis": (10.0, 3.0, 300.0), "four_bar": (1.5e4, 4e3, 300.0)}
#: Devices of the walks from which all others are continued. With the soft single axis the knee swings, with the stiff
#: one it stays nearly straight; continued to the other's device either walk costs more: at 1.2 m/s 1.01 in place of
#: 0.82 with the stiff one, 0.67 in place of 0.62 with the soft one.
MIDDLES = {"single_axis": ((3.0, 0.4, 400.0), (15.0, 2.0, 400.0)), "four_bar": ((1e4, 1.25e3, 400.0),)}
#: Relative decrease of the objective below which a walk is polished.
POLISHED = 1e-5


@dataclass(frozen=True)
class SolveSettings:
    """Limits of the programs: `tolerance` and `iterations` of the solver."""

    tolerance: float = 1e-6
    iterations: int = 600


class AmputeePrograms:
    """Programs of a `walker` with a `prosthesis`, which differ in mesh, speed and numbers of the device."""

    def __init__(self, walker: Walker, prosthesis: Prosthesis, cost: AmputeeCost, settings: SolveSettings) -> None:
        self.walker, self.prosthesis, self.settings = walker, prosthesis, settings
        self.system = amputee_system(walker)
        self._cost = cost
        self._problem_functions: ProblemFunctions | None = None

    def device(self, values: Mapping[str, tuple[float, ...]]) -> dict[str, float]:
        """The device for this kind of the knee, by the names of its parameters; `values` are the devices by kind."""
        return dict(zip(self.prosthesis.parameters, values[self.prosthesis.knee], strict=True))

    def devices(self, values: Mapping[str, tuple[tuple[float, ...], ...]]) -> list[dict[str, float]]:
        """The devices for this kind of the knee; `values` are several devices by kind."""
        knee = self.prosthesis.knee
        return [self.device({knee: numbers}) for numbers in values[knee]]

    def problem(self, speed: float, values: Mapping[str, float], help_price: float | None = None) -> TrajectoryProblem:
        """The problem at `speed` (m/s) with these `values` of the device; others are unknowns in their ranges."""
        problem = amputee_problem(self.system, self.prosthesis.side, speed, self._cost, help_price=help_price)
        return replace(problem, parameters={**problem.parameters, **values})

    def program(
        self, problem: TrajectoryProblem, guess: Guess, intervals: int, iterations: int | None = None
    ) -> Program:
        """The program on a mesh of `intervals`. Its functions are compiled, once for all programs and runs: they give
        the same numbers in a tenth of the time."""
        max_iterations = self.settings.iterations if iterations is None else iterations
        options = program_options(intervals, self.settings.tolerance, max_iterations=max_iterations, compile="always")
        program = Program(problem, options, guess, problem_functions=self._problem_functions)
        self._problem_functions = program.problem_functions
        return program

    def solve(
        self, problem: TrajectoryProblem, guess: Guess, intervals: int, iterations: int | None = None
    ) -> Solution:
        """The solution of the program from a `guess`. Raises `KeyboardInterrupt` for a solve stopped by Ctrl-C."""
        with walk_step(cast(float, problem.parameters["speed"]), intervals):
            return refuse_interrupted(self.program(problem, guess, intervals, iterations).solve(guess=guess))

    def polish(self, problem: TrajectoryProblem, solution: Solution, intervals: int) -> list[Solution]:
        """The solutions of solving again from the best one, with a large barrier, until the objective stops falling or
        a solve fails: `solution` may be one of several walks, of which round-off decides."""
        attempts: list[Solution] = []
        best, gain = solution, 1.0
        while gain > POLISHED:
            attempts.append(self.solve(problem, Guess.from_solution(best), intervals))
            gain = 1.0 - attempts[-1].objective / best.objective if attempts[-1].success else 0.0
            best = best_walk([best, *attempts])
        return attempts

    def solve_finer(self, problem: TrajectoryProblem, coarse: Solution, intervals: int) -> Solution:
        """The solution on a mesh of `intervals` near a `coarse` one: a search with a large barrier may end in another
        walk. Raises `KeyboardInterrupt` for a solve stopped by Ctrl-C."""
        with walk_step(cast(float, problem.parameters["speed"]), intervals):
            program = self.program(problem, Guess.from_solution(coarse), intervals)
            return refuse_interrupted(program.solve(warm="near", previous=coarse))

    def checked(self, problem: TrajectoryProblem, solution: Solution) -> Solution:
        """`solution` with the errors of its intervals."""
        return with_interval_errors(problem, solution)


def best_walk(solutions: Sequence[Solution]) -> Solution:
    """The solved walk with the least objective; the first of `solutions` where none is solved."""
    return min(solutions, key=lambda solution: solution.objective if solution.success else math.inf)


def refuse_interrupted(solution: Solution) -> Solution:
    """`solution`. Raises `KeyboardInterrupt` if Ctrl-C stopped its solve: walks that continued from it would be stored
    for later runs."""
    if solution.status is Status.CANCELLED:
        raise KeyboardInterrupt(solution.message)
    return solution
