"""Controls that are constant over equal pieces of a phase, as those of a digital controller."""

import math
from dataclasses import replace

import benchmark_problems
import numpy as np
import pytest
from benchmark_problems import fastest, point_mass

from designopt.collocation import (
    Guess,
    Integral,
    Options,
    Phase,
    ProblemError,
    Program,
    Rate,
    Refinement,
    Status,
    TrajectoryProblem,
    load_solution,
    save_solution,
    solve,
    with_rates,
)

QUICK = Options(check=False)


def piecewise(problem: TrajectoryProblem, **pieces: int) -> TrajectoryProblem:
    return replace(problem, phases=[replace(problem.phases[0], held_controls=pieces)])


def steps_of_block(pieces: int) -> np.ndarray:
    """The forces of least effort (pieces,) from rest to rest over 1 m in 1 s, by the normal equations: the exact
    optimum of a discrete-time problem. With h = 1/n, v = h sum u_k and x = h^2 sum (n - k - 1/2) u_k."""
    h = 1.0 / pieces
    A = np.array([np.full(pieces, h), h * h * (pieces - np.arange(pieces) - 0.5)])
    return np.asarray(A.T @ np.linalg.solve(A @ A.T, [0.0, 1.0]))


@pytest.mark.parametrize("pieces", [2, 5, 12])
@pytest.mark.parametrize("degree", [1, 3, 5])
def test_the_least_effort_of_a_held_force_is_that_of_the_discrete_time_problem(pieces: int, degree: int) -> None:
    options = replace(QUICK, degree=degree, intervals=2 * pieces)
    solution = solve(piecewise(benchmark_problems.block_move(), u=pieces), options)
    exact = steps_of_block(pieces)

    assert solution.status is Status.SOLVED
    if degree > 1:  # degree 1 is the implicit Euler rule
        assert solution.objective == pytest.approx(float(exact @ exact) / pieces, rel=1e-8)
        middles = (np.arange(pieces) + 0.5) / pieces
        np.testing.assert_allclose(solution.interpolate(middles)["u"], exact, rtol=1e-7, atol=1e-9)
    else:
        assert solution.objective > 12.0


def test_the_control_is_one_number_on_each_piece_whatever_the_mesh() -> None:
    solution = solve(piecewise(benchmark_problems.cart_pole(), u=20), Options(intervals=50, degree=4))
    times = np.linspace(0.0, 2.0, 20 * 7, endpoint=False) + 2.0 / 20 / 14
    forces = solution.interpolate(times)["u"].reshape(20, 7)

    assert solution.status is Status.SOLVED
    assert len(solution.phase.mesh) == 60  # the next number that 20 divides
    assert np.ptp(forces, axis=1).max() < 1e-9
    assert np.abs(np.diff(forces[:, 0])).max() > 1.0
    assert solution.objective > 58.80767
    assert solution.phase.resimulation_error < 1e-3


def test_more_pieces_come_near_the_free_control() -> None:
    costs = [solve(piecewise(benchmark_problems.cart_pole(), u=n), QUICK).objective for n in (10, 20, 40, 80)]

    above = np.array(costs) - 58.80766746
    assert (above > 0.0).all()
    np.testing.assert_allclose(above[1:-1] / above[2:], 4.0, rtol=0.25)  # of the second order in the period


def test_free_times_stretch_the_pieces() -> None:
    """The fastest move switches in the middle: two pieces are enough."""
    solution = solve(piecewise(benchmark_problems.double_integrator(), u=2), QUICK)

    assert solution.objective == pytest.approx(2.0, rel=1e-7)


def test_a_held_rate_makes_a_control_that_is_linear_on_each_piece() -> None:
    problem = piecewise(with_rates(benchmark_problems.block_move(), {"u": Rate()}), u_rate=4)
    solution = solve(problem, replace(QUICK, intervals=16))

    assert solution.objective == pytest.approx(12.0, rel=1e-8)  # 6 - 12 t is linear
    assert solution.phase.kinds["u"] == "state"


