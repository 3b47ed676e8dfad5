"""Compiled Rosenbrock integration against SciPy's stiff solvers: the same problem at the same accuracy, in one process.

Each solver gets the loosest of its tolerances that brings the error below the one wanted; then it is timed. SciPy's
solvers are given the plain-array right-hand side and the exact Jacobian, as a user would write them.
"""

import statistics
import time

import casadi as ca
import numpy as np
import pytest

from designopt.dynamics import Simulator, System, Variable
from designopt.dynamics.compile import find_compiler

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(find_compiler() is None, reason="no C compiler: Rosenbrock methods run compiled only"),
]

EPS = 1e-6
START, END = [2.0, 0.0], 2.0
#: VDPOL, Hairer & Wanner (1996), at t = 2.
REFERENCE = np.array([1.706167732170456, -0.8928097010248257])
WANTED = 1e-5
TOLERANCES = np.logspace(-3, -10, 15)


def van_der_pol():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    return System.from_expressions(
        "van_der_pol",
        states=[(Variable("x", ""), x, y), (Variable("y", ""), y, ((1 - x**2) * y - x) / EPS)],
    )


def ours(method):
    system = van_der_pol()

    def prepare(tolerance):
        simulator = Simulator(system, method, rtol=tolerance, atol=tolerance, compiled=True)
        return lambda: simulator.run(START, [0.0, END]).x[-1]

    return prepare


def scipys(method):
    from scipy.integrate import solve_ivp

    def rates(t, x):
        return np.array([x[1], ((1 - x[0] ** 2) * x[1] - x[0]) / EPS])

    def jacobian(t, x):
        return np.array([[0.0, 1.0], [(-2 * x[0] * x[1] - 1) / EPS, (1 - x[0] ** 2) / EPS]])

    def prepare(tolerance):
        options = {"method": method, "jac": jacobian, "rtol": tolerance, "atol": tolerance}
        return lambda: solve_ivp(rates, (0.0, END), START, **options).y[:, -1]

    return prepare


def seconds_at_wanted_accuracy(prepare):
    """Median processor seconds with the loosest tolerance that reaches WANTED, that error and that tolerance."""
    for tolerance in TOLERANCES:
        run = prepare(tolerance)
        error = float((np.abs(run() - REFERENCE) / np.abs(REFERENCE)).max())
        if error <= WANTED:
            break
    else:
        pytest.fail("no tolerance reaches the accuracy")
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        run()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken), error, tolerance


def test_at_least_twenty_times_faster_than_the_library_solvers_at_equal_accuracy(capsys):
    rows = {f"compiled {m}": seconds_at_wanted_accuracy(ours(m)) for m in ("rosenbrock3", "rosenbrock4")}
    rows |= {f"SciPy {m}": seconds_at_wanted_accuracy(scipys(m)) for m in ("LSODA", "Radau", "BDF")}
    base = rows["compiled rosenbrock4"][0]
    with capsys.disabled():
        print(f"\nvan der Pol, eps = {EPS:g}, to t = {END:g}, relative error {WANTED:g} asked:")
        for name, (seconds, error, tolerance) in rows.items():
            print(
                f"  {name:22s} {1e3 * seconds:9.3f} ms  {seconds / base:8.1f} x  error {error:.1e} at {tolerance:.1e}"
            )
    assert min(rows[f"SciPy {m}"][0] for m in ("LSODA", "Radau", "BDF")) >= 20.0 * base


def test_generating_and_loading_from_the_cache_takes_less_than_a_tenth_of_a_second(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("DESIGNOPT_CACHE_DIR", str(tmp_path))
    system, taken = van_der_pol(), []
    for _ in range(6):
        began = time.perf_counter()
        Simulator(system, compiled=True)
        taken.append(time.perf_counter() - began)
    with capsys.disabled():
        print(f"\nfirst {1e3 * taken[0]:.0f} ms (compiled), then {1e3 * statistics.median(taken[1:]):.1f} ms (cached)")
    assert statistics.median(taken[1:]) < 0.1
