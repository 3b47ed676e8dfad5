"""Initial points of solves. Specification: direct_collocation, section 6."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import benchmark_problems
import casadi as ca
import numpy as np
import pytest
from numpy.typing import NDArray

from designopt.collocation import (
    Guess,
    Integral,
    Options,
    Phase,
    ProblemError,
    Program,
    SampledTrajectory,
    TrajectoryProblem,
    sampled,
    solve,
)
from designopt.collocation.solve.guess.initial_point import default_trajectory, initial_point
from designopt.collocation.solve.guess.multistart import perturbed
from designopt.collocation.solve.guess.rollout import rollout
from designopt.collocation.transcription.boxes import boxes
from designopt.dynamics.system import System, Variable


def begin(problem: TrajectoryProblem, guess: Guess | None = None, **options: object) -> dict[str, NDArray[np.float64]]:
    """First values by name: states at all points, others at the collocation points, parameters, t0 and tf."""
    program = Program(problem, Options(**{"intervals": 8, **options}), guess)  # type: ignore[arg-type]
    transcription = program.transcription
    limits = boxes(program.problem_functions, problem, transcription.layout, transcription.blocks)
    x = initial_point(program.problem_functions, problem, transcription.layout, limits, guess or Guess())
    indices, point = transcription.layout.phases[0], program.problem_functions.points[0]
    values = {
        name: x[indices.states[:, j]] if j < point.nx else x[indices.point[:, j]] for j, name in enumerate(point.names)
    }
    values |= {name: x[index] for name, index in transcription.layout.parameters.items()}
    values |= {name: x[index] for name, index in indices.times.items()}
    return values


def dae(lowest: float = -math.inf) -> TrajectoryProblem:
    """z is determined by z + z^3 = x."""
    x, z, u = (ca.SX.sym(n) for n in "xzu")
    system = System.from_expressions(
        "dae",
        states=[(Variable("x", ""), x, -z + u)],
        controls=[(Variable("u", ""), u)],
        algebraic=[(Variable("z", "", lowest), z, z + z**3 - x)],
    )
    effort = {"effort": Integral(lambda v: v["u"] ** 2)}
    phase = Phase(system, tf=2.0, initial={"x": 2.0}, final={"x": 10.0}, integrals=effort)
    return TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])


def block() -> Phase:
    """A block moves by 1 m in 1 s, rest to rest."""
    x, v, u = ca.SX.sym("x"), ca.SX.sym("v"), ca.SX.sym("u")
    system = System.from_expressions(
        "block",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, u)],
        controls=[(Variable("u", "N", -20.0, 20.0), u)],
    )
    ends = {"x": 0.0, "v": 0.0}, {"x": 1.0, "v": 0.0}
    effort = {"effort": Integral(lambda s: s["u"] ** 2)}
    return Phase(system, tf=1.0, name="move", initial=ends[0], final=ends[1], integrals=effort)


def test_the_default_guess_is_a_line_between_fixed_ends_the_middle_of_bounds_and_no_control() -> None:
    first = begin(benchmark_problems.cart_pole())
    assert first["x"] == pytest.approx(np.linspace(0.0, 1.0, 17))
    assert first["angle"] == pytest.approx(np.linspace(0.0, math.pi, 17))
    assert first["u"] == pytest.approx(0.0)
    free = begin(benchmark_problems.double_integrator())
    assert free["tf"] == pytest.approx(5.25)  # the middle of 0.5 and 10
    assert begin(benchmark_problems.damped_start())["c"] == pytest.approx(5.025)


def test_a_guessed_duration_is_that_of_the_first_search_and_near_that_of_further_ones() -> None:
    phase = replace(benchmark_problems.double_integrator().phases[0], t0=(1.0, 2.0), tf=(1.5, 40.0), guess_duration=3.0)
    problem = TrajectoryProblem([phase], cost=lambda e: e.duration)
    first = begin(problem)
    assert (first["t0"], first["tf"]) == (1.5, 4.5)
    for seed in range(8):
        start = perturbed(problem, None, np.random.default_rng(seed)).phases[phase.name]
        assert 1.0 <= start.tf - start.t0 <= 9.0


def test_free_times_of_one_range_begin_at_its_ends() -> None:
    """The middle of both is 3: a phase of no length."""
    phase = replace(benchmark_problems.double_integrator().phases[0], t0=(1.0, 5.0), tf=(1.0, 5.0))
    first = begin(TrajectoryProblem([phase], cost=lambda e: e.duration))
    assert (first["t0"], first["tf"]) == (1.0, 5.0)


def test_arrays_are_interpolated_linearly_and_omitted_variables_have_the_default() -> None:
    guess = Guess({"motion": sampled([0.0, 1.0, 2.0], {"x": [0.0, 1.8, 1.0], "u": [0.0, 40.0, 0.0]})})
    first = begin(benchmark_problems.cart_pole(), guess)
    assert first["x"][:9] == pytest.approx(np.linspace(0.0, 1.8, 9))
    assert first["u"][4:13].max() == 20.0  # within the bounds
    assert first["angle"] == pytest.approx(np.linspace(0.0, math.pi, 17))


def test_the_start_of_a_phase_is_computed_for_the_parameters_and_used_without_a_guess() -> None:
    calls: list[tuple[Mapping[str, float], bool]] = []

    def start(parameters: Mapping[str, float], rng: np.random.Generator | None) -> SampledTrajectory:
        calls.append((parameters, rng is not None))
        height = 3.0 if rng is None else 0.0
        return sampled([0.0, 0.5, 1.0], {"x": [0.0, height, 1.0]})

    problem = TrajectoryProblem([replace(block(), start=start)], cost=lambda e: e.integral["effort"])
    assert begin(problem)["x"].max() == pytest.approx(3.0)
    assert begin(problem, Guess({"move": sampled([0.0, 1.0], {"x": [0.0, 1.0]})}))["x"].max() == pytest.approx(1.0)
    assert {with_rng for _, with_rng in calls} == {False}
    solution = solve(problem, Options(intervals=8, starts=2))
    assert solution.success
    assert len(solution.starts) == 2
    assert calls[-1][1]


def test_unknown_rates_are_the_slopes_of_the_guessed_states() -> None:
    times = np.linspace(0.0, 2.0, 201)
    guess = Guess({"motion": sampled(times, {"v": times**2, "omega": np.sin(times)})})
    first = begin(benchmark_problems.cart_pole(), guess, form="residual", intervals=50)
    t = np.linspace(0.0, 2.0, 101)
    assert first["a"][1:-1] == pytest.approx(2.0 * t[1:-1], abs=1e-2)
    assert first["alpha"][1:-1] == pytest.approx(np.cos(t[1:-1]), abs=1e-2)


def test_guessed_unknown_rates_remain() -> None:
    times = np.linspace(0.0, 2.0, 201)
    guess = Guess({"motion": sampled(times, {"v": times**2, "a": np.full(201, 7.0)})})
    assert begin(benchmark_problems.cart_pole(), guess, form="residual")["a"] == pytest.approx(7.0)


def test_algebraic_variables_solve_their_equations_along_the_guess() -> None:
    first = begin(dae(), scheme="hermite_simpson")
    assert first["x"] == pytest.approx(np.linspace(2.0, 10.0, 17))
    assert first["z"] + first["z"] ** 3 == pytest.approx(first["x"])
    assert first["z"][[0, -1]] == pytest.approx([1.0, 2.0])


def test_guessed_algebraic_variables_remain_and_those_without_a_solution_have_the_default() -> None:
    guess = Guess({"motion": sampled([0.0, 2.0], {"z": [5.0, 5.0]})})
    assert begin(dae(), guess)["z"] == pytest.approx(5.0)
    x, z = ca.SX.sym("x"), ca.SX.sym("z")
    never = System.from_expressions(
        "never", states=[(Variable("x", ""), x, z)], algebraic=[(Variable("z", ""), z, z**2 + 1.0 + x**2)]
    )
    problem = TrajectoryProblem([Phase(never, tf=1.0, initial={"x": 0.0})], cost=lambda e: e.final["x"])
    assert begin(problem)["z"] == pytest.approx(0.0)


def test_consistent_first_values_save_iterations() -> None:
    """z at its solution against z = 0, which Newton's method of the solver has to find as well."""
    zero = Guess({"motion": sampled([0.0, 2.0], {"z": [0.0, 0.0]})})
    ours, theirs = (solve(dae(), Options(intervals=20), guess) for guess in (None, zero))
    assert ours.success
    assert ours.iterations < theirs.iterations


