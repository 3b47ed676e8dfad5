"""One solver on the frames of a sharing problem, in a separate process: ``python peer.py NAME PROBLEM.npz``.

The problem holds `matrix` (n, m, v), `needed` (n, m), `lower` and `upper` (v,), the exponent `p` and the `blocks`
(m + v) of rows and variables; it is ``min sum |x|^p`` subject to ``matrix x = needed`` and the bounds. Prints one line
of JSON: frames per second of processor time, the loop in Python included, and the largest distance of the answers from
`reference` (n, v).
"""

from __future__ import annotations

import ctypes
import json
import sys
import time

import numpy as np

INFINITE = 1e30


def daqp(matrix, needed, lower, upper, p):
    """DAQP: a dual active-set method (Arnstrom et al. 2022)."""
    from daqp import solve

    n, m, v = matrix.shape
    hessian, linear = 2.0 * np.eye(v), np.zeros(v)
    sense = np.zeros(v + m, dtype=ctypes.c_int)
    sense[v:] = 5  # equality
    low, up = np.append(np.maximum(lower, -INFINITE), np.zeros(m)), np.append(np.minimum(upper, INFINITE), np.zeros(m))
    x = np.empty((n, v))
    for i in range(n):
        low[v:] = up[v:] = needed[i]
        x[i] = solve(hessian, linear, np.ascontiguousarray(matrix[i]), up, low, sense)[0]
    return x


def daqp_update(matrix, needed, lower, upper, p):
    """DAQP with one model, whose matrix and right side change from frame to frame."""
    from daqp import Model

    n, m, v = matrix.shape
    sense = np.zeros(v + m, dtype=ctypes.c_int)
    sense[v:] = 5  # equality
    low = np.append(np.maximum(lower, -INFINITE), needed[0])
    up = np.append(np.minimum(upper, INFINITE), needed[0])
    model = Model()
    model.setup(2.0 * np.eye(v), np.zeros(v), np.ascontiguousarray(matrix[0]), up, low, sense)
    x = np.empty((n, v))
    for i in range(n):
        low[v:] = up[v:] = needed[i]
        if i:
            model.update(None, None, np.ascontiguousarray(matrix[i]), up, low)
        x[i] = model.solve()[0]
    return x


def quadprog(matrix, needed, lower, upper, p):
    """quadprog: the dual method of Goldfarb and Idnani."""
    from quadprog import solve_qp

    n, m, v = matrix.shape
    below, above = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
    bounds = np.concatenate([np.eye(v)[:, below], -np.eye(v)[:, above]], axis=1)
    right = np.concatenate([lower[below], -upper[above]])
    hessian, linear = 2.0 * np.eye(v), np.zeros(v)
    x = np.empty((n, v))
    for i in range(n):
        x[i] = solve_qp(hessian, linear, np.concatenate([matrix[i].T, bounds], axis=1), np.append(needed[i], right), m)[
            0
        ]
    return x


def piqp(matrix, needed, lower, upper, p):
    """PIQP: a proximal interior-point method."""
    import piqp as package

    n, _, v = matrix.shape
    solver = package.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    x = np.empty((n, v))
    for i in range(n):
        arguments = {"A": matrix[i], "b": needed[i]}
        if i:
            solver.update(**arguments)
        else:
            solver.setup(2.0 * np.eye(v), np.zeros(v), x_l=lower, x_u=upper, **arguments)
        solver.solve()
        x[i] = solver.result.x
    return x


