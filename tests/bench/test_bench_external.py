"""Time of the runner for an external program, beyond the program's own. Run with: pytest -m bench -n 0 -s."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import designopt

pytestmark = pytest.mark.bench

STUDY = """
study: at_once
model:
  use: program
  run: [at_once, deck.inp]
  inputs: {x: mm, y: mm}
  templates: [deck.inp]
  outputs: {sum: {text: stdout.txt, pattern: '(\\S+)'}}
space: {x: [0, 1], y: [0, 1]}
objectives: [{minimize: sum}]
solver: {use: latin_hypercube, samples: 400}
execution: {workers: 2, executor: dask}
"""


def program(folder: Path) -> str:
    """A program that returns at once: compiled if there is a compiler, else `cat`."""
    source, target = folder / "at_once.c", folder / "at_once"
    source.write_text(
        '#include <stdio.h>\nint main(int n, char **a) { double x, y; FILE *f = fopen(a[1], "r");\n'
        'if (fscanf(f, "%lf %lf", &x, &y) != 2) return 1; printf("%.17g\\n", x + y); return 0; }\n'
    )
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-o", target, source], check=True)
    return str(target)


def bare(command: str, folder: Path, count: int) -> float:
    """Seconds for `count` runs of the program on two threads, with its input file and nothing else."""

    def some(subfolder: Path) -> None:
        for i in range(count // 2):
            (subfolder / "deck.inp").write_text(f"{i / count} 0.5\n")
            process = subprocess.run([command, "deck.inp"], cwd=subfolder, capture_output=True, check=True)
            float(process.stdout)

    subfolders = [folder / "bare0", folder / "bare1"]
    for subfolder in subfolders:
        subfolder.mkdir(exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        began = time.perf_counter()
        list(pool.map(some, subfolders))
        return time.perf_counter() - began


def measured(run: Callable[[int], float], small: int, large: int) -> float:
    """Seconds for one design: the difference of two numbers of designs, without the start of the workers."""
    return (run(large) - run(small)) / (large - small)


def test_a_design_costs_at_most_5_ms_beyond_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, float], None]
) -> None:
    if sys.platform == "win32":
        pytest.skip("needs process groups")
    monkeypatch.chdir(tmp_path)
    command = program(tmp_path)
    Path("deck.inp").write_text("{{ x }} {{ y }}\n")
    Path("study.yaml").write_text(STUDY)
    ours, theirs = [], []
    for round_ in range(5):

        def run(count: int, round_: int = round_) -> float:
            study = designopt.load("study.yaml", overrides=[f"solver.samples={count}"])
            began = time.perf_counter()
            result = study.run(f"{round_}-{count}.study", allow=[f"at_once={command}"])
            passed = time.perf_counter() - began
            assert (result.status == "ok").all()
            return passed

        ours.append(measured(run, 100, 700))
        theirs.append(measured(lambda count: bare(command, tmp_path, count), 100, 700))
    ours_median, bare_median = statistics.median(ours), statistics.median(theirs)
    overhead = 2.0 * (ours_median - bare_median)  # two at a time
    print(
        f"\none design on two workers: {1e3 * ours_median:.2f} ms, bare loop on two threads {1e3 * bare_median:.2f} ms;"
        f" {1e3 * overhead:.2f} ms of a worker beyond the program"
    )
    record_property("time / bare loop", ours_median / bare_median)
    record_property("ms of a worker beyond the program", 1e3 * overhead)
    assert overhead < 0.005
