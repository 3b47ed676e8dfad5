"""Runs whose workers are batch jobs, against a stand-in for the batch system whose jobs are processes here."""

import os
import re
import signal
import sys
import time

import dask
import fake_batch
import numpy as np
import pytest
from run_cases import Recorder, dump, evaluated, listed, make_study

from designopt.run.runner import run_study
from designopt.store.errors import WorkersError
from designopt.study.study import Cluster
from designopt.workers.pools import cluster

pytest.importorskip("dask_jobqueue")


@pytest.fixture
def state(tmp_path, monkeypatch):
    """The folder of the batch system."""
    (tmp_path / "batch").mkdir()
    for name, value in fake_batch.install(tmp_path / "batch").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cluster, "ROUND", 0.2)
    monkeypatch.setattr(cluster, "QUESTION", 0.5)
    folder = tmp_path / "batch" / "state"
    yield folder
    for group in fake_batch.jobs(folder).values():
        os.killpg(group, signal.SIGKILL)


def gone(state, seconds=120.0):
    """Whether all jobs end within `seconds`."""
    deadline = time.monotonic() + seconds
    while fake_batch.jobs(state) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not fake_batch.jobs(state)


def batch_cluster(**changes):
    plain = {"use": "slurm", "jobs": 2, "cores": 1, "memory": 10**9, "walltime": 3600.0, "interface": "lo"}
    return Cluster(**plain | changes)


def study(values, pause=0.0, executor="dask", cluster=None, **more):
    execution = {"executor": executor, **more} | ({"cluster": cluster or batch_cluster()} if executor == "dask" else {})
    stages = (listed(values),)
    return make_study(settings={"pause": pause}, names=("a",), low=-100, high=100, stages=stages, execution=execution)


