"""Singular arcs: times at which the Hamiltonian has no curvature in a control that is not at a bound.

There the first-order conditions determine the control not by the states and costates at that time, but by their rates
(Bryson, Ho, Applied Optimal Control, 1975, chapter 8); on a mesh it is less accurate and may oscillate.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from designopt.arrays import Floats, Mask
from designopt.collocation.solution.optimality.multipliers import Multipliers
from designopt.collocation.solution.solution import Arc, PhaseValues
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


def singular_arcs(
    transcription: Transcription,
    bounds: ProgramBounds,
    x: Floats,
    multipliers: Multipliers,
    values: Sequence[PhaseValues],
    cost: float,
) -> list[Arc]:
    """The singular arcs at variables `x` (n,), not scaled, of a solution with the objective size `cost`.

    Tests all variables of a point except states, in the directions that the equations, the active path constraints and
    the bounds leave free.
    """
    arcs = []
    for i, (layout, point, phase_values) in enumerate(
        zip(transcription.layout.phases, transcription.problem_functions.points, values, strict=True)
    ):
        if not point.nu:
            continue
        mesh, free = layout.mesh, slice(point.nx, len(point.names))
        weights = mesh.weights[mesh.first :]
        curvature, slopes = _derivatives(transcription, i, x, multipliers, phase_values)
        scale = layout.at_points(transcription.scale)[:, free]
        curvature = curvature[:, free, free] * scale[:, :, None] * scale[:, None, :]
        has_weight = weights > 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # of a failed solve; values that are not finite are skipped
            curvature[has_weight] /= weights[has_weight, None, None] * max(abs(cost), 1e-300)
        normals = _fixed_directions(transcription, bounds, i, x, phase_values, slopes[:, :, free] * scale[:, None, :])
        if _bends_everywhere(curvature[has_weight], normals[has_weight]):
            continue
        # bounds alone are a projection already
        onto_fixed = np.linalg.pinv(normals, rcond=1e-9) @ normals if slopes.shape[1] else normals
        open_to = np.eye(normals.shape[2]) - onto_fixed
        bent = open_to @ curvature @ open_to + (np.eye(normals.shape[2]) - open_to)
        if not np.isfinite(bent).all():
            continue
        sizes, directions = np.linalg.eigh(0.5 * (bent + bent.transpose(0, 2, 1)))
        flat = has_weight & (sizes[:, 0] < FLAT)
        times = phase_values.t0 + mesh.fractions[mesh.first :] * phase_values.duration
        names = point.names[point.nx + point.ns : point.nx + point.ns + point.nu]
        for a, b in _stretches(flat):
            steps = max(scheme.steps for scheme in mesh.schemes)
            if b - a <= LONGER * steps + 1 or times[b - 1] - times[a] < SHARE * phase_values.duration:
                continue
            shares = np.abs(directions[a:b, point.ns : point.ns + point.nu, 0]).max(axis=0)
            arc_controls = tuple(n for n, share in zip(names, shares, strict=True) if share > 0.1) or tuple(names)
            arcs.append(
                Arc(
                    transcription.problem_functions.problem.phases[i].name,
                    arc_controls,
                    float(times[a]),
                    float(times[b - 1]),
                )
            )
    return arcs


def _bends_everywhere(curvature: Floats, normals: Floats) -> bool:
    """Whether no direction in the null space of `normals` is flat, by a fast factorisation.

    A matrix is positive definite on the null space of another if adding a large multiple of that one's square makes it
    positive definite (Finsler, Commentarii Mathematici Helvetici 9 (1936) 188).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.abs(curvature).max(axis=(1, 2), initial=FLAT)
        normals = normals / np.maximum(np.sqrt((normals * normals).sum(axis=2, keepdims=True)), 1e-300)
        shifted_curvature = curvature - FLAT * np.eye(curvature.shape[1])
        augmented_curvature = shifted_curvature + (LARGE * sizes[:, None, None]) * (
            normals.transpose(0, 2, 1) @ normals
        )
    if not np.isfinite(augmented_curvature).all():
        return False
    try:
        np.linalg.cholesky(augmented_curvature)
    except np.linalg.LinAlgError:
        return False
    return True


