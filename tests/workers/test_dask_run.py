"""Runs on local Dask workers: the same journals, and what happens when workers hang or die."""

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import dask
import distributed
import numpy as np
import pytest
from run_cases import Recorder, dump, evaluated, listed, make_study, table, use

from designopt.plugin import Use, find, load_file
from designopt.run.runner import run_study
from designopt.store.errors import FailurePolicyStop, WorkersError
from designopt.study.study import Stage
from designopt.workers.carriers.tasks import Tasks
from designopt.workers.pools.local import LocalWorkers
from designopt.workers.supervision.supervisor import Supervisor

MODELS = Path(__file__).with_name("plugins_clusters.py")


def learning(executor, **more):
    stages = (Stage("w", use("solver", "walk", size=40, rounds=6)), listed([0.1], name="one"))
    names = ("a",)
    return make_study(
        stages=stages, names=names, scenarios=({}, {"shift": 0.5}), execution={"executor": executor, **more}
    )


def trouble(kind, count=101, pause=0.0, width=0.5, **execution):
    return make_study(
        "trouble",
        settings={"kind": kind, "pause": pause, "width": width},
        minimize=("value",),
        names=("a",),
        low=0,
        high=100,
        stages=(listed(np.linspace(0, 100, count)),),
        execution={"executor": "dask", "workers": 2} | execution,
    )


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_the_journal_does_not_depend_on_the_workers(tmp_path, workers):
    serial = run_study(learning("serial"), tmp_path / "serial")
    parallel = run_study(learning("dask", workers=workers), tmp_path / "dask")
    assert dump(parallel) == dump(serial)
    assert parallel.sessions[0]["executor"] == "dask"
    assert parallel.sessions[0]["workers"] == workers


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        pytest.param("exit", "ended itself with exit code 7", marks=pytest.mark.slow),
        ("segfault", "was killed by SIGSEGV"),
    ],
)
def test_a_design_that_kills_its_worker_is_recorded_as_crashed_and_its_neighbours_are_fine(tmp_path, kind, how):
    result = run_study(trouble(kind), tmp_path / "s")
    assert np.flatnonzero(result.status[:, 0] != "ok").tolist() == [50]
    assert result.status[50, 0] == "crashed"
    assert how in result.message(50)
    assert result.outcomes.figures["value"][51, 0] == 102.0
    attempts = table(result, "attempt")
    assert {a["outcome"] for a in attempts} == {"crashed"}
    # Of the design two attempts; a neighbour that waited in the same worker may have one.
    assert Counter(Counter(a["key"] for a in attempts).values())[2] == 1


def test_the_next_run_in_a_process_tells_how_a_worker_died_too_wherever_temporary_files_go_by_then(
    tmp_path, monkeypatch
):
    for name in ("first", "second"):
        result = run_study(trouble("exit", count=3), tmp_path / name)
        assert result.status[:, 0].tolist() == ["ok", "crashed", "ok"]
        assert "ended itself with exit code 7" in result.message(1)
        monkeypatch.setenv("TMPDIR", str(tmp_path))  # for new processes: this one has chosen its folder


def test_environment_changes_by_others_during_a_run_remain(tmp_path, monkeypatch):
    class Changing(Recorder):
        def event(self, kind, text):
            if kind == "worker_lost":
                monkeypatch.setenv("DESIGNOPT_TEST", "changed")

    monkeypatch.setenv("DESIGNOPT_TEST", "as it was")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    run_study(trouble("exit", count=3), tmp_path / "s", progress=Changing())
    assert os.environ["DESIGNOPT_TEST"] == "changed"
    assert "OMP_NUM_THREADS" not in os.environ


def test_workers_that_die_often_are_not_given_up_and_no_work_is_forgotten(tmp_path):
    # Dask drops a local worker that is down so long after an earlier death: at its default of 15 s by chance only
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "0.1 s"}):
        result = run_study(trouble("exit", count=9, width=20.0), tmp_path / "s")
    assert result.status[:, 0].tolist() == ["ok"] * 3 + ["crashed"] * 3 + ["ok"] * 3


