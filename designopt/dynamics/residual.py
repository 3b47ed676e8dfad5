"""Equations of motion as residuals with unknown accelerations, and their explicit form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.dynamics.variable import Variable
from designopt.lazy import casadi as ca

#: Arguments of the functions of a residual form; s are its unknown rates.
RESIDUAL_ARGUMENTS = ("x", "s", "u", "z", "p", "q", "t")


@dataclass(frozen=True, eq=False)
class ResidualForm:
    """``0 = residual(x, s, u, z, p, q, t)`` and ``xdot = rates(x, s, u, z, p, q, t)`` with `unknowns` s.

    The unknowns are implicit rates such as accelerations; the residual has as many rows and is linear in them. `output`
    computes the outputs from the same arguments. Nothing is inverted: the derivatives are many times smaller than those
    of the explicit right-hand side of a mechanism.
    """

    unknowns: tuple[Variable, ...]
    residual: ca.Function
    rates: ca.Function
    output: ca.Function | None = None


def linear_in_unknowns(residual: Any, s: Any) -> tuple[Any, Any]:
    """M and b of a `residual` expression M s + b. Raises `ValueError` if it is not linear in the unknowns `s`."""
    matrix = ca.jacobian(residual, s)
    if ca.depends_on(matrix, s):
        raise ValueError("the residuals are not linear in the unknowns")
    return matrix, ca.substitute(residual, s, type(s).zeros(s.numel()))


def explicit(form: ResidualForm, function: ca.Function) -> ca.Function:
    """`function` of the arguments of a residual form as one of (x, u, z, p, q, t), with the unknowns eliminated.

    The solution is symbolic: its size grows at least with the cube of the number of unknowns, and so does that of its
    derivatives.
    """
    symbols = [ca.SX.sym(n, function.numel_in(i)) for i, n in enumerate(RESIDUAL_ARGUMENTS)]
    (expression,) = function.call(symbols)
    s = symbols[1]
    if ca.depends_on(expression, s):
        expression = ca.cse(ca.substitute(expression, s, _unknowns_of(form.residual(*symbols), s)))
    arguments = [symbols[0], *symbols[2:]]
    names = [RESIDUAL_ARGUMENTS[0], *RESIDUAL_ARGUMENTS[2:]]
    return ca.Function(function.name(), arguments, [expression], names, function.name_out())


def _unknowns_of(residual: Any, s: Any) -> Any:
    """The unknowns `s` for which a `residual` is zero."""
    matrix, offset = linear_in_unknowns(residual, s)
    if is_definite(matrix):
        D, LT, order = ca.ldl(ca.densify(matrix), False)
        return ca.ldl_solve(-offset, D, LT, order)
    return ca.solve(matrix, -offset)


def is_definite(matrix: Any) -> bool:
    """Whether a `matrix` of expressions is symmetric and definite, like a mass matrix.

    A matrix definite at one point stays definite wherever it is regular, because eigenvalues change sign through zero.
    L D L' then needs no pivoting, and from three unknowns on the derivatives of the solution are two to five times
    smaller than with CasADi's general QR. Symmetry is tested numerically: equal expressions may be written differently.
    """
    symbols = ca.symvar(matrix)
    entries = ca.Function("entries", symbols, [ca.densify(matrix)])
    rng = np.random.default_rng(0)
    for _ in range(3):
        numbers = np.asarray(entries.call(rng.uniform(0.5, 1.5, len(symbols)).tolist())[0], float)  # like masses
        if not np.isfinite(numbers).all() or np.abs(numbers - numbers.T).max() > 1e-13 * np.abs(numbers).max():
            return False
    eigenvalues = np.linalg.eigvalsh(numbers)
    return bool((eigenvalues > 0.0).all() or (eigenvalues < 0.0).all())
