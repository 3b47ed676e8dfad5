"""A planar robot with four cables and a spatial one with eight on a frame of anchors, and their wrench-feasible
loads.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from designopt.arrays import Vector
from designopt.lazy import casadi as ca
from designopt_mechanics.body import Body
from designopt_mechanics.motions import Motion, Rotate, Slide
from designopt_mechanics.tree import GROUND, Coordinate, Frame, Point, Tree
from designopt_mechanics.wires import Wire

Kind = Literal["planar", "spatial"]

#: The frame (m): width, depth, height. The platform (m): half its width, depth and height; mass (kg) and inertia (kg
#: m^2).
WIDTH, DEPTH, HEIGHT = 2.0, 2.0, 1.6
HALF = (0.10, 0.10, 0.06)
MASS, INERTIA = 5.0, (0.025, 0.025, 0.035)
GRAVITY = {"planar": (0.0, -9.81, 0.0), "spatial": (0.0, 0.0, -9.81)}


@dataclass(frozen=True, eq=False)
class Robot:
    """A platform with cables. Coordinates are its place and turns, in the axes of the frame."""

    tree: Tree
    cables: tuple[Wire, ...]
    gravity: tuple[float, float, float]


def robot(kind: Kind, upper_inset: Any, lower_inset: Any, lower_height: Any) -> Robot:
    """Anchors at the upper and lower corners of the frame, moved inwards (m) and, the lower ones, up (m).

    Upper cables go to the lower corners of the platform and lower cables to the upper ones, in space to those across,
    which steadies its turns. The insets may be CasADi expressions.
    """
    up = 1 if kind == "planar" else 2
    cables = []
    sides = [(1.0,), (-1.0,)] if kind == "planar" else [(a, b) for a in (1.0, -1.0) for b in (1.0, -1.0)]
    for level, inset, height in (("upper", upper_inset, HEIGHT), ("lower", lower_inset, lower_height)):
        for number, side in enumerate(sides, 1):
            anchor, corner = [ca.SX(0.0)] * 3, [0.0] * 3
            for axis, (sign, span) in enumerate(zip(side, (WIDTH, DEPTH), strict=False)):
                anchor[axis] = sign * (0.5 * span - ca.SX(inset))
                crossed = kind == "spatial" and axis == (0 if level == "upper" else 1)
                corner[axis] = (-sign if crossed else sign) * HALF[axis]
            anchor[up] = ca.SX(height)
            corner[up] = -HALF[2] if level == "upper" else HALF[2]
            ends = (Point(GROUND, ca.vertcat(*anchor)), Point("platform", tuple(corner)))
            cables.append(Wire(f"{level}_{number}", ends))
    axes = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
    moves = "xy" if kind == "planar" else "xyz"
    turns = "z" if kind == "planar" else "xyz"
    middle = {"x": 0.0, "y": 0.5 * HEIGHT if kind == "planar" else 0.0, "z": 0.5 * HEIGHT}
    coordinates = [Coordinate(a, "m", -2.0, 2.0, middle[a]) for a in moves]
    coordinates += [Coordinate(f"turn_{a}", "rad", -1.0, 1.0) for a in turns]
    motions: list[Motion] = [*(Slide(axes[a], a) for a in moves), *(Rotate(axes[a], f"turn_{a}") for a in turns)]
    platform = Frame("platform", GROUND, tuple(motions), Body(MASS, inertia=INERTIA))
    return Robot(Tree(tuple(coordinates), (platform,)), tuple(cables), GRAVITY[kind])


def margins(arms: Vector, low: float, high: float, weight: Vector, box: Vector) -> Vector:
    """(n,) by how much (N or N m, along the worst direction) the wrenches that cables can make exceed those needed.

    `arms` (n, m, k) is the wrench of a unit tension of each of k cables, tensions are from `low` to `high` (N),
    `weight` (m) is the wrench of gravity and `box` (m) the largest magnitude of each component of an outer wrench.
    Where it is not negative all wrenches of the box are feasible.

    The wrenches of bounded tensions are a zonotope; its faces are normal to what m - 1 of the cables leave free
    (Bouchard, Gosselin and Moore 2010; Gouttefarde and Krut 2010). Exact; degenerate poses, whose cables do not span
    all directions, have a margin that is not positive.
    """
    n, m, k = arms.shape
    if k < m:
        return np.full(n, -np.inf)
    worst = np.full(n, np.inf)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    centre = middle * arms.sum(axis=2) + weight
    for chosen in itertools.combinations(range(k), m - 1):
        normal = _normal(arms[:, :, chosen])
        reach = half * np.abs(np.einsum("nm,nmk->nk", normal, arms)).sum(axis=1)
        # the needed wrench is -(weight + outer): the middle of all that cables make must be near enough to it
        off = np.abs((normal * centre).sum(axis=1)) + np.abs(normal) @ box
        worst = np.minimum(worst, reach - off)
    return worst


def least_tensions(arms: Vector, wrench: Vector, low: float, high: float) -> Vector | None:
    """(k,) N with the least sum of squares, from `low` to `high`, whose wrench (m,) is `wrench`; None without any.

    `arms` (m, k) is the wrench of a unit tension of each cable.
    """
    m, k = arms.shape
    program = ca.conic(
        "tensions",
        "qrqp",
        {"h": ca.Sparsity.diag(k), "a": ca.Sparsity.dense(m, k)},
        {"print_iter": False, "print_header": False, "print_info": False, "error_on_fail": False},
    )
    solution = program(h=2.0 * np.eye(k), g=0.0, a=arms, lba=wrench, uba=wrench, lbx=low, ubx=high)
    tensions: Vector = np.asarray(solution["x"], dtype=np.float64).ravel()
    error = np.abs(arms @ tensions - wrench).max()
    if not program.stats()["success"] or not error < 1e-6 * (1.0 + np.abs(wrench).max()):
        return None
    return tensions


def stiffness(arms: Vector, tangential: float) -> Vector:
    """(n, m, m) N/m, N m/rad: R diag(k) R' of cables with `tangential` stiffness k (N/m), pre-tension left out."""
    matrix: Vector = tangential * arms @ np.swapaxes(arms, 1, 2)
    return matrix


def _normal(columns: Vector) -> Vector:
    """(n, m) the unit vector that is normal to m - 1 columns (n, m, m - 1)."""
    u, _, _ = np.linalg.svd(columns)
    last: Vector = u[:, :, -1]
    return last
