"""Candidates for the next design: over the whole space, and near the best designs."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import scipy
from designopt.solvers.surrogate.coordinates import Coordinates

#: Standard deviations of the steps from known designs, in ranges of the parameters.
STEPS = (0.2, 0.05, 0.01, 0.002)
#: Share of the designs near known ones in which one coordinate alone changes, to any value.
ONE_CHANGED = 0.5
#: Mean number of coordinates of a known design that change at once, with many parameters.
CHANGED = 8.0


def candidates(
    coordinates: Coordinates,
    front: Floats,
    count: int,
    rng: np.random.Generator,
    bounds: tuple[Floats, Floats] | None,
) -> Floats:
    """Candidate designs (about `count`, d), without those that violate a relation.

    Half of them are spread over the space (or `bounds`), the others are designs of the `front` (n, d) with one
    coordinate changed to any value, or several, by steps of several sizes or taken from another design of the front.
    """
    d = len(coordinates.space.free)
    lower, upper = (np.zeros(d), np.ones(d)) if bounds is None else bounds
    spread = lower + (upper - lower) * scipy.stats.qmc.Sobol(d, rng=rng).random_base2(
        max(count // 2, 2).bit_length() - 1
    )
    front_points = coordinates.coordinates(front)
    parents = front_points[rng.integers(len(front_points), size=count - len(spread))]
    mates = front_points[rng.integers(len(front_points), size=len(parents))]
    mutates = rng.random(parents.shape) < min(1.0, CHANGED / d)
    mutates[np.arange(len(parents)), rng.integers(d, size=len(parents))] = True
    steps = np.array(STEPS)[rng.integers(len(STEPS), size=len(parents))]
    children = np.where(mutates, parents + steps[:, None] * rng.standard_normal(parents.shape), parents)
    rows = np.flatnonzero(rng.random(len(parents)) < ONE_CHANGED)
    columns = rng.integers(d, size=len(rows))
    mutates[rows] = False
    children[rows] = parents[rows]
    children[rows, columns] = rng.uniform(lower[columns], upper[columns])
    crosses = rng.random(len(parents)) < 0.25
    children[crosses] = np.where(rng.random((int(crosses.sum()), d)) < 0.5, children[crosses], mates[crosses])
    for j, p in enumerate(coordinates.space.free):
        if p.kind != "real":
            fresh = mutates[:, j] & (rng.random(len(children)) < 0.5)
            children[fresh, j] = rng.random(int(fresh.sum()))
    near = np.clip(children, lower, upper)
    X = coordinates.designs(np.vstack([spread, near]))
    return np.asarray(X[coordinates.space.relation_violation(X) <= 0.0])
