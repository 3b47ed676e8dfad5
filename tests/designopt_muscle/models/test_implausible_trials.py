"""A trial that a person would doubt at a glance is named by the check and on the page, with its probable cause."""

import re

import numpy as np
import pytest
from designopt_muscle.geometry.loads import BodyLoad
from designopt_muscle.models.dynamic.sharing import DynamicSharingModel
from designopt_muscle.models.errors import TrialError
from designopt_muscle.models.plausibility import point_notes
from designopt_muscle.models.static_sharing import StaticSharing
from designopt_muscle.models.trial import bundled_file, recorded_poses
from designopt_muscle.osim.read import read_model
from small_models import hinge

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


def test_a_motion_without_a_complete_row_is_named():
    motion = InputFile("arm.csv", b"time,flexion\n0,nan\n0.1,nan\n")
    with pytest.raises(TrialError, match=r"^arm\.csv: no row has a number for every coordinate$"):
        recorded_poses(read_model(hinge()), motion)


def foot_load(body: str, point: list[float], force: float = 700.0) -> BodyLoad:
    """A vertical force at a point in ten frames."""
    return BodyLoad(body, np.tile([0.0, force, 0.0], (10, 1)), np.tile(point, (10, 1)), np.zeros((10, 3)))


@pytest.mark.parametrize(
    ("right", "left", "doubts"),
    [
        ([0.15, 0.0, 0.1], [0.65, 0.0, -0.1], []),
        (
            [0.65, 0.0, -0.1],
            [0.15, 0.0, 0.1],
            ["calcn_r acts 0.68 m .*0.15 m from that of calcn_l: are", "0.15 m from"],
        ),
        ([150.0, 0.0, 100.0], [0.65, 0.0, -0.1], ["calcn_r acts 180 m from its origin: check the unit of its points"]),
        ([0.5, 0.9, 0.3], [0.65, 0.0, -0.1], ["calcn_r acts 1.05 m from its origin: check the unit of its points"]),
    ],
    ids=["feet", "exchanged feet", "mm", "another axis up"],
)
def test_forces_that_act_far_from_their_body_or_nearer_to_another_are_doubted(right, left, doubts):
    origins = {"calcn_r": np.tile([0.0, 0.0, 0.1], (10, 1)), "calcn_l": np.tile([0.5, 0.0, -0.1], (10, 1))}
    notes = point_notes([foot_load("calcn_r", right), foot_load("calcn_l", left)], origins, 700.0)
    assert len(notes) == len(doubts)
    assert all(re.search(doubt, note) for doubt, note in zip(doubts, notes, strict=True))
    unloaded = [foot_load("calcn_r", right, 10.0), foot_load("calcn_l", left, 10.0)]
    assert point_notes(unloaded, origins, 700.0) == []


def test_exchanged_feet_of_external_loads_are_doubted_by_the_check(opensim):
    motion = {
        name: InputFile(file, (opensim / "motion" / file).read_bytes())
        for name, file in {
            "motion": "gait10dof18musc_walk_IK.mot",
            "external_loads": "gait10dof18musc_walk_grf.xml",
            "external_forces": "subject01_walk_grf.mot",
        }.items()
    }
    skeleton = InputFile("walk.osim", (opensim / "models" / "gait10dof18musc_subject01.osim").read_bytes())
    model = StaticSharing(model=skeleton, inverse_dynamics="compute", cutoff=6.0, reserve=2.0)
    assert not [note for note in model.remarks(motion) if "from its origin" in note]
    loads = motion["external_loads"].content.replace(b">calcn_r<", b">other<").replace(b">calcn_l<", b">calcn_r<")
    exchanged = {**motion, "external_loads": InputFile("loads.xml", loads.replace(b">other<", b">calcn_l<"))}
    doubts = [note for note in model.remarks(exchanged) if "are the bodies of the loads exchanged" in note]
    assert len(doubts) == 2
    assert all(doubt.startswith("subject01_walk_grf.mot: the force on calcn_") for doubt in doubts)
