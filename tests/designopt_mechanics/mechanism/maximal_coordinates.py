"""Planar mechanisms in maximal coordinates with multipliers: the independent solution for forces in closed loops.

Each body has (x, y, angle) of its frame; each joint is a set of equations between bodies, each driver one of its own.
Accelerations and the multipliers of all joints follow from one linear system (Haug 1989, chapter 6), for which all
derivatives are by automatic differentiation of the equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Pose = tuple[Any, Any, Any]


@dataclass
class Planar:
    """Bodies (mass, centre (2,), inertia about it) by name; equations are functions of the poses and of time."""

    bodies: dict[str, tuple[float, tuple[float, float], float]]
    gravity: tuple[float, float] = (0.0, -9.81)
    equations: dict[str, Callable[[dict[str, Pose], Any], list[Any]]] = field(default_factory=dict)
    loads: list[tuple[str, tuple[float, float], tuple[float, float]]] = field(default_factory=list)

    def pin(self, name: str, a: str, at: Sequence[float], b: str, on: Sequence[float]) -> None:
        """A point of body a on a point of body b ("ground" for none)."""
        self.equations[name] = lambda q, t: [x - y for x, y in zip(point(q, a, at), point(q, b, on), strict=True)]

    def solve(self, start: dict[str, Sequence[float]], time: float = 0.0) -> tuple[dict[str, Array], dict[str, Array]]:
        """Accelerations (3,) of the bodies, and the multipliers of each equation: forces on its bodies are the
        derivatives of the equation times these."""
        q, dq, t = (ca.SX.sym(n, k) for n, k in (("q", 3 * len(self.bodies)), ("dq", 3 * len(self.bodies)), ("t", 1)))
        poses = {n: (q[3 * i], q[3 * i + 1], q[3 * i + 2]) for i, n in enumerate(self.bodies)}
        parts = {n: ca.vertcat(*e(poses, t)) for n, e in self.equations.items()}
        phi = ca.vertcat(*parts.values())
        energy, work = ca.SX(0), ca.SX(0)
        for i, (name, (mass, centre, inertia)) in enumerate(self.bodies.items()):
            x = ca.vertcat(*point(poses, name, centre))
            v = ca.jtimes(x, q, dq)
            energy += 0.5 * mass * ca.sumsqr(v) + 0.5 * inertia * dq[3 * i + 2] ** 2
            work += mass * ca.dot(ca.SX(self.gravity), x)
        force = ca.gradient(work, q)
        for name, at, vector in self.loads:
            force += ca.jtimes(ca.vertcat(*point(poses, name, at)), q, ca.SX(vector), True)
        M = ca.hessian(energy, dq)[0]
        bias = ca.jtimes(ca.gradient(energy, dq), q, dq) - ca.gradient(energy, q)
        G, phi_t = ca.jacobian(phi, q), ca.jacobian(phi, t)
        rate = G @ dq + phi_t
        gamma = ca.jtimes(rate, q, dq) + ca.jacobian(rate, t)
        f = ca.Function("f", [q, dq, t], [phi, G, phi_t, M, bias - force, gamma])

        def values(*at: Any) -> list[Array]:
            return [np.asarray(r, float) for r in f(*at)]

        at = np.concatenate([np.asarray(start[n], float) for n in self.bodies])
        zero = np.zeros_like(at)
        for _ in range(30):
            value, slope = values(at, zero, time)[:2]
            at = at - np.linalg.lstsq(slope, value.ravel(), rcond=None)[0]
        assert np.abs(values(at, zero, time)[0]).max() < 1e-12
        _, slope, phi_t, *_ = values(at, zero, time)
        speed = np.linalg.lstsq(slope, -phi_t.ravel(), rcond=None)[0]
        _, slope, _, M, left, gamma = values(at, speed, time)
        k = len(slope)
        system = np.block([[M, -slope.T], [slope, np.zeros((k, k))]])
        solution = np.linalg.solve(system, np.concatenate([-left.ravel(), -gamma.ravel()]))
        sizes = np.cumsum([0, *(e.numel() for e in parts.values())])
        multipliers = solution[len(at) :]
        return (
            {n: solution[3 * i : 3 * i + 3] for i, n in enumerate(self.bodies)},
            {n: multipliers[a:b] for n, a, b in zip(parts, sizes[:-1], sizes[1:], strict=True)},
        )


def point(poses: dict[str, Pose], name: str, at: Sequence[float]) -> list[Any]:
    """(x, y) of a point of a body."""
    x, y, angle = (0.0, 0.0, 0.0) if name == "ground" else poses[name]
    return [x + ca.cos(angle) * at[0] - ca.sin(angle) * at[1], y + ca.sin(angle) * at[0] + ca.cos(angle) * at[1]]
