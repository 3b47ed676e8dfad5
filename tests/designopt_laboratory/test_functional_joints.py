"""Functional joints of a subject: the hip and knee that a movement gives scale a model to its true size."""

from dataclasses import replace

import numpy as np
import pytest
import walking_laboratory as laboratory
import yaml
from click.testing import CliRunner
from designopt_laboratory.folder.study import study_of_folder
from designopt_laboratory.model import LaboratoryTrial
from designopt_laboratory.trial.functional import FunctionalJoint, functional_markers
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.osim.markers import OsimMarker, read_markers
from designopt_muscle.osim.read import read_model
from designopt_muscle.scaling.apply import scale_model
from designopt_muscle.scaling.setup import Measurement
from designopt_recordings.files.write import trc_text
from designopt_recordings.recording import Recording

from designopt.cli import main
from designopt.plugin import InputFile, InvalidSetting

PELVIS = ("RASI", "LASI", "RPSI", "LPSI")
#: Clusters on the thighs and shanks, which the generic model does not have.
CLUSTERS = {f"{side}{body[0].upper()}{i}": (f"{body}_{side.lower()}", at)
            for side in "RL" for body in ("femur", "tibia")
            for i, at in enumerate(((0.05, -0.15, 0.03), (0.06, -0.28, -0.02), (-0.03, -0.22, 0.05)), 1)}  # fmt: skip
SIZES = {"pelvis": np.array([1.0, 1.0, 1.12]), **dict.fromkeys(("femur_r", "femur_l"), np.full(3, 1.08))}
CONTENT = scale_model(laboratory.model_text(), SIZES, None)
SUBJECT = read_model(CONTENT)
MARKERS = (*read_markers(CONTENT), *(OsimMarker(n, body, np.array(at)) for n, (body, at) in CLUSTERS.items()))
JOINTS = {
    **{f"hip_{s.lower()}": FunctionalJoint(PELVIS, tuple(f"{s}F{i}" for i in (1, 2, 3))) for s in "RL"},
    **{f"knee_{s.lower()}": FunctionalJoint(tuple(f"{s}F{i}" for i in (1, 2, 3)), tuple(f"{s}T{i}" for i in (1, 2, 3)),
       near=(f"{s}KNE",)) for s in "RL"},
}  # fmt: skip
#: Lengths that only the joints give: between the hips, and from hip to knee.
LENGTHS = [
    Measurement("hips", (("hip_r_centre", "hip_l_centre"),), {"pelvis": "Z"}),
    Measurement("thighs", tuple((f"hip_{s}_centre", f"knee_{s}_{s.upper()}KNE") for s in "rl"),
                {"femur_r": "XYZ", "femur_l": "XYZ"}),
]  # fmt: skip


def recorded(values, noise=0.0):
    """The subject's markers, those of the clusters too."""
    n = len(next(iter(values.values())))
    poses = kinematics(SUBJECT, {"pelvis_ty": np.full(n, 0.95), **values})
    at = np.stack([poses.position(m.body, m.location) for m in MARKERS], axis=1)
    at = at + noise * np.random.default_rng(1).standard_normal(at.shape)
    return Recording(50.0, np.arange(n) / 50.0, tuple(m.name for m in MARKERS), at)


def movement(noise=0.0):
    """Arcs of both hips while the knees bend."""
    time = np.arange(250) / 50.0
    values = {"pelvis_list": 0.05 * np.sin(time)}
    for side, shift in (("r", 0.0), ("l", 1.0)):
        values[f"hip_flexion_{side}"] = 0.5 * np.sin(2.0 * time + shift)
        values[f"hip_adduction_{side}"] = 0.3 * np.cos(1.3 * time + shift)
        values[f"knee_angle_{side}"] = -0.6 + 0.5 * np.cos(1.7 * time + shift)
    return recorded(values, noise)


STATIC = recorded({"knee_angle_r": np.full(10, -0.1)})