def serially(values, path, **more):
    """The journal of an undisturbed run in this process, without the pauses of the model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.sleep", lambda seconds: None)
        return dump(run_study(study(values, executor="serial", **more), path))


def attempts(result):
    """How often evaluations were tried."""
    return set(evaluated(result, "attempts"))


def test_jobs_of_a_batch_system_give_the_same_journal(state, tmp_path):
    values = np.linspace(-1, 1, 60)
    result = run_study(study(values, cluster=batch_cluster(cores=2, jobs=1)), tmp_path / "s")
    assert dump(result) == serially(values, tmp_path / "serial")
    assert result.events[0]["text"].startswith("1 submitted, 0 running")
    assert gone(state)
    assert not (result.path / "tls").exists()


@pytest.mark.slow
def test_workers_leave_before_the_wall_time_and_the_pool_is_filled_again(state, tmp_path):
    values = np.linspace(-1, 1, 150)
    short = batch_cluster(jobs=1, walltime=25.0)
    result = run_study(study(values, pause=0.2, cluster=short), tmp_path / "s")
    assert dump(result) == serially(values, tmp_path / "serial", pause=0.2)
    assert len(list(state.glob("*.sh"))) >= 2
    assert not list(state.glob("*.killed"))
    assert {e["kind"] for e in result.events} == {"waiting_for_jobs"}
    assert attempts(result) == {1}


@pytest.mark.faults
def test_a_job_that_is_cancelled_loses_and_doubles_nothing(state, tmp_path):
    values = np.linspace(-1, 1, 120)

    class Cancelling(Recorder):
        def update(self, snapshot):
            super().update(snapshot)
            if snapshot.evaluations >= 10 and not getattr(self, "cancelled", False):
                self.cancelled = True
                os.killpg(next(iter(fake_batch.jobs(state).values())), signal.SIGKILL)

    result = run_study(study(values, pause=0.1), tmp_path / "s", progress=Cancelling())
    assert dump(result) == serially(values, tmp_path / "serial", pause=0.1)
    assert len(list(state.glob("*.sh"))) == 3


@pytest.mark.slow
def test_an_evaluation_that_does_not_end_before_its_job_is_begun_anew_and_nobody_is_blamed(
    state, tmp_path, monkeypatch
):
    times = iter([cluster.Retirement(20.0, 0.0, 22.0), cluster.Retirement(600.0, 0.0, 600.0)])
    monkeypatch.setattr(cluster.Retirement, "for_walltime", lambda *_: next(times))
    slow = study([0.1], pause=25.0, cluster=batch_cluster(jobs=1))
    result = run_study(slow, tmp_path / "s", progress=(recorder := Recorder()))
    assert any("had to exit before its evaluation was done" in text for _, text in recorder.events)
    assert attempts(result) == {1}
    assert result.counts["ok"] == 1


@pytest.mark.slow
def test_a_pool_with_little_to_do_gives_jobs_back(state, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "SLACK_TIME", 2.0)
    lonely = listed(np.linspace(-1, 1, 25), batch=1)
    few = study([0.0], pause=0.3, cluster=batch_cluster(minimum=1))
    object.__setattr__(few, "stages", (lonely,))
    recorder = Recorder()
    left = []

    def update(snapshot):
        left.append(len(fake_batch.jobs(state)))

    recorder.update = update
    result = run_study(few, tmp_path / "s", progress=recorder)
    assert max(left) == 2
    assert left[-1] == 1
    assert result.counts["ok"] == 25
    assert attempts(result) == {1}


def test_the_commands_of_the_batch_system_must_be_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorkersError, match="SLURM needs the command sbatch, which is not on the path"):
        run_study(study([0.0]), tmp_path / "s")
    assert run_study(study([0.0]), tmp_path / "t", workers=1).counts["ok"] == 1


def test_a_job_that_is_refused_ends_the_run_with_what_the_batch_system_says(state, tmp_path):
    (state / "refuse").write_text("Batch job submission failed: Invalid account")
    with pytest.raises(WorkersError, match=r"the job was rejected: sbatch: error: .* Invalid account"):
        run_study(study([0.0]), tmp_path / "s")


def test_a_store_whose_first_job_is_refused_is_removed_and_the_next_run_takes_its_place(state, tmp_path):
    (state / "refuse").write_text("Batch job submission failed: Invalid account")
    for path in (tmp_path / "new", make(tmp_path / "empty")):
        with pytest.raises(WorkersError, match="the job was rejected"):
            run_study(study([0.0]), path)
    assert not (tmp_path / "new").exists()
    assert list((tmp_path / "empty").iterdir()) == []
    (state / "refuse").unlink()
    assert run_study(study([0.0]), tmp_path / "new").counts["ok"] == 1


HOSTILE = ["x$(touch${IFS}P)", "a b", "a;touch P", "a`touch P`", "a\ntouch P", "a'b", 'a"b', "a%j", "a:b", "a&b", "~|b"]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("use", ["slurm", "pbs"])
def test_a_folder_whose_name_means_something_to_a_shell_or_a_batch_system_is_refused(
    state, tmp_path, monkeypatch, use, name
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkersError, match=r"the path of the store contains .* give another one with -o"):
        run_study(study([0.0], cluster=batch_cluster(use=use)), tmp_path / name / "s")
    assert not list(state.glob("*.sh"))
    assert not (tmp_path / name / "s").exists()


@pytest.mark.parametrize("setting", ["queue", "account", "interface"])
@pytest.mark.parametrize("text", ["x\ntouch P", "x;touch${IFS}P", "$(touch${IFS}P)", "-x", "a b", ""])
def test_settings_of_jobs_that_are_no_words_are_refused_from_python_too(state, tmp_path, setting, text):
    with pytest.raises(WorkersError, match=rf"execution\.cluster\.{setting}: .* is not one word"):
        run_study(study([0.0], cluster=batch_cluster(**{setting: text})), tmp_path / "s")
    assert not list(state.glob("*.sh"))


@pytest.mark.parametrize("use", ["slurm", pytest.param("pbs", marks=pytest.mark.slow)])
def test_a_python_whose_path_means_something_to_a_shell_is_started_and_no_job_leaves_temporary_files(
    state, tmp_path, monkeypatch, use
):
    folder = make(tmp_path / "bin $(touch P)'; touch P #")
    (folder / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "python").chmod(0o755)
    temporary = make(tmp_path / "temporary")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setattr("sys.executable", str(folder / "python"))
    result = run_study(study(np.linspace(-1, 1, 20), cluster=batch_cluster(use=use, jobs=1, cores=2)), tmp_path / "s")
    assert result.counts["ok"] == 20
    assert gone(state)
    assert not (tmp_path / "P").exists()
    assert [path.name for path in temporary.iterdir() if not path.name.startswith("pymp-")] == []


def make(folder):
    folder.mkdir()
    return folder


def test_jobs_that_end_before_a_worker_comes_end_the_run_with_their_last_words(state, tmp_path):
    broken = {"jobqueue.slurm.job-script-prologue": ["echo no such module >&2; exit 3"]}
    with (
        dask.config.set(broken),
        pytest.raises(
            WorkersError, match=r"3 jobs ended before a worker appeared(?s:.*)no such module(?s:.*)squeue --me"
        ) as caught,
    ):
        run_study(study([0.0]), tmp_path / "s")
    assert "designopt resume" in str(caught.value)


def test_while_jobs_wait_the_run_says_so_and_goes_on_when_they_begin_on_pbs_as_well(state, tmp_path):
    (state / "closed").touch()

    class Opening(Recorder):
        def event(self, kind, text):
            super().event(kind, text)
            if text.startswith("2 submitted, 0 running"):
                (state / "closed").unlink(missing_ok=True)

    values = np.linspace(-1, 1, 30)
    result = run_study(
        study(values, cluster=batch_cluster(use="pbs")), tmp_path / "s", progress=(recorder := Opening())
    )
    waiting = [text.partition(" (")[0] for kind, text in recorder.events if kind == "waiting_for_jobs"]
    assert waiting[0] == "1 submitted, 0 running"
    assert "2 submitted, 0 running" in waiting
    assert dump(result) == serially(values, tmp_path / "serial")


def test_evaluations_too_long_for_a_job_are_refused_at_once(state, tmp_path):
    with pytest.raises(WorkersError, match=r"timeout is 60 s, too long for jobs of 120 s.* walltime to at least 225 s"):
        run_study(study([0.0], timeout=60.0, cluster=batch_cluster(walltime=120.0)), tmp_path / "s")


def test_without_the_extra_one_sentence_says_what_to_install(state, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(WorkersError, match=r"needs dask_jobqueue: pip install 'designopt\[cluster\]'"):
        run_study(study([0.0]), tmp_path / "s")


def test_workers_leave_a_tenth_of_the_wall_time_before_its_end_and_not_all_at_once():
    day = cluster.Retirement.for_walltime(24 * 3600.0, None)
    assert (day.begin, day.stagger, day.end) == (86400 - 30 - 600, 600, 86400 - 30)
    hour = cluster.Retirement.for_walltime(3600.0, 800.0)  # one time-out and a quarter, if that is longer
    assert (hour.begin, hour.stagger, hour.end) == (3600 - 30 - 1000, 360, 3570)
    begins = sorted(int(re.search(r"\+ (\d+) ", hour.line(number)).group(1)) for number in range(1, 9))
    assert hour.begin - hour.stagger <= begins[0]
    assert begins[-1] <= hour.begin
    assert min(np.diff(begins)) > 20
