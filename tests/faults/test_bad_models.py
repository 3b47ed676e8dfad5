"""Each of the sixty and more bad models costs its own design at most: the others are right, and nothing is left."""

import contextlib
import os
import sys
import time
from multiprocessing import resource_tracker
from pathlib import Path

import numpy as np
import pytest
from bad_models import KINDS
from processes import stat
from run_cases import listed, make_study

from designopt.plugin import Use, find, load_file
from designopt.run.runner import run_study
from designopt.workers.pools import forking

MODELS = Path(__file__).with_name("bad_models.py")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="process groups and /proc")


def bad(kind):
    load_file(str(MODELS), MODELS.read_bytes())
    execution = {
        "executor": "dask",
        "workers": 2,
        "timeout": 2.0 if "timeout" in KINDS[kind][1] else 30.0,
        "arrays": {"curve": "all"},
        "on_failure": {"error": "infeasible"},
    }
    stages = (listed(np.arange(0.0, 101.0, 10.0), batch=0),)
    study = make_study(
        "bowl", minimize=("value",), names=("a",), low=0.0, high=100.0, stages=stages, execution=execution
    )
    object.__setattr__(study, "model", Use(find("model", "bad"), {"kind": kind}))
    return study


def _started(folder):
    """Processes that a run with its notes in `folder` has started and that are still there."""
    pids, name = set(), str(folder).encode()
    signs = {"environ": b"TMPDIR=%s" % name, "maps": b"%s/designopt-" % name, "cmdline": b"\0%s" % name}
    for entry in Path("/proc").iterdir():
        for file, sign in signs.items():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and sign in (entry / file).read_bytes():
                    pids.add(int(entry.name))
    tracker = resource_tracker._resource_tracker._pid  # of this process, for all runs
    waits = forking._idle_origin.process.pid if forking._idle_origin else None  # for the next run
    return {pid for pid in pids - {os.getpid(), tracker, waits} if (about := stat(pid)) and about[2] not in "ZX"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_model_costs_its_own_design_at_most(tmp_path, monkeypatch, capfd, kind):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = dict(os.environ)
    result = run_study(bad(kind), tmp_path / "s")
    status = result.status[:, 0].tolist()
    assert status[5] in KINDS[kind][1]
    assert [s for i, s in enumerate(status) if i != 5] == ["ok"] * 10
    values = result.outcomes.figures["value"][:, 0]
    assert np.delete(values, 5).tolist() == [20.0 * i for i in range(11) if i != 5]
    assert result.arrays(6)["curve"].tolist() == [60.0] * 3
    output = "".join(capfd.readouterr())
    assert "Traceback" not in output, output
    assert len(output) < 1000
    assert dict(os.environ) == before
    assert not list(tmp_path.glob("designopt-*"))
    end = time.monotonic() + 120.0
    while left := _started(tmp_path):
        assert time.monotonic() < end, left
        time.sleep(0.05)


def test_there_are_sixty_of_them_at_least():
    assert len(KINDS) >= 60
