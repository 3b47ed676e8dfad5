"""Forty trials under three criteria on two workers, killed five times: 38 as in a serial run, two named, none lost."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from designopt_muscle.models.trial import bundled

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
    lines = [line for line in bundled("walking_leg.csv").content.decode().splitlines() if not line.startswith("#")]
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


def begin(folder: Path, store: Path, messages: IO[bytes]) -> subprocess.Popen[bytes]:
    task = ["resume", str(store)] if (store / "journal.db").exists() else ["run", "study.yaml", "-o", str(store)]
    return subprocess.Popen(
        [sys.executable, "-m", "designopt", *task, "--progress", "none"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=messages,
    )


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_trials_survive_five_kills_and_bad_files_cost_only_themselves(tmp_path):
    trials(tmp_path / "trials")
    (tmp_path / "study.yaml").write_text(STUDY)
    store = tmp_path / "killed.study"
    kills = 0
    while True:
        with (tmp_path / "said").open("wb") as messages:
            process = begin(tmp_path, store, messages)
        due = recorded(store) + 1
        while process.poll() is None and (kills == 5 or recorded(store) < due):
            time.sleep(0.02)
        if process.poll() is not None:
            break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    assert process.returncode == 0, (tmp_path / "said").read_text()
    assert kills == 5
    killed = designopt.open_store(store)
    serial = designopt.load(tmp_path / "study.yaml").run(tmp_path / "serial.study", executor="serial")
    names = [scenario.name for scenario in serial.problem.scenarios]
    bad = [names.index(TRUNCATED), names.index(NAN)]
    good = [i for i in range(40) if i not in bad]
    assert np.array_equal(killed.outcomes.X, serial.outcomes.X)
    for name, figures in serial.outcomes.figures.items():
        assert np.array_equal(killed.outcomes.figures[name][:, good], figures[:, good]), name
    for design in range(3):
        for scenario in good:
            one, reference = killed.arrays(design, scenario), serial.arrays(design, scenario)
            assert all(one[name].tobytes() == reference[name].tobytes() for name in ARRAYS)
    assert (killed.status[:, good] == "ok").all()
    assert (killed.status[:, bad] == "diverged").all()
    for design in range(3):
        assert killed.message(design, bad[0]).startswith(f"trials/{TRUNCATED}.csv, line ")
        assert killed.message(design, bad[1]).startswith(f"trials/{NAN}.csv: no frame has all the numbers")
    assert not killed.outcomes.failed.any()  # two of forty are missing, a tenth may be
