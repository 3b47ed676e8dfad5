"""Neighbouring problems are solved from one another, and what was tried is told."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_motion.cart_pole import CartPole

from designopt.collocation import Guess, Options, ProblemError, Program, Status, solve_chain, solve_near, verify
from designopt.collocation.solve.guess.warm import nearest_neighbour_path


def swing_ups(lengths):
    """The cart-pole of 2 s for some lengths of its pole."""
    problem = CartPole().trajectory_problem({})
    return [replace(problem, parameters={"pole_length": float(length), "duration": 2.0}) for length in lengths]


@pytest.fixture(scope="module")
def program():
    return Program(swing_ups([0.5])[0], Options(intervals=40))


def test_a_path_goes_on_to_the_nearest_point_that_is_left():
    assert nearest_neighbour_path([[0.0], [3.0], [1.0], [2.5], [2.0]]).tolist() == [0, 2, 4, 3, 1]


def test_every_column_of_a_path_counts_by_its_range():
    # from the first point 1e-3 is the whole range of the second column, 1 a tenth of that of the first
    points = [[0.0, 0.0], [0.0, 1e-3], [1.0, 0.0], [10.0, 0.0]]
    assert nearest_neighbour_path(points).tolist()[1] == 2


def test_a_chain_reaches_the_optima_of_cold_starts_in_far_fewer_iterations(program):
    problems = swing_ups(np.linspace(0.5, 0.58, 9))
    warm = list(solve_chain(program, problems))
    cold = [program.solve(problem) for problem in problems]
    assert all(s.success for s in warm)
    np.testing.assert_allclose([s.objective for s in warm], [s.objective for s in cold], rtol=1e-7)
    assert sum(s.iterations for s in warm[1:]) <= 0.6 * sum(s.iterations for s in cold[1:])
    assert [s.warm_path for s in warm[:2]] == [(), ("full",)]


def test_a_warm_start_that_does_not_help_is_followed_by_one_from_the_variables_alone(program):
    near = program.solve(swing_ups([0.5])[0])
    solution = solve_near(program, swing_ups([0.45])[0], near, cold_iterations=2)  # 1 iteration at most counts as help
    assert solution.success
    assert solution.warm_path == ("full", "primal")


def test_a_failed_warm_start_ends_in_a_cold_one():
    program = Program(swing_ups([0.5])[0], Options(intervals=40, max_iterations=1))
    previous = program.solve()
    assert not previous.success
    solution = solve_near(program, swing_ups([0.3])[0], previous, cold_iterations=20)
    assert not solution.success
    assert solution.warm_path == ("full", "primal", "none")


def test_verification_solves_a_sample_cold_and_tells_where_a_chain_is_on_another_optimum(program):
    # from 0.42 m on the chain stays on swing-ups that need up to 10 % less than what the straight line leads to
    problems = swing_ups([0.42, 0.45, 0.48])
    solutions = dict(enumerate(solve_chain(program, problems)))
    departures = verify(program, problems, solutions, count=3, seed=1)
    assert [d.number for d in departures] == [1, 2]
    assert all(d.warm < 0.97 * d.cold for d in departures)
    same = {0: solutions[0]}
    assert verify(program, problems, same, count=3, seed=1) == []


def test_a_start_near_a_solution_on_a_coarser_mesh_stays_in_its_optimum(program):
    """The chain has a swing-up for 10 % less than the cold one; on twice the intervals it costs the same to 0.1 %."""
    problems = swing_ups([0.42, 0.45])
    chained = list(solve_chain(program, problems))[1]
    finer = Program(problems[1], Options(intervals=80))
    near = finer.solve(warm="near", previous=chained)
    assert near.success
    assert near.objective == pytest.approx(chained.objective, rel=1e-3)
    assert near.iterations < 0.5 * finer.solve().iterations
    plain = finer.solve(guess=Guess.from_solution(chained))
    assert near.history["barrier"][0] < 0.1 * plain.history["barrier"][0]
    with pytest.raises(ProblemError, match="belongs to another program"):
        finer.solve(warm="primal", previous=chained)


def test_verification_judges_small_objectives_by_their_size():
    (problem,) = swing_ups([0.5])
    small = replace(problem, cost=lambda e: 1e-9 * problem.cost(e))
    program = Program(small, Options(intervals=40))
    solution = program.solve()
    worse = replace(solution, objective=1.001 * solution.objective)
    assert verify(program, [small], {0: solution}, count=1, seed=1) == []
    assert [d.warm for d in verify(program, [small], {0: worse}, count=1, seed=1)] == [worse.objective]


@pytest.mark.parametrize("warm", ["primal", "full"])
def test_a_solution_of_another_program_is_no_warm_start_but_a_guess(program, warm):
    solution = Program(swing_ups([0.5])[0], Options(intervals=20)).solve()
    with pytest.raises(ProblemError, match=r"previous: has \d+ variables and \d+ equations, this program") as refused:
        program.solve(warm=warm, previous=solution)
    assert refused.value.status == "bad_guess"
    assert "Guess.from_solution" in str(refused.value)
    assert program.solve(guess=Guess.from_solution(solution)).success


def test_an_unknown_kind_of_warm_start_is_refused(program):
    with pytest.raises(ValueError, match="warm must be one of none, near, primal, full, not 'hot'"):
        program.solve(warm="hot", previous=program.solve())


class Stopped:
    """A program whose solves are stopped on request, all but the first."""

    def __init__(self, program):
        self.program, self.solves = program, 0

    def attempt(self, problem, **options):
        self.solves += 1
        solution = self.program.solve(problem, **options)
        return solution if self.solves == 1 else replace(solution, status=Status.CANCELLED)


def test_a_request_to_stop_ends_a_chain_and_is_not_followed_by_another_try(program):
    stopped = Stopped(program)
    solutions = list(solve_chain(stopped, swing_ups([0.5, 0.51, 0.52])))
    assert [s.status for s in solutions] == [Status.SOLVED, Status.CANCELLED]
    assert stopped.solves == 2
    assert solutions[-1].warm_path == ("full",)


@pytest.mark.parametrize(("iterations", "path"), [(5, ("full",)), (6, ("full", "primal"))])
def test_multipliers_help_where_they_save_half_of_the_iterations(iterations, path):
    """A program that needs 10 iterations cold, `iterations` with multipliers and 9 with variables alone."""
    problem, solution = swing_ups([0.5])[0], Program(swing_ups([0.5])[0], Options(intervals=10)).solve()

    class Counted:
        def attempt(self, problem, warm, previous):
            return replace(solution, iterations={"full": iterations, "primal": 9, "none": 10}[warm])

    assert solve_near(Counted(), problem, solution, cold_iterations=10).warm_path == path
