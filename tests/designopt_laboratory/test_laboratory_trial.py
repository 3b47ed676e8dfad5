"""The chain of a laboratory: true motions come back, other axes change nothing, spoilt frames stay alone."""

from dataclasses import replace

import numpy as np
import pytest
import walking_laboratory as laboratory
from designopt_laboratory.model import LaboratoryTrial
from designopt_muscle.models.emg import MeasuredActivity
from designopt_recordings.placement import about_vertical

from designopt.plugin import InputFile, InvalidDesign, InvalidSetting

WALK = laboratory.walk(cycles=1.3)
MOMENTS = ("moments", "moment_names", "pose_status")
JOINTS = ("hip_flexion", "hip_adduction", "hip_rotation", "knee_angle", "ankle_angle")


def by_joint(arrays, what="moments", names="moment_names"):
    """(n, joints, 2) of both legs, right first."""
    columns = list(arrays[names])
    return np.stack([arrays[what][:, [columns.index(f"{joint}_{side}") for joint in JOINTS]] for side in "rl"], axis=2)


@pytest.fixture(scope="module")
def reference(analysed):
    return analysed(WALK, *MOMENTS, "angles", "coordinate_names", until="moments")


def test_the_true_coordinates_of_a_walk_come_back_from_its_markers(analysed):
    _, arrays = analysed(WALK, "angles", "coordinate_names", until="angles", design={"cutoff": 0.0})
    true = np.column_stack([WALK.values[name] for name in arrays["coordinate_names"]])
    assert np.abs(arrays["angles"] - true).max() < 2e-4  # the files have 0.01 mm


def test_the_ground_carries_the_walker(reference):
    figures, _ = reference
    assert figures["residual_force"] < 0.05 * 67.4 * 9.81  # its forces come from the same motion, without the filter
    assert figures["usable"] > 0.98  # derivatives at the last frame are poor


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda walk: walk.turned(about_vertical(0.7), (0.0, 0.0, 0.0)), id="turned"),
        pytest.param(lambda walk: walk.turned(about_vertical(np.pi), (0.0, 0.0, 0.0)), id="turned round"),
        pytest.param(lambda walk: walk.turned(np.eye(3), (3.0, 0.2, -5.0)), id="shifted"),
    ],
)
def test_another_place_of_the_laboratorys_axes_changes_no_moment(analysed, reference, change):
    walk = change(WALK)
    _, arrays = analysed(walk, *MOMENTS, until="moments")
    assert np.nanmax(np.abs(by_joint(arrays) - by_joint(reference[1]))) < 0.1  # N m: files have 0.01 mm


def test_the_order_of_markers_and_plates_changes_no_moment(analysed, reference):
    order = np.random.default_rng(0).permutation(len(WALK.recording.marker_names))
    names = tuple(WALK.recording.marker_names[i] for i in order)
    recording = replace(WALK.recording, marker_names=names, markers=WALK.recording.markers[:, order])
    _, arrays = analysed(replace(WALK, recording=recording, plates=WALK.plates[::-1]), *MOMENTS, until="moments")
    assert np.nanmax(np.abs(by_joint(arrays) - by_joint(reference[1]))) < 1e-6


def test_the_mirror_image_of_a_walk_has_the_moments_of_the_other_side(analysed, reference):
    _, arrays = analysed(WALK.mirrored(), *MOMENTS, until="moments")
    assert np.nanmax(np.abs(by_joint(arrays)[:, :, ::-1] - by_joint(reference[1]))) < 1e-4


def test_a_spoilt_frame_changes_no_pose_and_no_moment_of_others(analysed, reference):
    markers = np.array(WALK.recording.markers)
    spoilt = 30
    markers[spoilt] = np.nan
    walk = replace(WALK, recording=replace(WALK.recording, markers=markers))
    _, raw = analysed(walk, "angles", until="angles", design={"cutoff": 0.0}, max_gap=0.0)
    _, true = analysed(WALK, "angles", until="angles", design={"cutoff": 0.0})
    unspoilt = np.delete(np.arange(len(markers) - 1), spoilt)  # the last frame has no moments
    assert np.isnan(raw["angles"][spoilt]).all()
    assert np.abs(raw["angles"][unspoilt] - true["angles"][unspoilt]).max() < 1e-7  # rad, of the iterations
    _, arrays = analysed(walk, *MOMENTS, until="moments")
    difference = np.abs(by_joint(arrays) - by_joint(reference[1])).max(axis=(1, 2))
    assert arrays["pose_status"][spoilt] >= 100
    assert np.isnan(difference[spoilt])
    assert difference[unspoilt].max() < 0.2  # N m, where a spline bridges the frame
    assert difference[unspoilt][np.abs(unspoilt - spoilt) > 15].max() < 0.01


