"""Variables as they were some time ago: optima in closed form, the order of the scheme, refusals."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from benchmark_problems import rest_to_rest, system
from delayed import product
from scipy.integrate import solve_ivp

from designopt.collocation import (
    Delay,
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
    sensitivities,
    solve,
    with_rates,
)
from designopt.collocation.statement.scheme import radau
from designopt.collocation.transcription.mesh.mesh import Mesh
from designopt.dynamics.signals import Signal
from designopt.dynamics.system import System


def decaying() -> System:
    return system("decaying", {"x": lambda s: s["u"] - s["late"]}, ["u", "late"])


def least_effort(by: float, history: Any = 1.0, tf: float = 2.0) -> TrajectoryProblem:
    """x' = u - x(t - by) from 1 to 0 with the least int u^2 / 2."""
    phase = Phase(
        decaying(),
        tf=tf,
        initial={"x": 1.0},
        final={"x": 0.0},
        integrals={"effort": Integral(lambda v: 0.5 * v["u"] ** 2)},
        delays={"late": Delay("x", by, history)},
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])


def response(by: float, t: float) -> float:
    """x(t) of x' = -x(t - by) from 1 at 0 and 0 before: sum of (-1)^k (t - k by)^k / k! (method of steps)."""
    return sum((-1) ** k * (t - k * by) ** k / math.factorial(k) for k in range(60) if t >= k * by)


def uncontrolled(by: float, tf: float) -> float:
    """Where x' = -x(t - by) leads from a history of 1: 1 - t at first, then integrals of the response."""
    ages, weights = np.polynomial.legendre.leggauss(30)
    total = response(by, tf)
    edges = [0.0, *sorted({tf - k * by for k in range(60) if 0.0 < tf - k * by < by}), min(by, tf)]
    for a, b in itertools.pairwise(edges):  # -history(s - by) for s below by
        at = 0.5 * (a + b) + 0.5 * (b - a) * ages
        total -= 0.5 * (b - a) * sum(w * response(by, tf - s) for w, s in zip(weights, at, strict=True))
    return total


def least(by: float, tf: float = 2.0) -> float:
    """The square of where the motion ends without control, over twice the integral of the squared response."""
    ages, weights = np.polynomial.legendre.leggauss(30)
    edges = [0.0, *(k * by for k in range(1, 60) if k * by < tf), tf]
    square = 0.0
    for a, b in itertools.pairwise(edges):
        at = 0.5 * (a + b) + 0.5 * (b - a) * ages
        square += 0.5 * (b - a) * sum(w * response(by, s) ** 2 for w, s in zip(weights, at, strict=True))
    return uncontrolled(by, tf) ** 2 / (2.0 * square)


def test_delays_of_a_state_and_a_control_give_the_published_optimum() -> None:
    found = solve(product())

    assert found.status is Status.SOLVED
    assert found.objective == pytest.approx(2.0 + math.tanh(1.0), rel=1e-9)
    assert found.singular_arcs == ()
    # d(2 a^2 + a tanh a)/da at 1
    assert found.phase.costates["x"][0] == pytest.approx(4.0 + math.tanh(1.0) + 1.0 / math.cosh(1.0) ** 2, rel=1e-7)
    assert found.error_estimate < 1e-7
    assert found.phase.segment_errors.max() < 1e-6


@pytest.mark.parametrize("by", [0.25, 0.7, 1.0, 1.9, 5.0])
def test_the_least_effort_is_that_of_the_method_of_steps_whatever_the_delay(by: float) -> None:
    found = solve(least_effort(by))

    assert found.objective == pytest.approx(least(by), rel=2e-7)
    phase = found.phase
    age = 2.0 - phase.times
    theirs = np.array([response(by, t) for t in age])
    assert phase.costates["x"] / phase.costates["x"][-1] == pytest.approx(theirs, abs=2e-4)
    assert phase.values["u"][1:] == pytest.approx(-phase.costates["x"][1:], abs=1e-6)


