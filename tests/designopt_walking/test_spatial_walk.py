"""A recorded walk in space: the driven model against OpenSim 4.6, what settings name wrongly, and walks that follow."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.dynamics.matrices import kinetic_energy
from designopt_mechanics.dynamics.recursion import inverse_dynamics
from designopt_muscle.osim.read import read_model
from designopt_recordings.files.read import read_table
from designopt_walking.bundled import planar_walker
from designopt_walking.programs.gait import mirror_name
from designopt_walking.spatial.model import WalkTrack3D
from designopt_walking.spatial.walker import (
    DrivenJoints,
    Feet,
    JointSpring,
    MuscleSettings,
    Sphere,
    muscle_driven,
    torque_driven,
)
from designopt_walking.system import foot_forces

import designopt
from designopt.plugin import InputFile, InvalidSetting

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies"
SPOT_VALUES = json.loads((Path(__file__).parent / "data" / "spatial_spot_values.json").read_text())
#: Centres (m) of the spheres of example3DWalking of OpenSim Moco, 20 mm higher than in its file.
CENTRES = [
    ("calcn", (0.0146421, 0.02, -0.0122799)),
    ("calcn", (0.0849291, 0.02, 0.0338649)),
    ("calcn", (0.153362, 0.02, 0.0594829)),
    ("calcn", (0.203637, 0.02, -0.0398688)),
    ("toes", (0.023014, 0.02, 0.0670461)),
    ("toes", (0.074363, 0.02, -0.026039)),
]


@pytest.fixture(scope="module")
def opensim() -> Path:
    """The folder with OpenSim models and motions."""
    folder = Path(os.environ.get("DESIGNOPT_SHARED", ROOT.parent / "shared")) / "data" / "opensim"
    if not folder.is_dir():
        pytest.skip("the OpenSim data (../shared/data/opensim) are not there; DESIGNOPT_SHARED names a folder")
    return folder


@pytest.fixture(scope="module")
def walker(opensim: Path):  # type: ignore[no-untyped-def]
    """The body of example3DWalking with its drives, spheres and springs of the toes, and OpenSim's friction."""
    model = read_model((opensim / "models" / "walk_scaled_80musc.osim").read_bytes())
    spheres = [Sphere(body, centre, 0.035) for body, centre in CENTRES]
    joints = DrivenJoints(500.0, {"mtp_angle": 10.0}, {"mtp_angle": JointSpring(25.0, 2.0)})
    return torque_driven(model, Feet(spheres, "opensim"), joints, {})


def columns(walker, state):  # type: ignore[no-untyped-def]
    """Positions, speeds, accelerations and controls of a state of OpenSim in the order of `walker`."""
    names = SPOT_VALUES["coordinates"]
    rows = [names.index(name) for name in walker.coordinates]
    driven = [names.index(name.removesuffix("_drive")) for name in walker.drives]
    motion = [np.array(state[name])[rows] for name in ("positions", "speeds", "accelerations")]
    return *motion, np.array(state["controls"])[driven]


def test_ground_forces_and_accelerations_are_those_of_opensim(walker) -> None:  # type: ignore[no-untyped-def]
    """Accelerations in motion agree less: OpenSim's miss the equations of Lagrange at knees, whose rotations are
    polynomials (the next test has ours); at rest they agree to round-off."""
    state = walker.state
    forces = ca.horzcat(*(foot_forces(walker)[side] for side in "rl"))
    results = [walker.residual, ca.jacobian(walker.residual, state.ddz), forces]
    function = ca.Function("spot", [state.z, state.dz, state.ddz, ca.vertcat(*walker.drives.values())], results)
    loaded = []
    for spot in SPOT_VALUES["states"]:
        q, u, expected, controls = columns(walker, spot)
        remainder, matrix, force = (np.array(v) for v in function(q, u, 0.0 * q, controls))
        ground = np.stack([spot["ground_force"][side] for side in "rl"], axis=1)
        loaded.append(np.abs(ground).max())
        np.testing.assert_allclose(force, ground, atol=1e-11 * loaded[-1])
        accelerations = np.linalg.solve(matrix, -remainder.ravel())
        close = 1e-5 if u.any() else 1e-11
        np.testing.assert_allclose(accelerations, expected, atol=close * np.abs(expected).max())
    assert min(loaded) > 500.0
    assert not np.any(SPOT_VALUES["states"][0]["speeds"])


