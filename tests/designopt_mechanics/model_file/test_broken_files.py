"""Broken model files, geometries, companions and rods end a command with 0, or with 2 and a place: no traceback."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from broken_files import PLACE, sources, study
from command import designopt
from mutations import mutated

SCRIPT = Path(__file__).with_name("broken_files.py")
#: Most that a process may grow over a thousand files (MB): nothing of a file is kept.
GROWN = 200.0


def verdict(first: int, count: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "error", str(SCRIPT), str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 + 2 * count)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_broken_files_are_read_or_refused_with_file_line_and_column() -> None:
    found = verdict(0, 60)
    assert 20 < found["refused"] < 60
    assert found["grown"] < GROWN


@pytest.mark.slow
def test_two_thousand_broken_files_are_judged_within_2_s_each() -> None:
    found = verdict(0, 2000)
    assert 1000 < found["refused"] < 2000
    assert found["slowest"] < 2.0, found
    assert found["grown"] < GROWN


@pytest.mark.parametrize("number", [3, 11, 20])
def test_the_command_itself_ends_with_0_or_2_and_a_place(number: int, tmp_path: Path) -> None:
    kind, name, text = random.Random(number).choice([s for s in sources() if s[0] != "rods"])
    path = study(tmp_path, kind, name, mutated([text], number))
    done = designopt(tmp_path, "validate", str(path))
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or PLACE.search(done.stderr), done.stderr