@pytest.mark.parametrize("kind", [pytest.param("sleep", marks=pytest.mark.slow), "spin"])
def test_a_design_that_hangs_is_ended_by_its_time_out_and_the_study_goes_on(tmp_path, kind):
    result = run_study(trouble(kind, timeout=3.0), tmp_path / "s")
    assert np.flatnonzero(result.status[:, 0] != "ok").tolist() == [50]
    assert result.status[50, 0] == "timeout"
    assert result.message(50) == "no result within 3 s"
    (attempt,) = table(result, "attempt")
    assert "plugins.py" in attempt["detail"]


@pytest.mark.slow
def test_evaluations_shorter_than_the_time_out_never_fail_by_it_in_however_long_a_chunk(tmp_path, monkeypatch):
    from designopt.workers import dask

    sizes = []
    original = dask.Dask.submit

    def submit(self, chunk):
        original(self, chunk)
        sizes.append(len(chunk))

    monkeypatch.setattr(dask.Dask, "submit", submit)
    monkeypatch.setattr(dask.Dask, "target", 20.0)
    study = trouble("diverge", count=240, pause=0.05, timeout=2.0, width=-1.0, workers=1)
    result = run_study(study, tmp_path / "s")
    assert max(sizes) * 0.05 > 1.25 * 2.0  # longer than the watchdog waits
    assert set(result.status.ravel().tolist()) == {"ok"}


def test_failures_of_the_model_read_the_same_as_in_one_process(tmp_path):
    def study(executor):
        return trouble("raise", executor=executor)

    assert dump(run_study(study("dask"), tmp_path / "d")) == dump(run_study(study("serial"), tmp_path / "s"))


def _kill_workers(times, stop, rng):
    """SIGKILL a worker process of this one at random moments."""
    for _ in range(times):
        if stop.wait(float(rng.uniform(0.2, 0.7))):
            return
        workers = _worker_pids()
        if workers:
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(int(rng.choice(workers)), signal.SIGKILL)


def _worker_pids():
    return [pid for origin in _children(os.getpid()) for pid in _children(origin, b"forkserver")]


def _children(parent, word=b""):
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                process_parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if process_parent == parent and word in command:
                pids.append(int(entry.name))
    return pids


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_workers_killed_at_random_moments_lose_and_fail_nothing(tmp_path, kills):
    def study(executor):
        stages = (Stage("w", use("solver", "walk", size=60, rounds=2 * kills)),)
        return make_study(
            settings={"pause": 0.01}, names=("a",), stages=stages,
            execution={"executor": executor, "workers": 2, "retries": {"lost_worker": 10}},
        )  # fmt: skip

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.sleep", lambda seconds: None)  # the same model without its pauses
        expected = dump(run_study(study("serial"), tmp_path / "serial"))
    stop = threading.Event()
    killer = threading.Thread(target=_kill_workers, args=(kills, stop, np.random.default_rng(kills)))

    class Killing(Recorder):
        def update(self, snapshot):
            if not killer.ident:  # the workers are there
                killer.start()

    try:
        result = run_study(study("dask"), tmp_path / "dask", progress=Killing())
    finally:
        stop.set()
        killer.join()
    assert set(result.status.ravel().tolist()) == {"ok"}
    assert result.counts["evaluations"] == 120 * kills
    assert dump(result) == expected
    assert [e for e in result.events if e["kind"] != "worker_lost"] == []


@pytest.mark.slow
def test_a_worker_that_does_not_answer_is_restarted_through_its_nanny(tmp_path, monkeypatch):
    monkeypatch.setattr("designopt.workers.dask.PATIENCE", 1.0)
    monkeypatch.setattr(Supervisor, "_look", lambda self, nanny: asyncio.sleep(3600.0))  # it would be first
    frozen = []

    class Freezing(Recorder):
        def update(self, snapshot):
            if snapshot.evaluations and not frozen:
                frozen.append(_worker_pids()[-1])
                os.kill(frozen[0], signal.SIGSTOP)

    result = run_study(trouble("diverge", count=60, pause=0.1, timeout=0.5), tmp_path / "s", progress=Freezing())
    assert result.counts["evaluations"] == 60
    assert "worker_restarted" in {e["kind"] for e in result.events}
    assert (result.status == "ok").sum() >= 59