def test_each_step_may_be_the_last_and_leaves_later_arrays_empty(analysed):
    names = ("angles", "moments", "activations", "reactions", "curves", "metabolic_rates")
    sizes = {}
    for until in ("angles", "moments", "forces", "reactions"):
        _, arrays = analysed(WALK, *names, until=until, metabolics="umberger")
        sizes[until] = [arrays[name].size > 0 for name in names]
    assert sizes["angles"] == [True, False, False, False, True, False]
    assert sizes["moments"] == [True, True, False, False, True, False]
    assert sizes["forces"] == [True, True, True, False, True, True]
    assert sizes["reactions"] == [True] * 6


def test_a_joint_carries_about_its_axis_only_what_the_reserve_gives(analysed):
    """Muscles balance the moment about the axis of a hinge; what is left of the reaction's moment is the reserve."""
    names = ("reaction_moments", "joints", "reserves", "coordinates", "reactions", "reaction_points")
    _, arrays = analysed(WALK, *names, design={"cutoff": 8.0})
    for joint, coordinate in (("knee_r", "knee_angle_r"), ("ankle_l", "ankle_angle_l")):
        moment = arrays["reaction_moments"][:, list(arrays["joints"]).index(joint), 2]
        reserve = arrays["reserves"][:, list(arrays["coordinates"]).index(coordinate)]
        assert moment == pytest.approx(reserve, abs=1e-6, nan_ok=True)
    _, ground = analysed(WALK, *names, design={"cutoff": 8.0}, reaction_axes="ground", joints=["knee_r"])
    sizes = [np.linalg.norm(a["reactions"][:, list(a["joints"]).index("knee_r")], axis=1) for a in (arrays, ground)]
    assert sizes[0] == pytest.approx(sizes[1], nan_ok=True)
    assert np.ptp(ground["reaction_points"][:, 0, 0]) > 1.0  # m: the knee walks through the laboratory
    assert np.abs(arrays["reaction_points"][:, list(arrays["joints"]).index("knee_r")]).max() < 1e-9


def test_muscles_have_the_power_of_their_forces_and_that_of_their_moments(analysed):
    """By virtual work: force times shortening of the path (differences over time) is moment times joint rate."""
    names = ("muscle_powers", "forces", "muscle_lengths", "muscle_moments", "rates", "coordinate_names", "coordinates")
    _, arrays = analysed(WALK, *names, design={"cutoff": 6.0})
    speeds = np.gradient(arrays["muscle_lengths"], arrays["time"], axis=0, edge_order=2)
    by_force = -arrays["forces"] * speeds
    rows = [list(arrays["coordinate_names"]).index(name) for name in arrays["coordinates"]]
    by_moment = np.einsum("trm,tr->tm", arrays["muscle_moments"], arrays["rates"][:, rows])
    largest = np.nanmax(np.abs(arrays["muscle_powers"]))
    assert largest > 50.0  # W
    assert arrays["muscle_powers"] == pytest.approx(by_moment, abs=1e-9, nan_ok=True)
    assert np.nanmax(np.abs(arrays["muscle_powers"] - by_force)) < 0.05 * largest  # of differences at 50 Hz


def test_errors_of_markers_are_those_that_a_study_assumes_and_factors_change_the_body(analysed):
    assumed, _ = analysed(WALK, until="moments", design={"skin": 0.01, "seed": 3})
    repeated, _ = analysed(WALK, until="moments", design={"skin": 0.01, "seed": 3})
    reseeded, _ = analysed(WALK, until="moments", design={"skin": 0.01, "seed": 4})
    heavy, _ = analysed(WALK, until="moments", design={"mass_factor": 1.1})
    assert 0.003 < assumed["marker_rms"] < 0.01  # the model follows a part of 10 mm
    assert assumed == repeated
    assert assumed["marker_rms"] != reseeded["marker_rms"]
    assert heavy["mass"] == pytest.approx(1.1 * 67.4)