def test_the_equations_of_motion_are_those_of_lagrange(walker) -> None:  # type: ignore[no-untyped-def]
    state = walker.state
    kinetic = kinetic_energy(state)
    momentum = ca.gradient(kinetic, state.dz)
    rate = ca.jtimes(momentum, state.z, state.dz) + ca.jtimes(momentum, state.dz, state.ddz)
    lagrange = rate - ca.gradient(kinetic, state.z)
    function = ca.Function("both", [state.z, state.dz, state.ddz], [inverse_dynamics(state), lagrange])
    for spot in SPOT_VALUES["states"][1:]:
        recursion, expected = (np.array(v) for v in function(*columns(walker, spot)[:3]))
        np.testing.assert_allclose(recursion, expected, atol=1e-12 * np.abs(expected).max())


def test_a_sphere_without_a_side_is_on_both_feet_and_their_force_is_that_of_all_bodies() -> None:
    spheres = [Sphere("toes", (0.02, 0.01, 0.03), 0.035)]
    joints = DrivenJoints(150.0, {}, {})
    walker = torque_driven(read_model(planar_walker().content), Feet(spheres, "smooth"), joints, {})
    right, left = (sphere.centre for sphere in walker.model.contacts[-2:])
    assert (right.frame, left.frame) == ("toes_r", "toes_l")
    np.testing.assert_allclose(left.position, np.array(right.position) * [1.0, 1.0, -1.0])
    state = walker.state
    forces = foot_forces(walker)
    sides = [ca.horzcat(*(walker.ground_forces[f"{body}_{side}"] for body in ("calcn", "toes"))) for side in "rl"]
    function = ca.Function("feet", [state.z, state.dz], [*sides, forces["r"], forces["l"]])
    low = [0.75 if name == "pelvis_ty" else 0.0 for name in walker.coordinates]
    of_right, of_left, right_foot, left_foot = (np.array(v) for v in function(low, np.zeros(len(low))))
    assert min(of_right[1].min(), of_left[1].min()) > 1.0
    np.testing.assert_allclose(of_right.sum(axis=1), right_foot.ravel())
    np.testing.assert_allclose(of_left.sum(axis=1), left_foot.ravel())


def test_drives_turn_all_joints_and_nothing_the_pelvis(walker) -> None:  # type: ignore[no-untyped-def]
    assert len(walker.model.contacts) == 2 * len(CENTRES)
    assert len(walker.drives) == len(walker.coordinates) - 6
    assert not any(name.startswith("pelvis") for name in walker.drives)
    optimal = {actuator.name: actuator.optimal for actuator in walker.model.actuators}
    assert (optimal["mtp_angle_l_drive"], optimal["hip_flexion_r_drive"], optimal["lumbar_bending_drive"]) == (
        10.0,
        500.0,
        50.0,
    )


def in_space(name: str) -> InputFile:
    """A table of the bundled tracked walk; that of the forces with lateral ones."""
    head, body = (STUDIES / name).read_text().split("endheader\n")
    names, *rows = (line.split("\t") for line in body.splitlines())
    if "ground_force_r_vx" in names:
        names += [f"ground_force_{side}_vz" for side in "rl"]
        rows = [[*row, "0", "0"] for row in rows]
    return InputFile(name, f"{head}endheader\n{chr(10).join(map(chr(9).join, [names, *rows]))}\n".encode())


RECORDED = {"motion": in_space("planar_walk.sto"), "ground": in_space("planar_walk_forces.sto")}
planar = functools.partial(WalkTrack3D, model=planar_walker(), torque=150.0, torques={"lumbar": 100.0})


