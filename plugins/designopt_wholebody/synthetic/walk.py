"""A walk of the full model: smooth consistent motion, plates under the feet from its own inverse dynamics.

Paths of the feet are analytic: a foot rolls over heel, sole and toes without slipping, and swings from rest to rest.
The trunk sways such that the centre of pressure of the whole body moves under the supporting feet: the plates'
measurements are then the loads of the motion, to round-off.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from designopt_recordings.plate import ForcePlate

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

STRIDE = 1.05  # m in a cycle
PERIOD = 1.1  # s
#: Share of the cycle by which a foot has rolled onto its sole, lifts its heel, and leaves the ground.
_SOLE, _HEEL, _OFF = 0.12, 0.36, 0.62
#: Pitch of the foot as it meets the ground, and as it leaves it.
_STRIKE, _PUSH = np.deg2rad(18.0), np.deg2rad(-50.0)
_LIFT = 0.03  # m
_SIDES = (("R", 0.0), ("L", 0.5))
_FEET = ("foot_R", "foot_L")
_OUTLINE = ("CALC", "MT1", "MT5")
_AHEAD, _UP = np.eye(3)[:2]
#: Frames of the cycle and harmonics with which the sway is found, and how often it is corrected.
_COARSE, _HARMONICS, _CORRECTIONS = 66, 10, 4


@lru_cache(maxsize=4)
def walk(
    *, cycles: int = 2, rate: float = 100.0, skin: float = 0.005, noise: float = 0.0003, seed: int = 1
) -> SyntheticTrial:
    """A trial of `cycles` strides at `rate` Hz, 1.05 m in 1.1 s each; repeated calls return the cached trial.

    One plate lies under each step. `skin` and `noise` are the markers' `Errors`. A cycle has the whole number of frames
    nearest to 1.1 s.
    """
    subject, moving, frames = _true_motion(cycles, rate)
    contact, plates = _steps(subject, moving, frames, rate)
    return record_trial(subject, moving, contact, plates, rate, frames / rate, Errors(skin, noise, (seed, 2)))


@lru_cache(maxsize=4)
def _true_motion(cycles: int, rate: float) -> tuple[Subject, Motion, int]:
    """The subject, its motion, and the frames of a cycle."""
    subject, sway = _swaying()
    frames = round(PERIOD * rate)
    return subject, _repeat(subject, _cycle(subject, _resample(sway, frames), rate), cycles), frames


@lru_cache(maxsize=1)
def _swaying() -> tuple[Subject, Floats]:
    """The subject and the sway (`_COARSE`, 2) m of its trunk that keeps the centre of pressure under the feet."""
    subject = make_subject(load_model("wholebody21"))
    sway = np.zeros((_COARSE, 2))
    for _ in range(_CORRECTIONS):
        moving = _cycle(subject, sway, _COARSE / PERIOD)
        away = _foot_pressures(subject, np.arange(_COARSE) / _COARSE)[0] - _pressure(subject, moving)[0]
        sway = sway + _pendulum(away[:, [0, 2]])
    return subject, sway


def _smooth(x: Floats) -> Floats:
    """A step from 0 to 1 with zero first and second derivatives at both ends."""
    x = np.clip(x, 0.0, 1.0)
    return np.asarray(x**3 * (10.0 - 15.0 * x + 6.0 * x**2))


def _foot(subject: Subject, side: str, phase: Floats) -> tuple[Floats, Floats]:
    """(n,) pitch and (n, 3) position of a foot's ankle at `phase` of its own cycles, for an endless walk.

    The sole lies flat where the ankle of the static posture stands, one stride further in each cycle.
    """
    marks = subject.landmarks
    cycle, p = np.floor(phase), phase - np.floor(phase)
    pitch = _STRIKE * (1.0 - _smooth(p / _SOLE)) + _PUSH * _smooth((p - _HEEL) / (_OFF - _HEEL))
    swing = _smooth((p - _OFF) / (1.0 - _OFF))
    pitch = pitch + (_STRIKE - _PUSH) * swing
    ankle = marks[f"CAT_{side}"]
    heel, toe = (np.array([marks[n][0], 0.0, ankle[2]]) for n in (f"CALC_{side}", f"PMT_{side}"))

    def about(centre: Floats, angle: Floats) -> Floats:
        return np.asarray(centre + rotation([0, 0, 1], angle) @ (ankle - centre))

    rolling = np.where((p < _SOLE)[:, None], about(heel, pitch), about(toe, pitch))
    left, met = about(toe, np.array(_PUSH)), about(heel, np.array(_STRIKE)) + STRIDE * _AHEAD
    height = _LIFT * (4.0 * swing * (1.0 - swing)) ** 3
    swinging = left + swing[:, None] * (met - left) + height[:, None] * _UP
    position = np.where((p < _OFF)[:, None], rolling, swinging)
    return pitch, position + (STRIDE * cycle)[:, None] * _AHEAD


def _offset(side_phase: float) -> float:
    """m by which the track of a foot is ahead, so that the other side walks half a cycle later."""
    return STRIDE * (0.0 if side_phase == 0.0 else -0.5)


def _feet(subject: Subject, phase: Floats) -> dict[str, tuple[Floats, Floats]]:
    """Pitch and ankle of both feet at `phase` of the right foot's cycles."""
    foot_motions = {}
    for side, later in _SIDES:
        pitch, position = _foot(subject, side, phase + later)
        foot_motions[side] = pitch, position + _offset(later) * _AHEAD
    return foot_motions


