"""The walk of an amputee with a prosthesis as a program: a full cycle, its two sides with separate muscles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from designopt_mechanics.tree import Coordinate, Tree
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.tree import tree_of

from designopt.collocation import Constraint, Ends, Integral, Phase, Symbols, TrajectoryProblem, periodic
from designopt.dynamics import System, Variable
from designopt.lazy import casadi as ca
from designopt_walking.devices.amputation import amputate, with_four_bar
from designopt_walking.devices.four_bar import FourBar
from designopt_walking.devices.joint_springs import ROUNDING, STOP, elastic_ankle, single_axis_knee
from designopt_walking.programs.gait import ACCELERATION_SIZE, FORWARD, SPEED_SIZE, distance
from designopt_walking.system import walking_system
from designopt_walking.walker import DeviceForces, Walker, walker_of

#: Ranges of the coordinates (deg; m for the pelvis' position) of a walker amputated on the right.
RANGES = {
    "pelvis_tilt": (-25.0, 0.0),
    "hip_flexion_r": (-25.0, 60.0),
    "hip_flexion_l": (-25.0, 60.0),
    "knee_angle_l": (-70.0, 0.0),
    "knee_angle_r": (-80.0, 3.0),
    "ankle_angle_l": (-20.0, 25.0),
    "ankle_angle_r": (-15.0, 20.0),
    "lumbar": (-10.0, 30.0),
    "pelvis_tx": (0.0, 2.5),
    "pelvis_ty": (0.75, 1.25),
}
#: The largest knee angle (deg) at which the links of the four-bar knee are well away from being parallel.
FOUR_BAR_EXTENSION = 2.0
#: Speeds: of joints, trunk and pelvis (rad/s), forward and upward (m/s).
JOINT_SPEED, FORWARD_SPEED, UPWARD_SPEED = 15.0, (0.0, 4.0), (-3.0, 3.0)
#: Largest torque of the trunk (N m), which is also its scale in the cost.
TRUNK = 100.0
#: Duration of the cycle (s).
DURATION = (0.8, 1.4)
#: Help at the amputated side that stages of the start may use: torque (N m) at a control of 1, range of the control.
HELP, MOST_HELP = 100.0, 2.0
HELPED = ("hip_flexion", "knee_angle", "ankle_angle")
#: Scale of the trunk's torque in the program (N m).
TRUNK_SCALE = 30.0


@dataclass(frozen=True)
class KneeLimits:
    """Limits of the prosthetic knee: largest flexion (rad), and torque of its extension stop (N m; None: any)."""

    swing_flexion: float = float(np.radians(80.0))
    stop_torque: float | None = None

    def knee_range(self, extension: float) -> tuple[float, float]:
        """Range (rad) of the knee angle; the stop's torque grows with the angle, so that its limit is one of the angle.
        `extension` is the largest angle otherwise."""
        if self.stop_torque is not None:
            p = self.stop_torque / STOP
            extension = min(extension, p - ROUNDING**2 / (4.0 * p))
        return -self.swing_flexion, extension


@dataclass(frozen=True)
class Prosthesis:
    """The leg: `side` "r" or "l", a four-bar `linkage` or a single axis as its knee, `myodesis` of two muscles."""

    side: str = "r"
    linkage: FourBar | None = None
    myodesis: bool = False

    @property
    def knee(self) -> str:
        """The kind of the knee, as in the setting of the model."""
        return "single_axis" if self.linkage is None else "four_bar"

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the device's parameters: stiffness and damping of the knee, stiffness of the ankle."""
        knee = ("knee_stiffness", "knee_damping") if self.linkage is None else ("damper_stiffness", "damper_damping")
        return (*knee, "ankle_stiffness")


def amputee_walker(model: OsimModel, prosthesis: Prosthesis, limits: KneeLimits) -> Walker:
    """The walker with its prosthesis and, as controls of the start, the help torques."""
    side = prosthesis.side
    body = amputate(model, side, myodesis=prosthesis.myodesis)
    tree, linkage = _with_ranges(tree_of(body), prosthesis, limits), prosthesis.linkage
    if linkage is not None:
        tree = with_four_bar(tree, linkage, side)
    ranges = {c.name: (c.low, c.high) for c in tree.coordinates}
    walker = walker_of(body, tree=tree, ranges=ranges)
    walker = walker.with_device(single_axis_knee(side) if linkage is None else linkage.device(side))
    return walker.with_device(elastic_ankle(side)).with_device(lambda _: _help(side))


def help_names(side: str) -> tuple[str, ...]:
    """Names of the help controls."""
    return tuple(f"help_{name}_{side}" for name in HELPED)


def amputee_system(walker: Walker) -> System:
    """The equations of the walker."""
    return walking_system(walker)


@dataclass(frozen=True)
class AmputeeCost:
    """J = (10/d) int (sum e^2 + (tau/100)^2) dt + `asymmetry_weight` A^2; A: asymmetry of the vertical impulses."""

    asymmetry_weight: float = 1.0


