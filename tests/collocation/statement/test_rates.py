"""Rates of controls, limited or penalised."""

import math
from dataclasses import replace

import benchmark_problems
import casadi as ca
import numpy as np
import pytest
from benchmark_problems import fastest, point_mass, system
from singular_arcs import damped_to_rest

from designopt.collocation import (
    Constraint,
    Integral,
    Options,
    Phase,
    ProblemError,
    Program,
    Rate,
    Status,
    TrajectoryProblem,
    solve,
    with_rates,
)
from designopt.dynamics.system import System, Variable, Vector


def test_a_block_whose_force_changes_slowly_takes_the_time_of_a_bounded_jerk() -> None:
    """1 m from rest to rest, at both of which the force is zero: jerk +j, -j, -j, +j for a quarter of the time each,
    T = (32 / j)^(1/3)."""
    rest = {"x": 0.0, "v": 0.0, "u": 0.0}
    phase = Phase(point_mass(), tf=(0.5, 10.0), initial=rest, final={**rest, "x": 1.0})
    solution = solve(with_rates(fastest(phase), {"u": Rate(-4.0, 4.0)}), Options(intervals=40))

    assert solution.status is Status.SOLVED
    assert solution.objective == pytest.approx(2.0, rel=1e-6)
    assert np.abs(solution.phase.values["u_rate"]).max() <= 4.0 + 1e-7
    assert solution.phase.kinds["u"] == "state"
    assert solution.phase.units["u_rate"] == "1/s"


def test_limits_on_both_sides_may_differ() -> None:
    """From 0 to 1 in the least time at a rate of at most 2, back at one of at most 0.5."""
    still = system("still", {"x": lambda s: 0.0 * s["u"]}, ["u"], bounds={"u": (-2.0, 2.0)})
    for end, time in ((1.0, 0.5), (-1.0, 2.0)):
        phase = Phase(still, tf=(0.01, 10.0), initial={"x": 0.0, "u": 0.0}, final={"u": end})
        solution = solve(with_rates(fastest(phase), {"u": Rate(-0.5, 2.0)}), Options(intervals=5))
        assert solution.objective == pytest.approx(time, rel=1e-7)


def test_a_penalty_is_part_of_the_cost_and_calms_a_singular_arc() -> None:
    plain = Program(damped_to_rest(), Options(intervals=60)).solve()
    calm = Program(with_rates(damped_to_rest(), {"u": Rate(penalty=1e-6)}), Options(intervals=60)).solve()

    spent = 1e-6 * calm.phase.integrals["u_rate_squared"]
    assert calm.objective - spent == pytest.approx(plain.objective, rel=1e-3)
    assert plain.singular_arcs
    assert calm.singular_arcs == ()
    late = calm.phase.times > 2.0  # on the arc u = -v = x (Aly 1978)
    np.testing.assert_allclose(calm.phase.values["u"][late], calm.phase.values["x"][late], atol=0.02)


@pytest.mark.parametrize("form", ["explicit", "residual"])
def test_both_forms_of_a_mechanism_give_one_optimum(form: str) -> None:
    problem = with_rates(benchmark_problems.cart_pole(), {"u": Rate(-200.0, 200.0, penalty=1e-4)})
    solution = Program(problem, Options(intervals=60, form=form)).solve()  # type: ignore[arg-type]

    assert solution.status is Status.SOLVED
    assert solution.objective == pytest.approx(58.80767 + 1e-4 * solution.phase.integrals["u_rate_squared"], rel=2e-3)
    assert solution.objective > 58.80767
    assert np.abs(solution.phase.values["u_rate"]).max() < 200.0 + 1e-6


def test_without_a_limit_and_a_price_nothing_changes() -> None:
    problem = benchmark_problems.cart_pole()
    solution = Program(with_rates(problem, {"u": Rate()}), Options(scheme="radau", degree=5, intervals=40)).solve()

    assert solution.objective == pytest.approx(58.80766746, rel=1e-7)


