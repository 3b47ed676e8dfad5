"""Models with equations for the tests of the solver collocation. Loaded as a plugin file, as a user's own would be."""

import sys
from typing import Annotated, TypedDict

from designopt.collocation import Constraint, Integral, Phase, TrajectoryProblem
from designopt.dynamics.system import System, Variable
from designopt.plugin import Quantity, model, objective


class Bar(TypedDict, total=False):
    damping: Annotated[float, Quantity("N s/m", "of the damper", gt=0)]
    stiffness: Annotated[float, Quantity("N/m", "of the spring", gt=0)]
    colour: Annotated[float, Quantity("nm", "of the paint")]


class Load(TypedDict, total=False):
    mass: Annotated[float, Quantity("kg", "", gt=0)]
    start: Annotated[float, Quantity("m", "")]


class Decay(TypedDict):
    error: Annotated[float, Quantity("m^2 s", "integral of the squared position")]
    loss: Annotated[float, Quantity("m^2/s", "integral of the squared speed")]
    peak: Annotated[float, Quantity("m", "largest position")]


@model("damped_start", version=1)
class DampedStart:
    """A mass on a spring and a damper, let go at rest: m x'' = -k x - c x'. Evaluated by its closed form.

    The integrals to infinity are int x^2 = (c^2 + k m) x0^2/(2 c k) and int x'^2 = k x0^2/(2 c), by d/dt of the energy.
    """

    duration: float = 60.0
    bias: float = 1.0
    released: float | None = None
    any_stiffness: bool = False

    def evaluate(self, design: Bar, scenario: Load) -> Decay:
        c, k = design["damping"], design.get("stiffness", 1.0)
        m, start = scenario.get("mass", 1.0), scenario.get("start", 1.0)
        return {
            "error": self.bias * (c**2 + k * m) * start**2 / (2.0 * c * k),
            "loss": k * start**2 / (2.0 * c),
            "peak": abs(start),
        }

    def trajectory_problem(self, scenario):
        import casadi as ca

        x, v, c, k, m = (ca.SX.sym(n) for n in ("x", "v", "c", "k", "m"))
        system = System.from_expressions(
            "damped_start",
            states=[(Variable("position", "m"), x, v), (Variable("speed", "m/s"), v, -(k * x + c * v) / m)],
            parameters=[(Variable("damping", "N s/m", 0.0), c), (Variable("stiffness", "N/m", 0.0), k)],
            data=[(Variable("mass", "kg"), m)],
        )
        phase = Phase(
            system,
            tf=self.duration,
            name="decay",
            initial={"position": scenario.get("start", 1.0), "speed": 0.0},
            integrals={"error": Integral(lambda s: s["position"] ** 2), "loss": Integral(lambda s: s["speed"] ** 2)},
            data={"mass": scenario.get("mass", 1.0)},
        )
        return TrajectoryProblem(
            [phase],
            cost=lambda e: e.integral["error"],
            constraints={} if self.released is None else {"released": Constraint(lambda e: e.t0, high=self.released)},
            parameters={"stiffness": (0.5, 8.0) if self.any_stiffness else 1.0},
            guess={"damping": 2.0},
            figures={"error": lambda e: e.integral["error"], "loss": lambda e: e.integral["loss"]},
        )


@model("two_units", version=1)
class TwoUnits(DampedStart):
    """Its trajectory problem has the damping in another unit than its designs."""

    def evaluate(self, design: Bar, scenario: Load) -> Decay:
        return super().evaluate(design, scenario)

    def trajectory_problem(self, scenario):
        import dataclasses

        problem = super().trajectory_problem(scenario)
        (phase,) = problem.phases
        parameters = (Variable("damping", "kN s/m"), phase.system.parameters[1])
        system = dataclasses.replace(phase.system, parameters=parameters)
        return dataclasses.replace(problem, phases=[dataclasses.replace(phase, system=system)])


@model("braked", version=1)
class Braked(DampedStart):
    """Its trajectory problem has a parameter that no system has: the colour, which costs its square distance to 500."""

    def evaluate(self, design: Bar, scenario: Load) -> Decay:
        problem = super().evaluate(design, scenario)
        return {**problem, "loss": problem["loss"] + (design["colour"] - 500.0) ** 2}

    def trajectory_problem(self, scenario):
        import dataclasses

        problem = super().trajectory_problem(scenario)
        figures = {**problem.figures, "loss": lambda e: e.integral["loss"] + (e["colour"] - 500.0) ** 2}
        return dataclasses.replace(problem, figures=figures, extra=(Variable("colour", "nm", 0.0, 1000.0),))


@model("pushed", version=1)
class Pushed(DampedStart):
    """Its trajectory problem has a control: a force, whose square is a part of the error."""

    def trajectory_problem(self, scenario):
        import dataclasses

        import casadi as ca

        problem = super().trajectory_problem(scenario)
        (phase,) = problem.phases
        x, v, c, k, m, force = (ca.SX.sym(n) for n in ("x", "v", "c", "k", "m", "force"))
        system = System.from_expressions(
            "pushed",
            states=[(Variable("position", "m"), x, v), (Variable("speed", "m/s"), v, (force - k * x - c * v) / m)],
            controls=[(Variable("force", "N", -1.0, 1.0), force)],
            parameters=[(Variable("damping", "N s/m", 0.0), c), (Variable("stiffness", "N/m", 0.0), k)],
            data=[(Variable("mass", "kg"), m)],
        )
        error = Integral(lambda s: s["position"] ** 2 + s["force"] ** 2)
        return dataclasses.replace(
            problem, phases=[dataclasses.replace(phase, system=system, integrals={**phase.integrals, "error": error})]
        )


@model("no_equations", version=1)
def no_equations(design: Bar, scenario: Load) -> Decay:
    return {"error": design["damping"], "loss": 0.0, "peak": 0.0}


@objective("heat_share", version=1)
def heat_share(loss, error) -> Annotated[float, Quantity("1/s^2", "loss by error")]:
    return loss / error


@model("stray", version=1)
class Stray(DampedStart):
    """Its trajectory problem is none."""

    ends: bool = False

    def trajectory_problem(self, scenario):
        if self.ends:
            sys.exit(3)
