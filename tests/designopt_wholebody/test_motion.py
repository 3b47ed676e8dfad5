"""Derivatives, projected velocities and accelerations, joint angles, postures from joint rotations."""

from dataclasses import replace

import numpy as np
import pytest
from body_postures import random_postures, turns_of, with_errors
from designopt_wholebody.consistency.rates import Projection, derivative, motion
from designopt_wholebody.dynamics.balance import angle_axes
from designopt_wholebody.kinematics.angles import joint_angles
from designopt_wholebody.kinematics.posture import posture, rotation
from designopt_wholebody.kinematics.tree import NoTree, tree
from designopt_wholebody.model.library import load_model
from designopt_wholebody.subject import Subject, make_subject
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

Array = NDArray[np.float64]


def test_derivatives_are_of_second_order_inside_and_at_the_ends() -> None:
    errors = []
    for rate in (100.0, 200.0):
        t = np.arange(0.0, 1.0, 1.0 / rate)
        derivatives, one_sided = derivative(np.sin(3 * t)[:, None], rate)
        assert np.array_equal(np.flatnonzero(one_sided), [0, len(t) - 1])
        errors.append(np.abs(derivatives[:, 0] - 3 * np.cos(3 * t)).max())
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def test_a_missing_frame_changes_only_its_neighbours_derivatives() -> None:
    t = np.arange(50) / 100.0
    values = np.column_stack([np.sin(t), t**2])
    complete, _ = derivative(values, 100.0)
    values[20, 1] = np.nan
    derivatives, one_sided = derivative(values, 100.0)
    assert np.isnan(derivatives[20]).all()
    assert np.array_equal(np.flatnonzero(one_sided), [0, 19, 21, 49])
    elsewhere = np.setdiff1d(np.arange(50), [19, 20, 21])
    assert np.array_equal(derivatives[elsewhere], complete[elsewhere])
    assert np.allclose(derivatives[[19, 21]], complete[[19, 21]], atol=1e-4)
    values[[22, 18]] = np.nan
    lonely, _ = derivative(values, 100.0)
    assert np.isnan(lonely[[18, 19, 20, 21, 22]]).all()


def test_projected_velocities_and_accelerations_fulfil_the_constraints(full: Subject) -> None:
    rng = np.random.default_rng(1)
    q = random_postures(full, 6, seed=2, size=0.15)
    measured, second = rng.normal(size=q.shape), 10.0 * rng.normal(size=q.shape)
    projection = Projection(full)
    qdot = projection.velocities(q, measured)
    qddot = projection.accelerations(q, qdot, second)
    J = full.constraints.dense(full.constraints.entries(q))
    assert np.abs(np.einsum("fmn,fn->fm", J, qdot)).max() < 1e-9
    assert np.abs(np.einsum("fmn,fn->fm", J, qddot) + full.constraints.bias(q, qdot)).max() < 1e-8
    # the nearest: q̇ = q̇* - J⁺ J q̇* with a dense pseudoinverse; singular values are above 0.02, or round-off
    nearest = measured - np.einsum("fnm,fmk,fk->fn", np.linalg.pinv(J, rcond=1e-9), J, measured)
    assert np.abs(qdot - nearest).max() < 1e-9


@pytest.mark.parametrize("model", ["wholebody21", "arm7", "lower_limbs7"])
def test_recursion_and_rows_project_alike(model: str) -> None:
    """Rows are taken where a metric is given: here the identity."""
    subject = make_subject(load_model(model))
    rng = np.random.default_rng(5)
    q = random_postures(subject, 6, seed=6, size=0.15)
    measured, second = rng.normal(size=q.shape), 10.0 * rng.normal(size=q.shape)
    rows = Projection(subject, [np.eye(body.size) for body in subject.bodies.values()])
    qdot = rows.velocities(q, measured)
    assert np.abs(Projection(subject).velocities(q, measured) - qdot).max() < 1e-10
    assert np.abs(Projection(subject).accelerations(q, qdot, second) - rows.accelerations(q, qdot, second)).max() < 1e-9


def test_coordinates_that_are_not_consistent_are_projected_on_their_own_rows(full: Subject) -> None:
    q = with_errors(full, random_postures(full, 3, seed=7), seed=8)
    qdot = Projection(full).velocities(q, np.random.default_rng(9).normal(size=q.shape))
    J = full.constraints.dense(full.constraints.entries(q))
    assert np.abs(np.einsum("fmn,fn->fm", J, qdot)).max() < 1e-6


