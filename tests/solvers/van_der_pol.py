"""Van der Pol's oscillator with a bounded state, an optimal-control problem of the literature, as a plugin file."""

from typing import Annotated, TypedDict

import casadi as ca

from designopt.collocation import Constraint, Integral, Phase, TrajectoryProblem, solve_design
from designopt.dynamics.system import System, Variable
from designopt.plugin import Quantity, model


class Start(TypedDict):
    displacement: Annotated[float, Quantity("", "at the start")]


class Task(TypedDict, total=False):
    pass


class Cost(TypedDict):
    J: Annotated[float, Quantity("", "integral of x1^2 + x2^2 + u^2")]


@model("van_der_pol", version=1)
class VanDerPol:
    """x1 >= -0.25, |u| <= 1, 10 s from (0, displacement); `evaluate` has no mesh of its own."""

    def trajectory_problem(self, scenario):
        x1, x2, u = (ca.SX.sym(name) for name in ("x1", "x2", "u"))
        system = System.from_expressions(
            "oscillator",
            states=[(Variable("x1", "", -0.25, 10.0), x1, (1 - x2**2) * x1 - x2 + u), (Variable("x2", ""), x2, x1)],
            controls=[(Variable("u", "", -1.0, 1.0), u)],
            parameters=[(Variable("displacement", "", 0.0, 2.0), ca.SX.sym("displacement"))],
        )
        return TrajectoryProblem(
            [
                Phase(
                    system,
                    tf=10.0,
                    initial={"x1": 0.0},
                    integrals={"J": Integral(lambda v: v["x1"] ** 2 + v["x2"] ** 2 + v["u"] ** 2)},
                )
            ],
            cost=lambda e: e.integral["J"],
            constraints={"start": Constraint(lambda e: e.initial["x2"] - e["displacement"], 0.0, 0.0)},
            figures={"J": lambda e: e.integral["J"]},
        )

    def evaluate(self, design: Start, scenario: Task) -> Cost:
        return {"J": solve_design(self.trajectory_problem(scenario), design).figures["J"]}