def test_refinement_keeps_the_pieces() -> None:
    fine = Options(intervals=8, refine=Refinement(1e-8))
    for options in (fine, replace(fine, refine=Refinement(1e-8, method="hp"))):
        solution = solve(piecewise(benchmark_problems.cart_pole(), u=8), options)
        forces = solution.interpolate((np.arange(80) + 0.5) / 40.0)["u"].reshape(8, 10)
        assert solution.status is Status.SOLVED
        assert len(solution.rounds) > 1
        assert np.ptp(forces, axis=1).max() < 1e-9


def test_one_control_may_be_held_and_another_free() -> None:
    plant = benchmark_problems.system("two", {"x": lambda s: s["u"] + s["w"] + s["x"]}, ["u", "w"])
    phase = Phase(
        plant,
        tf=1.0,
        initial={"x": 0.0},
        final={"x": 1.0},
        held_controls={"w": 3},
        integrals={"effort": Integral(lambda v: v["u"] ** 2 + v["w"] ** 2)},
    )
    solution = solve(TrajectoryProblem([phase], cost=lambda e: e.integral["effort"]), replace(QUICK, intervals=9))

    times = np.linspace(0.01, 0.32, 9)
    assert np.ptp(solution.interpolate(times)["w"]) < 1e-10
    assert np.ptp(solution.interpolate(times)["u"]) > 0.05


def test_controls_at_the_first_point_belong_to_the_first_piece() -> None:
    problem = piecewise(benchmark_problems.block_move(), u=4)
    problem = replace(problem, figures={"first": lambda e: e.initial["u"]})
    solution = solve(problem, replace(QUICK, intervals=8))

    assert solution.figures["first"] == pytest.approx(steps_of_block(4)[0], rel=1e-8)


def test_a_singular_control_that_is_held_is_determined() -> None:
    from singular_arcs import damped_to_rest

    assert solve(piecewise(damped_to_rest(), u=20), QUICK).singular_arcs == ()


def test_a_held_problem_is_solved_from_a_result_and_saved(tmp_path: object) -> None:
    problem = piecewise(benchmark_problems.cart_pole(), u=10)
    program = Program(problem)
    solution = program.solve()
    save_solution(solution, f"{tmp_path}/held.npz")
    repeated = program.solve(guess=Guess.from_solution(load_solution(f"{tmp_path}/held.npz")))

    assert repeated.objective == pytest.approx(solution.objective, rel=1e-8)
    with pytest.raises(ProblemError, match="u: 20 were u: 10 when the program was built"):
        program.solve(piecewise(problem, u=20))


@pytest.mark.parametrize(
    ("pieces", "options", "message"),
    [
        ({"x": 4}, QUICK, r"held\.x: there is no such control; known: u"),
        ({"u": 0}, QUICK, r"held_controls\.u: is 0: give the number of equal pieces"),
        ({"u": 2.5}, QUICK, r"held_controls\.u: is 2\.5: give the number"),
        ({"u": True}, QUICK, r"held_controls\.u: is True: give the number"),
        ({"u": 4}, Options(scheme="hermite_simpson"), "controls of hermite_simpson have .*: use radau"),
    ],
)  # fmt: skip
def test_what_cannot_be_held_is_refused(pieces: dict[str, int], options: Options, message: str) -> None:
    with pytest.raises(ProblemError, match=message) as caught:
        Program(piecewise(benchmark_problems.block_move(), **pieces), options)

    assert caught.value.status in ("bad_statement", "bad_bounds")


def test_a_mesh_without_nodes_between_the_pieces_is_refused() -> None:
    from designopt.collocation import Mesh, radau

    problem = piecewise(fastest(Phase(point_mass(1.0, 1.0), tf=math.pi)), u=4)
    with pytest.raises(ProblemError, match="has no nodes between 4 equal pieces"):
        Program(problem, meshes=[Mesh.uniform(radau(3), 6)])
