"""The cart-pole by designopt, measured as Moco's is: ``python designopt_cart_pole.py N REPEATS``.

The scheme is Moco's: Hermite-Simpson with the control linear in the interval.
"""

import time
from importlib.metadata import version

import casadi as ca
from cart_pole import DURATION, END, FORCE_LIMIT, GUESS, START, TRACK_LIMIT, accelerations
from report import answer, arguments, measured

from designopt.collocation import Integral, Options, Phase, Program, TrajectoryProblem
from designopt.dynamics.system import System, Variable


def problem() -> TrajectoryProblem:
    """The swing-up, with states and control named as in `cart_pole`."""
    x = {name: ca.SX.sym(name) for name in START}
    u = ca.SX.sym("u")
    cart, pole = accelerations(x["q2"], x["v2"], u, ca.sin, ca.cos)
    rates = {"q1": x["v1"], "q2": x["v2"], "v1": cart, "v2": pole}
    system = System.from_expressions(
        "cart_pole",
        states=[(Variable(name, ""), x[name], rates[name]) for name in START],
        controls=[(Variable("u", "N", -FORCE_LIMIT, FORCE_LIMIT), u)],
    )
    phase = Phase(
        system,
        tf=DURATION,
        bounds={"q1": (-TRACK_LIMIT, TRACK_LIMIT)},
        initial=START,
        final=END,
        integrals={"effort": Integral(lambda v: v["u"] ** 2)},
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])


if __name__ == "__main__":
    intervals, repeats, variant = arguments(("hermite_simpson",))
    stated = problem()
    Program(
        stated, Options(midpoint_control="linear", intervals=2)
    )  # what is imported on first use is no part of building
    began = time.perf_counter()
    program = Program(stated, Options(midpoint_control="linear", intervals=intervals))
    build = time.perf_counter() - began
    solutions = []
    seconds = measured(lambda: solutions.append(program.solve()), repeats)
    last = solutions[-1]
    answer(
        peer="designopt",
        version=version("designopt"),
        variant=variant,
        scheme="hermite_simpson",
        order=4,
        intervals=intervals,
        guess=GUESS,
        solver="IPOPT, exact Hessian",
        tolerance=program.options.tolerance,
        success=last.success,
        objective=last.objective,
        iterations=last.iterations,
        build_seconds=build,
        **seconds,
    )
