"""The tree of segments: which joint carries each of them, from the root outwards."""

from __future__ import annotations

from dataclasses import dataclass

from designopt_wholebody.model.schema import GROUND
from designopt_wholebody.subject import Subject


@dataclass(frozen=True)
class Link:
    """A segment `body` and the joint that connects it with the one before it (`parent`), at the landmark `at`.

    The root of a free body has the parent ground, no `joint`, and `at` is its root point.
    """

    body: str
    parent: str
    joint: str | None
    at: str


class NoTree(ValueError):
    """The segments do not form a tree from a root; the message names the unreachable ones."""


def tree(subject: Subject) -> tuple[Link, ...]:
    """Links of a subject, parents before children.

    A joint may be stated either way round; surfaces (ellipsoids) carry no segment, and a joint that closes a loop is
    left out. Raises `NoTree` where the model has no root and no joint with the ground, or where segments are apart.
    """
    model = subject.model
    links: list[Link] = []
    segments = {GROUND}
    if model.root is not None:
        links.append(Link(model.root.segment, GROUND, None, model.root.point))
        segments.add(model.root.segment)
    joints = {name: joint for name, joint in model.joints.items() if joint.at is not None}
    has_new = True
    while has_new:
        has_new = False
        for name, joint in joints.items():
            for parent, child in ((joint.proximal, joint.distal), (joint.distal, joint.proximal)):
                if parent in segments and child not in segments and child != GROUND:
                    assert joint.at is not None
                    links.append(Link(child, parent, name, joint.at))
                    segments.add(child)
                    has_new = True
    if apart := [name for name in subject.bodies if name not in segments]:
        raise NoTree(
            f"model '{model.model}': no chain of joints leads to {', '.join(apart)};"
            " give the model a root, or connect them"
        )
    return tuple(links)