def test_a_result_that_cannot_be_fetched_holds_up_its_own_chunk_only(tmp_path, monkeypatch):
    """Until thirty later evaluations are recorded, the first chunk, a task of Dask, cannot be fetched, as from a worker
    whose process is gone but not yet noticed."""
    gather, later, waited = distributed.Scheduler.gather, [0], []

    async def gather_later(scheduler, keys, **options):
        while any(str(key).endswith("-1") for key in keys) and later[0] < 30 and len(waited) < 1000:
            waited.append(later[0])
            await asyncio.sleep(0.01)
        return await gather(scheduler, keys, **options)

    def count(snapshot):
        later[0] = snapshot.evaluations

    streams = LocalWorkers.carrier

    def tasks(self, ends):
        streams(self, ends)  # which hears that the workers are fit
        return Tasks(self._run, self.client, ends)

    monkeypatch.setattr("designopt.workers.auto.can_fork", lambda: False)
    monkeypatch.setattr(distributed.Scheduler, "gather", gather_later)
    monkeypatch.setattr(LocalWorkers, "carrier", tasks)
    result = run_study(trouble("diverge", count=100, pause=0.01), tmp_path / "s", progress=Recorder(at_update=count))
    assert result.counts["evaluations"] == 100
    assert waited
    assert later[0] >= 30
    assert len(waited) < 1000


def test_arrays_come_back_from_workers(tmp_path):
    def study(executor):
        return make_study(
            "wave", minimize=("square", "mean"), names=("a",), stages=(listed(np.linspace(-1, 1, 30)),),
            figures={"mean": use("objective", "signal_mean")},
            execution={"executor": executor, "workers": 2, "arrays": {"time": "all", "signal": "front"}},
        )  # fmt: skip

    serial, parallel = run_study(study("serial"), tmp_path / "s"), run_study(study("dask"), tmp_path / "d")
    assert dump(serial) == dump(parallel)
    best = int(parallel.front()[0])
    assert sorted(parallel.arrays(best)) == ["signal", "time"]
    assert sorted(parallel.arrays(0)) == ["signal", "time"] if 0 in parallel.front() else ["time"]
    assert np.array_equal(parallel.arrays(best)["signal"], serial.arrays(best)["signal"])


def test_small_studies_stay_in_this_process_and_larger_ones_get_workers(tmp_path, monkeypatch):
    monkeypatch.setattr("designopt.workers.auto.PATIENCE", 0.1)
    small = run_study(make_study(stages=(listed([0.5]),), names=("a",), execution={}), tmp_path / "small")
    assert small.sessions[0]["executor"] == "serial"
    large = make_study(stages=(listed(np.linspace(0, 1, 500)),), names=("a",), execution={"executor": "auto"})
    assert run_study(large, tmp_path / "large", workers=2).sessions[0]["executor"] == "dask"
    growing = make_study(
        settings={"pause": 0.05}, stages=(listed(np.linspace(0, 1, 40), batch=8),), names=("a",), execution={}
    )
    result = run_study(growing, tmp_path / "growing")
    assert result.sessions[0]["executor"] == "dask"
    workers = evaluated(result, "worker")
    assert workers[0] == "serial"
    assert workers[-1] != "serial"
    one_by_one = make_study(
        settings={"pause": 0.05}, stages=(listed(np.linspace(0, 1, 6), batch=1),), names=("a",), execution={}
    )
    assert run_study(one_by_one, tmp_path / "one_by_one").sessions[0]["executor"] == "serial"


def test_a_model_that_cannot_be_prepared_ends_the_run_with_a_line_that_says_why(tmp_path):
    study = make_study("broken", minimize=("value",), names=("a",), execution={"executor": "dask", "workers": 1})
    with pytest.raises(WorkersError, match="model 'broken' cannot be prepared: OSError: no table"):
        run_study(study, tmp_path / "s")


def test_a_model_that_ends_its_process_when_prepared_ends_the_run_with_a_line_that_says_so(tmp_path):
    study = make_study("fragile", minimize=("value",), names=("a",), execution={"executor": "dask", "workers": 1})
    with pytest.raises(WorkersError, match=r"die while they prepare the model: .* ended itself with exit code 3"):
        run_study(study, tmp_path / "s")


