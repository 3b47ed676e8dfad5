"""The model ``cart_pole``: swing-up of a pole on a cart with minimum effort; the design is the machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from functools import cached_property
from typing import Annotated, Any, Literal, TypedDict, cast

import numpy as np

from designopt.arrays import Floats
from designopt.collocation import (
    Constraint,
    Integral,
    Options,
    Phase,
    Solution,
    TrajectoryProblem,
    solve_design,
)
from designopt.dynamics.system import System, Variable
from designopt.lazy import casadi as ca
from designopt.plugin import Array, filled, model
from designopt.plugin import Quantity as Q

GRAVITY = 9.81


class Machine(TypedDict):
    """Values of a design."""

    pole_length: Annotated[float, Q("m", "from the pivot to the pole's mass", gt=0)]
    duration: Annotated[float, Q("s", "of the swing-up", gt=0)]


class Task(TypedDict, total=False):
    """The machine and its task."""

    cart_mass: Annotated[float, Q("kg", "of the cart", gt=0, default=1.0)]
    pole_mass: Annotated[float, Q("kg", "at the end of the pole", gt=0, default=0.3)]
    distance: Annotated[float, Q("m", "that the cart has moved at the end", default=1.0)]
    track: Annotated[float, Q("m", "maximum distance of the cart from its start", gt=0, default=2.0)]
    max_force: Annotated[float, Q("N", "maximum force on the cart, to both sides", gt=0, default=20.0)]


class SwingUpOutputs(TypedDict):
    """Outputs of the optimal swing-up of one machine."""

    effort: Annotated[float, Q("N^2 s", "integral of the squared force")]
    cost: Annotated[float, Q("N^2 s", "effort + time_weight duration")]
    peak_force: Annotated[float, Q("N", "largest magnitude of the force at the collocation points")]
    error_estimate: Annotated[float, Q("", "of the discretisation, relative to the states")]
    resimulation_error: Annotated[float, Q("", "of a simulation with the same force, relative to the states")]


ARRAYS = {
    "time": Array(("time",), "s", "of the motion"),
    "cart": Array(("time",), "m", "position of the cart"),
    "angle": Array(("time",), "rad", "of the pole, 0 is hanging"),
    "force": Array(("time",), "N", "on the cart"),
}

_SAMPLES = 201


@model("cart_pole", version=1, arrays=ARRAYS)
class CartPole:
    """Swing-up of a pole on a cart from hanging to upright, rest to rest, that minimises the integral of squared force.

    Kelly, SIAM Review 59 (2017) 849, section 6. One evaluation solves one trajectory problem.
    """

    own_options = True

    scheme: Annotated[Literal["hermite_simpson", "radau"], Q("", "of the transcription")] = "hermite_simpson"
    intervals: Annotated[int, Q("", "of the mesh", ge=4)] = 50
    time_weight: Annotated[float, Q("N^2", "of the duration in the cost", ge=0)] = 20.0
    starts: Annotated[int, Q("", "guesses to start from; the best result counts", ge=1, le=100)] = 1

    @cached_property
    def _system(self) -> System:
        return _system()

    def evaluate(
        self, design: Machine, scenario: Task, arrays: Set[str] = frozenset()
    ) -> tuple[SwingUpOutputs, dict[str, Floats]]:
        """Solve for the motion of this machine."""
        options = Options(scheme=self.scheme, intervals=self.intervals, starts=self.starts)
        solution = solve_design(self.trajectory_problem(scenario), cast(Mapping[str, float], design), options)
        motion = solution.phase
        outputs = SwingUpOutputs(
            effort=solution.figures["effort"],
            cost=solution.figures["cost"],
            peak_force=float(np.abs(motion.values["force"]).max()),
            error_estimate=solution.error_estimate,
            resimulation_error=motion.resimulation_error,
        )
        return outputs, _arrays(solution, arrays)

    def trajectory_problem(self, scenario: Mapping[str, Any]) -> TrajectoryProblem:
        """The swing-up as a program."""
        data = filled(Task, scenario)
        force, track = data["max_force"], data["track"]
        phase = Phase(
            self._system,
            tf=(0.1, 20.0),
            name="swing_up",
            bounds={"cart": (-track, track), "force": (-force, force)},
            initial={"cart": 0.0, "angle": 0.0, "cart_speed": 0.0, "angle_speed": 0.0},
            final={"cart": data["distance"], "angle": math.pi, "cart_speed": 0.0, "angle_speed": 0.0},
            integrals={"effort": Integral(lambda v: v["force"] ** 2, unit="N^2 s")},
            data={"cart_mass": data["cart_mass"], "pole_mass": data["pole_mass"]},
        )
        return TrajectoryProblem(
            [phase],
            cost=lambda e: e.integral["effort"],
            constraints={"duration": Constraint(lambda e: e.duration - e["duration"], 0.0, 0.0, "s")},
            guess={"pole_length": 0.5, "duration": 2.0},
            figures={
                "effort": lambda e: e.integral["effort"],
                "cost": lambda e: e.integral["effort"] + self.time_weight * e.duration,
            },
        )


def _arrays(solution: Solution, array_names: Set[str]) -> dict[str, Floats]:
    motion = solution.phase
    time = np.linspace(motion.t0, motion.tf, _SAMPLES)
    return {
        name: time if name == "time" else value
        for name, value in {"time": time, **motion.interpolate(time)}.items()
        if name in array_names
    }


def _system() -> System:
    """(m1 + m2) q1'' + m2 l q2'' cos q2 = u + m2 l q2'^2 sin q2;  q1'' cos q2 + l q2'' + g sin q2 = 0."""
    cart, angle, cart_speed, angle_speed, force = (
        ca.SX.sym(n) for n in ("cart", "angle", "cart_speed", "angle_speed", "force")
    )
    cart_acceleration, angle_acceleration = ca.SX.sym("cart_acceleration"), ca.SX.sym("angle_acceleration")
    m1, m2, length, duration = (ca.SX.sym(n) for n in ("cart_mass", "pole_mass", "pole_length", "duration"))
    along = (
        (m1 + m2) * cart_acceleration
        + m2 * length * angle_acceleration * ca.cos(angle)
        - m2 * length * angle_speed**2 * ca.sin(angle)
        - force
    )
    around = cart_acceleration * ca.cos(angle) + length * angle_acceleration + GRAVITY * ca.sin(angle)
    return System.from_expressions(
        "cart_pole",
        states=[
            (Variable("cart", "m"), cart, cart_speed),
            (Variable("angle", "rad"), angle, angle_speed),
            (Variable("cart_speed", "m/s"), cart_speed, cart_acceleration),
            (Variable("angle_speed", "rad/s"), angle_speed, angle_acceleration),
        ],
        unknowns=[
            (Variable("cart_acceleration", "m/s^2"), cart_acceleration, along),
            (Variable("angle_acceleration", "rad/s^2"), angle_acceleration, around),
        ],
        controls=[(Variable("force", "N"), force)],
        parameters=[
            (Variable("pole_length", "m", 0.01, 10.0), length),
            (Variable("duration", "s", 0.1, 20.0), duration),
        ],
        data=[(Variable("cart_mass", "kg"), m1), (Variable("pole_mass", "kg"), m2)],
    )
