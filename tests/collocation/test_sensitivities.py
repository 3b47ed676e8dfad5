"""Derivatives of the whole optimum by the numbers of its problem, and what it inherits from their spread."""

import math
from collections.abc import Callable
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from designopt.collocation import (
    Constraint,
    Integral,
    Options,
    Phase,
    ProblemError,
    Scheme,
    Signal,
    Solution,
    Status,
    TrajectoryProblem,
    hermite_simpson,
    radau,
    sensitivities,
    solve,
    spread,
)
from designopt.collocation.statement.mesh import Mesh
from designopt.dynamics.system import System, Variable

HORIZON, START = 1.3, 0.7


def regulator(weight: float = 1.0, start: float = START, horizon: float = HORIZON) -> TrajectoryProblem:
    """x' = u, least integral of w x^2 + u^2: the Riccati equation gives J = x0^2 sqrt(w) tanh(sqrt(w) T),
    x = x0 cosh(sqrt(w)(T - t)) / cosh(sqrt(w) T) and u = -sqrt(w) tanh(sqrt(w)(T - t)) x."""
    x, u, w = ca.SX.sym("x"), ca.SX.sym("u"), ca.SX.sym("w")
    system = System.from_expressions(
        "regulator",
        states=[(Variable("x", ""), x, u)],
        controls=[(Variable("u", ""), u)],
        data=[(Variable("weight", ""), w)],
    )
    phase = Phase(
        system,
        tf=horizon,
        initial={"x": start},
        integrals={"cost": Integral(lambda v: v["weight"] * v["x"] ** 2 + v["u"] ** 2)},
        data={"weight": weight},
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["cost"], figures={"end": lambda e: e.final["x"] ** 2})


@pytest.mark.parametrize(("scheme", "accuracy"), [(hermite_simpson(), 5e-4), (radau(4), 1e-6)])
def test_a_linear_regulator_has_the_derivatives_of_its_riccati_equation(scheme: Scheme, accuracy: float) -> None:
    problem = regulator()
    solution = solve(problem, meshes=[Mesh.uniform(scheme, 20)])
    s = sensitivities(problem, solution)

    assert s.regular
    assert s.names == ("weight", "motion.t0", "motion.tf", "motion.initial.x")
    tanh, square = math.tanh(HORIZON), 1.0 / math.cosh(HORIZON) ** 2
    assert s.derivatives_of("objective") == {
        "weight": pytest.approx(START**2 * (0.5 * tanh + 0.5 * HORIZON * square), rel=1e-6),
        "motion.t0": pytest.approx(-(START**2) * square, rel=1e-6),
        "motion.tf": pytest.approx(START**2 * square, rel=1e-6),
        "motion.initial.x": pytest.approx(2.0 * START * tanh, rel=1e-6),
    }
    of_start = s.phases["motion"].values["x"][:, 3]
    times = solution.phase.times
    assert of_start == pytest.approx(np.cosh(HORIZON - times) / math.cosh(HORIZON), abs=1e-7)
    gain = s.phases["motion"].values["u"][:, 3]  # the feedback of the whole horizon
    assert gain == pytest.approx(-np.sinh(HORIZON - times) / math.cosh(HORIZON), abs=accuracy)
    assert s.derivatives_of("end")["motion.initial.x"] == pytest.approx(2.0 * START / math.cosh(HORIZON) ** 2, rel=1e-6)
    assert s.phases["motion"].times[:, 2] == pytest.approx(times / HORIZON)


def test_a_figure_changes_with_a_number_that_it_contains_itself() -> None:
    """weight x(T)^2 with x(T) = x0 / cosh(sqrt(weight) T)."""
    weighted = {"weighted": lambda e: e.phase["motion"].data["weight"] * e.final["x"] ** 2}
    problem = replace(regulator(), figures=weighted)
    s = sensitivities(problem, solve(problem, meshes=[Mesh.uniform(radau(4), 20)]))

    end = START / math.cosh(HORIZON)
    expected = end**2 - end**2 * HORIZON * math.tanh(HORIZON)
    assert s.derivatives_of("weighted")["weight"] == pytest.approx(expected, rel=1e-6)


