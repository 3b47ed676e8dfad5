"""Initial values of variables that a guess of the states and controls omits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.verification.equations import data_at
from designopt.collocation.statement.problem import Phase
from designopt.dynamics.system import System
from designopt.lazy import casadi as ca

#: Maximum number of Newton iterations, and the residual, as a share of the first, at which they end.
ITERATIONS, SMALL = 30, 1e-9


def unknown_rates(phase: Phase, values: Mapping[str, Floats], fractions: Floats, duration: float) -> dict[str, Floats]:
    """Slopes (n,) of the guessed states by the names of the unknown rates that are rates of states.

    `values` (n,) are given at increasing `fractions` (n,) of a phase of `duration` (s).
    """
    if phase.system.residual_form is None or duration <= 0.0:
        return {}
    names = _rates_of(phase.system)
    return {name: np.gradient(values[state], fractions) / duration for name, state in names.items()}


@lru_cache(maxsize=64)
def _rates_of(system: System) -> dict[str, str]:
    """The states whose rates are unknown rates, by the names of these."""
    form = system.residual_form
    assert form is not None
    arguments = [ca.SX.sym(form.rates.name_in(i), form.rates.size1_in(i)) for i in range(form.rates.n_in())]
    rates = form.rates(*arguments)
    return {
        v.name: state.name
        for j, v in enumerate(form.unknowns)
        for i, state in enumerate(system.states)
        if ca.is_equal(rates[i], arguments[1][j])
    }


def algebraic_values(
    phase: Phase,
    values: Mapping[str, Floats],
    parameters: Mapping[str, float],
    fractions: Floats,
    t0: float,
    tf: float,
) -> dict[str, Floats]:
    """Algebraic variables (n,) that solve their equations along guessed states and controls, by Newton's method.

    It starts from the guessed values. Empty if it does not converge, or if the data are not available at the guessed
    times.
    """
    system = phase.system
    if system.algebraic_residual is None:
        return {}
    try:
        data = data_at(phase, fractions, t0, tf)
    except ValueError:
        return {}
    count = len(fractions)

    def rows(table: Any) -> Floats:
        return np.array([values[v.name] for v in table]).reshape(-1, count)

    x, u, z = rows(system.states), rows(system.controls), rows(system.algebraic)
    p = np.tile(np.array([[parameters[v.name]] for v in system.parameters]).reshape(-1, 1), count)
    newton = _residual_and_slope(system.algebraic_residual).map(count)
    t = (t0 + fractions * (tf - t0))[None, :]
    first = None
    with np.errstate(all="ignore"):
        for _ in range(ITERATIONS):
            residual, slope = (np.asarray(e, float) for e in newton(x, u, z, p, data.T, t))
            size = np.abs(residual).max()
            first = size if first is None else first
            if not np.isfinite(size):
                return {}
            if size <= SMALL * max(1.0, first):
                return {v.name: z[i] for i, v in enumerate(system.algebraic)}
            matrices = slope.reshape(len(z), count, len(z)).transpose(1, 0, 2)
            try:
                z = z - np.linalg.solve(matrices, residual.T[:, :, None])[:, :, 0].T
            except np.linalg.LinAlgError:
                return {}
    return {}


def _residual_and_slope(residual: Any) -> Any:
    """The CasADi function of the same arguments -> residual, its Jacobian by z."""
    a = [ca.SX.sym(residual.name_in(i), residual.size1_in(i)) for i in range(residual.n_in())]
    value = residual(*a)
    return ca.Function("newton", a, [value, ca.densify(ca.jacobian(value, a[2]))])
