"""Error estimate on every interval: the difference between a solution and the motion caused by its own controls.

Source: Patterson, Hager, Rao, "A ph mesh refinement method for optimal control", Optim. Control Appl. Meth. 36 (2015)
398-421, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from designopt.arrays import Floats, Indices
from designopt.collocation.solution.solution import PhaseSolution
from designopt.collocation.solution.verification.equations import EquationsAlong
from designopt.collocation.solution.verification.violation import point_values
from designopt.collocation.statement.problem import Phase
from designopt.collocation.statement.scheme import Scheme, derivative_matrix
from designopt.collocation.transcription.mesh.points import CollocationPoint

#: Panels of an interval, and Gauss points of each, in the search for pulses.
PANELS, GAUSS = 4, 5


def interval_errors(phase: Phase, solution: PhaseSolution, parameters: Mapping[str, float]) -> Floats:
    """The estimated relative error (intervals,) of the states of a phase.

    On each interval the dynamics along the interpolated solution are integrated from its left end with a quadrature one
    degree finer than the scheme. The error is the largest difference from the interpolated states, relative to 1 + the
    largest absolute value of that state on the interval, without errors of earlier intervals. It is reliable when small
    (below about 1e-3). Larger ones, and those where a control switches or a bound becomes active inside an interval,
    are optimistic by a factor of ten and more. It is infinite if the equations are not finite between the points.
    """
    equations = EquationsAlong(phase, solution, parameters)
    mesh = solution.mesh
    errors = np.empty(len(mesh))
    for scheme, some in mesh.groups:
        tau, A = finer_quadrature(3 if scheme.starts else control_degree(scheme) + 2)
        x = equations.states(some, np.concatenate([[0.0], tau]))
        rates = equations.rates(x[:, 1:], some, tau)
        h = equations.duration * mesh.widths[some, None, None]
        with np.errstate(all="ignore"):
            integrated = x[:, :1] + h * np.einsum("jr,krn->kjn", A, rates)
            difference = np.abs(integrated - x[:, 1:]).max(axis=1) / (1.0 + np.abs(x).max(axis=1))
        errors[some] = difference.max(axis=1)
    return np.where(np.isnan(errors), np.inf, errors)


def pulse_errors(
    phase: Phase, point: CollocationPoint, solution: PhaseSolution, parameters: Mapping[str, float]
) -> Floats:
    """The effect of a pulse between the points of an interval on states and integrals (intervals,), relative as above.

    Rates and integrands along the interpolated solution are integrated over each interval with `PANELS` panels of Gauss
    points, which resolve a twentieth of the interval; integrals are relative to 1 + their size.
    """
    equations = EquationsAlong(phase, solution, parameters)
    mesh, states = solution.mesh, [v.name for v in phase.system.states]
    other_names = point.names[len(states) :]
    inner, weights = np.polynomial.legendre.leggauss(GAUSS)
    tau = (np.arange(PANELS)[:, None] + 0.5 * (inner + 1.0)).ravel() / PANELS
    weights = np.tile(0.5 * weights / PANELS, PANELS)
    errors = np.zeros(len(mesh))
    for scheme, some in mesh.groups:
        ends = equations.states(some, np.array([0.0, 1.0]))
        x = equations.states(some, tau)
        h = equations.duration * mesh.widths[some]
        with np.errstate(all="ignore"):
            gained = h[:, None] * np.einsum("j,kjn->kn", weights, equations.rates(x, some, tau))
            difference = np.abs(gained - (ends[:, 1] - ends[:, 0])) / (1.0 + np.abs(x).max(axis=1))
            errors[some] = difference.max(axis=1)
            if phase.integrals:
                fine = _integrals(point, equations, x, some, tau, other_names) @ weights
                places = scheme.points[1:] if not scheme.starts else scheme.points
                of_scheme = scheme.weights[-len(places) :]
                coarse = (
                    _integrals(point, equations, equations.states(some, places), some, places, other_names) @ of_scheme
                )
                sizes = 1.0 + np.abs(list(solution.integrals.values()))
                missed = np.abs(fine - coarse) * mesh.widths[some] / sizes[:, None]
                errors[some] = np.maximum(errors[some], missed.max(axis=0))
    return np.where(np.isnan(errors), np.inf, errors)


def _integrals(
    point: CollocationPoint,
    equations: EquationsAlong,
    x: Floats,
    some: Indices,
    tau: Floats,
    other_names: Sequence[str],
) -> Floats:
    """Integrands (integrals, k, n) times the duration for states `x` (k, n, nx) at the places `tau` (n,)."""
    count = len(some) * len(tau)
    w = np.hstack([x.reshape(count, -1), equations.inputs_at(some, tau, other_names).reshape(count, -1)])
    values = point_values(point, equations, w, equations.fractions(some, tau).ravel())[1]
    return np.asarray(values.T.reshape(-1, len(some), len(tau)))


def control_degree(scheme: Scheme) -> int:
    """The degree of the polynomial of controls on an interval."""
    return len(scheme.collocated) - 1


@lru_cache(maxsize=16)
def finer_quadrature(count: int) -> tuple[Floats, Floats]:
    """`count` right Radau points (n,) on [0, 1] and the matrix (n, n) that integrates from 0 to each of them."""
    from numpy.polynomial.legendre import legroots

    # the zeros of P_{n-1} - P_n, of which 1 is the last
    roots = legroots(np.concatenate([np.zeros(count - 1), [1.0, -1.0]]))
    points = np.concatenate([0.5 * (np.sort(roots)[:-1] + 1.0), [1.0]])
    D = derivative_matrix(np.concatenate([[0.0], points]))[1:, 1:]
    return points, np.asarray(np.linalg.inv(D), float)
