"""Chains of rods whose lengths are coordinates, stated without an inverted mass matrix.

Borisov (2015), doi:10.17587/mau/16.828-835, with the inverse dynamics by two sweeps over the chain: rod i points along
u = (cos psi cos phi, cos psi sin phi, sin psi) from the end of the rod before, its length l is elastic. Rods are
slender, uniform and stretch evenly (centre of mass at l/2, second moment m l^2/3), so that this is exact.
"""

import casadi as ca
import numpy as np

from designopt.dynamics import System, Variable

MASS, LENGTH, STIFFNESS, DAMPING = 2.0, 0.5, 4000.0, 5.0
GRAVITY = np.array([0.0, -9.81, 0.0])  # vertical rods are off the singular elevation


def rod_chain(rods: int, damping: float = DAMPING) -> System:
    """The system: coordinates phi1.., psi1.., l1.., their rates, unknown accelerations; output: the energy."""
    n = rods
    q, v, a = ca.SX.sym("q", 3 * n), ca.SX.sym("v", 3 * n), ca.SX.sym("a", 3 * n)
    stiffness = ca.SX.sym("stiffness")
    split = [ca.vertsplit(block) for block in (*ca.vertsplit(q, n), *ca.vertsplit(v, n), *ca.vertsplit(a, n))]

    joint, joint_velocity = ca.SX.zeros(3), ca.SX.zeros(3)
    joint_acceleration, energy, swept = ca.SX.zeros(3), 0.0, []
    for phi, psi, length, dphi, dpsi, dl, ddphi, ddpsi, ddl in zip(*split, strict=True):
        C, S, c, s = ca.cos(psi), ca.sin(psi), ca.cos(phi), ca.sin(phi)
        h, w, u, b = (ca.vertcat(*e) for e in ((-s, c, 0), (-S * c, -S * s, C), (C * c, C * s, S), (c, s, 0)))
        basis = (length * C * h, length * w, u)
        velocity = basis[0] * dphi + basis[1] * dpsi + u * dl
        acceleration = (
            basis[0] * ddphi + basis[1] * ddpsi + u * ddl - length * C * dphi**2 * b - length * dpsi**2 * u
            + 2 * (dl * C * dphi - length * S * dphi * dpsi) * h + 2 * dl * dpsi * w
        )  # fmt: skip
        centre, centre_velocity = joint + length * u / 2, joint_velocity + velocity / 2
        energy += MASS / 2 * (ca.sumsqr(centre_velocity) + ca.sumsqr(velocity) / 12) - MASS * ca.dot(centre, GRAVITY)
        energy += stiffness / 2 * (length - LENGTH) ** 2
        swept.append((basis, acceleration, MASS * (joint_acceleration + acceleration / 2 - GRAVITY), length, dl))
        joint, joint_velocity = joint + length * u, joint_velocity + velocity
        joint_acceleration += acceleration

    rows: list[list[ca.SX]] = [[], [], []]
    load = ca.SX.zeros(3)
    for basis, acceleration, force, length, dl in reversed(swept):
        effort = load + force / 2 + MASS / 12 * acceleration
        applied = (0, 0, -stiffness * (length - LENGTH) - damping * dl)
        for row, e, component in zip(rows, basis, applied, strict=True):
            row.insert(0, ca.dot(e, effort) - component)
        load += force
    residual = [entry for row in rows for entry in row]
    names = [f"{kind}{i + 1}" for kind in ("phi", "psi", "l") for i in range(n)]
    return System.from_expressions(
        f"rods_{n}",
        states=[
            *((Variable(name, ""), q[i], v[i]) for i, name in enumerate(names)),
            *((Variable(f"d{name}", ""), v[i], a[i]) for i, name in enumerate(names)),
        ],
        parameters=[(Variable("stiffness", "N/m"), stiffness)],
        outputs=[(Variable("energy", "J"), energy)],
        unknowns=[(Variable(f"dd{name}", ""), a[i], residual[i]) for i, name in enumerate(names)],
    )


def start(rods: int) -> np.ndarray:
    """Hanging rods, pushed out of their plane by some tenths of a radian."""
    i = np.arange(rods)
    phi, psi = -np.pi / 2 + 0.3 * np.cos(i), 0.2 * np.sin(1 + i)
    return np.concatenate([phi, psi, np.full(rods, LENGTH), np.zeros(3 * rods)])
