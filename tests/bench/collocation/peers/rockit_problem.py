"""A published problem by rockit: ``python rockit_problem.py FILE N SECONDS``.

Gauss-Legendre collocation of degree 2 with a control linear in the interval (order 4), exact Hessian, functions
expanded: its fastest way to that accuracy on the cart-pole.
"""

import casadi
import numpy as np
import rockit
from problem_file import answered, arguments

given, intervals, limit = arguments()


def build():
    free = given.fixed_tf is None
    ocp = rockit.Ocp(T=rockit.FreeTime(given.guesses[0]["tf"]) if free else given.fixed_tf)
    x = {name: ocp.state() for name in given.states}
    u = {name: ocp.control(order=1) for name in given.controls}
    p = {name: ocp.variable() for name in given.parameters}
    variables = [casadi.vertcat(*table.values()) for table in (x, u, p)]

    def of(function):
        return function(*variables, ocp.t if function.name() in given.timed else 0.0)  # without a need no time

    for name, rate in zip(x, casadi.vertsplit(of(given.rates)), strict=True):
        ocp.set_der(x[name], rate)
    for name, symbol in {**x, **u, **p}.items():
        low, high = given.box(name)
        if np.isfinite(low):
            ocp.subject_to(symbol >= low)
        if np.isfinite(high):
            ocp.subject_to(symbol <= high)
        if name in given.initial and name in x:
            ocp.subject_to(ocp.at_t0(symbol) == given.initial[name])
        if name in given.final and name in x:
            ocp.subject_to(ocp.at_tf(symbol) == given.final[name])
    for row in casadi.vertsplit(of(given.path)):
        ocp.subject_to(row >= 0.0)
    if free:
        ocp.subject_to(ocp.T >= given.tf[0])  # noqa: SIM300
        ocp.subject_to(ocp.T <= given.tf[1])  # noqa: SIM300
    costs = {
        "integral": lambda: ocp.integral(of(given.integrand)),
        "duration": lambda: ocp.T,
        "final": lambda: ocp.at_tf(of(given.final_cost)),
    }
    ocp.add_objective(costs[given.cost]())
    settings = {"ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-8, "ipopt.max_cpu_time": limit}
    ocp.solver("ipopt", {"expand": True, "print_time": False, **settings})
    ocp.method(rockit.DirectCollocation(N=intervals, degree=2, scheme="legendre"))
    return ocp, {**x, **u}, p


def solve(built, guess):
    ocp, symbols, parameters = built
    fractions = np.linspace(0.0, 1.0, 2 * intervals + 1)
    values = given.at(guess, fractions)
    for name, symbol in symbols.items():  # an expression of time: arrays of the states are not taken by 0.6.7
        trajectory = casadi.interpolant("guess", "linear", [guess["tf"] * fractions], values[name])
        ocp.set_initial(symbol, trajectory(ocp.t))
    for name, symbol in parameters.items():
        ocp.set_initial(symbol, guess["parameters"][name])
    if given.fixed_tf is None:
        ocp.set_initial(ocp.T, guess["tf"])
    found = ocp.solve()
    return float(found.value(ocp.objective))


answered(given, build, solve)
