"""Ten random mechanisms with loops, simulated, linearised and collocated: the three agree below 1e-6.

The simulation has multipliers and stabilised loops, the collocation algebraic coordinates and independent states, the
linearisation the derivatives of the simulated equations: statements of one mechanism that share no solution.
"""

import numpy as np
import pytest
from designopt_mechanics.mechanism.equations import mechanism_system
from designopt_mechanics.mechanism.loops import CannotClose, LoopSolver
from designopt_mechanics.mechanism.mechanism import Mechanism
from designopt_mechanics.model_file.reading import read
from designopt_mechanics.tasks.equilibrium import EquilibriumTask
from designopt_mechanics.tasks.task import TaskSettings
from designopt_mechanics.tasks.trajectory import TrajectoryTask
from scipy.linalg import expm

from designopt.arrays import Floats
from designopt.collocation import Options, Phase, TrajectoryProblem, solve
from designopt.dynamics import Simulator
from designopt.dynamics.linearise import linearise
from designopt.study.language.errors import StudyError

TIME, AGREES = 0.1, 1e-6


def random_file(seed: int) -> bytes:
    """A chain of two to four links from the ground to a rocker on the ground, with springs and damping."""
    rng = np.random.default_rng(seed)
    links = int(rng.integers(2, 5))
    names = [f"link{i}" for i in range(links)]
    lengths = rng.uniform(0.2, 0.5, links)
    base, rocker = rng.uniform(0.3, 0.6), rng.uniform(0.25, 0.5)
    lines = ["gravity: [0, -9.81, 0]", "coordinates:"]
    laws = "stiffness: {k:.3f}, rest: {r:.3f}, damping: {d:.3f}"
    for name in (*names, "rocker"):
        law = laws.format(k=rng.uniform(2.0, 8.0), r=rng.uniform(-0.5, 0.5), d=rng.uniform(0.01, 0.1))
        reference = 1.2 if name in ("link0", "rocker") else -0.9 / max(1, links - 1)
        lines.append(f"  {name}: {{unit: rad, reference: {reference}, {law}}}")
    lines.append("frames:")
    body = "body: {{mass: {m:.3f}, centre: [{c:.3f}, 0, 0], inertia: {j:.5f}}}"
    for i, name in enumerate((*names, "rocker")):
        length = rocker if name == "rocker" else lengths[i]
        parent = f"parent: {names[i - 1]}, place: [{lengths[i - 1]:.6f}, 0, 0], " if 0 < i < links else ""
        placement = f"place: [{base:.6f}, 0, 0], " if name == "rocker" else ""
        mass = body.format(m=rng.uniform(0.3, 1.5), c=length / 2, j=rng.uniform(0.002, 0.02))
        lines.append(f"  {name}: {{{parent}{placement}motions: [rotate: {{axis: [0, 0, 1], by: {name}}}], {mass}}}")
    lines.append(
        f"meet: [{{on: {names[-1]}, at: [{lengths[-1]:.6f}, 0, 0]}}, {{on: rocker, at: [{rocker:.6f}, 0, 0]}}]"
    )
    return "\n".join(lines).encode()


def moving() -> list[tuple[Mechanism, Floats, Floats]]:
    """The first ten of random lengths that close and move away from dead centres: start and end of a motion."""
    chosen: list[tuple[Mechanism, Floats, Floats]] = []
    for seed in range(1, 200):
        rng = np.random.default_rng(seed)
        try:
            mechanism = read(random_file(seed), f"random{seed}.yaml")
            loops = LoopSolver(mechanism)
        except (CannotClose, StudyError):
            continue
        z = loops.start([])[None]
        if loops.condition(z, [])[0] > 4.0:
            continue
        start = np.hstack([z, loops.rates(z, rng.uniform(-1.0, 1.0, (1, len(loops.independent))), [])])[0]
        times = np.linspace(0.0, TIME, 11)
        x = Simulator(mechanism_system(loops), rtol=1e-10, atol=1e-12).run(start, times).x
        if loops.condition(x[:, : z.shape[1]], []).max() < 4.0:
            chosen.append((mechanism, start, x[-1]))
        if len(chosen) == 10:
            break
    return chosen


@pytest.fixture(scope="module")
def motions() -> list[tuple[Mechanism, Floats, Floats]]:
    return moving()


@pytest.mark.parametrize("number", range(10))
def test_simulated_and_collocated_motions_agree(motions: list[tuple[Mechanism, Floats, Floats]], number: int) -> None:
    mechanism, start, end = motions[number]
    loops, names = LoopSolver(mechanism), mechanism.tree.names
    every = [*names, *(f"{n}_speed" for n in names)]
    free = [names[i] for i in loops.independent]
    task = TrajectoryTask(TaskSettings(mechanism, loops, program={"end": {free[0]: start[every.index(free[0])]}}))
    system = task.trajectory_problem({}).phases[0].system
    phase = Phase(
        system,
        tf=TIME,
        bounds={c.name: (0.0, 0.0) for c in system.controls},
        initial={v.name: float(start[every.index(v.name)]) for v in system.states},
        guess={n: (float(a), float(b)) for n, a, b in zip(every, start, end, strict=True)},
    )
    options = Options(scheme="radau", intervals=20, degree=5, check=False, persistent=False)
    solution = solve(TrajectoryProblem([phase], cost=lambda e: 0.0 * e.duration), options)
    assert solution.success, solution.message
    np.testing.assert_allclose([solution.phase.values[n][-1] for n in every], end, atol=AGREES)


@pytest.mark.parametrize("number", range(10))
def test_small_motions_about_the_rest_are_those_of_the_linearisation(
    motions: list[tuple[Mechanism, Floats, Floats]], number: int
) -> None:
    mechanism = motions[number][0]
    loops = LoopSolver(mechanism)
    system = mechanism_system(loops)
    task = EquilibriumTask(TaskSettings(mechanism, loops))
    rest = np.concatenate([task.rest_posture(loops.start([]), []).z, np.zeros(len(mechanism.tree.names))])
    A = linearise(system, rest).A
    direction = np.random.default_rng(number).normal(size=(1, len(loops.independent)))
    speeds = loops.rates(rest[None, : len(rest) // 2], direction, [])[0]
    step = 1e-4 * np.concatenate([np.zeros(len(speeds)), speeds])
    simulator = Simulator(system, rtol=1e-12, atol=1e-14)
    ends = [simulator.run(rest + sign * step, [0.0, TIME]).x[-1] for sign in (1.0, -1.0)]
    np.testing.assert_allclose((ends[0] - ends[1]) / 2e-4, expm(A * TIME) @ step / 1e-4, atol=AGREES)
