"""Mechanisms in maximal coordinates with multipliers: the independent solution for forces in closed loops.

Each body has (x, y, angle) of its frame, in space its origin and a unit quaternion; each joint is a set of equations
between bodies, each driver one of its own. Accelerations and the multipliers of all joints follow from one linear
system (Haug 1989, chapters 6 and 11), for which all derivatives are by automatic differentiation of the equations.
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
        energy, work = ca.SX(0), ca.SX(0)
        for i, (name, (mass, centre, inertia)) in enumerate(self.bodies.items()):
            x = ca.vertcat(*point(poses, name, centre))
            v = ca.jtimes(x, q, dq)
            energy += 0.5 * mass * ca.sumsqr(v) + 0.5 * inertia * dq[3 * i + 2] ** 2
            work += mass * ca.dot(ca.SX(self.gravity), x)
        force = ca.gradient(work, q)
        for name, at, vector in self.loads:
            force += ca.jtimes(ca.vertcat(*point(poses, name, at)), q, ca.SX(vector), True)
        begin = np.concatenate([np.asarray(start[n], float) for n in self.bodies])
        _, accelerations, rows = solved((q, dq, t), parts, (energy, force), begin, time)
        multipliers = {n: values for n, (values, _) in rows.items()}
        return {n: accelerations[3 * i : 3 * i + 3] for i, n in enumerate(self.bodies)}, multipliers


@dataclass
class Spatial:
    """Bodies (mass, centre (3,), inertia (3, 3) about it) by name, with (x, y, z, qw, qx, qy, qz) each."""

    bodies: dict[str, tuple[float, Array, Array]]
    gravity: Sequence[float]
    equations: dict[str, Callable[[dict[str, Any], Any], Any]] = field(default_factory=dict)
    loads: list[tuple[str, Sequence[float], Sequence[float]]] = field(default_factory=list)

    def solve(self, start: dict[str, Array]) -> tuple[dict[str, Array], dict[str, dict[str, tuple[Array, Array]]]]:
        """The multipliers of each equation, and by its name and that of a body its force and moment about the body's
        origin, in the axes of the ground."""
        n = 7 * len(self.bodies)
        q, dq, t = (ca.SX.sym(name, k) for name, k in (("q", n), ("dq", n), ("t", 1)))
        poses = {name: q[7 * i : 7 * i + 7] for i, name in enumerate(self.bodies)}
        units = {f"unit {name}": ca.sumsqr(pose[3:]) - 1.0 for name, pose in poses.items()}
        parts = {name: ca.vertcat(e(poses, t)) for name, e in self.equations.items()} | units
        energy, work = ca.SX(0), ca.SX(0)
        for i, (name, (mass, centre, inertia)) in enumerate(self.bodies.items()):
            x = point_of(poses, name, centre)
            turning = 2.0 * turn_of(poses, name).T @ _rates(poses[name][3:]) @ dq[7 * i + 3 : 7 * i + 7]
            energy += 0.5 * mass * ca.sumsqr(ca.jtimes(x, q, dq)) + 0.5 * ca.bilin(ca.SX(inertia), turning, turning)
            work += mass * ca.dot(ca.SX(self.gravity), x)
        force = ca.gradient(work, q)
        for name, at, vector in self.loads:
            force += ca.jtimes(point_of(poses, name, at), q, ca.SX(vector), True)
        begin = np.concatenate([start[name] for name in self.bodies])
        posture, _, rows = solved((q, dq, t), parts, (energy, force), begin, 0.0)
        acting: dict[str, dict[str, tuple[Array, Array]]] = {}
        for equation, (multipliers, slopes) in rows.items():
            generalised = slopes.T @ multipliers
            acting[equation] = {
                name: (
                    generalised[7 * i : 7 * i + 3],
                    0.5
                    * np.asarray(ca.DM(_rates(ca.DM(posture[7 * i + 3 : 7 * i + 7]))), float)
                    @ generalised[7 * i + 3 : 7 * i + 7],
                )
                for i, name in enumerate(self.bodies)
            }
        return {name: values for name, (values, _) in rows.items()}, acting


def solved(
    symbols: tuple[Any, Any, Any], parts: dict[str, Any], dynamics: tuple[Any, Any], begin: Array, time: float
) -> tuple[Array, Array, dict[str, tuple[Array, Array]]]:
    """Posture and accelerations under equations `parts`, which leave no freedom; of each its multipliers and slopes.

    `dynamics` are the kinetic energy and the generalised forces.
    """
    (q, dq, t), (energy, force) = symbols, dynamics
    phi = ca.vertcat(*parts.values())
    M = ca.hessian(energy, dq)[0]
    bias = ca.jtimes(ca.gradient(energy, dq), q, dq) - ca.gradient(energy, q)
    G, phi_t = ca.jacobian(phi, q), ca.jacobian(phi, t)
    rate = G @ dq + phi_t
    gamma = ca.jtimes(rate, q, dq) + ca.jacobian(rate, t)
    f = ca.Function("f", [q, dq, t], [phi, G, phi_t, M, bias - force, gamma])

    def values(*at: Any) -> list[Array]:
        return [np.asarray(r, float) for r in f(*at)]

    at, zero = begin, np.zeros_like(begin)
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
    rows = {n: (multipliers[a:b], slope[a:b]) for n, a, b in zip(parts, sizes[:-1], sizes[1:], strict=True)}
    return at, solution[: len(at)], rows


def point(poses: dict[str, Pose], name: str, at: Sequence[float]) -> list[Any]:
    """(x, y) of a point of a body."""
    x, y, angle = (0.0, 0.0, 0.0) if name == "ground" else poses[name]
    return [x + ca.cos(angle) * at[0] - ca.sin(angle) * at[1], y + ca.sin(angle) * at[0] + ca.cos(angle) * at[1]]


def point_of(poses: dict[str, Any], name: str, at: Sequence[float] | Array) -> Any:
    """(3, 1) of a point of a body with (x, y, z, qw, qx, qy, qz)."""
    return ca.SX(np.asarray(at, float)) if name == "ground" else poses[name][:3] + turn_of(poses, name) @ ca.SX(at)


def turn_of(poses: dict[str, Any], name: str) -> Any:
    """(3, 3) the axes of a body."""
    if name == "ground":
        return ca.SX.eye(3)
    q = poses[name]
    w, v = q[3], q[4:]
    return (w**2 - ca.sumsqr(v)) * ca.SX.eye(3) + 2.0 * v @ v.T + 2.0 * w * ca.skew(v)


def _rates(q: Any) -> Any:
    """(3, 4): twice this times the rates of a unit quaternion is the angular velocity, in the axes of the ground."""
    return ca.horzcat(-q[1:], q[0] * ca.SX.eye(3) + ca.skew(q[1:]))