def test_a_result_is_a_guess_on_any_mesh_and_in_any_form() -> None:
    problem = benchmark_problems.cart_pole()
    solution = solve(problem, Options(scheme="radau", degree=5, intervals=20, check=False))
    for options in (Options(intervals=60), Options(scheme="radau", intervals=33, form="explicit")):
        repeated = solve(problem, replace(options, check=False), Guess.from_solution(solution))
        assert repeated.history["primal"][0] < 0.1 * solve(problem, replace(options, check=False)).history["primal"][0]
        assert repeated.objective == pytest.approx(solution.objective, rel=1e-4)


def test_parameters_of_a_guess_are_kept_within_their_boxes() -> None:
    problem = benchmark_problems.damped_start()
    assert begin(problem, Guess(parameters={"c": 3.0}))["c"] == 3.0
    assert begin(problem, Guess(parameters={"c": 99.0}))["c"] == 10.0


class Crooked:
    """A trajectory that gives a number for an array."""

    t0, tf = 0.0, 2.0

    def at(self, fractions: NDArray[np.float64]) -> Mapping[str, NDArray[np.float64]]:
        return {"x": np.zeros(3)}


@pytest.mark.parametrize(
    ("guess", "where", "message"),
    [
        (Guess({"flight": sampled([0.0, 1.0], {})}), "flight", "there is no such phase; known: motion"),
        (Guess(parameters={"stiffness": 1.0}), "parameters.stiffness", "there is no such parameter; known: none"),
        (
            Guess({"motion": sampled([0.0, 1.0], {"speed": [0.0, 1.0]})}),
            "motion: speed",
            "there is no such variable; known: x, angle, v, omega, a, alpha, u",
        ),
        (Guess({"motion": Crooked()}), "motion: x", r"has the shape \(3,\)"),
        (
            Guess({"motion": SampledTrajectory(np.array([0.0, 1.0]), {"x": np.array([0.0, np.nan])}, 0.0, 1.0)}),
            "motion: x",
            "is",
        ),
        (Guess({"motion": SampledTrajectory(np.array([0.0, 1.0]), {}, 1.0, 1.0)}), "motion", r"runs from 1\.0 to 1\.0"),
    ],
)
def test_a_bad_guess_is_refused_with_the_name_of_the_wrong_entry(guess: Guess, where: str, message: str) -> None:
    with pytest.raises(ProblemError, match=message) as refused:
        solve(benchmark_problems.cart_pole(), Options(intervals=5), guess)
    assert refused.value.status == "bad_guess"
    assert refused.value.where == where


