"""Programs that a solver has solved: recorded once, in chains, on whatever workers, like evaluations."""

import dataclasses
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from run_cases import dump, make_study, table

from designopt.plugin import Use, find, load_file
from designopt.problem import Problem
from designopt.run.runner import run_study
from designopt.store.errors import StoreError
from designopt.store.result import Result
from designopt.study.study import Budget, Scenario, Stage, StartFrom, Validation

PLUGINS = Path(__file__).with_name("plugins_programs.py")
VALUES = [1.0, 0.5, 0.25, -1.0, -0.5, -0.25, 2.0, 1.5]


def study(*, values=VALUES, executor="serial", workers=2, budget=None, execution=None, **settings):
    load_file(str(PLUGINS), PLUGINS.read_bytes())
    solver = Use(find("solver", "halving"), {"values": list(values), **settings})
    return make_study(
        names=("a",),
        stages=(Stage("halves", solver, budget or Budget()),),
        execution={"executor": executor, "workers": workers, **(execution or {})},
    )


def optima(result):
    return [record.figures.get("optimum(a)") for record in result.programs()]


def expected(values=VALUES, length=3, skipped=()):
    """Half of the start plus half of the one before it in its chain that has a solution."""
    optima_of_chains, before = [], 0.0
    for i, value in enumerate(values):
        before = 0.0 if i % length == 0 else before
        optima_of_chains.append(0.5 * value + 0.5 * before)
        before = before if value in skipped else optima_of_chains[-1]
    return optima_of_chains


def test_each_program_begins_with_the_one_before_it_in_its_chain(tmp_path):
    result = run_study(study(), tmp_path / "s")
    assert optima(result) == expected()
    assert [record.start for record in result.programs()] == [{"a": value} for value in VALUES]
    assert {(record.stage, record.status, record.ok) for record in result.programs()} == {("halves", "solved", True)}
    assert result.programs()[0].optimum == {"a": 0.5}
    assert result.programs()[0].message == "at 0.5"
    assert result.programs()[1].arrays["course"].tolist() == [0.5] * 3


def test_designs_and_counts_are_those_that_were_evaluated(tmp_path):
    result = run_study(study(), tmp_path / "s")
    assert sorted(set(result.outcomes.X[:, 0].tolist())) == sorted(set(expected()))
    assert result.counts["evaluations"] == len(set(expected()))
    assert len(result.front()) == 1


def test_the_journal_does_not_depend_on_the_workers(tmp_path):
    serial = run_study(study(bug=-0.5), tmp_path / "serial")
    parallel = run_study(study(bug=-0.5, executor="dask"), tmp_path / "dask")
    assert dump(parallel) == dump(serial)
    assert parallel.sessions[0]["executor"] == "dask"
    assert parallel.programs()[1].arrays["course"].tolist() == [0.5] * 3


def test_a_resumed_run_solves_nothing_twice(tmp_path):
    log = tmp_path / "log"
    result = run_study(study(log=str(log)), tmp_path / "s")
    before, solved = dump(result), log.read_text()
    repeated = run_study(study(log=str(log)), tmp_path / "s", resume=True)
    assert dump(repeated) == before
    assert log.read_text() == solved


def test_the_key_of_a_program_holds_the_chain_up_to_it_and_its_seed():
    definition = study()
    problem, solver = Problem.from_study(definition), definition.stages[0].solver
    X = np.array([[1.0], [2.0], [1.0]])
    keys = problem.program_keys(solver, X, [0, 0, 1], [0, 0, 0])
    assert keys[0] == keys[2]  # the first of a chain, whichever that is
    assert keys[1] != problem.program_keys(solver, X[1:2], [0], [0])[0]
    assert keys[0] != problem.program_keys(solver, X[:1], [0], [1])[0]
    assert keys[0] != problem.program_keys(study(length=2).stages[0].solver, X[:1], [0], [0])[0]


def test_a_failed_program_is_passed_over_and_leaves_its_last_iterate(tmp_path):
    result = run_study(study(fails=0.5), tmp_path / "s")
    assert optima(result) == expected(skipped=(0.5,))
    failed = result.programs()[1]
    assert (failed.ok, failed.status, failed.message) == (False, "stuck", "at 0.5")
    assert failed.arrays["course"].tolist() == [0.5] * 3
    assert [e["text"] for e in result.events if e["kind"] == "programs_failed"] == ["stage halves: 1 programs failed"]
    (ended,) = [e["text"] for e in result.events if e["kind"] == "solver_ended"]
    assert ended == "stage 'halves': solved, stuck" + ", solved" * 6


def test_an_error_in_a_program_is_recorded_with_its_traceback(tmp_path):
    result = run_study(study(bug=-0.5), tmp_path / "s")
    (record,) = [record for record in result.programs() if not record.ok]
    assert (record.start, record.status) == ({"a": -0.5}, "error")
    assert record.message.splitlines()[-1] == "RuntimeError: a bug"
    assert "plugins_programs.py" in record.message
    assert len(result.programs()) == len(VALUES)


