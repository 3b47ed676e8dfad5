"""Where stages end: numbers of designs, growth of the hypervolume, time, and the end of a batch job."""

import dataclasses
import os
import signal
import time

import numpy as np
import pytest
from run_cases import Recorder, dump, listed, make_study, use

from designopt import define
from designopt.problem import Problem
from designopt.run.budget import Growth, StageBudget
from designopt.run.runner import run_study
from designopt.run.stopping import seconds_allotted
from designopt.store.errors import Interrupted, StoreError
from designopt.store.result import Result
from designopt.study.study import Budget, HypervolumeGain, Objective, Stage, StartFrom

pytestmark = pytest.mark.timeout(180)  # a budget that takes too little never ends

# --------------------------------------------------------------------------------------------- refused designs


def picky(values, *, batch=0, **budget):
    return make_study("picky", names=("a",), stages=(listed(values, batch=batch, **budget),))


@pytest.mark.parametrize("batch", [0, 1, 2, 5])
def test_designs_that_the_model_refuses_cost_no_budget(tmp_path, batch):
    values = [0.5, -0.5, 1.0, -1.0, -1.5, 1.5, -2.0, 2.0, 0.25]
    study = picky(values, batch=batch, evaluations=4)
    result = run_study(study, tmp_path / "s")
    assert result.outcomes.X[:, 0].tolist() == values[:8]  # four good ones, and what was refused between them
    assert result.outcomes.invalid.tolist() == [x < 0 for x in values[:8]]
    before = dump(result)
    assert dump(run_study(study, tmp_path / "s", resume=True)) == before


def test_a_batch_within_the_budget_comes_back_whole_with_its_refused_designs(tmp_path):
    batches = []

    class Asking:
        def solve(self, problem, evaluate, rng, start):
            batches.append(evaluate(np.array([[0.5], [-0.5], [-1.0], [1.0]])))

    solver = use("solver", "listed", values=[0.0])
    asking = dataclasses.replace(solver, plugin=dataclasses.replace(solver.plugin, target=Asking, settings={}))
    stage = Stage("s", dataclasses.replace(asking, settings={}), Budget(evaluations=2))
    result = run_study(make_study("picky", names=("a",), stages=(stage,)), tmp_path / "s")
    (outcomes,) = batches
    assert result.counts["points"] == 4
    assert outcomes.invalid.tolist() == [False, True, True, False]
    assert outcomes.objectives[:, 0].tolist() == [0.25, np.inf, np.inf, 1.0]
    assert np.all(outcomes.rank_violation == [0.0, 2.0 - 2**-52, 2.0 - 2**-52, 0.0])  # above failed, below evaluated


def test_a_solver_that_proposes_only_what_is_refused_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("designopt.run.budget.INVALID_LIMIT", 1)
    stages = (Stage("endless", use("solver", "endless"), Budget(evaluations=3)),)
    result = run_study(make_study("picky", names=("a",), stages=stages), tmp_path / "s")
    assert result.counts["points"] == 101  # of at least 100 for each of the limit
    assert result.counts["designs"] == 1
    message = "stage endless ended: 101 of its 101 designs violate a relation or were rejected by the model"
    assert [e["text"] for e in result.events] == [message]


def test_progress_counts_refused_designs_with_the_invalid_ones(tmp_path):
    recorder = Recorder()
    run_study(picky([0.5, -0.5, 1.0, -1.0, 1.5], evaluations=3), tmp_path / "s", progress=recorder)
    last = recorder.snapshots[-1]
    assert (last.completed, last.total, last.invalid, last.failures) == (3, 3, 2, 0)


# ------------------------------------------------------------------------------------------ hypervolume budget


def converging(limit, *, rounds=200, size=10, minimize=("height", "slope"), **budget):
    stage = Stage("front", use("solver", "walk", size=size, rounds=rounds), Budget(hypervolume=limit, **budget))
    return make_study(stages=(stage,), minimize=minimize)


