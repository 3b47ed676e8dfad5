"""A model with a control for the tests of rates and held controls, loaded as a plugin file."""

from typing import Annotated, TypedDict

import casadi as ca

from designopt.collocation import Constraint, Integral, Phase, TrajectoryProblem, solve_design
from designopt.dynamics.system import System, Variable
from designopt.plugin import Quantity, model


class Move(TypedDict):
    duration: Annotated[float, Quantity("s", "of the move", gt=0)]


class Load(TypedDict, total=False):
    mass: Annotated[float, Quantity("kg", "of the block", gt=0)]


class Spent(TypedDict):
    effort: Annotated[float, Quantity("N^2 s", "integral of the squared force")]
    time: Annotated[float, Quantity("s", "of the move")]


@model("moved_block", version=1)
class MovedBlock:
    """A block is moved by 1 m from rest to rest; the force is zero at both ends if it `begins_slack`."""

    begins_slack: bool = False

    def trajectory_problem(self, scenario):
        x, v, u, T, m = (ca.SX.sym(n) for n in ("x", "v", "u", "T", "m"))
        system = System.from_expressions(
            "block",
            states=[(Variable("position", "m"), x, v), (Variable("speed", "m/s"), v, u / m)],
            controls=[(Variable("force", "N", -100.0, 100.0), u)],
            parameters=[(Variable("duration", "s", 0.1, 20.0), T)],
            data=[(Variable("mass", "kg"), m)],
        )
        slack = {"force": 0.0} if self.begins_slack else {}
        move = Phase(
            system,
            tf=(0.1, 20.0),
            initial={"position": 0.0, "speed": 0.0, **slack},
            final={"position": 1.0, "speed": 0.0, **slack},
            integrals={"effort": Integral(lambda s: s["force"] ** 2)},
            data={"mass": scenario.get("mass", 1.0)},
        )
        return TrajectoryProblem(
            [move],
            cost=lambda e: e.integral["effort"],
            constraints={"duration": Constraint(lambda e: e.duration - e["duration"], 0.0, 0.0)},
            figures={"effort": lambda e: e.integral["effort"], "time": lambda e: e.duration},
        )

    def evaluate(self, design: Move, scenario: Load) -> Spent:
        solution = solve_design(self.trajectory_problem(scenario), design)
        return {"effort": solution.figures["effort"], "time": solution.figures["time"]}