@pytest.fixture(scope="module")
def followed():  # type: ignore[no-untyped-def]
    """The bundled walk followed by drives: its outputs and arrays."""
    arrays = frozenset({"time", "positions", "recorded_positions", "ground_force", "recorded_force", "drive_moments"})
    return planar(intervals=16, state_weight=10.0).evaluate({}, RECORDED, arrays)


def test_a_walk_of_the_same_body_is_followed_closely(followed) -> None:  # type: ignore[no-untyped-def]
    """The recording is a walk of this model: what keeps the drives from it is the mesh and the price of torques."""
    outputs, arrays = followed
    assert outputs["angle_error"] < np.radians(1.0)
    assert outputs["vertical_force_error"] < 60.0
    assert outputs["lateral_force_error"] < 1e-9
    assert outputs["impulse_error"] < 1e-4
    assert outputs["pelvis_force"] < 1e-3
    assert outputs["pelvis_moment"] < 1e-3
    assert outputs["objective"] == pytest.approx(outputs["effort"] + outputs["states"] + outputs["contact"])
    distance = arrays["positions"] - arrays["recorded_positions"][:, :, 0]
    assert np.sqrt(np.mean(distance**2)) < np.radians(1.0)
    assert np.isnan(arrays["recorded_positions"][:, :, 1]).all()
    assert arrays["ground_force"].shape == arrays["recorded_force"].shape == (201, 2, 3)
    assert np.abs(arrays["drive_moments"]).max() <= 150.0


def test_the_largest_drive_is_within_its_bounds() -> None:
    """Weak drives reach them; polynomials through the points of Radau leave them before the first one."""
    outputs, _ = planar(intervals=8, torque=40.0).evaluate({}, RECORDED)
    assert outputs["largest_drive"] == pytest.approx(1.0, abs=1e-3)


def test_torques_are_cheaper_where_they_are_not_charged(followed) -> None:  # type: ignore[no-untyped-def]
    """Dear drives turn less, and leave the recording."""
    dear, _ = planar(intervals=16, state_weight=10.0, effort_weight=10.0).evaluate({}, RECORDED)
    assert dear["effort"] / 10.0 < 0.9 * followed[0]["effort"] / 0.1
    assert dear["angle_error"] > followed[0]["angle_error"]


@pytest.mark.parametrize(
    ("settings", "field", "message"),
    [
        ({"spheres": [Sphere("calc", (0.0, 0.0, 0.0), 0.03)]}, "spheres", "'calc' is no body of the model.*calcn"),
        ({"torques": {"pelvis_tilt": 1.0}}, "torques", "'pelvis_tilt' is of the joint with the ground"),
        ({"torques": {"knee": 1.0}}, "torques", "'knee' is no coordinate of a joint"),
        ({"springs": {"toe": JointSpring(1.0)}}, "springs", "'toe' is no coordinate"),
        ({"springs": {"pelvis_ty": JointSpring(1.0)}}, "springs", "'pelvis_ty' is of the joint with the ground"),
        ({"ranges": {"knee_angle": (1.0, -1.0)}}, "ranges.knee_angle", "is not a range"),
        ({"unrecorded": ["toe"]}, "unrecorded", "'toe' is no coordinate"),
        ({"unrecorded": read_model(planar_walker().content).names}, "unrecorded", "names all angles"),
    ],
)
def test_settings_name_what_the_model_has(settings, field: str, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidSetting, match=message) as error:
        planar(**{"torques": {}, **settings}).check()
    assert error.value.name == field


def test_a_body_without_spheres_is_refused(opensim: Path) -> None:
    file = opensim / "models" / "walk_scaled_80musc.osim"
    with pytest.raises(InvalidSetting, match=r"no contact sphere.*state spheres"):
        WalkTrack3D(model=InputFile(file.name, file.read_bytes())).check()


