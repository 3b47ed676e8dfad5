"""A published problem by opty: ``python opty_problem.py FILE N SECONDS``. The midpoint rule (order 2, its best), C code
of the equations, L-BFGS instead of a Hessian; the objective by the same rule, with CasADi's gradient."""

import tempfile

import casadi
import numpy as np
import sympy
from opty import Problem
from problem_file import answered, arguments
from sympy.physics.mechanics import dynamicsymbols

published, intervals, limit = arguments()
nodes = intervals + 1
# as opty has them
INPUTS, SORTED = sorted(published.controls), sorted(published.parameters)

UNARY = {
    casadi.OP_NEG: lambda a: -a, casadi.OP_SQ: lambda a: a**2, casadi.OP_SQRT: sympy.sqrt, casadi.OP_SIN: sympy.sin,
    casadi.OP_COS: sympy.cos, casadi.OP_TAN: sympy.tan, casadi.OP_EXP: sympy.exp, casadi.OP_LOG: sympy.log,
    casadi.OP_INV: lambda a: 1 / a, casadi.OP_TWICE: lambda a: 2 * a, casadi.OP_FABS: sympy.Abs,
}  # fmt: skip
BINARY = {
    casadi.OP_ADD: lambda a, b: a + b, casadi.OP_SUB: lambda a, b: a - b, casadi.OP_MUL: lambda a, b: a * b,
    casadi.OP_DIV: lambda a, b: a / b, casadi.OP_POW: lambda a, b: a**b, casadi.OP_CONSTPOW: lambda a, b: a**b,
}  # fmt: skip


def in_sympy(function, *arguments):
    """The results of a scalar CasADi function for expressions of SymPy, instruction by instruction."""
    work, results = {}, {}
    for k in range(function.n_instructions()):
        operation, to, operands = (
            function.instruction_id(k),
            function.instruction_output(k),
            function.instruction_input(k),
        )
        if operation == casadi.OP_CONST:
            work[to[0]] = sympy.Float(function.instruction_constant(k))
            if work[to[0]] == int(work[to[0]]):
                work[to[0]] = sympy.Integer(int(work[to[0]]))
        elif operation == casadi.OP_INPUT:
            work[to[0]] = arguments[operands[0]][operands[1]]
        elif operation == casadi.OP_OUTPUT:
            results[to[1]] = work[operands[0]]
        elif operation in UNARY:
            work[to[0]] = UNARY[operation](work[operands[0]])
        else:
            work[to[0]] = BINARY[operation](work[operands[0]], work[operands[1]])
    return [results.get(k, sympy.Integer(0)) for k in range(function.numel_out(0))]


def costs(free):
    """The objective of the vector of unknowns and its gradient, as CasADi functions."""
    trajectories, parameters = (len(published.states) + len(published.controls)) * nodes, len(published.parameters)
    w = casadi.SX.sym("w", trajectories + parameters + int(free))
    p = casadi.vertcat(*(w[trajectories + SORTED.index(n)] for n in published.parameters))
    X = casadi.reshape(w[: len(published.states) * nodes], nodes, len(published.states)).T
    U = casadi.reshape(w[len(published.states) * nodes : trajectories], nodes, len(INPUTS)).T
    U = casadi.vertcat(*(U[INPUTS.index(n), :] for n in published.controls))
    h = w[-1] if free else published.fixed_tf / intervals
    if published.cost == "duration":
        cost = intervals * h
    elif published.cost == "integral":
        middle = (0.5 * (M[:, :-1] + M[:, 1:]) for M in (X, U))
        times = h * (np.arange(intervals) + 0.5)[None]
        cost = h * casadi.sum2(published.integrand.map(intervals)(*middle, casadi.repmat(p, 1, intervals), times))
    else:
        cost = published.final_cost(X[:, -1], U[:, -1], p, h * intervals)
    return casadi.Function("f", [w], [cost]), casadi.Function("g", [w], [casadi.densify(casadi.gradient(cost, w))])


def build():
    t = dynamicsymbols._t
    x = {name: dynamicsymbols(name) for name in published.states}
    u = {name: dynamicsymbols(name) for name in published.controls}
    free = published.fixed_tf is None
    h = sympy.Symbol("interval", real=True) if free else published.fixed_tf / intervals
    p = {name: sympy.Symbol(name) for name in published.parameters}
    clock = sympy.Function("clock")(t)  # the time, as a trajectory that is known
    arguments = list(x.values()), list(u.values()), list(p.values()), [clock]
    rates, rows = in_sympy(published.rates, *arguments), in_sympy(published.path, *arguments)
    last = intervals * h if free else published.fixed_tf
    fixed = [x[n].subs(t, 0 * h if free else 0.0) - v for n, v in published.initial.items() if n in x]
    fixed += [x[n].subs(t, last) - v for n, v in published.final.items() if n in x]
    bounds = {s: published.box(n) for n, s in {**x, **u, **p}.items() if np.isfinite(published.box(n)).any()}
    if free:
        bounds[h] = (published.tf[0] / intervals, published.tf[1] / intervals)
    cost, gradient = costs(free)
    equations = sympy.Matrix([*(s.diff(t) - rate for s, rate in zip(x.values(), rates, strict=True)), *rows])
    assert not (free and published.timed), "a known trajectory of a free time"
    built = Problem(
        lambda w: float(cost(w)),
        lambda w: np.asarray(gradient(w), float).ravel(),
        equations,
        tuple(x.values()),
        nodes,
        h,
        instance_constraints=tuple(fixed),
        time_symbol=t,
        integration_method="midpoint",
        bounds=bounds,
        eom_bounds={len(rates) + k: (0.0, np.inf) for k in range(len(rows))},
        known_trajectory_map={clock: np.linspace(0.0, published.fixed_tf, nodes)} if published.timed else {},
        tmp_dir=tempfile.mkdtemp(),
    )
    for name, value in {"print_level": 0, "sb": "yes", "tol": 1e-8, "max_iter": 3000, "max_cpu_time": limit}.items():
        built.add_option(name, value)
    # opty orders the inputs by itself
    built.order = [n for s in built.collocator.input_trajectories for n, symbol in u.items() if symbol == s]
    built.order += [n for s in built.collocator.unknown_parameters for n, symbol in p.items() if symbol == s]
    return built


def solve(built, guess):
    values = published.at(guess, np.linspace(0.0, 1.0, nodes))
    assert built.order == [*INPUTS, *SORTED], "inputs in another order than the objective has them"
    start = np.concatenate([values[n] for n in (*published.states, *INPUTS)])
    start = np.append(start, [guess["parameters"][n] for n in SORTED])
    if published.fixed_tf is None:
        start = np.append(start, guess["tf"] / intervals)
    _, info = built.solve(start)
    return float(info["obj_val"]) if info["status"] in (0, 1) else None


answered(published, build, solve)
