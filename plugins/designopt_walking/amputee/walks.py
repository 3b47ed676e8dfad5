"""Solves for walks of one amputee at one speed: the first from a symmetric walk with help, the others from that one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from designopt.collocation import Guess, Program, Sampled, Solution, TrajectoryProblem, checked
from designopt.collocation.transcription.functions.functions import ProblemFunctions
from designopt.plugin import Diverged
from designopt_walking.amputee.problem import AmputeeCost, Prosthesis, amputee_problem, amputee_system
from designopt_walking.programs.gait import program_options
from designopt_walking.walker import Walker

#: Devices of the start: with help, and of the walk from which all designs are solved; knee, damper, ankle.
HELPED = {"single_axis": (10.0, 3.0, 300.0), "four_bar": (1.5e4, 4e3, 300.0)}
MIDDLE = {"single_axis": (15.0, 2.0, 400.0), "four_bar": (2e4, 2.5e3, 400.0)}
#: Prices of the help torques in the stages of the start, and iterations after which a stage ends, solved or not.
PRICES, STAGE_ITERATIONS = (1.0, 30.0), 120
#: A further price, where the walk without help is not found from those.
LAST_PRICE = 1000.0
#: Least intervals of the start: coarser meshes find no way from the symmetric walk.
START_INTERVALS = 40
#: Iterations after which a warm start has not helped.
WARM_ITERATIONS = 150
#: Relative decrease of the objective below which a walk is polished.
POLISHED = 1e-5
#: Relative difference of the objectives of starts that agree.
AGREE = 1e-3


@dataclass(frozen=True)
class SolveSettings:
    """Mesh and limits of the programs: `intervals` of a cycle, `tolerance` and `iterations` of the solver."""

    intervals: int = 50
    tolerance: float = 1e-6
    iterations: int = 400


@dataclass(frozen=True, eq=False)
class Predicted:
    """A solved walk, the `way` to it ("warm", "cold" or the name of its start), and the number of solves.

    `objectives` are those of all starts that were solved, the result's among them.
    """

    solution: Solution
    way: str
    attempts: int
    objectives: tuple[float, ...]

    @property
    def spread(self) -> float:
        """Of the objectives of all starts, relative to the least."""
        return max(self.objectives) / min(self.objectives) - 1.0

    @property
    def agreeing(self) -> int:
        """Number of starts that end in the least objective."""
        least = min(self.objectives)
        return sum(value <= least * (1.0 + AGREE) for value in self.objectives)


class AmputeeWalks:
    """Walks of a `walker` with a `prosthesis` at one `speed` (m/s); `symmetric` computes the symmetric walk at that
    speed over a full cycle, with all muscles.

    Every design is solved from one walk, that of the middle device: results do not depend on the order of designs.
    """

    def __init__(
        self,
        walker: Walker,
        prosthesis: Prosthesis,
        speed: float,
        cost: AmputeeCost,
        symmetric: Callable[[], Sampled],
        settings: SolveSettings,
    ) -> None:
        self.walker, self.prosthesis, self.speed = walker, prosthesis, speed
        self.system = amputee_system(walker)
        self._cost, self._symmetric, self._settings = cost, symmetric, settings
        self._statement: ProblemFunctions | None = None
        self._kind = "single_axis" if prosthesis.linkage is None else "four_bar"

    def problem(self, values: Mapping[str, float], help_price: float | None = None) -> TrajectoryProblem:
        """The program with these `values` of device parameters; others are unknowns within their ranges."""
        stated = amputee_problem(self.system, self.prosthesis.side, self.speed, self._cost, help_price=help_price)
        return replace(stated, parameters={**stated.parameters, **values})

    def free_problem(self) -> TrajectoryProblem:
        """The program in which all device parameters are unknowns, which starts from the middle walk."""
        stated = self.problem({})
        (phase,) = stated.phases
        starting = replace(phase, start=lambda _values, _rng: self.middle.phase)
        return replace(stated, phases=[starting], guess=self._named(MIDDLE))

    def walk(self, values: Mapping[str, float]) -> Predicted:
        """The walk with fixed `values` of all device parameters: warm from the middle walk, else cold.

        Raises `Diverged` with the status of the last solve where neither is solved.
        """
        problem = self.problem(values)
        program, middle = self._warm
        if middle is not None:
            solution = program.solve(problem, warm="full", previous=middle)
            if solution.success:
                return self._result(problem, solution, "warm", 1, (solution.objective,))
        solution = self._solve(problem, self._helped_guess(values), self._settings.iterations)
        if not solution.success:
            raise _unsolved(solution)
        return self._result(problem, solution, "cold", 2, (solution.objective,))

    def best_device(self, fixed: Mapping[str, float]) -> Predicted:
        """The walk whose program chooses all device parameters that are not `fixed`: from three starts (the walk with
        help, the middle walk, the better of both results), polished until the objective stops falling.

        Raises `Diverged` where no start is solved.
        """
        problem, objectives, attempts = self.problem(fixed), [], 0
        best: tuple[Solution, str] | None = None
        starts = {"help": self._helped, "middle walk": self.middle}
        last = self.middle
        for name, start in starts.items():
            last, attempts = self._solve(problem, Guess.from_solution(start), self._settings.iterations), attempts + 1
            if last.success:
                objectives.append(last.objective)
                if best is None or last.objective < best[0].objective:
                    best = last, name
        if best is None:
            raise _unsolved(last)
        gain = 1.0
        while gain > POLISHED:
            polished = self._solve(problem, Guess.from_solution(best[0]), self._settings.iterations)
            attempts += 1
            gain = 1.0 - polished.objective / best[0].objective if polished.success else 0.0
            if polished.success:
                objectives.append(polished.objective)
            if gain > 0.0:
                best = polished, f"{best[1]}, polished"
        return self._result(problem, best[0], best[1], attempts, tuple(objectives))

    @cached_property
    def middle(self) -> Solution:
        """The walk with the middle device, on at least `START_INTERVALS`. Raises `Diverged` where the start does not
        reach it."""
        values, iterations = self._named(MIDDLE), self._settings.iterations
        solution = self._solve(self.problem(values), Guess.from_solution(self._helped), iterations, coarse=False)
        if not solution.success:
            dear = self.problem(values, LAST_PRICE)
            helped = self._solve(dear, self._helped_guess(values), iterations, coarse=False)
            solution = self._solve(self.problem(values), Guess.from_solution(helped), iterations, coarse=False)
        if not solution.success:
            raise _unsolved(solution)
        return solution

    @cached_property
    def _helped(self) -> Solution:
        """The last iterate with help torques, from the symmetric walk; it need not be solved."""
        values = self._named(HELPED)
        symmetric = self._symmetric()
        names = [v.name for v in self.system.states + self.system.controls if v.name in symmetric.values]
        guess = Guess({"cycle": symmetric.only(names)}, values)
        solution: Solution | None = None
        for price in PRICES:
            solution = self._solve(self.problem(values, price), guess, STAGE_ITERATIONS, coarse=False)
            guess = Guess.from_solution(solution)
        assert solution is not None
        return solution

    @cached_property
    def _warm(self) -> tuple[Program, Solution | None]:
        """The program of warm starts, and the middle walk as its solution, with multipliers; None where it is not
        solved on this mesh."""
        guess = Guess.from_solution(self.middle)
        program = self._program(self.problem(self._named(MIDDLE)), guess, WARM_ITERATIONS, self._settings.intervals)
        solution = program.solve(guess=guess)
        return program, solution if solution.success else None

    def _helped_guess(self, values: Mapping[str, float]) -> Guess:
        return Guess({"cycle": self._helped.phase}, dict(values))

    def _program(self, problem: TrajectoryProblem, guess: Guess, iterations: int, intervals: int) -> Program:
        options = program_options(intervals, self._settings.tolerance, max_iterations=iterations)
        program = Program(problem, options, guess, statement=self._statement)
        self._statement = program.statement
        return program

    def _solve(self, problem: TrajectoryProblem, guess: Guess, iterations: int, *, coarse: bool = True) -> Solution:
        """From a guess, on the mesh of the settings, or at least that of the start where it may not be `coarse`."""
        intervals = self._settings.intervals if coarse else max(self._settings.intervals, START_INTERVALS)
        return self._program(problem, guess, iterations, intervals).solve(guess=guess)

    def _named(self, values: Mapping[str, Sequence[float]]) -> dict[str, float]:
        return dict(zip(self.prosthesis.parameters, values[self._kind], strict=True))

    def _result(
        self, problem: TrajectoryProblem, solution: Solution, way: str, attempts: int, objectives: tuple[float, ...]
    ) -> Predicted:
        assert self._statement is not None
        return Predicted(checked(problem, self._statement, solution), way, attempts, objectives)


def _unsolved(solution: Solution) -> Diverged:
    return Diverged(solution.message, reason=solution.status.name.lower())
