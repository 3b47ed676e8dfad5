"""The cart-pole by opty: ``python opty_cart_pole.py N REPEATS [VARIANT]``.

opty has two schemes: the midpoint rule (order 2, the default here) and backward Euler (order 1), and no Hessian, so
IPOPT approximates it by L-BFGS. Constraints and Jacobian are C code that opty generates and compiles while it builds;
the objective and its gradient come from opty too, by the rule of the scheme.
"""

import tempfile
import time
from importlib.metadata import version

import numpy as np
import sympy
from cart_pole import DURATION, END, FORCE_LIMIT, GUESS, START, TRACK_LIMIT, accelerations
from opty import Problem, create_objective_function
from report import answer, arguments, measured
from sympy.physics.mechanics import dynamicsymbols

METHODS = {"midpoint": "midpoint", "backward_euler": "backward euler"}
ORDERS = {"midpoint": 2, "backward_euler": 1}
TOLERANCE = 1e-8


def problem(intervals: int, variant: str, folder: str) -> Problem:
    t = dynamicsymbols._t
    x = {name: dynamicsymbols(name) for name in START}
    u = dynamicsymbols("u")
    cart, pole = accelerations(x["q2"], x["v2"], u, sympy.sin, sympy.cos)
    rates = {"q1": x["v1"], "q2": x["v2"], "v1": cart, "v2": pole}
    states, nodes, step = tuple(x.values()), intervals + 1, DURATION / intervals
    objective, gradient = create_objective_function(
        sympy.Integral(u**2, t), states, (u,), (), nodes, step, METHODS[variant], time_symbol=t
    )
    ends = [x[name].subs(t, 0.0) - START[name] for name in x]
    ends += [x[name].subs(t, DURATION) - END[name] for name in x]
    built = Problem(
        objective,
        gradient,
        sympy.Matrix([x[name].diff(t) - rates[name] for name in x]),
        states,
        nodes,
        step,
        instance_constraints=ends,
        time_symbol=t,
        integration_method=METHODS[variant],
        bounds={u: (-FORCE_LIMIT, FORCE_LIMIT), x["q1"]: (-TRACK_LIMIT, TRACK_LIMIT)},
        tmp_dir=folder,
    )
    for name, value in {"print_level": 0, "sb": "yes", "tol": TOLERANCE}.items():
        built.add_option(name, value)
    return built


if __name__ == "__main__":
    intervals, repeats, variant = arguments(tuple(METHODS))
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        built = problem(intervals, variant, folder)
        build = time.perf_counter() - began
    share = np.linspace(0.0, 1.0, intervals + 1)
    guess = np.concatenate([START[n] + (END[n] - START[n]) * share for n in START] + [0.0 * share])
    answers = []
    seconds = measured(lambda: answers.append(built.solve(guess)[1]), repeats)
    answer(
        peer="opty",
        version=version("opty"),
        variant=variant,
        scheme="variables at the nodes",
        order=ORDERS[variant],
        intervals=intervals,
        guess=GUESS,
        solver="IPOPT, L-BFGS",
        tolerance=TOLERANCE,
        success=answers[-1]["status"] == 0,
        objective=float(answers[-1]["obj_val"]),
        iterations=len(built.obj_value) // (repeats + 1) - 1,
        build_seconds=build,
        **seconds,
    )
