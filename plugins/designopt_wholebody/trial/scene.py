"""Drawing of a trial: lines from joint to joint, surfaces, ground reaction forces."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.body.body import BodySegment
from designopt_wholebody.constraints.rows import ellipsoid_form
from designopt_wholebody.dynamics.loads import Loads
from designopt_wholebody.kinematics.tree import tree
from designopt_wholebody.subject import Subject

#: Points of each outline of a surface.
_OUTLINE = 24


def sticks(subject: Subject, q: Floats) -> Floats:
    """(n, sticks, 2, 3) lines m from the joint that carries a segment to those that it carries, or to its far end."""
    links = tree(subject)
    lines: list[Floats] = []
    for link in links:
        body = subject.bodies[link.body]
        ends = [following.at for following in links if following.parent == link.body] or [_far_end(body, link.at)]
        start = body.position(q, body.landmark(link.at))
        lines.extend(np.stack([start, body.position(q, body.landmark(end))], axis=1) for end in ends)
    return np.stack(lines, axis=1)


def _far_end(body: BodySegment, at: str) -> str:
    """The landmark that is farthest from `at`."""
    return max(body.local, key=lambda name: float(np.linalg.norm(body.local[name] - body.local[at])))


def surfaces(subject: Subject, q: Floats) -> Floats:
    """(n, vertices, 3) m the three principal outlines of every ellipsoid, NaN between them; one NaN without any."""
    turn = np.linspace(0.0, 2.0 * np.pi, _OUTLINE)
    ring = np.stack([np.cos(turn), np.sin(turn), np.zeros(_OUTLINE)], axis=1)
    outlines = [np.full((len(q), 1, 3), np.nan)]
    for joint in subject.model.joints.values():
        if joint.type == "ellipsoid":
            assert joint.centre is not None
            squares, axes = np.linalg.eigh(ellipsoid_form(joint))
            body = subject.bodies[joint.proximal]
            for k in range(3):
                local = np.roll(ring, k, axis=1) / np.sqrt(squares) @ axes.T + np.asarray(joint.centre)
                outlines += [np.einsum("vt,ftx->fvx", body.point(local), body.triples_of(q)), outlines[0]]
    return np.concatenate(outlines, axis=1)


def ground_forces(loads: Loads, level: float = 0.0) -> Floats:
    """(n, bodies, 2, 3) where each force from outside pierces the plane y = `level` m, and the force N; NaN without.

    One force of NaN stands where no segment may carry any.
    """
    if not loads.bodies:
        return np.full((len(loads.force), 1, 2, 3), np.nan)
    lift = loads.force[:, :, 1]
    safe = np.where(lift > 1.0, lift, np.nan)
    x = (loads.moment[:, :, 2] + level * loads.force[:, :, 0]) / safe
    z = (level * loads.force[:, :, 2] - loads.moment[:, :, 0]) / safe
    point = np.stack([x, np.full_like(x, level), z], axis=-1)
    return np.stack([point, np.where(np.isfinite(point), loads.force, np.nan)], axis=2)
