"""Temporary files of evaluations, workers and runs: none stays."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from dask_processes import Cluster
from distributed import Client
from run_cases import Recorder, listed, make_study

from designopt.plugin import Use, find, load_file
from designopt.run.runner import run_study
from designopt.workers.supervision import temporary

MODELS = Path(__file__).with_name("plugins_faults.py")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="process groups and /proc")

HANGING = """\
study: hanging
model: {use: unruly, kind: leaves files and hangs, at: 0, width: 0.6, log: LOG}
space: {a: {low: -1, high: 1}}
objectives: [{name: value, minimize: value}]
solver: {use: full_factorial, levels: 40}
execution: {executor: dask, workers: 2}
"""


def leaving(folder, kind, count=5, width=0.5, **execution):
    """A study of designs 0 to `count`, of which those within `width` of 2 do what `kind` says."""
    load_file(str(MODELS), MODELS.read_bytes())
    study = make_study(
        minimize=("value",), names=("a",), low=0.0, high=100.0, stages=(listed(np.arange(count)),),
        execution={"executor": "dask", "workers": 2, **execution},
    )  # fmt: skip
    settings = {"kind": kind, "at": 2.0, "width": width, "log": str(folder / "log")}
    object.__setattr__(study, "model", Use(find("model", "unruly"), settings))
    return study


@pytest.fixture
def temporary_folder(tmp_path, monkeypatch):
    """An empty folder for the temporary files of this process and its children."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def of_runs(folder):
    """What is in `folder`, except multiprocessing's folder of this process."""
    return [path for path in folder.iterdir() if not path.name.startswith("pymp-")]


def wait_until(condition):
    end = time.monotonic() + 120.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_temporary_files_of_evaluations_that_end_in_time_or_not_are_gone_after_a_run(tmp_path, temporary_folder):
    result = run_study(leaving(tmp_path, "leaves files and hangs", width=1.5, timeout=0.5), tmp_path / "s")
    assert result.status[:, 0].tolist() == ["ok", "timeout", "timeout", "timeout", "ok"]
    run_study(leaving(tmp_path, "leaves files"), tmp_path / "t")
    assert of_runs(temporary_folder) == []


def test_temporary_files_of_a_killed_evaluation_are_removed_while_the_run_goes_on(tmp_path, temporary_folder):
    remaining = []

    class Looking(Recorder):
        def event(self, kind, text):
            folders = [Path(line) for line in (tmp_path / "log").read_text().splitlines()] if kind == "timeout" else []
            remaining.extend(folder.exists() for folder in folders)

    study = leaving(tmp_path, "leaves files and hangs", timeout=0.5)
    run_study(study, tmp_path / "s", progress=Looking())
    assert remaining == [False]


@pytest.mark.parametrize("evaluating", [False, True], ids=["at its start", "during evaluations"])
def test_a_killed_run_on_local_workers_leaves_no_temporary_files_and_no_remarks(tmp_path, evaluating):
    folder = tmp_path / "temporary"
    folder.mkdir()
    (tmp_path / "study.yaml").write_text(HANGING.replace("LOG", str(tmp_path / "log")))
    command = [sys.executable, "-m", "designopt", "run", "study.yaml", "--plugin", str(MODELS), "-o", "s"]
    environment = os.environ | {"TMPDIR": str(folder)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        reached = (tmp_path / "log").exists if evaluating else lambda: list(folder.glob("designopt-*"))
        wait_until(lambda: reached() or run.poll() is not None)
        run.kill()
        errors = run.communicate()[1]
    assert run.returncode == -signal.SIGKILL, errors
    wait_until(lambda: not list(folder.iterdir()))
    assert "resource_tracker" not in errors


@pytest.fixture
def cluster(tmp_path, temporary_folder):
    """A scheduler and two workers with temporary files in the folder."""
    started = Cluster(tmp_path, "--nthreads", "1", "--nworkers", "2")
    try:
        started.wait_for(2)
        yield started
    finally:
        started.close()


def test_nodes_of_an_existing_scheduler_are_left_without_temporary_files(tmp_path, temporary_folder, cluster):
    before = set(temporary_folder.iterdir())
    study = leaving(tmp_path, "leaves files and hangs", timeout=0.5)
    result = run_study(study, tmp_path / "s", scheduler=cluster.address)
    assert result.status[:, 0].tolist() == ["ok", "ok", "timeout", "ok", "ok"]
    run_study(leaving(tmp_path, "leaves files"), tmp_path / "t", scheduler=cluster.address)
    assert set(of_runs(temporary_folder)) <= before
    with Client(cluster.address, set_as_default=False) as client:
        assert set(client.run(tempfile.gettempdir).values()) == {str(temporary_folder)}


@pytest.mark.faults  # Dask waits 30 s for the worker of a nanny that is gone
def test_a_killed_nanny_leaves_no_temporary_files_of_evaluations(tmp_path, temporary_folder, cluster):
    class Killing(Recorder):
        def update(self, snapshot):
            if not killed and (tmp_path / "log").exists():
                killed.extend(set(temporary_folder.glob("designopt-*")))
                cluster.processes[1].kill()  # the nannies of both workers
                (tmp_path / "log").write_text("")
                cluster.add_worker("--nthreads", "1")

    killed = []
    study = leaving(tmp_path, "leaves files and hangs", width=100.0, count=2, timeout=3.0)
    result = run_study(study, tmp_path / "s", scheduler=cluster.address, progress=Killing())
    assert result.status[:, 0].tolist() == ["timeout"] * 2
    assert len(killed) == 2
    wait_until(lambda: not list(temporary_folder.glob("designopt-*")))


def test_the_folder_of_temporary_files_is_that_of_the_evaluation_and_then_the_usual_one_again(
    tmp_path, temporary_folder
):
    temporary.use_folder(tmp_path / "first")
    try:
        assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(tmp_path / "first")
        assert temporary.usual_folder() == temporary_folder
        temporary.use_usual_folder(tmp_path / "second")  # another run leaves, which is not at work
        assert tempfile.gettempdir() == str(tmp_path / "first")
    finally:
        temporary.use_usual_folder(tmp_path / "first")
    assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(temporary_folder)