@pytest.mark.parametrize(
    ("times", "values", "where"),
    [
        ([0.0, 0.0], [1.0, 2.0], "times"),
        ([0.0], [1.0], "times"),
        ([0.0, 1.0], [1.0, math.inf], "x"),
        ([0.0, 1.0], [1.0, 2.0, 3.0], "x"),
    ],
)
def test_invalid_arrays_are_refused(times: list[float], values: list[float], where: str) -> None:
    with pytest.raises(ProblemError) as refused:
        sampled(times, {"x": values})
    assert (refused.value.status, refused.value.where) == ("bad_guess", where)


def test_the_lines_of_a_phase_come_before_those_between_its_ends() -> None:
    trajectory = default_trajectory(replace(block(), guess={"v": (1.0, 3.0), "u": (30.0, -1.0)})).at(
        np.array([0.0, 0.5, 1.0])
    )
    assert trajectory["v"] == pytest.approx([1.0, 2.0, 3.0])
    assert trajectory["u"] == pytest.approx([20.0, 9.5, -1.0])  # clipped to the range first
    assert trajectory["x"] == pytest.approx([0.0, 0.5, 1.0])


def test_a_guess_for_an_unknown_name_is_refused() -> None:
    problem = TrajectoryProblem([replace(block(), guess={"w": (0.0, 0.0)})], cost=lambda e: e.integral["effort"])
    with pytest.raises(ProblemError, match=r"move: guess\.w: there is no such variable; known: x, v, u") as refused:
        Program(problem, Options(intervals=4), Guess())
    assert refused.value.status == "bad_guess"


@pytest.mark.parametrize("line", [(1.0,), (1.0, 2.0, 3.0), 2.0, ("1", "2"), None])
def test_a_line_has_a_first_and_a_last_value(line: Any) -> None:
    problem = TrajectoryProblem([replace(block(), guess={"v": line})], cost=lambda e: e.integral["effort"])
    with pytest.raises(ProblemError, match=r"move: guess\.v: is .*: give its first and its last value") as refused:
        Program(problem, Options(intervals=4))
    assert refused.value.status == "bad_guess"


