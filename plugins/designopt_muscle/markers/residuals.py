"""Distances between recorded markers and those of a model in many frames, with their derivatives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt_muscle.geometry.kinematics import Kinematics, cross, kinematics
from designopt_muscle.osim.markers import OsimMarker
from designopt_muscle.osim.model import OsimModel

#: Weight of a coordinate beyond its range.
_PENALTY = 10.0


@dataclass(frozen=True, eq=False)
class MarkerLayout:
    """The `markers` (k) of a model, and the m free `coordinates` that move it; others keep their defaults."""

    model: OsimModel
    markers: tuple[OsimMarker, ...]
    coordinates: tuple[str, ...]

    @cached_property
    def _bodies(self) -> list[tuple[str, Integers, Floats]]:
        """Bodies with the positions in `markers` of theirs (g,), and their locations (3, g)."""
        bodies = [marker.body for marker in self.markers]
        indices = {body: np.array([i for i, b in enumerate(bodies) if b == body]) for body in dict.fromkeys(bodies)}
        return [(b, i, np.stack([self.markers[j].location for j in i], axis=1)) for b, i in indices.items()]

    @cached_property
    def _moved(self) -> Floats:
        """(k, c) 1 where a marker moves with a coordinate of the model."""
        beyond = kinematics(self.model, {}).beyond
        return np.array([[m.body in beyond[name] for name in self.model.names] for m in self.markers], dtype=float)

    @cached_property
    def turning(self) -> Mask:
        """(m,) which coordinates are angles."""
        rotational = {c.name for c in self.model.coordinates if c.rotational}
        return np.array([name in rotational for name in self.coordinates])

    @cached_property
    def _nested(self) -> Mask:
        """(c, c) where the second coordinate moves what the first has moved before: a body beyond it, or a later step
        of its joint. Translations are the first steps.
        """
        model, beyond = self.model, kinematics(self.model, {}).beyond
        steps = [(s.coordinate, j.name) for j in model.joints for s in (*j.translations, *j.rotations) if s.coordinate]
        order = {name: i for i, (name, _) in enumerate(reversed(steps))}  # the first of several steps
        joint = {c.name: c.joint for c in model.coordinates}

        def before(a: str, b: str) -> bool:
            return order.get(a, 0) >= order.get(b, 0) if joint[a] == joint[b] else beyond[b] <= beyond[a]

        return np.array([[before(a, b) for b in model.names] for a in model.names])

    def motion(self, q: Floats) -> Kinematics:
        """The poses of all bodies at the coordinates `q` (n, m)."""
        return kinematics(self.model, dict(zip(self.coordinates, q.T, strict=True)))

    def positions(self, motion: Kinematics) -> Floats:
        """(n, k, 3) m of the markers on the model."""
        positions = np.empty((len(motion.origin["ground"]), len(self.markers), 3))
        for body, index, local in self._bodies:
            positions[:, index] = (motion.rotation[body] @ local).transpose(0, 2, 1) + motion.origin[body][:, None]
        return positions

    def sums(
        self, motion: Kinematics, positions: Floats, pull: Floats, weights: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """J^T f (n, m), J^T W J (n, m, m) and its sum with f.J' of the derivatives J of the `positions` (n, k, 3).

        `pull` (n, k, 3) is f, `weights` (n, k) are W. The velocity of a point p that a coordinate moves is w x p + v;
        the sums over its points need only moments of the weights and of f. J' are second derivatives: a coordinate
        turns the velocities of all that it carries. Those of the functions of joints and couplers are left out.
        """
        names, n = self.model.names, len(positions)
        w = np.stack([motion.turning[name] for name in names], axis=1)
        v = np.stack([motion.moving[name] for name in names], axis=1)
        first = positions * weights[:, :, None]
        moments = [weights[:, :, None], first, pull, first[..., :, None] * positions[..., None, :]]
        moments.append(positions[..., :, None] * pull[..., None, :])
        features = np.concatenate([part.reshape(n, len(self.markers), -1) for part in moments], axis=2)
        sums = np.split(self._moved.T @ features, (1, 4, 7, 16), axis=2)
        mass, centre, force, second, virial = sums

        def applied(tensor: Floats) -> Floats:
            """(tr(T) 1 - T) w of the sums T (n, c, 9)."""
            trace = tensor[..., 0] + tensor[..., 4] + tensor[..., 8]
            square = tensor.reshape(*w.shape, 3)
            return np.asarray(trace[..., None] * w - (square * w[..., None, :]).sum(axis=3))

        moment = virial[..., [5, 6, 1]] - virial[..., [7, 2, 3]]
        turning = applied(second) + cross(centre, v)
        sliding = mass * v - cross(centre, w)
        bending = cross(v, force) - applied(virial)
        vector = (w * moment).sum(axis=2) + (v * force).sum(axis=2)
        gauss_newton = self._symmetric(w @ turning.transpose(0, 2, 1) + v @ sliding.transpose(0, 2, 1))
        newton = gauss_newton + self._symmetric(w @ bending.transpose(0, 2, 1))
        reduced = [
            self._reduced(motion, self._reduced(motion, matrix).transpose(0, 2, 1)) for matrix in (gauss_newton, newton)
        ]
        return self._reduced(motion, vector[:, :, None])[..., 0], reduced[0], reduced[1]

    def _symmetric(self, product: Floats) -> Floats:
        """The symmetric matrices (n, c, c) of products that hold where the second coordinate is beyond the first."""
        return np.where(self._nested, product, np.where(self._nested.T, product.transpose(0, 2, 1), 0.0))

    def _reduced(self, motion: Kinematics, rows: Floats) -> Floats:
        """(n, m, ...) rows of the free coordinates of `rows` (n, c, ...), with those that couplers drive."""
        names = self.model.names
        for coupler in self.model.couplers:
            rate = coupler.function.slope(motion.coordinates[coupler.independent])
            rows[:, names.index(coupler.independent)] += rows[:, names.index(coupler.dependent)] * rate[:, None]
        return rows[:, [names.index(name) for name in self.coordinates]]


@dataclass(frozen=True, eq=False)
class MarkerResiduals:
    """The objective of n frames: weighted mean square of the marker errors, and of coordinates from their targets.

    With weights w of the k markers that a frame has and v of the m free coordinates it is
    sum(w e^2) / sum(w) + sum(v (q - q0)^2), as in OpenSim (Simbody's ``Markers`` and ``QValue``). `recorded` (n, k, 3)
    m has NaN where a marker is missing, `weights` (k,), `pull` (m,) are the weights of the coordinates, `targets`
    (n, m). With `ranges` (2, m) the objective has ten times the square of the distance (rad, m) beyond them as well.
    """

    layout: MarkerLayout
    recorded: Floats
    weights: Floats
    pull: Floats
    targets: Floats
    ranges: Floats | None = None

    @cached_property
    def share(self) -> Floats:
        """(n, k) weights divided by the sum over the markers of the frame."""
        weights = np.where(np.isfinite(self.recorded).all(axis=2), self.weights, 0.0)
        return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300))

    def take(self, frames: Any) -> MarkerResiduals:
        """The objective of some frames: indices or a mask."""
        return replace(self, recorded=self.recorded[frames], targets=self.targets[frames])

    def positions(self, q: Floats) -> Floats:
        """(n, k, 3) m of the markers on the model at the coordinates `q` (n, m)."""
        return self.layout.positions(self.layout.motion(q))

    def errors(self, q: Floats) -> Floats:
        """(n, k) m between markers and model, NaN where a marker is missing."""
        return np.asarray(np.linalg.norm(self.positions(q) - self.recorded, axis=2))

    def costs(self, q: Floats) -> Floats:
        """(n,) objective."""
        return self.normal_equations(q)[0]

    def normal_equations(self, q: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """The objective (n,), half its gradient (n, m), half its Gauss-Newton and its Newton matrix (n, m, m)."""
        motion = self.layout.motion(q)
        positions = self.layout.positions(motion)
        error = positions - self.recorded
        error[np.isnan(error)] = 0.0
        weighted = error * self.share[:, :, None]
        gradient, *matrices = self.layout.sums(motion, positions, weighted, self.share)
        off = q - self.targets
        cost = (weighted * error).sum(axis=(1, 2)) + (self.pull * off**2).sum(axis=1)
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
