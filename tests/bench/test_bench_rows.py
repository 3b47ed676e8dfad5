"""`Rows`: the generated loop against CasADi's interpreted map, on the inverse dynamics of a planar chain of links."""

import statistics
import time

import casadi as ca
import numpy as np
import pytest

from designopt.dynamics.compile import find_compiler
from designopt.dynamics.rows import Rows

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(find_compiler() is None, reason="no C compiler: rows run interpreted only"),
]

ROWS, LINKS = 20_000, 6


def inverse_dynamics():
    """Joint moments of a chain of slender links of 1 kg and 0.4 m by Lagrange's equations, and the mass matrix."""
    q, qd, qdd = (ca.SX.sym(name, LINKS) for name in ("q", "qd", "qdd"))
    angle, x, y, energy = 0, 0, 0, 0
    for i in range(LINKS):
        angle += q[i]
        centre = ca.vertcat(x + 0.2 * ca.cos(angle), y + 0.2 * ca.sin(angle))
        speed, turn = ca.jtimes(centre, q, qd), ca.jtimes(angle, q, qd)
        energy += ca.dot(speed, speed) / 2 + 0.4**2 / 12 * turn**2 / 2 - 9.81 * centre[1]
        x, y = x + 0.4 * ca.cos(angle), y + 0.4 * ca.sin(angle)
    momentum = ca.gradient(energy, qd)
    moments = ca.jtimes(momentum, ca.vertcat(q, qd), ca.vertcat(qd, qdd)) - ca.gradient(energy, q)
    return ca.Function("chain", [q, qd, qdd], [moments, ca.jacobian(momentum, qd)], {"cse": True})


def seconds(call):
    durations = []
    for _ in range(5):
        began = time.perf_counter()
        call()
        durations.append(time.perf_counter() - began)
    return statistics.median(durations)


def test_the_compiled_loop_is_several_times_faster_than_the_interpreted_map(
    capsys, tmp_path, monkeypatch, record_property
):
    monkeypatch.setenv("DESIGNOPT_CACHE_DIR", str(tmp_path))
    function = inverse_dynamics()
    rng = np.random.default_rng(1)
    args = [rng.normal(size=(ROWS, LINKS)) for _ in range(3)]
    tiled = function.map(ROWS)
    columns = [a.T for a in args]
    timings = {
        "CasADi map of all rows": seconds(lambda: [np.array(r) for r in tiled(*columns)]),
        "Rows interpreted": seconds(lambda: Rows(function, compiled=False)(*args)),
    }
    began = time.perf_counter()
    compiled = Rows(function, compiled=True)
    first = time.perf_counter() - began
    timings["Rows compiled"] = seconds(lambda: compiled(*args))
    with capsys.disabled():
        print(f"\n{ROWS} rows, {function.n_instructions()} operations a row; compiled once in {first:.2f} s:")
        for name, spent in timings.items():
            print(f"  {name:24s} {1e6 * spent / ROWS:8.2f} us a row  {spent / timings['Rows compiled']:6.1f} x")
    record_property("map of CasADi / compiled rows", timings["CasADi map of all rows"] / timings["Rows compiled"])
    assert timings["Rows compiled"] < timings["CasADi map of all rows"] / 3
    assert timings["Rows interpreted"] < 1.3 * timings["CasADi map of all rows"]