def files(noise=0.0, **changed):
    """A trial: static pose, movement of the joints, and as a recording the static pose."""
    recordings = {"recording": STATIC, "static": STATIC, "functional": movement(noise), **changed}
    trial = {name: InputFile(f"{name}.trc", trc_text(value).encode()) for name, value in recordings.items()}
    return {**trial, "functional": [trial["functional"]]}


@pytest.mark.parametrize(("noise", "tolerance"), [(0.0, 1e-3), (0.001, 1e-2)], ids=["exact", "1 mm of noise"])
def test_lengths_between_functional_joints_scale_the_model_to_the_subject(analysed, noise, tolerance):
    names = ("bodies", "scale_factors", "static_markers", "scaled_model", "notes")
    settings = {"functional_joints": JOINTS, "measurements": LENGTHS, "until": "angles"}
    _, arrays = analysed(files(noise), *names, **settings)
    factors = dict(zip(arrays["bodies"], arrays["scale_factors"], strict=True))
    for body, size in SIZES.items():
        assert factors[body] == pytest.approx(size, abs=tolerance)
    assert {"hip_r_centre", "knee_l_LKNE"} <= set(arrays["static_markers"])
    markers = {m.name: m for m in read_markers("\n".join(arrays["scaled_model"]).encode())}
    assert markers["hip_r_centre"].body == "femur_r"
    assert markers["hip_r_centre"].location == pytest.approx([0.0, 0.0, 0.0])
    assert any("functional joint 'hip_r': its segments carry it" in note for note in arrays["notes"])


@pytest.mark.parametrize(("noise", "tolerance"), [(0.0, 1e-6), (0.001, 2e-3)], ids=["exact", "1 mm of noise"])
def test_centres_and_axes_are_those_of_the_subject_in_the_static_pose(noise, tolerance):
    generic = read_model(laboratory.model_text())
    markers = read_markers(laboratory.model_text())
    functional = functional_markers(generic, markers, (STATIC, movement(noise)), JOINTS)
    poses = kinematics(SUBJECT, {"pelvis_ty": np.full(10, 0.95), "knee_angle_r": np.full(10, -0.1)})
    for side in "rl":
        centre = functional.static.marker(f"hip_{side}_centre")
        assert np.abs(centre - poses.origin[f"femur_{side}"]).max() < tolerance
        beside = functional.static.marker(f"knee_{side}_{side.upper()}KNE") - poses.origin[f"tibia_{side}"]
        along = poses.rotation[f"tibia_{side}"][:, :, 2]
        across = beside - (beside * along).sum(axis=1, keepdims=True) * along
        assert np.linalg.norm(across, axis=1).max() < 2.0 * tolerance
    assert all(marker.fixed for marker in functional.on_model)


def test_their_weight_draws_the_static_pose_to_them(analysed):
    """The markers of the thighs are recorded 20 mm too low: the centres of the hips tell where the thighs are."""
    thighs = np.isin(STATIC.marker_names, ["RTHI", "RKNE", "LTHI", "LKNE"])
    low = replace(STATIC, markers=STATIC.markers - 0.02 * np.outer(thighs, [0.0, 1.0, 0.0]))
    errors = []
    for weight in (1e-6, 1.0, 100.0):
        joints = {name: replace(joint, weight=weight) for name, joint in JOINTS.items()}
        settings = {"functional_joints": joints, "measurements": LENGTHS, "until": "angles"}
        _, arrays = analysed(files(static=low), "static_markers", "static_errors", **settings)
        where = dict(zip(arrays["static_markers"], arrays["static_errors"], strict=True))
        errors.append(where["hip_r_centre"])
    assert errors[0] > errors[1] > errors[2]


def without_common_frame():
    """The static pose with one half of it for each of two markers."""
    markers = STATIC.markers.copy()
    markers[:5, STATIC.marker_names.index("RASI")] = markers[5:, STATIC.marker_names.index("LPSI")] = np.nan
    return replace(STATIC, markers=markers)


