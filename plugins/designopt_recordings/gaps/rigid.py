"""Rigid fits of many frames at once: pose of a cluster by least squares or by one triad."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from designopt.arrays import Floats
from designopt_recordings.errors import RecordingError

_COLLINEAR = 1e-3  # second singular value of a cluster by its first: less is a line


def fit(reference: Floats, positions: Floats) -> tuple[Floats, Floats, Floats]:
    """Rotations (f, 3, 3), translations (f, 3) and RMS residuals (f,) that carry `reference` (k, 3) to `positions`.

    `positions` (f, k, 3) are complete, k at least 3. Least squares by the singular value decomposition, reflections
    excluded: Söderkvist and Wedin 1993, J. Biomech. 26, 1473.
    """
    centre, centres = reference.mean(axis=0), positions.mean(axis=1)
    local, offsets = reference - centre, positions - centres[:, None]
    u, _, vt = np.linalg.svd(np.einsum("fki,kj->fij", offsets, local))
    sign = np.ones((len(positions), 3))
    sign[:, 2] = np.sign(np.linalg.det(u @ vt))
    rotation = (u * sign[:, None, :]) @ vt
    residual = offsets - np.einsum("fij,kj->fki", rotation, local)
    rms = np.sqrt(np.mean(np.sum(residual**2, axis=2), axis=1))
    return rotation, centres - np.einsum("fij,j->fi", rotation, centre), rms


def fit_triad(reference: Floats, positions: Floats) -> tuple[Floats, Floats, Floats]:
    """The pose of `fit`, by the frame of three markers: the three of `reference` with the largest triangle (Nunes 2017,
    3.2.3).

    The pose takes the first marker as origin, the line to the second as its first axis.
    """
    three = max(combinations(range(len(reference)), 3), key=lambda i: _area(reference[list(i)]))
    own_frame, theirs = _frame(reference[None, list(three)]), _frame(positions[:, list(three)])
    rotation = theirs @ np.transpose(own_frame, (0, 2, 1))
    translation = positions[:, three[0]] - np.einsum("fij,j->fi", rotation, reference[three[0]])
    residual = positions - np.einsum("fij,kj->fki", rotation, reference) - translation[:, None]
    return rotation, translation, np.sqrt(np.mean(np.sum(residual**2, axis=2), axis=1))


def spread(points: Floats) -> bool:
    """Whether `points` (k, 3) are at least three and not on a line, so that they fix a pose."""
    if len(points) < 3:
        return False
    singular = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(singular[1] > _COLLINEAR * singular[0] > 0.0)


def shape(frames: Floats) -> Floats:
    """Mean shape (k, 3) of complete `frames` (f, k, 3), each carried to the mean by a rigid fit.

    Raises `RecordingError` without a complete frame.
    """
    if not len(frames):
        raise RecordingError("there is no frame in which all markers of the cluster are present")
    mean = frames[0]
    for _ in range(3):
        rotation, translation, _ = fit(mean, frames)
        mean = np.einsum("fji,fkj->fki", rotation, frames - translation[:, None]).mean(axis=0)
    return np.asarray(mean)


def _area(triangle: Floats) -> float:
    return float(np.linalg.norm(np.cross(triangle[1] - triangle[0], triangle[2] - triangle[0])))


def _frame(triangles: Floats) -> Floats:
    """(f, 3, 3) axes as columns of triangles (f, 3, 3)."""
    i = triangles[:, 1] - triangles[:, 0]
    i = i / np.linalg.norm(i, axis=1, keepdims=True)
    k = np.cross(i, triangles[:, 2] - triangles[:, 0])
    k = k / np.linalg.norm(k, axis=1, keepdims=True)
    return np.stack([i, np.cross(k, i), k], axis=2)
