"""Muscles with rigid tendons as expressions: fibres, forces and activation of De Groote et al. (2016)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from designopt_mechanics.state import TreeState
from designopt_muscle.curves import OPENSIM, activation_rate
from designopt_muscle.osim.model import OsimMuscle

from designopt.lazy import casadi as ca

#: Sharpness of the switch between activation and deactivation: OpenSim's own.
SHARPNESS = 0.1


@dataclass(frozen=True, eq=False)
class MuscleStates:
    """Of k muscles in the order of `muscles`, columns (k, 1) of CasADi expressions.

    Symbols: `activation`, `excitation`. `length` (m) and `speed` (m/s, lengthening) of the paths, `arms` (m, k) their
    moment arms -dl/dz; `fibre_length` in
    optimal lengths, `fibre_speed` in maximum speeds of shortening, lengthening positive, and `fibre_velocity` in m/s;
    `active_force` F_o a f_L f_V, `fibre_force` with the passive force and damping, and `force` along the tendon (N);
    `activation_rate` (1/s).
    """

    muscles: tuple[OsimMuscle, ...]
    activation: Any
    excitation: Any
    length: Any
    speed: Any
    arms: Any
    fibre_length: Any
    fibre_speed: Any
    fibre_velocity: Any
    active_force: Any
    fibre_force: Any
    force: Any
    activation_rate: Any

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the muscles."""
        return tuple(muscle.name for muscle in self.muscles)

    def index(self, name: str) -> int:
        """The row of a muscle."""
        return self.names.index(name)


def muscle_states(state: TreeState, muscles: Sequence[OsimMuscle], lengths: Mapping[str, Any]) -> MuscleStates:
    """Muscles of a tree whose paths have these `lengths` (m), expressions of its coordinates, by name."""
    k = len(muscles)
    a, e = ca.SX.sym("a", k), ca.SX.sym("e", k)
    length = ca.vertcat(ca.SX(0, 1), *(lengths[m.name] for m in muscles))
    arms = -ca.jacobian(length, state.z).T
    speed = -arms.T @ state.dz
    columns: dict[str, list[Any]] = {
        n: [ca.SX(0, 1)]
        for n in ("fibre_length", "fibre_speed", "fibre_velocity", "active_force", "fibre_force", "force")
    }
    rates = [ca.SX(0, 1)]
    for j, muscle in enumerate(muscles):
        for name, value in _fibre(muscle, a[j], length[j], speed[j]).items():
            columns[name].append(value)
        rates.append(activation_rate(e[j], a[j], rise=muscle.rise, fall=muscle.fall, sharpness=SHARPNESS))
    named = {name: ca.vertcat(*column) for name, column in columns.items()}
    return MuscleStates(tuple(muscles), a, e, length, speed, arms, activation_rate=ca.vertcat(*rates), **named)


def _fibre(muscle: OsimMuscle, a: Any, length: Any, speed: Any) -> dict[str, Any]:
    """Fibre and forces of one muscle whose tendon has its slack length."""
    along = length - muscle.slack
    fibre, cosine = along, ca.SX(1.0)  # not the root of a square, whose slope jumps
    if muscle.pennation:
        fibre = ca.sqrt(along**2 + (muscle.fibre * math.sin(muscle.pennation)) ** 2)
        cosine = along / fibre
    relative, velocity = fibre / muscle.fibre, speed * cosine
    v = velocity / (muscle.fastest * muscle.fibre)
    shape = muscle.shape
    active = a * OPENSIM.active_length(relative, width=shape.get("active_force_width_scale", 1.0))
    active = muscle.force * active * OPENSIM.velocity(v)
    resting = shape.get("fiber_damping", 0.01) * v
    if not shape.get("ignore_passive_fiber_force"):
        strain = shape.get("passive_fiber_strain_at_one_norm_force", shape.get("FmaxMuscleStrain", 0.6))
        resting = resting + OPENSIM.passive(relative, strain=strain)
    total = active + muscle.force * resting
    return {
        "fibre_length": relative,
        "fibre_speed": v,
        "fibre_velocity": velocity,
        "active_force": active,
        "fibre_force": total,
        "force": total * cosine,
    }
