"""Rosenbrock methods as data: linearly implicit Runge-Kutta methods for stiff systems.

With J = df/dx and f_t = df/dt exact at the beginning (t, y) of a step h, stage i solves (Hairer & Wanner, Solving
Ordinary Differential Equations II, 1996, section IV.7, equations 7.25 and 7.26)

    (1/(h gamma) I - J) U_i = f(t + alpha_i h, y + sum_j a_ij U_j) + sum_j c_ij/h U_j + gamma_i h f_t

and the step is y + sum m_i U_i with error estimate sum e_i U_i. The dense output y(theta), 0 <= theta <= 1, is

    (1 - theta) y_0 + theta (y_1 + (1 - theta) (K_2 + theta K_3)),     K_2 = sum d2_i U_i,   K_3 = sum d3_i U_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class RosenbrockMethod:
    """Coefficients of one method: `a` and `c` are (s, s) strictly lower triangular, the others (s,).

    `order` is that of the solution; the embedded one is one lower. `dense_order` is that of the dense output.
    """

    name: str
    order: int
    dense_order: int
    gamma: float
    alpha: Floats
    gamma_sum: Floats
    a: Floats
    c: Floats
    m: Floats
    e: Floats
    d2: Floats
    d3: Floats

    @property
    def stages(self) -> int:
        """Number of stages s."""
        return len(self.m)

    @property
    def new_f(self) -> Integers:
        """(s,) 1 if a stage evaluates f at a new point, 0 if it reuses the value of the previous stage."""
        is_reused = [
            i > 0 and self.alpha[i] == self.alpha[i - 1] and (self.a[i] == self.a[i - 1]).all()
            for i in range(self.stages)
        ]
        return np.array([0 if s else 1 for s in is_reused], dtype=np.int64)


def _lower(*rows: tuple[float, ...]) -> Floats:
    """Strictly lower triangular (s, s) matrix from its rows below the first."""
    matrix = np.zeros((len(rows) + 1, len(rows) + 1))
    for i, row in enumerate(rows, 1):
        matrix[i, : len(row)] = row
    return matrix


def _row(*values: float) -> Floats:
    """(6,) the `values` of the first stages, and zeros of the others."""
    return np.array(values + (0.0,) * (6 - len(values)))


#: RODAS: order 4(3), 6 stages, L-stable and stiffly accurate, dense output of order 3. Hairer & Wanner (1996), section
#: VI.4 and their program RODAS.
RODAS = RosenbrockMethod(
    name="rosenbrock4",
    order=4,
    dense_order=3,
    gamma=0.25,
    alpha=np.array([0.0, 0.386, 0.21, 0.63, 1.0, 1.0]),
    gamma_sum=_row(0.25, -0.1043, 0.1035, -0.3620000000000023e-01),
    a=_lower(
        (1.544,),
        (0.9466785280815826, 0.2557011698983284),
        (3.314825187068521, 2.896124015972201, 0.9986419139977817),
        (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950),
        (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950, 1.0),
    ),
    c=_lower(
        (-5.6688,),
        (-2.430093356833875, -0.2063599157091915),
        (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
        (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
        (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
    ),
    m=np.array([1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950, 1.0, 1.0]),
    e=np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
    d2=_row(10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823, 1.025137723295662),
    d3=_row(-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386, -6.594389125716872),
)

METHODS = {method.name: method for method in (RODAS,)}
