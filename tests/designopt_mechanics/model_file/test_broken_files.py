"""Broken model files, geometries and companions end a command with 0, or with 2 and a place: no traceback."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from broken_files import PLACE, sources, study
from command import designopt
from mutations import mutated

SCRIPT = Path(__file__).with_name("broken_files.py")
#: Most that a process may grow over a thousand files (MB): nothing of a file is kept.
GROWN = 200.0


def verdict(first: int, count: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "error", str(SCRIPT), str(first), str(count)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60 + 2 * count)
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-3000:]
    counts: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return counts


def test_broken_files_are_read_or_refused_with_file_line_and_column() -> None:
    counts = verdict(30, 30)
    assert 10 < counts["refused"] < 30
    assert counts["grown"] < GROWN


@pytest.mark.slow
def test_two_thousand_broken_files_are_judged_within_2_s_each() -> None:
    counts = verdict(0, 2000)
    assert 1000 < counts["refused"] < 2000
    assert counts["slowest"] < 2.0, counts
    assert counts["grown"] < GROWN


@pytest.mark.parametrize("number", [3, 11, 20])
def test_the_command_itself_ends_with_0_or_2_and_a_place(number: int, tmp_path: Path) -> None:
    kind, name, text = random.Random(number).choice(sources())
    path = study(tmp_path, kind, name, mutated([text], number))
    process = designopt(tmp_path, "validate", str(path))
    assert process.returncode in (0, 2), process.stderr
    assert "Traceback" not in process.stderr
    assert process.returncode == 0 or PLACE.search(process.stderr), process.stderr