def test_the_size_of_the_body_and_weights_of_markers_are_questions_of_a_study(analysed):
    larger = replace(WALK, recording=replace(WALK.recording, markers=1.05 * WALK.recording.markers))
    trial = {"recording": InputFile("walk.trc", larger.trc())}
    errors = {
        size: analysed(trial, until="angles", design={"size_factor": size})[0]["marker_rms"] for size in (1.0, 1.05)
    }
    assert errors[1.05] < 1e-5 < 1e-3 < errors[1.0]
    heels = {"weighted_markers": ["RHEE", "LHEE"], "until": "angles"}
    rms = {}
    for weight in (0.0, 100.0):
        _, arrays = analysed(trial, "marker_errors", "markers", design={"marker_weight": weight}, **heels)
        rms[weight] = np.nanmean(arrays["marker_errors"][:, list(arrays["markers"]).index("RHEE")])
    assert not rms[100.0] > 0.5 * errors[1.0]


def test_limits_of_coordinates_hold_where_they_are_asked_for(analysed):
    coordinate = b'name="knee_angle_r"><default_value>0</default_value><range>-'
    text = laboratory.model_text().replace(coordinate + b"2.2", coordinate + b"0.5")
    model = InputFile("walker.osim", text)
    lowest = {}
    for limits in ("hard", "none"):
        _, arrays = analysed(
            WALK, "angles", "coordinate_names", model=model, limits=limits, until="angles", design={"cutoff": 0.0}
        )
        lowest[limits] = arrays["angles"][:, list(arrays["coordinate_names"]).index("knee_angle_r")].min()
    assert lowest["hard"] == pytest.approx(-0.5, abs=1e-6)
    assert lowest["none"] < -0.9


def test_reserves_by_coordinate_act_there_alone(analysed):
    names = ("reserves", "coordinates")
    _, arrays = analysed(WALK, *names, reserve={"hip_rotation_r": 20.0, "hip_rotation_l": 20.0}, until="forces")
    used = np.nanmax(np.abs(arrays["reserves"]), axis=0)
    assert {name for name, size in zip(arrays["coordinates"], used, strict=True) if size > 0.0} == {
        "hip_rotation_r",
        "hip_rotation_l",
    }


def test_feet_beside_the_plates_leave_their_frames_without_moments(analysed):
    walk = replace(WALK, plates=WALK.plates[:1])
    figures, arrays = analysed(walk, *MOMENTS, "notes", until="moments")
    left_alone = np.asarray(WALK.plates[0].force[:, 1]) < 0.5 * 67.4 * 9.81
    assert (arrays["pose_status"][left_alone] == 105).all()
    assert np.isnan(arrays["moments"][left_alone]).all()
    assert 0.2 < figures["usable"] < 0.7
    assert any("residual_limit" in note for note in arrays["notes"])


def test_scaling_to_the_static_pose_finds_the_size_of_a_subject(analysed):
    tall = replace(laboratory.standing().recording, markers=1.1 * laboratory.standing().recording.markers)
    static = replace(laboratory.standing(), recording=tall)
    walk = replace(WALK, recording=replace(WALK.recording, markers=1.1 * WALK.recording.markers))
    conditions = {
        "recording": InputFile("walk.trc", walk.trc()),
        "static": InputFile("static.trc", static.trc()),
        "mass": 80.0,
    }
    figures, arrays = analysed(conditions, "scaled_model", "angles", until="angles", scale_to_static=True)
    assert figures["marker_rms"] < 2e-3
    assert figures["mass"] == pytest.approx(80.0)
    assert arrays["scaled_model"][0].startswith("<?xml")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"joints": ["kne_r"]}, "'kne_r' is not a joint; did you mean 'knee_r'"),
        ({"feet": {"right": "foot"}}, "'foot' is not a body"),
        ({"feet": {"right": "calcn_l", "left": "calcn_r"}}, "'calcn_l' is by its name a body of the other side"),
        ({"feet": {"both": "calcn_r"}}, "write right and left"),
        ({"reaction_axes": "tibia"}, "'tibia' is not a body"),
        ({"window": (1.0, 1.0)}, "is empty"),
        ({"reserve": {"knee_r": 1.0}}, "'knee_r' is not a free coordinate"),
        ({"model": InputFile("m.osim", b"<no")}, "m.osim"),
    ],
)
def test_a_wrong_setting_is_named_with_the_way_out(settings, text):
    model = LaboratoryTrial(**{"model": InputFile("walker.osim", laboratory.model_text()), **settings})
    assert any(text in str(mistake) for mistake in model.check())


