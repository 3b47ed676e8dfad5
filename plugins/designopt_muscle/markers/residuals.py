"""Distances between recorded markers and those of a model in many frames, with their derivatives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats, Mask
from designopt_muscle.geometry.kinematics import Kinematics, cross, kinematics, rotate
from designopt_muscle.osim.markers import OsimMarker
from designopt_muscle.osim.model import GROUND, OsimModel

#: Weight of a coordinate beyond its range.
_PENALTY = 10.0


@dataclass(frozen=True, eq=False)
class MarkerLayout:
    """The `markers` (k) of a model, and the m free `coordinates` that move it; others keep their defaults."""

    model: OsimModel
    markers: tuple[OsimMarker, ...]
    coordinates: tuple[str, ...]

    @cached_property
    def _bodies(self) -> tuple[str, ...]:
        """The b bodies that have markers."""
        return tuple(dict.fromkeys(marker.body for marker in self.markers))

    @cached_property
    def _locations(self) -> Floats:
        """(4 b, k) the location (3) and a 1 of each marker in the rows of its body."""
        locations = np.zeros((len(self._bodies), 4, len(self.markers)))
        for i, marker in enumerate(self.markers):
            locations[self._bodies.index(marker.body), :, i] = (*marker.location, 1.0)
        return locations.reshape(-1, len(self.markers))

    @cached_property
    def _moves(self) -> Floats:
        """(c, b) 1 where a body moves with a coordinate of the model."""
        beyond = kinematics(self.model, {}).beyond
        return np.array([[body in beyond[name] for body in self._bodies] for name in self.model.names], dtype=float)

    @cached_property
    def turning(self) -> Mask:
        """(m,) which coordinates are angles."""
        rotational = {c.name for c in self.model.coordinates if c.rotational}
        return np.array([name in rotational for name in self.coordinates])

    @cached_property
    def placing(self) -> Mask:
        """(m,) which coordinates place the bodies at the ground."""
        ground_joints = {joint.name for joint in self.model.joints if joint.parent == GROUND}
        joint = {c.name: c.joint for c in self.model.coordinates}
        return np.array([joint[name] in ground_joints for name in self.coordinates])

    @cached_property
    def _precedence(self) -> Floats:
        """(c, c) 1 where the second coordinate moves what the first has moved before: a body beyond it, or a later step
        of its joint; 1/2 on the diagonal. Translations are the first steps.
        """
        model, beyond = self.model, kinematics(self.model, {}).beyond
        steps = [(s.coordinate, j.name) for j in model.joints for s in (*j.translations, *j.rotations) if s.coordinate]
        order = {name: i for i, (name, _) in enumerate(reversed(steps))}  # the first of several steps
        joint = {c.name: c.joint for c in model.coordinates}

        def before(a: str, b: str) -> bool:
            return order.get(a, 0) >= order.get(b, 0) if joint[a] == joint[b] else beyond[b] <= beyond[a]

        precedence = np.array([[before(a, b) for b in model.names] for a in model.names], dtype=float)
        return precedence - 0.5 * np.eye(len(precedence))

    @cached_property
    def _free(self) -> list[int]:
        """Where the free coordinates are among those of the model."""
        return [self.model.names.index(name) for name in self.coordinates]

    def motion(self, q: Floats) -> Kinematics:
        """The poses of all bodies at the coordinates `q` (n, m)."""
        return kinematics(self.model, dict(zip(self.coordinates, q.T, strict=True)))

    def poses(self, motion: Kinematics) -> Floats:
        """(n, b, 3, 4) the rotation and the origin of each body that has markers."""
        poses = np.empty((len(motion.origin[GROUND]), len(self._bodies), 3, 4))
        for i, body in enumerate(self._bodies):
            poses[:, i, :, :3], poses[:, i, :, 3] = motion.rotation[body], motion.origin[body]
        return poses

    def positions(self, motion: Kinematics) -> Floats:
        """(n, k, 3) m of the markers on the model."""
        return self.axes(self.poses(motion)).swapaxes(1, 2)

    def axes(self, poses: Floats) -> Floats:
        """(n, 3, k) m of the markers along each axis of the ground, for the `poses` (n, b, 3, 4) of the bodies."""
        n = len(poses)
        rows = poses.swapaxes(1, 2).reshape(3 * n, -1)
        return np.asarray((rows @ self._locations).reshape(n, 3, -1))

    def moments(self, weights: Floats) -> Floats:
        """(n, b, 4, 4) sums of `weights` (n, k) times the squares of the location and a 1, of the markers of bodies."""
        locations = self._locations.reshape(-1, 4, len(self.markers))
        squares = locations[:, :, None] * locations[:, None]
        different = weights[:1] if (weights == weights[:1]).all() else weights
        moments = (different @ squares.reshape(-1, len(self.markers)).T).reshape(len(different), -1, 4, 4)
        return np.broadcast_to(moments, (len(weights), *moments.shape[1:]))

    def sums(self, motion: Kinematics, poses: Floats, pull: Floats, moments: Floats) -> tuple[Floats, Floats, Floats]:
        """J^T f (n, m), J^T W J (n, m, m) and its sum with f.J' of the derivatives J of the positions of markers.

        `pull` (n, 3, k) is f; W are the weights of the `moments`. The velocity of a point p that a coordinate moves is
        w x p + v; the sums over its points need only moments of the weights and of f, which are those of bodies.
        J' are second derivatives: a coordinate turns the velocities of all that it carries. Those of the functions of
        joints and couplers are left out.
        """
        names, (n, b) = self.model.names, poses.shape[:2]
        w = np.stack([motion.turning[name] for name in names], axis=1)
        v = np.stack([motion.moving[name] for name in names], axis=1)
        local = (pull.reshape(3 * n, -1) @ self._locations.T).reshape(n, 3, b, 4).swapaxes(1, 2)
        rows = np.concatenate([poses @ moments, local], axis=2)
        squares = (rows @ poses.swapaxes(2, 3)).reshape(n, b, 18)
        features = np.concatenate([moments[..., 3, 3:], rows[..., 3], squares], axis=2)
        mass, centre, force, second, virial = np.split(self._moves @ features, (1, 4, 7, 16), axis=2)

        def apply(tensor: Floats) -> Floats:
            """(tr(T) 1 - T^T) w of the sums T (n, c, 9)."""
            trace = tensor[..., 0] + tensor[..., 4] + tensor[..., 8]
            return np.asarray(trace[..., None] * w - rotate(tensor.reshape(*w.shape, 3).swapaxes(2, 3), w))

        moment = virial[..., [7, 2, 3]] - virial[..., [5, 6, 1]]
        turning = apply(second) + cross(centre, v)
        sliding = mass * v - cross(centre, w)
        bending = cross(v, force) - apply(virial)
        vector = (w * moment + v * force).sum(axis=2)
        velocity = np.concatenate([w, v], axis=2)
        matrices = [
            self._free_rows(motion, self._free_rows(motion, self._symmetric(velocity @ momentum)).swapaxes(1, 2))
            for momentum in (
                np.concatenate([part, sliding], axis=2).swapaxes(1, 2) for part in (turning, turning + bending)
            )
        ]
        return self._free_rows(motion, vector[:, :, None])[..., 0], matrices[0], matrices[1]

    def _symmetric(self, product: Floats) -> Floats:
        """The symmetric matrices (n, c, c) of products that hold where the second coordinate is beyond the first."""
        half = product * self._precedence
        return np.asarray(half + half.swapaxes(1, 2))

    def _free_rows(self, motion: Kinematics, rows: Floats) -> Floats:
        """(n, m, ...) rows of the free coordinates of `rows` (n, c, ...), with those that couplers drive."""
        names = self.model.names
        for coupler in self.model.couplers:
            rate = coupler.function.slope(motion.coordinates[coupler.independent])
            rows[:, names.index(coupler.independent)] += rows[:, names.index(coupler.dependent)] * rate[:, None]
        return rows if self.coordinates == names else rows[:, self._free]


@dataclass(frozen=True, eq=False)
class MarkerResiduals:
    """The objective of n frames: weighted mean square of the marker errors, and of coordinates from their targets.

    With weights w of the k markers that a frame has and v of the m free coordinates it is
    sum(w e^2) / sum(w) + sum(v (q - q0)^2), as in OpenSim (Simbody's ``Markers`` and ``QValue``). `observations` (n, k,
    3) m has NaN where a marker is missing, `weights` (k,), `pull` (m,) are the weights of the coordinates, `targets`
    (n, m). With `ranges` (2, m) the objective has ten times the square of the distance (rad, m) beyond them as well.
    """

    layout: MarkerLayout
    observations: Floats
    weights: Floats
    pull: Floats
    targets: Floats
    ranges: Floats | None = None

    @cached_property
    def share(self) -> Floats:
        """(n, k) weights divided by the sum over the markers of the frame."""
        weights = np.where(np.isfinite(self.observations).all(axis=2), self.weights, 0.0)
        return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300))

    def take(self, frames: Any) -> MarkerResiduals:
        """The objective of some frames: indices or a mask."""
        return replace(self, observations=self.observations[frames], targets=self.targets[frames])

    @cached_property
    def _moments(self) -> Floats:
        return self.layout.moments(self.share)

    def positions(self, q: Floats) -> Floats:
        """(n, k, 3) m of the markers on the model at the coordinates `q` (n, m)."""
        return self.layout.positions(self.layout.motion(q))

    def errors(self, q: Floats) -> Floats:
        """(n, k) m between markers and model, NaN where a marker is missing."""
        return np.asarray(np.linalg.norm(self.positions(q) - self.observations, axis=2))

    def costs(self, q: Floats) -> Floats:
        """(n,) objective."""
        return self.normal_equations(q)[0]

    def normal_equations(self, q: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """The objective (n,), half its gradient (n, m), half its Gauss-Newton and its Newton matrix (n, m, m)."""
        motion = self.layout.motion(q)
        poses = self.layout.poses(motion)
        error = self.layout.axes(poses) - self.observations.swapaxes(1, 2)
        error[np.isnan(error)] = 0.0
        weighted_error = error * self.share[:, None]
        gradient, *matrices = self.layout.sums(motion, poses, weighted_error, self._moments)
        off = q - self.targets
        cost = (weighted_error * error).sum(axis=(1, 2)) + (self.pull * off**2).sum(axis=1)
        gradient = gradient + self.pull * off
        slope = np.broadcast_to(self.pull, q.shape)
        if self.ranges is not None:
            beyond = q - np.clip(q, *self.ranges)
            cost += _PENALTY * (beyond**2).sum(axis=1)
            gradient, slope = gradient + _PENALTY * beyond, slope + _PENALTY * (beyond != 0.0)
        diagonal = np.arange(q.shape[1])
        for matrix in matrices:
            matrix[:, diagonal, diagonal] += slope
        return cost, gradient, matrices[0], matrices[1]
