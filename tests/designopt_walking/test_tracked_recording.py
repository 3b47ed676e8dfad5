"""A recording that a person would doubt at a glance is named by the check of a tracked walk."""

from __future__ import annotations

from pathlib import Path

import pytest
from designopt_walking.models.track import WalkTrack

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
        (("knee_angle_l/value", -1.0), ("vy", 1.0), "planar_walk.sto: knee_angle_l is outside the range"),
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
