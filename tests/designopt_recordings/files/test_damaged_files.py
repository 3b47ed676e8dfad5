"""Damaged files of every format are refused with file and place, or read correctly: no traceback, crash or hang."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from designopt_recordings.files.write import motion_text, storage_text, trc_text
from designopt_recordings.recording import Recording
from designopt_recordings.table import TimeTable

from designopt.plugin import InputFile

FORMATS = ("sto", "mot", "csv", "trc", "c3d")
QUICK, SLOW = 40, 360  # of each format: 200 in the default run, 2 000 in all


@pytest.fixture
def good(tmp_path: Path, made_c3d: Callable[..., InputFile], request: pytest.FixtureRequest) -> Path:
    """A small good file of the format asked for."""
    generator = np.random.default_rng(0)
    time = np.arange(12) / 100.0
    path = tmp_path / f"good.{request.param}"
    table = TimeTable(
        time, ("hip_flexion_r", "/jointset/knee/knee_angle/value"), generator.normal(size=(12, 2)), title="t"
    )
    markers = generator.normal(size=(12, 3, 3))
    markers[4:6, 1] = np.nan
    if request.param == "c3d":
        plate = {
            "USED": [1], "TYPE": [2], "ZERO": [1, 0], "ORIGIN": np.array([[0.0, 0.0, -40.0]]).T,
            "CORNERS": np.array([[[3.0, 4, 0], [-3, 4, 0], [-3, -4, 0], [3, -4, 0]]]).T * 100,
            "CHANNEL": np.arange(1.0, 7.0)[:, None],
        }  # fmt: skip
        channels = [(f"F{i}", "N" if i < 3 else "Nmm") for i in range(6)]
        analog = 100.0 * generator.normal(size=(120, 6))
        file = made_c3d(
            1000 * markers, ["A", "B", "C"], analog=analog, channels=channels, parameters={"FORCE_PLATFORM": plate}
        )
        path.write_bytes(file.content)
    else:
        rows = [f"{t!r},{a!r},{b!r}" for t, (a, b) in zip(time.tolist(), table.values.tolist(), strict=True)]
        text = {
            "sto": storage_text(table),
            "mot": motion_text(table),
            "csv": "\n".join(["# made", "time,hip,knee", *rows]) + "\n",
            "trc": trc_text(Recording(100.0, time, ("A", "B", "C"), markers)),
        }[request.param]
        path.write_text(text)
    return path


def complaints(path: Path, first: int, count: int) -> list[str]:
    script = Path(__file__).with_name("damaged_files.py")
    command = [sys.executable, "-W", "error", str(script), str(path), str(first), str(count)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60 + count)
    lines = process.stdout.splitlines()
    assert process.returncode == 0, (
        f"the process ended with {process.returncode} after {lines[-3:]}: {process.stderr[-500:]}"
    )
    assert lines[-1:] == ["done"]
    return lines[:-1]


@pytest.mark.parametrize("good", FORMATS, indirect=True)
def test_damaged_files_are_refused_with_their_place_or_read_correctly(good: Path) -> None:
    assert complaints(good, 0, QUICK) == []


@pytest.mark.slow
@pytest.mark.parametrize("good", FORMATS, indirect=True)
def test_many_damaged_files_are_refused_with_their_place_or_read_correctly(good: Path) -> None:
    assert complaints(good, QUICK, SLOW) == []