def test_other_controls_algebraic_variables_outputs_and_path_constraints_stay_what_they_are() -> None:
    x, y, u, w, z, k, m = (ca.SX.sym(n) for n in ("x", "y", "u", "w", "z", "k", "m"))
    plant = System.from_expressions(
        "mixed",
        states=[(Variable("x", "m"), x, u - z), (Variable("y", "m"), y, w * m)],
        controls=[(Variable("u", "m/s", -3.0, 3.0), u), (Variable("w", "m/s"), w)],
        algebraic=[(Variable("z", "m/s"), z, z - k * x - w)],
        parameters=[(Variable("k", "1/s", 0.5, 0.5), k)],
        data=[(Variable("m", ""), m)],
        outputs=[(Variable("power", ""), u * w)],
    )
    phase = Phase(
        plant,
        tf=1.0,
        initial={"x": 0.0, "y": 0.0},
        final={"x": 1.0, "y": 0.5},
        data={"m": 2.0},
        path={"power": Constraint(lambda v: v["power"], -math.inf, 2.0)},
        integrals={"effort": Integral(lambda v: v["u"] ** 2 + v["w"] ** 2)},
    )
    problem = TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])
    plain = Program(problem, Options(scheme="radau", intervals=40)).solve()
    free = Program(with_rates(problem, {"u": Rate(-1e3, 1e3)}), Options(scheme="radau", intervals=40)).solve()
    slow = Program(with_rates(problem, {"w": Rate(-0.1, 0.1)}), Options(scheme="radau", intervals=40)).solve()

    assert free.objective == pytest.approx(plain.objective, rel=1e-6)
    assert slow.objective > plain.objective * (1.0 + 1e-6)
    assert np.ptp(slow.phase.values["w"]) <= 0.1 + 1e-7
    assert list(slow.phase.values) == ["x", "y", "w", "u", "w_rate", "z", "power"]


def test_components_of_a_vector_may_have_rates() -> None:
    vector = Vector("pull", ("left", "right"), "N", 0.0, 5.0)
    x, v, pull = ca.SX.sym("x"), ca.SX.sym("v"), ca.SX.sym("pull", 2)
    rope = System.from_expressions(
        "rope",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, pull[1] - pull[0])],
        controls=[(vector, pull)],
    )
    phase = Phase(
        rope,
        tf=2.0,
        initial={"x": 0.0, "v": 0.0},
        final={"x": 1.0, "v": 0.0},
        integrals={"effort": Integral(lambda s: ca.sumsqr(s["pull"]))},
    )
    problem = TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])
    solution = Program(with_rates(problem, {"pull_left": Rate(-1.0, 1.0), "pull_right": Rate(-1.0, 1.0)})).solve()

    assert solution.status is Status.SOLVED
    assert solution.objective > Program(problem).solve().objective


def test_only_phases_that_have_the_control_get_its_rate() -> None:
    first = replace(benchmark_problems.block_move().phases[0], name="push")
    coast = system("coast", {"x": lambda s: s["v"], "v": lambda s: 0.0 * s["x"]})
    second = Phase(coast, tf=(1.1, 2.0), t0=None, name="glide", initial={"x": 1.0, "v": 0.0})
    problem = TrajectoryProblem(
        [first, second], cost=lambda e: e.phase["push"].integral["effort"] + e.phase["glide"].tf
    )
    solution = Program(with_rates(problem, {"u": Rate(-100.0, 100.0)})).solve()

    assert solution.status is Status.SOLVED
    assert "u_rate" in solution.phases["push"].values
    assert "u_rate" not in solution.phases["glide"].values


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rate(1.0, 1.0), r"limits of a rate are 1 to 1"),
        (lambda: Rate(penalty=-1.0), "penalty of a rate is -1.0"),
        (lambda: Rate(penalty=math.nan), "penalty of a rate is nan"),
        (lambda: Rate(low="a"), "low of a rate is 'a': give a number"),
        (lambda: with_rates(benchmark_problems.block_move(), {"v": Rate()}), "rates.v: there is no such control"),
        (lambda: with_rates(benchmark_problems.block_move(), {"u": 3}), r"rates\.u: is 3: give a Rate"),
        (lambda: with_rates(benchmark_problems.block_move(), ["u"]), "rates: are list: give each control its Rate"),
    ],
)  # fmt: skip
def test_meaningless_settings_are_refused(make: object, message: str) -> None:
    with pytest.raises((ValueError, ProblemError), match=message):
        make()  # type: ignore[operator]


def test_names_that_are_taken_are_refused() -> None:
    plant = system("taken", {"u_rate": lambda s: s["u"]}, ["u"])
    with pytest.raises(ProblemError, match="'u_rate' is the name of the rate of a control"):
        with_rates(fastest(Phase(plant, tf=1.0)), {"u": Rate()})
    squared = replace(
        benchmark_problems.block_move().phases[0], integrals={"u_rate_squared": Integral(lambda v: v["u"])}
    )
    with pytest.raises(ProblemError, match="is added by a rate"):
        with_rates(fastest(squared), {"u": Rate(penalty=1.0)})
