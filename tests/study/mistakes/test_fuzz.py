"""Thousands of broken study files: each is judged within seconds and 350 MB, and none with anything but `StudyError`.

The files are judged in a process of their own, of which the largest size is measured, its libraries included.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

#: Seconds of processor time for one file.
LONGEST = 5.0
#: Size of the process over all files, MB: the bundled packages take some 180 before the first one.
LARGEST = 350.0
#: By how much it grows over all files, MB.
GROWTH = 60.0


def judged(first: int, count: int) -> dict[str, float]:
    """The verdict of the process that judges so many broken files."""
    command = [sys.executable, "-W", "error", str(Path(__file__).with_name("fuzzing.py")), str(first), str(count)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert process.returncode == 0, process.stdout[-4000:] + process.stderr[-8000:]
    verdict: dict[str, float] = json.loads(process.stdout.splitlines()[-1])
    return verdict


def check(verdict: dict[str, float], count: int) -> None:
    assert verdict["files"] == count
    assert verdict["refused"] > 0.6 * count, "most of the files are broken"
    assert verdict["slowest"] < LONGEST, f"file {verdict['slowest_file']}"
    assert verdict["grown"] < GROWTH
    assert verdict["peak"] < LARGEST, (
        f"grown by {verdict['grown']:.0f} MB, most of it with file {verdict['grown_file']}"
    )


def test_broken_files_are_refused_with_places_in_time_and_in_little_memory() -> None:
    check(judged(0, 200), 200)


@pytest.mark.slow
def test_ten_thousand_broken_files_are_refused_with_places_in_time_and_in_little_memory() -> None:
    check(judged(1_000_000, 10_000), 10_000)
