"""Coordinates that inverse kinematics draws to a table of the trial."""

import numpy as np
import pytest
import walking_laboratory as laboratory
from designopt_laboratory.model import LaboratoryTrial
from designopt_recordings.files.write import motion_text
from designopt_recordings.table import TimeTable

from designopt.plugin import InputFile, InvalidSetting

WALK = laboratory.walk(cycles=0.6)
TIME = WALK.recording.time
TRC = InputFile("walk.trc", WALK.trc())
WALKER = InputFile("walker.osim", laboratory.model_text())
ROTATION = WALK.values["hip_rotation_r"] + 0.2
FOLLOWING = InputFile(
    "ik.xml",
    b"""<OpenSimDocument Version="40000"><IKTaskSet><objects><IKCoordinateTask
name="hip_rotation_r"><apply>true</apply><weight>1000</weight><value_type>from_file</value_type></IKCoordinateTask>
</objects></IKTaskSet></OpenSimDocument>""",
)


def table(name="hip_rotation_r", time=TIME, values=ROTATION, degrees=True):
    column = np.degrees(values) if degrees else values
    text = motion_text(TimeTable(time, (name,), column[:, None], in_degrees=degrees))
    return InputFile("sensor.mot", text.encode())


@pytest.mark.parametrize(
    ("settings", "targets", "expected"),
    [
        ({"coordinate_weights": {"hip_rotation_r": 1000.0}}, table(), ROTATION),
        ({"coordinate_weights": {"hip_rotation_r": 1000.0}}, table(degrees=False), ROTATION),
        ({"tasks": FOLLOWING}, table(), ROTATION),
        ({"coordinate_weights": {"hip_rotation_r": 1000.0}}, None, np.zeros(len(TIME))),
        ({}, None, WALK.values["hip_rotation_r"]),
    ],
    ids=["degrees", "radians", "a task of OpenSim", "its default", "markers alone"],
)
def test_a_weighted_coordinate_follows_the_table_of_its_trial(analysed, settings, targets, expected):
    trial = {"recording": TRC, **({} if targets is None else {"targets": targets})}
    _, arrays = analysed(trial, "angles", "coordinate_names", until="angles", design={"cutoff": 0.0}, **settings)
    angle = arrays["angles"][:, list(arrays["coordinate_names"]).index("hip_rotation_r")]
    assert angle == pytest.approx(expected, abs=5e-4)


WEIGHTS = {"coordinate_weights": {"hip_rotation_r": 1.0}}


@pytest.mark.parametrize(
    ("settings", "targets", "name", "text"),
    [
        ({}, table(), "targets", "sensor.mot: no coordinate follows this table: weight it with .* coordinate_weights"),
        ({"tasks": FOLLOWING}, None, "recording", "ik.xml: the task of 'hip_rotation_r' .*: name it with targets"),
        (WEIGHTS, table("hip_rotation_l"), "targets", "sensor.mot: .*hip_rotation_r"),
        (WEIGHTS, table(time=TIME[:-10], values=ROTATION[:-10]), "targets", "sensor.mot: .*has no value"),
        (WEIGHTS, InputFile("sensor.txt", b"x"), "targets", "sensor.txt: tables are read from"),
        (WEIGHTS, table(values=np.where(TIME < 0.2, np.nan, ROTATION)), "targets", "sensor.mot"),
    ],
)
def test_a_table_that_does_not_fit_is_named_with_the_way_out(settings, targets, name, text):
    trial = {"recording": TRC, **({} if targets is None else {"targets": targets})}
    with pytest.raises(InvalidSetting, match=text) as error:
        laboratory.raise_mistake(LaboratoryTrial(model=WALKER, **settings), trial)
    assert error.value.name == name


def test_weights_are_of_free_coordinates_and_targets_of_trials_with_markers():
    (mistake,) = LaboratoryTrial(model=WALKER, coordinate_weights={"hip_rotation": 1.0}).check()
    assert "'hip_rotation' is not a free coordinate; did you mean" in mistake.message
    assert mistake.key == "hip_rotation"
    with pytest.raises(InvalidSetting, match="a trial without markers has none"):
        laboratory.raise_mistake(LaboratoryTrial(model=WALKER, **WEIGHTS), {"motion": table(), "targets": table()})
