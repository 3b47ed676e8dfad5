"""Columns of a trial against the coordinates of its model: misspelt ones refused, others named by the check."""

from pathlib import Path

import pytest
from designopt_muscle.models.dynamic.sharing import DynamicSharingModel
from designopt_muscle.models.static_sharing import StaticSharing
from designopt_muscle.models.trial import bundled_file
from designopt_muscle.models.wire_sharing import WireSharingModel

import designopt
from designopt.plugin import Diverged, InputFile, InvalidSetting
from designopt.report.parts.answer.problem import problem
from designopt.store.provenance import recorded_remarks
from designopt.study.language.errors import StudyError
from designopt.study.remarks import remarks

WALK = bundled_file("walking_leg.csv")


def renamed(old, new, file=WALK):
    return InputFile("walk.csv", file.content.replace(old.encode(), new.encode()))


@pytest.mark.parametrize("model", [StaticSharing(reserve=5.0), DynamicSharingModel()])
@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("knee_angle_moment", "knee_angel_moment", "did you mean 'knee_angle_moment', which has no column"),
        ("knee_angle_moment", "knee_angle_torque", "did you mean 'knee_angle_moment', which has no column"),
        ("knee_angle_moment", "knee_angle_momemt", "did you mean 'knee_angle_moment', which has no column"),
        (",ankle_angle,", ",Ankle_angle,", "did you mean 'ankle_angle', which has no column"),
    ],
)
def test_a_misspelt_column_is_refused_by_the_check(model, old, new, hint):
    column = new.strip(",")
    with pytest.raises(InvalidSetting, match=rf"walk\.csv: column '{column}' is not of the model .*{hint}") as caught:
        model.check_scenario({"motion": renamed(old, new)})
    assert caught.value.name == "motion"


def test_the_evaluation_refuses_a_misspelt_moment_too():
    with pytest.raises(Diverged, match="did you mean 'knee_angle"):
        StaticSharing(reserve=5.0).evaluate({}, {"motion": renamed("knee_angle", "knee_angel")})


def test_a_moment_that_is_left_out_and_a_column_of_no_use_are_named():
    lines = WALK.content.decode().splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("time"))
    names = lines[head].split(",")
    drop = next(i for i, name in enumerate(names) if name.startswith("hip") and name.endswith("_moment"))
    rows = [",".join(cell for i, cell in enumerate(line.split(",")) if i != drop) for line in lines[head:]]
    rows = [f"{rows[0]},trunk_lean", *(f"{line},0.1" for line in rows[1:])]
    motion = InputFile("walk.csv", "\n".join([*lines[:head], *rows]).encode())
    model = StaticSharing(reserve=5.0)
    notes = model.remarks({"motion": motion})
    hip = names[drop].removesuffix("_moment")
    assert f"walk.csv: no net moment about {hip}: not balanced" in notes
    assert any(note.startswith("walk.csv: of no use to the model") and "trunk_lean" in note for note in notes)
    _, arrays = model.evaluate({}, {"motion": motion}, frozenset({"notes"}))
    assert set(notes[1:]) <= set(arrays["notes"].tolist())
    with pytest.raises(Diverged, match=f"no net moment about '{hip}', which the setting 'coordinates' names"):
        StaticSharing(coordinates=[hip], reserve=5.0).evaluate({}, {"motion": motion})


def test_a_misspelt_joint_of_a_wire_model_is_refused_by_the_check():
    motion = renamed("ulna_1", "ulna_I", bundled_file("wire_arm.csv"))
    with pytest.raises(InvalidSetting, match="there is no column 'ulna_1'; did you mean"):
        WireSharingModel().check_scenario({"motion": motion})
    more = InputFile("arm.csv", b"time,a\n0,1\n1,2")
    with pytest.raises(InvalidSetting, match=r"arm\.csv"):
        WireSharingModel().check_scenario({"motion": more})


STUDY = """\
study: columns
model: {use: muscle_sharing, reserve: 5 N m}
scenarios:
  - {name: whole, motion: whole.csv}
  - {name: other, motion: other.csv}
solver: {use: evaluate}
"""


def test_the_check_of_a_study_opens_the_files_and_run_and_report_name_what_they_lack(tmp_path: Path):
    (tmp_path / "columns.yaml").write_text(STUDY)
    (tmp_path / "whole.csv").write_bytes(WALK.content)
    (tmp_path / "other.csv").write_bytes(renamed("_moment", "_torque").content)
    misspelt = r"columns\.yaml:5:27: .*'other': other\.csv: column 'hip_flexion_torque' .*did you mean"
    with pytest.raises(StudyError, match=misspelt):
        designopt.load(tmp_path / "columns.yaml")
    text = WALK.content.decode().splitlines()
    head = next(i for i, line in enumerate(text) if line.startswith("time"))
    text[head:] = [f"{line},{'lean' if i == 0 else 0}" for i, line in enumerate(text[head:])]
    (tmp_path / "other.csv").write_text("\n".join(text))
    study = designopt.load(tmp_path / "columns.yaml")
    expected = "other.csv: of no use to the model 'planar_leg': lean (scenario other)"
    assert f"note: {expected}" in remarks(study.definition)
    result = study.run(tmp_path / "columns.study", progress=None)
    assert expected in recorded_remarks(result.path)
    assert "of no use to the model" in problem(result).notes[-1]
