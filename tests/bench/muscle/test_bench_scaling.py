"""Scaling of generic models to the static pose of another public subject beside OpenSim's ScaleTool, out of process."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from designopt_mechanics.robot_files.xml import document, parse
from designopt_muscle.markers.problem import motion_problem
from designopt_muscle.osim.markers import read_markers, with_markers
from designopt_muscle.osim.read import read_model
from designopt_muscle.scaling.factors import mean_pose
from designopt_muscle.scaling.scale import scale_subject
from designopt_muscle.scaling.setup import read_scale_setup
from designopt_recordings.files.read import read_recording, read_table
from designopt_recordings.files.write import trc_text

from designopt.plugin import InputFile

sys.path.insert(0, str(Path(__file__).parents[2] / "designopt_laboratory"))
from test_public_recordings import plug_in_gait

pytestmark = pytest.mark.bench

#: Pairs of markers by the bodies and axes that they scale.
LENGTHS = {
    "pelvis:XYZ": ("RASI LASI", "RASI RPSI", "LASI LPSI"),
    "femur_r:XYZ femur_l:XZY": ("RTHI RKNE", "LTHI LKNE", "RASI RKNE"),
    "tibia_r:Y tibia_l:Y": ("RKNE RANK", "LKNE LANK"),
    "tibia_r:XZ tibia_l:XZ": ("RTIB RANK",),
    "talus_r:XYZ talus_l:XYZ calcn_r:XYZ calcn_l:XYZ": ("RHEE RTOE", "LHEE LTOE"),
    "torso:XYZ": ("C7 CLAV", "C7 T10", "STRN CLAV"),
}


def setup_text(markers: list[str], order: str, preserve: str) -> str:
    measurements = "".join(
        f'<Measurement name="m{number}"><apply>true</apply><MarkerPairSet><objects>'
        + "".join(f"<MarkerPair><markers>{pair}</markers></MarkerPair>" for pair in pairs)
        + "</objects></MarkerPairSet><BodyScaleSet><objects>"
        + "".join(
            f'<BodyScale name="{name}"><axes>{" ".join(axes)}</axes></BodyScale>'
            for name, axes in (part.split(":") for part in bodies.split())
        )
        + "</objects></BodyScaleSet></Measurement>"
        for number, (bodies, pairs) in enumerate(LENGTHS.items())
    )
    tasks = "".join(
        f'<IKMarkerTask name="{name}"><apply>true</apply><weight>{1 + number % 3}</weight></IKMarkerTask>'
        for number, name in enumerate(markers)
    )
    pose = "<marker_file>static.trc</marker_file><time_range>0.2 1.2</time_range>"
    return f"""<?xml version="1.0" encoding="UTF-8" ?><OpenSimDocument Version="40000"><ScaleTool name="subject">
<mass>85</mass><GenericModelMaker><apply>true</apply><model_file>generic.osim</model_file></GenericModelMaker>
<ModelScaler><apply>true</apply><scaling_order>{order}</scaling_order>
<MeasurementSet><objects>{measurements}</objects></MeasurementSet>
<ScaleSet><objects><Scale><scales>1.1 0.95 1.02</scales><segment>torso</segment><apply>true</apply></Scale></objects>
</ScaleSet>{pose}<preserve_mass_distribution>{preserve}</preserve_mass_distribution>
<output_model_file>scaled.osim</output_model_file></ModelScaler>
<MarkerPlacer><apply>true</apply><IKTaskSet><objects>{tasks}</objects></IKTaskSet>{pose}
<output_motion_file>pose.mot</output_motion_file>
<output_model_file>placed.osim</output_model_file></MarkerPlacer></ScaleTool></OpenSimDocument>"""


@pytest.mark.parametrize(
    ("generic", "order", "preserve"),
    [
        ("pipeline_gait2392/gait2392_generic.osim", "measurements manualScale", "true"),
        ("models/gait10dof18musc_subject01.osim", "manualScale measurements", "false"),
        ("models/walk_scaled_80musc.osim", "measurements", "false"),
    ],
    ids=["gait2392", "ten angles", "full body"],
)
def test_bodies_joints_and_muscles_are_scaled_as_by_opensim(
    shared_data, opensim_peer, tmp_path, generic, order, preserve
):
    """The static pose of `plugin_gait_fullbody`. Lengths of fibres follow those of paths, which over ellipsoids and
    several surfaces are the shortest ones here: up to 6e-4 of difference in the full body. In the pose in which
    markers are placed the sum of squares is not above OpenSim's."""
    static = (shared_data("mocap") / "plugin_gait_fullbody/Static_trial.c3d").read_bytes()
    (tmp_path / "static.trc").write_text(trc_text(read_recording(InputFile("static.c3d", static))))
    content = (shared_data("opensim") / generic).read_bytes()
    bodies = {body.name for body in read_model(content).bodies}
    markers = [marker for marker in read_markers(plug_in_gait()) if marker.body in bodies]
    root = parse(content)
    with_markers(root, markers)
    (tmp_path / "generic.osim").write_bytes(document(root))
    setup = tmp_path / "setup.xml"
    setup.write_text(setup_text([marker.name for marker in markers], order, preserve))
    assert opensim_peer(Path(__file__).parent / "peer_scale.py", setup)["scaled"]
    recording = read_recording(InputFile("static.trc", (tmp_path / "static.trc").read_bytes()))
    subject = scale_subject(document(root), recording, read_scale_setup(setup.read_bytes()))
    placed = read_model((tmp_path / "placed.osim").read_bytes())
    for ours, theirs in zip(subject.model.bodies, placed.bodies, strict=True):
        assert ours.mass == pytest.approx(theirs.mass, rel=1e-9)
        assert np.abs(ours.inertia - theirs.inertia).max() < 1e-9
        assert np.abs(ours.centre - theirs.centre).max() < 1e-9
    for ours, theirs in zip(subject.model.joints, placed.joints, strict=True):
        assert np.abs(ours.in_parent - theirs.in_parent).max() < 1e-9
    exact = "80musc" not in generic
    for ours, theirs in zip(subject.model.muscles, placed.muscles, strict=True):
        assert [ours.fibre, ours.slack] == pytest.approx([theirs.fibre, theirs.slack], rel=1e-6 if exact else 6e-4)
    assert subject.static is not None
    scaled = (tmp_path / "scaled.osim").read_bytes()
    tasks = read_scale_setup(setup.read_bytes()).placing
    names = [marker for marker in read_markers(scaled) if marker.name in recording.marker_names]
    pose = mean_pose(recording, tasks.window)
    objective = motion_problem(read_model(scaled), tuple(names), pose, replace(tasks, window=None), "clamped").objective
    turns = [c.name for c in placed.coordinates if c.rotational]
    motion = read_table(InputFile("pose.mot", (tmp_path / "pose.mot").read_bytes())).radians(turns)
    theirs = np.array([[motion.column(name)[0] for name in objective.layout.coordinates]])
    assert subject.static.cost[0] < objective.costs(theirs)[0] + 1e-9