def pushed(*, mass: float = 1.0, tf: float = 1.0, limit: float = 4.5, way: float = 1.0) -> TrajectoryProblem:
    """A block on a spring that may be chosen; the force is at its limit for a while. The second half is a phase."""
    x, v, u, k, m, wind = (ca.SX.sym(n) for n in ("x", "v", "u", "k", "m", "wind"))
    system = System.from_expressions(
        "block",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, (u - k * x + wind) / m)],
        controls=[(Variable("u", "N", -limit, limit), u)],
        parameters=[(Variable("k", "N/m", 0.0, 50.0), k)],
        data=[(Variable("mass", "kg"), m), (Variable("wind", "N"), wind)],
    )
    times = np.linspace(-1.0, 3.0, 9)
    data = {"mass": mass, "wind": Signal(times, np.sin(times))}
    integrals = {"effort": Integral(lambda s: s["u"] ** 2)}
    first = Phase(system, 0.5 * tf, 0.0, "first", initial={"x": 0.0, "v": 0.0}, integrals=integrals, data=data)
    second = Phase(system, tf, None, "second", final={"x": way, "v": 0.0}, integrals=integrals, data=data)

    def cost(e):
        return e.phase["first"].integral["effort"] + e.phase["second"].integral["effort"] + (e["k"] - 3.0) ** 2

    def joined(e):
        before, after = e.phase["first"].final, e.phase["second"].initial
        return ca.vertcat(before["x"] - after["x"], before["v"] - after["v"])

    return TrajectoryProblem(
        [first, second],
        cost,
        constraints={"joined": Constraint(joined, 0.0, 0.0)},
        figures={"effort": lambda e: e.phase["first"].integral["effort"]},
    )


def differences(change: Callable[[float], TrajectoryProblem], step: float) -> dict[str, object]:
    """Central differences of optima that are solved again."""
    options = Options(intervals=10, tolerance=1e-11)
    above, below = solve(change(step), options), solve(change(-step), options)

    def by(value: Callable[[Solution], object]) -> object:
        return (value(above) - value(below)) / (2.0 * step)

    return {
        "objective": by(lambda f: f.objective),
        "k": by(lambda f: f.parameters["k"]),
        "effort": by(lambda f: f.figures["effort"]),
        "u": by(lambda f: f.phases["first"].values["u"]),
    }


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mass", lambda d: pushed(mass=1.0 + d)),
        (
            "second.tf",
            lambda d: replace(pushed(), phases=[pushed().phases[0], replace(pushed().phases[1], tf=1.0 + d)]),
        ),
        ("second.final.x", lambda d: pushed(way=1.0 + d)),
    ],
)
def test_derivatives_are_those_of_optima_solved_again(name, change) -> None:
    problem = pushed()
    solution = solve(problem, Options(intervals=10))
    assert max(solution.phases["first"].saturation["u"]) > 0.1  # a bound is active
    s = sensitivities(problem, solution, [name])
    expected = differences(change, 1e-4)
    assert s.regular, s.doubts
    for result in ("objective", "k", "effort"):
        assert s.derivatives_of(result)[name] == pytest.approx(expected[result], rel=1e-5, abs=1e-6)
    assert s.phases["first"].values["u"][:, 0] == pytest.approx(expected["u"], abs=1e-4)


def test_a_time_between_two_phases_moves_both_and_what_they_sample() -> None:
    def moved(d: float) -> TrajectoryProblem:
        problem = pushed()
        first, second = problem.phases
        return replace(problem, phases=[replace(first, tf=0.5 + d), replace(second, t0=None)])

    problem = pushed()
    s = sensitivities(problem, solve(problem, Options(intervals=10)), ["first.tf", "wind"])
    expected = differences(moved, 1e-4)
    assert s.derivatives_of("objective")["first.tf"] == pytest.approx(expected["objective"], rel=1e-5, abs=1e-6)
    assert s.derivatives_of("k")["first.tf"] == pytest.approx(expected["k"], rel=1e-4, abs=1e-6)
    assert s.derivatives_of("objective")["wind"] != 0.0


