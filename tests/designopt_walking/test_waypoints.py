"""Ways to a walk: small steps of speed and device from one walk, the same whatever was solved before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from designopt_walking.amputee import model as amputee_model
from designopt_walking.amputee.family import ContinuedWalk, level, value_at
from designopt_walking.amputee.model import AmputeeWalk
from designopt_walking.amputee.programs import AmputeePrograms
from designopt_walking.amputee.start import AmputeeStart
from designopt_walking.amputee.walks import AmputeeWalks
from designopt_walking.models.predict import WalkPredict
from designopt_walking.programs import predictor
from designopt_walking.programs.predictor import WalkPredictor

from designopt.collocation import Guess, Options, TrajectoryProblem
from designopt.collocation.solution.solution import Status
from designopt.plugin import Diverged

MIDDLE = {"damper_stiffness": 2e4, "damper_damping": 2.5e3, "ankle_stiffness": 400.0}
Problem = tuple[float, Mapping[str, float]]


@dataclass(frozen=True)
class Walk:
    """A solution whose `way` lists the problems from the first walk to it."""

    way: tuple[tuple[float, ...], ...]
    success: bool = True
    objective: float = 1.0
    message: str = "not solved"
    status: Status = Status.ITERATION_LIMIT
    warm_path: tuple[str, ...] = ()


class Programs:
    """Programs that record their solves; those that `fail` are not solved. Walks cost what their first `middles` cost,
    1 and 2 and so on."""

    def __init__(
        self, fail: Callable[[float, Mapping[str, float]], bool], middles: Sequence[Mapping[str, float]]
    ) -> None:
        self.solves: list[tuple[float, ...]] = []
        self._fail, self._middles = fail, middles

    def devices(self, _: object) -> Sequence[Mapping[str, float]]:
        return self._middles

    def problem(self, speed: float, values: Mapping[str, float]) -> Problem:
        return speed, values

    def program(self, *_: object) -> Programs:
        return self

    def solve(self, problem: Problem, *_: object, previous: Walk | None = None, **__: object) -> Walk:
        if problem[0] == 0.9 and problem[1] in self._middles:
            return Walk((), not self._fail(*problem), 1.0 + self._middles.index(problem[1]))
        entry = (problem[0], *problem[1].values())
        self.solves.append(entry)
        return Walk(
            (*(previous.way if previous else ()), entry),
            not self._fail(*problem),
            previous.objective if previous else 1.0,
        )

    polish = AmputeePrograms.polish

    def checked(self, _: Problem, solution: Walk) -> Walk:
        return solution


@dataclass
class Files:
    """Walks by name, in place of files."""

    walks: dict[str, Walk]

    def solution(self, name: str, solve: Callable[[], Walk]) -> Walk:
        return self.walks.setdefault(name, self.walks.get(name) or solve())


def walks(
    monkeypatch: pytest.MonkeyPatch,
    fail: Callable[..., bool] = lambda *_: False,
    middles: Sequence[Mapping[str, float]] = (MIDDLE,),
    files: dict[str, Walk] | None = None,
) -> AmputeeWalks:
    monkeypatch.setattr(Guess, "from_solution", lambda walk: walk)
    shared = Files({} if files is None else files)
    start = SimpleNamespace(programs=Programs(fail, middles), helped_iterate=lambda _: Walk(()), shared=shared)
    return AmputeeWalks(start, 40)  # type: ignore[arg-type]


def replace_shared(start: AmputeeStart) -> AmputeeStart:
    """The start with files of its own."""
    return SimpleNamespace(programs=start.programs, helped_iterate=start.helped_iterate, shared=Files({}))  # type: ignore[return-value]


def way(amputee: AmputeeWalks, speed: float, values: Mapping[str, float]) -> list[tuple[float, ...]]:
    return list(amputee.walk(speed, values).solution.way)  # type: ignore[attr-defined]


SOFT = {"damper_stiffness": 2e3, "damper_damping": 200.0, "ankle_stiffness": 400.0}
STIFF = {"damper_stiffness": 6e4, "damper_damping": 8e3, "ankle_stiffness": 400.0}


@pytest.mark.parametrize("value", [0.0, 0.1, 1.0, 5.0])
def test_levels_of_a_parameter_count_from_its_middle_down_to_zero(value: float) -> None:
    assert value_at(level(3.0 * value, 3.0), 3.0) == pytest.approx(3.0 * value, abs=1e-12)
    assert level(3.0, 3.0) == 0.0


@pytest.mark.parametrize("values", [SOFT, STIFF, {**MIDDLE, "damper_damping": 0.0}])
def test_a_design_is_reached_in_small_steps_of_speed_then_of_the_device(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, float]
) -> None:
    steps = way(walks(monkeypatch), 1.15, values)
    assert [step[0] for step in steps[:3]] == [1.0, 1.1, 1.15]
    assert all(step[1:] == tuple(MIDDLE.values()) for step in steps[:3])
    levels = [[level(x, m) for x, m in zip(step[1:], MIDDLE.values(), strict=True)] for step in steps[2:]]
    moves = [abs(b - a) for pair in pairwise(levels) for a, b in zip(*pair, strict=True)]
    assert max(moves) <= 0.25 + 1e-12
    assert steps[-1] == (1.15, *values.values())


def test_the_way_to_a_design_does_not_depend_on_designs_before_and_is_walked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    designs = [(1.1, SOFT), (0.85, STIFF), (1.1, {**SOFT, "damper_stiffness": 3e3}), (1.3, MIDDLE)]
    one, second_walks = walks(monkeypatch), walks(monkeypatch)
    ways = [way(one, *design) for design in designs]
    assert [way(second_walks, *design) for design in reversed(designs)] == ways[::-1]
    waypoints = [entry for entry in one.programs.solves if entry not in {w[-1] for w in ways}]  # type: ignore[attr-defined]
    assert len(waypoints) == len(set(waypoints))


def test_two_workers_solve_each_waypoint_once_and_have_the_walks_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With designs of all of the space at three speeds, as in `studies/prosthesis_walks.yaml`."""
    rng = np.random.default_rng(0)
    knees = [{**MIDDLE, "damper_stiffness": k, "damper_damping": c} for k, c in rng.uniform(200, [6e4, 8e3], (20, 2))]
    evaluations = [(speed, knee) for knee in knees for speed in (0.9, 1.1, 1.3)]
    files: dict[str, Walk] = {}
    alone, pair = walks(monkeypatch), [walks(monkeypatch, files=files) for _ in range(2)]
    ways = [way(alone, *evaluation) for evaluation in evaluations]
    assert [way(pair[n % 2], *evaluation) for n, evaluation in enumerate(evaluations)] == ways
    solves = [len(worker.programs.solves) for worker in (alone, *pair)]  # type: ignore[attr-defined]
    assert solves[0] == sum(solves[1:])
    assert solves[0] / max(solves[1:]) > 1.8


