"""A published problem by rockit: ``python rockit_problem.py FILE N SECONDS``.

Gauss-Legendre collocation of degree 2 with a control linear in the interval (order 4), exact Hessian, functions
expanded: its fastest way to that accuracy on the cart-pole.
"""

import casadi
import numpy as np
import rockit
from problem_file import answered, arguments

published, intervals, limit = arguments()


def build():
    free = published.fixed_tf is None
    ocp = rockit.Ocp(T=rockit.FreeTime(published.guesses[0]["tf"]) if free else published.fixed_tf)
    x = {name: ocp.state() for name in published.states}
    u = {name: ocp.control(order=1) for name in published.controls}
    p = {name: ocp.variable() for name in published.parameters}
    variables = [casadi.vertcat(*table.values()) for table in (x, u, p)]

    def applied(function):
        return function(*variables, ocp.t if function.name() in published.timed else 0.0)  # without a need no time

    for name, rate in zip(x, casadi.vertsplit(applied(published.rates)), strict=True):
        ocp.set_der(x[name], rate)
    for name, symbol in {**x, **u, **p}.items():
        low, high = published.box(name)
        if np.isfinite(low):
            ocp.subject_to(symbol >= low)
        if np.isfinite(high):
            ocp.subject_to(symbol <= high)
        if name in published.initial and name in x:
            ocp.subject_to(ocp.at_t0(symbol) == published.initial[name])
        if name in published.final and name in x:
            ocp.subject_to(ocp.at_tf(symbol) == published.final[name])
    for row in casadi.vertsplit(applied(published.path)):
        ocp.subject_to(row >= 0.0)
    if free:
        ocp.subject_to(ocp.T >= published.tf[0])  # noqa: SIM300
        ocp.subject_to(ocp.T <= published.tf[1])  # noqa: SIM300
    costs = {
        "integral": lambda: ocp.integral(applied(published.integrand)),
        "duration": lambda: ocp.T,
        "final": lambda: ocp.at_tf(applied(published.final_cost)),
    }
    ocp.add_objective(costs[published.cost]())
    settings = {"ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-8, "ipopt.max_cpu_time": limit}
    ocp.solver("ipopt", {"expand": True, "print_time": False, **settings})
    ocp.method(rockit.DirectCollocation(N=intervals, degree=2, scheme="legendre"))
    return ocp, {**x, **u}, p


def solve(built, guess):
    ocp, symbols, parameters = built
    fractions = np.linspace(0.0, 1.0, 2 * intervals + 1)
    values = published.at(guess, fractions)
    for name, symbol in symbols.items():  # an expression of time: arrays of the states are not taken by 0.6.7
        trajectory = casadi.interpolant("guess", "linear", [guess["tf"] * fractions], values[name])
        ocp.set_initial(symbol, trajectory(ocp.t))
    for name, symbol in parameters.items():
        ocp.set_initial(symbol, guess["parameters"][name])
    if published.fixed_tf is None:
        ocp.set_initial(ocp.T, guess["tf"])
    solution = ocp.solve()
    return float(solution.value(ocp.objective))


answered(published, build, solve)
