"""Planar chains of n equal links on a fixed joint, driven by torques at all joints.

Angles of the links are measured from the downward vertical, so that the mass matrix is full but simple: with
a_ij = l_i l_j (m_j / 2 + masses beyond j) for i < j, a_ii = I_i + l_i^2 (m_i / 4 + masses beyond i) (Lagrange's
equations; Spong, Hutchinson, Vidyasagar, Robot Modeling and Control, 2006, section 7.4, for n = 2)

    sum_j a_ij (cos(q_i - q_j) q_j'' + sin(q_i - q_j) q_j'^2) + b_i g sin q_i = u_i - u_(i+1)
"""

import casadi as ca
import numpy as np

from designopt.collocation import Integral, Phase, TrajectoryProblem
from designopt.dynamics.system import System, Variable

MASS, LENGTH, GRAVITY = 1.0, 0.5, 9.81
INERTIA = MASS * LENGTH**2 / 12.0


def chain(links: int) -> System:
    """The system, in explicit and in residual form: angles q1.., rates v1.., accelerations a1.., torques u1.. ."""
    n = links
    q, v, a, u = (ca.SX.sym(name, n) for name in "qvau")
    beyond = [MASS * (n - 1 - i) for i in range(n)]

    def coupling(i: int, j: int) -> float:
        if i == j:
            return INERTIA + LENGTH**2 * (MASS / 4.0 + beyond[i])
        return LENGTH**2 * (MASS / 2.0 + beyond[max(i, j)])

    residual = []
    for i in range(n):
        net = u[i] - (u[i + 1] if i + 1 < n else 0.0)
        weight = GRAVITY * LENGTH * (MASS / 2.0 + beyond[i]) * ca.sin(q[i])
        inertial = sum(
            coupling(i, j) * (ca.cos(q[i] - q[j]) * a[j] + ca.sin(q[i] - q[j]) * v[j] ** 2) for j in range(n)
        )
        residual.append(inertial + weight - net)
    return System.from_expressions(
        f"chain_{n}",
        states=[
            *((Variable(f"q{i + 1}", "rad", -10.0, 10.0), q[i], v[i]) for i in range(n)),
            *((Variable(f"v{i + 1}", "rad/s", -50.0, 50.0), v[i], a[i]) for i in range(n)),
        ],
        controls=[(Variable(f"u{i + 1}", "N m", -100.0, 100.0), u[i]) for i in range(n)],
        unknowns=[(Variable(f"a{i + 1}", "rad/s^2"), a[i], residual[i]) for i in range(n)],
    )


def raised(links: int, duration: float = 1.0) -> TrajectoryProblem:
    """From hanging to standing, rest to rest, with the least squares of torques."""
    system = chain(links)
    angles, rates = [f"q{i + 1}" for i in range(links)], [f"v{i + 1}" for i in range(links)]
    torques = [f"u{i + 1}" for i in range(links)]
    return TrajectoryProblem(
        [
            Phase(
                system,
                tf=duration,
                initial=dict.fromkeys([*angles, *rates], 0.0),
                final={**dict.fromkeys(angles, np.pi), **dict.fromkeys(rates, 0.0)},
                integrals={"effort": Integral(lambda s: sum(s[name] ** 2 for name in torques))},
            )
        ],
        cost=lambda e: e.integral["effort"],
    )