def test_a_set_up_that_does_not_end_is_ended_where_the_study_sets_a_time_out(tmp_path, monkeypatch):
    monkeypatch.setattr("designopt.workers.remote.delivery.PREPARATION", 0.5)
    load_file(str(MODELS), MODELS.read_bytes())
    study = make_study("bowl", minimize=("value",), names=("a",), execution={"workers": 1, "timeout": 0.05})
    object.__setattr__(study, "model", Use(find("model", "endless_set_up"), {}))
    with pytest.raises(WorkersError, match=r"die while they prepare the model: .* longer than ten time-outs"):
        run_study(study, tmp_path / "s")


def test_a_model_typed_in_interactively_is_refused_with_the_way_out(tmp_path):
    source = "from designopt import model\n@model('typed', version=1, unchecked=True)\ndef typed(design, scenario):\n"
    space = {}
    exec(compile(source + "    return {'height': design['a'], 'slope': 0.0}\n", "<stdin>", "exec"), space)
    study = make_study(names=("a",), stages=(listed([0.1]),), execution={"executor": "dask", "workers": 1})
    object.__setattr__(study, "model", Use(space["typed"].__designopt__, {}))
    with pytest.raises(WorkersError, match="put it into a file, or use executor 'serial'"):
        run_study(study, tmp_path / "s")
    assert run_study(study, tmp_path / "t", executor="auto").sessions[0]["executor"] == "serial"


def test_serial_refuses_a_time_out_that_it_cannot_keep(tmp_path):
    with pytest.raises(WorkersError, match="cannot terminate a hanging evaluation"):
        run_study(trouble("sleep", timeout=1.0), tmp_path / "s", executor="serial")
    assert not (tmp_path / "s").exists()


def test_a_share_of_failures_above_the_policy_ends_a_run_on_workers(tmp_path):
    recorder = Recorder()
    study = make_study(
        "trouble", settings={"kind": "diverge", "width": 40.0}, minimize=("value",), names=("a",), low=0, high=100,
        stages=(listed(np.linspace(0, 100, 3000)),),
        execution={"executor": "dask", "workers": 2, "stop_if_share_above": 0.3, "after": 50},
    )  # fmt: skip
    with pytest.raises(FailurePolicyStop):
        run_study(study, tmp_path / "s", progress=recorder)
    assert recorder.closed


def test_no_files_and_settings_are_left_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = dict(os.environ)
    run_study(learning("dask", workers=1), tmp_path / "s")
    assert dict(os.environ) == before
    end = time.monotonic() + 120.0
    while (left := list(tmp_path.glob("designopt-*"))) or _worker_pids():  # or such that an earlier test has killed
        assert time.monotonic() < end, (left, _worker_pids())
        time.sleep(0.1)


def test_a_large_batch_stays_bounded_in_flight(tmp_path):
    """At most two chunks of 4096 for each worker are pending, whatever the batch."""
    from designopt.workers import dask

    flights = []
    original = dask.Dask.submit

    def submit(self, chunk):
        original(self, chunk)
        flights.append((len(self._flight), len(chunk)))

    study = make_study(
        stages=(listed(np.linspace(0, 1, 20_000)),), names=("a",), execution={"executor": "dask", "workers": 2}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("designopt.workers.auto.can_fork", lambda: False)
        patch.setattr(dask.Dask, "submit", submit)
        result = run_study(study, tmp_path / "s")
    assert result.counts["evaluations"] == 20_000
    assert max(count for count, _ in flights) <= 4
    assert max(size for _, size in flights) <= 4096


def test_a_run_whose_workers_are_gone_for_good_ends_with_a_message(tmp_path, monkeypatch):
    from designopt.workers import dask as executor

    monkeypatch.setattr(executor, "WITHOUT_WORKERS", 1.0)
    monkeypatch.setattr(executor.Dask, "_count_workers", lambda self: 0)
    with pytest.raises(WorkersError, match="no worker could be started for 1 s; continue with: designopt resume"):
        run_study(trouble("slow", count=4, pause=3.0), tmp_path / "s")
