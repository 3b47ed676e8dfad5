"""Where cables can hold a platform: every wrench of a box with every tension within its bounds."""

from __future__ import annotations

import itertools

import numpy as np

from designopt.arrays import Vector


def margins(arms: Vector, low: float, high: float, weight: Vector, box: Vector) -> Vector:
    """(n,) by how much (N or N m, along the worst direction) the wrenches that cables can make exceed those needed.

    `arms` (n, m, k) is the wrench of a unit tension of each of k cables, tensions are from `low` to `high` (N),
    `weight` (m) is the wrench of gravity and `box` (m) the largest size of each component of an outer wrench. Where it
    is not negative all wrenches of the box are feasible.

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


def stiffness(arms: Vector, tangential: float) -> Vector:
    """(n, m, m) N/m, N m/rad: R diag(k) R' of cables with `tangential` stiffness k (N/m), pre-tension left out."""
    made: Vector = tangential * arms @ np.swapaxes(arms, 1, 2)
    return made


def _normal(columns: Vector) -> Vector:
    """(n, m) the unit vector that is normal to m - 1 columns (n, m, m - 1)."""
    u, _, _ = np.linalg.svd(columns)
    last: Vector = u[:, :, -1]
    return last
