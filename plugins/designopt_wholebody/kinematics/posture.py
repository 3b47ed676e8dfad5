"""Postures from joint rotations, applied to the static posture along the tree of joints."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt_wholebody.kinematics.tree import tree
from designopt_wholebody.subject import Subject


def rotation(axis: ArrayLike, angle: ArrayLike) -> Floats:
    """(..., 3, 3) rotation about a unit `axis` (3,) by `angle` (...) rad (Rodrigues)."""
    a = np.asarray(axis, dtype=float)
    K = np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])
    t = np.asarray(angle, dtype=float)[..., None, None]
    return np.asarray(np.eye(3) + np.sin(t) * K + (1.0 - np.cos(t)) * (K @ K))


def posture(
    subject: Subject, turns: Mapping[str, Floats], *, root_turn: Floats | None = None, root_shift: ArrayLike = (0, 0, 0)
) -> Floats:
    """(f, n) coordinates with every body rigid and every joint of the tree closed at its landmark.

    `turns` gives, for joints by name, the rotation (f, 3, 3) of the segment away from the root relative to its parent,
    in the axes of the laboratory while the body stands in its static posture; joints that are not named do not turn.
    `root_turn` (f, 3, 3) turns the root about its root point, `root_shift` (..., 3) m shifts it.

    The caller ensures that joints allow the rotations, and closes loops. Raises `ValueError` for an unknown joint.
    """
    frames = max([1, *(len(t) for t in turns.values()), 1 if root_turn is None else len(root_turn)])
    shift = np.broadcast_to(np.asarray(root_shift, dtype=float), (frames, 3))
    if unknown := [name for name in turns if name not in subject.model.joints]:
        raise ValueError(f"model '{subject.model.model}' has no joint '{unknown[0]}'")
    identity = np.broadcast_to(np.eye(3), (frames, 3, 3))
    rotations: dict[str, Floats] = {"ground": identity}
    pivots: dict[str, tuple[Floats, Floats]] = {"ground": (np.zeros(3), np.zeros((frames, 3)))}
    q = np.empty((frames, subject.n))
    for link in tree(subject):
        at = subject.landmarks[link.at]
        before, (pivot, pivot_position) = rotations[link.parent], pivots[link.parent]
        position = np.einsum("fij,j->fi", before, at - pivot) + pivot_position
        if link.joint is None:
            turn, position = identity if root_turn is None else root_turn, position + shift
        else:
            turn = turns.get(link.joint, identity)
        R = before @ turn
        rotations[link.body], pivots[link.body] = R, (at, position)
        body = subject.bodies[link.body]
        triples = body.triples_of(subject.q0)
        points = len(body.points)
        points_of_body = np.einsum("fij,tj->fti", R, np.concatenate([triples[:points] - at, triples[points:]]))
        points_of_body[:, :points] += position[:, None]
        q[:, body.columns] = points_of_body.reshape(frames, -1)
    return q