@pytest.mark.parametrize("value", ["a", [1.0, 2.0], None, float("nan")])
def test_the_guess_of_a_parameter_is_a_finite_number(value: Any) -> None:
    problem = TrajectoryProblem([block()], cost=lambda e: e["weight"], extra=(Variable("weight", "kg", 0.0, 1.0),))
    with pytest.raises(ProblemError, match=r"parameters\.weight: is .*, not a finite number") as refused:
        Program(problem, Options(intervals=4), Guess(parameters={"weight": value}))
    assert refused.value.status == "bad_guess"


def test_a_rollout_is_the_motion_that_the_guessed_controls_cause() -> None:
    """From x = 0 at rest with u = 3 over 1 s: x = 1.5 t^2."""
    problem = benchmark_problems.block_move()
    rolled = rollout(problem, Guess({"motion": sampled([0.0, 1.0], {"u": [3.0, 3.0], "x": [0.0, 9.0]})}))
    s = np.linspace(0.0, 1.0, 11)
    trajectory = rolled.phases["motion"].at(s)
    assert trajectory["x"] == pytest.approx(1.5 * s**2, abs=1e-4)
    assert trajectory["v"] == pytest.approx(3.0 * s, abs=1e-4)
    assert trajectory["u"] == pytest.approx(3.0)


def test_a_rollout_uses_the_guessed_parameters_and_times() -> None:
    rolled = rollout(benchmark_problems.quarter_car(), Guess(parameters={"c": 800.0}))
    assert rolled.parameters == {"k": 20000.0, "c": 800.0}
    assert np.abs(rolled.phases["motion"].at(np.linspace(0.0, 1.0, 201))["xu"]).max() > 0.05  # the bump was felt
    assert rolled.phases["motion"].tf == 3.0


def test_a_solve_with_the_option_rollout_starts_from_the_rollout() -> None:
    """A pulse of the road that the default, no motion at all, does not know."""
    problem = benchmark_problems.quarter_car()
    options = Options(scheme="radau", degree=5, intervals=50, check=False)
    rolled, default = solve(problem, replace(options, rollout=True)), solve(problem, options)
    assert rolled.objective == pytest.approx(default.objective, rel=1e-7)
    assert rolled.history["primal"][0] < 0.1 * default.history["primal"][0]


def test_a_rollout_solves_for_algebraic_variables() -> None:
    """With u = 0 the motion is x' = -z: from z = 1 it is z' = -z / (1 + 3 z^2), or ln z + 3 z^2 / 2 = 3 / 2 - t."""
    trajectory = rollout(dae()).phases["motion"].at(np.array([0.0, 0.5, 1.0]))
    z = np.array([np.roots([1.0, 0.0, 1.0, -x]) for x in trajectory["x"]])
    real = np.array([next(r.real for r in roots if abs(r.imag) < 1e-9) for roots in z])
    assert np.log(real) + 1.5 * real**2 == pytest.approx(1.5 - np.array([0.0, 1.0, 2.0]), abs=1e-4)


def test_phases_of_a_rollout_follow_each_other() -> None:
    single = benchmark_problems.block_move().phases[0]
    first = replace(single, name="first", final={})
    second = replace(single, name="second", t0=None, tf=2.0, initial={})
    problem = TrajectoryProblem([first, second], cost=lambda e: e.phase["first"].integral["effort"])
    push = Guess({"first": sampled([0.0, 1.0], {"u": [2.0, 2.0]})})
    rolled = rollout(problem, push)
    assert rolled.phases["second"].at(np.array([0.0]))["v"] == pytest.approx([2.0], abs=1e-4)
    assert rolled.phases["second"].at(np.array([1.0]))["x"] == pytest.approx([3.0], abs=1e-3)  # 1 + 2 * 1 s


def test_a_rollout_that_escapes_is_refused() -> None:
    """x' = x^2 from 2 is infinite after 0.5 s."""
    phase = Phase(benchmark_problems.escaping(), tf=2.0, initial={"x": 2.0}, final={"x": 0.0})
    problem = TrajectoryProblem([phase], cost=lambda e: e.final["x"])
    with pytest.raises(ProblemError, match="with the guessed controls the motion diverges after 0"):
        rollout(problem)