def logistic(tau: float, tf: float, rate: float = 1.5) -> tuple[TrajectoryProblem, float]:
    """x' = r x (1 - x(t - tau)) from a history that grows (Hutchinson 1948), and its end by the method of steps."""
    of = system("logistic", {"x": lambda s: rate * s["x"] * (1.0 - s["late"])}, ["late"])

    def history(t: float) -> float:
        return 0.5 * math.exp(t)

    phase = Phase(of, tf=tf, initial={"x": 0.5}, guess={"x": (0.5, 0.5)}, delays={"late": Delay("x", tau, history)})
    pieces: list[tuple[float, Any]] = []

    def past(t: float) -> float:
        return history(t) if t <= 0.0 else next(float(of(t)[0]) for end, of in pieces if t <= end + 1e-14)

    begin, x = 0.0, 0.5
    while begin < tf - 1e-12:
        end = min(begin + tau, tf)
        run = solve_ivp(
            lambda t, y: [rate * y[0] * (1.0 - past(t - tau))], (begin, end), [x], "DOP853", rtol=1e-12, atol=1e-13,
            dense_output=True,
        )  # fmt: skip
        pieces.append((end, run.sol))
        begin, x = end, float(run.y[0, -1])
    return TrajectoryProblem([phase], cost=lambda e: 0.0), x


def test_costates_of_a_delayed_state_make_the_hamiltonian_stationary() -> None:
    """H = x^2 + u^2 + costate (u - 1.5 x(t - 0.37)), so that costate = -2 u. The delay does not divide the mesh: the
    earlier states lie within intervals and depend on the left ends of these too."""
    of = system("late", {"x": lambda s: s["u"] - 1.5 * s["x_late"]}, ["u", "x_late"])
    cost = {"cost": Integral(lambda v: v["x"] ** 2 + v["u"] ** 2)}
    phase = Phase(of, tf=2.0, initial={"x": 1.0}, integrals=cost, delays={"x_late": Delay("x", 0.37, 1.0)})
    problem = TrajectoryProblem([phase], cost=lambda e: e.integral["cost"])
    found = solve(problem, Options(check=False), meshes=[Mesh.uniform(radau(3), 34)]).phase
    nodes = found.mesh.bases[1:]
    assert found.costates["x"][nodes] == pytest.approx(-2.0 * found.values["u"][nodes], abs=1e-4)


def test_the_order_of_the_scheme_is_kept() -> None:
    problem, exact = logistic(1.0, 4.0)
    errors = [
        abs(solve(problem, Options(intervals=n, check=False)).phase.values["x"][-1] - exact) for n in (16, 32, 64)
    ]

    assert np.log2(np.divide(errors[:-1], errors[1:])) == pytest.approx(5.0, abs=0.3)  # radau of degree 3


def test_a_delay_that_divides_nothing_keeps_all_but_one_order() -> None:
    problem, exact = logistic(0.77, 4.0)
    errors = [abs(solve(problem, Options(intervals=n, check=False)).phase.values["x"][-1] - exact) for n in (16, 64)]

    assert np.log2(errors[0] / errors[1]) / 2.0 > 3.8


def test_refinement_and_a_given_mesh_may_ignore_the_kinks() -> None:
    problem, exact = logistic(0.77, 4.0)
    found = solve(problem, Options(intervals=10, refine=Refinement(1e-8)))

    assert found.status is Status.SOLVED
    assert found.phase.values["x"][-1] == pytest.approx(exact, abs=1e-7)


def test_the_first_mesh_has_nodes_where_the_motion_bends() -> None:
    mesh = solve(product(delays={"x_late": Delay("x", 0.7, 1.0), "u_late": Delay("u", 2.0, 0.0)})).phase.mesh
    times = 3.0 * mesh.nodes

    for kink in (0.7, 1.4, 2.1, 2.7, 2.0, 2.3, 1.0, 1.6):  # from the start, and from the end back
        assert np.abs(times - kink).min() < 1e-9
    assert 50 <= len(mesh) <= 75


