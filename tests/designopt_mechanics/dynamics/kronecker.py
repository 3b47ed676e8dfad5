"""The literal form of Ehsani, Rostami and Parnianpour (2016), with Kronecker products: an oracle with NumPy alone.

Equation numbers are the paper's; (15) carries C' Vd and G the row r_cm', as corrected. A body is a dictionary with
parent (0 is ground), type "R" or "P", Vd, d, Vth, theta, mass, com and the inertia tensor about it in `inertia`. Joint
functions are given by their values f, gradients g (r) and Hessians H (r, r).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def permutation(s: int, r: int) -> Array:
    """U with U (x kron y) = y kron x for x of length r and y of length s."""
    U = np.zeros((s * r, s * r))
    for i in range(r):
        for j in range(s):
            U[j * r + i, i * s + j] = 1.0
    return U


def vec(A: Array) -> Array:
    return A.reshape(-1, 1, order="F")


def skew(v: Any) -> Array:
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def pseudo_inertia(mass: float, centre: Any, inertia: Any) -> Array:
    c = np.asarray(centre, float)
    about_origin = np.asarray(inertia, float) + mass * (c @ c * np.eye(3) - np.outer(c, c))
    J = np.zeros((4, 4))
    J[:3, :3] = np.trace(about_origin) / 2.0 * np.eye(3) - about_origin
    J[:3, 3] = J[3, :3] = mass * c
    J[3, 3] = mass
    return J


def joint(body: Mapping[str, Any], f: float) -> tuple[Array, Array]:
    """P and Q of equations (1), (2), (14) and (15)."""
    turning = body["type"] == "R"
    theta, d = (f, body["d"]) if turning else (body["theta"], f)
    W = skew(body["Vth"])
    C = np.eye(3) + W * np.sin(theta) + 2.0 * W @ W * np.sin(theta / 2.0) ** 2
    P, Q = np.eye(4), np.zeros((4, 4))
    P[:3, :3], P[:3, 3] = C, d * np.asarray(body["Vd"])
    if turning:
        Q[:3, :3] = W
    else:
        Q[:3, 3] = C.T @ np.asarray(body["Vd"])
    return P, Q


def equations(
    bodies: Sequence[Mapping[str, Any]], f: Array, g: Array, H: Array, rates: Array, gravity: Any
) -> tuple[Array, Array, Array]:
    """M (r, r), N (r, r) and G (r) of equations (35) to (44)."""
    r = g.shape[1]
    eye, eye2 = np.eye(r), np.eye(r * r)
    A, D, D2 = [np.eye(4)], [np.zeros((4 * r, 4))], [np.zeros((4 * r * r, 4))]
    C1, C2 = np.kron(vec(np.eye(4)), eye), np.kron(vec(np.eye(4)), eye2)
    swap = np.kron(np.eye(4), permutation(r, r))
    M, N, G = np.zeros((r, r)), np.zeros((r, r)), np.zeros(r)
    for i, body in enumerate(bodies):
        P, Q = joint(body, f[i])
        before = body["parent"]
        gradient = g[i][:, None]
        A.append(A[before] @ P)
        B = A[-1].T
        D.append(np.kron(Q.T @ B, gradient) + np.kron(P.T, eye) @ D[before])
        D2.append(
            swap @ np.kron(np.kron(Q.T, eye) @ D[-1], gradient)
            + np.kron(Q.T @ B, vec(H[i]))
            + swap @ np.kron(np.kron(Q.T @ P.T, gradient), eye) @ D[before]
            + np.kron(P.T, eye2) @ D2[before]
        )
        J = pseudo_inertia(body["mass"], body["com"], body["inertia"])
        left = C1.T @ np.kron(J, permutation(r, 4).T)
        M += left @ np.kron(D[-1] @ D[-1].T, np.eye(4)) @ np.kron(np.eye(4), permutation(r, 4)) @ C1
        along = np.kron(eye, rates[:, None])
        N += left @ np.kron(D[-1] @ D2[-1].T, np.eye(4)) @ np.kron(np.eye(4), permutation(r * r, 4)) @ C2 @ along
        centre = np.append(body["com"], 1.0)[None, :]
        G += body["mass"] * (np.kron(centre, eye) @ D[-1] @ np.append(gravity, 0.0))
    return M, N, G
