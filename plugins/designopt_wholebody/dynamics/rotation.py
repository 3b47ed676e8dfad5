"""Angular velocity and pure torques in natural coordinates (Nunes 2017, 5.40-5.45)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from designopt_wholebody.body.body import Body

Array = NDArray[np.float64]


def skew(v: Array) -> Array:
    """(..., 3, 3) matrices with skew(v) x = v × x."""
    made = np.zeros((*v.shape, 3))
    made[..., 0, 1], made[..., 0, 2], made[..., 1, 2] = -v[..., 2], v[..., 1], -v[..., 0]
    made[..., 1, 0], made[..., 2, 0], made[..., 2, 1] = v[..., 2], -v[..., 1], v[..., 0]
    return made


def angular_matrix(body: Body, q: Array) -> Array:
    """(f, 3, size) G of a body with ω = G q̇, for velocities that keep the body rigid.

    ω = ½ Σ e_k × ė_k over the three axes e_k, each a constant sum of coordinates: one formula for every layout. A
    torque h on the body is the generalised force Gᵀ h.
    """
    axes = body.axes(q)
    c = body.direction(np.eye(3))  # (3 axes, triples)
    by_triple = 0.5 * np.einsum("kt,fkij->ftij", c, skew(axes.swapaxes(-1, -2)))
    return np.asarray(by_triple.transpose(0, 2, 1, 3).reshape(len(q), 3, body.size))


def angular_velocity(body: Body, q: Array, qdot: Array) -> Array:
    """(f, 3) ω rad/s; with q̈ in the place of q̇ the angular acceleration (the terms with q̇ cancel)."""
    return np.asarray(0.5 * np.cross(body.axes(q), body.axes(qdot), axis=-2).sum(axis=-1))
