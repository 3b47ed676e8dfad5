"""From the multipliers of a program to those of the trajectory: costates, shadow prices of limits, sensitivities.

The program's Lagrangian is f + lambda' g + z' x. Every reported multiplier is the derivative of the optimal objective
with respect to the number it belongs to: the limit of a constraint (-lambda, -z), a parameter, a datum; for a costate
the state at that time, so that H = L + costate' f and d costate/dt = -dH/dx.

With P and Q of a scheme (`scheme`), Lambda the multipliers of an interval's defects and T the derivative of a point's
contribution (rates, integrands, path constraints), the state of a node enters the Lagrangian with

    sum_i Lambda_i P_i0 + T_right   of the interval to its right, which is the costate there, and
    sum_i Lambda_i P_im + T_left    of the one to its left, which is minus the costate.

Their sum is zero at the optimum. T is divided between them like the quadrature weights, so derivatives are needed only
at the ends. Points within an interval: for a Radau scheme costate_j = -sum_i Lambda_i Q_ij / w_j, the defect multiplier
divided by the quadrature weight, for which the derivative of H with respect to the control is zero there (Garg et al.,
Automatica 46 (2010) 1843); for Hermite-Simpson the cubic through the costates of the nodes and their rates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.solution import PhaseValues
from designopt.collocation.statement.mesh import Mesh
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.layout import Block
from designopt.collocation.transcription.transcription import Transcription
from designopt.lazy import casadi as ca


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Unscaled multipliers of a program: of rows (m,) and of the boxes of variables (n,), as lambda and z."""

    constraint_multipliers: Floats
    bound_multipliers: Floats

    def by_point(self, transcription: Transcription, i: int) -> Floats:
        """The multipliers (points, rows of a point) of all rows at the points of phase i."""
        layout, functions = transcription.layout.phases[i], transcription.problem_functions.functions[i]
        mesh = layout.mesh
        by_row = np.zeros((len(layout.point), functions.rows.count))
        row_ranges = functions.rows
        path, integral = row_ranges.path.start, 0
        for block in transcription.blocks:
            if block.phase != i:
                continue
            row_multipliers = self.constraint_multipliers[block.rows]
            if block.kind == "defect":
                by_row[:, row_ranges.rates] = _through_rates(mesh, row_multipliers)
            elif block.kind == "residual":
                by_row[:, row_ranges.residuals] = row_multipliers
            elif block.kind == "algebraic":
                by_row[:, row_ranges.algebraic] = row_multipliers
            elif block.kind == "path":
                by_row[:, path : path + len(block.names)] = row_multipliers
                path += len(block.names)
            elif block.kind == "integral":
                by_row[:, row_ranges.integrands[integral]] = -mesh.weights[mesh.first :] * row_multipliers[0, 0]
                integral += 1
        return by_row


def multipliers(
    transcription: Transcription,
    program_bounds: ProgramBounds,
    x: Floats,
    constraint_multipliers: Floats,
    bound_multipliers: Floats,
) -> Multipliers:
    """Unscaled multipliers, from the solver's at its scaled variables `x`.

    IPOPT treats variables with equal bounds as parameters without multipliers: theirs follow from the gradient of the
    Lagrangian, which is zero.
    """
    rows = constraint_multipliers / transcription.row_scale / transcription.cost_scale
    bounds = bound_multipliers.copy()
    fixed = np.flatnonzero(program_bounds.low == program_bounds.high)
    if len(fixed):
        bounds[fixed] = -lagrangian_gradient(transcription, program_bounds, x, constraint_multipliers)[fixed]
    return Multipliers(rows, bounds / transcription.scale / transcription.cost_scale)


def lagrangian_gradient(
    transcription: Transcription, bounds: ProgramBounds, x: Floats, constraint_multipliers: Floats
) -> Floats:
    """The scaled gradient (n,) of cost and constraints at scaled variables `x`, without the boxes."""
    gradient = np.asarray(transcription.gradient(x, bounds.parameters)[1], float).ravel()
    if not len(constraint_multipliers):
        return gradient
    jacobian = transcription.jacobian(x, bounds.parameters)[1]
    return np.asarray(gradient + np.asarray(ca.mtimes(jacobian.T, ca.DM(constraint_multipliers)), float).ravel())


def path_blocks(transcription: Transcription, i: int) -> list[Block]:
    """The rows of the path constraints of phase i."""
    return [block for block in transcription.blocks if block.kind == "path" and block.phase == i]


