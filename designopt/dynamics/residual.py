"""Equations of motion as residuals with the accelerations unknown, and the explicit form of them where it is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.dynamics.variable import Variable
from designopt.lazy import casadi as ca

#: Arguments of the functions of a residual form: s are the rates that it leaves unknown.
RESIDUAL_ARGUMENTS = ("x", "s", "u", "z", "p", "q", "t")


@dataclass(frozen=True, eq=False)
class ResidualForm:
    """``0 = residual(x, s, u, z, p, q, t)`` and ``xdot = rates(x, s, u, z, p, q, t)`` with `unknowns` s.

    The unknowns are the rates that are not given at once, as accelerations are; the residual has as many rows and is
    linear in them. `output` gives the outputs from the same arguments. Nothing is inverted: derivatives are many times
    smaller than those of the right-hand side of a mechanism.
    """

    unknowns: tuple[Variable, ...]
    residual: ca.Function
    rates: ca.Function
    output: ca.Function | None = None


def linear_in_unknowns(residual: Any, s: Any) -> tuple[Any, Any]:
    """M and b of a `residual` expression M s + b; raises `ValueError` where it is not linear in the unknowns `s`."""
    matrix = ca.jacobian(residual, s)
    if ca.depends_on(matrix, s):
        raise ValueError("the residuals are not linear in the unknowns")
    return matrix, ca.substitute(residual, s, type(s).zeros(s.numel()))


def explicit(form: ResidualForm, function: ca.Function) -> ca.Function:
    """`function` of the arguments of a residual form as one of (x, u, z, p, q, t), the unknowns solved for.

    The solution is symbolic: it and its derivatives grow with the cube of the number of unknowns and more.
    """
    symbols = [ca.SX.sym(n, function.numel_in(i)) for i, n in enumerate(RESIDUAL_ARGUMENTS)]
    (made,) = function.call(symbols)
    s = symbols[1]
    if ca.depends_on(made, s):
        made = ca.cse(ca.substitute(made, s, _solved(form.residual(*symbols), s)))
    arguments = [symbols[0], *symbols[2:]]
    names = [RESIDUAL_ARGUMENTS[0], *RESIDUAL_ARGUMENTS[2:]]
    return ca.Function(function.name(), arguments, [made], names, function.name_out())


def _solved(residual: Any, s: Any) -> Any:
    """The unknowns `s` that make a `residual` zero."""
    matrix, rest = linear_in_unknowns(residual, s)
    if is_definite(matrix):
        D, LT, order = ca.ldl(ca.densify(matrix), False)
        return ca.ldl_solve(-rest, D, LT, order)
    return ca.solve(matrix, -rest)


def is_definite(matrix: Any) -> bool:
    """Whether a `matrix` of expressions is symmetric and definite, as a mass matrix is.

    Definite at one point it is so wherever it is regular, for an eigenvalue changes its sign through zero. L D L' needs
    no pivots then, and derivatives of the solution are two to five times smaller than with CasADi's general QR from
    three unknowns on. Symmetry is looked at with numbers: expressions that are equal may be written differently.
    """
    symbols = ca.symvar(matrix)
    entries = ca.Function("entries", symbols, [ca.densify(matrix)])
    rng = np.random.default_rng(0)
    for _ in range(3):
        numbers = np.asarray(entries.call(rng.uniform(0.5, 1.5, len(symbols)).tolist())[0], float)  # as masses are
        if not np.isfinite(numbers).all() or np.abs(numbers - numbers.T).max() > 1e-13 * np.abs(numbers).max():
            return False
    eigenvalues = np.linalg.eigvalsh(numbers)
    return bool((eigenvalues > 0.0).all() or (eigenvalues < 0.0).all())
