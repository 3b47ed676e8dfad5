"""A planar arm of two segments with six muscles, in a horizontal plane.

Angles are counter-clockwise: of the upper arm from the sideways axis x, of the forearm from the upper arm (flexion of
the elbow is positive). y points forward. Muscles shorten as the joints turn in the direction of their moment arms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from designopt_mechanics.body import Body
from designopt_mechanics.dynamics import matrices
from designopt_mechanics.equations import equations_of
from designopt_mechanics.motions import Rotate
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Coordinate, Frame, Tree
from designopt_muscle.curves import FASTEST, OPENSIM, activation_rate

from designopt.dynamics.system import System, Variable
from designopt.lazy import casadi as ca


@dataclass(frozen=True)
class ArmSegment:
    """Mass (kg), length (m), distance of the centre of mass from the upper joint (m), inertia about it (kg m^2)."""

    mass: float
    length: float
    centre: float
    inertia: float


@dataclass(frozen=True)
class ArmMuscle:
    """Moment arms about shoulder and elbow (m, flexion positive), isometric force (N), optimal fibre length (m)."""

    name: str
    shoulder_arm: float
    elbow_arm: float
    force: float
    length: float


#: Masses and lengths: Selen, Franklin, Wolpert, J. Neurosci. 29 (2009) 12606, table 1. Centres of mass and moments of
#: inertia: Shadmehr, Mussa-Ivaldi, J. Neurosci. 14 (1994) 3208, for segments of the same masses.
UPPER_ARM = ArmSegment(1.93, 0.31, 0.165, 0.0141)
FOREARM = ArmSegment(1.52, 0.34, 0.19, 0.0188)
#: Moment arms: Selen et al. (2009), table 1. Forces and lengths: Holzbaur, Murray, Delp, Ann. Biomed. Eng. 33 (2005)
#: 829, of anterior and posterior deltoid, brachialis, lateral head of triceps, long heads of biceps and triceps.
MUSCLES = (
    ArmMuscle("shoulder_flexor", 0.0536, 0.0, 1142.6, 0.0976),
    ArmMuscle("shoulder_extensor", -0.0536, 0.0, 259.9, 0.1367),
    ArmMuscle("elbow_flexor", 0.0, 0.0316, 987.3, 0.0858),
    ArmMuscle("elbow_extensor", 0.0, -0.0267, 624.3, 0.1138),
    ArmMuscle("biarticular_flexor", 0.0386, 0.0427, 624.3, 0.1157),
    ArmMuscle("biarticular_extensor", -0.0388, -0.0300, 798.5, 0.1340),
)
#: All fibres have their optimal length with the upper arm half forward and the elbow at a right angle (rad).
POSTURE = (math.pi / 4, math.pi / 2)
#: Ranges of the joints (rad).
SHOULDER, ELBOW = (-0.5, 2.5), (0.0, 2.6)
#: Excitations and activations are within these.
MIN_ACTIVATION, MAX_ACTIVATION = 0.01, 1.0

ACTIVATIONS = tuple(f"{m.name}_activation" for m in MUSCLES)
EXCITATIONS = tuple(f"{m.name}_excitation" for m in MUSCLES)
FIBRES = tuple(f"{m.name}_length" for m in MUSCLES)
FIBRE_SPEEDS = tuple(f"{m.name}_speed" for m in MUSCLES)


def joints(shoulder: Any, elbow: Any) -> tuple[Any, Any]:
    """Positions (2, 1) of the elbow and the hand."""

    def along(angle: Any) -> Any:
        return ca.vertcat(ca.cos(angle), ca.sin(angle))

    at_elbow = UPPER_ARM.length * along(shoulder)
    return at_elbow, at_elbow + FOREARM.length * along(shoulder + elbow)


def angles_at(x: float, y: float) -> tuple[float, float]:
    """Angles of shoulder and elbow (rad) with the hand at (x, y) m. Raises `ValueError` where it does not reach."""
    a, b = UPPER_ARM.length, FOREARM.length
    cosine = (x * x + y * y - a * a - b * b) / (2.0 * a * b)
    if not -1.0 < cosine < 1.0:
        raise ValueError(
            f"the hand does not reach ({x:g}, {y:g}) m: the distance from the shoulder is between"
            f" {abs(a - b):g} and {a + b:g} m"
        )
    elbow = math.acos(cosine)
    shoulder = math.atan2(y, x) - math.atan2(b * math.sin(elbow), a + b * cosine)
    for name, angle, (low, high) in (("shoulder", shoulder, SHOULDER), ("elbow", elbow, ELBOW)):
        if not low <= angle <= high:
            raise ValueError(f"with the hand at ({x:g}, {y:g}) m the {name} is at {angle:.2f} rad, not {low} to {high}")
    return shoulder, elbow


def tree(load: Any) -> Tree:
    """The arm as a tree with the coordinates shoulder and elbow, and a `load` (kg) in the hand."""
    flat = (0.0, 0.0, 1.0)

    def body(segment: ArmSegment) -> Body:
        return Body(segment.mass, (segment.centre, 0.0, 0.0), (0.0, segment.inertia, segment.inertia))

    return Tree(
        (Coordinate("shoulder", "rad", *SHOULDER), Coordinate("elbow", "rad", *ELBOW)),
        (
            Frame("upper_arm", motions=(Rotate(flat, "shoulder"),), body=body(UPPER_ARM)),
            Frame(
                "forearm", "upper_arm", (Rotate(flat, "elbow"),), body(FOREARM), position=(UPPER_ARM.length, 0.0, 0.0)
            ),
            Frame("hand", "forearm", body=Body(load), position=(FOREARM.length, 0.0, 0.0)),
        ),
    )


def kinetic_energy(q: Any, w: Any, load: Any) -> Any:
    """Kinetic energy (J) of both segments and a `load` (kg) in the hand, for angles `q` (2, symbols) and rates `w`
    (2).
    """
    return matrices.kinetic_energy(TreeState(tree(load), q, w))


def fibre(muscle: ArmMuscle, q: Any, w: Any) -> tuple[Any, Any]:
    """Length in optimal lengths, and speed by the maximum shortening velocity, of a fibre on a rigid tendon."""
    shortening = muscle.shoulder_arm * (q[0] - POSTURE[0]) + muscle.elbow_arm * (q[1] - POSTURE[1])
    turning = muscle.shoulder_arm * w[0] + muscle.elbow_arm * w[1]
    return 1.0 - shortening / muscle.length, -turning / (muscle.length * FASTEST)


def system(sharpness: float = 10.0) -> System:
    """Two angles, their rates and six activations; the accelerations are unknowns.

    `sharpness` is that of `activation_rate`.

    Outputs: torques of the muscles and of the spring, lengths and speeds of the fibres.
    """
    q, w, s = (ca.SX.sym(n, 2) for n in ("q", "w", "s"))
    a, e = ca.SX.sym("a", len(MUSCLES)), ca.SX.sym("e", len(MUSCLES))
    stiffness, rest_angle, duration = (ca.SX.sym(n) for n in ("elbow_stiffness", "elbow_rest", "duration"))
    load = ca.SX.sym("load")
    shoulder: Any = 0.0
    elbow: Any = 0.0
    fibres = [fibre(muscle, q, w) for muscle in MUSCLES]
    for i, (muscle, (length, speed)) in enumerate(zip(MUSCLES, fibres, strict=True)):
        force = muscle.force * a[i] * OPENSIM.active_length(length) * OPENSIM.velocity(speed)
        shoulder += muscle.shoulder_arm * force
        elbow += muscle.elbow_arm * force
    rates = [activation_rate(e[i], a[i], sharpness=sharpness) for i in range(len(MUSCLES))]
    spring = -stiffness * (q[1] - rest_angle)
    speeds = dict.fromkeys(("shoulder", "elbow"), (-20.0, 20.0))
    parts = equations_of(TreeState(tree(load), q, w, s), ca.vertcat(shoulder, elbow + spring), speeds=speeds)
    return System.from_expressions(
        "arm",
        states=[
            *parts.states,
            *((Variable(n, "", MIN_ACTIVATION, MAX_ACTIVATION), a[i], rates[i]) for i, n in enumerate(ACTIVATIONS)),
        ],
        unknowns=parts.unknowns,
        controls=[(Variable(n, "", MIN_ACTIVATION, MAX_ACTIVATION), e[i]) for i, n in enumerate(EXCITATIONS)],
        parameters=[
            (Variable("elbow_stiffness", "N m/rad", 0.0, 50.0), stiffness),
            (Variable("elbow_rest", "rad", *ELBOW), rest_angle),
            (Variable("duration", "s", 0.2, 1.0), duration),
        ],
        data=[(Variable("load", "kg"), load)],
        outputs=[
            (Variable("shoulder_torque", "N m"), shoulder),
            (Variable("elbow_torque", "N m"), elbow),
            (Variable("spring_torque", "N m"), spring),
            *((Variable(n, ""), length) for n, (length, _) in zip(FIBRES, fibres, strict=True)),
            *((Variable(n, ""), speed) for n, (_, speed) in zip(FIBRE_SPEEDS, fibres, strict=True)),
        ],
    )
