"""A benchmark that passes or fails leaves a row for each of its properties in ``results/benchmarks/rows.csv``.

A benchmark gives its figures with pytest's `record_property`, ratios first: they compare from machine to machine.
"""

import csv
import os
import platform
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "results" / "benchmarks" / "rows.csv"
HEAD = ("date", "commit", "machine", "cores", "benchmark", "outcome", "figure", "value")


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Runs that leave benchmarks out do not import them: their peers take seconds to load."""
    return True if "not bench" in config.option.markexpr else None


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
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" or not report.user_properties or "bench" not in report.keywords:
        return
    ROWS.parent.mkdir(parents=True, exist_ok=True)
    known = ROWS.exists()
    with ROWS.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if not known:
            writer.writerow(HEAD)
        where = time.strftime("%Y-%m-%d"), commit(), machine(), os.cpu_count()
        name = report.nodeid.partition("tests/bench/")[2]
        for figure, value in report.user_properties:
            writer.writerow((*where, name, report.outcome, figure, f"{value:.4g}"))
