"""Inverse kinematics from markers: exact minima, limits, couplers, spoilt frames, swapped markers, OpenSim's case."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_mechanics.robot_files.xml import ModelError
from designopt_muscle.markers.fit import fit_motion
from designopt_muscle.markers.problem import motion_problem
from designopt_muscle.markers.status import MarkerError, MotionStatus
from designopt_muscle.markers.tasks import IkTasks, read_ik_setup
from designopt_muscle.osim.markers import read_markers
from designopt_muscle.osim.read import read_model
from designopt_recordings.files.read import read_recording, read_table
from designopt_recordings.table import TimeTable
from subject_model import case, motion, recorded, subject

from designopt.plugin import InputFile

NOISE = 0.01  # m


def columns(fit, values):
    return np.abs(np.stack([fit.column(name) - values[name] for name in values]))


def with_markers(recording, change):
    markers = recording.markers.copy()
    change(markers)
    return replace(recording, markers=markers)


def task(kind, content):
    return f'<IKTaskSet><objects><{kind} name="a">{content}</{kind}></objects></IKTaskSet>'


@pytest.fixture(scope="module")
def noisy():
    """Model, markers, recording with noise, its fit."""
    model, markers, _, recording = case(40, NOISE)
    return model, markers, recording, fit_motion(model, markers, recording)


def test_the_motion_behind_perfect_markers_is_recovered_with_coupled_coordinates():
    model, markers, values, recording = case(30)
    fit = fit_motion(model, markers, recording)
    assert columns(fit, values).max() < 1e-8
    assert np.abs(fit.column("patella_r_angle") - 0.7 * values["knee_r"] - 0.1).max() < 1e-8
    assert fit.errors.max() < 1e-8
    assert set(fit.status) == {MotionStatus.OPTIMAL}
    assert fit.table().names == model.names


def test_derivatives_of_the_objective_are_exact(noisy):
    model, markers, recording, fit = noisy
    tasks = IkTasks(coordinates={"knee_r": 0.3}, targets={"knee_r": 0.2})
    objective = motion_problem(model, markers, recording, tasks, "penalty").objective.take(np.arange(3))
    free = objective.layout.coordinates
    q = np.column_stack([fit.column(name)[:3] for name in free]) + 0.05
    q[:, free.index("knee_l")] = 2.1  # beyond its range
    _, gradient, _, newton = objective.normal_equations(q)
    for i, h in enumerate(1e-6 * np.eye(len(free))):
        upper, lower = (objective.normal_equations(q + sign * h) for sign in (1, -1))
        assert (upper[0] - lower[0]) / 4e-6 == pytest.approx(gradient[:, i], abs=1e-8)
        if not free[i].startswith("knee"):  # second derivatives of splines and couplers are left out
            column = (upper[1] - lower[1]) / 2e-6
            rest = [j for j, name in enumerate(free) if not name.startswith("knee")]
            assert column[:, rest] == pytest.approx(newton[:, rest, i], abs=1e-7)


def test_no_small_step_lowers_the_sum_of_squared_errors(noisy):
    model, markers, recording, fit = noisy
    objective = motion_problem(model, markers, recording, IkTasks(), "clamped").objective
    q = np.column_stack([fit.column(name) for name in objective.layout.coordinates])
    assert np.abs(objective.normal_equations(q)[1]).max() < 1e-9
    assert fit.cost == pytest.approx((fit.errors**2).mean(axis=1))


def test_a_spoilt_frame_changes_no_other_and_missing_markers_are_named(noisy):
    model, markers, recording, fit = noisy

    def spoil(at):
        at[16] = at[16, ::-1]  # a frame that others start from
        at[20, 3] = np.nan
        at[25] = np.nan

    broken = fit_motion(model, markers, with_markers(recording, spoil))
    complete = [i for i in range(40) if i not in (16, 20, 25)]
    assert np.abs(broken.values[complete] - fit.values[complete]).max() < 1e-7
    assert list(broken.status[[16, 20, 25]]) == [
        MotionStatus.LARGE_ERROR,
        MotionStatus.MISSING_MARKER,
        MotionStatus.NO_MARKER,
    ]
    assert np.isnan(broken.errors[20, 3])
    assert np.isnan(broken.values[25]).all()
    assert any("'pelvis3' is missing in 2 of 40 frames" in note for note in broken.notes)


@pytest.mark.parametrize("angle", [0.5 * np.pi, np.pi, -2.0])
def test_a_turned_laboratory_gives_the_same_joint_angles(noisy, angle):
    model, markers, recording, fit = noisy
    c, s = np.cos(angle), np.sin(angle)
    turned = recording.markers @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]).T + [1.0, 0.0, -2.0]
    shuffled = replace(recording, markers=turned[:, ::-1], marker_names=recording.marker_names[::-1])
    turned_fit = fit_motion(model, markers, shuffled)
    inner = [name for name in model.names if not name.startswith(("turn", "shift"))]
    assert max(np.abs(turned_fit.column(name) - fit.column(name)).max() for name in inner) < 1e-7


@pytest.mark.parametrize(
    ("limits", "clamped", "largest"),
    [
        ("clamped", True, 0.1),
        ("clamped", False, 0.6),
        ("hard", False, 0.1),
        ("none", True, 0.6),
        ("penalty", False, 0.3),
    ],
)
def test_ranges_are_kept_as_the_limits_say(limits, clamped, largest):
    content = subject(knee=f"<range>-2 0.1</range><clamped>{str(clamped).lower()}</clamped>").replace(
        b"<range>-2 2</range><range>", b"<range>"
    )
    model, markers = read_model(content), read_markers(content)
    values = motion(model, 10)
    values["knee_r"] = np.linspace(-0.2, 0.6, 10)
    fit = fit_motion(model, markers, recorded(model, markers, values), limits=limits)
    assert fit.column("knee_r").max() == pytest.approx(largest, abs=0.2 if limits == "penalty" else 1e-8)
    if largest == 0.1:
        assert fit.at_limit[:, model.names.index("knee_r")].sum() >= 5
        assert any("'knee_r' is at an end of its range" in note for note in fit.notes)


def test_coordinates_that_the_markers_do_not_determine_are_named_and_stay():
    model, markers, values, recording = case(6)
    fit = fit_motion(model, tuple(m for m in markers if not m.name.startswith(("shank_l", "patella_l"))), recording)
    assert [name for name, lost in zip(model.names, fit.unobservable[0], strict=True) if lost] == ["knee_l"]
    assert set(fit.status) == {MotionStatus.UNOBSERVABLE}
    assert np.abs(fit.column("knee_l")).max() == 0.0
    assert np.abs(fit.column("flexion_r") - values["flexion_r"]).max() < 1e-8


@pytest.mark.parametrize("pair", [("thigh_r1", "thigh_r3"), ("shank_l0", "shank_r0")])
def test_swapped_markers_are_named(noisy, pair):
    model, markers, recording, _ = noisy
    first, second = (recording.marker_names.index(name) for name in pair)
    swapped = with_markers(recording, lambda at: at.__setitem__((slice(None), [first, second]), at[:, [second, first]]))
    notes = fit_motion(model, markers, swapped).notes
    assert any(f"'{a}' and '{b}' are probably swapped" in n for n in notes for a, b in (pair, pair[::-1]))


def test_a_marker_on_the_wrong_spot_is_named(noisy):
    model, markers, recording, fit = noisy
    assert not any("probably" in note or "mm" in note for note in fit.notes)

    def spoil(at):
        at[:, 5] += [0.0, 0.25, 0.0]
        at[:, 7] = np.nan

    moved = with_markers(recording, spoil)
    assert any(
        f"when they do not pull: '{markers[5].name}'" in note for note in fit_motion(model, markers, moved).notes
    )


def test_weighted_coordinates_follow_targets_defaults_and_tables(noisy):
    model, markers, recording, _ = noisy
    table = TimeTable(recording.time, ("knee_l",), np.full((40, 1), 30.0), in_degrees=True)
    tasks = IkTasks(
        coordinates={"knee_r": 1e4, "knee_l": 1e4, "flexion_r": 1e4}, targets={"knee_r": -0.3},
        from_table=frozenset({"knee_l"}), references=table, window=(0.1, 0.2),
    )  # fmt: skip
    fit = fit_motion(model, markers, recording, tasks)
    alike = dict.fromkeys(recording.marker_names, 1.0)
    weighted = fit_motion(model, markers, recording, replace(tasks, markers={**alike, "pelvs0": 2.0}))
    assert any("'pelvs0' has no effect" in note and "'pelvis0'" in note for note in weighted.notes)
    assert np.abs(weighted.values - fit.values).max() < 1e-9
    assert len(fit.time) == 11
    for name, value in (("knee_r", -0.3), ("knee_l", np.pi / 6), ("flexion_r", 0.0)):
        assert fit.column(name) == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (IkTasks(markers={"pelvis9": 1.0}), "no weighted marker is both on the model"),
        (IkTasks(coordinates={"knee": 1.0}), "'knee', which is not a coordinate"),
        (IkTasks(window=(5.0, 6.0)), "between 5 and 6 s"),
        (IkTasks(coordinates={"knee_r": 1.0}, from_table=frozenset({"knee_r"})), "reads a table"),
        (IkTasks(markers={"pelvis0": 0.0}), "no frame has a weighted marker"),
    ],
)
def test_tasks_that_do_not_fit_are_refused(noisy, tasks, message):
    model, markers, recording, _ = noisy
    with pytest.raises(MarkerError, match=message):
        fit_motion(model, markers, recording, tasks)


def test_a_model_that_cannot_move_is_refused(noisy):
    model, markers, recording, _ = noisy
    locked = replace(model, coordinates=tuple(replace(c, locked=True) for c in model.coordinates))
    with pytest.raises(MarkerError, match="no coordinate that is free"):
        fit_motion(locked, markers, recording)
    fixed = tuple(replace(c, locked=c.name == "knee_r") for c in model.coordinates)
    assert fit_motion(replace(model, coordinates=fixed), markers, recording).column("knee_r").tolist() == [0.0] * 40


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ("<IKTaskSet><objects><Task/></objects></IKTaskSet>", "not a supported task"),
        (task("IKMarkerTask", "<weight>-1</weight>"), "negative"),
        (task("IKCoordinateTask", "<value_type>x</value_type>"), "'x' is not one of"),
        ("", "no <IKTaskSet>"),
    ],
)
def test_set_up_files_are_refused_with_line_and_column(tasks, message):
    content = f"<OpenSimDocument><InverseKinematicsTool>{tasks}</InverseKinematicsTool></OpenSimDocument>"
    with pytest.raises(ModelError, match=f"line 1.*{message}"):
        read_ik_setup(content.encode())


def test_the_walk_of_gait2392_is_fitted_better_than_by_opensim_within_a_tenth_of_a_degree(opensim):
    folder = opensim / "pipeline_gait2392"
    content = (folder / "reference/subject01_simbody.osim").read_bytes()
    model, markers = read_model(content), read_markers(content)
    recording = read_recording(InputFile("walk.trc", (folder / "subject01_walk1.trc").read_bytes()))
    tasks = read_ik_setup((folder / "subject01_Setup_IK.xml").read_bytes()).tasks
    fit = fit_motion(model, markers, recording, tasks)
    objective = motion_problem(model, markers, recording, tasks, "clamped").objective
    free = objective.layout.coordinates
    turning = [c.name for c in model.coordinates if c.rotational]
    file = InputFile("ik.mot", (folder / "reference/subject01_walk1_ik.mot").read_bytes())
    theirs = read_table(file).radians(turning)
    peer_values = np.column_stack([theirs.column(name) for name in free])
    assert len(fit.time) == 121
    assert (fit.cost - objective.costs(peer_values)).max() < 1e-9  # -1e-11 was seen: never above OpenSim's
    off = {name: np.abs(fit.column(name) - theirs.column(name)).max() for name in free}
    _, gradient, _, curvature = objective.normal_equations(np.column_stack([fit.column(name) for name in free]))
    assert np.abs(gradient).max() < 1e-9  # a minimum: no slope, and curved upwards in every direction
    assert np.linalg.eigvalsh(curvature).min() > 0.0
    # flat about the trunk's axis: OpenSim's frame that is farthest off has 4e-5 more of the objective. At an accuracy
    # of 1e-9 OpenSim agrees with these to 7e-4 degrees: tests/bench/muscle/test_bench_inverse_kinematics.py
    farthest = int(np.argmax(np.abs(fit.column("lumbar_rotation") - theirs.column("lumbar_rotation"))))
    assert objective.costs(peer_values)[farthest] / fit.cost[farthest] - 1.0 < 1e-4
    assert max(np.degrees(off[name]) for name in turning if name != "lumbar_rotation") < 0.1
    assert np.degrees(off["lumbar_rotation"]) < 0.2
    assert max(off[name] for name in free if name not in turning) < 1e-3
