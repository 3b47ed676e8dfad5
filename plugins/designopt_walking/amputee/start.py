"""The symmetric walk from which that of an amputee starts: predicted with all muscles at the same speed."""

from __future__ import annotations

from designopt_muscle.osim.model import OsimModel

from designopt.collocation import Program, Sampled, sampled
from designopt.plugin import Diverged
from designopt_walking.programs.gait import GaitRanges, program_options, ranged_tree
from designopt_walking.programs.predict import Effort, predicted_walk
from designopt_walking.programs.synthetic import SyntheticWalk, track_synthetic
from designopt_walking.results.cycle import SolvedWalk
from designopt_walking.walker import walker_of

#: Exponent of the excitations, as in the cost of the amputee's walk.
EXPONENT = 2
#: Intervals of the half cycle.
INTERVALS = 20


def symmetric_walk(model: OsimModel, speed: float, tolerance: float) -> Sampled:
    """All variables of the walk of a symmetric `model` at `speed` (m/s) over a full cycle: a synthetic walk is tracked,
    then the walk is predicted from there.

    Raises `Diverged` where it is not solved, and `programs.gait.GaitError` for a model or a speed that cannot be.
    """
    gait = GaitRanges()
    tree = ranged_tree(model, gait)
    walker = walker_of(model, tree=tree, ranges={c.name: (c.low, c.high) for c in tree.coordinates})
    tracked = track_synthetic(walker, gait, SyntheticWalk(speed), INTERVALS)
    problem = predicted_walk(walker, gait, Effort(exponent=EXPONENT), speed, lambda _values, _rng: tracked.phase)
    solution = Program(problem, program_options(INTERVALS, tolerance)).solve()
    if not solution.success:
        raise Diverged(
            f"the symmetric walk at {speed:g} m/s, from which that of the amputee starts: {solution.message}",
            reason=f"start_{solution.status.name.lower()}",
        )
    points = SolvedWalk(walker, solution, half=True).points
    once = [True, *(step > 0.0 for step in (points.time[1:] - points.time[:-1]).tolist())]
    outputs = {v.name for v in problem.phases[0].system.outputs}
    return sampled(points.time[once], {n: v[once] for n, v in points.values.items() if n not in outputs})
