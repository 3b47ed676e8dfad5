"""The synthetic walk: consistent, balanced, carried by feet that do not slip, and analysed as a laboratory's trial."""

import numpy as np
import pytest
from designopt_recordings.frames import FrameStatus
from designopt_wholebody.kinematics.angles import joint_angles
from designopt_wholebody.synthetic.synthetic_trial import SyntheticTrial
from designopt_wholebody.synthetic.walk import PERIOD, STRIDE, walk
from designopt_wholebody.trial.analysis import Settings, analyse


@pytest.fixture(scope="module")
def clean() -> SyntheticTrial:
    return walk(cycles=2, rate=50.0, skin=0.0, noise=0.0)


def test_the_walk_is_consistent_and_its_plates_balance_it(clean: SyntheticTrial) -> None:
    assert np.abs(clean.subject.constraints.values(clean.motion.q)).max() < 1e-9
    assert np.abs(clean.loads.residual_force).max() < 1e-9
    assert np.abs(clean.loads.residual_torque).max() < 1e-9
    lift = clean.contact.force[:, :, 1]
    weight = 9.81 * sum(body.inertia.mass for body in clean.subject.bodies.values())
    assert lift.min() >= 0.0
    assert lift[:110].sum(axis=1).mean() == pytest.approx(weight, rel=0.01)
    assert (lift.min(axis=1) == 0.0).mean() > 0.7  # one foot swings most of the time


def test_it_moves_a_stride_in_each_cycle(clean: SyntheticTrial) -> None:
    pelvis = clean.subject.bodies["pelvis"]
    position = pelvis.position(clean.motion.q, pelvis.landmark("CAL"))
    frames = round(50.0 * PERIOD)
    assert np.allclose(position[frames:] - position[:-frames], [STRIDE, 0.0, 0.0], atol=1e-9)
    angles = joint_angles(clean.subject, clean.motion.q)
    for side in "RL":
        assert 0.6 < np.ptp(angles.angle(f"hip_{side}.flexion")) < 1.0  # 34 to 57 degrees
        assert 0.6 < np.ptp(angles.angle(f"knee_{side}.flexion")) < 1.2
        assert angles.angle(f"knee_{side}.flexion").min() > 0.1


def test_feet_stand_still_while_their_soles_carry(clean: SyntheticTrial) -> None:
    """From 0.12 to 0.36 of the cycle the right sole lies on the ground."""
    foot = clean.subject.bodies["foot_R"]
    flat = slice(7, 20)  # of 55 frames
    for name in ("CALC_R", "MT1_R", "MT5_R"):
        position = foot.position(clean.motion.q, foot.landmark(name))
        assert np.ptp(position[flat], axis=0).max() < 1e-9
        assert position[:, 1].min() > 0.0


def test_without_errors_of_markers_the_truth_comes_back(clean: SyntheticTrial) -> None:
    analysis = analyse(clean.subject, clean.recording, Settings(preparation="consistent"))
    assert (analysis.status[2:-2] == FrameStatus.OK).all()
    assert np.abs(analysis.motion.q - clean.motion.q).max() < 3e-3  # epicondyles are 0.2 mm off the elbow's axis
    assert np.sqrt(np.mean((analysis.loads.torque - clean.loads.torque)[5:-5] ** 2)) < 0.2
    for bearing in analysis.plates.bearings:
        carried = {bearing.segments[k] for k in np.unique(bearing.segment_indices) if k >= 0}
        assert carried == {f"foot_{bearing.plate[-1]}"}
        assert np.nanmax(bearing.distance) < 0.01


def test_a_seed_changes_the_markers_alone() -> None:
    first, second = (walk(cycles=1, rate=20.0, seed=seed) for seed in (1, 2))
    assert np.array_equal(first.motion.q, second.motion.q)
    away = first.recording.markers - second.recording.markers
    assert 0.003 < np.sqrt(np.mean(away**2)) < 0.012  # √2 times 5 mm
