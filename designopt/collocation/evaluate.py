"""Integrals of a trajectory that is given by all variables of a program."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from designopt.collocation.layout import Layout, PhaseLayout
from designopt.collocation.points import Point
from designopt.collocation.transcription import Statement

Vector = NDArray[np.float64]


def integrals_at(statement: Statement, places: Layout, x: Vector, parameters: Vector) -> list[Vector]:
    """The integrals of every phase, by the quadrature of its scheme, at variables `x` (n,), not scaled."""
    found, at = [], 0
    for point, place in zip(statement.points, places.phases, strict=True):
        size = point.constants.numel() + point.signals.numel() * len(place.point)
        found.append(_integrals(point, place, x, parameters[at : at + size]))
        at += size
    return found


def _integrals(point: Point, place: PhaseLayout, x: Vector, numbers: Vector) -> Vector:
    if not point.integrands:
        return np.empty(0)
    count = len(place.point)
    constants, signals = np.split(numbers, [point.constants.numel()])
    weights = place.mesh.weights[place.mesh.first :]
    *_, integrands = point.everything.map(count)(
        x[place.point].T, x[place.theta], constants, signals.reshape(count, -1).T,
        place.mesh.fractions[None, place.mesh.first :],
    )  # fmt: skip
    return np.asarray(np.asarray(integrands, float) @ weights)
