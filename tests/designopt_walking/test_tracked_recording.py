"""A recording that a person would doubt at a glance is named by the check of a tracked walk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from designopt_walking.models.track import WalkTrack

from designopt.arrays import Floats
from designopt.plugin import InputFile, InvalidSetting

STUDIES = Path(__file__).parents[2] / "studies"


def scaled(name: str, column: str, factor: float) -> InputFile:
    """A table of the bundled tracked walk with the columns that end in `column` times `factor`."""
    head, body = (STUDIES / name).read_text().split("endheader\n")
    names, *rows = (line.split("\t") for line in body.splitlines())
    cells = [
        [repr(factor * float(cell)) if label.endswith(column) else cell for label, cell in zip(names, row, strict=True)]
        for row in rows
    ]
    return InputFile(name, f"{head}endheader\n{chr(10).join(map(chr(9).join, [names, *cells]))}\n".encode())


@pytest.mark.parametrize(
    ("motion", "ground", "doubt"),
    [
        (("time", 1.0), ("vy", 1.0), None),
        (("time", 1.0), ("vy", -1.0), "planar_walk_forces.sto: the ground pulls"),
        (("time", 1.0), ("vy", 1e-3), "planar_walk_forces.sto: the ground carries at most 1.26 N"),
        (("pelvis_ty/value", 1e3), ("vy", 1.0), "planar_walk.sto: pelvis_ty is outside the range"),
        (("pelvis_tx/value", -1.0), ("vy", 1.0), "planar_walk.sto: the standing foot moves over the ground at -2.4"),
        (("pelvis_tx/value", 0.0), ("vy", 1.0), "planar_walk.sto: the standing foot moves over the ground at -1.2"),
        (("time", 1e3), ("vy", 1.0), "planar_walk.sto: the rows are"),
    ],
)
def test_curves_that_cannot_be_are_named(motion, ground, doubt):
    files = {"motion": scaled("planar_walk.sto", *motion), "ground": scaled("planar_walk_forces.sto", *ground)}
    notes = WalkTrack().remarks(files)
    assert [note.startswith(doubt) for note in notes] == ([] if doubt is None else [True])


def test_an_unusable_file_of_two_is_named() -> None:
    files = {"motion": scaled("planar_walk.sto", "time", 1.0), "ground": scaled("planar_walk.sto", "time", 1.0)}
    with pytest.raises(InvalidSetting, match="ground_force_r_vx") as error:
        WalkTrack().check_scenario(files)
    assert error.value.name == "ground"


Columns = dict[str, Floats]


def bundled(name: str) -> tuple[list[str], Columns]:
    """Names and columns of a table of the bundled tracked walk, the columns by the last part but one of their names."""
    names, *rows = (line.split("\t") for line in (STUDIES / name).read_text().split("endheader\n")[1].splitlines())
    keys = [label.split("/")[-2] if "/" in label else label for label in names]
    return names, dict(zip(keys, np.array(rows, dtype=float).T, strict=True))


def doubts(motion: Columns, ground: Columns, *, degrees: bool = False) -> list[str]:
    """What the model says of the walk with these columns."""
    files = {}
    for condition, name, columns in (
        ("motion", "planar_walk.sto", motion),
        ("ground", "planar_walk_forces.sto", ground),
    ):
        rows = "\n".join("\t".join(f"{v:.6f}" for v in row) for row in np.stack(list(columns.values()), axis=1))
        head = f"walk\ninDegrees={'yes' if degrees else 'no'}\nendheader\n"
        files[condition] = InputFile(name, (head + "\t".join(bundled(name)[0]) + "\n" + rows + "\n").encode())
    return WalkTrack().remarks(files)


def exchanged(columns: Columns, *pairs: tuple[str, str]) -> Columns:
    new = dict(columns)
    for first, second in pairs:
        new[first], new[second] = columns[second], columns[first]
    return new


@pytest.mark.parametrize("name", ["pelvis_tilt", "hip_flexion_r", "knee_angle_l", "ankle_angle_l", "ankle_angle_r"])
def test_a_reversed_coordinate_is_named_where_no_foot_stands(name: str) -> None:
    motion, ground = bundled("planar_walk.sto")[1], bundled("planar_walk_forces.sto")[1]
    (note,) = doubts({**motion, name: -motion[name]}, ground)
    assert f"no foot stands still on the ground; {name} has the opposite sign; reverse it: then one does" in note


def test_exchanged_coordinates_are_named_where_no_foot_stands() -> None:
    motion, ground = bundled("planar_walk.sto")[1], bundled("planar_walk_forces.sto")[1]
    for pair in [
        ("pelvis_tilt", "lumbar"), ("hip_flexion_l", "hip_flexion_r"), ("knee_angle_l", "knee_angle_r"),
        ("hip_flexion_r", "ankle_angle_r"), ("pelvis_tx", "pelvis_ty"),
    ]:  # fmt: skip
        (note,) = doubts(exchanged(motion, pair), ground)
        assert any(f"; {first} and {second} are exchanged" in note for first, second in (pair, pair[::-1]))


def test_forces_of_the_other_foot_are_named() -> None:
    motion, ground = bundled("planar_walk.sto")[1], bundled("planar_walk_forces.sto")[1]
    sides = [(f"ground_force_r_v{axis}", f"ground_force_l_v{axis}") for axis in "xy"]
    legs = [(f"{joint}_l", f"{joint}_r") for joint in ("hip_flexion", "knee_angle", "ankle_angle")]
    for files in ((motion, exchanged(ground, *sides)), (exchanged(motion, *legs), ground)):
        (note,) = doubts(*files)
        assert "the ground forces are those of the other foot; exchange the sides of one file" in note


def test_a_coordinate_in_radians_among_degrees_is_named() -> None:
    motion, ground = bundled("planar_walk.sto")[1], bundled("planar_walk_forces.sto")[1]
    lengths = ("time", "pelvis_tx", "pelvis_ty")
    degrees = {name: curve if name in lengths else np.degrees(curve) for name, curve in motion.items()}
    assert doubts(degrees, ground, degrees=True) == []
    for name in degrees.keys() - {*lengths, "lumbar"}:  # no foot moves with the trunk, and it has no other side
        (note,) = doubts({**degrees, name: motion[name]}, ground, degrees=True)
        assert f"{name} is in radians" in note or f"{name} moves by 0." in note


def test_a_recording_that_differs_from_the_model_by_some_degrees_has_no_wrong_column() -> None:
    """Knees and ankles are off by constant angles of 2 deg (standard deviation)."""
    motion, ground = bundled("planar_walk.sto")[1], bundled("planar_walk_forces.sto")[1]
    rng = np.random.default_rng(0)
    for _ in range(5):
        shifts = {name: curve + np.radians(rng.normal(0.0, 2.0)) for name, curve in motion.items() if "_angle" in name}
        assert not [note for note in doubts({**motion, **shifts}, ground) if "no foot stands" in note]
