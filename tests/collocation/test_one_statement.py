"""One statement of a mechanism is simulated, linearised and collocated: all three agree."""

import casadi as ca
import numpy as np
import pytest
from chains import chain
from rod_chains import rod_chain, start

from designopt.collocation import Guess, Options, Phase, Program, TrajectoryProblem, resimulate, sampled
from designopt.dynamics import Simulator, System, Variable, linearise


def double_cart_pole() -> System:
    """A cart (1 kg) with two poles in a row (0.3 kg at 0.5 m each), by Lagrange's equations of its energies."""
    q, v, a, force = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("a", 3), ca.SX.sym("force")
    position, energy = ca.vertcat(q[0], 0.0), 0.5 * v[0] ** 2
    for i in (1, 2):
        position = position + 0.5 * ca.vertcat(ca.sin(q[i]), -ca.cos(q[i]))
        energy += 0.15 * ca.sumsqr(ca.jtimes(position, q, v)) - 0.3 * 9.81 * position[1]
    momentum = ca.gradient(energy, v)
    residual = (
        ca.jtimes(momentum, ca.vertcat(q, v), ca.vertcat(v, a)) - ca.gradient(energy, q) - ca.vertcat(force, 0, 0)
    )
    names = ("cart", "first", "second")
    return System.from_expressions(
        "double_cart_pole",
        states=[
            *((Variable(n, ""), q[i], v[i]) for i, n in enumerate(names)),
            *((Variable(f"{n}_speed", ""), v[i], a[i]) for i, n in enumerate(names)),
        ],
        controls=[(Variable("force", "N", -20.0, 20.0), force)],
        unknowns=[(Variable(f"{n}_acceleration", ""), a[i], residual[i]) for i, n in enumerate(names)],
    )


MECHANISMS = {
    "two-link pendulum": (lambda: chain(2), [0.4, -0.3, 0.0, 0.0], [0.5, -0.2], []),
    "double cart-pole": (double_cart_pole, [0.0, 0.3, -0.2, 0.0, 0.0, 0.0], [1.5], []),
    "five elastic rods": (lambda: rod_chain(5), start(5), [], [4000.0]),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_simulation_linearisation_and_collocation_agree(name):
    make, x0, u, p = MECHANISMS[name]
    system, x0, end = make(), np.asarray(x0, float), 0.05
    states = [v.name for v in system.states]
    times = np.linspace(0.0, end, 41)
    simulator = Simulator(system, rtol=1e-11, atol=1e-13)
    run = simulator.run(x0, times, p=p, u=u)

    phase = Phase(
        system, tf=end, initial=dict(zip(states, x0.tolist(), strict=True)),
        bounds={v.name: (value, value) for v, value in zip(system.controls, u, strict=True)},
    )  # fmt: skip
    parameters = {v.name: value for v, value in zip(system.parameters, p, strict=True)}
    problem = TrajectoryProblem([phase], lambda e: e.final[states[0]] * 0.0, parameters=parameters)
    guess = Guess({"motion": sampled(times, {n: run.x[:, i] for i, n in enumerate(states)})})
    solution = Program(problem, Options(scheme="radau", degree=5, intervals=12, check=False)).solve(guess=guess)
    assert solution.success, solution.message
    size = 1.0 + np.abs(run.x).max(axis=0)
    ends = np.array([solution.phase.values[n][-1] for n in states])
    assert (np.abs(ends - run.x[-1]) / size).max() < 1e-6
    assert resimulate(phase, solution.phase, parameters).error < 1e-6

    about = linearise(system, x0, u=u, p=p)
    j, h = len(states) - 1, 1e-5
    rates = [linearise(system, x0 + sign * h * np.eye(len(states))[j], u=u, p=p).rates for sign in (1.0, -1.0)]
    difference = (rates[0] - rates[1]) / (2.0 * h)
    assert np.abs(about.A[:, j] - difference).max() < 1e-6 * max(1.0, np.abs(difference).max())
    slopes = (run.x[2] - x0) / (times[2] - times[0])  # f at the middle, to second order
    middle = linearise(system, run.x[1], u=u, p=p).rates
    assert np.abs(slopes - middle).max() < 2e-3 * max(1.0, np.abs(middle).max())
