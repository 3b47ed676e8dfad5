"""Drawings of a model: bones as lines, muscles as paths over their surfaces."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats
from designopt_muscle.geometry.kinematics import Kinematics, kinematics
from designopt_muscle.geometry.paths import wrapped_paths
from designopt_muscle.osim.model import GROUND, OsimModel

#: The axes of a drawing in space; one in a plane has the first and the last.
SCENE_AXES = ("x", "-z", "y")
#: A model whose joints stay this close (m) to a plane of constant z is drawn in it.
_FLAT = 1e-6


def drawing(model: OsimModel, values: dict[str, Floats]) -> tuple[Floats, Floats]:
    """`skeleton` (n, v, d) and `paths` (n, k, w, d) m for the `values` (n,) of the coordinates.

    Bones go from joint to joint, and from the last one to the mass centre; lines end where a place is NaN. A path
    over a surface is drawn with its two tangent points. A model in the plane of x and y has d = 2 axes; others have x,
    -z and y, so that the last axis is up.
    """
    motion = kinematics(model, values)
    bones, surfaces = _bones(model, motion), {w.name: w for w in model.wraps}
    n = len(motion.origin[GROUND])
    parts = [wrapped_paths(muscle, surfaces, motion) for muscle in model.muscles]
    max_nodes = max((len(path.nodes) for part in parts for path in part), default=1)
    paths = np.full((n, len(parts), max_nodes, 3), np.nan)
    for k, part in enumerate(parts):
        for path in part:
            for i, node in enumerate(path.nodes):
                paths[path.frames, k, i] = node.x
    depth = bones[:, :, 2][np.isfinite(bones[:, :, 2])]
    if np.ptp(depth) < _FLAT:
        return bones[:, :, :2], paths[..., :2]
    return _turn_upright(bones), _turn_upright(paths)


def _turn_upright(positions: Floats) -> Floats:
    """OpenSim's y, which is up, as the last axis."""
    return np.stack([positions[..., 0], -positions[..., 2], positions[..., 1]], axis=-1)


def _bones(model: OsimModel, motion: Kinematics) -> Floats:
    """(n, v, 3) lines of two points with a gap after each."""
    n = len(motion.origin[GROUND])
    begin = {joint.child: motion.position(joint.child, joint.in_child[:3, 3]) for joint in model.joints}
    gap = np.full((n, 3), np.nan)
    lines: list[Floats] = []
    for joint in model.joints:
        if joint.parent != GROUND:
            lines += [begin[joint.parent], motion.position(joint.parent, joint.in_parent[:3, 3]), gap]
    ending = {joint.child for joint in model.joints} - {joint.parent for joint in model.joints}
    for body in model.bodies:
        if body.name in ending and body.mass > 0:
            lines += [begin[body.name], motion.position(body.name, body.centre), gap]
    return np.stack(lines, axis=1) if lines else np.zeros((n, 1, 3))
