"""What failures of designs mean for a run: stops, retries, and that nothing of it is forgotten by a resume."""

import contextlib
import dataclasses

import pytest
from run_cases import Recorder, dump, listed, make_study, table

from designopt.run.failures import Attempts, raise_location
from designopt.run.runner import run_study
from designopt.store.errors import FailurePolicyStop
from designopt.store.result import Result
from designopt.study.study import DesignVariable, Tolerance, Tolerances


def trouble(kind, values=range(40, 60), settings=None, **execution):
    return make_study(
        "trouble",
        settings={"kind": kind, **(settings or {})},
        minimize=("value",),
        names=("a",),
        low=0,
        high=100,
        stages=(listed(values),),
        execution={"executor": "serial", **execution},
    )


# ------------------------------------------------------------------------------------------------------- stops


@pytest.mark.parametrize("kind", ["diverge", "nan", "raise"])
def test_a_class_that_is_infeasible_never_ends_the_run(tmp_path, kind):
    status = {"diverge": "diverged", "nan": "nonfinite", "raise": "error"}[kind]
    study = trouble(kind, settings={"width": 5.0}, on_failure={status: "infeasible"})
    assert run_study(study, tmp_path / "s").counts[status] == 9


@pytest.mark.parametrize(
    ("kind", "status", "message"), [("diverge", "diverged", "fell over"), ("nan", "nonfinite", "nan")]
)
def test_a_class_that_stops_ends_the_run_at_its_first_failure_with_design_message_and_command(
    tmp_path, kind, status, message
):
    study = trouble(kind, on_failure={status: "stop"})
    with pytest.raises(
        FailurePolicyStop, match=rf"on_failure at a design with the status '{status}': a = 50\.0: .*{message}"
    ) as stop:
        run_study(study, tmp_path / "s")
    assert f"\ncontinue with: designopt resume {tmp_path / 's'} --plugin " in str(stop.value)
    result = Result.open(stop.value.path)
    assert result.counts[status] == 1
    assert [e["kind"] for e in result.events] == ["stopped"]
    progress = Recorder()
    # The failure that is known does not stop it again.
    resumed = run_study(study, tmp_path / "s", resume=True, progress=progress)
    assert resumed.ended == "done"
    assert resumed.counts["evaluations"] == 20
    last = progress.snapshots[-1]  # its counts are those of the whole store, as its designs are
    assert (last.completed, last.evaluations, last.failures) == (20, 20, resumed.counts[status])


def test_any_class_can_be_one_that_stops_when_it_is_repeated(tmp_path):
    study = trouble("diverge", [10, 50, 50.1, 60, 50.2, 50.3], on_failure={"diverged": "stop_repeated"})
    with pytest.raises(FailurePolicyStop, match="stopped: the same diverged 3 times: fell over"):
        run_study(study, tmp_path / "s")


def test_errors_stop_a_run_when_repeated_also_where_on_failure_names_other_classes_only(tmp_path):
    study = trouble("raise", [50, 50.1, 50.2, 50.3], on_failure={"diverged": "stop"})
    with pytest.raises(FailurePolicyStop, match=r"the same error 3 times at plugins\.py"):
        run_study(study, tmp_path / "s")


def test_repeated_errors_are_counted_over_all_sessions(tmp_path):
    values = [50, 50.1, 10, 20, 50.2, 30, 50.3]

    def study(count):
        complete = trouble("raise", values)
        return dataclasses.replace(complete, stages=(listed(values, batch=1, evaluations=count),))

    run_study(study(4), tmp_path / "s")  # two errors
    with pytest.raises(
        FailurePolicyStop, match=r"the same error 3 times at plugins\.py:\d+: ZeroDivisionError: no whee"
    ):
        run_study(study(7), tmp_path / "s", resume=True)
    assert Result.open(tmp_path / "s", study(7)).counts["evaluations"] == 5
    with pytest.raises(FailurePolicyStop, match="the same error 4 times"):  # whoever goes on sees it at the next one
        run_study(study(7), tmp_path / "s", resume=True)
    assert Result.open(tmp_path / "s", study(7)).counts["evaluations"] == 7


