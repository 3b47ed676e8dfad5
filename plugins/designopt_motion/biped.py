"""The model ``biped5``: the step of a five-link walker, ended by an impact that exchanges its legs, at least effort."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cached_property
from typing import Annotated, Any, Literal, TypedDict, cast

import numpy as np

from designopt.arrays import Floats
from designopt.collocation import Constraint, Integral, Options, Phase, Solution, TrajectoryProblem, solve_design
from designopt.collocation.statement.problem import periodic
from designopt.collocation.statement.symbols import Ends, Symbols
from designopt.dynamics.rows import Rows, outputs_over
from designopt.dynamics.system import System
from designopt.lazy import casadi as ca
from designopt.plugin import Array, filled, model
from designopt.plugin import Quantity as Q
from designopt_motion import biped_equations as equations
from designopt_motion.biped_equations import ANGLES, GRAVITY, MASS, SPEEDS, TORQUES


class Step(TypedDict, total=False):
    """Values of a design."""

    step_length: Annotated[float, Q("m", "from one foothold to the next", ge=0.1, le=0.9, default=0.5)]
    step_time: Annotated[float, Q("s", "from one impact to the next", ge=0.3, le=1.1, default=0.7)]
    hip_stiffness: Annotated[float, Q("N m/rad", "of a spring between the thighs", ge=0, le=200, default=0.0)]
    knee_stiffness: Annotated[
        float, Q("N m/rad", "of a spring at each knee, relaxed when straight", ge=0, le=200, default=0.0)
    ]


class Walk(TypedDict, total=False):
    """Ground and motors."""

    slope: Annotated[float, Q("rad", "of the ground, positive is downhill", default=0.0)]
    clearance: Annotated[float, Q("m", "minimum height of the swing foot beside the stance foot", ge=0, default=0.0)]
    max_torque: Annotated[float, Q("N m", "of every joint", gt=0, default=100.0)]
    max_ankle_torque: Annotated[float, Q("N m", "of the stance ankle; 0 is a point foot", ge=0, default=100.0)]


class StepOutputs(TypedDict):
    """Outputs of the optimal step for one design."""

    effort: Annotated[float, Q("N^2 m^2 s", "integral of the squared torques of all motors")]
    work: Annotated[float, Q("J", "integral of the size of the motors' power, rounded within a few watts of zero")]
    cost_of_transport: Annotated[float, Q("", "work by weight and distance")]
    speed: Annotated[float, Q("m/s", "step length by step time")]
    peak_torque: Annotated[float, Q("N m", "largest magnitude of the torque of any motor")]
    foot_clearance: Annotated[float, Q("m", "least height of the swing foot in the middle half of its way")]
    impact_loss: Annotated[float, Q("J", "kinetic energy lost in the impact")]
    min_ground_force: Annotated[
        float,
        Q(
            "N",
            "minimum normal force on the stance foot; negative: the foot would lift off",
        ),
    ]
    friction_needed: Annotated[float, Q("", "largest ratio of tangential to normal force on the stance foot")]
    error_estimate: Annotated[float, Q("", "of the discretisation, relative to the states")]
    resimulation_error: Annotated[float, Q("", "of a simulation with the same torques, relative to the states")]


ARRAYS = {
    "time": Array(("time",), "s", "of the step"),
    "angles": Array(("time", "link"), "rad", "absolute, of stance shin and thigh, trunk, swing thigh and shin"),
    "torques": Array(("time", "joint"), "N m", "of stance ankle, knee and hip, swing hip and knee"),
    "figure": Array(("time", "point", "axis"), "m", "stance foot and knee, hip, head, swing knee and foot"),
    "ground_force": Array(("time", "axis"), "N", "on the stance foot, tangential and normal"),
}

#: Where the search begins: the angles at both ends of a moderate step (rad).
_POSTURE = (0.2, 0.4, -0.1, -0.3, -0.35)
#: The size of a power is rounded below this power (W).
_ROUNDED = 1.0
_SAMPLES = 141


@model("biped5", version=1, arrays=ARRAYS)
class Biped:
    """Walking step of a planar robot of shins, thighs and trunk that minimises the integral of squared torques.

    Kelly, SIAM Review 59 (2017) 849, section 6: single stance, an impact without slip or rebound that exchanges the
    legs, and the same step again. The foot leaves the ground upwards and meets it downwards; knees do not bend
    backwards. Links as of the robot RABBIT (Westervelt, Grizzle, Koditschek 2003).

    `min_ground_force` and `friction_needed` show whether the stance foot stays on the ground without slip. One
    evaluation solves one trajectory problem.
    """

    own_options = True

    scheme: Annotated[Literal["hermite_simpson", "radau"], Q("", "of the transcription")] = "radau"
    intervals: Annotated[int, Q("", "of the mesh", ge=4)] = 40

    @cached_property
    def _system(self) -> System:
        return equations.system()

    def evaluate(
        self, design: Step, scenario: Walk, arrays: Set[str] = frozenset()
    ) -> tuple[StepOutputs, dict[str, Floats]]:
        """Solve for the step of this design."""
        options = Options(scheme=self.scheme, intervals=self.intervals)
        solution = solve_design(self.trajectory_problem(scenario), cast(Mapping[str, float], design), options)
        trajectory = _sample(self._system, solution, filled(Walk, scenario)["slope"])
        tangential, normal = trajectory["ground_force"].T
        middle = slice(_SAMPLES // 4, -(_SAMPLES // 4))
        outputs = StepOutputs(
            effort=solution.figures["effort"],
            work=solution.figures["work"],
            cost_of_transport=solution.figures["cost_of_transport"],
            speed=solution.figures["speed"],
            peak_torque=float(np.abs(trajectory["torques"]).max()),
            foot_clearance=float(trajectory["figure"][middle, -1, 1].min()),
            impact_loss=solution.figures["impact_loss"],
            min_ground_force=float(normal.min()),
            friction_needed=float(np.abs(tangential / normal).max()),
            error_estimate=solution.error_estimate,
            resimulation_error=solution.phase.resimulation_error,
        )
        return outputs, {name: trajectory[name] for name in arrays}

    def trajectory_problem(self, scenario: Mapping[str, Any]) -> TrajectoryProblem:
        """The step as a program."""
        walk, usual = filled(Walk, scenario), cast(Mapping[str, float], filled(Step, {}))
        torque, ankle = walk["max_torque"], walk["max_ankle_torque"]
        phase = Phase(
            self._system,
            tf=(0.3, 1.1),
            name="step",
            bounds={**dict.fromkeys(TORQUES, (-torque, torque)), TORQUES[0]: (-ankle, ankle)},
            path={
                "swing_foot": Constraint(lambda v: _height_above_bump(v, walk["clearance"]), 0.0, unit="m"),
                "stance_knee": Constraint(lambda v: v["stance_thigh"] - v["stance_shin"], 0.0, unit="rad"),
                "swing_knee": Constraint(lambda v: v["swing_thigh"] - v["swing_shin"], 0.0, unit="rad"),
            },
            integrals={
                "effort": Integral(lambda v: sum(v[n] ** 2 for n in TORQUES), unit="N^2 m^2 s"),
                "work": Integral(_power, unit="J"),
            },
            data={"slope": walk["slope"]},
            guess={n: (_POSTURE[i], _POSTURE[4 - i]) for i, n in enumerate(ANGLES)},
        )
        return TrajectoryProblem(
            [phase],
            cost=lambda e: e.integral["effort"],
            constraints={
                "exchange": periodic(ANGLES, mirror=dict(zip(ANGLES, reversed(ANGLES), strict=True))),
                "impact": Constraint(_impact, 0.0, 0.0, "kg m^2/s"),
                "landing": Constraint(_landing, 0.0, 0.0, "m"),
                "lift_off": Constraint(lambda e: _foot_speed(e.initial), 0.0, unit="m/s"),
                "touch_down": Constraint(lambda e: _foot_speed(e.final), high=0.0, unit="m/s"),
                "step_time": Constraint(lambda e: e.duration - e["step_time"], 0.0, 0.0, "s"),
            },
            parameters=usual,
            guess=usual,
            figures={
                "effort": lambda e: e.integral["effort"],
                "work": lambda e: e.integral["work"],
                "cost_of_transport": lambda e: e.integral["work"] / (MASS * GRAVITY * e["step_length"]),
                "speed": lambda e: e["step_length"] / e.duration,
                "impact_loss": lambda e: _kinetic_energy(e.final) - _kinetic_energy(e.initial),
            },
        )


def _height_above_bump(v: Symbols, clearance: float) -> Any:
    """Height of the swing foot above the ground and a bump beside the stance foot, flat a step's length away."""
    return v["swing_foot_y"] - clearance * (1.0 - (v["swing_foot_x"] / v["step_length"]) ** 2)


