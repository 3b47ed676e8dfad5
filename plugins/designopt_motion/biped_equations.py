"""A planar biped of five links on one leg: its motion, and the impact that exchanges its legs.

Links 1 to 5 are the stance shin, stance thigh, trunk, swing thigh and swing shin; the stance foot is the origin. x
points forward along the ground, y away from it. Angles are absolute and counter-clockwise, 0 is upright, so a positive
angle leans a stance leg and the trunk back and puts a swing leg forward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from designopt_mechanics.body import Body
from designopt_mechanics.dynamics import matrices
from designopt_mechanics.dynamics.recursion import efforts
from designopt_mechanics.equations import equations_of
from designopt_mechanics.functions.affine import Affine
from designopt_mechanics.motions import Rotate
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Coordinate, Frame, Tree

from designopt.dynamics.system import System, Variable
from designopt.lazy import casadi as ca

GRAVITY = 9.81
#: Numbers of the robot RABBIT: Westervelt, Grizzle, Koditschek, IEEE Trans. Automatic Control 48 (2003) 42, as used by
#: Kelly, SIAM Review 59 (2017) 849, section 6: mass (kg), moment of inertia about the centre of mass (kg m^2), length
#: (m), and distance (m) of the centre of mass from the upper joint; that of the trunk is from its upper end.
SHIN = {"mass": 3.2, "inertia": 0.93, "length": 0.4, "centre": 0.128}
THIGH = {"mass": 6.8, "inertia": 1.08, "length": 0.4, "centre": 0.163}
TRUNK = {"mass": 20.0, "inertia": 2.22, "length": 0.625, "centre": 0.2}
LINKS = (SHIN, THIGH, TRUNK, THIGH, SHIN)
MASS = sum(link["mass"] for link in LINKS)

ANGLES = ("stance_shin", "stance_thigh", "trunk", "swing_thigh", "swing_shin")
SPEEDS = tuple(f"{name}_speed" for name in ANGLES)
#: Torques at the joints, each between a link and the one before it (the first between shin and ground).
TORQUES = ("stance_ankle_torque", "stance_knee_torque", "stance_hip_torque", "swing_hip_torque", "swing_knee_torque")
#: Points of the stick figure.
JOINTS = ("stance_foot", "stance_knee", "hip", "head", "swing_knee", "swing_foot")


@dataclass(frozen=True)
class LinkPositions:
    """Positions of the `joints` (6) and of the `centres` of mass of the links (5), (2, 1) each."""

    joints: Sequence[Any]
    centres: Sequence[Any]


def places(q: Any) -> LinkPositions:
    """Positions for the angles `q` (5)."""
    up = [ca.vertcat(-ca.sin(q[i]), ca.cos(q[i])) for i in range(5)]
    foot = ca.SX.zeros(2)
    knee = foot + SHIN["length"] * up[0]
    hip = knee + THIGH["length"] * up[1]
    head = hip + TRUNK["length"] * up[2]
    swing_knee = hip - THIGH["length"] * up[3]
    swing_foot = swing_knee - SHIN["length"] * up[4]
    centres = (
        knee - SHIN["centre"] * up[0],
        hip - THIGH["centre"] * up[1],
        head - TRUNK["centre"] * up[2],
        hip - THIGH["centre"] * up[3],
        swing_knee - SHIN["centre"] * up[4],
    )
    return LinkPositions((foot, knee, hip, head, swing_knee, swing_foot), centres)


def speed_of(point: Any, q: Any, w: Any) -> Any:
    """Velocity (2, 1) of a point that is a function of the angles `q`, which change at the rates `w`."""
    return ca.jtimes(point, q, w)


def tree() -> Tree:
    """The walker as a tree: every link turns relative to the previous one by the difference of their absolute
    angles.
    """
    frames = []
    for name, link, parent, joint_height, swings in (
        ("stance_shin", SHIN, "ground", 0.0, False),
        ("stance_thigh", THIGH, "stance_shin", SHIN["length"], False),
        ("trunk", TRUNK, "stance_thigh", THIGH["length"], False),
        ("swing_thigh", THIGH, "stance_thigh", THIGH["length"], True),
        ("swing_shin", SHIN, "swing_thigh", -THIGH["length"], True),
    ):
        turn = Affine({name: 1.0} if parent == "ground" else {name: 1.0, parent: -1.0})
        centre = -link["centre"] if swings else link["length"] - link["centre"]
        body = Body(link["mass"], (0.0, centre, 0.0), (link["inertia"], 0.0, link["inertia"]))
        frames.append(Frame(name, parent, (Rotate((0.0, 0.0, 1.0), turn),), body, position=(0.0, joint_height, 0.0)))
    half_pi = 1.5707963267948966
    return Tree(tuple(Coordinate(name, "rad", -half_pi, half_pi) for name in ANGLES), tuple(frames))


def gravity(slope: Any) -> Any:
    """Gravity (3, 1) in m/s^2 on ground that descends at `slope` (rad)."""
    return GRAVITY * ca.vertcat(ca.sin(slope), -ca.cos(slope), 0.0)


def kinetic_energy(q: Any, w: Any) -> Any:
    """Kinetic energy of all links (J)."""
    (energy,) = _kinetic_energy().call([q, w])
    return energy


@cache
def _kinetic_energy() -> Any:
    state = TreeState.symbols(tree())
    return ca.Function("kinetic_energy", [state.z, state.dz], [matrices.kinetic_energy(state)])


def potential_energy(q: Any, slope: Any, hip_stiffness: Any, knee_stiffness: Any) -> Any:
    """Potential energy (J) of all links on ground that descends at `slope` (rad), and of the springs; `q` are
    symbols.
    """
    return matrices.potential_energy(TreeState(tree(), q), gravity(slope)) + spring_energy(
        q, hip_stiffness, knee_stiffness
    )


def spring_energy(q: Any, hip_stiffness: Any, knee_stiffness: Any) -> Any:
    """Energy (J) of a spring between the thighs and of one in each knee."""
    stance, swing = flexions(q)
    return 0.5 * hip_stiffness * (q[1] - q[3]) ** 2 + 0.5 * knee_stiffness * (stance**2 + swing**2)


def flexions(q: Any) -> tuple[Any, Any]:
    """Flexion (rad) of the stance knee and of the swing knee."""
    return q[1] - q[0], q[3] - q[4]


def joint_speeds(w: Any) -> list[Any]:
    """The rates that are conjugate to the `TORQUES`: their products are the power."""
    return [w[0], *(w[i] - w[i - 1] for i in range(1, 5))]


def angular_momentum(q: Any, w: Any, links: Sequence[int], about: int) -> Any:
    """Angular momentum of the given `links` about joint number `about`."""
    positions = places(q)
    total: Any = 0.0
    for i in links:
        r = positions.centres[i] - positions.joints[about]
        v = speed_of(positions.centres[i], q, w)
        total += LINKS[i]["mass"] * (r[0] * v[1] - r[1] * v[0]) + LINKS[i]["inertia"] * w[i]
    return total


def impact(q: Any, w: Any, w_after: Any) -> Any:
    """Residuals (5, 1) of the impact: the swing foot lands with `q`, `w`, and the exchanged legs continue with
    `w_after`.

    The new stance foot sticks and the old one leaves without an impulse. The impulses at the new foot and within joints
    therefore conserve these angular momenta: of the whole body about the new foot, and of the part beyond a joint about
    that joint (Kelly 2017, appendix F).
    """
    q_after = ca.vertcat(*(q[4 - i] for i in range(5)))
    # Of the exchanged biped: about foot, knee and hip of the new stance leg, and about the knee of the other one.
    balances = ((range(5), 0), (range(1, 5), 1), ((2,), 2), ((3, 4), 2), ((4,), 4))
    before = {0: 5, 1: 4, 2: 2, 4: 1}  # the same joints before the exchange
    return ca.vertcat(
        *(
            angular_momentum(q_after, w_after, links, about)
            - angular_momentum(q, w, [4 - i for i in links], before[about])
            for links, about in balances
        )
    )


def system() -> System:
    """Single stance with torques at all joints; accelerations are unknowns.

    Outputs: height and position of the swing foot (m), and the ground force on the stance foot (N).
    """
    q, w, a, u = (ca.SX.sym(n, 5) for n in ("q", "w", "a", "u"))
    slope = ca.SX.sym("slope")
    hip, knee, length, time = (ca.SX.sym(n) for n in ("hip_stiffness", "knee_stiffness", "step_length", "step_time"))
    state = TreeState(tree(), q, w, a)
    work = sum((u[i] * rate for i, rate in enumerate(joint_speeds(w))), ca.SX(0.0))
    forces = ca.gradient(work, w) - ca.gradient(spring_energy(q, hip, knee), q)
    parts = equations_of(state, forces, gravity(slope), speeds=dict.fromkeys(ANGLES, (-10.0, 10.0)))
    force = efforts(state, gravity(slope)).joints["stance_shin"][0]
    foot = places(q).joints[-1]
    return System.from_expressions(
        "biped",
        states=parts.states,
        unknowns=parts.unknowns,
        controls=[(Variable(n, "N m"), u[i]) for i, n in enumerate(TORQUES)],
        parameters=[
            (Variable("step_length", "m", 0.1, 0.9), length),
            (Variable("step_time", "s", 0.2, 2.0), time),
            (Variable("hip_stiffness", "N m/rad", 0.0, 200.0), hip),
            (Variable("knee_stiffness", "N m/rad", 0.0, 200.0), knee),
        ],
        data=[(Variable("slope", "rad"), slope)],
        outputs=[
            (Variable("swing_foot_x", "m"), foot[0]),
            (Variable("swing_foot_y", "m"), foot[1]),
            (Variable("ground_tangential", "N"), force[0]),
            (Variable("ground_normal", "N"), force[1]),
        ],
    )  # fmt: skip


def end_vectors(symbols: Mapping[str, Any]) -> tuple[Any, Any]:
    """Angles and rates (5, 1) of named symbols."""
    return ca.vertcat(*(symbols[n] for n in ANGLES)), ca.vertcat(*(symbols[n] for n in SPEEDS))