RENAMED = WALK.trc().replace(b"\tR", b"\tQ").replace(b"\tL", b"\tP")
TRC, MOT = InputFile("walk.trc", WALK.trc()), InputFile("walk.mot", WALK.mot())
XML = InputFile("loads.xml", b"<OpenSimDocument/>")


@pytest.mark.parametrize(
    ("conditions", "name", "text"),
    [
        ({}, "recording", "has neither"),
        ({"recording": TRC, "motion": MOT}, "recording", "has both"),
        ({"recording": InputFile("w.trc", b"PathFileType")}, "recording", "w.trc"),
        ({"recording": TRC, "reactions": InputFile("r.mot", b"time")}, "reactions", "r.mot"),
        (
            {"recording": TRC, "reactions": InputFile("r.csv", b"time,x\n0,1\n1,2\n")},
            "reactions",
            "no columns of ground",
        ),
        ({"recording": TRC, "external_loads": XML}, "external_loads", "name that table with reactions"),
        ({"recording": TRC, "subject_model": InputFile("s.osim", b"")}, "subject_model", "s.osim"),
        ({"motion": InputFile("m.csv", b"time,x\n0,1\n1,2\n")}, "motion", "none of its columns is a coordinate"),
        ({"recording": InputFile("w.trc", WALK.trc().replace(b"ASI", b"AS1"))}, "recording", "did you mean 'RASI' for"),
        (
            {"recording": InputFile("w.trc", RENAMED)},
            "recording",
            "the pose of pelvis, .* did you mean 'RASI' for 'QASI'",
        ),
    ],
)
def test_a_wrong_file_is_named_with_the_way_out(conditions, name, text):
    model = LaboratoryTrial(model=InputFile("walker.osim", laboratory.model_text()))
    with pytest.raises(InvalidSetting, match=text) as error:
        laboratory.raise_mistake(model, conditions)
    assert error.value.name == name


def test_weights_and_channels_of_nothing_are_named_with_the_way_out():
    walker = InputFile("walker.osim", laboratory.model_text())
    emg = InputFile("emg.csv", b"time,SOL\n" + b"".join(b"%.2f,0.5\n" % (0.02 * i) for i in range(80)))
    track = MeasuredActivity({"soleus_r": "SOL"}, weight=0.0)
    for settings, conditions, text in (
        ({"emg": track}, {"recording": TRC}, "name it with emg"),
        ({"emg": MeasuredActivity({"soleus_r": "GAS"})}, {"recording": TRC, "emg": emg}, "emg.csv: .*'GAS'"),
    ):
        with pytest.raises(InvalidSetting, match=text):
            laboratory.raise_mistake(LaboratoryTrial(model=walker, **settings), conditions)


def test_measured_activity_is_shown_beside_activations_and_followed_where_it_has_a_weight(analysed):
    time = np.arange(0.0, 1.5, 0.01)
    wave = 0.5 + 0.4 * np.sin(2.0 * np.pi * time)
    rows = "".join(f"{t:.2f},{v:.6f}\n" for t, v in zip(time, wave, strict=True))
    trial = {"recording": TRC, "reactions": MOT, "emg": InputFile("emg.csv", f"time,SOL\n{rows}".encode())}
    names = ("signals", "activations", "muscles", "curve_kinds")
    correlations = {}
    for weight in (0.0, 50.0):
        track = MeasuredActivity({"soleus_r": "SOL"}, weight=weight)
        figures, arrays = analysed(trial, *names, emg=track, until="forces")
        correlations[weight] = figures["emg_correlation"]
        column = list(arrays["muscles"]).index("soleus_r")
        assert arrays["signals"][:, column] == pytest.approx(np.interp(arrays["time"], time, wave), abs=1e-6)
        assert np.isnan(np.delete(arrays["signals"], column, axis=1)).all()
    assert "EMG" in arrays["curve_kinds"]
    assert correlations[50.0] > correlations[0.0]