def test_a_program_that_kills_its_worker_is_quarantined_and_its_chain_goes_on(tmp_path):
    result = run_study(study(fatal=0.5, executor="dask"), tmp_path / "s")
    records = result.programs()
    assert [record.status for record in records] == ["solved", "crashed"] + ["solved"] * 6
    remaining = [value for i, value in enumerate(optima(result)) if i != 1]
    assert remaining == [value for i, value in enumerate(expected(skipped=(0.5,))) if i != 1]
    attempts = table(result, "attempt")
    assert [attempt["outcome"] for attempt in attempts] == ["crashed", "crashed"]


def test_a_program_that_does_not_end_is_ended_by_the_time_out(tmp_path):
    result = run_study(study(endless=-0.5, executor="dask", execution={"timeout": 3.0}), tmp_path / "s")
    (record,) = [record for record in result.programs() if not record.ok]
    assert (record.start, record.status, record.message) == ({"a": -0.5}, "timeout", "no result within 3 s")


def test_the_time_of_a_stage_ends_its_programs_and_more_of_it_goes_on(tmp_path, clock):
    settings = {"pause": 0.1, "length": 1}
    result = run_study(study(budget=Budget(wall=0.35), **settings), tmp_path / "s")
    solved = len(result.programs())
    assert 0 < solved < len(VALUES)
    assert len(result.outcomes) == 0
    replayed = run_study(study(budget=Budget(wall=0.35), **settings), tmp_path / "s", resume=True)
    assert len(replayed.programs()) == solved
    longer = run_study(study(budget=Budget(wall=60.0), **settings), tmp_path / "s", resume=True)
    assert optima(longer) == expected(length=1)
    assert len(longer.outcomes) == len(set(expected(length=1)))


def test_a_study_that_starts_from_another_store_solves_its_programs_itself(tmp_path):
    log = tmp_path / "log"
    definition = study(log=str(log), fails=0.5)
    run_study(definition, tmp_path / "s")
    (stage,) = definition.stages
    definition = dataclasses.replace(
        definition, stages=(dataclasses.replace(stage, start_from=StartFrom(store=str(tmp_path / "s"))),)
    )
    result = run_study(definition, tmp_path / "t")
    assert len(log.read_text().splitlines()) == 2 * len(VALUES)
    assert optima(result) == expected(skipped=(0.5,))
    assert all(record.arrays for record in result.programs())


def test_validation_scenarios_that_come_later_change_no_program(tmp_path):
    log = tmp_path / "log"
    run_study(study(log=str(log)), tmp_path / "s")
    solved = log.read_text()
    validation = Validation((Scenario("far", {"shift": 3.0}),), (0.5,))
    result = run_study(dataclasses.replace(study(log=str(log)), validate=validation), tmp_path / "s", resume=True)
    assert log.read_text() == solved
    assert result.validation() is not None
    assert optima(result) == expected()


def test_a_solution_that_was_lost_is_computed_again_with_its_chain(tmp_path):
    log = tmp_path / "log"
    result = run_study(study(log=str(log)), tmp_path / "s")
    before, records = dump(result), result.programs()
    (tmp_path / "s" / records[4].reference).unlink()
    with pytest.raises(StoreError, match="is missing"):
        _ = records[4].arrays
    log.unlink()
    repeated = run_study(study(log=str(log)), tmp_path / "s", resume=True)
    assert log.read_text().split() == ["-1", "0", "-0.5", "0", "-0.25", "0"]
    assert dump(repeated) == before
    assert repeated.programs()[4].arrays["course"].tolist() == [expected()[4]] * 3
    assert [e for e in repeated.events if e["kind"] == "nondeterministic_model"] == []


def test_a_run_killed_on_the_way_and_resumed_equals_the_uninterrupted_one(tmp_path, monkeypatch):
    settings = {"length": 2, "pause": 1.0}
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from pathlib import Path\nfrom test_programs import study\nfrom designopt.run.runner import run_study\n"
        f"run_study(study(**{settings!r}), Path({str(tmp_path / 'killed')!r}))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        end = time.monotonic() + 300.0
        while _recorded(tmp_path / "killed", study(**settings)) < 3:
            assert time.monotonic() < end
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    assert 0 < _recorded(tmp_path / "killed", study(**settings)) < len(VALUES)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    resumed = run_study(study(**settings), tmp_path / "killed", resume=True)
    assert dump(resumed) == dump(run_study(study(**settings), tmp_path / "uninterrupted"))


def _recorded(store, definition):
    try:
        return len(Result.open(store, definition).programs())
    except StoreError:
        return 0
