"""Rows that close loops over a tree of segments: surfaces that points slide on, and points that are held."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.consistency.contacts import Contacts
from designopt_wholebody.consistency.poses import Poses
from designopt_wholebody.consistency.stacked import cross, dot, product
from designopt_wholebody.constraints.rows import ellipsoid_form
from designopt_wholebody.subject import Subject


class LoopClosures:
    """m rows l · (ξ_second - ξ_first) = e to first order; `first`, `second` (m,) are places of bodies.

    One row for each point on an ellipsoid, pᵀ H p = 1 with p = Aᵀ (r - centre); three for each contact, between the
    body and the ground.
    """

    def __init__(self, subject: Subject, contact_bodies: tuple[str, ...]) -> None:
        index_of = {name: b for b, name in enumerate(subject.bodies)}
        on_surface = [
            (joint, name)
            for joint in subject.model.joints.values()
            if joint.type == "ellipsoid"
            for name in joint.points
        ]
        ends = [(index_of[joint.proximal], index_of[joint.distal]) for joint, _ in on_surface]
        self._surface, self._slider = np.array(ends, dtype=np.int64).reshape(-1, 2).T
        self._centre, self._point = np.zeros((2, len(on_surface), 3))
        self._form = np.zeros((len(on_surface), 3, 3, 1))
        for k, (joint, name) in enumerate(on_surface):
            slider = subject.bodies[joint.distal]
            self._centre[k] = np.array(joint.centre) - subject.bodies[joint.proximal].first
            self._point[k], self._form[k, :, :, 0] = slider.local[name] - slider.first, ellipsoid_form(joint)
        self._contact_bodies = np.array([index_of[name] for name in contact_bodies], dtype=np.int64)
        self._first_points = np.stack([np.zeros(3), *(subject.bodies[name].first for name in contact_bodies)])[1:]
        self.first = np.concatenate([self._surface, np.full(3 * len(self._contact_bodies), len(index_of))])
        self.second = np.concatenate([self._slider, np.repeat(self._contact_bodies, 3)])

    def rows(self, poses: Poses, contacts: Contacts | None) -> tuple[Floats, Floats]:
        """l (m, 6, f) and e (m, f); both are 0 for contacts that are off."""
        row, e = self._on_surfaces(poses)
        if contacts is None:
            return row, e
        contact_rows, wrong = self._at_contacts(poses, contacts)
        return np.concatenate([row, contact_rows]), np.concatenate([e, wrong])

    def _on_surfaces(self, poses: Poses) -> tuple[Floats, Floats]:
        r = poses.at(self._slider, self._point)
        A = poses.rotation[self._surface]
        away = r - poses.at(self._surface, self._centre)
        p = np.stack([dot(A[:, :, k], away) for k in range(3)], axis=1)
        Hp = product(self._form, p[:, :, None])
        normal = 2.0 * product(A, Hp)[:, :, 0]
        return np.concatenate([normal, cross(r, normal)], axis=1), 1.0 - dot(p, Hp[:, :, 0])

    def _at_contacts(self, poses: Poses, contacts: Contacts) -> tuple[Floats, Floats]:
        local = np.moveaxis(contacts.local - self._first_points, 0, -1)
        on = np.where(contacts.active.T, 1.0, 0.0)[:, None]
        r = (
            product(poses.rotation[self._contact_bodies], local[:, :, None])[:, :, 0]
            + poses.origin_of_body[self._contact_bodies]
        )
        wrong = np.moveaxis(contacts.target, 0, -1) - poses.origin - r
        unit = np.broadcast_to(np.eye(3)[None, :, :, None], (*r.shape[:1], 3, 3, r.shape[-1]))
        rows = np.concatenate([unit, cross(r[:, None], unit)], axis=2) * on[:, None]
        return rows.reshape(-1, *rows.shape[2:]), (wrong * on).reshape(-1, r.shape[-1])
