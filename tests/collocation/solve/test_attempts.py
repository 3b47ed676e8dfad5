"""After a failure other ways to a solution are tried, in a fixed order; the result says which one led there."""

import math
from dataclasses import replace

import benchmark_problems
import hard_starts
import numpy as np
import pytest

from designopt.collocation import (
    Guess,
    Options,
    Phase,
    Program,
    Solution,
    Status,
    TrajectoryProblem,
    load_solution,
    sampled,
    save_solution,
    solve,
    solve_design,
)
from designopt.collocation.solve.attempts import persist, ways
from designopt.collocation.solve.guess.multistart import perturbed
from designopt.plugin import Diverged

QUICK = Options(check=False)
#: The ways in their order, of a problem with a free time.
ORDER = [
    "rollout",
    "coarse mesh first",
    "unit scales",
    "final values moved",
    *(f"times guessed {factor} times" for factor in ("0.3", "0.1", "3")),
    *(f"start {i}" for i in range(1, 7)),
    "adaptive barrier",
]


def out_of_reach(**more: object) -> TrajectoryProblem:
    """1 m in a tenth of the time that it takes."""
    problem = benchmark_problems.double_integrator()
    return replace(problem, phases=[replace(problem.phases[0], tf=(0.1, 0.2))], **more)


def starts(problem: TrajectoryProblem, count: int) -> list[Guess | None]:
    """The straight line without controls, and perturbed guesses."""
    return [None, *(perturbed(problem, None, np.random.default_rng([0, i])) for i in range(1, count + 1))]


def test_the_fastest_motion_to_rest_is_solved_from_the_straight_line_and_the_message_names_the_attempt() -> None:
    problem = hard_starts.oscillator()
    alone = Program(problem, QUICK).attempt()
    solution = solve(problem, QUICK)

    assert alone.status is Status.LOCALLY_INFEASIBLE
    assert solution.status is Status.SOLVED
    assert [a.way for a in solution.attempts] == ["as stated", "rollout"]
    assert solution.attempts[0].status is Status.LOCALLY_INFEASIBLE
    assert solution.attempts[-1].iterations == solution.iterations
    assert "found by attempt 2, rollout, after: as stated (locally_infeasible)." in solution.message
    # 10 m are five half circles about (1, 0) and (-1, 0): exactly 5 half periods
    assert solution.objective == pytest.approx(5.0 * math.pi, rel=1e-3)


def test_a_solve_that_fails_from_its_guess_succeeds_with_an_adaptive_barrier() -> None:
    problem = hard_starts.oscillator()
    guess = perturbed(problem, None, np.random.default_rng([0, 4]))
    program = Program(problem, QUICK)
    failed, solution = program.attempt(guess=guess), program.solve(guess=guess)

    assert failed.status is Status.LOCALLY_INFEASIBLE
    assert solution.status is Status.SOLVED
    assert solution.objective == pytest.approx(5.0 * math.pi, rel=1e-3)
    assert solution.attempts == (
        ("as stated", failed.status, failed.iterations),
        ("adaptive barrier", Status.SOLVED, solution.iterations),
    )
    assert "found by attempt 2, adaptive barrier, after: as stated (locally_infeasible)." in solution.message
    assert solution.solver.startswith("ipopt")
    assert Program(problem, replace(QUICK, persistent=False)).solve(guess=guess).attempts == ()


def test_the_attempt_with_an_adaptive_barrier_has_the_remaining_iterations() -> None:
    """94 of the first attempt; 219 of the second are needed."""
    problem = hard_starts.oscillator()
    guess = perturbed(problem, None, np.random.default_rng([0, 4]))
    solution = Program(problem, replace(QUICK, max_iterations=150)).solve(guess=guess)

    assert [a.status for a in solution.attempts] == [Status.LOCALLY_INFEASIBLE, Status.ITERATION_LIMIT]
    assert sum(a.iterations for a in solution.attempts) == 150
    assert solution.message.endswith("Other attempts failed too: adaptive barrier.")
    assert Program(problem, replace(QUICK, max_iterations=50)).solve(guess=guess).attempts == ()