def late_block(by: float) -> TrajectoryProblem:
    """A block moved by 1 in 2 s with the least effort by a force that acts late and changes slowly."""
    block = system("late_block", {"x": lambda s: s["v"], "v": lambda s: s["late"]}, ["u", "late"])
    rest = {"x": 0.0, "v": 0.0}
    effort = {"effort": Integral(lambda v: v["u"] ** 2)}
    delays = {"late": Delay("u", by, 0.0)}
    phase = Phase(block, tf=2.0, initial=rest, final={**rest, "x": 1.0}, integrals=effort, delays=delays)
    return with_rates(TrajectoryProblem([phase], cost=lambda e: e.integral["effort"]), {"u": Rate(-15.0, 15.0)})


@pytest.mark.parametrize("by", [0.1, 0.13])
def test_intervals_that_the_delay_does_not_divide_are_made_such_that_it_does(by: float) -> None:
    """Between points nothing keeps a control from its limits: read there it is 2 to 7 % too cheap."""
    of_meshes = [solve(late_block(by), Options(intervals=n)) for n in (23, 40)]
    mesh = of_meshes[0].phase.mesh
    fine = solve(late_block(by), Options(intervals=400)).objective

    assert all(np.abs(mesh.nodes - node + by / 2.0).min() < 1e-9 for node in mesh.nodes if node > by / 2.0)
    assert [found.objective for found in of_meshes] == pytest.approx([fine, fine], rel=5e-4)


def test_refinement_keeps_intervals_a_delay_apart() -> None:
    found = solve(late_block(0.1), Options(intervals=20, refine=Refinement(1e-4)))
    nodes = found.phase.mesh.nodes

    assert found.status is Status.SOLVED
    assert len(found.rounds) > 1
    assert all(np.abs(nodes - node + 0.05).min() < 1e-9 for node in nodes if node > 0.05)


def late_force(*by: float) -> TrajectoryProblem:
    """A block moves by 1 from rest to rest within 1 s by the mean of a force as it was `by` ago, each with the least
    int u^2. By one delay D = 1 - by remain: 12 / D^3."""
    late = [f"late{k}" for k in range(len(by))]
    of = system("late", {"x": lambda s: s["v"], "v": lambda s: sum(s[n] for n in late) / len(by)}, ["u", *late])
    return rest_to_rest(of, delays={name: Delay("u", each, 0.0) for name, each in zip(late, by, strict=True)})


@pytest.mark.parametrize("by", [0.013, 0.05, 0.15, 0.7])
@pytest.mark.parametrize("more", [{}, {"refine": Refinement(1e-6)}])
def test_a_control_cannot_hide_between_the_points_that_look_back_to_it(by: float, more: dict[str, Any]) -> None:
    """It may jump at nodes; were there no node a delay later, a saw-tooth would cost a quarter of the optimum less."""
    found = solve(late_force(by), Options(intervals=10, **more))

    assert found.status is Status.SOLVED
    assert found.objective == pytest.approx(12.0 / (1.0 - by) ** 3, rel=1e-6)


def least_late_effort(*by: float) -> float:
    """The exact int u^2 of `late_force`: with m(t) = mean of 1 where t + by < 1, p(t) = mean of (1 - t - by)+, what u
    adds to v(1) is int m u and to x(1) int p u, and the least effort is the last entry of their inverse Gram matrix.
    It jumps one delay before the end."""
    t, w = np.polynomial.legendre.leggauss(4)
    edges = sorted({0.0, *(1.0 - d for d in by), 1.0})
    times = np.concatenate([a + (b - a) * (t + 1.0) / 2.0 for a, b in itertools.pairwise(edges)])
    weights = np.concatenate([(b - a) * w / 2.0 for a, b in itertools.pairwise(edges)])
    m = np.mean([times + d < 1.0 for d in by], axis=0)
    p = np.mean([np.maximum(1.0 - times - d, 0.0) for d in by], axis=0)
    return float(np.linalg.inv([[weights @ (a * b) for a in (m, p)] for b in (m, p)])[1, 1])


