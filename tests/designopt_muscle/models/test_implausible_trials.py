"""A trial that a person would doubt at a glance is named by the check and on the page, with its probable cause."""

import re

import numpy as np
import pytest
from designopt_muscle.models.dynamic.sharing import DynamicSharingModel
from designopt_muscle.models.static_sharing import StaticSharing
from designopt_muscle.models.trial import bundled_file

from designopt.plugin import InputFile

LINES = bundled_file("walking_leg.csv").content.decode().splitlines()
HEAD = next(i for i, line in enumerate(LINES) if line.startswith("time"))
NAMES = LINES[HEAD].split(",")


def scaled(columns: list[str], factor: float) -> InputFile:
    """The bundled walk with some columns times `factor`."""
    values = np.array([[float(cell) for cell in line.split(",")] for line in LINES[HEAD + 1 :]])
    values[:, [NAMES.index(name) for name in columns]] *= factor
    rows = (",".join(repr(float(cell)) for cell in row) for row in values)
    return InputFile("walk.csv", "\n".join([*LINES[: HEAD + 1], *rows]).encode())


@pytest.mark.parametrize("model", [StaticSharing(reserve=5.0), DynamicSharingModel()])
@pytest.mark.parametrize(
    ("columns", "factor", "doubt"),
    [
        ([], 1.0, ""),
        (["knee_angle"], -1.0, "knee_angle is outside the range of -120.3 to 11.46 deg of the model in .*reverse it"),
        (["time"], 1e3, "the rows are 20 s apart: is 'time' in milliseconds"),
        (NAMES[4:], 1e3, "are the moments in N mm\\? Divide them by 1000"),
        (
            ["ankle_angle_moment"],
            -1.0,
            "ankle_angle takes up to 112% of the strength .*is the sign of the column reversed",
        ),
        (NAMES[1:4], 180.0 / np.pi, "it is probably in degrees"),
    ],
)
def test_units_times_and_signs_that_cannot_be_are_named(model, columns, factor, doubt):
    before = len(model.remarks({}))
    notes = model.remarks({"motion": scaled(columns, factor)})
    assert any(re.search(f"^walk.csv: .*{doubt}", note) for note in notes)
    assert (len(notes) == before) == (not doubt)