def proxsuite(matrix, needed, lower, upper, p):
    """ProxSuite's dense ProxQP with its equilibration, warm from the frame before."""
    from proxsuite import proxqp

    n, m, v = matrix.shape
    qp = proxqp.dense.QP(v, m, 0, True, proxqp.dense.HessianType.Diagonal)
    qp.settings.eps_abs = 1e-10
    qp.settings.initial_guess = proxqp.InitialGuess.WARM_START_WITH_PREVIOUS_RESULT
    bounds = {"l_box": np.maximum(lower, -INFINITE), "u_box": np.minimum(upper, INFINITE)}
    hessian, linear = 2.0 * np.eye(v), np.zeros(v)
    x = np.empty((n, v))
    for i in range(n):
        frame = {"A": np.ascontiguousarray(matrix[i]), "b": needed[i]}
        if i:
            qp.update(**frame)
        else:
            qp.init(hessian, linear, frame["A"], frame["b"], None, None, None, bounds["l_box"], bounds["u_box"])
        qp.solve()
        x[i] = qp.results.x
    return x


def slsqp(matrix, needed, lower, upper, p):
    """SciPy's SLSQP with analytic derivatives, from the frame before."""
    from scipy.optimize import minimize

    n, _, v = matrix.shape
    bounds = list(
        zip(np.where(np.isfinite(lower), lower, None), np.where(np.isfinite(upper), upper, None), strict=True)
    )
    x = np.empty((n, v))
    at = np.where(np.isfinite(lower), 0.1, 0.0)
    for i in range(n):
        equal = {"type": "eq", "fun": lambda a, i=i: matrix[i] @ a - needed[i], "jac": lambda a, i=i: matrix[i]}
        optimum = minimize(
            lambda a: (np.sum(np.abs(a) ** p), p * np.abs(a) ** (p - 1) * np.sign(a)), at, jac=True, method="SLSQP",
            bounds=bounds, constraints=[equal], options={"ftol": 1e-12, "maxiter": 300},
        )  # fmt: skip
        at = x[i] = optimum.x
    return x


def ipopt(matrix, needed, lower, upper, p):
    """CasADi with IPOPT, one function of the frame as parameters, from the frame before."""
    import casadi as ca

    n, m, v = matrix.shape
    x, a, b = ca.SX.sym("x", v), ca.SX.sym("a", m, v), ca.SX.sym("b", m)
    program = {"x": x, "p": ca.veccat(a, b), "f": ca.sum1(ca.fabs(x) ** p), "g": a @ x - b}
    options = {"print_time": False, "ipopt": {"print_level": 0, "tol": 1e-9, "sb": "yes"}}
    solver = ca.nlpsol("share", "ipopt", program, options)
    solutions = np.empty((n, v))
    at = np.where(np.isfinite(lower), 0.1, 1e-3)
    for i in range(n):
        parameters = np.append(matrix[i].T.ravel(), needed[i])
        at = solutions[i] = np.asarray(solver(x0=at, p=parameters, lbx=lower, ubx=upper, lbg=0, ubg=0)["x"]).ravel()
    return solutions


def main(name: str, path: str) -> None:
    problem = np.load(path)
    solvers = (daqp, daqp_update, quadprog, piqp, proxsuite, slsqp, ipopt)
    solver = {function.__name__: function for function in solvers}[name.removesuffix("_blocks")]
    matrix, needed, lower, upper, blocks = (problem[k] for k in ("matrix", "needed", "lower", "upper", "blocks"))
    m, p = needed.shape[1], float(problem["p"])
    groups = np.unique(blocks) if name.endswith("blocks") else [None]
    parts = []
    for group in groups:
        rows = np.arange(m) if group is None else np.flatnonzero(blocks[:m] == group)
        columns = np.arange(len(lower)) if group is None else np.flatnonzero(blocks[m:] == group)
        part = np.ascontiguousarray(matrix[:, rows][:, :, columns]), np.ascontiguousarray(needed[:, rows])
        parts.append((columns, (*part, lower[columns], upper[columns], p)))
        solver(part[0][:2], part[1][:2], *parts[-1][1][2:])
    x = np.empty((len(needed), len(lower)))
    began = time.process_time()
    for columns, arguments in parts:
        x[:, columns] = solver(*arguments)
    seconds = time.process_time() - began
    error = float(np.abs(x - problem["reference"]).max())
    print(json.dumps({"frames_per_second": len(needed) / seconds, "error": error}))


if __name__ == "__main__":
    main(*sys.argv[1:])
