"""A published problem by opty: ``python opty_problem.py FILE N SECONDS``. The midpoint rule (order 2, its best), C code
of the equations, L-BFGS instead of a Hessian; the objective by the same rule, with CasADi's gradient."""

import tempfile

import casadi
import numpy as np
import sympy
from opty import Problem
from problem_file import answered, arguments
from sympy.physics.mechanics import dynamicsymbols

given, intervals, limit = arguments()
nodes = intervals + 1
# as opty has them
INPUTS, SORTED = sorted(given.controls), sorted(given.parameters)

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
        operation, to, of = function.instruction_id(k), function.instruction_output(k), function.instruction_input(k)
        if operation == casadi.OP_CONST:
            work[to[0]] = sympy.Float(function.instruction_constant(k))
            if work[to[0]] == int(work[to[0]]):
                work[to[0]] = sympy.Integer(int(work[to[0]]))
        elif operation == casadi.OP_INPUT:
            work[to[0]] = arguments[of[0]][of[1]]
        elif operation == casadi.OP_OUTPUT:
            results[to[1]] = work[of[0]]
        elif operation in UNARY:
            work[to[0]] = UNARY[operation](work[of[0]])
        else:
            work[to[0]] = BINARY[operation](work[of[0]], work[of[1]])
    return [results.get(k, sympy.Integer(0)) for k in range(function.numel_out(0))]


def costs(free):
    """The objective of the vector of unknowns and its gradient, as CasADi functions."""
    trajectories, parameters = (len(given.states) + len(given.controls)) * nodes, len(given.parameters)
    w = casadi.SX.sym("w", trajectories + parameters + int(free))
    p = casadi.vertcat(*(w[trajectories + SORTED.index(n)] for n in given.parameters))
    X = casadi.reshape(w[: len(given.states) * nodes], nodes, len(given.states)).T
    U = casadi.reshape(w[len(given.states) * nodes : trajectories], nodes, len(INPUTS)).T
    U = casadi.vertcat(*(U[INPUTS.index(n), :] for n in given.controls))
    h = w[-1] if free else given.fixed_tf / intervals
    if given.cost == "duration":
        cost = intervals * h
    elif given.cost == "integral":
        middle = (0.5 * (M[:, :-1] + M[:, 1:]) for M in (X, U))
        times = h * (np.arange(intervals) + 0.5)[None]
        cost = h * casadi.sum2(given.integrand.map(intervals)(*middle, casadi.repmat(p, 1, intervals), times))
    else:
        cost = given.final_cost(X[:, -1], U[:, -1], p, h * intervals)
    return casadi.Function("f", [w], [cost]), casadi.Function("g", [w], [casadi.densify(casadi.gradient(cost, w))])


def build():
    t = dynamicsymbols._t
    x = {name: dynamicsymbols(name) for name in given.states}
    u = {name: dynamicsymbols(name) for name in given.controls}
    free = given.fixed_tf is None
    h = sympy.Symbol("interval", real=True) if free else given.fixed_tf / intervals
    p = {name: sympy.Symbol(name) for name in given.parameters}
    clock = sympy.Function("clock")(t)  # the time, as a trajectory that is known
    arguments = list(x.values()), list(u.values()), list(p.values()), [clock]
    rates, rows = in_sympy(given.rates, *arguments), in_sympy(given.path, *arguments)
    last = intervals * h if free else given.fixed_tf
    fixed = [x[n].subs(t, 0 * h if free else 0.0) - v for n, v in given.initial.items() if n in x]
    fixed += [x[n].subs(t, last) - v for n, v in given.final.items() if n in x]
    bounds = {s: given.box(n) for n, s in {**x, **u, **p}.items() if np.isfinite(given.box(n)).any()}
    if free:
        bounds[h] = (given.tf[0] / intervals, given.tf[1] / intervals)
    cost, gradient = costs(free)
    equations = sympy.Matrix([*(s.diff(t) - rate for s, rate in zip(x.values(), rates, strict=True)), *rows])
    assert not (free and given.timed), "a known trajectory of a free time"
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
        known_trajectory_map={clock: np.linspace(0.0, given.fixed_tf, nodes)} if given.timed else {},
        tmp_dir=tempfile.mkdtemp(),
    )
    for name, value in {"print_level": 0, "sb": "yes", "tol": 1e-8, "max_iter": 3000, "max_cpu_time": limit}.items():
        built.add_option(name, value)
    # opty orders the inputs by itself
    built.order = [n for s in built.collocator.input_trajectories for n, own in u.items() if own == s]
    built.order += [n for s in built.collocator.unknown_parameters for n, own in p.items() if own == s]
    return built


def solve(built, guess):
    values = given.at(guess, np.linspace(0.0, 1.0, nodes))
    assert built.order == [*INPUTS, *SORTED], "inputs in another order than the objective has them"
    start = np.concatenate([values[n] for n in (*given.states, *INPUTS)])
    start = np.append(start, [guess["parameters"][n] for n in SORTED])
    if given.fixed_tf is None:
        start = np.append(start, guess["tf"] / intervals)
    _, told = built.solve(start)
    return float(told["obj_val"]) if told["status"] in (0, 1) else None


answered(given, build, solve)
