"""The matrices of the equations of motion M ddz + N dz - G = forces, and the accelerations that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designopt.lazy import casadi as ca
from designopt_mechanics.dynamics.recursion import NO_GRAVITY, inverse_dynamics
from designopt_mechanics.loads import Load, generalised_force, weight
from designopt_mechanics.state import TreeState


def mass_matrix(state: TreeState) -> Any:
    """M (m, m), symmetric."""
    at_rest = TreeState(state.tree, state.z, ca.SX.zeros(state.z.shape), ca.SX.sym("s", state.z.numel()))
    return ca.densify(ca.jacobian(inverse_dynamics(at_rest), at_rest.ddz))


def bias(state: TreeState, gravity: Any = NO_GRAVITY, loads: Sequence[Load] = ()) -> Any:
    """(m, 1) the forces that a motion without accelerations needs: N dz - G - J' w."""
    steady = TreeState(state.tree, state.z, state.dz, ca.SX.zeros(state.z.shape))
    return inverse_dynamics(steady, gravity, loads)


def coriolis_matrix(state: TreeState) -> Any:
    """N (m, m) in the form of Christoffel, for which dM/dt - 2 N is skew-symmetric."""
    rates = ca.SX.sym("dz", state.z.numel())
    half = 0.5 * ca.jacobian(bias(TreeState(state.tree, state.z, rates)), rates)  # the bias is quadratic in the rates
    return ca.densify(ca.substitute(half, rates, state.dz))


def gravity_force(state: TreeState, gravity: Any) -> Any:
    """G (m, 1), the generalised force of the weight of all bodies."""
    return generalised_force(state, weight(state, gravity))


def forward_dynamics(state: TreeState, forces: Any, gravity: Any = NO_GRAVITY, loads: Sequence[Load] = ()) -> Any:
    """(m, 1) accelerations under generalised `forces` (m, 1), `gravity` (3) and `loads`."""
    matrix = mass_matrix(state)
    D, LT, order = ca.ldl(matrix, False)  # positive definite wherever it is regular: no pivots
    return ca.ldl_solve(ca.SX(forces) - bias(state, gravity, loads), D, LT, order)


def kinetic_energy(state: TreeState) -> Any:
    """The kinetic energy (J) of all bodies and rotors."""
    steady = TreeState(state.tree, state.z, ca.SX.zeros(state.z.shape), state.dz)
    return 0.5 * ca.dot(state.dz, inverse_dynamics(steady))


def potential_energy(state: TreeState, gravity: Any) -> Any:
    """The potential energy (J) of the weight of all bodies: 0 with all centres of mass at the origin of the ground."""
    from designopt_mechanics.tree import Point

    g = ca.SX(list(gravity) if isinstance(gravity, tuple) else gravity)
    total = ca.SX(0.0)
    for frame in state.tree.frames:
        if frame.body is not None:
            total -= frame.body.mass * ca.dot(g, state.position(Point(frame.name, frame.body.centre)))
    return total
