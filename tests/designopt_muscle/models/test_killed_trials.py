"""Forty trials under three criteria on two workers, killed five times: none lost, each as in a serial run."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from designopt_muscle.models.trial import bundled_file

import designopt

#: Names of arrays that are compared bit by bit.
ARRAYS = ["activations", "net_moments", "status"]
STUDY = f"""\
study: trials
title: Forty trials
model: {{use: muscle_sharing, reserve: 30}}
scenarios:
  - {{use: files, pattern: "trials/*.csv", as: motion}}
missing: {{at_most: 10 %}}
solver:
  use: evaluate
  designs:
    - {{name: squares, criterion: power, exponent: 2}}
    - {{name: cubes, criterion: power, exponent: 3}}
    - {{name: strict, criterion: strict_minmax, exponent: 1}}
execution: {{executor: dask, workers: 2, arrays: [{", ".join(ARRAYS)}]}}
"""
TRUNCATED, NAN = "trial_11", "trial_29"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kills with signals of Linux")


def trials(folder: Path) -> None:
    """Forty trials of 400 frames: the bundled one with other moments, one cut within a number, one of NaN alone."""
    lines = [line for line in bundled_file("walking_leg.csv").content.decode().splitlines() if not line.startswith("#")]
    head, rows = lines[0], np.array([[float(v) for v in line.split(",")] for line in lines[1:]])
    time_ = np.linspace(rows[0, 0], rows[-1, 0], 400)
    fine = np.column_stack([time_, *(np.interp(time_, rows[:, 0], column) for column in rows[:, 1:].T)])
    folder.mkdir()
    for k in range(40):
        values = fine.copy()
        values[:, 4:] *= 0.6 + 0.01 * k
        if f"trial_{k:02d}" == NAN:
            values[:, 1:] = np.nan
        text = "\n".join([head, *(",".join(f"{v:.9g}" for v in row) for row in values)]) + "\n"
        if f"trial_{k:02d}" == TRUNCATED:
            text = text[: len(text) // 2 - 3].rsplit("\n", 1)[0] + "\n0.9,0.1"
        (folder / f"trial_{k:02d}.csv").write_text(text)


def recorded(store: Path) -> int:
    """Evaluations in the journal, read beside the run that writes it."""
    if not (store / "journal.db").exists():
        return 0
    with closing(sqlite3.connect(f"file:{store / 'journal.db'}?mode=ro", uri=True)) as journal:
        try:
            return int(journal.execute("SELECT COUNT(*) FROM evaluation").fetchone()[0])
        except sqlite3.OperationalError:  # its tables are still being made, or it is locked
            return 0


def started(folder: Path, store: Path, output: Path) -> subprocess.Popen[bytes]:
    """A run of the study, or its continuation; `output` receives its messages."""
    task = ["resume", str(store)] if (store / "journal.db").exists() else ["run", "study.yaml", "-o", str(store)]
    command = [sys.executable, "-m", "designopt", *task, "--progress", "none"]
    with output.open("wb") as stream:
        return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=stream)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_trials_survive_five_kills_and_bad_files_cost_only_themselves(tmp_path):
    trials(tmp_path / "trials")
    (tmp_path / "study.yaml").write_text(STUDY)
    store, output = tmp_path / "killed.study", tmp_path / "output"
    assert started(tmp_path, store, output).wait() == 2  # a file that ends in a row stops the study before the run
    assert f"trials/{TRUNCATED}.csv, line 200: 2 values, but 7 columns" in output.read_text()
    (tmp_path / "trials" / f"{TRUNCATED}.csv").unlink()
    kills = 0
    while True:
        process = started(tmp_path, store, output)
        due = recorded(store) + 1
        while process.poll() is None and (kills == 5 or recorded(store) < due):
            time.sleep(0.02)
        if process.poll() is not None:
            break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    assert process.returncode == 0, output.read_text()
    assert kills == 5
    killed = designopt.open_store(store)
    serial = designopt.load(tmp_path / "study.yaml").run(tmp_path / "serial.study", executor="serial")
    names = [scenario.name for scenario in serial.problem.scenarios]
    bad = names.index(NAN)
    good = [i for i in range(39) if i != bad]
    assert np.array_equal(killed.outcomes.X, serial.outcomes.X)
    for name, figures in serial.outcomes.figures.items():
        assert np.array_equal(killed.outcomes.figures[name][:, good], figures[:, good], equal_nan=True), name
    for design in range(3):
        for scenario in good:
            arrays, serial_arrays = killed.arrays(design, scenario), serial.arrays(design, scenario)
            assert all(arrays[name].tobytes() == serial_arrays[name].tobytes() for name in ARRAYS)
    assert (killed.status[:, good] == "ok").all()
    assert (killed.status[:, bad] == "unusable").all()
    for design in range(3):
        assert killed.message(design, bad).startswith(f"trials/{NAN}.csv: no frame has all the numbers")
    assert not killed.outcomes.failed.any()  # one of 39 is missing, a tenth may be
