"""Models that harm their process: the design is found and recorded, its neighbours are fine, the run goes on."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command import alive
from run_cases import PLUGINS, Recorder, listed, make_study, table

from designopt.plugin import Use, find, load_file
from designopt.run.runner import run_study
from designopt.workers.pools import forking

MODELS = Path(__file__).with_name("plugins_faults.py")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="process groups and /proc")


def unruly(kind, count=101, settings=None, **execution):
    """A study of `count` designs, the middle one of which does what `kind` says."""
    load_file(str(MODELS), MODELS.read_bytes())
    execution = {"executor": "dask", "workers": 2} | execution
    stages = (listed(np.linspace(0.0, 100.0, count)),)
    study = make_study(
        "bowl", minimize=("value",), names=("a",), low=0.0, high=100.0, stages=stages, execution=execution
    )
    object.__setattr__(study, "model", Use(find("model", "unruly"), {"kind": kind, **(settings or {})}))
    return study


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        pytest.param("closes files", "", marks=pytest.mark.faults),
        pytest.param("breaks pickle", "could not continue: TypeError", marks=pytest.mark.faults),
        pytest.param("prints and exits", "ended itself with exit code 3", marks=pytest.mark.faults),
        pytest.param("kills its group", "was killed by SIGKILL", marks=pytest.mark.faults),
    ],
)
def test_a_design_that_ends_its_process_at_its_end_or_later_is_found_and_recorded_as_crashed(tmp_path, kind, message):
    result = run_study(unruly(kind), tmp_path / "s")
    assert np.flatnonzero(result.status[:, 0] != "ok").tolist() == [50]
    assert result.status[50, 0] == "crashed"
    assert message in result.message(50)
    assert result.outcomes.figures["value"][:, 0].tolist()[:50] == [2.0 * a for a in range(50)]


def test_a_design_that_ends_its_process_2_ms_after_its_result_keeps_the_result_or_is_recorded_as_crashed(tmp_path):
    # The result may have left the process before its end, alone in its chunk: then it counts.
    result = run_study(unruly("exits soon"), tmp_path / "s")
    if result.status[50, 0] == "ok":
        assert result.outcomes.figures["value"][50, 0] == 100.0
    else:
        assert result.status[50, 0] == "crashed"
        assert "ended itself with exit code 9" in result.message(50)
    assert (np.delete(result.status[:, 0], 50) == "ok").all()


@pytest.mark.faults
def test_a_process_that_dies_long_after_a_result_costs_no_other_design(tmp_path):
    result = run_study(unruly("exits later", settings={"pause": 0.02}), tmp_path / "s")
    assert set(np.flatnonzero(result.status[:, 0] != "ok").tolist()) <= {50}
    assert set(result.status[:, 0].tolist()) <= {"ok", "crashed"}


@pytest.mark.faults
def test_many_designs_that_end_their_process_a_little_later_are_found_each(tmp_path):
    result = run_study(unruly("exits soon", count=41, settings={"width": 4.0}), tmp_path / "s")
    assert set(np.flatnonzero(result.status[:, 0] != "ok").tolist()) <= {19, 20, 21}
    assert set(result.status[:, 0].tolist()) <= {"ok", "crashed"}


def test_a_design_that_breaks_the_libraries_of_its_worker_costs_a_worker_and_not_the_run(tmp_path):
    result = run_study(unruly("breaks numpy", timeout=6.0), tmp_path / "s")
    assert set(np.flatnonzero(result.status[:, 0] != "ok").tolist()) <= {50}
    assert result.counts["evaluations"] == 101


@pytest.mark.faults
def test_a_worker_that_stops_itself_is_ended_when_the_limit_has_passed(tmp_path):
    result = run_study(unruly("stops itself", timeout=3.0), tmp_path / "s")
    assert np.flatnonzero(result.status[:, 0] != "ok").tolist() == [50]
    assert result.status[50, 0] == "crashed"
    assert "it had been stopped for " in result.message(50)


@pytest.mark.faults
def test_a_worker_that_stops_itself_does_not_hold_up_a_run_without_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("designopt.workers.supervision.supervisor.SILENCE", 1.0)
    result = run_study(unruly("stops itself"), tmp_path / "s")
    assert np.flatnonzero(result.status[:, 0] != "ok").tolist() == [50]
    assert result.status[50, 0] == "crashed"
    assert "it had been stopped" in result.message(50)


@pytest.mark.faults
def test_a_model_cannot_switch_off_its_limit(tmp_path):
    result = run_study(unruly("unblocks the watch", timeout=3.0), tmp_path / "s")
    assert np.flatnonzero(result.status[:, 0] != "ok").tolist() == [50]
    assert result.status[50, 0] == "timeout"


@pytest.mark.parametrize("executor", ["serial", pytest.param("dask", marks=pytest.mark.faults)])
def test_an_error_without_name_and_text_is_an_error_like_others(tmp_path, executor):
    result = run_study(unruly("nameless", executor=executor), tmp_path / "s")
    assert np.flatnonzero(result.status[:, 0] != "ok").tolist() == [50]
    assert result.status[50, 0] == "error"
    assert "Nameless: (its text cannot be had: SystemExit)" in result.message(50)


@pytest.mark.parametrize("executor", ["serial", pytest.param("dask", marks=pytest.mark.faults)])
def test_an_array_that_cannot_be_kept_is_an_error_of_its_design(tmp_path, executor):
    study = unruly("array of locks", executor=executor, arrays={"curve": "all"})
    result = run_study(study, tmp_path / "s")
    assert np.flatnonzero(result.status[:, 0] != "ok").tolist() == [50]
    assert result.status[50, 0] == "error"
    assert "curve" in result.message(50)
    assert result.arrays(51)["curve"].tolist() == [51.0] * 3


@pytest.mark.faults
def test_all_descriptors_taken_by_a_design_do_not_end_the_run(tmp_path):
    result = run_study(unruly("eats descriptors"), tmp_path / "s")
    assert set(np.flatnonzero(result.status[:, 0] != "ok").tolist()) <= {50}
    assert result.counts["evaluations"] == 101


# ------------------------------------------------------------------------------------------------------- prints


def test_prints_are_kept_with_their_evaluation_and_do_not_reach_the_terminal(tmp_path, capfd):
    result = run_study(unruly("prints and fails", on_failure={}), tmp_path / "s")
    assert result.message(50).endswith("no")
    printed = result.printed(50)
    assert printed.endswith("the last words\n")
    assert len(printed) < 5000
    assert result.printed(49) == ""
    out, err = capfd.readouterr()
    assert "x" not in out
    assert "last words" not in out + err


@pytest.mark.faults
def test_warnings_of_a_worker_are_reported_once_and_recorded_as_an_event(tmp_path, capfd):
    recorder = Recorder()
    result = run_study(unruly("warns", settings={"width": 60.0}), tmp_path / "s", progress=recorder)
    assert [event for event in recorder.events if event[0] == "warning"] == [
        ("warning", "compiling some large system once")
    ]
    assert [event["text"] for event in result.events] == ["compiling some large system once"]
    assert "compiling" not in "".join(capfd.readouterr())


def test_prints_of_a_good_evaluation_and_of_c_code_are_kept_too(tmp_path):
    result = run_study(unruly("prints"), tmp_path / "s")
    assert set(result.status[:, 0].tolist()) == {"ok"}
    assert result.printed(50) == "below python\nfine\n"


def test_prints_of_a_design_that_ends_its_worker_are_kept_with_the_attempt(tmp_path):
    result = run_study(unruly("prints and exits"), tmp_path / "s")
    assert all("its last output:\nbefore the end" in a["detail"] for a in table(result, "attempt"))


# ----------------------------------------------------------------------------------------------------- children


def _processes():
    """Number, state, parent and group of every process."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                yield int(entry.name), state, int(parent), int(group)


