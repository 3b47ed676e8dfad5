"""One statement of a mechanism with loops is simulated, linearised, collocated, and agrees with inverse dynamics."""

from typing import Any

import linkages
import numpy as np
import pytest
from designopt_mechanics.mechanism.equations import mechanism_system
from designopt_mechanics.mechanism.forces import LoopForces, MotionRows
from designopt_mechanics.mechanism.loops import CannotClose, LoopSolver

from designopt.collocation import Options, Phase, TrajectoryProblem, solve_design
from designopt.dynamics import SimulationStatus, Simulator, System, linearise
from designopt.dynamics.compile import CompilerError

EFFORT, END = 2.0, 0.15


def statement(seed: int) -> tuple[LoopSolver, System, linkages.Array]:
    """A random linkage with a drive on its first bar, and its state at rest."""
    loops = LoopSolver(linkages.random_linkage(seed))
    accelerations = {f"a{i}": ("rad/s^2", loops.state.ddz[i]) for i in range(loops.state.ddz.numel())}
    system = mechanism_system(loops, ("b0",), accelerations)
    z = loops.start([])
    return loops, system, np.concatenate([z, np.zeros_like(z)])


def simulated(system: System, x0: linkages.Array, times: Any, **tolerances: float) -> Any:
    run = Simulator(system, compiled=False, **tolerances).run(x0, times, u=[EFFORT])
    assert run.status is SimulationStatus.DONE
    return run


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 10))])
def test_simulated_linearised_and_collocated_motions_agree(seed: int) -> None:
    loops, system, x0 = statement(seed)
    times = np.linspace(0.0, END, 4)
    run = simulated(system, x0, times, rtol=1e-9, atol=1e-11)
    m = len(x0) // 2
    z, dz = run.x[:, :m], run.x[:, m:]
    # the efforts that the simulated motion needs are the drive of the first bar and zero
    forces = LoopForces(loops)
    efforts = forces.solve(MotionRows(times, z, dz, run.y), []).efforts
    expected = [EFFORT if name == "b0" else 0.0 for name in forces.driven]
    assert efforts == pytest.approx(np.tile(expected, (4, 1)), abs=1e-6)
    for row in z:
        assert loops.start([], near=row) == pytest.approx(row, abs=1e-7)
    # the state matrix is the derivative of the rates
    A = linearise(system, run.x[-1], u=[EFFORT]).A
    for i in range(len(x0)):
        h = 1e-6 * np.eye(len(x0))[i]
        ahead, behind = (
            np.asarray(system.rhs(run.x[-1] + s * h, [EFFORT], [], [], [], 0.0)).ravel() for s in (1.0, -1.0)
        )
        assert A[:, i] == pytest.approx((ahead - behind) / 2e-6, rel=1e-6, abs=1e-6 * np.abs(A).max())
    # with its control fixed, a program has one motion
    names = [v.name for v in system.states]
    phase = Phase(
        system, tf=END, initial=dict(zip(names, x0, strict=True)), bounds={"effort_b0": (EFFORT, EFFORT)},
        guess={n: (float(a), float(b)) for n, a, b in zip(names, x0, run.x[-1], strict=True)},
    )  # fmt: skip
    problem = TrajectoryProblem([phase], cost=lambda e: e.final[names[0]] ** 2)
    solution = solve_design(problem, {}, Options(scheme="radau", intervals=25))
    motion = solution.phase.interpolate(times)
    collocated = np.array([motion[n] for n in names]).T
    assert collocated == pytest.approx(run.x, abs=1e-6 * np.abs(run.x).max())


def test_the_error_of_a_simulated_loop_falls_with_its_order() -> None:
    """Fixed steps of the fourth-order method: halving them divides the error by about 16."""
    _, system, x0 = statement(0)
    try:
        simulator = Simulator(system, "rosenbrock4", compiled=True)
    except CompilerError:
        pytest.skip("needs a C compiler")

    def end(step: float) -> linkages.Array:
        return np.asarray(simulator.run(x0, [0.0, 0.08], u=[EFFORT], step=step).x[-1])

    exact = end(0.08 / 512)
    errors = [np.abs(end(0.08 / n) - exact).max() for n in (8, 16, 32)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx([4.0, 4.0], abs=0.6)


def test_a_crank_turns_for_ever_and_keeps_its_branch() -> None:
    loops = LoopSolver(linkages.four_bar())
    turns = 2.0 * np.pi * np.linspace(0.0, 10.0, 241)[:, None]
    start = loops.start([])
    followed = loops.follow(start, start[0] + turns, [])
    assert followed.is_closed.all()
    assert followed.z[-1, 1:] - np.array([-20.0 * np.pi, 0.0]) == pytest.approx(start[1:], abs=1e-9)
    assert np.diff(followed.z, axis=0) == pytest.approx(0.0, abs=0.6)


def test_a_mechanism_that_cannot_close_reports_the_gap_and_closes_again_later() -> None:
    """With a crank of 0.62 m the coupler and the rocker, 1.4 m together, do not reach each other near pi."""
    loops = LoopSolver(linkages.four_bar(0.62))
    start = loops.start([])
    angles = np.linspace(start[0], 2.0 * np.pi + start[0], 181)
    angles[np.argmin(np.abs(angles - np.pi))] = np.pi
    followed = loops.follow(start, angles[:, None], [])
    apart = np.hypot(0.62 * np.cos(angles) - 0.9, 0.62 * np.sin(angles))
    assert (followed.is_closed == (apart <= 1.4)).all()
    assert followed.gap[angles == np.pi] == pytest.approx(0.62 + 0.9 - 1.4, rel=0.01)
    with pytest.raises(CannotClose, match=r"close in no posture: .* a gap of at least .* stays, at 'tip'"):
        LoopSolver(linkages.four_bar(3.0))


@pytest.mark.parametrize("samples", [2.2, 2.9, 3.5, 3.7, 4.5])
def test_a_motion_of_few_samples_per_turn_stays_on_its_branch(samples: float) -> None:
    """Postures far apart are those of a motion with forty times as many, not of the other assembly."""
    loops = LoopSolver(linkages.four_bar())
    start, turns = loops.start([]), np.arange(0.0, 6.0, 1.0 / samples)
    all_turns = np.interp(np.arange(40 * (len(turns) - 1) + 1) / 40, np.arange(len(turns)), turns)
    few, many = (loops.follow(start, start[0] + 2.0 * np.pi * t[:, None], []).z for t in (turns, all_turns))
    assert few == pytest.approx(many[::40], abs=1e-7)
