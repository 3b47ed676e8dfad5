"""A receding horizon: every step begins with the solution of the one before it, moved on."""

from dataclasses import replace

import benchmark_problems
import numpy as np
import pytest
from benchmark_problems import point_mass, system

from designopt.collocation import (
    Integral,
    Mesh,
    Options,
    Phase,
    Program,
    Solution,
    Status,
    TrajectoryProblem,
    radau,
    shifted,
)

STEP, INTERVALS = 0.1, 40


def pendulum_to_rest(angle: float, rate: float) -> TrajectoryProblem:
    """An upright pendulum with little torque is brought to rest over a horizon of 4 s."""
    import casadi as ca

    plant = system(
        "pendulum",
        {"angle": lambda s: s["rate"], "rate": lambda s: ca.sin(s["angle"]) + s["u"]},
        ["u"],
        bounds={"u": (-0.6, 0.6)},
    )
    cost = Integral(lambda v: 10.0 * v["angle"] ** 2 + v["rate"] ** 2 + 0.1 * v["u"] ** 2)
    phase = Phase(plant, tf=STEP * INTERVALS, initial={"angle": angle, "rate": rate}, integrals={"cost": cost})
    return TrajectoryProblem([phase], cost=lambda e: e.integral["cost"])


def run(options: Options, way: str) -> tuple[list[int], np.ndarray]:
    """Iterations of 25 steps of a controller and the angles there, without a difference between plant and model."""
    state = (0.45, 0.0)
    program = Program(pendulum_to_rest(*state), options)
    solution: Solution | None = None
    iterations, angles = [], []
    for _ in range(25):
        problem = pendulum_to_rest(*state)
        if solution is None or way == "cold":
            solution = program.solve(problem)
        else:
            solution = program.solve(
                problem, warm="full", previous=shifted(program, solution) if way == "shifted" else solution
            )
        assert solution.status is Status.SOLVED
        values = solution.interpolate(STEP)
        state = float(values["angle"][0]), float(values["rate"][0])
        iterations.append(solution.iterations)
        angles.append(state[0])
    return iterations, np.array(angles)


@pytest.mark.parametrize("options", [Options(intervals=INTERVALS), Options(scheme="radau", intervals=INTERVALS)])
def test_a_start_from_the_shifted_previous_solution_takes_fewer_iterations(options: Options) -> None:
    cold, expected = run(options, "cold")
    moved, angles = run(options, "shifted")

    np.testing.assert_allclose(angles, expected, atol=1e-6)
    assert abs(angles[-1]) < 0.02
    assert sum(moved[1:]) < 0.6 * sum(cold[1:])


def test_a_shift_moves_later_points() -> None:
    """Of a motion without an end to come nearer to, the optimum moved on is the optimum of the next step."""
    phase = replace(benchmark_problems.block_move().phases[0], system=point_mass(1.0, 100.0))
    program = Program(TrajectoryProblem([phase], cost=lambda e: e.integral["effort"]), Options(intervals=10))
    solution = program.solve()
    moved = shifted(program, solution, 3)
    transcription = program.transcription
    states, points = transcription.layout.phases[0].states, transcription.layout.phases[0].point

    np.testing.assert_array_equal(moved.iterate.x[states[:-6]], solution.iterate.x[states[6:]])
    np.testing.assert_array_equal(moved.iterate.x[points[-6:]], solution.iterate.x[np.repeat(points[-1:], 6, axis=0)])
    defects = next(b for b in transcription.blocks if b.kind == "defect").rows
    np.testing.assert_array_equal(
        moved.iterate.constraint_multipliers[defects[:-6]], solution.iterate.constraint_multipliers[defects[6:]]
    )
    np.testing.assert_array_equal(
        moved.iterate.bound_multipliers[points[:-6]], solution.iterate.bound_multipliers[points[6:]]
    )
    assert shifted(program, solution, 0).iterate.x.tolist() == solution.iterate.x.tolist()


def test_multipliers_of_intervals_are_shifted_too() -> None:
    """Linear controls have one row for each interval."""
    options = Options(intervals=10, midpoint_control="linear")
    program = Program(benchmark_problems.cart_pole(), options)
    solution = program.solve()
    rows = next(b for b in program.transcription.blocks if b.kind == "control").rows
    moved = shifted(program, solution, 2).iterate.constraint_multipliers

    np.testing.assert_array_equal(moved[rows[:-2]], solution.iterate.constraint_multipliers[rows[2:]])


def test_an_impossible_shift_is_refused() -> None:
    problem = benchmark_problems.block_move()
    uneven = Program(problem, meshes=[Mesh.at(radau(3), [0.0, 0.2, 1.0])])
    with pytest.raises(ValueError, match="needs equal intervals and one scheme"):
        shifted(uneven, uneven.solve())
    even = Program(problem, Options(intervals=4))
    for by in (4, -1):
        with pytest.raises(ValueError, match=f"by {by} intervals is not possible: the mesh has 4"):
            shifted(even, even.solve(), by)
