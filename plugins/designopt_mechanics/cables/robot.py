"""A planar robot with four cables and a spatial one with eight on a frame of anchors, and their wrench-feasible
loads.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from designopt.arrays import Floats
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
                is_crossed = kind == "spatial" and axis == (0 if level == "upper" else 1)
                corner[axis] = (-sign if is_crossed else sign) * HALF[axis]
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


def margins(arms: Floats, low: float, high: float, weight: Floats, box: Floats) -> Floats:
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
    for cables in itertools.combinations(range(k), m - 1):
        normal = _normal(arms[:, :, cables])
        reach = half * np.abs(np.einsum("nm,nmk->nk", normal, arms)).sum(axis=1)
        # the needed wrench is -(weight + outer): the middle of all that cables make must be near enough to it
        off = np.abs((normal * centre).sum(axis=1)) + np.abs(normal) @ box
        worst = np.minimum(worst, reach - off)
    return worst


def positive_share(values: Floats) -> float:
    """Share of the box of a grid with `values` (n1, n2) or (n1, n2, n3) where they are positive, linear in between.

    Each cell is cut into the triangles or tetrahedra of its axes' permutations (Kuhn 1960); within these the share is a
    closed form, so that it changes smoothly with the values.
    """
    d = values.ndim
    shares = []
    for order in itertools.permutations(range(d)):
        corner = [0] * d
        corners = [tuple(corner)]
        for axis in order:
            corner[axis] = 1
            corners.append(tuple(corner))
        cells = [values[tuple(slice(c, n - 1 + c) for c, n in zip(at, values.shape, strict=True))] for at in corners]
        shares.append(_share_of_simplex(-np.sort(-np.stack(cells, axis=-1).reshape(-1, d + 1), axis=1)))
    return float(np.mean(shares))


def _share_of_simplex(f: Floats) -> Floats:
    """(n,) share of triangles or tetrahedra where a linear function is positive, from its values (n, d + 1) at the
    corners, which decrease.
    """
    d = f.shape[1] - 1
    positive = (f > 0.0).sum(axis=1)
    share: Floats = (positive == d + 1).astype(np.float64)
    for mask, tip, side in ((positive == 1, 0, 0.0), (positive == d, d, 1.0)):  # one corner differs from the others
        g = f[mask]
        corner = np.prod([g[:, tip] / (g[:, tip] - g[:, j]) for j in range(d + 1) if j != tip], axis=0)
        share[mask] = np.abs(side - corner)
    if d == 3:
        a, b, c, e = f[positive == 2].T
        top = (a * b) ** 2 - (c + e) * a * b * (a + b) + c * e * (a**2 + a * b + b**2)
        share[positive == 2] = top / ((a - c) * (a - e) * (b - c) * (b - e))
    return share


def least_tensions(arms: Floats, wrench: Floats, low: float, high: float) -> Floats | None:
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
    tensions: Floats = np.asarray(solution["x"], dtype=np.float64).ravel()
    error = np.abs(arms @ tensions - wrench).max()
    if not program.stats()["success"] or not error < 1e-6 * (1.0 + np.abs(wrench).max()):
        return None
    return tensions


def stiffness(arms: Floats, tangential: float) -> Floats:
    """(n, m, m) N/m, N m/rad: R diag(k) R' of cables with `tangential` stiffness k (N/m), pre-tension left out."""
    matrix: Floats = tangential * arms @ np.swapaxes(arms, 1, 2)
    return matrix


def _normal(columns: Floats) -> Floats:
    """(n, m) the unit vector that is normal to m - 1 columns (n, m, m - 1)."""
    u, _, _ = np.linalg.svd(columns)
    last: Floats = u[:, :, -1]
    return last
