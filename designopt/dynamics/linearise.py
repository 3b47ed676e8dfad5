"""Exact linearisation of a system about a point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from designopt.dynamics.system import System


@dataclass(frozen=True, eq=False)
class Linearisation:
    """``d(xdot) = A dx + B du + P dp + Q dq`` and ``dy = C dx + D du`` about a point where xdot is `rates`.

    Shapes: A (nx, nx), B (nx, nu), P (nx, np), Q (nx, nq), C (ny, nx), D (ny, nu), `rates` (nx,). Algebraic variables
    are eliminated.
    """

    A: NDArray[np.float64]
    B: NDArray[np.float64]
    C: NDArray[np.float64]
    D: NDArray[np.float64]
    P: NDArray[np.float64]
    Q: NDArray[np.float64]
    rates: NDArray[np.float64]


def linearise(
    system: System,
    x: ArrayLike | Mapping[str, float],
    *,
    u: ArrayLike | Mapping[str, float] = (),
    z: ArrayLike | Mapping[str, float] = (),
    p: ArrayLike | Mapping[str, float] = (),
    q: ArrayLike | Mapping[str, float] = (),
    t: float = 0.0,
) -> Linearisation:
    """Derivatives of `system` at a point, by automatic differentiation.

    Algebraic variables `z` must solve their equations there; they follow x, u, p and q as the implicit function theorem
    says. Raises `ValueError` for values that do not fit the tables or where the system is not finite, and
    `numpy.linalg.LinAlgError` where the algebraic equations do not determine z.
    """
    import casadi as ca

    tables = ("states", "controls", "algebraic", "parameters", "data")
    point = [system.values(table, given) for table, given in zip(tables, (x, u, z, p, q), strict=True)]
    symbols = [ca.MX.sym(name, system.rhs.numel_in(i)) for i, name in enumerate(system.rhs.name_in())]

    def derivatives(function: ca.Function | None) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
        """Value and derivatives with respect to x, u, z, p, q."""
        if function is None:
            return np.zeros(0), [np.zeros((0, len(v))) for v in point]
        value = function(*symbols)
        blocks = [ca.densify(ca.jacobian(value, s)) for s in symbols[:-1]]
        found = ca.Function("derivatives", symbols, [value, *blocks])(*point, t)
        arrays = [np.asarray(entry, dtype=np.float64) for entry in found]
        if not all(np.isfinite(a).all() for a in arrays):
            raise ValueError(
                f"{system.name}: {function.name()} is not finite or has no finite derivatives at this point"
            )
        rows = function.size1_out(0)
        return arrays[0].ravel(), [a.reshape(rows, len(v)) for a, v in zip(arrays[1:], point, strict=True)]

    rates, f = derivatives(system.rhs)
    _, y = derivatives(system.output)
    _, a = derivatives(system.algebraic_residual)
    if system.algebraic:
        follow = [-np.linalg.solve(a[2], block) for block in a]
        f = [block + f[2] @ z_block for block, z_block in zip(f, follow, strict=True)]
        y = [block + y[2] @ z_block for block, z_block in zip(y, follow, strict=True)]
    return Linearisation(A=f[0], B=f[1], C=y[0], D=y[1], P=f[3], Q=f[4], rates=rates)