@pytest.mark.parametrize(
    ("settings", "files", "field", "message"),
    [
        ({"window": (0.0, 2.0)}, {}, "motion", "recorded from 0 to .* s, not from 0 to 2 s"),
        ({"ranges": {"hip_flexion": (-0.1, 0.1)}}, {}, "ranges", "'hip_flexion_[rl]' is recorded from .* wider"),
        ({"state_weights": {"knee_speed": 0.0}}, {}, "state_weights", "'knee_speed' is not recorded"),
        ({"force_columns": {"r": "force_r_", "l": "force_l_"}}, {}, "ground", "force_r_x"),
        ({}, {"motion": RECORDED["ground"]}, "motion", "pelvis_t"),
        ({}, {"ground": InputFile("f.sto", (STUDIES / "planar_walk_forces.sto").read_bytes())}, "ground", "r_vz"),
    ],
)
def test_a_recording_suits_model_and_settings(settings, files, field: str, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidSetting, match=message) as error:
        planar(**settings).check_scenario({**RECORDED, **files})
    assert error.value.name == field


def test_a_coordinate_without_recording_is_free_to_move() -> None:
    walk = planar(unrecorded=["lumbar"], intervals=8)
    walk.check_scenario({"motion": RECORDED["motion"]})
    outputs, arrays = walk.evaluate(
        {}, {"motion": RECORDED["motion"]}, frozenset({"recorded_positions", "coordinates"})
    )
    column = list(arrays["coordinates"]).index("lumbar")
    assert np.isnan(arrays["recorded_positions"][:, column]).all()
    assert "vertical_force_error" not in outputs
    assert outputs["contact"] == 0.0


def test_a_recording_of_angles_alone_leaves_the_pelvis_free() -> None:
    ranges = {"pelvis_ty": (0.85, 1.0)}  # the first motion is at the end nearest to 0
    walk = planar(unrecorded=["pelvis_tx", "pelvis_ty"], ranges=ranges, intervals=8, state_weight=10.0)
    outputs, _ = walk.evaluate({}, RECORDED)
    assert np.isfinite(list(outputs.values())).all()
    assert "position_error" not in outputs


def full_cycle() -> InputFile:
    """The recorded half cycle, and its mirror image after it."""
    table = read_table(RECORDED["motion"])
    names = [label.split("/")[-2] for label in table.names]
    mirror_image = table.values[1:, [names.index(mirror_name(name)) for name in names]].copy()
    forward = names.index("pelvis_tx")
    mirror_image[:, forward] += np.ptp(table.values[:, forward])
    time = np.append(table.time, table.time[-1] + table.time[1:] - table.time[0])
    rows = np.column_stack([time, np.vstack([table.values, mirror_image])])
    text = "\n".join(",".join(map(repr, row)) for row in rows.tolist())
    return InputFile("cycle.csv", f"# inDegrees=no\ntime,{','.join(names)}\n{text}\n".encode())


def test_a_cycle_repeats_after_the_window() -> None:
    """Except for the way forward the end is the beginning, which a recording alone leaves open."""
    ends = {}
    for cycle in (False, True):
        walk = planar(cycle=cycle, intervals=16, start_distance=0.1, start_speed_distance=1.0)
        _, arrays = walk.evaluate({}, {"motion": full_cycle()}, frozenset({"positions", "speeds", "coordinates"}))
        forward = list(arrays["coordinates"]).index("pelvis_tx")
        positions = np.delete(arrays["positions"], forward, axis=1)
        motion = np.column_stack([positions, arrays["speeds"]])
        ends[cycle] = np.abs(motion[-1] - motion[0]).max()
    assert ends[True] < 1e-6 < 1e-3 < ends[False]