@pytest.mark.parametrize("by", [(0.2, 0.3217), (0.15, 0.15 * math.sqrt(2.0)), (0.05, 0.0777), (0.1, 0.13, 0.29)])
def test_several_delays_of_a_control_have_the_nodes_of_all_their_sums_and_those_before_the_end(
    by: tuple[float, ...],
) -> None:
    """Without a node where the control jumps before the end the cost is up to 0.3 % too large, and no error estimate
    tells."""
    found = solve(late_force(*by), Options(intervals=10))
    times = found.phase.mesh.nodes

    assert found.objective == pytest.approx(least_late_effort(*by), rel=1e-8)
    assert all(np.abs(times - t).min() < 1e-9 for s in by for t in times + s if t < 1.0)
    assert all(np.abs(times - 1.0 + s).min() < 1e-9 for s in by)


def test_a_given_mesh_gets_the_nodes_that_a_delayed_control_needs() -> None:
    given = Mesh.uniform(radau(3), 10)
    found = solve(late_force(0.13), meshes=[given])

    assert set(given.nodes) < set(found.phase.mesh.nodes)
    assert found.objective == pytest.approx(12.0 / 0.87**3, rel=5e-3)
    assert found.objective > 12.0 / 0.87**3 - 1e-6
    with pytest.raises(ProblemError, match="meshes: 2 given for 1 phase: give one for each"):
        solve(late_force(0.13), meshes=[given, given])


def test_a_control_whose_delay_needs_too_many_intervals_is_refused() -> None:
    with pytest.raises(ProblemError, match=r"motion: delays: .*more than 2000 intervals here"):
        solve(late_force(1e-6))
    with pytest.raises(ProblemError, match="make one delay a multiple of the other"):
        solve(late_force(0.011, 0.0123456, 0.01456789))


def test_a_delay_as_long_as_the_phase_leaves_it_to_its_history() -> None:
    found = solve(late_force(1.0), Options(intervals=10))

    assert found.status is Status.LOCALLY_INFEASIBLE
    assert found.phase.values["late0"] == pytest.approx(0.0, abs=1e-9)


def test_no_derivative_by_the_times_of_a_phase_with_delays_is_given() -> None:
    """With them the places that are looked back to would move over the mesh."""
    problem = least_effort(0.5)
    found = solve(problem)

    assert set(sensitivities(problem, found).names) == {"motion.initial.x", "motion.final.x"}
    with pytest.raises(ProblemError, match=r"motion\.tf: is not a number of the problem"):
        sensitivities(problem, found, ["motion.tf"])
    assert math.isnan(found.dJ_dq["motion.tf"])


def test_a_history_is_a_number_a_function_or_a_signal() -> None:
    times = np.linspace(-0.5, 0.0, 30)
    results = [
        solve(least_effort(0.5, history)).objective
        for history in (lambda t: math.cos(t), Signal(times, np.cos(times)), 1.0)
    ]

    assert results[0] == pytest.approx(results[1], rel=1e-7)
    assert results[0] != pytest.approx(results[2], rel=1e-3)


def test_a_program_takes_another_history_but_not_another_delay() -> None:
    program = Program(least_effort(0.5))
    program.solve()

    assert program.solve(least_effort(0.5, 2.0)).objective == pytest.approx(
        solve(least_effort(0.5, 2.0)).objective, rel=1e-8
    )
    with pytest.raises(ProblemError, match=r"late: x, 0\.3.* of the phase ago were late: x, 0\.25.*build it again"):
        program.solve(least_effort(0.6))