def test_a_waypoint_that_is_not_solved_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    near = way(walks(monkeypatch), 0.9, SOFT)[-2][1]
    amputee = walks(monkeypatch, lambda _, values: values["damper_stiffness"] == near)
    steps = way(amputee, 0.9, SOFT)
    assert near not in [step[1] for step in steps]
    assert steps[-1] == (0.9, *SOFT.values())


def test_a_design_without_a_walk_has_the_reason_after_a_cold_start(monkeypatch: pytest.MonkeyPatch) -> None:
    amputee = walks(monkeypatch, lambda _, values: values == SOFT)
    with pytest.raises(Diverged) as unsolved:
        amputee.walk(0.9, SOFT)
    assert unsolved.value.reason == "iteration_limit"
    assert amputee.programs.solves.count((0.9, *SOFT.values())) == 2  # type: ignore[attr-defined]
    assert amputee.walk(0.9, STIFF).way == "warm"


def test_a_design_has_the_cheapest_walk_of_all_families_that_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second family costs more, and is the result where the first is not solved."""
    middles = (MIDDLE, STIFF)
    cheapest = walks(monkeypatch, middles=middles).walk(1.0, SOFT)
    assert cheapest.solution.objective == 1.0
    assert cheapest.spread == 1.0
    assert cheapest.agreeing == 1
    second = walks(monkeypatch, lambda _, values: values == MIDDLE, middles).walk(1.0, SOFT)
    assert second.solution.objective == 2.0
    assert second.failures == (
        "from damper_stiffness 20000, damper_damping 2500, ankle_stiffness 400: no walk (start_iteration_limit)",
    )
    with pytest.raises(Diverged):
        walks(monkeypatch, lambda _, values: values in middles, middles).walk(1.0, SOFT)


def test_solves_of_a_family_without_a_walk_count_and_its_status_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    amputee = walks(monkeypatch, middles=(MIDDLE, STIFF))
    second = amputee.families[1]
    monkeypatch.setattr(second, "walk", lambda *_: ContinuedWalk(Walk((), False), "cold", 2))  # type: ignore[arg-type]
    predicted = amputee.walk(1.0, SOFT)
    assert (predicted.way, predicted.attempts, predicted.objectives) == ("warm", 3, (1.0,))
    assert predicted.failures == (f"from {second.name}: no walk (iteration_limit)",)


def test_a_chosen_device_starts_from_the_walks_of_all_families_and_is_polished(monkeypatch: pytest.MonkeyPatch) -> None:
    amputee = walks(monkeypatch, middles=(MIDDLE, STIFF))
    amputee.walk(0.9, MIDDLE)
    guesses = []
    results = iter([Walk((), False), Walk((), objective=0.7), Walk((), objective=0.6), Walk((), objective=0.6)])

    def solve(_: Problem, guess: Walk, *__: object) -> Walk:
        guesses.append(guess)
        return next(results)

    monkeypatch.setattr(amputee.programs, "solve", solve)
    predicted = amputee.best_device(0.9, {})
    assert [guess.objective for guess in guesses] == [1.0, 1.0, 2.0, 0.6]
    assert predicted.solution.objective == 0.6
    assert (predicted.attempts, predicted.objectives) == (4, (0.7, 0.6, 0.6))
    assert predicted.failures == ("from help torques: no walk (iteration_limit)",)
    monkeypatch.setattr(amputee.programs, "solve", lambda *_: Walk((), False))
    with pytest.raises(Diverged) as unsolved:
        amputee.best_device(0.9, {})
    assert unsolved.value.reason == "iteration_limit"


def test_a_first_walk_is_polished_until_its_objective_stops_falling(monkeypatch: pytest.MonkeyPatch) -> None:
    amputee = walks(monkeypatch)
    objectives = [0.75, 0.70, 0.69, 0.69 - 1e-7]
    results = iter([Walk((), objective=value) for value in objectives])
    monkeypatch.setattr(amputee.programs, "solve", lambda *_: next(results))
    assert amputee.families[0]._first[1].objective == objectives[-1]
    assert not [*results]
    failing = walks(monkeypatch)
    results = iter([Walk((), objective=0.75), Walk((), False, objective=0.1)])
    monkeypatch.setattr(failing.programs, "solve", lambda *_: next(results))
    assert failing.families[0]._first[1].objective == 0.75


def test_a_walk_is_confirmed_near_itself_on_twice_the_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    amputee = walks(monkeypatch)
    predicted = amputee.walk(0.9, SOFT)
    finer: list[tuple[object, ...]] = []

    def solve_finer(*arguments: object) -> Walk:
        finer.append(arguments)
        return Walk((), objective=1.1)

    monkeypatch.setattr(amputee.programs, "solve_finer", solve_finer, raising=False)
    confirmed = amputee.confirmed(0.9, SOFT, predicted)
    assert finer == [((0.9, SOFT), predicted.solution, 80)]
    assert (confirmed.solution.objective, confirmed.way) == (1.1, "warm")


@pytest.mark.parametrize("status", [Status.SOLVED, Status.ITERATION_LIMIT])
def test_a_predicted_walk_is_confirmed_near_itself_else_from_a_tracked_walk(
    monkeypatch: pytest.MonkeyPatch, status: Status
) -> None:
    coarse, tracked = Walk(()), Walk((), objective=3.0)
    near = Walk((), status.success, 2.0, status=status)
    starts: list[tuple[int, object, object]] = []

    def program(_: object, options: Options, guess: Walk, *, problem_functions: object) -> object:
        return SimpleNamespace(solve=lambda warm, previous: starts.append((options.intervals, warm, previous)) or near)

    monkeypatch.setattr(Guess, "from_solution", lambda walk: walk)
    monkeypatch.setattr(predictor, "Program", program)
    monkeypatch.setattr(WalkPredictor, "solve", lambda self, *_, starts: (self.mesh.intervals, tracked, starts))
    body = WalkPredict(intervals=12)._predictor(0.0)[0]
    confirmed = body.confirmed(1.2, {}, coarse, 3)  # type: ignore[arg-type]
    assert starts == [(24, "near", coarse)]
    assert confirmed == (replace(near, warm_path=("near",)) if status.success else (24, tracked, 3))


def test_on_a_slope_a_family_continues_the_same_family_nearer_to_level(monkeypatch: pytest.MonkeyPatch) -> None:
    level_ground = walks(monkeypatch, middles=(MIDDLE, STIFF))
    uphill = AmputeeWalks(replace_shared(level_ground.start), 40, level_ground)
    levels = [family.middle(0.9) for family in level_ground.families]
    previous = []
    solve = uphill.programs.solve

    def recorded(problem: Problem, *guess: object, **settings: object) -> Walk:
        previous.append(settings.get("previous"))
        return solve(problem, *guess, **settings)  # type: ignore[arg-type, return-value]

    monkeypatch.setattr(uphill.programs, "solve", recorded)
    assert uphill.walk(0.9, SOFT).solution.objective == 1.0
    assert all(any(walk is nearer for walk in previous) for nearer in levels)
    steep = AmputeeWalks(replace_shared(level_ground.start), 40, uphill)
    assert steep.families[1].middle(1.0).objective == 2.0


def test_walks_are_taken_to_steep_ground_and_large_pulls_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amputee_model, "_start", lambda *arguments: arguments[-2:])
    monkeypatch.setattr(amputee_model, "AmputeeWalks", lambda ground, _, nearer: (*ground, nearer))
    level = (0.0, 0.0, None)
    assert AmputeeWalk()._walks(0.0) == level
    assert AmputeeWalk()._walks(-0.12) == (-0.12, 0.0, (-0.1, 0.0, (-0.05, 0.0, level)))
    assert AmputeeWalk()._walks(0.0, 40.0) == (0.0, 40.0, (0.0, 30.0, level))
    assert AmputeeWalk()._walks(0.05, -30.0) == (0.05, -30.0, (0.05, 0.0, level))


def test_an_interrupted_way_is_not_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    amputee = walks(monkeypatch)
    amputee.middle(0.9)
    monkeypatch.setattr(amputee.programs, "solve", lambda *_, **__: Walk((), False, status=Status.CANCELLED))
    with pytest.raises(KeyboardInterrupt):
        amputee.walk(0.9, SOFT)


def test_a_speed_beyond_one_that_is_not_solved_has_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    amputee = walks(monkeypatch, lambda speed, _: speed < 0.75)
    for _ in range(2):
        with pytest.raises(Diverged, match=r"at 0\.65 m/s.* in steps of 0\.1 m/s from 0\.9 m/s") as unsolved:
            amputee.walk(0.65, MIDDLE)
    assert unsolved.value.reason == "start_iteration_limit"
    assert [entry[0] for entry in amputee.programs.solves] == [0.8, 0.7, 0.7]  # type: ignore[attr-defined]


def test_a_step_of_the_speed_that_is_not_solved_warm_is_solved_cold(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds: list[float] = []

    def fails(speed: float, _: Mapping[str, float]) -> bool:
        speeds.append(speed)
        return speeds == [0.9, 0.9, 1.0]  # the first walk is polished once

    assert [step[0] for step in way(walks(monkeypatch, fails), 1.1, MIDDLE)] == [1.0, 1.1, 1.1]
    assert speeds == [0.9, 0.9, 1.0, 1.0, 1.1, 1.1]


@pytest.mark.parametrize(
    ("speed", "spring", "steps"),
    [
        (1.2, (), [1.2]),
        (1.2, (50.0, 0.3), [1.2, 1.2]),
        (1.45, (), [1.2, 1.3, 1.4, 1.45]),
        (0.9, (50.0, 0.3), [1.2, 1.1, 1.0, 0.9, 0.9]),
    ],
)
def test_a_predicted_walk_is_continued_from_the_usual_speed_without_springs_then_to_its_springs(
    monkeypatch: pytest.MonkeyPatch, speed: float, spring: tuple[float, ...], steps: list[float]
) -> None:
    def solved(_: WalkPredictor, problem: TrajectoryProblem, near: Walk | None) -> Walk:
        entry = (problem.phases[0].data["speed"], *problem.parameters.values())
        return Walk((*(near.way if near else ()), entry))

    monkeypatch.setattr(WalkPredictor, "_solve", solved)
    monkeypatch.setattr(WalkPredictor, "_best", lambda _self, _problem, solutions, *_: solutions[0])
    predictor = WalkPredict(device="hip_springs")._predictor(0.0)[0]
    least = (0.0, -0.3)
    values = dict(zip(("spring_stiffness", "spring_rest"), spring or least, strict=True))
    predictor.solve(1.4, values)  # leaves no trace
    way = predictor.solve(speed, values).way  # type: ignore[attr-defined]
    assert [entry[0] for entry in way] == steps
    assert [entry[1:] for entry in way] == [least] * (len(steps) - bool(spring)) + [spring] * bool(spring)


def test_a_walk_with_a_large_metabolic_weight_starts_from_that_with_a_smaller_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(WalkPredictor, "solve", lambda self, *_: SimpleNamespace(phase=self.effort.metabolic))
    predictor = WalkPredict(metabolic_weight=10.0)._predictor(0.0)[0]
    start = predictor.problem(1.2).phases[0].start
    assert start is not None
    assert start({}, None) == 2.5  # type: ignore[comparison-overlap]
    assert predictor._easier_predictor is not None
    lightest = predictor._easier_predictor._easier_predictor
    assert lightest is not None
    assert (lightest.effort.metabolic, lightest._easier_predictor) == (1.0, None)


def test_a_walk_with_a_pull_starts_from_that_with_a_smaller_one() -> None:
    model = WalkPredict(intervals=12)
    strong, weak, none = (model._predictor(0.05, pull)[0] for pull in (-40.0, -30.0, 0.0))
    assert (strong._easier_predictor, weak._easier_predictor, none._easier_predictor) == (weak, none, None)
    assert [predictor.walker.pull for predictor in (strong, weak, none)] == [-40.0, -30.0, 0.0]


@pytest.mark.parametrize("status", [Status.SOLVED, Status.ITERATION_LIMIT])
def test_a_walk_with_a_large_metabolic_weight_is_near_that_with_a_smaller_one_else_cold(
    monkeypatch: pytest.MonkeyPatch, status: Status
) -> None:
    """Cold, a weight of 10 is not solved in 500 iterations from the walk with 2.5."""
    lighter, near, cold = Walk(()), Walk((), status.success, 2.0, status=status), Walk((), objective=3.0)
    monkeypatch.setattr(WalkPredictor, "solve", lambda *_: lighter)
    monkeypatch.setattr(
        WalkPredictor, "_solve_near", lambda _self, _problem, previous, *_: previous is lighter and near
    )
    monkeypatch.setattr(WalkPredictor, "_solve", lambda *_: cold)
    body = WalkPredict(metabolic_weight=10.0)._predictor(0.0)[0]
    assert body._neighbour(1.2) is (near if status.success else cold)
