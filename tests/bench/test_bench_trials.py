"""Forty recordings of 2 MB as scenarios on two workers: memory of the coordinator, time beside a run without files."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
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


def run(folder: Path, study: str, store: str, *more: str) -> tuple[float, float]:
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
        *more,
    ]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return time.monotonic() - began, used.ru_maxrss / 1024.0


@pytest.mark.bench
def test_recordings_cost_little_memory_and_little_time_at_the_start(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    (tmp_path / "gait.py").write_text(MODEL)
    (tmp_path / "trials").mkdir()
    for n in range(40):
        np.full(262144, float(n)).tofile(tmp_path / f"trials/walk{n:02d}.f64")
    (tmp_path / "none.csv").write_text("name,mass [kg]\n" + "".join(f"w{n},70\n" for n in range(40)))
    files = "files, pattern: {}*.f64, with: {{mass: 70 kg}}"
    (tmp_path / "copied.yaml").write_text(STUDY.format(scenarios=files.format("trials/")))
    (tmp_path / "root.yaml").write_text(STUDY.format(scenarios=files.format("recordings:")))
    (tmp_path / "none.yaml").write_text(STUDY.format(scenarios="table, file: none.csv"))
    kinds = {"none": (), "copied": (), "root": ("--data", "recordings=trials")}
    runs = {kind: [] for kind in kinds}
    for k in range(4):  # in turns
        for kind, more in kinds.items():
            runs[kind].append(run(tmp_path, f"{kind}.yaml", f"{kind}{k}.study", *more))
    least = {kind: min(seconds for seconds, _ in measurements) for kind, measurements in runs.items()}
    memory = {kind: max(size for _, size in measurements) for kind, measurements in runs.items()}
    below_root, copied = (least[kind] / least["none"] for kind in ("root", "copied"))
    print(f"coordinator {memory['root']:.0f} and {memory['copied']:.0f} MB, without files {memory['none']:.0f} MB")
    print(f"time {below_root:.2f} (below a data root) and {copied:.2f} (copied into the store) of that without files")
    record_property("40 recordings below a data root / run without files", below_root)
    record_property("40 recordings copied into the store / run without files", copied)
    assert max(memory.values()) < 200.0
    assert below_root < 1.2
    assert copied < 1.4  # each of the 40 files is flushed to the disk before the run begins
