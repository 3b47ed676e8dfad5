"""Springs, dampers and actuators of a model file: on joints and between points."""

import numpy as np
import pytest
from designopt_wholebody.forward.forces import Forces
from designopt_wholebody.forward.joint_springs import joint_springs
from designopt_wholebody.forward.simulation import SimulationMethod, measures, simulate
from designopt_wholebody.model.library import content_of
from designopt_wholebody.model.reading import read_model
from designopt_wholebody.subject import Subject, make_subject

from designopt.study.language.errors import StudyError

#: A plate on a vertical axle through its end, 0.5 m from the centre of mass: m l²/4 + J = 0.25 + 0.02 kg m².
DOOR = """\
model: door
mass: 1.0
landmarks:
  hinge: [0.0, 0.0, 0.0]
  edge: [1.0, 0.0, 0.0]
  top: [0.0, 1.0, 0.0]
  middle: [0.5, 0.0, 0.0]
segments:
  leaf:
    layout: 2p2v
    points: [hinge, edge]
    vectors: [v, w]
    landmarks: [middle, top]
    frame: {origin: hinge, u: [hinge, edge], v: [hinge, top], w: {cross: [u, v]}}
    inertia: {mass: 1.0, centre_at: [middle], tensor: [0.02, 0.02, 0.02, 0.0, 0.0, 0.0]}
joints:
  axle: {type: revolute, proximal: ground, distal: leaf, at: hinge, axis: [hinge, top], spring: {SPRING}}
"""
J = 0.27


def door(spring: str) -> Subject:
    return make_subject(read_model(DOOR.replace("SPRING", spring).encode(), "door.yaml", content_of))


def swung(subject: Subject, duration: float) -> tuple[Forces, np.ndarray, float]:
    forces = Forces(subject, joint_springs=joint_springs(subject))
    trajectory = simulate(
        forces, subject.q0, np.zeros(subject.n), duration, 0.001, SimulationMethod(formulation="LE", integrator="adams")
    )
    energy = measures(forces, trajectory).energy
    return forces, np.array([forces.joint_springs[0].angle(q) for q in trajectory.q]), float(np.ptp(energy))


def test_a_spring_on_a_joint_swings_with_its_frequency() -> None:
    """θ = θ0 (1 - cos √(k/J) t) from the static posture, with the rest at 10 degrees."""
    _, angle, drift = swung(door("stiffness: 2.7, rest: 10"), 1.0)
    t = np.linspace(0.0, 1.0, len(angle))
    assert np.abs(angle - np.deg2rad(10.0) * (1.0 - np.cos(np.sqrt(2.7 / J) * t))).max() < 1e-6
    assert drift < 1e-7


def test_a_damper_takes_the_spin_and_an_actuator_gives_it() -> None:
    """J θ̈ = u - c θ̇ from rest."""
    _, angle, _ = swung(door("damping: 0.54, torque: 0.27"), 1.0)
    t = np.linspace(0.0, 1.0, len(angle))
    assert np.abs(angle - (0.5 * t - 0.25 * (1.0 - np.exp(-2.0 * t)))).max() < 1e-6


@pytest.mark.parametrize("base", ["arm7", "wholebody21"])
def test_stiffness_and_damping_are_derivatives_of_the_force(base: str) -> None:
    text = f"""\
model: sprung
based_on: {base}
joints:
  elbow_R:
    spring: {{stiffness: 20 N m/rad, damping: 0.8, rest: 30 deg, torque: 2}}
"""
    subject = make_subject(read_model(text.encode(), "sprung.yaml", content_of))
    springs = joint_springs(subject)
    assert len(springs) == (2 if base == "wholebody21" else 1)
    for spring in springs:  # the left one is mirrored about the same axis to the right
        assert spring.spring.torque == 2.0
    rng = np.random.default_rng(4)
    q, qdot = subject.q0 + 0.05 * rng.normal(size=subject.n), rng.normal(size=subject.n)
    K, C = springs[-1].derivatives(q, qdot)
    columns = np.flatnonzero(np.abs(K).max(axis=0))
    assert 0 < len(columns) <= 24
    for k in columns:
        e = 1e-6 * np.eye(subject.n)[k]
        slope = (springs[-1].value(q + e, qdot) - springs[-1].value(q - e, qdot)) / 2e-6
        assert np.abs(slope + K[:, k]).max() < 1e-5
        slope = (springs[-1].value(q, qdot + e) - springs[-1].value(q, qdot - e)) / 2e-6
        assert np.abs(slope + C[:, k]).max() < 1e-6


def test_a_turn_about_another_axis_than_the_right_one_is_mirrored() -> None:
    text = "model: m\nbased_on: wholebody21\njoints:\n  radioulnar_R:\n    spring: {torque: 1, rest: 20}\n"
    model = read_model(text.encode(), "m.yaml", content_of)
    right, left = (model.joints[f"radioulnar_{side}"].spring for side in "RL")
    assert right is not None
    assert left is not None
    assert (left.torque, left.rest) == (-right.torque, -right.rest) == (-1.0, -20.0)


def test_springs_between_points_are_part_of_a_model_file() -> None:
    text = """\
model: tied
based_on: two_rods
springs:
  rope: {first: [ground, pivot], second: [lower, tip], stiffness: 200 N/m, rest: 1.5}
"""
    subject = make_subject(read_model(text.encode(), "tied.yaml", content_of))
    (rope,) = subject.model.springs.values()
    assert (rope.first, rope.stiffness, rope.rest) == (("ground", "pivot"), 200.0, 1.5)
    with pytest.raises(StudyError) as raised:
        read_model(text.replace("lower, tip", "lover, tip").encode(), "tied.yaml", content_of)
    assert (raised.value.issues[0].line, "did you mean 'lower'" in raised.value.issues[0].message) == (4, True)
    wrong = "model: x\nbased_on: arm7\njoints:\n  wrist_R: {spring: {torque: 1}}\n"
    with pytest.raises(StudyError, match="a joint of type universal has no 'spring'"):
        read_model(wrong.encode(), "x.yaml", content_of)