def test_the_sensitivities_of_the_objective_are_its_multipliers() -> None:
    problem = pushed()
    solution = solve(problem, Options(intervals=10))
    s = sensitivities(problem, solution, ["first.mass", "second.mass", "mass"])
    assert s.derivatives_of("objective")["first.mass"] == pytest.approx(s.solution.dJ_dq["first.mass"], rel=1e-6)
    assert s.derivatives_of("objective")["second.mass"] == pytest.approx(s.solution.dJ_dq["second.mass"], rel=1e-6)
    assert s.objective[2] == pytest.approx(s.objective[0] + s.objective[1], rel=1e-12)
    assert "regular" in repr(s)


def test_fixed_parameters_and_controls_held_at_an_end_are_numbers_too() -> None:
    def problem(k: float = 2.0, u: float = 1.0) -> TrajectoryProblem:
        stated = pushed()
        first, second = stated.phases
        return replace(stated, phases=[replace(first, initial={**first.initial, "u": u}), second], parameters={"k": k})

    options = Options(intervals=10, tolerance=1e-11)
    s = sensitivities(problem(), solve(problem(), options), ["k", "first.initial.u"], options)
    for name, change in (("k", lambda d: problem(k=2.0 + d)), ("first.initial.u", lambda d: problem(u=1.0 + d))):
        above, below = (solve(change(d), options).objective for d in (1e-3, -1e-3))
        assert s.derivatives_of("objective")[name] == pytest.approx((above - below) / 2e-3, rel=1e-5)
    assert s.derivatives_of("k") == {"k": 1.0, "first.initial.u": 0.0}


# -------------------------------------------------------------------------------------------------- not regular


def test_a_limit_that_is_only_touched_is_named() -> None:
    """(p - q)^2 with p <= 1 at q = 1: dp/dq is 1 from below and 0 from above."""
    base = regulator()
    problem = replace(
        base,
        cost=lambda e: e.integral["cost"] + (e["p"] - e["q"]) ** 2,
        extra=(Variable("p", "", -1.0, 1.0), Variable("q", "")),
        parameters={"q": 1.0},
    )
    s = sensitivities(problem, solve(problem, Options(intervals=5)), ["q"])
    assert not s.regular
    assert "p" in s.doubts[0]
    assert "multiplier close to zero" in s.doubts[0]
    away = replace(problem, parameters={"q": 0.9})
    s = sensitivities(away, solve(away, Options(intervals=5)), ["q"])
    assert s.regular
    assert s.derivatives_of("p")["q"] == pytest.approx(1.0, rel=1e-6)


def test_a_constraint_that_is_only_touched_is_named() -> None:
    base = regulator()
    end = solve(base, Options(intervals=10)).phase.values["x"][-1]
    for limit, touched in ((end, True), (end + 1e-3, False), (end - 1e-3, False)):
        problem = replace(base, constraints={"far": Constraint(lambda e: e.final["x"], low=limit)})
        s = sensitivities(problem, solve(problem, Options(intervals=10)), ["weight"])
        assert s.regular is not touched
        assert touched == ("far" in " ".join(s.doubts))


def test_redundant_constraints_are_reported() -> None:
    base = regulator()
    twice = {f"end {i}": Constraint(lambda e: e.final["x"], high=0.2) for i in (1, 2)}
    problem = replace(base, constraints=twice)
    solution = solve(problem, Options(intervals=5))
    assert solution.status is Status.SOLVED
    s = sensitivities(problem, solution, ["weight"])
    assert "not independent" in s.doubts[-1]
    assert np.isnan(s.objective).all()