@pytest.mark.slow
def test_the_walk_of_moco_is_followed_at_a_lower_cost(opensim: Path, tmp_path: Path) -> None:
    """The solution in opensim-core (example3DWalking_torque_driven_tracking_solution.sto, of OpenSim 4.6 with tolerance
    1e-2) has 0.031786 = 0.010098 (effort) + 0.016789 (states) + 0.004899 (ground forces)."""
    run = designopt.load(STUDIES / "tracked_walk_3d.yaml", data={"opensim": opensim}).run(tmp_path / "walk.study")
    outputs = {name: float(values[0, 0]) for name, values in run.outcomes.figures.items()}
    assert outputs["objective"] == pytest.approx(0.0281, rel=0.01)
    assert outputs["objective"] < 0.031786
    assert outputs["angle_error"] < np.radians(3.0)
    assert outputs["impulse_error"] < 1e-4
    assert outputs["pelvis_force"] < 0.01


def test_muscles_follow_with_drives_only_where_none_crosses() -> None:
    walk = planar(intervals=12, state_weight=10.0, muscles=MuscleSettings(degree=5))
    stored = frozenset({"coordinates", "muscles", "activations", "muscle_moments", "drive_moments"})
    outputs, arrays = walk.evaluate({}, RECORDED, stored)
    names = arrays["coordinates"].tolist()
    joints = [names.index(f"{joint}_{side}") for joint in ("hip_flexion", "knee_angle", "ankle_angle") for side in "rl"]
    turned = np.abs(arrays["muscle_moments"]).max(axis=0) > 1.0
    assert turned[joints].all()
    assert np.flatnonzero(np.abs(arrays["drive_moments"]).max(axis=0)).tolist() == [names.index("lumbar")]
    assert arrays["activations"].shape == (201, len(arrays["muscles"])) == (201, 18)
    assert 0.01 < outputs["mean_activation"] < outputs["peak_activation"] <= 1.0
    assert outputs["angle_error"] < np.radians(2.0)
    assert outputs["path_error"] < 5e-4
    assert outputs["pelvis_moment"] < 1e-3


def test_the_width_of_the_force_length_curve_is_that_of_the_file_times_the_factor() -> None:
    model = read_model(planar_walker().content)
    wide = replace(model, muscles=(replace(model.muscles[0], shape={"active_force_width_scale": 1.5}),))
    ranges = {c.name: (-0.1, 0.1) for c in model.coordinates}
    for factor, width in ((1.0, 1.5), (1.2, 1.8)):
        walker = muscle_driven(
            wide, Feet([], "smooth"), DrivenJoints(1.0, {}, {}), ranges, MuscleSettings(True, factor)
        )
        assert walker.muscles.muscles[0].shape["active_force_width_scale"] == pytest.approx(width)


def test_muscles_are_asked_of_a_model_that_has_some() -> None:
    content = planar_walker().content.decode()
    start, end = content.index("<ForceSet"), content.index("</ForceSet>") + len("</ForceSet>")
    bare = InputFile("bare.osim", (content[:start] + content[end:]).encode())
    with pytest.raises(InvalidSetting, match=r"bare\.osim has no muscle"):
        WalkTrack3D(model=bare, muscles=MuscleSettings()).check()


@pytest.mark.slow
def test_muscles_follow_the_walk_of_moco_at_a_lower_cost(opensim: Path, tmp_path: Path) -> None:
    """The solution in opensim-core (example3DWalking_muscle_driven_tracking_solution.sto), which also repeats, has
    0.113103 = 0.078257 (effort) + 0.026058 (states) + 0.008788 (ground forces) on 57 intervals."""
    study = tmp_path / "walk.yaml"
    study.write_text((STUDIES / "muscles_walk_3d.yaml").read_text().replace("intervals: 57", "intervals: 20"))
    run = designopt.load(study, data={"opensim": opensim}).run(tmp_path / "walk.study")
    outputs = {name: float(values[0, 0]) for name, values in run.outcomes.figures.items()}
    assert outputs["objective"] == pytest.approx(0.0925, rel=0.02)
    assert outputs["angle_error"] < np.radians(3.0)
    assert outputs["path_error"] < 2e-3
    assert outputs["impulse_error"] < 1e-4
