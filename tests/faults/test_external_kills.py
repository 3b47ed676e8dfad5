"""A study of an external program whose runner and workers are killed again and again ends like an undisturbed one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import designopt

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="the system does not show its processes"),
]

#: A solver that fails in its own ways: a signal for some designs, a hang for others, much printed text for the rest.
SOLVER = f"""#!{sys.executable} -SE
import os, signal, subprocess, sys, time
x, y = map(float, open("deck.inp").read().split())
share = (1e4 * x) % 1.0
if share < 0.1:
    os.kill(os.getpid(), signal.SIGSEGV)
if share < 0.15:
    subprocess.Popen(["sleep", "600"])
    time.sleep(600)
time.sleep(0.05)
print("x" * 100_000)
print("result:", (x - 0.3) ** 2 + y, x * (1 - y))
"""

STUDY = """
study: killed
model:
  use: program
  run: [fragile_solver, deck.inp]
  inputs: {x: mm, y: mm}
  templates: [deck.inp]
  outputs:
    a: {text: stdout.txt, pattern: 'result: (\\S+) '}
    b: {text: stdout.txt, pattern: 'result: \\S+ (\\S+)'}
space: {x: [0, 1], y: [0, 1]}
objectives: [{minimize: a}, {minimize: b}]
solver: {use: nsga2, population: 20}
budget: {evaluations: 200}
execution: {workers: 2, executor: dask, timeout: 2 s}
report: {tolerances: {neighbours: 0}}
"""


def solvers(folder: Path) -> dict[int, int]:
    """The processes of the solver in `folder`, with their parents."""
    name = f"{folder / 'fragile_solver'}\0deck.inp"
    matching = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if name in command:
                matching[int(entry.name)] = parent
    return matching


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "designopt", *arguments, "--progress", "none"]
    program = f"fragile_solver={folder / 'fragile_solver'}"
    return subprocess.Popen(
        [*command, "--allow", program], cwd=folder, stderr=subprocess.DEVNULL, start_new_session=True
    )


def test_five_kills_of_runner_and_worker_leave_the_table_of_an_undisturbed_run(tmp_path: Path) -> None:
    (tmp_path / "fragile_solver").write_text(SOLVER)
    (tmp_path / "fragile_solver").chmod(0o755)
    (tmp_path / "deck.inp").write_text("{{ x }} {{ y }}\n")
    (tmp_path / "study.yaml").write_text(STUDY)
    assert start(tmp_path, "run", "study.yaml", "-o", "calm.study").wait() == 0
    run = start(tmp_path, "run", "study.yaml", "-o", "killed.study")
    runners = workers = 0
    while runners < 5 and run.poll() is None:
        time.sleep(1.0)
        running = solvers(tmp_path)
        if workers <= runners and running:
            os.kill(next(iter(running.values())), signal.SIGKILL)
            workers += 1
        elif workers > runners:
            os.kill(run.pid, signal.SIGKILL)
            run.wait()
            runners += 1
            time.sleep(2.0)
            run = start(tmp_path, "resume", "killed.study")
    assert run.wait() == 0
    assert runners == workers == 5
    calm, killed = (designopt.open_store(tmp_path / name) for name in ("calm.study", "killed.study"))
    np.testing.assert_array_equal(killed.outcomes.X, calm.outcomes.X)
    np.testing.assert_array_equal(killed.status, calm.status)
    for name, values in calm.outcomes.figures.items():
        np.testing.assert_array_equal(killed.outcomes.figures[name], values)
    assert {status for status, _ in calm.failures()} == {"crashed", "timeout"}
    assert not solvers(tmp_path)