def test_a_delayed_variable_at_the_left_end_is_its_history() -> None:
    problem = product(delays={"x_late": Delay("x", 1.0, 0.8), "u_late": Delay("u", 2.0, 0.0)})
    named = TrajectoryProblem(
        problem.phases, cost=problem.cost, figures={"first": lambda e: e.initial["x_late"] + e.initial["u"]}
    )
    found = solve(named)

    assert found.phase.mesh.left_point
    assert found.figures["first"] - found.phase.values["u"][0] == pytest.approx(0.8, abs=1e-10)


def test_a_warm_start_and_a_saved_result_know_delays(tmp_path: Any) -> None:
    program = Program(product())
    first = program.solve()
    again = program.solve(warm="full", previous=first)
    finer = solve(product(), Options(intervals=80), Guess.from_solution(first))
    save_solution(first, tmp_path / "found.npz")

    assert again.iterations <= first.iterations
    assert finer.objective == pytest.approx(first.objective, rel=1e-8)
    assert load_solution(tmp_path / "found.npz").phase.values["x_late"] == pytest.approx(first.phase.values["x_late"])


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"delays": {"late": Delay("x", 1.0, 1.0)}}, "delays.late: there is no such control; known: u, x_late"),
        ({"delays": {"x_late": Delay("y", 1.0, 1.0)}}, "no variable 'y' that could be delayed; known: x, u, u_late"),
        ({"delays": {"x_late": Delay("x_late", 1.0, 1.0)}}, "no variable 'x_late' that could be delayed"),
        ({"tf": (1.0, 3.0)}, "a phase with delays has fixed times.*look for the best duration from outside"),
        ({"held_controls": {"u_late": 5}}, "delays.u_late: is also held"),
        ({"delays": {"x_late": 1.0}}, "is a float, not Delay"),
        ({"delays": {"x_late": Delay("x", 1.0, lambda t: math.inf)}}, r"the history of 'x' is inf at -?\d"),
        ({"delays": {"x_late": Delay("x", 1.0, lambda t: "much")}}, "is 'much', not a number"),
        ({"delays": {"x_late": Delay("x", 1.0, lambda t: 1.0 / 0.0)}}, "the history at -.* s ends with ZeroDivision"),
        ({"tf": 0.0}, "motion: tf: 0 is not after t0 = 0"),
        (
            {"delays": {"x_late": Delay("x", 1.0, Signal(np.array([-0.5, 0.0]), np.ones(2)))}},
            "the signal is defined from -0.5 to 0",
        ),
    ],
)
def test_what_cannot_be_stated_is_said(more: dict[str, Any], text: str) -> None:
    with pytest.raises(ProblemError, match=text):
        solve(product(**more))


@pytest.mark.parametrize(("by", "history"), [(0.0, 1.0), (-1.0, 1.0), (math.inf, 1.0), (1.0, math.nan), (1.0, "one")])
def test_a_delay_has_numbers(by: float, history: Any) -> None:
    with pytest.raises(ValueError, match=r"a delay is a positive|history is"):
        Delay("x", by, history)


def test_other_schemes_and_rates_of_delayed_variables_are_refused() -> None:
    with pytest.raises(ProblemError, match=r"values between the points of hermite_simpson are not linear.*use radau"):
        solve(product(), Options(scheme="hermite_simpson"))
    with pytest.raises(ProblemError, match="limit the rate of the original variable"):
        with_rates(product(), {"u_late": Rate(high=1.0)})


def test_the_rate_of_what_is_delayed_may_be_limited() -> None:
    slow = solve(with_rates(product(), {"u": Rate(-0.2, 0.2)}))
    free = solve(product())

    assert slow.success
    assert slow.objective > free.objective
    assert slow.phase.values["u_late"][-1] == pytest.approx(float(slow.interpolate([1.0])["u"][0]), abs=1e-9)