def test_quantities_that_the_cost_does_not_determine_are_reported() -> None:
    base = regulator()
    problem = replace(base, extra=(Variable("idle", "", -1.0, 1.0),))
    s = sensitivities(problem, solve(problem, Options(intervals=5)), ["weight"])
    assert not s.regular
    assert "does not determine" in s.doubts[-1]


# -------------------------------------------------------------------------------------------------- spread


def test_the_spread_of_an_optimum_is_that_of_its_linear_law() -> None:
    problem = regulator()
    solution = solve(problem, Options(intervals=20))
    s = sensitivities(problem, solution, ["weight", "motion.initial.x"])
    inherited = spread(s, {"motion.initial.x": 0.1})
    assert inherited.objective == pytest.approx(0.1 * 2.0 * START * math.tanh(HORIZON), rel=1e-6)
    expected = 0.1 * np.cosh(HORIZON - solution.phase.times) / math.cosh(HORIZON)
    assert inherited.phases["motion"]["x"] == pytest.approx(expected, abs=1e-7)
    covariance = np.array([[0.04, -0.015], [-0.015, 0.01]])
    deviations = spread(s, covariance)
    assert deviations.objective**2 == pytest.approx(s.objective @ covariance @ s.objective, rel=1e-9)
    assert deviations.figures["end"] ** 2 == pytest.approx(s.figures["end"] @ covariance @ s.figures["end"], rel=1e-9)


def test_the_spread_of_parameters_has_their_covariance() -> None:
    problem = pushed()
    s = sensitivities(problem, solve(problem, Options(intervals=10)), ["mass", "second.final.x"])
    inherited = spread(s, {"mass": 0.05, "second.final.x": 0.02})
    gradient = s.parameters["k"]
    assert inherited.covariance == pytest.approx(
        np.array([[(0.05 * gradient[0]) ** 2 + (0.02 * gradient[1]) ** 2]]), rel=1e-9
    )
    assert inherited.parameters["k"] == pytest.approx(math.sqrt(inherited.covariance[0, 0]), rel=1e-12)


def test_a_number_that_is_named_twice_counts_once() -> None:
    problem = regulator()
    solution = solve(problem, Options(intervals=5))
    once, twice = (sensitivities(problem, solution, names) for names in ("weight", ["weight", "weight"]))
    assert once.names == twice.names == ("weight",)
    assert spread(twice, {"weight": 0.1}).objective == spread(once, {"weight": 0.1}).objective > 0.0


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        ({"mas": 1.0}, "there is no sensitivity to it; known: weight"),
        ({"weight": -1.0}, "standard deviation"),
        ([[1.0, 2.0], [2.0, 1.0]], "symmetric matrix \\(1, 1\\)"),
        ([[-1.0]], "negative eigenvalue"),
    ],
)
def test_an_invalid_spread_is_refused(covariance, message) -> None:
    problem = regulator()
    s = sensitivities(problem, solve(problem, Options(intervals=5)), ["weight"])
    with pytest.raises(ProblemError, match=message):
        spread(s, covariance)


# -------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mass", "is not a number of the problem; those known that may change are weight, motion.t0"),
        ("motion.final.x", "is not a number of the problem"),
        ("p", "is an unknown of the problem, free in a range"),
        (3, "names: 3 is not a name: give names of numbers of the problem, such as weight, motion.t0"),
    ],
)
def test_a_name_that_is_no_number_is_refused(name, message) -> None:
    problem = replace(
        regulator(), cost=lambda e: e.integral["cost"] + e["p"] ** 2, extra=(Variable("p", "", -1.0, 1.0),)
    )
    solution = solve(problem, Options(intervals=5))
    with pytest.raises(ProblemError, match=message):
        sensitivities(problem, solution, [name])


def test_a_failed_solve_has_no_sensitivities() -> None:
    problem = pushed(limit=0.1)
    solution = solve(problem, Options(intervals=5, persistent=False))
    with pytest.raises(ProblemError, match="is not a result"):
        sensitivities(problem, solution)
