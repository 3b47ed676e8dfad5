"""Integrals and cost of a trajectory that is given by all variables of a program."""

from __future__ import annotations

from typing import Any

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


def cost_at(statement: Statement, places: Layout, x: Vector, parameters: Vector) -> float:
    """The cost at variables `x` (n,), not scaled, with its integrals by quadrature."""
    import casadi as ca

    arguments: list[Any] = []
    at, integrals = 0, integrals_at(statement, places, x, parameters)
    for point, place, of_phase in zip(statement.points, places.phases, integrals, strict=True):
        constants = parameters[at : at + point.constants.numel()]
        at += len(constants) + point.signals.numel() * len(place.point)
        fixed = list(constants[len(point.constant_names) :])
        t0 = x[place.t0] if place.t0 >= 0 else fixed.pop(0)
        tf = x[place.tf] if place.tf >= 0 else fixed.pop(0)
        of_data = constants[: len(point.constant_names)]
        arguments += [x[place.states[0]], x[place.states[-1]], t0, tf, of_phase, of_data]
    arguments.append(x[list(places.parameters.values())])
    return float(ca.Function("cost", statement.ends.all, [statement.ends.cost])(*arguments))


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