def amputee_problem(
    system: System, side: str, speed: float, cost: AmputeeCost, *, help_price: float | None = None
) -> TrajectoryProblem:
    """The program of a cycle at `speed` (m/s), whose static parameters are those of the device.

    With a `help_price` help torques act, at that price per integral of their squares and distance; they are zero
    otherwise. Programs with and without help have the same expressions.
    """
    excitations = [v.name for v in system.controls if v.name.startswith("excitation_")]
    drives = [v.name for v in system.controls if not v.name.startswith(("excitation_", "help_"))]
    helps = help_names(side)
    coordinates = [v.name for v in system.states if v.name in RANGES]
    further_states = [v.name for v in system.states if v.name not in RANGES]
    bounds = (0.0, 0.0) if help_price is None else (-MOST_HELP, MOST_HELP)

    def effort(v: Symbols) -> Any:
        return sum(v[n] ** 2 for n in excitations) + sum((v[n] / TRUNK) ** 2 for n in drives)

    phase = Phase(
        system,
        tf=DURATION,
        name="cycle",
        bounds={
            **{f"{n}_speed": _speed_range(n) for n in coordinates},
            **dict.fromkeys(drives, (-TRUNK, TRUNK)),
            **dict.fromkeys(helps, bounds),
        },
        scales=_scales(system, drives),
        integrals={
            "effort": Integral(effort, unit="s"),
            "help": Integral(lambda v: sum(v[n] ** 2 for n in helps), unit="s"),
            "impulse_r": Integral(lambda v: v["ground_y_r"], unit="N s"),
            "impulse_l": Integral(lambda v: v["ground_y_l"], unit="N s"),
        },
    )

    def imbalance(e: Ends) -> Any:
        right, left = e.integral["impulse_r"], e.integral["impulse_l"]
        return (right - left) / (right + left)

    terms: dict[str, Callable[[Ends], Any]] = {
        "effort": lambda e: 10.0 * e.integral["effort"] / distance(e),
        "asymmetry": lambda e: e["asymmetry_weight"] * imbalance(e) ** 2,
        "help": lambda e: e["help_price"] * e.integral["help"] / distance(e),
    }

    def cost_of(e: Ends) -> Any:
        return sum(term(e) for term in terms.values())

    periodic_variables = [n for n in coordinates if n != FORWARD] + further_states + drives
    return TrajectoryProblem(
        [phase],
        cost=cost_of,
        terms=terms,
        figures={
            "objective": cost_of,
            "effort": terms["effort"],
            "loading_asymmetry": imbalance,
            "final_time": lambda e: e.duration,
        },
        constraints={
            "cycle": periodic(periodic_variables),
            "speed": Constraint(lambda e: (distance(e) - e["speed"] * e.duration) / e["speed"], 0.0, 0.0, "s"),
        },
        extra=(
            Variable("speed", "m/s", 0.0, 5.0, "of walking"),
            Variable("asymmetry_weight", "", 0.0, np.inf, "of the squared asymmetry of the vertical impulses"),
            Variable("help_price", "", 0.0, np.inf, "of help torques"),
        ),
        parameters={"speed": speed, "asymmetry_weight": cost.asymmetry_weight, "help_price": help_price or 0.0},
    )


def _with_ranges(tree: Tree, prosthesis: Prosthesis, limits: KneeLimits) -> Tree:
    """The tree with the ranges of its coordinates; those of `RANGES` mirrored for a prosthesis on the left."""
    flip = {"r": "l", "l": "r"}
    coordinates = []
    for c in tree.coordinates:
        name = c.name
        if prosthesis.side == "l" and name[-2:] in ("_r", "_l"):
            name = f"{name[:-1]}{flip[name[-1]]}"
        low, high = RANGES[name]
        if c.unit == "rad":
            low, high = float(np.radians(low)), float(np.radians(high))
        if name == "knee_angle_r":
            extension = high if prosthesis.linkage is None else float(np.radians(FOUR_BAR_EXTENSION))
            low, high = limits.knee_range(extension)
        coordinates.append(Coordinate(c.name, c.unit, low, high, min(max(c.reference, low), high)))
    return Tree(tuple(coordinates), tree.frames)


def _scales(system: System, drives: Sequence[str]) -> dict[str, float]:
    """Scales of speeds, accelerations and the trunk's torque, whose ranges are far wider than a walk needs."""
    form = system.residual_form
    accelerations = [v.name for v in form.unknowns] if form else []
    speeds = [v.name for v in system.states if v.name.endswith("_speed")]
    sizes = ((speeds, SPEED_SIZE), (accelerations, ACCELERATION_SIZE), (drives, TRUNK_SCALE))
    return {name: size for names, size in sizes for name in names}


def _speed_range(name: str) -> tuple[float, float]:
    special = {"pelvis_tx": FORWARD_SPEED, "pelvis_ty": UPWARD_SPEED}
    return special.get(name, (-JOINT_SPEED, JOINT_SPEED))


def _help(side: str) -> DeviceForces:
    controls = [(Variable(name, "", -MOST_HELP, MOST_HELP), ca.SX.sym(name)) for name in help_names(side)]
    moments = {f"{joint}_{side}": HELP * symbol for joint, (_, symbol) in zip(HELPED, controls, strict=True)}
    return DeviceForces(moments, controls=controls)