def _foot_pressures(subject: Subject, phase: Floats) -> tuple[Floats, Floats, Floats]:
    """(n, 3) centre of pressure, (n, 2) shares of the feet, (n, 2, 3) their own centres, at `phase` of the right foot.

    A foot is loaded while it rolls onto its sole and unloaded while the other one does; its own centre of pressure goes
    from heel to toes.
    """
    marks = subject.landmarks
    shares, centres = np.zeros((len(phase), 2)), np.zeros((len(phase), 2, 3))
    for k, (side, later) in enumerate(_SIDES):
        p = phase + later
        cycle, p = np.floor(p), p - np.floor(p)
        shares[:, k] = _smooth(p / _SOLE) * (1.0 - _smooth((p - _OFF + _SOLE) / _SOLE))
        heel, toe = marks[f"CALC_{side}"], marks[f"PMT_{side}"]
        along = 0.1 + 0.8 * _smooth((p - 0.5 * _SOLE) / (_HEEL - 0.5 * _SOLE))
        centres[:, k] = heel + along[:, None] * (toe - heel)
        centres[:, k, 0] += STRIDE * cycle + _offset(later)
    centres[:, :, 1] = 0.0
    return np.einsum("fk,fkx->fx", shares, centres), shares, centres


def _cycle(subject: Subject, sway: Floats, rate: float) -> Motion:
    """Motion (n frames) over one cycle with the sway (n, 2) m of the trunk, forwards and to the right."""
    frames = len(sway)
    phase = np.arange(frames) / frames
    q = _consistent_coordinates(subject, phase, sway)
    pad = 4  # derivatives reach over two frames to either side
    k = np.arange(-pad, frames + pad)
    longer = q[k % frames] + (STRIDE * (k // frames))[:, None] * _forward(subject)
    moving = motion(subject, k / rate, longer, rate)
    cut = slice(pad, -pad)
    return Motion(moving.time[cut], moving.q[cut], moving.qdot[cut], moving.qddot[cut], moving.one_sided[cut])


def _forward(subject: Subject) -> Floats:
    """(n,) 1 for the x of points: the change of the coordinates for a forward shift of the body by a metre."""
    direction = np.zeros(subject.n)
    for body in subject.bodies.values():
        direction[body.start : body.start + 3 * len(body.points) : 3] = 1.0
    return direction


def _consistent_coordinates(subject: Subject, phase: Floats, sway: Floats) -> Floats:
    """(n, N) consistent coordinates: a guess by two-link geometry of the legs, moved onto the paths of the feet."""
    feet = _feet(subject, phase)
    guess = _guess(subject, phase, sway, feet)
    names = [(f"foot_{side}", f"{mark}_{side}") for side, _ in _SIDES for mark in _OUTLINE]
    local = np.stack([subject.bodies[body].local[mark] for body, mark in names])
    target = np.stack(
        [
            ankle
            + rotation([0, 0, 1], pitch) @ (subject.landmarks[f"{mark}_{side}"] - subject.landmarks[f"CAT_{side}"])
            for side, (pitch, ankle) in feet.items()
            for mark in _OUTLINE
        ],
        axis=1,
    )
    fixed_points = np.ones(target.shape[:2], dtype=bool)
    contacts = Contacts(tuple(b for b, _ in names), np.broadcast_to(local, target.shape), target, fixed_points)
    consistent = consistent_positions(subject, guess, contacts=contacts)
    if not consistent.usable.all():
        raise RuntimeError(f"the walk has {int((~consistent.usable).sum())} frames without a posture")
    return consistent.q


def _guess(subject: Subject, phase: Floats, sway: Floats, feet: dict[str, tuple[Floats, Floats]]) -> Floats:
    """Trunk, arms that swing against the legs, legs by two-link geometry between hip and ankle."""
    marks = subject.landmarks
    turn = 2.0 * np.pi * phase
    # lowest while both feet carry, one cycle for each step; the hips are over the middle of the stance
    height = -0.035 - 0.016 * np.cos(2.0 * (turn - np.pi * _SOLE))
    ahead = STRIDE * (phase - 0.5 * _OFF) + 0.05
    shift = np.stack([ahead + sway[:, 0], height, sway[:, 1]], axis=1)
    thorax = rotation([0, 1, 0], 0.05 * np.cos(turn))
    pelvis = rotation([0, 1, 0], -0.07 * np.cos(turn))
    turns: dict[str, Floats] = {"lumbar": thorax.swapaxes(-1, -2) @ pelvis}
    assert subject.model.root is not None
    root, lumbar = marks[subject.model.root.point], marks["CAL"]
    waist = root + shift + thorax @ (lumbar - root)
    for side, later in _SIDES:
        swing = np.cos(turn + 2.0 * np.pi * later)
        turns[f"glenohumeral_{side}"] = rotation([0, 0, 1], 0.05 - 0.3 * swing)
        turns[f"elbow_{side}"] = rotation(_axes(subject, f"humerus_{side}")[:, 2], 0.5 - 0.15 * swing)
        hip = waist + pelvis @ (marks[f"CAQ_{side}"] - lumbar)
        pitch, ankle = feet[side]
        thigh, shank = _leg(subject, side, hip, ankle)
        turns[f"hip_{side}"] = pelvis.swapaxes(-1, -2) @ thigh
        turns[f"knee_{side}"] = thigh.swapaxes(-1, -2) @ shank
        turns[f"ankle_{side}"] = shank.swapaxes(-1, -2) @ rotation([0, 0, 1], pitch)
    return posture(subject, turns, root_turn=thorax, root_shift=shift)


def _leg(subject: Subject, side: str, hip: Floats, ankle: Floats) -> tuple[Floats, Floats]:
    """(n, 3, 3) turns of thigh and shank whose knee lies ahead of the line from hip to ankle."""
    marks = subject.landmarks
    upper = float(np.linalg.norm(marks[f"KC_{side}"] - marks[f"CAQ_{side}"]))
    lower = float(np.linalg.norm(marks[f"CAT_{side}"] - marks[f"KC_{side}"]))
    line = ankle - hip
    distance = np.minimum(np.linalg.norm(line, axis=1, keepdims=True), 0.999 * (upper + lower))
    line = line / np.linalg.norm(line, axis=1, keepdims=True)
    out = np.array([1.0, 0.0, 0.0]) - line[:, :1] * line
    out = out / np.linalg.norm(out, axis=1, keepdims=True)
    along = (upper**2 - lower**2 + distance**2) / (2.0 * distance)
    knee = hip + along * line + np.sqrt(np.maximum(upper**2 - along**2, 0.0)) * out
    right = np.cross(out, -line)
    leg_angles = []
    for segment, top, bottom in (("thigh", hip, knee), ("shank", knee, ankle)):
        up = (top - bottom) / np.linalg.norm(top - bottom, axis=1, keepdims=True)
        axes = np.stack([np.cross(up, right), up, right], axis=-1)
        leg_angles.append(axes @ _axes(subject, f"{segment}_{side}").T)
    return leg_angles[0], leg_angles[1]


def _axes(subject: Subject, name: str) -> Floats:
    return subject.bodies[name].axes(subject.q0)


def _pressure(subject: Subject, motion: Motion) -> tuple[Floats, Floats, Floats]:
    """(n, 3) centre of pressure on the ground, force and free moment about the vertical that the motion needs."""
    joint_loads = inverse_dynamics(subject, motion, method="velocity_transformation")
    assert subject.model.root is not None
    root = subject.bodies[subject.model.root.segment]
    force = joint_loads.residual_force
    origin = root.position(motion.q, root.landmark(subject.model.root.point))
    moment = joint_loads.residual_torque + np.cross(origin, force)
    lift = force[:, 1]
    point = np.stack([moment[:, 2] / lift, np.zeros(len(lift)), -moment[:, 0] / lift], axis=1)
    free = moment - np.cross(point, force)
    return point, force, free


def _pendulum(away: Floats) -> Floats:
    """(n, 2) sway that moves the centre of pressure by `away` (n, 2), by the linear inverted pendulum x - h/g ẍ = p."""
    spectrum = np.fft.rfft(away, axis=0)
    spectrum[_HARMONICS + 1 :] = 0.0
    harmonic = 2.0 * np.pi / PERIOD * np.arange(len(spectrum))
    return np.asarray(np.fft.irfft(spectrum / (1.0 + 0.95 / 9.81 * harmonic**2)[:, None], len(away), axis=0))


def _resample(sway: Floats, frames: int) -> Floats:
    """The sway at another number of frames of the cycle."""
    spectrum = np.fft.rfft(sway, axis=0)[: _HARMONICS + 1] * (frames / len(sway))
    spectrum_of_frames = np.zeros((frames // 2 + 1, 2), dtype=complex)
    count = min(len(spectrum), len(spectrum_of_frames))
    spectrum_of_frames[:count] = spectrum[:count]
    return np.asarray(np.fft.irfft(spectrum_of_frames, frames, axis=0))


def _repeat(subject: Subject, cycle: Motion, cycles: int) -> Motion:
    """The motion over several cycles, each a stride further, up to the first frame of the next."""
    frames = len(cycle.q)
    k = np.arange(cycles * frames + 1)
    q = cycle.q[k % frames] + (STRIDE * (k // frames))[:, None] * _forward(subject)
    step = cycle.time[1] - cycle.time[0]
    return Motion(k * step, q, cycle.qdot[k % frames], cycle.qddot[k % frames], np.zeros(len(k), dtype=bool))


def _steps(subject: Subject, motion: Motion, frames: int, rate: float) -> tuple[Loads, tuple[ForcePlate, ...]]:
    """Loads of both feet, which balance the motion, and a plate for every step."""
    point, force, free = _pressure(subject, motion)
    phase = np.arange(len(point)) / frames
    carried_point, shares, centres = _foot_pressures(subject, phase)
    centres = centres + (point - carried_point)[:, None]
    forces = shares[:, :, None] * force[:, None]
    moments = np.cross(centres, forces) + shares[:, :, None] * free[:, None]
    plates = []
    for k, (side, later) in enumerate(_SIDES):
        steps = np.floor(phase + later).astype(int)
        for step in np.unique(steps):
            on = ((steps == step) & (shares[:, k] > 0.0))[:, None]
            if on.sum() > 1:
                middle = centres[on[:, 0], k].mean(axis=0)
                name = f"step {step + 1} {side}"
                plates.append(
                    plate(name, middle, np.where(on, forces[:, k], 0.0), np.where(on, moments[:, k], 0.0), rate)
                )
    return Loads(_FEET, forces, moments), tuple(plates)
