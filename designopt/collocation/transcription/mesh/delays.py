"""Delayed variables on a mesh: earlier values of the polynomials, linear in the variables of the program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Indices, Mask, Vector
from designopt.collocation.statement.delay import Delay
from designopt.collocation.statement.problem import Phase
from designopt.collocation.statement.stated_values import ProblemError, ends
from designopt.collocation.transcription.mesh.layout import PhaseLayout
from designopt.collocation.transcription.mesh.mesh import Mesh
from designopt.collocation.transcription.mesh.points import CollocationPoint

#: Tolerance for equal fractions of a phase and equal places of an interval.
SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Stencil:
    """A delayed variable at the points of a phase: ``sum of weights * variables + constant`` at each.

    `at` (e,), `columns` (e,), `weights` (e,) are the points, the variables of the program and their factors; `slots`
    (e,) the mesh points of these variables and `begins` (e,) whether they are the left end of the earlier interval.
    `constant` (points,) is the history, 0 for earlier times within the phase.
    """

    at: Indices
    columns: Indices
    weights: Vector
    slots: Indices
    begins: Mask
    constant: Vector

    def values(self, x: Vector) -> Vector:
        """The values (points,) for variables `x` of the program."""
        point_values = self.constant.copy()
        np.add.at(point_values, self.at, self.weights * x[self.columns])
        return point_values


def stencil(phase: Phase, name: str, point: CollocationPoint, phase_layout: PhaseLayout) -> Stencil:
    """The stencil of the delayed variable `name`. Raises `ProblemError` for other schemes than radau and for an invalid
    history."""
    delay, mesh = phase.delays[name], phase_layout.mesh
    if mesh.schemes[0].name != "radau":
        text = f"values between the points of {mesh.schemes[0].name} are not linear in the variables: use radau"
        raise ProblemError("bad_statement", f"{phase.name}: delays.{name}", text)
    fractions = earlier(phase, delay, mesh.fractions[mesh.first :])
    past = fractions <= SAME
    constant = np.zeros(len(fractions))
    constant[past] = history(phase, name, fractions[past])
    inside = np.flatnonzero(~past)
    intervals, places = located(mesh, fractions[inside])
    j = point.names.index(delay.variable)
    parts: list[tuple[Vector, ...]] = []
    for scheme, some in mesh.groups:
        of_scheme = np.isin(intervals, some)
        weights = scheme.states_at(places[of_scheme])[0] if j < point.nx else scheme.controls_at(places[of_scheme])
        slots = mesh.bases[intervals[of_scheme], None] + np.arange(scheme.steps + 1)
        columns = (
            phase_layout.states[slots, j] if j < point.nx else phase_layout.point[np.maximum(slots - mesh.first, 0), j]
        )
        at, begins = inside[of_scheme, None], np.arange(scheme.steps + 1) == 0
        used = np.abs(weights) > SAME**2
        parts.append(tuple(part[used] for part in np.broadcast_arrays(at, columns, weights, slots, begins)))
    at, columns, weights, slots, begins = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Stencil(at, columns, weights, slots, begins, constant)


def earlier(phase: Phase, delay: Delay, fractions: Vector) -> Vector:
    """The fractions of the phase, also below 0, a delay before `fractions`."""
    return np.asarray(fractions - share(phase, delay))


def share(phase: Phase, delay: Delay) -> float:
    """The delay as a share of its phase, whose times are fixed."""
    assert phase.t0 is not None
    return float(delay.by) / (ends(phase.tf)[0] - ends(phase.t0)[0])


def history(phase: Phase, name: str, fractions: Vector) -> Vector:
    """The history of a delayed variable at `fractions` of the phase from 0 down. Raises `ProblemError` for invalid
    values."""
    assert phase.t0 is not None
    t0, tf = ends(phase.t0)[0], ends(phase.tf)[0]
    try:
        return phase.delays[name].before(t0 + np.minimum(fractions, 0.0) * (tf - t0))
    except ValueError as error:
        raise ProblemError("bad_bounds", f"{phase.name}: delays.{name}", str(error)) from error


def located(mesh: Mesh, fractions: Vector) -> tuple[Indices, Vector]:
    """The intervals (n,) of `fractions`, at a node the one before it, and the places (n,) in [0, 1] there.

    Places within rounding of a point of the scheme are moved to it.
    """
    k = np.clip(np.searchsorted(mesh.nodes, fractions - SAME, side="left") - 1, 0, len(mesh) - 1)
    places = np.clip((fractions - mesh.nodes[k]) / mesh.widths[k], 0.0, 1.0)
    for scheme, some in mesh.groups:
        of_scheme = np.flatnonzero(np.isin(k, some))
        nearest = scheme.points[np.abs(places[of_scheme, None] - scheme.points).argmin(axis=1)]
        near = np.abs(places[of_scheme] - nearest) <= SAME * len(mesh)
        places[of_scheme[near]] = nearest[near]
    return k, places
