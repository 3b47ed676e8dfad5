"""A system with additional states, and with other controls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from designopt.dynamics.residual import ResidualForm
from designopt.dynamics.system import System, Variable
from designopt.lazy import casadi as ca


def augment(
    system: System,
    states: Sequence[Variable],
    controls: Sequence[Variable],
    enter: Callable[[Any, Any], tuple[Any, Any, Any]],
) -> System:
    """`system` with `states` after its own, and with `controls` in place of its own; its guards are dropped.

    ``enter(x, u)`` returns, for the new states and controls, those of `system`, and the rates of the additional states.
    """
    form, every = system.residual_form, (*system.states, *states)

    def extended(function: Any, *, rates: bool = False) -> Any:
        if function is None:
            return None
        names = function.name_in()
        symbols = {name: ca.SX.sym(name, function.numel_in(i)) for i, name in enumerate(names)}
        symbols |= {"x": ca.SX.sym("x", len(every)), "u": ca.SX.sym("u", len(controls))}
        x, u, extra_states = enter(symbols["x"], symbols["u"])
        expression = function(*{**symbols, "x": x, "u": u}.values())
        expression = ca.vertcat(expression, extra_states) if rates else expression
        return ca.Function(function.name(), list(symbols.values()), [expression], names, function.name_out())

    if form is None:
        functions: dict[str, Any] = {"rhs": extended(system.rhs, rates=True), "output": extended(system.output)}
    else:
        residual, rates, output = extended(form.residual), extended(form.rates, rates=True), extended(form.output)
        functions = {"residual_form": ResidualForm(form.unknowns, residual, rates, output)}
    return System(
        name=system.name,
        states=every,
        controls=tuple(controls),
        parameters=system.parameters,
        algebraic=system.algebraic,
        data=system.data,
        outputs=system.outputs,
        algebraic_residual=extended(system.algebraic_residual),
        vectors=system.vectors,
        **functions,
    )
