"""Standing up from a squat, with torques or muscles, and a spring at the knee as part of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from designopt_mechanics.tree import Tree
from designopt_muscle.geometry.fits import PolynomialPaths, polynomial_paths
from designopt_muscle.osim.model import CoordinateActuator, OsimModel, OsimMuscle
from designopt_muscle.osim.tree import tree_of

from designopt.collocation import Constraint, Ends, Integral, Phase, PhaseGuess, Program, TrajectoryProblem
from designopt.dynamics.system import Variable
from designopt.evaluation_progress import step
from designopt.lazy import casadi as ca
from designopt_walking.programs.gait import GaitError, excitations, plain, power_sum, program_options, tendon_scales
from designopt_walking.programs.predict import Start
from designopt_walking.programs.tendons import Tendons, with_tendon_forces
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
#: Tolerance of the motion with rigid tendons from which that with compliant ones starts.
START_TOLERANCE = 1e-4
#: Stiffness (N m/rad) up to which a spring may be chosen.
STIFFEST = 200.0


@dataclass(frozen=True)
class Squat:
    """The task: `duration` (s), `drive` by torques or muscles, weight of squared `excitation` beside activation,
    muscles without passive force (`slack`), and `tendons`."""

    duration: float = 1.0
    drive: Drive = "torques"
    excitation: float = 0.1
    strength: float = STRENGTH
    width: float = WIDTH
    slack: Sequence[str] = field(default=SLACK)
    tendons: Tendons = field(default_factory=Tendons)


def squat_walker(model: OsimModel, squat: Squat) -> tuple[Walker, PolynomialPaths]:
    """The model with its drives and the spring, and the fits of the paths that wrap.

    Raises `GaitError` for a model without the three joints, for muscles where there are none, and for impossible
    tendons.
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
    model, compliant = squat.tendons.applied_to(model)
    fits = polynomial_paths(model, ranges)
    walker = walker_of(model, tree=tree, ranges=ranges, lengths=fits, compliant=compliant)
    return walker.with_device(lambda w: _spring(w, "knee_angle")), fits


def squat_to_stand(walker: Walker, squat: Squat, start: Start | None = None) -> TrajectoryProblem:
    """The program: least int sum u^2 of the drives, or int sum (a^2 + w e^2) of the muscles, from rest to rest.

    Excitations and activations are equal at the start. Without a charge on activations the first ones would be free of
    charge on ever finer meshes. Compliant tendons are at rest at the start: energy that they store then is paid by
    activations. The first trajectories are those of `start`, lines from posture to posture without.
    """
    system = walking_system(walker)
    names = walker.coordinates
    speeds = dict.fromkeys([f"{name}_speed" for name in names], 0.0)
    activations = [f"activation_{name}" for name in walker.muscles.names]
    phase = Phase(
        system,
        tf=squat.duration,
        initial={**{name: SQUAT[plain(name)] for name in names}, **speeds},
        final={**dict.fromkeys(names, STANDING), **speeds},
        start=start,
        scales=tendon_scales(walker),
        integrals={
            "drives": Integral(lambda v: power_sum([v[n] for n in walker.drives], 2), unit="s"),
            "activations": Integral(lambda v: power_sum([v[n] for n in activations], 2), unit="s"),
            "excitations": Integral(lambda v: power_sum([v[n] for n in excitations(walker)], 2), unit="s"),
        },
    )

    def effort(e: Any) -> Any:
        integral = e.integral
        return integral["drives"] + integral["activations"] + squat.excitation * integral["excitations"]

    equal = list(zip(excitations(walker), activations, strict=True))
    force_rates = [f"force_rate_{name}" for name in walker.muscles.compliant]
    constraints = {}
    if equal:
        constraints["start"] = Constraint(
            lambda e: ca.vertcat(*(e.initial[a] - e.initial[b] for a, b in equal)), 0.0, 0.0
        )
    if force_rates:
        constraints["tendons_at_rest"] = Constraint(
            lambda e: ca.vertcat(*(e.initial[n] for n in force_rates)), 0.0, 0.0
        )
    return TrajectoryProblem(
        [phase],
        cost=effort,
        constraints=constraints,
        terms={name: partial(_integral, name) for name in phase.integrals},
        figures={"effort": effort},
    )


def rigid_start(model: OsimModel, squat: Squat, intervals: int) -> Start | None:
    """The motion of a `model` with rigid tendons on a mesh, from which that with compliant ones starts: lines from
    posture to posture do not lead to it. None where all tendons are rigid."""
    walker, _ = squat_walker(model, squat)
    if not walker.muscles.compliant:
        return None
    rigid = replace(squat, tendons=Tendons())
    problem = squat_to_stand(squat_walker(model, rigid)[0], rigid)

    def start(parameters: Mapping[str, float], _: np.random.Generator | None) -> PhaseGuess:
        parametrised_problem = replace(problem, parameters=dict(parameters))
        with step("standing up with rigid tendons, to start from"):
            solution = Program(parametrised_problem, program_options(intervals, START_TOLERANCE)).solve()
        return with_tendon_forces(walker, solution.phase)

    return start


def _integral(name: str, e: Ends) -> Any:
    return e.integral[name]


def _muscle(muscle: OsimMuscle, squat: Squat) -> OsimMuscle:
    """The muscle with the curves of De Groote et al. (2016)."""
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