def test_a_cut_off_that_the_rate_excludes_rejects_the_design(analysed):
    with pytest.raises(InvalidDesign, match="cut-off of 40 Hz is not possible at 50 Hz"):
        analysed(WALK, until="angles", design={"cutoff": 40.0})


def test_a_window_beyond_the_trial_gives_no_result(analysed):
    with pytest.raises(
        InvalidSetting, match=r"the window from 8 to 9 s is beyond the record, which runs from 0 to 1\.4"
    ):
        analysed(WALK, until="angles", window=(8.0, 9.0))


def test_given_coordinates_have_the_moments_and_the_sharing_of_opensim(analysed, shared):
    """gait2392: the reference net moments of OpenSim 4.6, and the cost of the reference minimiser."""
    import csv

    conditions = {
        "motion": shared("opensim/motion/gait2392_kinematics.sto"),
        "external_loads": shared("opensim/motion/gait2392_walk1_grf.xml"),
        "reactions": shared("opensim/motion/subject01_walk_grf.mot"),
    }
    model = shared("opensim/models/gait2392_subject01.osim")
    names = ("moments", "moment_names", "activations")
    figures, arrays = analysed(conditions, *names, model=model, window=(0.6, 1.6), design={"cutoff": 0.0})
    header, *rows = csv.reader(shared("opensim/reference/gait2392_inverse_dynamics.csv").content.decode().splitlines())
    table = np.array(rows, dtype=float)
    for name in ("hip_flexion_r", "knee_angle_l", "ankle_angle_r"):
        true = np.interp(arrays["time"], table[:, 0], table[:, header.index(f"{name}_moment")])
        assert arrays["moments"][:, list(arrays["moment_names"]).index(name)] == pytest.approx(true, abs=1e-2)
    assert figures["mean_cost"] == pytest.approx(1.9247636, rel=1e-4)


def test_a_mass_beside_a_model_of_the_subject_is_noted():
    own_model = InputFile("own.osim", laboratory.model_text())
    model = LaboratoryTrial(model=own_model, until="angles")
    notes = model.remarks({"recording": TRC, "subject_model": own_model, "mass": 70.0})
    assert any("the mass of 70 kg has no effect: the bodies of own.osim have" in note for note in notes)


def test_the_public_pipeline_goes_from_markers_to_moments_near_those_of_opensims_coordinates(analysed, shared):
    """Scaling, inverse kinematics and inverse dynamics of gait2392 against those by OpenSim's own coordinates."""
    folder = "opensim/pipeline_gait2392"
    loads = {
        "reactions": shared("opensim/motion/subject01_walk_grf.mot"),
        "external_loads": shared(f"{folder}/subject01_walk1_grf.xml"),
    }
    settings = {"model": shared(f"{folder}/gait2392_generic.osim"), "until": "moments"}
    markers = {"recording": shared(f"{folder}/subject01_walk1.trc"), "static": shared(f"{folder}/subject01_static.trc")}
    chain = {
        "scaling": shared(f"{folder}/subject01_Setup_Scale.xml"),
        "marker_set": shared(f"{folder}/gait2392_Scale_MarkerSet.xml"),
        "tasks": shared(f"{folder}/subject01_Setup_IK.xml"),
    }
    _, arrays = analysed({**markers, **loads}, *MOMENTS, **settings, **chain)
    theirs = {
        "motion": shared(f"{folder}/reference/subject01_walk1_ik.mot"),
        "subject_model": shared(f"{folder}/reference/subject01_simbody.osim"),
    }
    _, reference_arrays = analysed({**theirs, **loads}, *MOMENTS, **settings)
    at = reference_arrays["time"]
    inner = (at > 0.7) & (at < 2.0)
    for name in ("hip_flexion_r", "knee_angle_r", "ankle_angle_r"):
        ours, reference_moment = (
            a["moments"][:, list(a["moment_names"]).index(name)] for a in (arrays, reference_arrays)
        )
        moment = np.interp(at[inner], arrays["time"], ours)
        assert np.sqrt(np.mean((moment - reference_moment[inner]) ** 2)) < 2.0  # N m of up to 120
