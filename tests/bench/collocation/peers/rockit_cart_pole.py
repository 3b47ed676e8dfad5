"""The cart-pole by rockit: ``python rockit_cart_pole.py N REPEATS [VARIANT]``.

CasADi's functions are expanded to scalar operations, which is the fastest of rockit's ways. Variants: Gauss-Legendre
collocation of degree 2 (order 4), Radau collocation of degree 3 (order 5) and 4 (rockit's default degree, order 7),
multiple shooting with one step of the fourth-order Runge-Kutta method, all with a control linear in the interval; and
Gauss-Legendre collocation of degree 3 (order 6) with a quadratic control, accurate on coarse meshes.
"""

import time
from importlib.metadata import version

import casadi
import rockit
from cart_pole import DURATION, END, FORCE_LIMIT, GUESS, START, TRACK_LIMIT, accelerations
from report import answer, arguments, measured

METHODS = {
    "legendre_2": lambda n: rockit.DirectCollocation(N=n, degree=2, scheme="legendre"),
    "radau_3": lambda n: rockit.DirectCollocation(N=n, degree=3),
    "radau_4": lambda n: rockit.DirectCollocation(N=n, degree=4),
    "rk4": lambda n: rockit.MultipleShooting(N=n, intg="rk"),
    "legendre_3_quadratic": lambda n: rockit.DirectCollocation(N=n, degree=3, scheme="legendre"),
}
ORDERS = {"legendre_2": 4, "radau_3": 5, "radau_4": 7, "rk4": 4, "legendre_3_quadratic": 6}
OPTIONS = {"expand": True, "print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-8}


def problem(intervals: int, variant: str) -> rockit.Ocp:
    ocp = rockit.Ocp(T=DURATION)
    x = {name: ocp.state() for name in START}
    u = ocp.control(order=2 if variant.endswith("quadratic") else 1)
    cart, pole = accelerations(x["q2"], x["v2"], u, casadi.sin, casadi.cos)
    for name, rate in {"q1": x["v1"], "q2": x["v2"], "v1": cart, "v2": pole}.items():
        ocp.set_der(x[name], rate)
        ocp.subject_to(ocp.at_t0(x[name]) == START[name])
        ocp.subject_to(ocp.at_tf(x[name]) == END[name])
        ocp.set_initial(x[name], START[name] + (END[name] - START[name]) * ocp.t / DURATION)
    ocp.subject_to(-FORCE_LIMIT <= (u <= FORCE_LIMIT))  # noqa: SIM300
    ocp.subject_to(-TRACK_LIMIT <= (x["q1"] <= TRACK_LIMIT))  # noqa: SIM300
    ocp.add_objective(ocp.integral(u**2))
    ocp.solver("ipopt", OPTIONS)
    ocp.method(METHODS[variant](intervals))
    return ocp


if __name__ == "__main__":
    intervals, repeats, variant = arguments(tuple(METHODS))
    began = time.perf_counter()
    ocp = problem(intervals, variant)
    build = time.perf_counter() - began
    solutions = []
    seconds = measured(lambda: solutions.append(ocp.solve()), repeats)
    last = solutions[-1]
    answer(
        peer="rockit",
        version=version("rockit-meco"),
        variant=variant,
        scheme="control of the interval linear or quadratic; transcribed in the first solve",
        order=ORDERS[variant],
        intervals=intervals,
        guess=GUESS,
        solver="IPOPT, exact Hessian",
        tolerance=OPTIONS["ipopt.tol"],
        success=last.stats["success"],
        objective=float(last.value(ocp.objective)),
        iterations=last.stats["iter_count"],
        build_seconds=build,
        **seconds,
    )
