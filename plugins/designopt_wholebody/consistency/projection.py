"""Velocities and accelerations of trees of rigid segments nearest to measured ones, by the recursion for positions.

Rates of triples z are those of twists ξ = (v, ω), ż = ω × z, with v added for points; second rates those of η = (a, α),
z̈ = α × z + ω × ż, with a added. The residual of a joint is replaced by the term that its rates add to its second
rates.
"""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.consistency.links import JointGroup
from designopt_wholebody.consistency.poses import Poses
from designopt_wholebody.consistency.recursion import Recursion
from designopt_wholebody.consistency.stacked import cross, dot, product, rotate, transposed


class RecursiveProjection:
    """The nearest rates at consistent coordinates `q` (f, n), in the metric of the identity."""

    def __init__(self, recursion: Recursion, q: Floats) -> None:
        self.recursion, self.q = recursion, q
        triples = self._triples(q)
        origin = triples[0, 0].copy()
        shapes = recursion.shapes
        self.poses = Poses.near(shapes, triples - shapes.point * origin, origin)[0]
        self.ones = np.ones((*triples.shape[:2], 3, 1))

    def velocities(self, raw_rates: Floats) -> Floats:
        """(f, n) q̇ with J q̇ = 0 for `raw_rates` (f, n)."""
        motions = [(N, np.zeros_like(r)) for N, r in (links.motion(self.poses) for links, _ in self.recursion.groups)]
        rows, e = self.recursion.loops.rows(self.poses, None)
        twists = self._nearest(self._triples(raw_rates), motions, rows, np.zeros_like(e))
        return self._coordinates(self._rates(twists))

    def accelerations(self, qdot: Floats, raw_rates: Floats) -> Floats:
        """(f, n) q̈ with J q̈ = -J̇ q̇ for q̇ that fulfils the constraints and `raw_rates` (f, n)."""
        zdot = self._triples(qdot)
        omega = self._turning(zdot)
        bent = cross(omega[:-1, None], zdot)  # ω × ż
        motions = [self._bent(links, omega, zdot) for links, _ in self.recursion.groups]
        rows, _ = self.recursion.loops.rows(self.poses, None)
        twists = self._nearest(self._triples(raw_rates) - bent, motions, rows, self._surfaces(qdot, bent))
        return self._coordinates(self._rates(twists) + bent)

    def _nearest(self, target_motion: Floats, motions: list[tuple[Floats, Floats]], rows: Floats, e: Floats) -> Floats:
        H, fit = self.poses.fit(self.poses.triples + target_motion, self.ones)
        return self.recursion.nearest(H, fit, motions, rows, e)

    def _rates(self, twists: Floats) -> Floats:
        """(b, 4, 3, f) of triples, of twists (b, 6, f)."""
        turning = cross(twists[:, None, 3:], self.poses.triples)
        return np.asarray(turning + self.poses.shapes.point * twists[:, None, :3])

    def _turning(self, zdot: Floats) -> Floats:
        """(b + 1, 3, f) ω of the segments and of the ground, of rates of triples (b, 4, 3, f)."""
        rates = product(self.poses.shapes.axes[..., None], zdot)
        omega = 0.5 * cross(transposed(self.poses.rotation[:-1]), rates).sum(axis=1)
        return np.concatenate([omega, np.zeros_like(omega[:1])])

    def _bent(self, group: JointGroup, omega: Floats, zdot: Floats) -> tuple[Floats, Floats]:
        """N of a group of links, and r that the rates leave to the second rates of their joints."""
        poses = self.poses
        N, r = group.motion(poses)
        r = np.zeros_like(r)
        if group.type == "free":
            return N, r
        child, parent = omega[group.child], omega[group.parent]
        centre = poses.at(group.child, group.at_child)
        moving = zdot[group.child, 0] + cross(child, rotate(poses.rotation[group.child], group.at_child))
        r[:, :3] = cross(parent - child, moving)
        if group.type == "revolute":
            r[:, 3:] = cross(parent, child)
        elif group.type == "universal":
            a = rotate(poses.rotation[group.parent], group.axis_parent)
            b = rotate(poses.rotation[group.child], group.axis_child)
            adot, bdot = cross(parent, a), cross(child, b)
            left = dot(cross(parent, adot), b) + dot(a, cross(child, bdot)) + 2.0 * dot(adot, bdot)
            normal = cross(b, a)
            r[:, 3:] = -(left / dot(normal, normal))[:, None] * normal
        r[:, :3] += cross(centre, r[:, 3:])
        return N, r

    def _surfaces(self, qdot: Floats, bent: Floats) -> Floats:
        """(m, f) e of the rows of surfaces: minus their second rates without η."""
        constraints = self.recursion.subject.constraints
        rows = [i for i, name in enumerate(constraints.names) if name.kind == "ellipsoid"]
        without = constraints.product(constraints.entries(self.q), self._coordinates(bent))
        return -(without + constraints.bias(self.q, qdot))[:, rows].T

    def _triples(self, q: Floats) -> Floats:
        """(b, 4, 3, f) of coordinates (f, n)."""
        return np.ascontiguousarray(q.T).reshape(len(self.recursion.subject.bodies), 4, 3, len(q))

    def _coordinates(self, triples: Floats) -> Floats:
        return np.ascontiguousarray(triples.reshape(-1, triples.shape[-1]).T)