def _power(v: Symbols) -> Any:
    rates = equations.joint_speeds([v[n] for n in SPEEDS])
    powers = [v[torque] * rate for torque, rate in zip(TORQUES, rates, strict=True)]
    return sum(ca.sqrt(power**2 + _ROUNDED**2) - _ROUNDED for power in powers)


def _impact(e: Ends) -> Any:
    q, w = equations.end_vectors(e.final)
    return equations.impact(q, w, equations.end_vectors(e.initial)[1])


def _landing(e: Ends) -> Any:
    q, _ = equations.end_vectors(e.final)
    return equations.places(q).joints[-1] - ca.vertcat(e["step_length"], 0.0)


def _foot_speed(symbols: Symbols) -> Any:
    q, w = equations.end_vectors(symbols)
    return equations.speed_of(equations.places(q).joints[-1], q, w)[1]


def _kinetic_energy(symbols: Symbols) -> Any:
    q, w = equations.end_vectors(symbols)
    return equations.kinetic_energy(q, w)


def _sample(system: System, solution: Solution, slope: float) -> dict[str, Floats]:
    """All of `ARRAYS`, at equal distances of time."""
    motion = solution.phase
    time = np.linspace(motion.t0, motion.tf, _SAMPLES)
    values = motion.interpolate(time)
    angles, torques = (np.column_stack([values[n] for n in names]) for names in (ANGLES, TORQUES))
    forces = outputs_over(system, values, solution.parameters, {"slope": slope}, time)
    q = ca.SX.sym("q", 5)
    joints = ca.Function("points", [q], [ca.horzcat(*equations.places(q).joints).T])
    (figure,) = Rows(joints, compiled=False)(angles)
    return {
        "time": time,
        "angles": angles,
        "torques": torques,
        "figure": figure,
        "ground_force": np.column_stack([forces["ground_tangential"], forces["ground_normal"]]),
    }
