"""A push-up of the full model: smooth consistent motion on four fixed contacts, plates from its own inverse dynamics.

The exercise of Nunes 2017: hands under the shoulders with the elbows beside the body ("closed" grip), or wider with the
upper arms abducted ("open" grip).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.consistency.contacts import Contacts
from designopt_wholebody.consistency.positions import consistent_positions
from designopt_wholebody.consistency.rates import Motion, motion
from designopt_wholebody.dynamics.inverse import inverse_dynamics
from designopt_wholebody.dynamics.loads import Loads
from designopt_wholebody.kinematics.posture import posture, rotation
from designopt_wholebody.model.library import load_model
from designopt_wholebody.subject import Subject, make_subject
from designopt_wholebody.synthetic.synthetic_trial import Errors, SyntheticTrial, plate, record_trial

Grip = Literal["closed", "open"]

#: Points that stay on the ground.
_HELD = (("hand_R", "CAP_R"), ("hand_R", "PMC_R"), ("hand_L", "CAP_L"), ("hand_L", "PMC_L"))
_TOES = (("foot_R", "MT1_R"), ("foot_R", "MT5_R"), ("foot_L", "MT1_L"), ("foot_L", "MT5_L"))
_CARRIED = ("hand_R", "hand_L", "foot_R", "foot_L")

#: Degrees of elbow flexion at the top and at the bottom.
_TOP, _BOTTOM = 25.0, 95.0
_PERIOD = 2.0  # s
_HAND_SHARE = 0.65


@lru_cache(maxsize=8)
def pushup(
    grip: Grip = "closed",
    *,
    cycles: int = 5,
    rate: float = 100.0,
    skin: float = 0.005,
    noise: float = 0.0003,
    seed: int = 1,
) -> SyntheticTrial:
    """A trial of `cycles` push-ups of 2 s at `rate` Hz; repeated calls return the cached trial.

    `skin` and `noise` are the markers' `Errors`. The hands carry 65 % of the load that both pairs of contacts can
    share; each plate's force is this with the smallest change that balances the motion exactly, at a fixed point of
    the hand or foot.
    """
    subject, true = _true_motion(grip, cycles, rate)
    contact = _shared_forces(subject, true, _HAND_SHARE)
    plates = []
    for k, name in enumerate(_CARRIED):
        middle = _pressed_point(subject, true.q[:1], name)[0]
        plates.append(plate(name, middle, contact.force[:, k].copy(), contact.moment[:, k].copy(), rate))
    return record_trial(
        subject, true, contact, tuple(plates), rate, _PERIOD, Errors(skin, noise, (seed, grip == "open"))
    )


@lru_cache(maxsize=4)
def _true_motion(grip: Grip, cycles: int, rate: float) -> tuple[Subject, Motion]:
    """The subject and its motion."""
    subject = make_subject(load_model("wholebody21"))
    t = np.arange(round(cycles * _PERIOD * rate) + 1) / rate
    return subject, motion(subject, t, _course(subject, grip, 2.0 * np.pi / _PERIOD * t), rate)


def _course(subject: Subject, grip: Grip, phase: Floats) -> Floats:
    """(n, N) consistent coordinates: a guess by joint turns, moved onto the contacts and the constraints."""
    angle = np.deg2rad(_TOP + (_BOTTOM - _TOP) * 0.5 * (1.0 - np.cos(phase)))
    guess = _guess(subject, grip, angle)
    fixed_points = (*_HELD, *_TOES)
    local = np.stack([subject.bodies[b].local[name] for b, name in fixed_points])
    first = guess[:1]
    target = np.stack(
        [subject.bodies[b].position(first[0], subject.bodies[b].landmark(name)) for b, name in fixed_points]
    )
    for pair, height in ((slice(0, 2), 0.03), (slice(2, 4), 0.03), (slice(4, 6), 0.0), (slice(6, 8), 0.0)):
        target[pair, 1] += height - target[pair, 1].mean()  # both points alike: their distance is the body's
    frames = len(guess)
    contacts = Contacts(
        tuple(b for b, _ in fixed_points),
        np.repeat(local[None], frames, axis=0),
        np.repeat(target[None], frames, axis=0),
        np.ones((frames, len(fixed_points)), dtype=bool),
    )
    consistent = consistent_positions(subject, guess, contacts=contacts)
    if not consistent.usable.all():
        raise RuntimeError(
            f"the push-up with {grip} grip has {int((~consistent.usable).sum())} frames without a posture"
        )
    return consistent.q


def _guess(subject: Subject, grip: Grip, elbow: Floats) -> Floats:
    """Prone, straight from toes to head, arms by two-link geometry; elbow flexion (n,) rad."""
    marks = subject.landmarks
    upper = float(np.linalg.norm(marks["PME_R"] - marks["GU_R"]))
    fore = float(np.linalg.norm(marks["CAP_R"] - marks["PME_R"]))
    reach = np.sqrt(upper**2 + fore**2 + 2.0 * upper * fore * np.cos(elbow))
    width = 0.02 if grip == "closed" else 0.22
    height = np.sqrt(np.maximum(reach**2 - width**2, 0.01)) + 0.03
    toes = 0.5 * (marks["MT1_R"] + marks["MT5_R"])
    toes = np.array([toes[0], toes[1], 0.0])
    shoulder = np.array([marks["GU_R"][0], marks["GU_R"][1], 0.0]) - toes
    length = float(np.hypot(shoulder[0], shoulder[1]))
    lean = np.arctan2(shoulder[0], shoulder[1])
    # turned about z so that the line from the toes to the shoulders rises to the height of the shoulders
    turn = rotation([0, 0, 1], -(np.pi / 2.0 - lean - np.arcsin(height / length)))
    root = marks[subject.model.root.point] if subject.model.root is not None else np.zeros(3)
    shift = toes + np.einsum("fij,j->fi", turn, root - toes) - root - np.array([toes[0], toes[1], 0.0])
    turns: dict[str, Floats] = {}
    for side, sign in (("R", 1.0), ("L", -1.0)):
        S = np.einsum("fij,j->fi", turn, marks[f"GU_{side}"] - toes)
        wrist = np.stack([S[:1, 0] + 0.0 * elbow, 0.03 + 0.0 * elbow, S[:, 2] + sign * width], axis=1)
        line = wrist - S
        distance = np.linalg.norm(line, axis=1, keepdims=True)
        line = line / distance
        hint = np.array([-1.0, 0.0, 0.45 * sign]) if grip == "closed" else np.array([-0.25, 0.0, sign])
        out = hint - line * (line @ hint)[:, None]
        out = out / np.linalg.norm(out, axis=1, keepdims=True)
        along = (upper**2 - fore**2 + distance**2) / (2.0 * distance)
        joint = S + along * line + np.sqrt(np.maximum(upper**2 - along**2, 1e-6)) * out
        h, f = (joint - S) / upper, wrist - joint
        f = f / np.linalg.norm(f, axis=1, keepdims=True)
        w = np.cross(h, f)
        w = w / np.linalg.norm(w, axis=1, keepdims=True)
        humerus = np.stack([np.cross(-h, w), -h, w], axis=-1) @ _static(subject, f"humerus_{side}").T
        ulna = np.stack([np.cross(-f, w), -f, w], axis=-1) @ _static(subject, f"ulna_{side}").T
        # hands flat, fingers towards the head, palms down: u down, v backwards
        flat = np.broadcast_to(np.array([[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]).T, humerus.shape)
        hand = flat @ _static(subject, f"hand_{side}").T
        pronation = float(np.deg2rad(150.0 if grip == "closed" else 110.0))
        forearm = ulna @ rotation(_axis(subject, side), np.full(len(elbow), pronation * sign))
        inverse = turn.swapaxes(-1, -2)
        turns[f"glenohumeral_{side}"] = inverse @ humerus
        turns[f"elbow_{side}"] = humerus.swapaxes(-1, -2) @ ulna
        turns[f"radioulnar_{side}"] = ulna.swapaxes(-1, -2) @ forearm
        turns[f"wrist_{side}"] = forearm.swapaxes(-1, -2) @ hand
    pitch = np.arcsin(height / length)
    for side in "RL":
        # feet stand on their toes: the sole is upright
        turns[f"ankle_{side}"] = rotation([0, 0, 1], 0.3 - pitch)
    return posture(subject, turns, root_turn=turn, root_shift=shift)


def _axis(subject: Subject, side: str) -> Floats:
    line = subject.landmarks[f"EL_{side}"] - subject.landmarks[f"EU_{side}"]
    return np.asarray(line / np.linalg.norm(line))


def _static(subject: Subject, name: str) -> Floats:
    return subject.bodies[name].axes(subject.q0)


def _shared_forces(subject: Subject, true_motion: Motion, hand_share: float) -> Loads:
    """Forces at four fixed points that balance the motion, closest to shares of the weight."""
    joint_loads = inverse_dynamics(subject, true_motion, method="velocity_transformation")
    assert subject.model.root is not None
    root = subject.bodies[subject.model.root.segment]
    at_root = root.position(true_motion.q, root.landmark(subject.model.root.point))
    total = joint_loads.residual_force
    about_origin = joint_loads.residual_torque + np.cross(at_root, total)
    frames = len(true_motion.q)
    points = np.stack([_pressed_point(subject, true_motion.q, name) for name in _CARRIED], axis=1)
    nominal = np.array([hand_share, hand_share, 1.0 - hand_share, 1.0 - hand_share]) / 2.0
    prior = nominal[None, :, None] * total[:, None]
    A = np.zeros((frames, 6, 12))
    for k in range(4):
        A[:, :3, 3 * k : 3 * k + 3] = np.eye(3)
        x, y, z = points[:, k].T
        o = np.zeros(frames)
        A[:, 3:, 3 * k : 3 * k + 3] = np.stack([o, -z, y, z, o, -x, -y, x, o], axis=1).reshape(frames, 3, 3)
    lacking = np.concatenate([total, about_origin], axis=1) - np.einsum("fij,fj->fi", A, prior.reshape(frames, 12))
    change = np.einsum("fij,fj->fi", np.linalg.pinv(A), lacking)
    force = prior + change.reshape(frames, 4, 3)
    return Loads(_CARRIED, force, np.cross(points, force))


def _pressed_point(subject: Subject, q: Floats, name: str) -> Floats:
    """(n, 3) where a hand or foot presses on its plate, on the ground."""
    body = subject.bodies[name]
    outline = subject.model.contacts[name]
    marks = outline if name.startswith("hand") else outline[1:]
    point = np.mean([body.position(q, body.landmark(mark)) for mark in marks], axis=0)
    point[:, 1] = 0.0
    return np.asarray(point)
