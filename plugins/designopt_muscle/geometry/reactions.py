"""What muscles do to the forces in joints: the part of a joint's contact force that comes from each muscle force."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from designopt.arrays import Vector
from designopt_muscle.geometry.geometry import stretched
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.geometry.paths import wrapped_paths
from designopt_muscle.osim.model import OsimModel


def reaction_gains(model: OsimModel, values: dict[str, Vector], joints: Sequence[str]) -> dict[str, Vector]:
    """(n, 3, k) of each joint: what a unit muscle force adds to the force of the parent on the child, in ground axes.

    The muscles pull at everything beyond the joint with the resultant of their tensions; the parent has to hold against
    it. Raises `ValueError` for names that are no joints or coordinates.
    """
    names = [joint.name for joint in model.joints]
    if unknown := [name for name in joints if name not in names]:
        raise ValueError(f"'{unknown[0]}' is no joint of the model '{model.name}' ({', '.join(names)})")
    motion = kinematics(model, values)
    n, k = len(motion.origin["ground"]), len(model.muscles)
    beyond = {joint.name: bodies_beyond(model, joint.name) for joint in model.joints if joint.name in joints}
    surfaces = {w.name: w for w in model.wraps}
    gains = {name: np.zeros((n, 3, k)) for name in joints}
    for j, muscle in enumerate(model.muscles):
        for path in wrapped_paths(muscle, surfaces, motion):
            _, slope = stretched(path)
            for name in joints:
                mask = np.array([node.body in beyond[name] for node in path.nodes])
                if mask.any() and not mask.all():
                    gains[name][path.frames, :, j] = slope[mask].sum(axis=0)
    return gains


def bodies_beyond(model: OsimModel, joint: str) -> frozenset[str]:
    """The bodies that a joint carries: its child and everything on it."""
    found: set[str] = set()
    for item in model.joints:  # parents come first
        if item.name == joint or item.parent in found:
            found.add(item.child)
    return frozenset(found)
