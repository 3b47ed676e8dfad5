"""Standing up from a squat, with torques or muscles, and a spring at the knee as part of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from designopt_mechanics.tree import Tree
from designopt_muscle.geometry.fits import PolynomialPaths, polynomial_paths
from designopt_muscle.osim.model import CoordinateActuator, OsimModel, OsimMuscle
from designopt_muscle.osim.tree import tree_of

from designopt.collocation import Constraint, Ends, Integral, Phase, TrajectoryProblem
from designopt.dynamics.system import Variable
from designopt.lazy import casadi as ca
from designopt_walking.programs.gait import GaitError, excitations, plain, powered
from designopt_walking.system import walking_system
from designopt_walking.walker import DeviceForces, Ranges, Walker, walker_of

Drive = Literal["torques", "muscles"]
#: First and last posture (rad) and ranges, by coordinate without its side.
SQUAT = {"hip_flexion": -2.0, "knee_angle": -2.0, "ankle_angle": -0.5}
STANDING = 0.0
RANGES: Ranges = {"hip_flexion": (-2.0, 0.5), "knee_angle": (-2.0, 0.0), "ankle_angle": (-0.5, 0.7)}
#: Largest torques (N m) of drives.
TORQUES = {"hip_flexion": 150.0, "knee_angle": 300.0, "ankle_angle": 150.0}
#: Changes of the muscles: factor on their forces (a leg stands for two), width of the active curve.
STRENGTH, WIDTH = 2.0, 1.5
#: Muscles without passive force; their names begin so. Strain of others at one normalised passive force.
SLACK = ("soleus",)
PASSIVE_STRAIN = 0.6
#: Stiffness (N m/rad) up to which a spring may be chosen.
STIFFEST = 200.0


@dataclass(frozen=True)
class Squat:
    """The task: `duration` (s), `drive` by torques or muscles, weight of squared `excitation` beside activation."""

    duration: float = 1.0
    drive: Drive = "torques"
    excitation: float = 0.1
    strength: float = STRENGTH
    width: float = WIDTH
    slack: Sequence[str] = field(default=SLACK)


def squat_walker(model: OsimModel, squat: Squat) -> tuple[Walker, PolynomialPaths]:
    """The model with its drives and the spring, and the fits of the paths that wrap.

    Raises `GaitError` for a model without the three joints, and for muscles where there are none.
    """
    tree = tree_of(model, fixed=[c.name for c in model.coordinates if c.locked])
    joints = [c.name for c in tree.coordinates]
    if {plain(name) for name in joints} != set(SQUAT):
        raise GaitError("model", f"has the coordinates {', '.join(joints)}; a squat needs one hip, knee and ankle")
    ranges = {name: RANGES[plain(name)] for name in joints}
    tree = Tree(
        tuple(replace(c, low=ranges[c.name][0], high=ranges[c.name][1], reference=0.0) for c in tree.coordinates),
        tree.frames,
    )
    if squat.drive == "torques":
        drives = (CoordinateActuator(f"torque_{name}", name, TORQUES[plain(name)], -1.0, 1.0) for name in joints)
        model = replace(model, muscles=(), actuators=tuple(drives))
    elif not model.muscles:
        raise GaitError("model", "has no muscles; set 'drive: torques'")
    else:
        model = replace(model, muscles=tuple(_muscle(m, squat) for m in model.muscles), actuators=())
    fits = polynomial_paths(model, ranges)
    walker = walker_of(model, tree=tree, ranges=ranges, lengths=fits)
    return walker.with_device(lambda w: _spring(w, "knee_angle")), fits


def squat_to_stand(walker: Walker, squat: Squat) -> TrajectoryProblem:
    """The program: least int sum u^2 of the drives, or int sum (a^2 + w e^2) of the muscles, from rest to rest.

    Excitations and activations are equal at the start. Without a charge on activations the first ones would be free of
    charge on ever finer meshes.
    """
    system = walking_system(walker)
    names = walker.coordinates
    speeds = dict.fromkeys([f"{name}_speed" for name in names], 0.0)
    drives = [actuator.name for actuator in walker.model.actuators]
    activations = [f"activation_{name}" for name in walker.muscles.names]
    phase = Phase(
        system,
        tf=squat.duration,
        initial={**{name: SQUAT[plain(name)] for name in names}, **speeds},
        final={**dict.fromkeys(names, STANDING), **speeds},
        integrals={
            "drives": Integral(lambda v: powered([v[n] for n in drives], 2), unit="s"),
            "activations": Integral(lambda v: powered([v[n] for n in activations], 2), unit="s"),
            "excitations": Integral(lambda v: powered([v[n] for n in excitations(walker)], 2), unit="s"),
        },
    )

    def effort(e: Any) -> Any:
        integral = e.integral
        return integral["drives"] + integral["activations"] + squat.excitation * integral["excitations"]

    equal = list(zip(excitations(walker), activations, strict=True))
    constraints = {}
    if equal:
        constraints["start"] = Constraint(
            lambda e: ca.vertcat(*(e.initial[a] - e.initial[b] for a, b in equal)), 0.0, 0.0
        )
    return TrajectoryProblem(
        [phase],
        cost=effort,
        constraints=constraints,
        terms={name: partial(_integral, name) for name in phase.integrals},
        figures={"effort": effort},
    )


def _integral(name: str, e: Ends) -> Any:
    return e.integral[name]


def _muscle(muscle: OsimMuscle, squat: Squat) -> OsimMuscle:
    """The muscle with a rigid tendon and the curves of De Groote et al. (2016)."""
    shape: Mapping[str, float] = {
        **muscle.shape,
        "active_force_width_scale": squat.width,
        "passive_fiber_strain_at_one_norm_force": PASSIVE_STRAIN,
    }
    if muscle.name.startswith(tuple(squat.slack)):
        shape = {**shape, "ignore_passive_fiber_force": 1.0}
    return replace(
        muscle,
        model="degroote",
        rigid=True,
        force=squat.strength * muscle.force,
        fall=0.060,
        min_control=0.0,
        shape=dict(shape),
    )


def _spring(walker: Walker, joint: str) -> DeviceForces:
    """A spring with the torque -k q at a joint."""
    name = next(c for c in walker.coordinates if plain(c) == joint)
    stiffness = ca.SX.sym("knee_stiffness")
    variable = Variable("knee_stiffness", "N m/rad", 0.0, STIFFEST, "of a spring at the knee, relaxed when straight")
    return DeviceForces({name: -stiffness * walker.state.named[name]}, ((variable, stiffness),))