def _derivatives(
    transcription: Transcription, i: int, x: Floats, multipliers: Multipliers, values: PhaseValues
) -> tuple[Floats, Floats]:
    """The Hessian of the Lagrangian (points, nw, nw) at each point, and the derivatives (points, rows, nw) of its
    equations and path constraints; without these there are no rows."""
    layout, functions, point = (
        transcription.layout.phases[i],
        transcription.problem_functions.functions[i],
        transcription.problem_functions.points[i],
    )
    mesh, count, nw = layout.mesh, len(layout.point), len(point.names)
    arguments = (
        layout.at_points(x),
        x[layout.theta],
        values.constants,
        values.signals,
        mesh.fractions[mesh.first :, None],
    )
    hessian = np.zeros((count, nw, nw))
    among_variables = (functions.hessian_rows < nw) & (functions.hessian_columns < nw)
    if among_variables.any():
        mu, weights = multipliers.by_point(transcription, i), mesh.weights[mesh.first :, None]
        [numbers] = _map_point_function(functions.hessian, count)(*arguments, mu, weights)
        rows, columns = functions.hessian_rows[among_variables], functions.hessian_columns[among_variables]
        hessian[:, rows, columns] = hessian[:, columns, rows] = numbers[:, among_variables]
    if functions.rows.path.stop == functions.rows.residuals.start:
        return hessian, np.zeros((count, 0, nw))
    slopes = np.zeros((count, functions.rows.count, nw))
    among_variables = functions.jacobian_columns < nw
    if among_variables.any():
        [numbers] = _map_point_function(functions.jacobian, count)(*arguments)
        slopes[:, functions.jacobian_rows[among_variables], functions.jacobian_columns[among_variables]] = numbers[
            :, among_variables
        ]
    return hessian, slopes


@lru_cache(maxsize=128)
def _map_point_function(function: Any, count: int) -> PerPoint:
    """A function of one point, mapped over several."""
    return PerPoint(function, count)


def _fixed_directions(
    transcription: Transcription, program_bounds: ProgramBounds, i: int, x: Floats, values: PhaseValues, slopes: Floats
) -> Floats:
    """Directions (points, k, n) in which the variables of a point other than states are fixed: none are zero."""
    layout, point, row_ranges = (
        transcription.layout.phases[i],
        transcription.problem_functions.points[i],
        transcription.problem_functions.functions[i].rows,
    )
    scale, at_points, lowest, highest = (
        layout.at_points(each)[:, point.nx :]
        for each in (transcription.scale, x, program_bounds.low, program_bounds.high)
    )
    near = NEAR * scale
    on_bound = (at_points <= lowest + near) | (at_points >= highest - near)
    phase = transcription.problem_functions.problem.phases[i]
    if phase.held_controls:  # a constant on each piece is not a function of time
        on_bound[:, [name in phase.held_controls for name in point.names[point.nx :]]] = True
    bounds = np.eye(on_bound.shape[1])[None] * on_bound[:, None, :]
    if not slopes.shape[1]:
        return bounds
    at_limit = np.zeros((len(on_bound), len(row_ranges.path)), bool)
    path = [block for block in transcription.blocks if block.kind == "path" and block.phase == i]
    if path:
        rows = np.hstack([block.rows for block in path])
        low, high = program_bounds.row_low[rows], program_bounds.row_high[rows]
        at_limit = (values.path <= low + NEAR) | (values.path >= high - NEAR)
    equations = slopes[:, [*row_ranges.residuals, *row_ranges.algebraic]]
    active = slopes[:, list(row_ranges.path)] * at_limit[:, :, None]
    return np.concatenate([equations, active, bounds], axis=1)


def _stretches(flat: Mask) -> list[tuple[int, int]]:
    """Runs of true values: first, and one past the last."""
    with_ends = np.concatenate([[False], flat, [False]])
    edges = np.flatnonzero(with_ends[1:] != with_ends[:-1])
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