def test_the_share_of_failures_is_that_of_all_sessions(tmp_path):
    values = [0, 1, 2, 3, 4, 5, 48, 49, 50, 51, 52]

    def study(count):
        complete = trouble("diverge", values, {"width": 10.0}, stop_if_share_above=0.35, after=8)
        return dataclasses.replace(complete, stages=(listed(values, batch=1, evaluations=count),))

    run_study(study(9), tmp_path / "s")  # 3 of 9
    with pytest.raises(
        FailurePolicyStop, match=r"stopped: 4 of 10 evaluations failed.*; they failed within a 48.0 to 51"
    ):
        run_study(study(11), tmp_path / "s", resume=True)


def test_a_share_of_failures_ends_a_run_when_it_is_above_the_limit_not_at_it(tmp_path):
    def study(share):
        return trouble("diverge", [10, 50, 60, 50.1], stop_if_share_above=share, after=4)

    assert run_study(study(0.5), tmp_path / "at").ended == "done"
    with pytest.raises(FailurePolicyStop, match=r"stopped: 2 of 4 evaluations failed, more than the share 0\.49 "):
        run_study(study(0.49), tmp_path / "above")


def test_designs_that_the_model_rejects_have_no_part_in_the_share_of_failures(tmp_path):
    """The model `rows` rejects a below -1 and diverges beyond 1; also what an earlier session has recorded."""

    def study(values, count):
        stage = listed(values, batch=1, evaluations=count)
        execution = {"executor": "serial", "stop_if_share_above": 0.3, "after": 3}
        return make_study("rows", minimize=("value",), names=("a",), stages=(stage,), execution=execution)

    values = [-1.5, -1.6, -1.7, -1.8, 0.0, 0.5, 1.5]
    stopped = r"stopped: 1 of 3 evaluations failed, .* they failed within a 1\.5 to 1\.5"
    with pytest.raises(FailurePolicyStop, match=stopped):
        run_study(study(values, 3), tmp_path / "s")
    run_study(study(values, 1), tmp_path / "t")
    with pytest.raises(FailurePolicyStop, match=stopped):
        run_study(study(values, 3), tmp_path / "t", resume=True)


@pytest.mark.parametrize(("share", "ended"), [(0.25, "done"), (0.15, "failure policy")])
def test_neighbours_have_no_part_in_the_share_of_failures_of_later_sessions(tmp_path, share, ended):
    """One of five designs fails, and about half of the neighbours of the best design."""

    def study(count):
        base = trouble("diverge", settings={"at": 0.5}, stop_if_share_above=share, after=5)
        stage = listed([0.0, 5.0, 6.0, 7.0, 0.25], batch=1, evaluations=count)
        near = Tolerances((Tolerance("a", 0.1),), neighbours=16, front=0)
        return dataclasses.replace(base, stages=(stage,), tolerances=near)

    first = run_study(study(4), tmp_path / "s")
    failed = [row["kind"] for row in table(first, "evaluation") if row["status"] == "diverged"]
    assert failed.count("neighbour") > 4
    with contextlib.suppress(FailurePolicyStop):
        run_study(study(5), tmp_path / "s", resume=True)
    assert Result.open(tmp_path / "s").ended == ended


