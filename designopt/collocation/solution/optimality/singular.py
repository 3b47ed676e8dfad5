"""Singular arcs: times at which the Hamiltonian has no curvature in a control that is not at a bound.

There the first-order conditions determine the control not by the states and costates at that time, but by their rates
(Bryson, Ho, Applied Optimal Control, 1975, chapter 8); on a mesh it is less accurate and may oscillate.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from designopt.arrays import Floats, Mask
from designopt.collocation.solution.optimality.multipliers import Multipliers, path_blocks
from designopt.collocation.solution.solution import Arc, Iterate
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.functions.functions import PerPoint
from designopt.collocation.transcription.transcription import Transcription

#: Curvature of the Hamiltonian over the scale of a control, relative to the cost, below which it is flat.
FLAT = 1e-6
#: Factor of the curvature with which directions are fixed.
LARGE = 1e6
#: Scaled distance within which a variable is at its bound, a path constraint at its limit.
NEAR = 1e-3
#: Minimum length of an arc in intervals (a switch is within one) and as a share of the phase.
LONGER, SHARE = 2, 0.02


class SingularArcs:
    """Finds the singular arcs of solutions of a program.

    Tests all variables of a point except states, in the directions that the equations, the active path constraints and
    the bounds leave free.
    """

    def __init__(self, transcription: Transcription) -> None:
        points = transcription.problem_functions.points
        self._phases = [_PhaseArcs(transcription, i) for i, point in enumerate(points) if point.nu]

    def at(self, bounds: ProgramBounds, iterate: Iterate, rows: Floats, cost: float) -> tuple[Arc, ...]:
        """Those of a solution with the objective size `cost` at an `iterate`, where the scaled constraints are `rows`
        (m,)."""
        return tuple(arc for phase in self._phases for arc in phase.at(bounds, iterate, rows, cost))


class _PhaseArcs:
    """Finds the singular arcs of phase `number`; n are the variables of a point other than states."""

    def __init__(self, transcription: Transcription, number: int) -> None:
        self._transcription, self.number = transcription, number
        self._layout = layout = transcription.layout.phases[number]
        self._shortest = LONGER * max(scheme.steps for scheme in layout.mesh.schemes) + 1
        self._point = point = transcription.problem_functions.points[number]
        self._functions = functions = transcription.problem_functions.functions[number]
        self._phase = transcription.problem_functions.problem.phases[number]
        count, nx, nw = len(layout.point), point.nx, len(point.names)
        self._fractions = layout.mesh.fractions[layout.mesh.first :]
        self._weights = weights = layout.mesh.weights[layout.mesh.first :]
        self._with_weight = slice(None) if (weights > 0.0).all() else weights > 0.0  # all points without copies
        self._scale = layout.at_points(transcription.scale)[:, nx:]
        self._is_held = np.array([name in self._phase.held_controls for name in point.names[nx:]])

        self._hessian = PerPoint(functions.hessian, count)
        rows, columns = functions.hessian_rows - nx, functions.hessian_columns - nx
        self._entries = entries = np.flatnonzero((rows >= 0) & (columns >= 0) & (rows < nw - nx) & (columns < nw - nx))
        self._rows, self._columns = rows[entries], columns[entries]
        sizes = np.where(weights > 0.0, weights, 1.0)[:, None]
        self._factors = self._scale[:, self._rows] * self._scale[:, self._columns] / sizes
        by_multipliers = np.unique(functions.hessian.jac_sparsity(0, functions.hessian.n_in() - 2).row())
        self._has_multipliers = bool(np.isin(entries, by_multipliers).any())

        ranges = functions.rows
        equations = [*ranges.residuals, *ranges.algebraic, *ranges.path]
        position = np.full(ranges.count, -1)
        position[equations] = np.arange(len(equations))
        rows, columns = position[functions.jacobian_rows], functions.jacobian_columns - nx
        self._slope_entries = entries = np.flatnonzero((rows >= 0) & (columns >= 0) & (columns < nw - nx))
        self._jacobian = PerPoint(functions.jacobian, count) if len(entries) else None
        self._slope_rows, self._slope_columns = rows[entries], columns[entries]
        self._slope_factors = self._scale[:, self._slope_columns]
        self._equations, self._paths = len(equations), len(ranges.path)
        path = [block.rows for block in path_blocks(transcription, number)]
        self._path_rows = np.hstack(path) if path else np.empty((count, 0), np.int64)

    def at(self, bounds: ProgramBounds, iterate: Iterate, rows: Floats, cost: float) -> Iterator[Arc]:
        """The arcs, as of `SingularArcs`."""
        layout, transcription = self._layout, self._transcription
        x = transcription.shift + transcription.scale * iterate.x
        constants, signals = layout.constants_and_signals(bounds.parameters)
        at_points = layout.at_points(x)
        arguments = (at_points, x[layout.theta], constants, signals, self._fractions[:, None])
        curvature = self._curvature(arguments, iterate.constraint_multipliers, cost)
        with_weight = self._with_weight
        if _is_definite(curvature[with_weight]):
            return
        t0, tf = layout.times_at(x, constants)
        times = t0 + self._fractions * (tf - t0)
        on_bound = self._on_bound(bounds, at_points[:, self._point.nx :])
        may_be_flat: Mask = np.asarray(~on_bound.all(axis=1))
        if not self._stretches(may_be_flat, times, tf - t0):  # only switches between bounds
            return
        normals = self._slopes(arguments, bounds, rows)
        if _bends_everywhere(curvature[with_weight], normals[with_weight], on_bound[with_weight]):
            return
        of_bounds = np.eye(on_bound.shape[1])[None] * on_bound[:, None, :]
        normals = np.concatenate([normals, of_bounds], axis=1)
        # bounds alone are a projection already
        onto_fixed = np.linalg.pinv(normals, rcond=1e-9) @ normals if self._equations else of_bounds
        open_to = np.eye(normals.shape[2]) - onto_fixed
        bent = open_to @ curvature @ open_to + (np.eye(normals.shape[2]) - open_to)
        if not np.isfinite(bent).all():
            return
        sizes, directions = np.linalg.eigh(0.5 * (bent + bent.transpose(0, 2, 1)))
        point = self._point
        names = point.names[point.nx + point.ns : point.nx + point.ns + point.nu]
        for a, b in self._stretches((self._weights > 0.0) & (sizes[:, 0] < FLAT), times, tf - t0):
            shares = np.abs(directions[a:b, point.ns : point.ns + point.nu, 0]).max(axis=0)
            arc_controls = tuple(n for n, share in zip(names, shares, strict=True) if share > 0.1) or tuple(names)
            yield Arc(self._phase.name, arc_controls, float(times[a]), float(times[b - 1]))

    def _stretches(self, flat: Mask, times: Floats, duration: float) -> list[tuple[int, int]]:
        """Runs of true values that are long enough for an arc: first, and one past the last."""
        with_ends = np.concatenate([[False], flat, [False]])
        edges = np.flatnonzero(with_ends[1:] != with_ends[:-1]).tolist()
        return [
            (a, b)
            for a, b in zip(edges[::2], edges[1::2], strict=True)
            if b - a > self._shortest and times[b - 1] - times[a] >= SHARE * duration
        ]

    def _curvature(self, arguments: tuple[Floats, ...], constraint_multipliers: Floats, cost: float) -> Floats:
        """The Hessian of the Lagrangian (points, n, n) in scaled variables, per share of the time and relative to the
        cost."""
        count, n = self._scale.shape
        curvature = np.zeros((count, n, n))
        if len(self._entries):
            mu: Floats | float = 0.0
            if self._has_multipliers:
                transcription = self._transcription
                by_row = constraint_multipliers / transcription.row_scale / transcription.cost_scale
                mu = Multipliers(by_row, np.empty(0)).by_point(transcription, self.number)
            [numbers] = self._hessian(*arguments, mu, self._weights[:, None])
            with np.errstate(over="ignore", invalid="ignore"):  # of a failed solve; values not finite are skipped
                numbers = numbers[:, self._entries] * (self._factors / max(abs(cost), 1e-300))
            curvature[:, self._rows, self._columns] = curvature[:, self._columns, self._rows] = numbers
        return curvature

    def _slopes(self, arguments: tuple[Floats, ...], bounds: ProgramBounds, rows: Floats) -> Floats:
        """Derivatives (points, rows, n) of equations and path constraints by scaled variables; zero where a path
        constraint is not active."""
        count, n = self._scale.shape
        slopes = np.zeros((count, self._equations, n))
        if self._jacobian is not None:
            [numbers] = self._jacobian(*arguments)
            slopes[:, self._slope_rows, self._slope_columns] = numbers[:, self._slope_entries] * self._slope_factors
        if self._paths:
            low, high = bounds.row_low[self._path_rows], bounds.row_high[self._path_rows]
            path = rows[self._path_rows]  # they are not scaled
            at_limit = (path <= low + NEAR) | (path >= high - NEAR)
            slopes[:, -self._paths :] *= at_limit[:, :, None]
        return slopes

    def _on_bound(self, bounds: ProgramBounds, at_points: Floats) -> Mask:
        """Whether each variable (points, n) is at a bound, or held: a constant on each piece is no function of time."""
        lowest, highest = (self._layout.at_points(limits)[:, self._point.nx :] for limits in (bounds.low, bounds.high))
        near = NEAR * self._scale
        on_bound: Mask = (at_points <= lowest + near) | (at_points >= highest - near) | self._is_held
        return on_bound


def _is_definite(curvature: Floats) -> bool:
    """Whether the matrices (points, n, n) bend in all directions, by a fast factorisation."""
    diagonal = np.diagonal(curvature, axis1=1, axis2=2)
    if not (diagonal > FLAT).all() or not np.isfinite(curvature).all():
        return False
    if curvature.shape[1] == 1:
        return True
    try:
        np.linalg.cholesky(curvature - FLAT * np.eye(curvature.shape[1]))
    except np.linalg.LinAlgError:
        return False
    return True


def _bends_everywhere(curvature: Floats, normals: Floats, on_bound: Mask) -> bool:
    """Whether no direction in the null space of `normals` (points, k, n) is flat, without variables `on_bound`
    (points, n).

    A matrix is positive definite on the null space of another if adding a large multiple of that one's square makes it
    positive definite (Finsler, Commentarii Mathematici Helvetici 9 (1936) 188).
    """
    augmented_curvature, diagonal = curvature.copy(), np.arange(curvature.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        factors = LARGE * np.abs(curvature).max(axis=(1, 2), initial=FLAT)
        if normals.shape[1]:
            squares = np.maximum((normals * normals).sum(axis=2, keepdims=True), 1e-300)
            augmented_curvature += normals.transpose(0, 2, 1) @ (normals / squares * factors[:, None, None])
        augmented_curvature[:, diagonal, diagonal] += factors[:, None] * on_bound
    return _is_definite(augmented_curvature)