def test_a_stage_ends_when_its_hypervolume_hardly_grows_any_more_and_says_so(tmp_path):
    import moocore

    limit = HypervolumeGain((8.0, 6.0), 1e-3, 10)
    study = converging(limit)
    recorder = Recorder()
    result = run_study(study, tmp_path / "s", progress=recorder)
    batches = result.counts["points"] // 10
    assert 10 < batches < 200
    F = np.where(result.outcomes.failed[:, None], np.inf, result.outcomes.objectives)
    volumes = [moocore.hypervolume(F[: 10 * (i + 1)], ref=[8.0, 6.0]) for i in range(batches)]
    growth = [volumes[i] / volumes[i - 10] - 1.0 for i in range(10, batches)]
    assert all(g >= 1e-3 for g in growth[:-1])
    assert growth[-1] < 1e-3
    text = f"stage front ended: hypervolume {volumes[-1]:.4g} grew by {growth[-1]:.2g} over the last 10 generations"
    assert recorder.events == [("stage_ended", text)]


def test_the_end_by_hypervolume_is_the_same_on_resume_and_reported_once(tmp_path):
    study = converging(HypervolumeGain((8.0, 6.0), 1e-3, 10))
    first = run_study(study, tmp_path / "s")
    before = dump(first)
    assert dump(run_study(study, tmp_path / "s", resume=True)) == before
    assert len(Result.open(tmp_path / "s", study).events) == 1


def test_a_smaller_gain_lets_a_resumed_stage_go_on(tmp_path):
    first = run_study(converging(HypervolumeGain((8.0, 6.0), 1e-1, 3)), tmp_path / "s").counts["points"]
    finer = run_study(converging(HypervolumeGain((8.0, 6.0), 1e-4, 3)), tmp_path / "s", resume=True)
    assert finer.counts["points"] > first


def test_a_stage_that_has_found_nothing_before_the_reference_goes_on(tmp_path):
    study = converging(HypervolumeGain((-1.0, -1.0), 1.0, 1), rounds=12)
    result = run_study(study, tmp_path / "s")
    assert result.counts["points"] == 120
    assert result.events == []


def test_the_reference_is_in_the_direction_of_the_objectives():
    problem = Problem.from_study(make_study(minimize=("height", "slope")))
    maximised = tuple(
        Objective(o.name, o.expression, "maximize" if i else "minimize", o.over)
        for i, o in enumerate(problem.objectives)
    )
    growth = Growth(HypervolumeGain((10.0, 2.0), 0.1, 1), dataclasses.replace(problem, objectives=maximised))
    figures = {"height": np.array([[9.0], [8.0]]), "slope": np.array([[3.0], [5.0]])}
    X = np.zeros((2, 2))
    outcomes = dataclasses.replace(problem, objectives=maximised).judge(X, figures, np.zeros((2, 1), bool))
    growth.add([outcomes])
    growth.add([outcomes])
    assert growth.ended == "hypervolume 6 grew by 0 over the last 1 generations"  # (10 - 8) x (5 - 2)


def test_one_objective_has_a_hypervolume_too(tmp_path):
    study = converging(HypervolumeGain((8.0,), 1e-3, 5), minimize=("height",))
    result = run_study(study, tmp_path / "s")
    assert result.counts["points"] < 2000
    assert "hypervolume 7.9" in result.events[0]["text"] or "hypervolume 8" in result.events[0]["text"]


def test_the_hypervolume_of_a_big_archive_costs_next_to_nothing():
    rng = np.random.default_rng(0)
    problem = Problem.from_study(make_study(minimize=("height", "slope", "height + slope")))
    growth = Growth(HypervolumeGain((2.0, 2.0, 2.0), 1e-9, 20), problem)
    spent = 0.0
    for _ in range(100):
        F = np.abs(rng.normal(size=(100, 3)))
        F /= np.linalg.norm(F, axis=1, keepdims=True)  # on a sphere: none dominates another
        empty = np.zeros(100)
        outcomes = problem.judge(
            np.zeros((100, 2)), {"height": empty[:, None], "slope": empty[:, None]}, np.zeros((100, 1), bool)
        )
        outcomes = dataclasses.replace(outcomes, objectives=F)
        began = time.process_time()
        growth.add([outcomes])
        spent += time.process_time() - began
    assert len(growth._front) == 10_000
    assert (
        spent / 10_000 < 1e-2
    )  # s of processor time for each design; measured: 4e-5 s, and 0.1 s where all are compared


# --------------------------------------------------------------------------------------------------- wall time


def two_stages(wall, *, rounds=4):
    """An early stage whose time ends in the middle of its one batch, and a stage that starts from it.

    The second stage asks for designs that the first one asked for and did not get.
    """
    values = np.linspace(-2.0, 2.0, 200)
    return make_study(
        settings={"pause": 0.01}, names=("a",),
        stages=(
            listed(values, name="sweep", wall=wall),
            listed(values[150:160], name="again"),
            Stage("walk", use("solver", "walk", size=5, rounds=rounds), Budget(), StartFrom("sweep", "best", 2)),
        ),
    )  # fmt: skip


