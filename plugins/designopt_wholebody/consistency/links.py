"""Joints of a tree of segments, grouped by depth and type.

A joint relates the twists of two segments, ξ = ξ_parent + r + N y: y are the joint's own rates, r closes its residual
to first order. Twists are about the origin of the poses, so connected rigid bodies have equal ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Integers
from designopt_wholebody.consistency.poses import Poses
from designopt_wholebody.consistency.stacked import cross, dot, rotate
from designopt_wholebody.constraints.rows import axis_in
from designopt_wholebody.kinematics.tree import Link, NoTree, tree
from designopt_wholebody.model.schema import GROUND, Joint
from designopt_wholebody.subject import Subject


@dataclass(frozen=True, eq=False)
class JointGroup:
    """g joints of one type ("free" for a root) and depth.

    `child`, `parent` (g,) are places of bodies; `at_child`, `at_parent` (g, 3) is the joint's centre from the first
    points of both, in their axes; `axis_child`, `axis_parent` (g, 3) the axes that revolute and universal joints have
    in both, `cosine` (g,) that of the angle between those of a universal joint.
    """

    type: str
    child: Integers
    parent: Integers
    at_child: Floats
    at_parent: Floats
    axis_child: Floats
    axis_parent: Floats
    cosine: Floats

    def motion(self, poses: Poses) -> tuple[Floats, Floats]:
        """N (g, 6, k, f) and r (g, 6, f)."""
        centre = poses.at(self.child, self.at_child)
        frames = centre.shape[-1]
        r = np.zeros((len(self.child), 6, frames))
        if self.type == "free":
            return np.broadcast_to(np.eye(6)[None, :, :, None], (len(self.child), 6, 6, frames)), r
        r[:, :3] = poses.at(self.parent, self.at_parent) - centre
        if self.type == "spherical":
            N = np.zeros((len(self.child), 6, 3, frames))
            for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):  # centre x unit vectors, and these
                N[:, i, j], N[:, j, i], N[:, 3 + i, i] = -centre[:, k], centre[:, k], 1.0
            return N, r
        a = rotate(poses.rotation[self.parent], self.axis_parent)
        b = rotate(poses.rotation[self.child], self.axis_child)
        normal = cross(b, a)
        if self.type == "revolute":
            axes, turn = b[:, None], normal
        else:
            wrong = dot(a, b) - self.cosine[:, None]
            axes, turn = np.stack([a, b], axis=1), -(wrong / dot(normal, normal))[:, None] * normal
        r[:, 3:] = turn
        r[:, :3] += cross(centre, turn)
        N = np.concatenate([cross(centre[:, None], axes), axes], axis=2)
        return N.swapaxes(1, 2), r


def links_of(subject: Subject) -> tuple[JointGroup, ...]:
    """Groups of the joints of a subject, parents before children; raises `NoTree` where joints close loops."""
    index_of = {name: b for b, name in enumerate(subject.bodies)} | {GROUND: len(subject.bodies)}
    joints = subject.model.joints
    tree_links = tree(subject)
    if sum(joint.at is not None for joint in joints.values()) > sum(link.joint is not None for link in tree_links):
        raise NoTree(f"model '{subject.model.model}': its joints close loops")
    depth = {GROUND: 0}
    groups: dict[tuple[int, str], list[Link]] = {}
    for link in tree_links:
        depth[link.body] = depth[link.parent] + 1
        key = depth[link.body], "free" if link.joint is None else str(joints[link.joint].type)
        groups.setdefault(key, []).append(link)
    joint_groups = []
    for (_, kind), links in sorted(groups.items()):
        child, parent = (np.array([index_of[getattr(link, end)] for link in links]) for end in ("body", "parent"))
        at_child, at_parent, axis_child, axis_parent = np.zeros((4, len(links), 3))
        cosine = np.zeros(len(links))
        for k, link in enumerate(links):
            at_child[k], at_parent[k] = (_local_position(subject, name, link.at) for name in (link.body, link.parent))
            if kind in ("universal", "revolute"):
                assert link.joint is not None
                a, b = _axes(subject, joints[link.joint], link)
                cosine[k] = a @ b
                axis_parent[k], axis_child[k] = a @ _static(subject, link.parent), b @ _static(subject, link.body)
        joint_groups.append(JointGroup(kind, child, parent, at_child, at_parent, axis_child, axis_parent, cosine))
    return tuple(joint_groups)


def _local_position(subject: Subject, segment: str, landmark: str) -> Floats:
    """A landmark from the first point of a segment, in its axes; of the ground in the laboratory."""
    if segment == GROUND:
        return subject.landmarks[landmark]
    body = subject.bodies[segment]
    return np.asarray(body.local[landmark] - body.first)


def _static(subject: Subject, segment: str) -> Floats:
    return np.eye(3) if segment == GROUND else subject.bodies[segment].axes(subject.q0)


def _axes(subject: Subject, joint: Joint, link: Link) -> tuple[Floats, Floats]:
    """Axes of a joint in the static posture: that of the parent, and that of the child."""
    if joint.type == "revolute":
        common = axis_in(joint, subject.bodies, subject.landmarks, subject.q0)
        return common, common
    assert joint.axes is not None
    ends = zip((joint.proximal, joint.distal), joint.axes, strict=True)
    axes_of_segment = {name: _static(subject, name)[:, "uvw".index(axis)] for name, axis in ends}
    return axes_of_segment[link.parent], axes_of_segment[link.body]
