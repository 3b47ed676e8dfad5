"""The exoskeleton as a system: rods, drives with the rigid model, and the outputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.dynamics.system import System, Variable
from designopt.lazy import casadi as ca
from designopt_mechanics.exoskeleton.anthropometry import Build, Size, build
from designopt_mechanics.exoskeleton.gait import BEGIN, END, leg, sole_angle
from designopt_mechanics.rods.basis import objects
from designopt_mechanics.rods.dynamics import inverse_dynamics
from designopt_mechanics.rods.outputs import elastic_forces, energies, places

#: The parameters of the design, and those of the operator and the walk, with their units.
DESIGN: Mapping[str, str] = {"stiffness": "N/m", "link_damping": "", "frequency": "rad/s", "drive_damping": ""}
CONDITIONS: Mapping[str, str] = {"mass": "kg", "height": "m", "speed": "", "cycle_time": "s", "sway": "rad"}
#: Springs and dampers of joints without drives (N m/rad, N m s/rad): sole on the ground, shoulders and elbows.
SOLE, ARM = (4000.0, 80.0), (10.0, 1.0)
_ELBOW = 0.3  # rad, flexion at rest


@dataclass(frozen=True, eq=False)
class Reference:
    """Directions (n,) of the recorded motion with their rates and second rates, as arrays of expressions."""

    phi: Any
    psi: Any
    dphi: Any
    dpsi: Any
    d2phi: Any
    d2psi: Any


def single_support(size: Size, conditions: Mapping[str, Any]) -> Any:
    """Duration (s)."""
    return (END[size] - BEGIN) * conditions["cycle_time"] / conditions["speed"]


def reference(build: Build, time: Any, conditions: Mapping[str, Any]) -> Reference:
    """The recorded motion at `time` (s) from the beginning of single support, as expressions of it."""
    pace = conditions["speed"] / conditions["cycle_time"]
    phase = BEGIN + pace * time
    stance, swing = leg(phase), leg(phase + 0.5)
    up, down = 0.5 * math.pi, -0.5 * math.pi
    directions = {
        "stance_foot": math.pi + sole_angle(stance[2]),
        "stance_shank": up + stance[1],
        "stance_thigh": up + stance[0],
        "trunk": ca.SX(up),
        "left_upper_arm": ca.SX(down),
        "left_forearm": ca.SX(down + _ELBOW),
        "right_upper_arm": ca.SX(down),
        "right_forearm": ca.SX(down + _ELBOW),
        "swing_thigh": up + swing[0],
        "swing_shank": up + swing[1],
        "swing_foot": math.pi + swing[2],
    }
    names = [rod.name for rod in build.tree.rods]
    phi = ca.vertcat(*(directions[n] for n in names))
    lean = conditions["sway"] * ca.sin(2.0 * math.pi * phase)
    psi = ca.vertcat(*(lean if n == "trunk" else ca.SX(0.0) for n in names))
    angles = ca.vertcat(phi, psi)
    first = ca.jtimes(angles, time, ca.SX(1.0))
    second = ca.jtimes(first, time, ca.SX(1.0))
    n = len(names)
    parts = [objects(part) for column in (angles, first, second) for part in (column[:n], column[n:])]
    return Reference(*(parts[k] for k in (0, 1, 2, 3, 4, 5)))


def system(size: Size, *, limit: float, feed_forward: bool = False) -> System:
    """The exoskeleton in single support from its anchor, the ankle (5 rods) or the toe joint (11).

    Drives follow the recorded motion by computed torque on the rigid model (lengths at rest) with the frequency and
    damping of the design, saturated at `limit` (N m). With `feed_forward` the azimuths that the drives follow deviate
    by controls, and nothing saturates: a program bounds the moments.

    Outputs: moments of the drives, squared distances of hip, stance knee and swing ankle from the recorded motion
    (m^2), compression of the links by their length, energy and dissipated power.
    """
    design = {name: ca.SX.sym(name) for name in DESIGN}
    data = {name: ca.SX.sym(name) for name in CONDITIONS}
    exoskeleton = build(size, data["mass"], data["height"], design["stiffness"], design["link_damping"])
    tree, n = exoskeleton.tree, exoskeleton.tree.n
    x, v, s = (ca.SX.sym(name, 3 * n) for name in ("q", "dq", "d2q"))
    time = ca.SX.sym("t")
    aims = reference(exoskeleton, time, data)
    q, dq = objects(x), objects(v)
    deviation = ca.SX.sym("deviation", n if feed_forward else 0)
    moments = _moments(exoskeleton, aims, q, dq, design, deviation)
    if not feed_forward:
        moments = [[ca.fmin(ca.fmax(m, -limit), limit) for m in part] for part in moments]
    passive = _passive_moments(exoskeleton, aims, q, dq)
    azimuth, elevation = (
        _net(
            exoskeleton,
            [d if i in exoskeleton.driven else p for i, (d, p) in enumerate(zip(of_drives, of_springs, strict=True))],
        )
        for of_drives, of_springs in zip(moments, passive, strict=True)
    )
    pull = elastic_forces(tree, q, dq)
    forces = np.concatenate([azimuth, elevation, pull])
    residual = ca.cse(ca.vertcat(*(inverse_dynamics(tree, q, dq, objects(s)) - forces)))
    rates = [_relative_values(exoskeleton, dq[k * n : (k + 1) * n]) for k in (0, 1)]
    power = sum(ca.fmax(m[i] * r[i], 0.0) for m, r in zip(moments, rates, strict=True) for i in exoskeleton.driven)
    joints = [
        (f"{kind}_{tree.rods[i].name}", m[i])
        for kind, m in zip(("Mphi", "Mpsi"), moments, strict=True)
        for i in exoskeleton.driven
    ]
    names = tree.names
    units = ["rad"] * (2 * n) + ["m"] * n
    bounds = [(-10.0, 10.0)] * n + [(-1.4, 1.4)] * n + [(0.01, 2.0)] * n
    return System.from_expressions(
        f"exoskeleton_{size}",
        states=[
            *((Variable(names[k], units[k], *bounds[k]), x[k], v[k]) for k in range(3 * n)),
            *((Variable(f"{names[k]}_speed", f"{units[k]}/s"), v[k], s[k]) for k in range(3 * n)),
            *([] if feed_forward else [(Variable("work", "J"), ca.SX.sym("work"), power)]),
        ],
        unknowns=[(Variable(f"{names[k]}_acceleration", f"{units[k]}/s^2"), s[k], residual[k]) for k in range(3 * n)],
        controls=[(Variable(f"deviation_{tree.rods[i].name}", "rad"), deviation[i]) for i in range(n) if feed_forward],
        parameters=[(Variable(name, unit, 0.0), design[name]) for name, unit in DESIGN.items()],
        data=[(Variable(name, unit), data[name]) for name, unit in CONDITIONS.items()],
        outputs=[
            *((Variable(name, "N m"), moment) for name, moment in joints),
            (Variable("drive_power", "W"), power),
            *_measures(exoskeleton, aims, q, dq, moments, passive, rates),
        ],
        time=time,
    )


def _moments(
    build: Build, reference: Reference, q: Any, dq: Any, design: Mapping[str, Any], deviation: Any
) -> list[Any]:
    """The moments of every joint by computed torque, for azimuth and elevation; those of undriven joints are not
    used."""
    tree, n = build.tree, build.tree.n
    w, z = (objects(design[name]) for name in ("frequency", "drive_damping"))  # arrays of one entry
    rest_lengths = tree.column("rest_length")
    none = objects(ca.SX.zeros(n))
    aims = [reference.phi, reference.psi]
    if deviation.numel():
        aims[0] = aims[0] + objects(deviation)
    accelerations = []
    follows_aim = [i in build.driven or tree.rods[i].name == "stance_foot" for i in range(n)]
    for k, (aim, rate, second) in enumerate(
        zip(aims, (reference.dphi, reference.dpsi), (reference.d2phi, reference.d2psi), strict=True)
    ):
        at, speed = q[k * n : (k + 1) * n], dq[k * n : (k + 1) * n]
        acceleration = second + 2.0 * z * w * (rate - speed) + w**2 * (aim - at)
        accelerations.append(
            np.array([a if f else ca.SX(0.0) for a, f in zip(acceleration, follows_aim, strict=True)], dtype=object)
        )
    rigid = np.concatenate([q[: 2 * n], rest_lengths])
    efforts = inverse_dynamics(
        tree, rigid, np.concatenate([dq[: 2 * n], none]), np.concatenate([*accelerations, none])
    )  # fmt: skip
    return [_sums(build, efforts[:n]), _sums(build, efforts[n : 2 * n])]


def _passive_moments(build: Build, reference: Reference, q: Any, dq: Any) -> list[Any]:
    """The moments of springs and dampers in the joints without drives, for azimuth and elevation."""
    n = build.tree.n
    moments = []
    for k, aim in enumerate((reference.phi, reference.psi)):
        at, speed = (
            _relative_values(build, q[k * n : (k + 1) * n] - aim),
            _relative_values(build, dq[k * n : (k + 1) * n]),
        )
        constants = [SOLE if rod.name == "stance_foot" else ARM for rod in build.tree.rods]
        moments.append([-c[0] * a - c[1] * s for c, a, s in zip(constants, at, speed, strict=True)])
    return moments


def _measures(
    build: Build, reference: Reference, q: Any, dq: Any, moments: Any, passive: Any, rates: Any
) -> list[tuple[Variable, Any]]:
    """Distances, compression, energy and the power that leaves through dampers and enters through joints."""
    tree, n = build.tree, build.tree.n
    rest_lengths = tree.column("rest_length")
    ends, _ = places(tree, q)
    aims, _ = places(tree, np.concatenate([reference.phi, reference.psi, rest_lengths]))
    names = [rod.name for rod in tree.rods]
    rods = [names.index(name) for name in ("stance_thigh", "stance_shank", "swing_shank")]
    error = sum(((ends[i] - aims[i]) ** 2).sum() for i in rods) / len(rods)
    stretch = (q[2 * n :] - rest_lengths) / rest_lengths
    energy = energies(tree, q, dq)
    damped_power = (tree.column("damping") * dq[2 * n :] ** 2).sum()
    joint_power = sum(
        (m[i] if i in build.driven else p[i]) * r[i]
        for m, p, r in zip(moments, passive, rates, strict=True)
        for i in range(n)
    )
    return [
        (Variable("squared_error", "m^2"), error),
        *((Variable(f"stretch_{names[i]}", ""), stretch[i]) for i in build.legs),
        (Variable("energy", "J"), energy.kinetic + energy.weight + energy.elastic),
        (Variable("joint_power", "W"), joint_power),
        (Variable("damped_power", "W"), damped_power),
    ]


def _relative_values(build: Build, values: Any) -> list[Any]:
    """The value of the rod of each joint less that of the rod before it."""
    return [value if before < 0 else value - values[before] for value, before in zip(values, build.joints, strict=True)]


def _net(build: Build, moments: Any) -> Any:
    """Generalised forces of the moments in the joints: each acts on its rod, and back on the rod before it."""
    net = list(moments)
    for i, before in enumerate(build.joints):
        if before >= 0:
            net[before] = net[before] - moments[i]
    return np.array(net, dtype=object)


def _sums(build: Build, forces: Any) -> list[Any]:
    """The moments in the joints that make generalised `forces`: sums over all rods beyond a joint."""
    total = list(forces)
    for i in sorted(range(len(total)), key=lambda i: -_depth(build, i)):
        if build.joints[i] >= 0:
            total[build.joints[i]] = total[build.joints[i]] + total[i]
    return total


def _depth(build: Build, i: int) -> int:
    depth = 0
    while build.joints[i] >= 0:
        i, depth = build.joints[i], depth + 1
    return depth