def test_where_designs_failed_is_reported_for_what_was_active_only(tmp_path):
    study = trouble("diverge", [0], {"width": 1000.0}, stop_if_share_above=0.1, after=1)
    space = (
        *study.space,
        DesignVariable("mode", "choice", values=("x", "y")),
        DesignVariable("n", "int", 1, 9),
        DesignVariable("only_y", "real", 0.0, 1.0, when={"mode": ("y",)}),
    )

    class OneDesign:
        def solve(self, problem, evaluate, rng, start):
            evaluate([[3.0, 0.0, 4.0, 0.25]])

    solver = study.stages[0].solver
    one = dataclasses.replace(solver, plugin=dataclasses.replace(solver.plugin, target=OneDesign, settings={}))
    one = dataclasses.replace(one, settings={})
    study = dataclasses.replace(study, space=space, stages=(dataclasses.replace(study.stages[0], solver=one),))
    with pytest.raises(FailurePolicyStop, match=r"within a 3\.0 to 3\.0, mode x, n 4 to 4\n"):
        run_study(study, tmp_path / "s")


def test_refused_designs_are_no_failures_of_the_study(tmp_path):
    recorder = Recorder()
    study = trouble("refuse", settings={"width": 30.0}, stop_if_share_above=0.1, after=1)
    assert run_study(study, tmp_path / "s", progress=recorder).counts["invalid"] == 20
    assert recorder.snapshots[-1].failures == 0
    assert recorder.snapshots[-1].invalid == 20


# ----------------------------------------------------------------------------------------------------- retries


def flaky(tmp_path, fails, values=(1.0, 2.0, 3.0), **execution):
    log = tmp_path / "log"
    log.mkdir(exist_ok=True)
    return make_study(
        "flaky", settings={"log": str(log), "fails": fails}, names=("a",), low=-9, high=9, stages=(listed(values),),
        execution={"executor": "serial", **execution},
    )  # fmt: skip


def test_an_evaluation_that_raised_is_tried_again_and_counts_when_it_succeeds(tmp_path):
    result = run_study(flaky(tmp_path, 2, retries={"error": 2}), tmp_path / "s")
    assert result.status[:, 0].tolist() == ["ok"] * 3
    assert [row["attempts"] for row in table(result, "evaluation")] == [3, 3, 3]
    attempts = table(result, "attempt")
    assert sorted(a["number"] for a in attempts) == [1, 1, 1, 2, 2, 2]
    assert {a["outcome"] for a in attempts} == {"error"}
    assert all('File "plugins.py"' in a["detail"] and "licence server is busy" in a["detail"] for a in attempts)
    first_attempts = run_study(
        flaky(tmp_path, 2, retries={"error": 2}), tmp_path / "t"
    )  # now every one at its first attempt
    assert dump(first_attempts) == dump(result)


def test_an_evaluation_that_raises_more_often_than_it_is_tried_again_is_an_error(tmp_path):
    study = flaky(tmp_path, 9, values=(1.0, 2.0), retries={"error": 1})
    result = run_study(study, tmp_path / "s")
    assert result.status[:, 0].tolist() == ["error"] * 2
    assert "licence server is busy (1)" in result.message(0)
    assert [row["attempts"] for row in table(result, "evaluation")] == [2, 2]
    assert len(table(result, "attempt")) == 4


def test_without_retries_there_is_one_attempt_and_no_record_beside_the_evaluation(tmp_path):
    result = run_study(flaky(tmp_path, 1, values=(1.0,)), tmp_path / "s")
    assert result.status[0, 0] == "error"
    assert table(result, "attempt") == []


def test_attempts_are_numbered_and_allowed_over_all_sessions():
    key = b"k" * 16
    first = Attempts({"error": 2})
    assert first.add(key, "error") == (1, True)
    resumed = Attempts({"error": 2}, [(key, "error", 1)])
    assert resumed.add(key, "error") == (2, True)
    assert resumed.add(key, "lost_worker") == (3, True)  # each class has retries of its own
    assert resumed.add(key, "error") == (4, False)


def test_the_place_of_an_error_is_read_from_its_traceback():
    text = '  File "a.py", line 3, in f\n  File "b.py", line 14, in g\nValueError: no wheels'
    assert raise_location(text) == "b.py:14"
    assert raise_location("fell over") == raise_location("") == raise_location(None) == ""