def test_the_metric_of_masses_moves_light_bodies_more(full: Subject) -> None:
    q, measured = random_postures(full, 1, seed=3), np.random.default_rng(4).normal(size=(1, full.n))
    blocks = full.mass_blocks()
    change = Projection(full, blocks).velocities(q, measured)[0] - measured[0]
    plain = Projection(full).velocities(q, measured)[0] - measured[0]
    M = full.mass_matrix()
    assert change @ M @ change < plain @ M @ plain
    J = full.constraints.dense(full.constraints.entries(q))[0]
    assert np.abs(J @ (measured[0] + change)).max() < 1e-8


def test_missing_frames_stay_missing_and_alone(full: Subject) -> None:
    t = np.arange(12) / 100.0
    q = posture(full, {"hip_R": rotation([0, 0, 1], 0.5 * np.sin(6 * t))}, root_shift=np.outer(t, [1.0, 0, 0]))
    complete = motion(full, t, q, 100.0)
    q[5, 3] = np.nan
    gapped = motion(full, t, q, 100.0)
    assert np.array_equal(np.flatnonzero(~gapped.complete_frames), [5])
    far = [0, 1, 2, 8, 9, 10, 11]
    assert np.array_equal(gapped.qddot[far], complete.qddot[far])
    assert not gapped.one_sided[[2, 8]].any()
    assert gapped.one_sided[[4, 6]].all()


def test_differences_of_a_rigid_motion_are_almost_projected(full: Subject) -> None:
    t = np.arange(40) / 200.0
    axis = full.bodies["thigh_R"].axes(full.q0)[:, 2]
    q = posture(full, {"knee_R": rotation(axis, -np.sin(5 * t))}, root_turn=rotation([0, 1, 0], t))
    free, projected = motion(full, t, q, 200.0, project=False), motion(full, t, q, 200.0)
    assert np.abs(free.qdot - projected.qdot)[2:-2].max() < 1e-3
    assert np.abs(free.qdot - projected.qdot).max() > 0.0


def test_postures_close_every_joint_of_the_tree(full: Subject) -> None:
    rng = np.random.default_rng(5)
    turns = {name: turns_of(rng, 4, 0.5) for name, joint in full.model.joints.items() if joint.at is not None}
    q = posture(full, turns, root_turn=turns_of(rng, 4, 1.0), root_shift=rng.normal(size=(4, 3)))
    values = full.constraints.values(q)
    closed = [k for k, name in enumerate(full.constraints.names) if name.kind in ("rigid", "spherical")]
    assert np.abs(values[:, closed]).max() < 1e-13


def test_a_turn_about_the_axis_of_a_revolute_joint_is_allowed_by_it(full: Subject) -> None:
    axis = full.bodies["humerus_R"].axes(full.q0)[:, 2]
    q = posture(full, {"elbow_R": rotation(axis, np.linspace(0, 2, 5))})
    assert np.abs(full.constraints.values(q)).max() < 1e-13
    assert np.allclose(np.diff(joint_angles(full, q).angle("elbow_R.flexion")), 0.5, atol=0.02)


def test_segments_that_nothing_carries_are_named() -> None:
    model = load_model("lower_limbs7")
    cut = replace(model, joints={name: joint for name, joint in model.joints.items() if name != "knee_L"})
    with pytest.raises(NoTree, match="no chain of joints leads to shank_L, foot_L"):
        tree(make_subject(cut))


def elementary(axis: str, angle: Array) -> Array:
    """(f, 3, 3) turns by `angle` (f,) about an axis, written out."""
    c, s, one, none = np.cos(angle), np.sin(angle), np.ones_like(angle), np.zeros_like(angle)
    rows = {
        "X": [[one, none, none], [none, c, -s], [none, s, c]],
        "Y": [[c, none, s], [none, one, none], [-s, none, c]],
        "Z": [[c, -s, none], [s, c, none], [none, none, one]],
    }
    return np.moveaxis(np.array(rows[axis]), 2, 0)


def hip_by(sequence: str) -> Subject:
    """The whole body whose right hip has angles a, b and c of this sequence."""
    model = load_model("wholebody21")
    stated = replace(model.angles["hip_R"], sequence=sequence, names={"a": 1.0, "b": 1.0, "c": 1.0})
    return make_subject(replace(model, angles={"hip_R": stated}))


