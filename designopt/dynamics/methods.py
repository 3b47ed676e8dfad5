"""Rosenbrock methods as data: linearly implicit Runge-Kutta methods for stiff systems.

In the form that needs no product with the Jacobian (Hairer & Wanner 1996, section IV.7), with step `h` from `(t, x)`::

    (1/(h gamma) I - J) U_i = f(t + alpha_i h, x + sum_j a_ij U_j) + sum_j (c_ij / h) U_j + gamma_i h df/dt
    x_new = x + sum_i m_i U_i,      error = sum_i e_i U_i
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def _lower(stages: int, entries: tuple[float, ...]) -> Matrix:
    """A strictly lower triangular matrix from its entries row by row."""
    matrix = np.zeros((stages, stages))
    matrix[np.tril_indices(stages, -1)] = entries
    return matrix


@dataclass(frozen=True)
class Rosenbrock:
    """Coefficients of one method; `dense` (2, stages) are those of its cubic interpolant, or None for Hermite's."""

    name: str
    order: int
    error_order: int
    gamma: float
    a: Matrix
    c: Matrix
    m: Matrix
    e: Matrix
    alpha: Matrix
    gammas: Matrix
    dense: Matrix | None = None


#: Order 3 with an embedded order 2, four stages, L-stable and stiffly accurate. Sandu, Verwer, Blom, Spee, Carmichael
#: & Potra (1997), "Benchmarking stiff ODE solvers for atmospheric chemistry problems II", Atmos. Environ. 31, 3459.
RODAS3 = Rosenbrock(
    name="rosenbrock3",
    order=3,
    error_order=2,
    gamma=0.5,
    a=_lower(4, (0.0, 2.0, 0.0, 2.0, 0.0, 1.0)),
    c=_lower(4, (4.0, 1.0, -1.0, 1.0, -1.0, -8.0 / 3.0)),
    m=np.array([2.0, 0.0, 1.0, 1.0]),
    e=np.array([0.0, 0.0, 0.0, 1.0]),
    alpha=np.array([0.0, 0.0, 1.0, 1.0]),
    gammas=np.array([0.5, 1.5, 0.0, 0.0]),
)

_RODAS_LAST = (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950)

#: Order 4 with an embedded order 3, six stages, L-stable and stiffly accurate, interpolant of order 3.
#: Hairer & Wanner (1996), "Solving Ordinary Differential Equations II", 2nd ed., section VI.4, code RODAS.
RODAS = Rosenbrock(
    name="rosenbrock4",
    order=4,
    error_order=3,
    gamma=0.25,
    a=_lower(
        6,
        (
            1.544,
            *(0.9466785280815826, 0.2557011698983284),
            *(3.314825187068521, 2.896124015972201, 0.9986419139977817),
            *_RODAS_LAST,
            *(*_RODAS_LAST, 1.0),
        ),
    ),
    c=_lower(
        6,
        (
            -5.6688,
            *(-2.430093356833875, -0.2063599157091915),
            *(-0.1073529058151375, -9.594562251023355, -20.47028614809616),
            *(7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
            *(8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
        ),
    ),
    m=np.array([*_RODAS_LAST, 1.0, 1.0]),
    e=np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
    alpha=np.array([0.0, 0.386, 0.21, 0.63, 1.0, 1.0]),
    gammas=np.array([0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0]),
    dense=np.array(
        [
            [10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823, 1.025137723295662, 0.0],
            [-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386, -6.594389125716872, 0.0],
        ]
    ),
)

METHODS = {method.name: method for method in (RODAS3, RODAS)}
