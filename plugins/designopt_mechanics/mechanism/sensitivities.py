"""Derivatives of a simulated motion by parameters: the variational equations of a mechanism beside its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics.system import RESIDUAL_ARGUMENTS, System, Variable
from designopt.lazy import casadi as ca
from designopt_mechanics.mechanism.loops import LoopSolver


def sensitive_system(system: System, scales: dict[str, float]) -> System:
    """`system` (in residual form) with the derivatives of its states by the parameters in `scales` as further states.

    States, unknowns and outputs ``<name>_by_<parameter>`` are derivatives times the parameter's scale; those of the
    outputs come after these, in the order of the parameters.
    """
    form = system.residual_form
    if form is None or form.output is None:
        raise ValueError(f"system '{system.name}' has no residual form with outputs")
    sizes = [form.residual.numel_in(i) for i in range(form.residual.n_in())]
    arguments = [ca.SX.sym(name, size) for name, size in zip(RESIDUAL_ARGUMENTS, sizes, strict=True)]
    (x, s), p, t = arguments[:2], arguments[4], arguments[6]
    residual, rates, outputs = form.residual(*arguments), form.rates(*arguments), form.output(*arguments)
    states = [(v, x[i], rates[i]) for i, v in enumerate(system.states)]
    unknowns = [(v, s[i], residual[i]) for i, v in enumerate(form.unknowns)]
    values = [(v, outputs[i]) for i, v in enumerate(system.outputs)]
    for name, scale in scales.items():
        S, ds = ca.SX.sym("S", x.numel()), ca.SX.sym("ds", s.numel())
        column = [v.name for v in system.parameters].index(name)
        along = ca.SX.zeros(p.numel())
        along[column] = scale
        of_rates, of_residual, of_outputs = (
            ca.jtimes(e, ca.vertcat(x, s, p), ca.vertcat(S, ds, along)) for e in (rates, residual, outputs)
        )
        states += [(_derivative_by(v, name), S[i], of_rates[i]) for i, v in enumerate(system.states)]
        unknowns += [(_derivative_by(v, name), ds[i], of_residual[i]) for i, v in enumerate(form.unknowns)]
        values += [(_derivative_by(v, name), of_outputs[i]) for i, v in enumerate(system.outputs)]
    return System.from_expressions(
        f"{system.name}_by_parameters",
        states=states,
        unknowns=unknowns,
        parameters=[(v, p[i]) for i, v in enumerate(system.parameters)],
        outputs=values,
        time=t,
    )


def _derivative_by(variable: Variable, parameter: str) -> Variable:
    return Variable(f"{variable.name}_by_{parameter}", "")


def closed_slopes(loops: LoopSolver, x: Floats, p: Sequence[float]) -> Floats:
    """(2 m, np) derivatives by the parameters of coordinates and rates `x` (2 m,) whose independent ones are fixed."""
    m, d = len(loops.mechanism.tree.names), loops.dependent
    slopes = np.zeros((2 * m, len(p)))
    if not len(d) or not len(p):
        return slopes
    state: Any = loops.state
    y = ca.vertcat(state.z, state.dz)
    equations = ca.vertcat(loops.gap, loops.jacobian @ state.dz)
    results = [ca.densify(ca.jacobian(equations, by)) for by in (y, loops.p)]
    by_y, by_p = (np.asarray(r, dtype=np.float64) for r in ca.Function("closing", [y, loops.p], results)(x, p))
    dependent = np.concatenate([d, m + d])
    slopes[dependent] = -np.linalg.solve(by_y[:, dependent], by_p)
    return slopes