def test_a_program_with_a_free_time_is_last_solved_with_a_small_scale_of_it() -> None:
    """A body on ice from a guess of 71.8 s; the iterate is in the program's own scales."""
    problem = hard_starts.hovercraft()
    guess = perturbed(problem, None, np.random.default_rng([0, 10]))
    program = Program(problem, QUICK)
    solution = program.solve(guess=guess)
    transcription = program.transcription
    tf = transcription.layout.phases[0].times["tf"]

    assert [a.way for a in solution.attempts] == ["as stated", "adaptive barrier", "small scales of free times"]
    assert solution.objective == pytest.approx(program.solve(guess=Guess.from_solution(solution)).objective, rel=1e-7)
    assert solution.objective == pytest.approx(
        transcription.shift[tf] + transcription.scale[tf] * solution.iterate.x[tf], rel=1e-12
    )
    assert program.solve(warm="full", previous=solution).iterations < 10


def test_the_attempt_with_a_small_scale_has_the_remaining_iterations_and_keeps_stated_scales() -> None:
    problem = hard_starts.hovercraft()
    guess = perturbed(problem, None, np.random.default_rng([0, 10]))
    with_scale = Program(problem, replace(QUICK, scales={"tf": 49.95})).solve(guess=guess)
    first, second, _ = (a.iterations for a in Program(problem, QUICK).solve(guess=guess).attempts)
    limited = Program(problem, replace(QUICK, max_iterations=first + second + 5)).solve(guess=guess)

    assert [a.way for a in with_scale.attempts] == ["as stated", "adaptive barrier"]
    assert [a.iterations for a in limited.attempts] == [first, second, 5]


