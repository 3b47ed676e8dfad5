"""Muscles as expressions: fibres, tendons, forces and activation of De Groote et al. (2016).

A rigid tendon has its slack length. A compliant one is stretched by its force, which is a state: its rate is whatever
keeps tendon and fibre in equilibrium (the implicit form of De Groote et al., as in OpenSim).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
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
    """The states of k muscles in the order of `muscles`, columns (k, 1) of CasADi expressions; c of them, those of the
    names `compliant`, have compliant tendons.

    Symbols: `activation`, `excitation`, and of the compliant tendons (c, 1) `tendon_force`, in maximum isometric
    forces, and its `force_rate` (1/s). `length` (m) and `speed` (m/s, lengthening) of the paths, `arms` (m, k) their
    moment arms -dl/dz; `fibre_length` in
    optimal lengths, `fibre_speed` in maximum speeds of shortening, lengthening positive, and `fibre_velocity` in m/s;
    `active_force` F_o a f_L f_V, `fibre_force` with the passive force and damping, and `force` along the tendon (N);
    `tendon_strain`, `tendon_speed` (m/s) and the energy `tendon_energy` (J) stored in the tendons, 0 for rigid ones;
    `equilibrium` (c, 1), zero where tendon and fibre pull alike; `activation_rate` (1/s).
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
    tendon_strain: Any
    tendon_speed: Any
    tendon_energy: Any
    activation_rate: Any
    compliant: tuple[str, ...]
    tendon_force: Any
    force_rate: Any
    equilibrium: Any

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the muscles."""
        return tuple(muscle.name for muscle in self.muscles)

    def index(self, name: str) -> int:
        """The row of a muscle."""
        return self.names.index(name)


def muscle_states(
    state: TreeState, muscles: Sequence[OsimMuscle], lengths: Mapping[str, Any], compliant: Collection[str] = ()
) -> MuscleStates:
    """Muscles of a tree whose paths have these `lengths` (m), expressions of its coordinates, by name; those named
    `compliant` have compliant tendons."""
    k = len(muscles)
    a, e = ca.SX.sym("a", k), ca.SX.sym("e", k)
    elastic = [m.name for m in muscles if m.name in compliant]
    f, u = ca.SX.sym("f", len(elastic)), ca.SX.sym("u", len(elastic))
    length = ca.vertcat(ca.SX(0, 1), *(lengths[m.name] for m in muscles))
    arms = -ca.jacobian(length, state.z).T
    speed = -arms.T @ state.dz
    columns: dict[str, list[Any]] = {n: [ca.SX(0, 1)] for n in (*_FIBRE, *_TENDON, "activation_rate", "equilibrium")}
    for j, muscle in enumerate(muscles):
        tendon_force = (
            (f[elastic.index(muscle.name)], u[elastic.index(muscle.name)]) if muscle.name in elastic else None
        )
        tendon = _tendon(muscle, tendon_force)
        path = length[j] - muscle.slack * (1.0 + tendon["tendon_strain"]), speed[j] - tendon["tendon_speed"]
        fibre = _fibre(muscle, a[j], path)
        if tendon_force is not None:
            columns["equilibrium"].append(tendon_force[0] - fibre["force"] / muscle.force)
            fibre["force"] = muscle.force * tendon_force[0]
        for name, value in (fibre | tendon).items():
            columns[name].append(value)
        columns["activation_rate"].append(
            activation_rate(e[j], a[j], rise=muscle.rise, fall=muscle.fall, sharpness=SHARPNESS)
        )
    matrices = {name: ca.vertcat(*column) for name, column in columns.items()}
    symbols = {"activation": a, "excitation": e, "tendon_force": f, "force_rate": u}
    return MuscleStates(
        tuple(muscles), length=length, speed=speed, arms=arms, compliant=tuple(elastic), **symbols, **matrices
    )


#: The values of `_fibre` and `_tendon` for each muscle.
_FIBRE = ("fibre_length", "fibre_speed", "fibre_velocity", "active_force", "fibre_force", "force")
_TENDON = ("tendon_strain", "tendon_speed", "tendon_energy")


def _tendon(muscle: OsimMuscle, force_and_rate: tuple[Any, Any] | None) -> dict[str, Any]:
    """Tendon of one muscle with `force_and_rate` (in maximum isometric forces); None: rigid."""
    if force_and_rate is None:
        return dict.fromkeys(_TENDON, ca.SX(0.0))
    (force, rate), strain = force_and_rate, muscle.tendon_strain
    return {
        "tendon_strain": OPENSIM.tendon_length(force, strain=strain) - 1.0,
        "tendon_speed": muscle.slack * OPENSIM.tendon_speed(force, rate, strain=strain),
        "tendon_energy": muscle.force * muscle.slack * OPENSIM.tendon_energy(force, strain=strain),
    }


def _fibre(muscle: OsimMuscle, a: Any, path: tuple[Any, Any]) -> dict[str, Any]:
    """Fibre and forces of one muscle; `path` is its length (m) and speed (m/s) without the tendon."""
    along, speed = path
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
