"""The first walk of an amputee: from the symmetric walk that all muscles choose, through stages with help torques."""

from __future__ import annotations

from collections.abc import Callable

from designopt_muscle.osim.model import OsimModel

from designopt.collocation import Guess, Program, SampledTrajectory, Solution, sampled
from designopt.evaluation_progress import step
from designopt.plugin import Diverged
from designopt_walking.amputee.programs import HELPED, AmputeePrograms, refuse_interrupted
from designopt_walking.amputee.shared_walks import SharedWalks
from designopt_walking.programs.gait import GaitRanges, program_options, ranged_tree
from designopt_walking.programs.predict import Effort, predicted_walk
from designopt_walking.programs.synthetic import SyntheticWalk, track_synthetic
from designopt_walking.results.cycle import SolvedWalk
from designopt_walking.walker import walker_of

#: Exponent of the excitations, as in the cost of the amputee's walk.
EXPONENT = 2
#: Intervals of the half cycle of the symmetric walk.
INTERVALS = 20
#: Intervals of the cycle with help: coarser meshes find no way from the symmetric walk.
START_INTERVALS = 40
#: Prices of the help torques in the stages of the start, and iterations after which a stage ends, solved or not.
PRICES, STAGE_ITERATIONS = (1.0, 30.0), 120


class AmputeeStart:
    """The beginning of all walks of an amputee, which is computed once for each speed.

    `symmetric` computes the trajectories of the symmetric walk at a speed (m/s) over a full cycle; `shared` has walks
    that another worker or run has computed.
    """

    def __init__(
        self, programs: AmputeePrograms, symmetric: Callable[[float], SampledTrajectory], shared: SharedWalks
    ) -> None:
        self.programs, self.shared = programs, shared
        self._symmetric = symmetric
        self._solutions: dict[float, Solution] = {}

    def helped_iterate(self, speed: float) -> Solution:
        """The last iterate with help torques at `speed`; it need not be solved. Raises `Diverged` without a symmetric
        walk."""
        if speed not in self._solutions:
            self._solutions[speed] = self.shared.solution(f"help, {speed:.6f} m/s", lambda: self._with_help(speed))
        return self._solutions[speed]

    def _with_help(self, speed: float) -> Solution:
        programs, values, symmetric = self.programs, self.programs.device(HELPED), self._symmetric(speed)
        names = [v.name for v in programs.system.states + programs.system.controls if v.name in symmetric.values]
        guess = Guess({"cycle": symmetric.only(names)}, values)
        for price in PRICES:
            problem = programs.problem(speed, values, price)
            with step("first walk, with help torques"):
                solution = programs.solve(problem, guess, START_INTERVALS, STAGE_ITERATIONS)
            guess = Guess.from_solution(solution)
        return solution


def symmetric_walk(model: OsimModel, speed: float, tolerance: float) -> SampledTrajectory:
    """All variables of the walk of a symmetric `model` at `speed` (m/s) over a full cycle: a synthetic walk is tracked,
    then the walk is predicted from there.

    Raises `Diverged` where it is not solved, and `programs.gait.GaitError` for a model or a speed that cannot be.
    """
    gait = GaitRanges()
    tree = ranged_tree(model, gait)
    walker = walker_of(model, tree=tree, ranges={c.name: (c.low, c.high) for c in tree.coordinates})
    start = refuse_interrupted(track_synthetic(walker, gait, SyntheticWalk(speed), INTERVALS))
    problem = predicted_walk(walker, gait, Effort(exponent=EXPONENT), speed, lambda _values, _rng: start.phase)
    with step(f"first walk, symmetric, at {speed:g} m/s"):
        solution = refuse_interrupted(Program(problem, program_options(INTERVALS, tolerance)).solve())
    if not solution.success:
        raise Diverged(
            f"the symmetric walk at {speed:g} m/s, from which that of the amputee starts: {solution.message}",
            reason=f"start_{solution.status.name.lower()}",
        )
    points = SolvedWalk(walker, solution, half=True).points
    is_first = [True, *(step > 0.0 for step in (points.time[1:] - points.time[:-1]).tolist())]
    outputs = {v.name for v in problem.phases[0].system.outputs}
    return sampled(points.time[is_first], {n: v[is_first] for n, v in points.values.items() if n not in outputs})
