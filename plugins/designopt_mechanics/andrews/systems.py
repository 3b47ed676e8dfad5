"""The two formulations as systems: one coordinate, or seven with multipliers and stabilised constraints."""

from __future__ import annotations

from typing import Any, Literal

from designopt.dynamics.system import System, Variable
from designopt.lazy import casadi as ca
from designopt_mechanics.andrews.mechanism import (
    ANGLES,
    REST,
    SPRING,
    closed_tree,
    gaps,
    joint_functions,
    open_tree,
)
from designopt_mechanics.equations import equations_of
from designopt_mechanics.springs import Spring, spring_energy, spring_loads
from designopt_mechanics.state import TreeState

Formulation = Literal["joint_functions", "constraints"]


def system(formulation: Formulation, *, driven: bool = False) -> System:
    """The mechanism with a torque on the crank: data, or a control when it is `driven`.

    Outputs: all angles (rad) and their speeds (rad/s), in the order of `ANGLES`, the largest gap of the loops (m), and
    the energy (J): kinetic and of the spring, less the work of a constant torque.
    """
    joints = formulation == "joint_functions"
    state = TreeState.symbols(closed_tree() if joints else open_tree())
    torque, stiffness, rate = (ca.SX.sym(n) for n in ("torque", "stiffness", "stabilisation"))
    spring = Spring(SPRING, stiffness, REST)
    loads = spring_loads(state, [spring])
    crank = ca.vertcat(torque, ca.SX.zeros(len(state.tree.names) - 1))
    extra: list[tuple[Variable, Any, Any]] = []
    if joints:
        parts = equations_of(state, crank, loads=loads)
        angles = ca.vertcat(*joint_functions(state.z[0]).values())
    else:
        gap = gaps(state)
        multipliers = ca.SX.sym("lambda", gap.numel())
        parts = equations_of(state, crank + ca.jtimes(gap, state.z, multipliers, True), loads=loads)
        # Baumgarte (1972) with both roots of the error's equation at -rate
        bound = state.acceleration(gap) + 2.0 * rate * state.rate(gap) + rate**2 * gap
        extra = [
            (Variable(f"multiplier_{i + 1}", "N"), multipliers[i], -bound[i]) for i in range(gap.numel())
        ]  # fmt: skip
        angles = state.z
    stabilisation = [] if joints else [(Variable("stabilisation", "1/s", 0.0), rate)]
    return System.from_expressions(
        "andrews",
        states=parts.states,
        unknowns=[*parts.unknowns, *extra],
        controls=[(Variable("torque", "N m"), torque)] if driven else [],
        parameters=[(Variable("stiffness", "N/m", 0.0), stiffness)],
        data=[*([] if driven else [(Variable("torque", "N m"), torque)]), *stabilisation],
        outputs=_outputs(state, angles, spring, torque, joints=joints),
    )


def _outputs(state: TreeState, angles: Any, spring: Spring, torque: Any, *, joints: bool) -> list[tuple[Variable, Any]]:
    from designopt_mechanics.dynamics.matrices import kinetic_energy

    speeds = state.rate(angles)
    drift = ca.SX(0.0) if joints else ca.mmax(ca.fabs(gaps(state)))
    energy = kinetic_energy(state) + spring_energy(state, [spring]) - torque * state.z[0]
    return [
        *((Variable(name, "rad"), angles[i]) for i, name in enumerate(f"angle_{n}" for n in ANGLES)),
        *((Variable(name, "rad/s"), speeds[i]) for i, name in enumerate(f"rate_{n}" for n in ANGLES)),
        (Variable("drift", "m"), drift),
        (Variable("energy", "J"), energy),
    ]