def test_an_early_stage_whose_time_was_used_up_ends_at_the_same_place_on_resume(tmp_path, clock):
    study = two_stages(0.4)
    first = run_study(study, tmp_path / "s")
    swept = int((first.stage == "sweep").sum())
    assert 0 < swept < 200
    assert first.counts["points"] == 200 + 10 + 20
    assert [e["text"] for e in first.events] == ["stage sweep ended: its time of 0 s is used up"]
    second = run_study(two_stages(0.4, rounds=8), tmp_path / "s", resume=True)  # not a ReplayError
    assert second.counts["points"] == first.counts["points"] + 20
    assert second.outcomes.X[: len(first.outcomes)].tolist() == first.outcomes.X.tolist()
    assert len(second.events) == 1


def test_a_store_whose_later_stages_know_nothing_yet_lets_an_early_stage_have_more_time(tmp_path, clock):
    study = two_stages(0.4)
    alone = dataclasses.replace(study, stages=study.stages[:1])
    assert run_study(alone, tmp_path / "s").counts["designs"] < 200
    second = run_study(two_stages(60.0), tmp_path / "s", resume=True)
    assert (second.stage == "sweep").sum() == 200


def test_more_time_for_an_early_stage_is_refused_once_a_later_one_has_used_its_results(tmp_path, clock):
    before = dump(run_study(two_stages(0.4), tmp_path / "s"))
    with pytest.raises(StoreError, match="stage 'walk' starts from 'sweep' and has begun"):
        run_study(two_stages(60.0), tmp_path / "s", resume=True)
    assert dump(run_study(two_stages(0.4), tmp_path / "s", resume=True)) == before


def test_a_resumed_stage_has_the_time_that_the_interrupted_session_has_left(tmp_path, clock):
    """Evaluations of 20 ms in 2 s, in two sessions."""

    class Stopping(Recorder):
        def update(self, snapshot):
            if snapshot.evaluations > 20:
                os.kill(os.getpid(), signal.SIGINT)

    stage = listed(np.linspace(-1.0, 1.0, 300), batch=1, wall=2.0)
    study = make_study(settings={"pause": 0.02}, names=("a",), stages=(stage,))
    with pytest.raises(Interrupted):
        run_study(study, tmp_path / "s", progress=Stopping())
    first = Result.open(tmp_path / "s", study).counts["evaluations"]
    assert 20 < first < 50
    total = run_study(study, tmp_path / "s", resume=True).counts["evaluations"]
    assert 80 < total <= 100


def test_points_on_record_are_asked_for_again_although_the_time_of_their_stage_is_used_up(tmp_path, clock):
    """Also in a smaller limit than the time that they took: only new designs need time."""

    def study(wall):
        stage = listed(np.linspace(-1.0, 1.0, 20), batch=1, wall=wall)
        return make_study(settings={"pause": 0.02}, names=("a",), stages=(stage,))

    before = dump(run_study(study(9.0), tmp_path / "s"))
    repeated = run_study(study(0.1), tmp_path / "s", resume=True)
    assert dump(repeated) == before
    assert repeated.events == []


@pytest.mark.parametrize("jump", [-365.25 * 86400.0, 365.25 * 86400.0])
def test_a_clock_that_jumps_by_a_year_neither_ends_a_stage_nor_lets_it_go_on(tmp_path, clock, monkeypatch, jump):
    original = time.time
    calls = []

    def clock():
        calls.append(None)
        return original() + (jump if len(calls) > 4 else 0.0)

    monkeypatch.setattr("time.time", clock)
    stage = listed(np.linspace(0, 1, 3000), batch=1, wall=0.8)
    study = make_study(settings={"pause": 0.01}, stages=(stage,), names=("a",), execution={"executor": "serial"})
    result = run_study(study, tmp_path / "s")
    assert len(calls) > 5  # there were some after the jump
    assert 60 < result.counts["points"] <= 81  # 0.8 s of pauses of 10 ms, and what the run needs itself
    before = dump(result)
    assert dump(run_study(study, tmp_path / "s", resume=True)) == before


# -------------------------------------------------------------------------------------------------- batch jobs


