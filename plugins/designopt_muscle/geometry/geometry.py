"""Lengths, moment arms and lengthening speeds of all muscles of a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Integers
from designopt_muscle.geometry.kinematics import Kinematics, cross, kinematics, rotate
from designopt_muscle.geometry.paths import WrappedPath, wrapped_paths
from designopt_muscle.osim.model import OsimModel


@dataclass(frozen=True, eq=False)
class MuscleGeometry:
    """The paths of k muscles over m coordinates in n frames.

    `lengths` (n, k) m. `arms` (n, m, k) is -dl/dq of the free `coordinates`, the total derivative where couplers drive
    others: m per radian, or 1 for a translation. `touch_counts` (n, k) counts the surfaces that a path touches.
    """

    coordinates: tuple[str, ...]
    muscles: tuple[str, ...]
    lengths: Floats
    arms: Floats
    touch_counts: Integers

    def speeds(self, rates: Floats) -> Floats:
        """(n, k) m/s at which muscles lengthen with the `rates` (n, m) of the coordinates."""
        return np.asarray(-np.einsum("nmk,nm->nk", self.arms, rates))


def muscle_geometry(model: OsimModel, values: dict[str, Floats]) -> MuscleGeometry:
    """Geometry for the `values` (n,) of the coordinates by name; those that are not given have their defaults.

    Raises `ValueError` for names that are no coordinates and arrays that do not fit.
    """
    motion = kinematics(model, values)
    n = len(motion.origin["ground"])
    free, names = model.free, model.names
    surfaces = {w.name: w for w in model.wraps}
    lengths = np.empty((n, len(model.muscles)))
    slopes = np.zeros((len(names), len(model.muscles), n))
    touch_counts = np.zeros((n, len(model.muscles)), dtype=np.int64)
    for k, muscle in enumerate(model.muscles):
        if muscle.function is not None:
            lengths[:, k], own_slopes = muscle.function.measure(motion.coordinates)
            for name, slope in zip(muscle.function.coordinates, own_slopes.T, strict=True):
                slopes[names.index(name), k] += slope
            continue
        for path in wrapped_paths(muscle, surfaces, motion):
            lengths[path.frames, k] = measure(path, motion, names, slopes[:, k])
            touch_counts[path.frames, k] = sum(node.arc is not None for node in path.nodes)
    index = {name: i for i, name in enumerate(names)}
    for coupler in model.couplers:
        rate = coupler.function.slope(motion.coordinates[coupler.independent])
        slopes[index[coupler.independent]] += slopes[index[coupler.dependent]] * rate
    arms = -slopes[[index[name] for name in free]].transpose(2, 0, 1)
    return MuscleGeometry(free, tuple(m.name for m in model.muscles), lengths, np.ascontiguousarray(arms), touch_counts)


def path_length(path: WrappedPath) -> tuple[Floats, Floats]:
    """The length (n,) of a path, and its gradient with respect to the positions of the nodes (nodes, n, 3): minus
    the forces of a unit tension on them. On a surface the tension is in equilibrium with the contact pressure, so
    only straight segments pull.
    """
    nodes = path.nodes
    way = np.diff(np.stack([node.x for node in nodes]), axis=0)
    straight = np.sqrt((way**2).sum(axis=2))
    pull = way / np.maximum(straight, 1e-300)[:, :, None]
    length = np.zeros(len(path.frames))
    for i, node in enumerate(nodes[:-1]):
        if node.arc is None:
            length = length + straight[i]
        else:
            length = length + node.arc
            pull[i] = 0.0
    force = np.zeros((len(nodes), len(path.frames), 3))
    force[1:] += pull
    force[:-1] -= pull
    return np.asarray(length), force


def measure(path: WrappedPath, motion: Kinematics, names: tuple[str, ...], slopes: Floats) -> Floats:
    """The length (n,) of a path; its derivatives are added to `slopes` (coordinates, all frames).

    A path over surfaces is the shortest one, so that only its straight parts pull: the derivative of the length is the
    work of unit tensions on the nodes, and everything beyond a joint moves as one body.
    """
    nodes, frames = path.nodes, path.frames
    length, force = path_length(path)
    moment = cross(np.stack([node.x for node in nodes]), force)
    bodies = [node.body for node in nodes]
    every = slice(None) if len(frames) == slopes.shape[1] else frames
    sums: dict[tuple[bool, ...], tuple[Floats, Floats]] = {}
    for i, name in enumerate(names):
        moves = tuple(body in motion.beyond[name] for body in bodies)
        if all(moves) or not any(moves):
            continue
        if moves not in sums:
            mask = np.array(moves)
            sums[moves] = force[mask].sum(axis=0), moment[mask].sum(axis=0)
        f, t = sums[moves]
        turning, moving = motion.turning[name][every], motion.moving[name][every]
        slopes[i, every] += (turning * t).sum(axis=1) + (moving * f).sum(axis=1)
    for p, node in enumerate(nodes):
        for axis in node.point.moving if node.point else ():
            rate = axis.function.slope(motion.coordinates[axis.coordinate][every])
            along = rotate(motion.rotation[node.body][every], axis.axis)
            slopes[names.index(axis.coordinate), every] += rate * (along * force[p]).sum(axis=1)
    return np.asarray(length)
