"""One statement of a tree is simulated, linearised and collocated."""

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.dynamics.matrices import forward_dynamics
from designopt_mechanics.equations import equations_of
from designopt_mechanics.state import TreeState
from random_trees import GRAVITY, random_case

from designopt.collocation import Options, Phase, TrajectoryProblem, solve_design
from designopt.dynamics import SimulationStatus, Simulator, System, Variable, linearise

#: Bodies and coordinates of three random trees.
TREES = [(21, 3, 2), (22, 5, 3), (24, 6, 2)]


def statement(seed: int, bodies: int, coordinates: int) -> tuple[System, TreeState]:
    """A damped random tree, whose motion stays near its start."""
    s = TreeState.symbols(random_case(seed, bodies, coordinates).tree)
    u = ca.SX.sym("u")
    forces = -2.0 * s.dz - 20.0 * s.z + ca.vertcat(u, ca.SX.zeros(coordinates - 1))
    parts = equations_of(s, forces, GRAVITY)
    return System.from_expressions(
        "tree", states=parts.states, unknowns=parts.unknowns, controls=[(Variable("u", "N m", -5.0, 5.0), u)]
    ), s


@pytest.mark.parametrize(("seed", "bodies", "coordinates"), TREES)
def test_simulation_linearisation_and_collocation_agree(seed: int, bodies: int, coordinates: int) -> None:
    system, s = statement(seed, bodies, coordinates)
    x0 = np.zeros(2 * coordinates)
    times = np.linspace(0.0, 0.3, 4)
    run = Simulator(system, rtol=1e-9, atol=1e-11, compiled=False).run(x0, times, u=[0.7])
    assert run.status is SimulationStatus.DONE
    # simulation against the accelerations of the explicit form, by its residual over a short time
    forces = -2.0 * s.dz - 20.0 * s.z + ca.vertcat(0.7, ca.SX.zeros(coordinates - 1))
    rates = ca.vertcat(s.dz, forward_dynamics(s, forces, GRAVITY))
    x = ca.vertcat(s.z, s.dz)
    explicit = ca.Function("rates", [x], [rates])
    assert np.allclose(
        np.asarray(system.rhs(run.x[-1], [0.7], [], [], [], 0.0)),
        np.asarray(explicit(run.x[-1])),
        rtol=1e-11,
        atol=1e-11,
    )
    # linearisation: the state matrix is the derivative of these rates
    A = np.asarray(ca.Function("A", [x], [ca.jacobian(rates, x)])(run.x[-1]), float)
    assert np.allclose(linearise(system, run.x[-1], u=[0.7]).A, A, rtol=1e-9, atol=1e-9)
    # collocation: with the control held the program has one motion, the simulated one
    names = [v.name for v in system.states]
    phase = Phase(
        system, tf=0.3, name="fall", initial=dict(zip(names, x0, strict=True)), bounds={"u": (0.7, 0.7)},
        guess=dict.fromkeys(names, (0.0, 0.0)),
    )  # fmt: skip
    problem = TrajectoryProblem([phase], cost=lambda e: e.final[names[0]] ** 2)
    solution = solve_design(problem, {}, Options(scheme="radau", intervals=25))
    motion = solution.phase.interpolate(times)
    states = np.array([motion[n] for n in names]).T
    assert np.abs(states - run.x).max() < 1e-6 * np.abs(run.x).max()