def test_slurm_tells_when_the_job_ends(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1_000_000.0)
    assert seconds_allotted({"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": "1000600"}) == 600.0


def test_pbs_tells_how_long_the_job_may_take_from_the_start_of_its_session():
    left = seconds_allotted({"PBS_JOBID": "7.host", "PBS_WALLTIME": "1000000"})
    assert 0 < left <= 1_000_000


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"SLURM_JOB_END_TIME": "9999999999"},  # a variable that lives on outside of a job
        {"SLURM_JOB_ID": "7"},
        {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": "0"},
        {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": "soon"},
        {"PBS_JOBID": "7.host"},
        {"PBS_JOBID": "7.host", "PBS_WALLTIME": ""},
    ],
)
def test_outside_of_a_job_and_where_its_end_is_unknown_a_run_has_no_end(environment):
    assert seconds_allotted(environment) is None


def test_a_run_in_a_batch_job_stops_grace_before_its_end_and_can_be_continued(tmp_path, clock, monkeypatch):
    def allotted():  # from the moment at which the run asks, so that a busy machine has no part in it
        return seconds_allotted({"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": str(time.time() + 2.0)})

    monkeypatch.setattr("designopt.run.evaluations.dispatch.seconds_allotted", allotted)
    study = make_study(
        settings={"pause": 0.02}, names=("a",), stages=(listed(np.linspace(0, 1, 200)),),
        execution={"executor": "serial", "grace": 1.0},
    )  # fmt: skip
    recorder = Recorder()
    with pytest.raises(
        Interrupted, match=r"the batch job ends; finished evaluations are recorded\ncontinue with: designopt"
    ):
        run_study(study, tmp_path / "s", progress=recorder)
    assert recorder.events == [("job_ends", "the batch job has 1 s left: the run stops")]
    result = Result.open(tmp_path / "s", study)
    assert result.ended == "interrupted"
    assert 0 < result.counts["evaluations"] < 75  # of 20 ms each, in one of the two seconds
    monkeypatch.setattr("designopt.run.evaluations.dispatch.seconds_allotted", lambda: None)
    assert run_study(study, tmp_path / "s", resume=True).counts["evaluations"] == 200


@pytest.mark.parametrize(
    ("volumes", "ended"),
    [
        ((1.0, 1.05), False),  # two generations are no growth over two
        ((1.0, 1.05, 1.2), False),
        ((1.0, 1.05, 1.2, 1.21), False),  # 15 % over the last two, 1 % over the last one
        ((1.0, 1.05, 1.2, 1.21, 1.22), True),  # 2 % over the last two, 16 % over the last three
    ],
)
def test_growth_is_judged_over_exactly_the_generations_that_the_budget_names(volumes, ended):
    problem = Problem.from_study(make_study(minimize=("height",)))
    growth = Growth(HypervolumeGain((10.0,), 0.1, 2), problem)
    for volume in volumes:  # of one objective it is the distance to the reference
        growth.add([problem.judge(np.zeros((1, 2)), {"height": np.array([[10.0 - volume]])}, np.zeros((1, 1), bool))])
    assert bool(growth.ended) is ended


@pytest.mark.parametrize(
    ("relation_violation", "rows", "left"),
    [
        ([0.0, 1.0, 0.0, 1.0, 0.0], 4, 0),  # a refused row behind the last valid one still comes
        ([0.0, 0.0, 0.0], 2, 0),
        ([1.0, 1.0], 2, 2),
        ([0.0], 1, 1),
    ],
)
def test_a_budget_takes_the_rows_that_it_pays_for_and_no_more(relation_violation, rows, left):
    budget = StageBudget(Budget(evaluations=2), Problem.from_study(make_study()), 0.0)
    assert budget.take(np.array(relation_violation)) == rows
    assert budget.designs_left == left


def test_a_budget_with_which_the_solver_cannot_work_is_refused_before_anything_is_written(tmp_path):
    study = define(
        study="short",
        model={"use": "quarter_car"},
        space={"stiffness": [2e3, 2e5], "damping": [100, 20000]},
        stages=[{"name": "program", "solver": {"use": "collocation", "sweep": {"stiffness": 3}}}],
        objectives=[{"minimize": "cost"}],
    )
    with pytest.raises(StoreError, match="'collocation' of stage 'program' needs at least 3 designs, not 2"):
        study.run(tmp_path / "s", budget={"program": 2})
    assert not (tmp_path / "s").exists()