@pytest.mark.parametrize(("joints", "text"), [
    ({"hip": FunctionalJoint()}, "'hip' is not a joint"),
    ({"hip_r": FunctionalJoint(near=("RKNE",))}, "near is for the axis of a hinge, and 'hip_r' turns by hip_flexion_r"),
])  # fmt: skip
def test_joints_that_cannot_be_functional_are_mistakes_before_the_run(joints, text):
    model = InputFile("walker.osim", laboratory.model_text())
    trial = LaboratoryTrial(model=model, functional_joints=joints, scale_to_static=True)
    assert text in trial.check()[0].message
    (mistake,) = LaboratoryTrial(model=model, functional_joints=JOINTS).check()
    assert "scale to it by" in mistake.message


@pytest.mark.parametrize(("joints", "changed", "text"), [
    ({"hip_r": FunctionalJoint()}, {}, "functional.trc: the model has 2 markers on 'femur_r'"),
    ({"hip_r": FunctionalJoint(PELVIS, ("RF1", "RF2", "RF9"))}, {}, "functional joint 'hip_r': .*'RF9'; did you mean"),
    ({"hip_r": JOINTS["hip_r"]}, {"functional": STATIC}, "at least 20 are needed"),
    ({"knee_r": replace(JOINTS["knee_r"], near=("RKNEE",))}, {}, "'RKNEE' is not a marker of the model; did you mean"),
    ({"hip_r": JOINTS["hip_r"]}, {"static": without_common_frame()}, "no frame of the static pose has all of RASI"),
    (JOINTS, {"functional": None}, "name it with functional"),
    ({}, {}, "needs the setting functional_joints"),
])  # fmt: skip
def test_movements_that_do_not_determine_a_joint_are_refused(joints, changed, text):
    model = InputFile("walker.osim", laboratory.model_text())
    trial = LaboratoryTrial(model=model, functional_joints=joints, scale_to_static=True, until="angles")
    conditions = {name: file for name, file in files(**{k: v for k, v in changed.items() if v}).items()
                  if changed.get(name, file) is not None}  # fmt: skip
    with pytest.raises(InvalidSetting, match=text) as error:
        laboratory.raise_mistake(trial, conditions)
    assert error.value.name == ("functional" if str(error.value.message).startswith("functional.trc") else "recording")


def of_side(side):
    """The movement with the markers of one thigh alone."""
    names = tuple(name for name in movement().marker_names if name[0] == side or name in PELVIS)
    return replace(movement(), marker_names=names, markers=movement().selected(names))


def test_a_folder_with_functional_trials_uses_the_hips_that_they_give(tmp_path):
    more = "".join(
        f'<Marker name="{n}"><socket_parent_frame>/bodyset/{body}</socket_parent_frame><location>{x} {y} {z}</location>'
        "</Marker>"
        for n, (body, (x, y, z)) in CLUSTERS.items()
    )
    text = laboratory.model_text().replace(b"<MarkerSet><objects>", f"<MarkerSet><objects>{more}".encode())
    (tmp_path / "walker.osim").write_bytes(text)
    trials = {"static": STATIC, "walk": movement(), "functional_l": of_side("L"), "functional_r": of_side("R")}
    for name, recording in trials.items():
        (tmp_path / f"{name}.trc").write_text(trc_text(recording))
    study = tmp_path / "study.yaml"
    content, assumed = study_of_folder(tmp_path, study, "s")
    study.write_text(content)
    document = yaml.safe_load(content)
    assert document["model"]["functional_joints"] == {"hip_r": {}, "hip_l": {}}
    assert [scenario["name"] for scenario in document["scenarios"]] == ["walk"]
    assert document["scenarios"][0]["functional"] == ["functional_l.trc", "functional_r.trc"]
    assert "walk: centres of hip_r, hip_l by the movement of functional_l.trc, functional_r.trc" in assumed
    assert not any("not used" in sentence for sentence in assumed)
    run = CliRunner().invoke(main, ["run", str(study), "-o", str(tmp_path / "s.study")])
    assert run.exit_code == 0, run.output
