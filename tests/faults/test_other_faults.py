"""Clocks that jump, two starts in one instant, stores of another user, and a cluster whose parts are killed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import distributed  # noqa: F401  it keeps the clock of its import, which must not be that of a test here
import numpy as np
import pytest
from dask_processes import Cluster
from killed_run import study
from run_cases import Recorder, dump, listed, make_study

from designopt.run.runner import run_study
from designopt.store.errors import RunError
from designopt.store.result import Result

SCRIPT = Path(__file__).with_name("killed_run.py")
PLUGINS = Path(__file__).parents[1] / "run" / "plugins.py"


def small(executor="dask", **execution):
    stages = (listed(np.linspace(-2.0, 2.0, 60)),)
    return make_study(
        settings={"pause": 0.02},
        names=("a",),
        stages=stages,
        execution={"executor": executor, "workers": 2, **execution},
    )


def test_clocks_that_jump_change_nothing_and_end_nothing(tmp_path, monkeypatch):
    expected = dump(run_study(small("serial"), tmp_path / "serial"))
    real, jumps = time.time, [0.0, 86_400.0, -86_400.0, 3600.0]

    class Jumping(Recorder):
        def update(self, snapshot):
            if snapshot.evaluations and len(jumps) > 1:
                jumps.pop(0)

    monkeypatch.setattr(time, "time", lambda: real() + jumps[0])
    assert dump(run_study(small(timeout=30.0), tmp_path / "dask", progress=Jumping())) == expected
    assert len(jumps) < 4


@pytest.mark.parametrize("attempt", range(3))
def test_of_two_starts_in_one_instant_one_runs_and_the_other_says_why_not(tmp_path, attempt):
    command = [sys.executable, str(SCRIPT), str(tmp_path / "s")]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **quiet) for _ in range(2)]
    ends = [(process.communicate(timeout=600)[1], process.returncode) for process in processes]
    assert sorted(code for _, code in ends) == [0, 99]
    (message,) = [text for text, code in ends if code == 99]
    assert "exists" in message or "in use" in message or "not empty" in message
    assert Result.open(tmp_path / "s", study()).ended == "done"


#: Commands on a store as another user. What they import is imported before, on a copy of the store: that user may not
#: read the interpreter's own files. Arguments: the store, its copy, a file with the model.
AS_NOBODY = """
import os, sys
import designopt
from designopt.cli import main

def code(*words):
    try:
        main(words)
    except SystemExit as end:
        return end.code

store, copy, plugin = sys.argv[1:]
designopt.resume(copy, plugin_files=[plugin])
assert code("show", copy) == 0
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
assert not os.access(os.path.join(store, "journal.db"), os.W_OK)
print("=====", file=sys.stderr, flush=True)
print("codes", code("show", store), code("resume", store, "--plugin", plugin))
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user")
def test_a_store_of_another_user_is_read_and_not_written(tmp_path):
    run_study(small("serial"), tmp_path / "s")
    shutil.copytree(tmp_path / "s", tmp_path / "copy")
    shutil.copy(PLUGINS, tmp_path)
    for path in (tmp_path, *tmp_path.parents):
        if path.owner() == "root" and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
    before = {file: file.read_bytes() for file in (tmp_path / "s").rglob("*") if file.is_file()}
    files = [str(tmp_path / name) for name in ("s", "copy", PLUGINS.name)]
    process = subprocess.run([sys.executable, "-c", AS_NOBODY, *files], capture_output=True, text=True, timeout=600)
    assert process.stdout.splitlines()[-1] == "codes 0 4", process.stderr
    errors = process.stderr.partition("=====")[2]
    assert "cannot be written: Permission denied" in errors
    assert "Traceback" not in errors
    assert {file: file.read_bytes() for file in (tmp_path / "s").rglob("*") if file.is_file()} == before


def _torn_run(tmp_path, who):
    """A run on a cluster of its own of which `who` is killed on the way; resumed on another cluster."""
    expected = dump(run_study(small("serial"), tmp_path / "serial"))
    endings = []
    for session in range(2):
        folder = tmp_path / f"cluster{session}"
        folder.mkdir()
        cluster = Cluster(folder, "--nthreads", "1", "--nworkers", "2")
        try:
            cluster.wait_for(2)
            torn = [] if session else [cluster.processes[0 if who == "scheduler" else 1]]

            class Killing:
                def update(self, snapshot, torn=torn):
                    if snapshot.evaluations > 5 and torn:
                        torn.pop().send_signal(signal.SIGKILL)

                def event(self, kind, text, cluster=cluster, added=[]):  # noqa: B006
                    if kind == "no_workers" and not added:
                        added.append(cluster.add_worker("--nthreads", "1", "--nworkers", "2"))

                def close(self):
                    pass

            options = {"scheduler": cluster.address, "progress": Killing()}
            try:
                result = run_study(small(), tmp_path / "s", resume=session > 0, **options)
                break
            except RunError as error:
                endings.append((who, "designopt resume" in str(error)))
        finally:
            cluster.close()
    assert dump(result) == expected
    assert endings in ([], [("scheduler", True)])


@pytest.mark.parametrize("who", ["scheduler", "nanny"])
def test_a_cluster_that_loses_its_scheduler_or_a_nanny_costs_no_evaluation(tmp_path, monkeypatch, who):
    monkeypatch.setattr("designopt.workers.dask.WITHOUT_WORKERS", 2.0)
    _torn_run(tmp_path, who)
