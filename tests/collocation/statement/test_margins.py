"""Limits with a margin of standard deviations: closed forms, the probability by simulation, refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from benchmark_problems import cart_pole
from delayed import product

from designopt.collocation import (
    Constraint,
    Integral,
    Options,
    Phase,
    ProblemError,
    Samples,
    Solution,
    TrajectoryProblem,
    solve,
    with_margins,
)
from designopt.dynamics.system import System, Variable

#: Deviations of a force that pushes against the control, and of the speed at the start.
PUSH, SPEED = 0.1, 0.05


def block() -> System:
    x, v, u, push, mass = (ca.SX.sym(n) for n in ("x", "v", "u", "push", "mass"))
    return System.from_expressions(
        "block",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, (u - push) / mass)],
        controls=[(Variable("u", "N", -1.0, 1.0), u)],
        data=[(Variable("push", "N"), push)],
        parameters=[(Variable("mass", "kg", 0.5, 2.0), mass)],
        outputs=[(Variable("height", "m"), 2.0 * x)],
    )


def nearest(**more: Any) -> TrajectoryProblem:
    """As near as possible to a wall at 0.8 m within 2 s, at rest there if nothing pushes."""
    stated: dict[str, Any] = {
        "tf": 2.0,
        "initial": {"x": 0.0, "v": 0.0},
        "final": {"v": 0.0},
        "data": {"push": 0.0},
        "path": {"wall": Constraint(lambda v: v["x"], high=0.8, unit="m")},
    }
    phase = Phase(block(), **{**stated, **more})
    return TrajectoryProblem([phase], cost=lambda e: -e.final["x"], parameters={"mass": 1.0})


def deviation(time: float, push: float = PUSH, speed: float = SPEED) -> float:
    """Of x at a time: dx/dpush = -t^2/2, dx/dv(0) = t."""
    return math.hypot(push * time**2 / 2.0, speed * time)


def share_beyond(found: Solution, wall: float, draws: int = 4000) -> float:
    """Of simulations with numbers drawn by chance, how many end beyond a wall; Runge-Kutta of order 4."""
    rng = np.random.default_rng(3)
    push, x, v = PUSH * rng.standard_normal(draws), np.zeros(draws), SPEED * rng.standard_normal(draws)
    times = np.linspace(0.0, 2.0, 401)
    u = found.interpolate(np.linspace(0.0, 2.0, 801))["u"]
    h = times[1]
    for k in range(400):  # the acceleration does not depend on the state
        a, m, b = (u[2 * k + i] - push for i in range(3))
        x = x + h * v + h**2 / 6.0 * (a + 2.0 * m)
        v = v + h / 6.0 * (a + 4.0 * m + b)
    return float((x > wall).mean())


@pytest.mark.parametrize("times", [0.0, 1.0, 2.0])
def test_a_path_constraint_keeps_its_margin_and_its_probability(times: float) -> None:
    found = solve(with_margins(nearest(), {"push": PUSH, "motion.initial.v": SPEED}, {"wall": times}))

    assert found.objective == pytest.approx(-(0.8 - times * deviation(2.0)), abs=2e-7)
    assert found.phase.values["x_by_push"][-1] == pytest.approx(-2.0, abs=1e-9)
    assert found.phase.values["x_by_motion_initial_v"][-1] == pytest.approx(2.0, abs=1e-9)
    beyond = 0.5 * math.erfc(times / math.sqrt(2.0))
    assert share_beyond(found, 0.8) == pytest.approx(beyond, abs=4.0 * math.sqrt(beyond / 4000.0))


def test_one_number_alone_has_no_rounded_kink() -> None:
    found = solve(with_margins(nearest(), {"push": PUSH}, {"wall": 2.0}))

    assert found.objective == pytest.approx(-(0.8 - 2.0 * deviation(2.0, speed=0.0)), abs=1e-9)


def test_bounds_of_states_samples_and_ends_have_margins_too() -> None:
    numbers = {"push": PUSH, "motion.initial.v": SPEED}
    expected = pytest.approx(-(0.8 - 2.0 * deviation(2.0)), abs=2e-7)
    bounded = nearest(path={}, bounds={"x": (-1.0, 0.8)})
    at_end = nearest(path={}, samples={"wall": Constraint(lambda v: v["x"], high=0.8, at=Samples([1.0, 2.0]))})
    stated = nearest(path={})
    ended = TrajectoryProblem(
        stated.phases, stated.cost, {"wall": Constraint(lambda e: e.final["x"], high=0.8)}, stated.parameters
    )

    assert solve(with_margins(bounded, numbers, {"x": 2.0})).objective == expected
    assert solve(with_margins(at_end, numbers, {"wall": 2.0})).objective == expected
    found = solve(with_margins(ended, numbers, {"wall": 2.0}))
    assert found.objective == expected
    assert found.figures["margin(wall)"] == pytest.approx(2.0 * deviation(2.0), rel=1e-6)


def test_outputs_and_integrals_are_followed() -> None:
    """The integral of x from 0 to T moves by -T^3/6 with the push; the output is 2 x."""
    stated = nearest(
        path={"top": Constraint(lambda v: v["height"], high=1.6)}, integrals={"area": Integral(lambda v: v["x"])}
    )
    limited = TrajectoryProblem(
        stated.phases, stated.cost, {"area": Constraint(lambda e: e.integral["area"], high=9.0)}, stated.parameters
    )
    found = solve(with_margins(limited, {"push": PUSH}, {"top": 2.0, "area": 1.0}))

    assert found.objective == pytest.approx(-(0.8 - 2.0 * PUSH * 2.0), abs=1e-8)
    assert found.figures["margin(area)"] == pytest.approx(PUSH * 8.0 / 6.0, rel=1e-5)


def test_a_limit_that_contains_the_uncertain_number_itself_has_its_derivative_too() -> None:
    """x + push / 2: dx/dpush = -2 at the end, so that the value moves by -1.5 with the push."""
    along = nearest(path={"wall": Constraint(lambda v: v["x"] + 0.5 * v["push"], high=0.8)})
    stated = nearest(path={})
    ends = Constraint(lambda e: e.final["x"] + 0.5 * e.phase["motion"].data["push"], high=0.8)
    ended = replace(stated, constraints={"wall": ends})

    for problem in (along, ended):
        found = solve(with_margins(problem, {"push": PUSH}, {"wall": 2.0}))
        assert found.objective == pytest.approx(-(0.8 - 2.0 * PUSH * 1.5), abs=1e-8)


def test_a_limit_on_what_the_uncertain_number_does_not_change_has_no_margin() -> None:
    """With the same control x is inversely proportional to the mass: their product stays as it is."""
    along = nearest(path={"wall": Constraint(lambda v: v["x"] * v["mass"], high=0.8)})
    ended = replace(nearest(path={}), constraints={"wall": Constraint(lambda e: e.final["x"] * e["mass"], high=0.8)})

    for problem in (along, ended):
        found = solve(with_margins(problem, {"mass": 0.1}, {"wall": 2.0}))
        assert found.objective == pytest.approx(-0.8, abs=1e-8)


def test_a_deviation_of_a_free_parameter_moves_the_choice() -> None:
    """x = T^2 u / (4 m) with full force: dx/dm = -x/m, so that 0.8 = x (1 + 2 s / m) with x = 1 / m at T = 2."""
    stated = nearest()
    free = TrajectoryProblem(stated.phases, lambda e: e["mass"], stated.constraints, {"mass": (0.5, 2.0)})
    fast = TrajectoryProblem(
        free.phases, lambda e: e["mass"], {"far": Constraint(lambda e: e.final["x"], low=0.7)}, {"mass": (0.5, 2.0)}
    )
    s = 0.05
    found = solve(
        with_margins(
            TrajectoryProblem(fast.phases, lambda e: -e["mass"], fast.constraints, fast.parameters),
            {"mass": s},
            {"far": 2.0},
        )
    )

    # the largest mass with 1/m - 2 s / m^2 = 0.7, pushed for half of the time and braked for the other
    assert found.parameters["mass"] == pytest.approx((1.0 + math.sqrt(1.0 - 5.6 * s)) / 1.4, rel=1e-6)


def test_a_cost_may_pay_for_its_deviation() -> None:
    """-x + k * deviation: the deviation does not depend on the control, so that it is added as it is."""
    found = solve(with_margins(nearest(), {"push": PUSH, "motion.initial.v": SPEED}, {}, cost=1.5))

    assert found.objective == pytest.approx(-0.8 + 1.5 * deviation(2.0), abs=2e-6)
    assert found.figures["margin(cost)"] == pytest.approx(1.5 * deviation(2.0), abs=2e-6)


def test_a_small_cost_pays_for_its_deviation_as_a_large_one_does() -> None:
    """Where the root of the squares is made smooth, that is relative to the cost: in other units it is the same."""

    def paid(unit: float) -> list[float]:
        effort = Integral(lambda v: unit * (v["u"] ** 2 + 10.0 * v["v"] ** 2))
        problem = nearest(final={"x": 0.5, "v": 0.0}, path={}, integrals={"effort": effort})
        problem = replace(problem, cost=lambda e: e.integral["effort"])
        found = solve(with_margins(problem, {"push": PUSH, "motion.initial.v": SPEED}, {}, cost=2.0))
        return [found.objective / unit, found.figures["margin(cost)"] / unit]

    assert paid(1e-5) == pytest.approx(paid(1.0), rel=1e-6)


def test_a_residual_form_has_sensitivities_that_differences_confirm() -> None:
    problem = cart_pole()
    stated = TrajectoryProblem(problem.phases, problem.cost, {"end": Constraint(lambda e: e.final["x"], high=9.0)})
    held = with_margins(stated, {"motion.initial.omega": 0.01}, {"end": 1.0})
    found = solve(held, Options(intervals=100))
    assert found.success
    slope = found.phase.values["angle_by_motion_initial_omega"][-1]

    ends = _simulated(problem, found, [-1e-3, 1e-3])[1]
    assert slope == pytest.approx((ends[1] - ends[0]) / 2e-3, rel=5e-4)


def _simulated(problem: TrajectoryProblem, found: Solution, omegas: list[float]) -> Any:
    """Last states, a column for each initial speed: a Runge-Kutta step of fourth order over each interval of the mesh
    needs the control at its two ends and in its middle, where the solution has it."""
    times, u = found.phase.times[::2], found.phase.values["u"]
    x = np.zeros((4, len(omegas)))
    x[3] = omegas

    def rates(x: Any, u: float) -> Any:
        return np.asarray(problem.phases[0].system.rhs(x, u, [], [], [], 0.0))

    for k, h in enumerate(np.diff(times)):
        first, middle, last = u[2 * k : 2 * k + 3]
        k1 = rates(x, first)
        k2 = rates(x + h / 2.0 * k1, middle)
        k3 = rates(x + h / 2.0 * k2, middle)
        x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + rates(x + h * k3, last))
    return x


@pytest.mark.parametrize(
    ("deviations", "margins", "text"),
    [
        (
            {"wind": 1.0},
            {"wall": 1.0},
            r"deviations.wind: is not a number whose deviation moves a motion; known: mass,",
        ),
        ({"push": -1.0}, {"wall": 1.0}, r"deviations.push: is -1.0: give a number from 0 on"),
        ({"push": 1.0}, {"roof": 1.0}, r"margins.roof: there is no such limit; known: wall, x, v"),
        ({"push": "1"}, {"wall": 1.0}, r"deviations.push: is '1': give a number from 0 on"),
        ({"push": 1.0}, {"wall": "2"}, r"margins.wall: is '2': give a number from 0 on"),
        ({"push": 1.0}, {"x": 1.0}, r"margins.x: has no limit to keep a margin from: give it one"),
        ({"push": 1.0}, {"wall": math.nan}, r"margins.wall: is nan"),
    ],
)
def test_what_makes_no_sense_is_said(deviations: Any, margins: Any, text: str) -> None:
    with pytest.raises(ProblemError, match=text):
        with_margins(nearest(), deviations, margins)


def test_equalities_delays_and_taken_names_are_refused() -> None:
    still = nearest(path={"wall": Constraint(lambda v: v["x"], 0.0, 0.0)})
    with pytest.raises(ProblemError, match="is an equality, which leaves no room"):
        with_margins(still, {"push": 1.0}, {"wall": 1.0})
    with pytest.raises(ProblemError, match=r"the phase has delays, .*use scenarios"):
        with_margins(product(), {"motion.initial.x": 1.0}, {"x": 1.0})
    again = with_margins(nearest(), {"push": 1.0}, {"wall": 1.0})
    with pytest.raises(ProblemError, match=r"'v_by_push' is the name of a sensitivity"):
        with_margins(again, {"push": 1.0}, {"wall": 1.0})


def going_on(tf: Any, t0: Any) -> TrajectoryProblem:
    """Back from the wall in a second phase."""
    first = nearest(tf=tf)
    second = replace(first.phases[0], name="back", t0=t0, tf=3.0, initial={})
    links = {
        n: Constraint(lambda e, n=n: e.phase["back"].initial[n] - e.phase["motion"].final[n], 0.0, 0.0) for n in "xv"
    }
    return replace(
        first, phases=[first.phases[0], second], constraints=links, cost=lambda e: -e.phase["back"].final["x"]
    )


@pytest.mark.parametrize("tf", [2.0, (1.0, 2.0)])
def test_phases_that_go_on_from_one_another_are_refused(tf: Any) -> None:
    with pytest.raises(ProblemError, match="back: margins: the phase has a start where the phase before it ends"):
        with_margins(going_on(tf, None), {"push": PUSH}, {"wall": 1.0})


def test_phases_that_only_constraints_link_are_refused() -> None:
    with pytest.raises(ProblemError, match=r"constraints\.x: links phases, between which deviations are not followed"):
        solve(with_margins(going_on(2.0, 2.0), {"push": PUSH}, {"wall": 1.0}))


def test_phases_that_share_their_choices_alone_have_margins() -> None:
    """Two moves with equal ends, each with its own margin: the one with the nearer wall decides."""
    first = nearest()
    second = replace(first.phases[0], name="other", path={"wall": Constraint(lambda v: v["x"], high=0.7, unit="m")})
    both = replace(
        first,
        phases=[first.phases[0], second],
        constraints={
            "equal": Constraint(lambda e: e.phase["other"].final["x"] - e.phase["motion"].final["x"], 0.0, 0.0)
        },
        cost=lambda e: -e.phase["motion"].final["x"],
    )
    found = solve(with_margins(both, {"push": PUSH}, {"wall": 2.0}))
    assert found.objective == pytest.approx(-(0.7 - 2.0 * deviation(2.0, speed=0.0)), abs=1e-8)


def test_no_deviation_leaves_the_problem_as_it_is() -> None:
    problem = nearest()
    assert with_margins(problem, {"push": 0.0}, {"wall": 2.0}) is problem
