"""Angular velocity and pure torques in natural coordinates (Nunes 2017, 5.40-5.45)."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.body.body import BodySegment


def skew(v: Floats) -> Floats:
    """(..., 3, 3) matrices with skew(v) x = v × x."""
    matrix = np.zeros((*v.shape, 3))
    matrix[..., 0, 1], matrix[..., 0, 2], matrix[..., 1, 2] = -v[..., 2], v[..., 1], -v[..., 0]
    matrix[..., 1, 0], matrix[..., 2, 0], matrix[..., 2, 1] = v[..., 2], -v[..., 1], v[..., 0]
    return matrix


def angular_matrix(body: BodySegment, q: Floats) -> Floats:
    """(f, 3, size) G of a body with ω = G q̇, for velocities that keep the body rigid.

    ω = T⁻¹ Σ u × u̇ with T = Σ (u·u I - u uᵀ) over the unit vectors of the body: the least-squares rotation, one formula
    for every layout. A torque h on the body is the generalised force Gᵀ h; its resultant is h whatever the lengths and
    angles of the vectors are, so that coordinates that are not consistent keep the balance of moments.
    """
    vectors = body.triples_of(q)[:, len(body.points) :]
    T = np.einsum("fki,fki->f", vectors, vectors)[:, None, None] * np.eye(3)
    T -= np.einsum("fki,fkj->fij", vectors, vectors)
    by_vector = np.linalg.solve(T[:, None], skew(vectors))
    G = np.zeros((len(q), 3, body.size))
    G[:, :, 3 * len(body.points) :] = by_vector.transpose(0, 2, 1, 3).reshape(len(q), 3, -1)
    return G


def angular_velocity(body: BodySegment, q: Floats, qdot: Floats) -> Floats:
    """(f, 3) ω rad/s; with q̈ in the place of q̇ the angular acceleration (the terms with q̇ cancel)."""
    return np.asarray(0.5 * np.cross(body.axes(q), body.axes(qdot), axis=-2).sum(axis=-1))
