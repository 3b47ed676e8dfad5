"""LAP: augmented Lagrangian of index 3 with projected velocities and accelerations, trapezoidal rule.

Nunes 2017, 2.120-2.138; Bayo & Ledesma 1996. The positions are the unknowns of a step, so they fulfil the constraints.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.forward.forces import Forces
from designopt_wholebody.forward.formulations import Accelerations
from designopt_wholebody.forward.integrators import MOST, IntegratedMotion, Recorder


def index_three(
    forces: Forces,
    q: Floats,
    qdot: Floats,
    step: float,
    steps: int,
    *,
    penalty: float = 1e7,
    tolerance: float = 1e-10,
) -> IntegratedMotion:
    """A trajectory from q, q̇ (n,), which fulfil the constraints; a step ends when ‖Δq‖ < `tolerance` m."""
    subject, h, alpha = forces.subject, step, penalty
    constraints, M = subject.constraints, subject.mass_matrix()
    start = Accelerations(forces, "LA", penalty)
    recorder = Recorder(steps, q, qdot, start(0.0, q, qdot), h)
    multipliers = start.multipliers.copy()
    for k in range(steps):
        q0, v0, a0 = recorder.q[k], recorder.qdot[k], recorder.qddot[k]
        t = (k + 1) * h
        speed = -(2.0 / h * q0 + v0)
        acceleration = -(4.0 / h**2 * q0 + 4.0 / h * v0 + a0)
        q = q0 + h * v0 + 0.5 * h**2 * a0
        count, size = 0, np.inf
        while size > tolerance and count < MOST:
            phi = constraints.values(q[None])[0]
            if count:
                multipliers = multipliers + alpha * phi
            J = constraints.dense(constraints.entries(q[None]))[0]
            qdot, qddot = 2.0 / h * q + speed, 4.0 / h**2 * q + acceleration
            R = h**2 / 4.0 * (M @ qddot + J.T @ (alpha * phi + multipliers) - forces.value(t, q, qdot))
            K, C = forces.derivatives(q, qdot)
            T = M + h / 2.0 * C + h**2 / 4.0 * (alpha * J.T @ J + K)
            change = np.linalg.solve(T, -R)
            q, count = q + change, count + 1
            size = float(np.linalg.norm(change))
        qdot, qddot = 2.0 / h * q + speed, 4.0 / h**2 * q + acceleration
        J = constraints.dense(constraints.entries(q[None]))[0]
        T = M + alpha * J.T @ J
        qdot = np.linalg.solve(T, M @ qdot)
        bias = constraints.bias(q[None], qdot[None])[0]
        qddot = np.linalg.solve(T, M @ qddot - alpha * J.T @ bias)
        if not recorder.add(q, qdot, qddot, count, size):
            break
    return replace(recorder.trajectory(), systems=start.systems + int(recorder.iterations.sum()) + 2 * recorder.at)
