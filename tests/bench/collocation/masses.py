"""A row of masses between walls with hardening springs and a force on each end: any number of states."""

import casadi as ca

from designopt.collocation import Integral, Phase, TrajectoryProblem
from designopt.dynamics.system import System, Variable


def row_of_masses(masses: int) -> TrajectoryProblem:
    """Come to rest from a stretched row in 10 s: 2 `masses` states, two forces of at most 2."""
    names = [f"y{i}" for i in range(masses)] + [f"v{i}" for i in range(masses)]
    x, u, t = ca.SX.sym("x", 2 * masses), ca.SX.sym("u", 2), ca.SX.sym("t")
    z, p, q = (ca.SX.sym(name, 0) for name in "zpq")
    y, v = x[:masses], x[masses:]
    stretched = ca.vertcat(y[0], y[1:] - y[:-1], -y[-1])
    force = stretched + 0.3 * stretched**3
    rates = force[1:] - force[:-1] - 0.05 * v
    rates[0] += u[0]
    rates[masses - 1] += u[1]
    system = System(
        name="masses",
        states=tuple(Variable(name, "") for name in names),
        controls=(Variable("left", "", low=-2.0, high=2.0), Variable("right", "", low=-2.0, high=2.0)),
        parameters=(),
        rhs=ca.Function("rhs", [x, u, z, p, q, t], [ca.vertcat(v, rates)], list("xuzpqt"), ["xdot"]),
    )
    squares = Integral(lambda s: s["left"] ** 2 + s["right"] ** 2 + sum(s[name] ** 2 for name in names))
    start = {name: 0.5 if name.startswith("y") else 0.0 for name in names}
    phase = Phase(system, tf=10.0, initial=start, integrals={"squares": squares})
    return TrajectoryProblem([phase], cost=lambda e: e.integral["squares"])