def costates(transcription: Transcription, i: int, multipliers: Multipliers, x: Floats, values: PhaseValues) -> Floats:
    """Costates (slots, nx) of phase i at variables `x` (not scaled), where its functions have `values`."""
    problem_functions = transcription.problem_functions
    layout, functions = transcription.layout.phases[i], problem_functions.functions[i]
    mesh, nx = layout.mesh, problem_functions.points[i].nx
    block = next(block for block in transcription.blocks if block.kind == "defect" and block.phase == i)
    defects = multipliers.constraint_multipliers[block.rows]
    of_points = multipliers.by_point(transcription, i)

    def at_point(k: int) -> Floats:
        """T of a point: the derivative of its contribution with respect to its states."""
        theta = x[layout.theta]
        fraction = mesh.fractions[mesh.first + k]
        arguments = (x[layout.point[k]], theta, values.constants, values.signals[k], fraction)
        total = np.zeros(len(layout.point[k]) + len(theta))
        constraint_multipliers = np.asarray(functions.jacobian(*arguments), float).ravel()
        np.add.at(total, functions.jacobian_columns, constraint_multipliers * of_points[k, functions.jacobian_rows])
        of_cost = np.asarray(functions.cost_gradient(*arguments), float).ravel()
        np.add.at(total, functions.cost_columns, of_cost * mesh.weights[mesh.first + k])
        return total[:nx]

    first = at_point(0) if mesh.first == 0 else np.zeros(nx)
    return _trajectories(mesh, defects, first, at_point(len(layout.point) - 1), values.duration)


def _trajectories(mesh: Mesh, defects: Floats, first: Floats, last: Floats, duration: float) -> Floats:
    """Costates (slots, nx) from the multipliers of the defects (slots - 1, nx) and T at both ends."""
    count, nx = len(mesh), defects.shape[1]
    right, left = np.zeros((count + 1, nx)), np.zeros((count + 1, nx))  # linear parts of nodes: k's from k, k + 1's
    of_right, of_left = np.zeros(count + 1), np.zeros(count + 1)  # their quadrature weights
    for scheme, intervals in mesh.groups:
        interval_defects = defects[mesh.bases[intervals, None] + np.arange(scheme.steps)]  # (intervals, steps, nx)
        right[intervals] = np.einsum("kix,i->kx", interval_defects, scheme.P[:, 0])
        left[intervals + 1] = np.einsum("kix,i->kx", interval_defects, scheme.P[:, -1])
        of_right[intervals] = mesh.widths[intervals] * scheme.weights[0]
        of_left[intervals + 1] = mesh.widths[intervals] * scheme.weights[-1]
    total = of_left + of_right
    share = np.divide(of_left, total, out=np.ones_like(total), where=total > 0.0)[:, None]
    nodes = share * right - (1.0 - share) * left
    nodes[0], nodes[-1] = right[0] + first, -left[-1] - last
    costate_values = np.empty((mesh.slots, nx))
    costate_values[mesh.bases] = nodes
    rates = np.empty((count + 1, nx))
    rates[1:-1] = (left + right)[1:-1] / (duration * total[1:-1, None])
    rates[0] = -first / (duration * total[0]) if total[0] else 0.0
    rates[-1] = -last / (duration * total[-1])
    for scheme, intervals in mesh.groups:
        interval_defects = defects[mesh.bases[intervals, None] + np.arange(scheme.steps)]
        if not scheme.collocates_left_end:
            for j in range(1, scheme.steps):
                costate_values[mesh.bases[intervals] + j] = (
                    -np.einsum("kix,i->kx", interval_defects, scheme.Q[:, j]) / scheme.weights[j]
                )
        elif scheme.steps == 2:
            h = duration * mesh.widths[intervals, None]
            middle = np.einsum("kix,i->kx", interval_defects, scheme.P[:, 1]) / (h * scheme.weights[1])
            at_nodes, of_rates = scheme.states_at(np.array([0.5]))
            begin = at_nodes[0, 0] * nodes[intervals] + at_nodes[0, 2] * nodes[intervals + 1]
            parts = (rates[intervals], middle, rates[intervals + 1])
            costate_values[mesh.bases[intervals] + 1] = begin + h * sum(
                w * r for w, r in zip(of_rates[0], parts, strict=True)
            )
    return costate_values


def _through_rates(mesh: Mesh, defects: Floats) -> Floats:
    """The multipliers (points, nx) of the rates of all points: -sum Lambda Q h."""
    rate_multipliers = np.zeros((mesh.slots, defects.shape[1]))
    for scheme, intervals in mesh.groups:
        interval_defects = defects[mesh.bases[intervals, None] + np.arange(scheme.steps)]
        parts = -np.einsum("kix,ir,k->krx", interval_defects, scheme.Q, mesh.widths[intervals])
        np.add.at(rate_multipliers, mesh.bases[intervals, None] + np.arange(scheme.steps + 1), parts)
    return rate_multipliers[mesh.first :]
