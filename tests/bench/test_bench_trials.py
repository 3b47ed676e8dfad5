"""Forty recordings of 2 MB as scenarios on two workers: memory of the coordinator, time beside a run without files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

MODEL = '''
from typing import Annotated, TypedDict
import numpy as np
from designopt import InputFile, Quantity as Q, model

class Conditions(TypedDict, total=False):
    trial: InputFile
    mass: Annotated[float, Q("kg", "body mass", gt=0)]

class Out(TypedDict):
    peak: Annotated[float, Q("N", "peak force")]

@model("gait", version=1)
def gait(design, scenario: Conditions) -> Out:
    """The peak of a recorded force."""
    trial = scenario.get("trial")
    values = np.ones(262144) if trial is None else np.frombuffer(trial.content)
    return {"peak": float(values.max()) * scenario["mass"]}
'''
STUDY = """\
study: trials
model: {{use: gait}}
scenarios: {{use: {scenarios}}}
solver: {{use: evaluate}}
execution: {{executor: dask, workers: 2}}
"""


def run(folder: Path, study: str, store: str) -> tuple[float, float]:
    """Seconds, and MB of the coordinator at most."""
    command = [
        sys.executable,
        "-m",
        "designopt",
        "run",
        study,
        "--plugin",
        "gait.py",
        "-o",
        store,
        "--progress",
        "none",
    ]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return time.monotonic() - began, used.ru_maxrss / 1024.0


@pytest.mark.bench
def test_recordings_cost_little_memory_and_little_time_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "gait.py").write_text(MODEL)
    (tmp_path / "trials").mkdir()
    for n in range(40):
        np.full(262144, float(n)).tofile(tmp_path / f"trials/walk{n:02d}.f64")
    (tmp_path / "none.csv").write_text("name,mass [kg]\n" + "".join(f"w{n},70\n" for n in range(40)))
    (tmp_path / "files.yaml").write_text(STUDY.format(scenarios="files, pattern: trials/*.f64, with: {mass: 70 kg}"))
    (tmp_path / "none.yaml").write_text(STUDY.format(scenarios="table, file: none.csv"))
    pairs = [(run(tmp_path, "none.yaml", f"n{k}.study"), run(tmp_path, "files.yaml", f"f{k}.study")) for k in range(4)]
    ratio = min(files[0] for _, files in pairs) / min(none[0] for none, _ in pairs)
    memory = max(files[1] for _, files in pairs)
    print(f"coordinator {memory:.0f} MB (without files {pairs[0][0][1]:.0f}), time {ratio:.2f} of that without files")
    assert memory < 200.0
    assert ratio < 1.2
