"""The equations of motion of a mechanism with loops, in residual form: for simulation, linearisation and collocation.

The accelerations of all coordinates and the multipliers of the loops are unknowns of one linear system (index 1). The
second derivative of a gap g is set to -2 w dg/dt - w^2 g (Baumgarte 1972), so that round-off does not open the loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from designopt.dynamics.system import System, Variable
from designopt.lazy import casadi as ca
from designopt_mechanics.equations import equations_of
from designopt_mechanics.mechanism.loops import LoopSolver

#: w of the stabilisation (1/s).
STABILISATION = 10.0


def mechanism_system(
    loops: LoopSolver,
    controls: Sequence[str] = (),
    outputs: Mapping[str, tuple[str, Any]] | None = None,
) -> System:
    """The mechanism under its laws, loads and drives as a `System`.

    States are the coordinates and ``<coordinate>_speed``, unknowns the accelerations and a multiplier for each equation
    of the loops, parameters those of the file. `controls` names coordinates with a drive ``effort_<coordinate>`` (in
    place of the file's). `outputs` are (unit, expression of the symbols of `loops.state` and `loops.p`) by name.
    """
    mechanism, state = loops.mechanism, loops.state
    names = mechanism.tree.names
    efforts = ca.SX.sym("efforts", len(controls))
    forces = mechanism.passive(state)
    drives = mechanism.driven(state)
    for i, name in enumerate(names):
        forces[i] += efforts[list(controls).index(name)] if name in controls else drives[i]
    multipliers = ca.SX.sym("multipliers", len(loops.labels) if len(loops.dependent) else 0)
    extra: list[tuple[Variable, Any, Any]] = []
    if multipliers.numel():
        gap, curvature = loops.equations()
        J = loops.jacobian
        forces = forces + J.T @ multipliers
        closing = J @ state.ddz + curvature + 2.0 * STABILISATION * (J @ state.dz) + STABILISATION**2 * gap
        extra = [
            (Variable(f"multiplier_{i + 1}", "N"), multipliers[i], -closing[i]) for i in range(multipliers.numel())
        ]
    speeds = {
        name: (-law.largest_speed, law.largest_speed)
        for name, law in mechanism.laws.items()
        if law.largest_speed < float("inf")
    }
    gravity = tuple(mechanism.gravity) if isinstance(mechanism.gravity, list) else mechanism.gravity
    parts = equations_of(state, forces, gravity, mechanism.forces_on(state), speeds)
    units = {c.name: c.effort_unit for c in mechanism.tree.coordinates}
    return System.from_expressions(
        "mechanism",
        states=parts.states,
        unknowns=[*parts.unknowns, *extra],
        controls=[(_control(loops, name, units[name]), efforts[i]) for i, name in enumerate(controls)],
        parameters=[(Variable(p.name, p.unit, p.low, p.high), p.symbol) for p in mechanism.parameters],
        outputs=[(Variable(name, unit), expression) for name, (unit, expression) in (outputs or {}).items()],
        time=mechanism.time,
    )


def _control(loops: LoopSolver, name: str, unit: str) -> Variable:
    law = loops.mechanism.laws.get(name)
    if law is None:
        return Variable(f"effort_{name}", unit)
    return Variable(f"effort_{name}", unit, -law.largest_effort, law.largest_effort)
