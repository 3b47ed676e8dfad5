"""The page on recordings: its blocks run one after the other, its tables list what there is."""

import re
from pathlib import Path

import numpy as np
import pytest
from designopt_recordings.channels import Channels
from designopt_recordings.files.write import motion_text, trc_text
from designopt_recordings.frames import FrameStatus
from designopt_recordings.recording import Recording
from designopt_recordings.table import TimeTable

PAGE = (Path(__file__).parents[2] / "docs" / "recordings.md").read_text(encoding="utf-8")
NAMES = ("LASI", "RASI", "LPSI", "RPSI", "RHEE", "RTOE", "RMT5", "LHEE", "LTOE", "LMT5")
PLACES = np.array(
    [
        [0.1, 1.0, -0.12], [0.1, 1.0, 0.12], [-0.1, 1.05, -0.05], [-0.1, 1.04, 0.05],
        [0.0, 0.05, 0.1], [0.2, 0.05, 0.08], [0.15, 0.05, 0.14],
        [0.0, 0.05, -0.1], [0.2, 0.05, -0.08], [0.15, 0.05, -0.14],
    ]
)  # fmt: skip


def write_files(folder: Path) -> None:
    """A walk on the spot in three files: markers with a gap, angles in degrees, reactions of both feet."""
    time = np.arange(300) / 100.0
    sway = 0.02 * np.sin(2 * np.pi * time)[:, None, None] * [0.3, 1.0, 0.2]
    markers = PLACES + sway + 2e-4 * np.random.default_rng(0).normal(size=(300, 10, 3))
    markers[100:110, 0] = np.nan
    (folder / "walk.trc").write_text(trc_text(Recording(100.0, time, NAMES, markers)))
    angles = TimeTable(time, ("knee_angle_r",), 20.0 + 10.0 * np.sin(2 * np.pi * time)[:, None], in_degrees=True)
    (folder / "walk_angles.mot").write_text(motion_text(angles))
    fine = np.arange(3000) / 1000.0
    columns: dict[str, np.ndarray] = {}
    for side, phase, z in (("r", 0.0, 0.1), ("l", 0.5, -0.1)):
        push = 700.0 * np.maximum(0.0, np.sin(2 * np.pi * (fine + phase)))
        for axis, force, point in zip("xyz", (0.0 * push, push, 0.0 * push), (0.12, 0.0, z), strict=True):
            columns[f"ground_force_{side}_v{axis}"] = force
            columns[f"ground_force_{side}_p{axis}"] = np.where(push > 0.0, point, 300.0)
            columns[f"ground_torque_{side}_{axis}"] = 0.0 * push
    reactions = TimeTable(fine, tuple(columns), np.stack(list(columns.values()), axis=1))
    (folder / "walk_reactions.mot").write_text(motion_text(reactions))


def test_the_blocks_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    raw = (
        np.random.default_rng(1).normal(size=(6000, 1)) * (1.2 + np.sin(2 * np.pi * np.arange(6000) / 2000.0))[:, None]
    )
    names: dict[str, object] = {"emg": Channels(2000.0, ("soleus",), ("V",), raw)}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 6
    for block in blocks:
        exec(compile(block, "recordings.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "10 markers, 0.3% of their positions missing: LASI 3%" in printed
    assert "LASI: 10 rebuilt of 300 frames" in printed
    assert names["found"].cutoff.shape == (10, 3)  # type: ignore[attr-defined]
    assert names["complete"].all()  # type: ignore[attr-defined]
    np.testing.assert_allclose(np.degrees(names["knee"][0]), 20.0)  # type: ignore[index]
    bears = names["bears"]
    assert {bears.segments[i] for i in bears.segment_indices if i >= 0} == {"left"}  # type: ignore[attr-defined]


def test_the_table_of_statuses_lists_all_of_them_with_their_sentences() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (.*?) \|$", PAGE, flags=re.MULTILINE)
    assert rows == [(member.name, str(int(member)), member.sentence) for member in FrameStatus]


def test_the_table_of_formats_names_the_endings_that_are_read() -> None:
    assert re.findall(r"^\| `(\.\w+)` \|", PAGE, flags=re.MULTILINE) == [".c3d", ".trc", ".sto", ".mot", ".csv"]
