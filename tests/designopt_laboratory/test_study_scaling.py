"""Scaling that a study file states itself: by lengths between markers, by factors, by both after least squares."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import walking_laboratory as laboratory
import yaml
from click.testing import CliRunner
from designopt_laboratory.model import LaboratoryTrial
from designopt_muscle.osim.read import read_model
from designopt_muscle.scaling.setup import Measurement

from designopt.cli import main
from designopt.plugin import InputFile, InvalidSetting

STUDIES = Path(__file__).parents[2] / "studies" / "laboratory"
WALKER = InputFile("walker.osim", laboratory.model_text())
STATIC = laboratory.standing().recording


def length(name, first, second, *bodies, axes="XYZ"):
    """A measurement of both sides."""
    pairs = tuple((f"{side}{first}", f"{side}{second}") for side in "RL")
    return Measurement(name, pairs, {f"{body}_{side}": axes for body in bodies for side in "rl"})


LENGTHS = [
    Measurement("pelvis", (("RASI", "LASI"), ("RASI", "RPSI")), {"pelvis": "XYZ"}),
    length("thighs", "THI", "KNE", "femur"),
    length("shanks", "TIB", "ANK", "tibia"),
    length("feet", "HEE", "TOE", "calcn"),
]


def subject(size):
    recording = replace(STATIC, markers=size * STATIC.markers)
    return InputFile("static.trc", replace(laboratory.standing(), recording=recording).trc())


def hip_and_knee(arrays):
    """Heights (m) of the hip in the pelvis and of the knee in the thigh."""
    joints = {joint.name: joint for joint in read_model("\n".join(arrays["scaled_model"]).encode()).joints}
    return [joints[name].in_parent[1, 3] for name in ("hip_r", "knee_r")]


@pytest.mark.parametrize("settings", [
    pytest.param({"measurements": LENGTHS}, id="lengths"),
    pytest.param({"measurements": LENGTHS[1:2], "scale_to_static": True}, id="one length after least squares"),
    pytest.param({"scale_factors": dict.fromkeys([f"{b}_{s}" for b in ("femur", "tibia", "calcn") for s in "rl"]
        + ["pelvis"], (1.1, 1.1, 1.1))}, id="factors"),
])  # fmt: skip
def test_the_size_of_a_subject_is_that_of_its_lengths_or_factors(analysed, settings):
    static = subject(1.1)
    trial = {"recording": InputFile("walk.trc", static.content), "static": static, "mass": 80.0}
    figures, arrays = analysed(trial, "scaled_model", until="angles", **settings)
    assert hip_and_knee(arrays) == pytest.approx([-0.08 * 1.1, -0.4 * 1.1], abs=2e-4)
    assert figures["marker_rms"] < 1e-3
    assert figures["mass"] == pytest.approx(80.0)


def test_factors_and_errors_of_the_static_pose_are_results(analysed):
    trial = {"recording": InputFile("walk.trc", subject(1.0).content), "static": subject(1.1), "mass": 80.0}
    names = ("bodies", "body_masses", "scale_factors", "static_markers", "static_errors")
    settings = {"measurements": LENGTHS, "until": "angles", "scale_factors": {"calcn_r": (1.0, 1.2, 1.0)}}
    figures, arrays = analysed(trial, *names, **settings)
    factors = dict(zip(arrays["bodies"], arrays["scale_factors"], strict=True))
    assert factors["femur_l"] == pytest.approx([1.1] * 3, abs=1e-3)
    assert factors["calcn_r"] == pytest.approx([1.0, 1.2, 1.0])
    assert (figures["smallest_scale"], figures["largest_scale"]) == (1.0, 1.2)
    assert arrays["body_masses"].sum() == pytest.approx(80.0)
    assert figures["static_max"] == arrays["static_errors"].max() > figures["static_rms"] > 0.0
    assert set(arrays["static_markers"]) == set(STATIC.marker_names)
    figures, arrays = analysed(trial, *names, until="angles", design={"size_factor": 1.02})
    assert "static_max" not in figures
    assert arrays["scale_factors"] == pytest.approx(1.02)


def test_factors_by_hand_need_no_static_pose_and_replace_measured_ones(analysed):
    markers = {"recording": InputFile("walk.trc", laboratory.standing().trc())}
    by_hand = {"femur_r": (1.0, 1.2, 1.0)}
    _, arrays = analysed(markers, "scaled_model", until="angles", scale_factors=by_hand)
    assert hip_and_knee(arrays) == pytest.approx([-0.08, -0.48])
    trial = {**markers, "static": subject(1.1)}
    _, arrays = analysed(trial, "scaled_model", until="angles", scale_factors=by_hand, measurements=LENGTHS)
    assert hip_and_knee(arrays) == pytest.approx([-0.088, -0.48], abs=2e-4)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("scale_factors", {"femur": [1, 1, 1]}, "'femur' is not a body of the model; did you mean"),
        ("scale_factors", {"femur_r": [1, 0, 1]}, "scale_factors.femur_r.1: must be above 0"),
        ("scale_factors", {"femur_r": 1.1}, "scale_factors.femur_r"),
        ("measurements", [{"name": "a", "pairs": [["RASI", "LAS"]], "bodies": {"pelvis": "X"}}], "did you mean 'LASI'"),
        ("measurements", [{"name": "a", "pairs": [["RASI", "LASI"]], "bodies": {"hip": "X"}}], "'hip' is not a body"),
        ("measurements", [{"name": "a", "pairs": [["RASI", "LASI"]], "bodies": {"pelvis": "xy"}}], "'xy' are not axes"),
        ("measurements", [{"name": "a", "pairs": [["RASI"]], "bodies": {"pelvis": "X"}}], "pairs.0"),
        ("measurements", [{"name": "a", "pairs": [], "bodies": {"pelvis": "X"}}], "'a' has none"),
        ("scaling", "walker.osim", "says how to scale: give one of the two"),
    ],
)  # fmt: skip
def test_mistakes_of_a_study_are_named_with_line_and_column(tmp_path, key, value, text):
    folder = tmp_path / "laboratory"
    shutil.copytree(STUDIES, folder, ignore=shutil.ignore_patterns("results"))
    study = yaml.safe_load((folder / "laboratory.yaml").read_text())
    study["model"][key] = value
    (folder / "wrong.yaml").write_text(yaml.safe_dump(study))
    outcome = CliRunner().invoke(main, ["validate", str(folder / "wrong.yaml")])
    assert outcome.exit_code == 2, outcome.output
    assert text in " ".join(outcome.output.split())
    assert "wrong.yaml:" in outcome.output


def test_a_measurement_needs_its_markers_in_the_static_pose():
    names = tuple(name.replace("RKNE", "RKNEE") for name in STATIC.marker_names)
    static = replace(laboratory.standing(), recording=replace(STATIC, marker_names=names)).trc()
    model = LaboratoryTrial(model=WALKER, measurements=LENGTHS)
    trial = {"recording": InputFile("walk.trc", subject(1.0).content), "static": InputFile("static.trc", static)}
    with pytest.raises(InvalidSetting, match="'thighs' needs the marker 'RKNE'; did you mean 'RKNEE'"):
        laboratory.raise_mistake(model, trial)
    with pytest.raises(InvalidSetting, match="name it with static"):
        laboratory.raise_mistake(model, {"recording": trial["recording"]})
    with pytest.raises(InvalidSetting, match="gives the factor 6: check the unit"):
        laboratory.raise_mistake(model, {**trial, "static": subject(6.0)})