@pytest.mark.parametrize("sequence", ["ZXY", "YXZ", "YXY"])
def test_angles_are_turns_about_axes_that_move_with_the_segment(sequence: str) -> None:
    """Spec section 8: R = R_1(a) R_2(b) R_3(c) carries the axes of the proximal segment into those of the distal one;
    a turn by one angle alone is about its axis (Grood & Suntay 1983)."""
    subject = hip_by(sequence)
    turns = turns_of(np.random.default_rng(6), 20, 0.5)
    q = posture(subject, {"hip_R": turns @ elementary("X", np.full(20, 0.6))}, root_turn=turns[::-1])
    proximal, distal = (subject.bodies[name].axes(q) for name in ("pelvis", "thigh_R"))
    angles = joint_angles(subject, q)
    values = [angles.angle(f"hip_R.{name}") for name in "abc"]

    def distal_by(moved: list[Array]) -> Array:
        first, second, third = (elementary(k, v) for k, v in zip(sequence, moved, strict=True))
        return proximal @ first @ second @ third

    assert np.allclose(distal_by(values), distal, atol=1e-12)
    assert not angles.gimbal.any()
    axes = angle_axes(subject, q, subject.model.angles["hip_R"])
    for k in range(3):
        later, earlier = ([v + s * (j == k) for j, v in enumerate(values)] for s in (1e-5, -1e-5))
        turned = Rotation.from_matrix(distal_by(later) @ distal_by(earlier).swapaxes(-1, -2)).as_rotvec()
        assert np.allclose(turned / 2e-5, axes[:, k], atol=1e-8)


@pytest.mark.parametrize("sequence", ["ZXY", "YXZ", "YXY"])
def test_angles_are_ill_defined_where_the_first_and_the_last_axis_are_nearly_parallel(sequence: str) -> None:
    subject = hip_by(sequence)
    proximal, distal = (subject.bodies[name].axes(subject.q0[None])[0] for name in ("pelvis", "thigh_R"))
    turns = proximal @ rotation([1, 0, 0], np.linspace(-0.2, 2.0, 41)) @ distal.T
    q = posture(subject, {"hip_R": turns})
    first, _, last = angle_axes(subject, q, subject.model.angles["hip_R"]).swapaxes(0, 1)
    parallel = np.linalg.norm(np.cross(first, last), axis=1) < 0.05
    assert parallel.any()
    assert np.array_equal(joint_angles(subject, q).gimbal[:, 1], parallel)


def test_both_sides_name_the_same_movement(full: Subject) -> None:
    M = np.diag([1.0, 1.0, -1.0])
    right = turns_of(np.random.default_rng(7), 5, 0.3)
    q = posture(full, {"hip_R": right, "hip_L": M @ right @ M})
    angles = joint_angles(full, q)
    for name in ("flexion", "abduction", "internal_rotation"):
        assert np.allclose(angles.angle(f"hip_R.{name}"), angles.angle(f"hip_L.{name}"), atol=1e-12), name


@pytest.mark.parametrize(
    ("joint", "axis", "angle"),
    [
        ("hip_R", [0, 0, 1], "hip_R.flexion"),  # about z, which points to the right, forward
        ("hip_R", [1, 0, 0], "hip_R.-abduction"),  # the right leg to the left: adduction
        ("hip_R", [0, 1, 0], "hip_R.internal_rotation"),  # toes to the left
        ("knee_R", [0, 0, -1], "knee_R.flexion"),
        ("ankle_R", [0, 0, 1], "ankle_R.dorsiflexion"),
        ("neck", [0, 0, 1], "neck.extension"),
        ("neck", [1, 0, 0], "neck.right_bending"),
        ("neck", [0, 1, 0], "neck.left_rotation"),
        ("wrist_R", [0, 0, 1], "wrist_R.flexion"),  # palms face forward
        ("radioulnar_R", [0, 1, 0], "radioulnar_R.pronation"),
    ],
)
def test_a_movement_has_the_sign_of_its_name(full: Subject, joint: str, axis: list[float], angle: str) -> None:
    q = posture(full, {joint: rotation(axis, np.array([0.0, 0.2]))})
    name = angle.replace("-", "")
    change = np.diff(joint_angles(full, q).angle(name))[0]
    assert change * (-1.0 if "-" in angle else 1.0) == pytest.approx(0.2, abs=0.03)


def test_angles_are_continuous_and_missing_where_coordinates_are(full: Subject) -> None:
    q = posture(full, {}, root_turn=rotation([0, 1, 0], np.linspace(0, 12, 40)))
    q[7] = np.nan
    turned = posture(full, {"neck": rotation([0, 1, 0], np.linspace(0, 9, 40))})
    turned[7] = np.nan
    values = joint_angles(full, turned).angle("neck.left_rotation")
    assert np.array_equal(np.flatnonzero(np.isnan(values)), [7])
    assert np.nanmax(values) - np.nanmin(values) == pytest.approx(9.0, abs=0.2)
    assert np.isnan(joint_angles(full, q).values[7]).all()


def test_ill_defined_angles_are_flagged(full: Subject) -> None:
    q = posture(full, {"hip_R": rotation([1, 0, 0], np.array([0.1, np.pi / 2]))})
    angles = joint_angles(full, q)
    column = angles.names.index("hip_R.abduction")
    assert angles.gimbal[:, column].tolist() == [False, True]
    assert np.isfinite(angles.values[0]).all()