def _left_of(groups):
    """Members of the groups of processes that are not dead."""
    return [pid for pid, state, _, group in _processes() if group in groups and state not in "ZX"]


def test_processes_of_a_model_end_with_the_run(tmp_path):
    groups = set()

    def look(snapshot):
        groups.update(pid for pid, _, parent, group in _processes() if parent == os.getpid() and group == pid)

    log = tmp_path / "pids"
    settings = {"log": str(log), "pause": 0.02}
    result = run_study(unruly("forks", settings=settings), tmp_path / "s", progress=Recorder(at_update=look))
    assert set(result.status[:, 0].tolist()) == {"ok"}
    started = [int(line) for line in log.read_text().split()]
    assert len(started) == 6
    end = time.monotonic() + 120.0
    while any(alive(pid) for pid in started) or _left_of(groups) != [
        forking._idle_origin.process.pid
    ]:  # it waits for the next run
        assert time.monotonic() < end, (started, _left_of(groups))
        time.sleep(0.05)
    assert len(groups) >= 2


def test_processes_of_a_model_end_when_the_run_is_killed(tmp_path):
    log = tmp_path / "pids"
    script = f"""if True:
        import sys
        sys.path[:0] = {[str(MODELS.parent), str(MODELS.parents[1]), str(PLUGINS.parent)]!r}
        from test_unruly_models import unruly
        from designopt.run.runner import run_study
        run_study(unruly("forks", settings={{"log": {str(log)!r}, "at": 0.0, "pause": 0.2}}), {str(tmp_path / "s")!r})
    """
    running = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 300.0
    while not log.exists() or len(log.read_text().split()) < 6:
        assert running.poll() is None, running.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.05)
    running.kill()
    running.communicate()
    started = [int(line) for line in log.read_text().split()]
    while left := [pid for pid in started if alive(pid)]:
        assert time.monotonic() < end, left
        time.sleep(0.05)


def test_no_notes_are_left_after_a_time_out_at_the_end_of_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = run_study(unruly("stops itself", count=1, settings={"at": 0.0}, timeout=0.5), tmp_path / "s")
    assert result.status[0, 0] == "crashed"
    assert not list(tmp_path.glob("designopt-*"))
