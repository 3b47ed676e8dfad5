"""Maximum of the acquisition function: the best of many candidates, refined along its gradient."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.lazy import scipy
from designopt.solvers.surrogate.coordinates import Coordinates
from designopt.solvers.surrogate.matern import squared_distances
from designopt.solvers.surrogate.processes import Processes

#: Lower and upper corner (d,) in coordinates from 0 to 1.
Bounds = tuple[Floats, Floats]

#: Designs are rounded to a grid of this step, in ranges of the parameters: far below a model's resolution.
GRID = 2.0**-26
#: Maximum distance of designs around a point, in ranges of the parameters.
CLOSE = 0.02
#: Number of candidates from which the search follows the gradient.
STARTS = 4


@dataclass(frozen=True)
class Crowd:
    """Known designs at the coordinates `U` (n, d), where they are so dense that a local process is better."""

    U: Floats

    def surrounds(self, U: Floats) -> NDArray[np.bool_]:
        """Mask (k,) of the points of `U` (k, d) with ``2 d + 2`` known designs within CLOSE, times the root of d."""
        d = U.shape[1]
        return np.asarray((squared_distances(U, self.U) < d * CLOSE**2).sum(axis=1) >= 2 * d + 2)


@dataclass(frozen=True)
class Maximum:
    """The `design` (d,) with the largest acquisition and this `value`, the `candidates` (n, d) in the order of theirs,
    and the settings of the search."""

    design: Floats
    value: float
    candidates: Floats
    processes: Processes
    bounds: Bounds | None


def maximum(
    coordinates: Coordinates,
    processes: Processes,
    candidates: Floats,
    bounds: Bounds | None,
    proposals: Collection[bytes],
    crowd: Crowd | None = None,
) -> Maximum | None:
    """The best design from `candidates` (n, d), within `bounds` if given and outside the `crowd`; None if all are in
    `proposals`."""
    X = np.array([x for x in candidates + 0.0 if x.tobytes() not in proposals]).reshape(-1, candidates.shape[1])
    if not len(X):
        return None
    if crowd is not None and (free := ~crowd.surrounds(coordinates.coordinates(X))).any():
        X = X[free]
    E = coordinates.features(X)
    acquisition = processes.acquisition(E)
    order = np.argsort(-acquisition, kind="stable")
    best, best_value = X[order[0]], float(acquisition[order[0]])
    for i in without_neighbours(E, order, STARTS):
        x, value = _local_optimum(coordinates, processes, X[i], bounds)
        if crowd is not None and crowd.surrounds(coordinates.coordinates(x[None]))[0]:
            continue
        if value > best_value and x.tobytes() not in proposals:
            best, best_value = x, value
    return Maximum(best, best_value, X[order], processes, bounds)


def without_neighbours(E: Floats, order: NDArray[np.int64], count: int) -> Iterator[int]:
    """The first `count` of `order` that are not neighbours of each other."""
    indices: list[int] = []
    for i in order[:64]:
        if all(np.abs(E[i] - E[k]).max() > 0.05 for k in indices):
            indices.append(int(i))
            yield int(i)
            if len(indices) == count:
                return


def _local_optimum(
    coordinates: Coordinates, processes: Processes, x: Floats, bounds: Bounds | None
) -> tuple[Floats, float]:
    """The design near `x` with the largest acquisition, moving real parameters only, and that value."""
    columns = coordinates.real_features
    active = coordinates.space.active(x[None])[0][coordinates.real]
    columns, moving = columns[active], coordinates.real[active]
    if not len(moving):
        return x, -np.inf
    feature = coordinates.features(x[None])[0]

    def negative(u: Floats) -> tuple[float, Floats]:
        trial = feature.copy()
        trial[columns] = u
        value, slopes = processes.acquisition_slopes(trial)
        return -value, -slopes[columns]

    lower, upper = (np.zeros(len(x)), np.ones(len(x))) if bounds is None else bounds
    box = list(zip(lower[moving], upper[moving], strict=True))
    begin = np.clip(feature[columns], lower[moving], upper[moving])
    minimum = scipy.optimize.minimize(
        negative, begin, jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": 20, "maxfun": 30}
    )
    U = coordinates.coordinates(x[None])
    U[0, moving] = np.round(np.clip(minimum.x, 0.0, 1.0) / GRID) * GRID
    design = coordinates.designs(U)
    if coordinates.space.relation_violation(design)[0] > 0.0:
        return x, -np.inf
    return design[0], -float(minimum.fun)
