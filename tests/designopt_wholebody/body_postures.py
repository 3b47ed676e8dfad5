"""Random postures of a subject for tests, consistent and with measurement errors."""

import numpy as np
from designopt_wholebody.consistency.positions import consistent_positions
from designopt_wholebody.kinematics.posture import posture
from designopt_wholebody.subject import Subject
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

Array = NDArray[np.float64]


def turns_of(rng: np.random.Generator, frames: int, size: float) -> Array:
    return np.asarray(Rotation.from_rotvec(size * rng.normal(size=(frames, 3))).as_matrix())


def random_postures(subject: Subject, frames: int, seed: int, size: float = 0.2) -> Array:
    """(frames, n) consistent postures: every joint turned at random, then moved to fulfil all constraints."""
    rng = np.random.default_rng(seed)
    postures: list[Array] = []
    while sum(map(len, postures)) < frames:
        turns = {
            name: turns_of(rng, frames, 0.04 if "clavicular" in name else size)
            for name, joint in subject.model.joints.items()
            if joint.at is not None
        }
        result = consistent_positions(subject, posture(subject, turns, root_turn=turns_of(rng, frames, 1.0)))
        postures.append(result.q[result.usable])
    return np.concatenate(postures)[:frames]


def with_errors(subject: Subject, q: Array, seed: int, shift: float = 0.01, turn: float = np.deg2rad(1.0)) -> Array:
    """q with each body shifted by `shift` m and turned by `turn` rad (standard deviations of each axis)."""
    rng = np.random.default_rng(seed)
    moved = q.copy()
    for body in subject.bodies.values():
        triples, points = body.triples_of(q), len(body.points)
        R = turns_of(rng, len(q), turn)
        centre = triples[:, :points].mean(axis=1, keepdims=True)
        triples = np.concatenate([triples[:, :points] - centre, triples[:, points:]], axis=1)
        turned = np.einsum("fij,ftj->fti", R, triples)
        turned[:, :points] += centre + shift * rng.normal(size=(len(q), 1, 3))
        moved[:, body.columns] = turned.reshape(len(q), -1)
    return moved
