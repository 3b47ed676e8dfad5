"""Several runs side by side: each has the bits of the run alone, in any company and any number of lanes."""

import casadi as ca
import numpy as np
import pytest

from designopt.dynamics import Signal, Simulator, System, Variable
from designopt.dynamics.compile import lane_flags
from designopt.dynamics.simulation import rosenbrock

TIMES = np.linspace(0.0, 3.0, 8)


def symbols(names):
    return [ca.SX.sym(name) for name in names.split()]


@pytest.fixture(scope="module")
def bouncing():
    """A stiff spring under a driven weight, with a guard, elementary functions, comparisons and a signal."""
    x, v, k, w, t = symbols("x v k w t")
    force = k * ca.fmax(-x, 0.0) ** 1.5 * (1.0 - ca.tanh(v)) + ca.if_else(x < 0.2, ca.exp(-x), ca.atan2(x, 2.0))
    return System.from_expressions(
        "bouncing",
        states=[(Variable("x", ""), x, v), (Variable("v", ""), v, -3.0 + force + w * ca.sin(7.0 * t))],
        parameters=[(Variable("k", ""), k)],
        data=[(Variable("w", ""), w)],
        outputs=[(Variable("force", ""), force), (Variable("log", ""), ca.log(2.0 + x**2))],
        guards={"low": x + 0.35},
        time=t,
    )


def runs_of(count, seed=0, **more):
    rng = np.random.default_rng(seed)
    signals = [Signal(TIMES, rng.uniform(-1.0, 1.0, len(TIMES))) for _ in range(count)]
    return [
        {
            "x0": [rng.uniform(-0.3, 0.5), rng.uniform(-1.0, 1.0)], "times": TIMES[: rng.integers(2, 8)],
            "p": [10.0 ** rng.uniform(1.0, 5.0)], "signals": {"w": signal}, **more,
        }
        for signal in signals
    ]  # fmt: skip


def bits(trajectory):
    arrays = [trajectory.t, trajectory.x, trajectory.y, trajectory.transition]
    return (
        [None if a is None else a.tobytes() for a in arrays],
        trajectory.status, trajectory.message, trajectory.guard,
        trajectory.steps, trajectory.rejected, trajectory.evaluations, trajectory.last_step,
    )  # fmt: skip


@pytest.mark.parametrize("lanes", ["2", "4", "native"])
def test_a_run_has_the_same_bits_alone_and_in_company(compiler, bouncing, monkeypatch, lanes):
    flags = lane_flags() if lanes == "native" else (f"-DLANES={lanes}",)
    monkeypatch.setattr(rosenbrock, "lane_flags", lambda: flags)
    simulator = Simulator(bouncing, compiled=True, signals=("w",))
    runs = runs_of(21)
    for i in range(0, 21, 3):
        runs[i]["transition"] = True
    alone = [simulator.run(**run) for run in runs]
    assert {t.status.name for t in alone} >= {"DONE", "GUARD"}
    order = np.random.default_rng(5).permutation(21)
    for indices in (range(21), order, order[:9]):
        company = simulator.run_several([runs[i] for i in indices])
        assert [bits(t) for t in company] == [bits(alone[i]) for i in indices]


@pytest.mark.parametrize("settings", [{"max_steps": 40}, {"rtol": 1e-9, "atol": 1e-11}])
def test_failures_and_fixed_steps_stay_in_their_lane(compiler, bouncing, settings):
    simulator = Simulator(bouncing, compiled=True, signals=("w",), **settings)
    runs = runs_of(13, seed=2)
    runs[3]["p"], runs[4]["p"], runs[7]["step"] = [np.finfo(float).max], [0.0], 1e-3
    runs[5]["x0"], runs[6]["first_step"] = [-0.5, 0.0], 1e-3
    alone = [simulator.run(**run) for run in runs]
    assert [bits(t) for t in simulator.run_several(runs)] == [bits(t) for t in alone]
    assert len({t.status for t in alone}) > 1


def test_runs_exchange_rows_for_pivots_in_their_own_lanes(compiler):
    """Rates whose matrix needs other pivots in every lane."""
    x = ca.SX.sym("x", 3)
    A = ca.SX.sym("a", 9)
    system = System.from_expressions(
        "turning",
        states=[(Variable(f"x{i}", ""), x[i], (ca.reshape(A, 3, 3) @ x)[i] - 0.1 * x[i] ** 3) for i in range(3)],
        parameters=[(Variable(f"a{i}", ""), A[i]) for i in range(9)],
    )
    simulator = Simulator(system, compiled=True)
    rng = np.random.default_rng(3)
    runs = [
        {"x0": rng.normal(size=3), "times": [0.0, 0.1, 2.0], "p": 30.0 * rng.normal(size=9) - 20.0, "transition": True}
        for _ in range(17)
    ]
    alone = [simulator.run(**run) for run in runs]
    assert [bits(t) for t in simulator.run_several(runs)] == [bits(t) for t in alone]


@pytest.mark.parametrize("compiled", [True, False])
def test_operations_without_lanes_and_interpreted_systems_run_one_after_the_other(request, compiled):
    if compiled:
        request.getfixturevalue("compiler")
    x, k = symbols("x k")
    system = System.from_expressions(
        "remainder",
        states=[(Variable("x", ""), x, -k * ca.fmod(x, 2.0))],
        parameters=[(Variable("k", ""), k)],
    )
    simulator = Simulator(system, compiled=compiled)
    runs = [{"x0": [1.0 + i], "times": [0.0, 1.0], "p": [1.0]} for i in range(3)]
    assert [bits(t) for t in simulator.run_several(runs)] == [bits(simulator.run(**run)) for run in runs]
    assert simulator.run_several([]) == []


def test_the_input_of_every_run_is_checked(smooth):
    simulator = Simulator(smooth, compiled=False)
    with pytest.raises(ValueError, match="each larger"):
        simulator.run_several([{"x0": [0.25, 0.0625], "times": [1.0, 0.0], "p": [3.0]}])
