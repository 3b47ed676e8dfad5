"""OpenSim and this package read the same numbers from the same files, those written here among them.

OpenSim is no dependency: DESIGNOPT_PEER_MOCO names a Python that has it. Run with ``-m bench``.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from designopt_recordings.files.read import read_recording, read_table
from designopt_recordings.files.write import motion_text, storage_text, trc_text

from designopt.plugin import InputFile

pytestmark = pytest.mark.bench


def opensim(*files: Path) -> list[dict[str, Any]]:
    python = os.environ.get("DESIGNOPT_PEER_MOCO", sys.executable)
    script = Path(__file__).with_name("opensim_reads.py")
    process = subprocess.run([python, str(script), *map(str, files)], capture_output=True, text=True, timeout=120)
    if process.returncode:
        assert "No module named" in process.stderr, process.stderr[-2000:]
        pytest.skip(f"OpenSim is not there ({process.stderr.strip().splitlines()[-1]}); set DESIGNOPT_PEER_MOCO")
    return [json.loads(line) for line in process.stdout.splitlines()]


@pytest.mark.parametrize(
    "path", ["mocap/walk_fullbody_opensim/coordinates.sto", "opensim/motion/gait2392_walk1_IK.mot"]
)
def test_tables_are_the_same_to_both_and_after_being_written(
    shared: Callable[[str], InputFile], tmp_path: Path, path: str
) -> None:
    file = shared(path)
    table = read_table(file)
    files = [tmp_path / file.name, tmp_path / "written.sto", tmp_path / "written.mot"]
    for target, content in zip(
        files, [file.content, storage_text(table).encode(), motion_text(table).encode()], strict=True
    ):
        target.write_bytes(content)
    for theirs in opensim(*files):
        assert tuple(theirs["labels"]) == table.names
        np.testing.assert_array_equal(theirs["values"], table.values)
        np.testing.assert_array_equal(theirs["time"], table.time)
        assert theirs["flag"] == ("yes" if table.in_degrees else "no")


@pytest.mark.parametrize(
    "path", ["mocap/walk_fullbody_opensim/markers_walk.trc", "mocap/walk_treadmill_c3d/walking5.c3d"]
)
def test_markers_are_the_same_to_both_and_missing_ones_too(
    shared: Callable[[str], InputFile], tmp_path: Path, path: str
) -> None:
    walk = read_recording(shared(path))
    for unit, factor in (("m", 1.0), ("mm", 1e-3)):
        (tmp_path / f"{unit}.trc").write_text(trc_text(walk, unit=unit))
        (theirs,) = opensim(tmp_path / f"{unit}.trc")
        assert tuple(theirs["labels"]) == walk.marker_names
        assert theirs["flag"] == unit
        values = np.array(theirs["values"], dtype=float).reshape(walk.markers.shape) * factor
        np.testing.assert_allclose(values, walk.markers, rtol=1e-15)
        np.testing.assert_array_equal(theirs["time"], walk.time)