@pytest.mark.parametrize("strategy", ["monotone", "adaptive"])
def test_a_stated_barrier_is_not_tried_again_under_another_name(strategy: str) -> None:
    program = Program(out_of_reach(), replace(QUICK, ipopt={"mu_strategy": strategy}))

    assert program.solve().attempts == ()
    assert [name for name, _ in ways(program, program.problem, None)] == ORDER[:-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", hard_starts.PROBLEMS)
def test_every_one_of_twenty_perturbed_guesses_leads_to_a_solution(name: str) -> None:
    problem = hard_starts.PROBLEMS[name]()

    for guess in starts(problem, 20):
        assert solve(problem, QUICK, guess).status is Status.SOLVED


@pytest.mark.parametrize("name", ["pendulum", "car"])
def test_some_perturbed_guesses_of_other_problems_lead_to_a_solution(name: str) -> None:
    problem = hard_starts.PROBLEMS[name]()

    solutions = [solve(problem, QUICK, guess) for guess in starts(problem, 1)]
    assert [f.status for f in solutions] == [Status.SOLVED] * 2
    assert any(f.attempts for f in solutions)


def test_a_failed_solve_is_reported_with_all_attempts() -> None:
    alone = Program(out_of_reach(), QUICK).attempt()
    solution = solve(out_of_reach(), QUICK)

    assert solution.status is Status.LOCALLY_INFEASIBLE
    assert [a.way for a in solution.attempts] == ["as stated", *ORDER]
    assert solution.message.startswith(alone.message)
    assert f"Other attempts failed too: {', '.join(ORDER)}." in solution.message
    np.testing.assert_array_equal(solution.iterate.x, alone.iterate.x)


def test_a_failed_solve_is_final_without_the_option_persistent() -> None:
    solution = solve(out_of_reach(), replace(QUICK, persistent=False))

    assert solution.attempts == ()
    assert "tried in vain" not in solution.message


def test_a_solve_that_succeeds_tries_nothing() -> None:
    assert solve(benchmark_problems.double_integrator(), QUICK).attempts == ()


@pytest.mark.parametrize(
    ("status", "worth"),
    [(Status.CANCELLED, False), (Status.TIME_LIMIT, False), (Status.DIVERGING, False), (Status.STALLED, True)],
)
def test_only_failures_that_another_way_may_solve_are_followed_by_one(status: Status, worth: bool) -> None:
    problem = benchmark_problems.double_integrator()
    program = Program(problem, QUICK)
    failed = replace(program.solve(), status=status)

    assert bool(persist(program, problem, None, failed).attempts) is worth


def test_ways_that_do_not_apply_to_a_problem_are_skipped() -> None:
    """No free time; and the controls of the guess lead beyond all bounds."""
    runaway = benchmark_problems.system(
        "runaway", {"x": lambda s: s["x"] ** 3 + s["u"]}, ["u"], bounds={"u": (0.0, 1.0)}
    )
    problem = TrajectoryProblem(
        [Phase(runaway, tf=1.0, initial={"x": 1.0}, final={"x": 0.0})], cost=lambda e: e.final["x"]
    )
    ways = [a.way for a in solve(problem, QUICK).attempts]

    assert ways[:3] == ["as stated", "coarse mesh first", "unit scales"]
    assert not [way for way in ways if way.startswith("times") or way in ("rollout", "final values moved")]


def test_attempts_end_at_their_limit_of_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = out_of_reach()
    program = Program(problem, QUICK)
    failed = replace(program.attempt(), iterations=250)
    monkeypatch.setattr(Program, "attempt", lambda *_, **__: replace(failed, iterations=700))

    assert len(persist(program, problem, None, failed).attempts) == 1 + 3  # 2100 are more than 1500


def test_an_infeasible_design_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = Program.attempt
    monkeypatch.setattr(Program, "attempt", lambda *a, **k: calls.append(1) or real(*a, **k))
    with pytest.raises(Diverged):
        solve_design(out_of_reach(), {})

    assert len(calls) == 1


@pytest.mark.parametrize("way", ORDER[:7])
def test_each_way_leads_to_the_optimum_of_an_easy_problem(way: str) -> None:
    problem = benchmark_problems.sliding_mass()
    program = Program(problem, QUICK)
    solution: Solution = dict(ways(program, problem, None))[way]()[-1]

    assert solution.status is Status.SOLVED
    assert solution.objective == pytest.approx(0.4, rel=1e-6)
    # it can be gone on from in the program itself, with its multipliers
    warm = program.solve(warm="full", previous=solution)
    assert warm.status is Status.SOLVED
    assert warm.objective == pytest.approx(0.4, rel=1e-6)
    assert warm.iterations <= 12


def test_a_way_of_several_solves_counts_the_iterations_of_all() -> None:
    problem = benchmark_problems.sliding_mass()
    program = Program(problem, replace(QUICK, rollout=True))  # the coarse mesh comes first, then
    failed = replace(program.solve(), status=Status.LOCALLY_INFEASIBLE)
    solution = persist(program, problem, None, failed)

    assert solution.attempts[-1].way == "coarse mesh first"
    assert solution.attempts[-1].iterations > solution.iterations


def test_all_ways_start_from_the_guess() -> None:
    """Its controls are those of the rollout."""
    problem = hard_starts.oscillator()
    times = np.linspace(0.0, 16.0, 101)
    still = {"x": np.full(101, 10.0), "v": np.zeros(101), "u": -np.sign(np.sin(times))}
    solution = solve(problem, QUICK, Guess({"motion": sampled(times, still)}))

    assert solution.status is Status.SOLVED


def test_attempts_are_saved(tmp_path: object) -> None:
    solution = solve(out_of_reach(), replace(QUICK, max_iterations=5))
    save_solution(solution, f"{tmp_path}/found.npz")

    assert load_solution(f"{tmp_path}/found.npz").attempts == solution.attempts
