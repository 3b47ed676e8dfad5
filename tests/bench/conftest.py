"""A benchmark that passes or fails leaves a row for each of its properties in ``results/benchmarks/rows.csv``.

A benchmark gives its figures with pytest's `record_property`, ratios first: they compare from machine to machine.
"""

import csv
import json
import os
import platform
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from designopt import load

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "results" / "benchmarks" / "rows.csv"
HEAD = ("date", "commit", "machine", "cores", "benchmark", "outcome", "figure", "value")


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Runs that leave benchmarks out do not import them: their peers take seconds to load."""
    return True if "not bench" in config.option.markexpr else None


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """The folder of a name in the reference data; the test is skipped where they are absent."""

    def folder(name: str) -> Path:
        path = Path(os.environ.get("DESIGNOPT_SHARED", ROOT.parent / "shared")) / "data" / name
        if not path.is_dir():
            pytest.skip(f"the reference data (../shared/data/{name}) are not there")
        return path

    return folder


@pytest.fixture
def opensim_peer(tmp_path: Path) -> Callable[..., dict]:
    """Runs a script with OpenSim on one thread; gives what its last line says, or skips the test without OpenSim.

    DESIGNOPT_PEER_OPENSIM names the Python with OpenSim (``pip install opensim==4.6``, without casadi, whose wheel
    breaks opensim when it is imported first).
    """
    python = os.environ.get("DESIGNOPT_PEER_OPENSIM", sys.executable)
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OPENSIM_MOCO_PARALLEL": "0"}

    def answer(script: Path, *arguments: str | Path) -> dict:
        process = subprocess.run(
            [python, str(script), *map(str, arguments)],
            capture_output=True, text=True, timeout=7200, cwd=tmp_path, env={**os.environ, **one_thread}, check=False,
        )  # fmt: skip
        if "No module named 'opensim'" in process.stderr:
            pytest.skip(f"opensim is not installed for {python}")
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout.splitlines()[-1])

    return answer


@pytest.fixture
def processors() -> Callable[[], AbstractContextManager[dict[str, float]]]:
    """Measures seconds of the processor in a block: "own" of this process, "busiest" of the busiest one below it, "all"
    of all those below it.

    Own and busiest together are what a run takes on a machine that has nothing else to do; the clock, and which worker
    is busiest, depend on whatever else it does.
    """
    import psutil

    @contextmanager
    def measured() -> Iterator[dict[str, float]]:
        used: dict[int, float] = {}
        seconds: dict[str, float] = {}
        ended = threading.Event()
        start = time.process_time()

        def look() -> None:
            while not ended.wait(0.2):
                for child in psutil.Process().children(recursive=True):
                    with suppress(psutil.Error):
                        used[child.pid] = sum(child.cpu_times()[:2])
            seconds["looking"] = time.thread_time()

        watch = threading.Thread(target=look)
        watch.start()
        try:
            yield seconds
        finally:
            total = time.process_time() - start
            ended.set()
            watch.join()
            seconds |= {"own": total - seconds.pop("looking"), "busiest": max(used.values()), "all": sum(used.values())}

    return measured


def machine() -> str:
    """The processor's name, if the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def commit() -> str:
    """The commit of the working copy, with a plus where it has changes; empty outside of one."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    return completed.stdout.strip()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" or not report.user_properties or "bench" not in report.keywords:
        return
    ROWS.parent.mkdir(parents=True, exist_ok=True)
    has_header = ROWS.exists()
    with ROWS.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if not has_header:
            writer.writerow(HEAD)
        where = time.strftime("%Y-%m-%d"), commit(), machine(), os.cpu_count()
        name = report.nodeid.partition("tests/bench/")[2]
        for figure, value in report.user_properties:
            writer.writerow((*where, name, report.outcome, figure, f"{value:.4g}"))


@pytest.fixture
def even_shares(
    tmp_path: Path, processors: Callable[[], AbstractContextManager[dict[str, float]]]
) -> Callable[[dict[str, Any], int], tuple[float, list[Any]]]:
    """Runs a study on a number of workers: its processor seconds if all workers had the same share of the work, and
    its evaluations (key, status, outputs) in the order of keys."""

    def run(study: dict[str, Any], workers: int) -> tuple[float, list[Any]]:
        file, store = tmp_path / f"{workers}.yaml", tmp_path / f"{workers}.study"
        file.write_text(json.dumps({**study, "execution": {"executor": "dask", "workers": workers}}))
        with processors() as seconds:
            load(file).run(store)
        print(f"\n{workers} workers: seconds of the processor {seconds}")
        with sqlite3.connect(store / "journal.db") as journal:
            rows = journal.execute("select key, status, outputs from evaluation order by key").fetchall()
        return seconds["own"] + seconds["all"] / workers, rows

    return run
