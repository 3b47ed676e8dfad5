"""Compiled Rosenbrock integration against SciPy's stiff solvers: the same problem at the same accuracy, in one process.

Each solver gets the loosest of its tolerances that brings the error below the one wanted; then it is timed. SciPy's
solvers are given the plain-array right-hand side and the exact Jacobian, as a user would write them.
"""

import dataclasses
import os
import statistics
import sys
import time
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from designopt.dynamics import Simulator, System, Variable
from designopt.dynamics.compile import find_compiler

sys.path.insert(0, str(Path(__file__).parents[1] / "dynamics"))

from rod_chains import rod_chain, start

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
    spent = []
    for _ in range(5):
        began = time.perf_counter()
        run()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent), error, tolerance


def test_at_least_twenty_times_faster_than_the_library_solvers_at_equal_accuracy(capsys):
    rows = {"compiled rosenbrock4": seconds_at_wanted_accuracy(ours("rosenbrock4"))}
    rows |= {f"SciPy {m}": seconds_at_wanted_accuracy(scipys(m)) for m in ("LSODA", "Radau", "BDF")}
    base = rows["compiled rosenbrock4"][0]
    with capsys.disabled():
        print(f"\nvan der Pol, eps = {EPS:g}, to t = {END:g}, relative error {WANTED:g} asked:")
        for name, (spent, error, tolerance) in rows.items():
            print(f"  {name:22s} {1e3 * spent:9.3f} ms  {spent / base:8.1f} x  error {error:.1e} at {tolerance:.1e}")
    assert min(rows[f"SciPy {m}"][0] for m in ("LSODA", "Radau", "BDF")) >= 20.0 * base


def test_generating_and_loading_from_the_cache_takes_less_than_a_tenth_of_a_second(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("DESIGNOPT_CACHE_DIR", str(tmp_path))
    system, spent = van_der_pol(), []
    for _ in range(6):
        began = time.perf_counter()
        Simulator(system, compiled=True)
        spent.append(time.perf_counter() - began)
    with capsys.disabled():
        print(f"\nfirst {1e3 * spent[0]:.0f} ms (compiled), then {1e3 * statistics.median(spent[1:]):.1f} ms (cached)")
    assert statistics.median(spent[1:]) < 0.1


def built_and_run(system, x0, monkeypatch, folder):
    """Processor seconds (children included) to build a simulator, and the least of seven runs over 2 s."""
    monkeypatch.setenv("DESIGNOPT_CACHE_DIR", str(folder))
    began = os.times()
    simulator = Simulator(system, compiled=True)
    ended = os.times()
    spent = []
    for _ in range(7):
        start = time.process_time()
        assert simulator.run(x0, [0.0, 2.0], p=[4000.0]).t[-1] == 2.0
        spent.append(time.process_time() - start)
    return sum(ended[:4]) - sum(began[:4]), min(spent)


def test_a_chain_of_eleven_elastic_rods_builds_in_four_times_the_time_of_five(capsys, tmp_path, monkeypatch):
    """And in residual form small chains run no slower than from right-hand sides that were inverted symbolically."""
    rows = {n: built_and_run(rod_chain(n), start(n), monkeypatch, tmp_path / f"r{n}") for n in (2, 3, 5, 11)}
    inverted = {}
    for n in (2, 3):
        system = rod_chain(n)
        rhs, output = system.rhs, system.output
        explicit = dataclasses.replace(system, residual_form=None, rhs=rhs, output=output)
        inverted[n] = built_and_run(explicit, start(n), monkeypatch, tmp_path / f"e{n}")
    with capsys.disabled():
        print("\nrods: processor seconds to build, milliseconds for 2 s of motion (inverted symbolically: ...):")
        for n, (build, run) in rows.items():
            with_inverse = f"   ({inverted[n][0]:6.2f} s {1e3 * inverted[n][1]:8.2f} ms)" if n in inverted else ""
            print(f"  {n:3d} {build:6.2f} s {1e3 * run:8.2f} ms{with_inverse}")
    assert rows[11][0] <= 4.0 * rows[5][0]
    assert all(rows[n][1] <= 1.05 * inverted[n][1] for n in inverted)
