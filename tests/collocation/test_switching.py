"""Controls that are on or off: sum-up rounding, its bound, and published optima."""

from __future__ import annotations

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
    Program,
    Solution,
    Switch,
    TrajectoryProblem,
    radau,
    solve,
    solve_switched,
    sum_up,
    sum_up_one_of,
)
from designopt.collocation.switching.sum_up import deviation
from designopt.collocation.transcription.mesh.mesh import Mesh
from designopt.dynamics.system import System, Variable


def fishing(**phase) -> TrajectoryProblem:
    """Prey and predators are to be brought to rest by fishing, all or nothing (Sager, Bock, Diehl, Reinelt, Schloeder
    2006): the relaxed optimum is 1.34408, mintoc.de, "Lotka Volterra fishing problem"."""
    x, y, w = (ca.SX.sym(n) for n in "xyw")
    system = System.from_expressions(
        "fishing",
        states=[
            (Variable("prey", ""), x, x - x * y - 0.4 * x * w),
            (Variable("predators", ""), y, -y + x * y - 0.2 * y * w),
        ],
        controls=[(Variable("fishing", "", 0.0, 1.0), w)],
    )
    of = Phase(
        system,
        tf=12.0,
        initial={"prey": 0.5, "predators": 0.7},
        integrals={"cost": Integral(lambda v: (v["prey"] - 1.0) ** 2 + (v["predators"] - 1.0) ** 2)},
        **phase,
    )
    return TrajectoryProblem([of], cost=lambda e: e.integral["cost"])


RELAXED = 1.34408


def test_the_relaxed_fishing_problem_has_its_published_optimum() -> None:
    found = solve(fishing(), Options(intervals=400))
    assert found.objective == pytest.approx(RELAXED, abs=5e-6)


def test_rounding_keeps_its_bound_and_its_gap_goes_to_zero_with_the_grid() -> None:
    gaps = []
    for pieces in (20, 80, 320):
        found = solve_switched(fishing(), {"fishing": pieces}, Options(intervals=pieces))
        assert found.success
        levels = found.levels["motion"]["fishing"]
        assert set(levels.tolist()) == {0.0, 1.0}
        assert found.bound == pytest.approx(0.5 * 12.0 / pieces)
        assert 0.0 < found.integral_deviation <= found.bound
        assert found.rounded.objective > found.relaxed.objective > RELAXED - 5e-6
        held = found.rounded.phase.values["fishing"][1:].reshape(pieces, -1)
        assert held == pytest.approx(np.tile(levels[:, None], held.shape[1]), abs=1e-12)
        assert found.rounded.phase.resimulation_error < 1e-4
        gaps.append(found.gap)
    assert gaps[2] < 2e-3 < gaps[0]
    assert gaps[2] < gaps[1] < gaps[0]


def test_the_grid_is_made_finer_until_rounding_costs_little() -> None:
    found = solve_switched(fishing(), {"fishing": 20}, Options(intervals=20), gap=0.01)
    assert found.gap <= 0.01
    assert len(found.levels["motion"]["fishing"]) in (40, 80)


@pytest.mark.parametrize("seed", range(5))
def test_sums_of_rounded_controls_stay_within_half_a_piece(seed: int) -> None:
    """Sager, Bock, Diehl (2012), theorem 5, on grids that are not even."""
    rng = np.random.default_rng(seed)
    relaxed, widths = rng.random(200) ** rng.uniform(0.2, 5.0), rng.uniform(0.1, 1.0, 200)
    rounded = sum_up(relaxed, widths)
    assert set(rounded.tolist()) <= {0.0, 1.0}
    assert deviation(relaxed, rounded, widths) <= 0.5 * widths.max() + 1e-12
    levels = sum_up(4.0 * relaxed - 1.0, widths, -1.0, 3.0, 0.5)
    assert set((2.0 * levels).tolist()) <= set(range(-2, 7))
    assert deviation(4.0 * relaxed - 1.0, levels, widths) <= 0.25 * widths.max() + 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_one_of_several_is_on_and_sums_stay_within_their_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares, widths = rng.dirichlet([0.3, 0.5, 0.4, 0.2], 300), rng.uniform(0.1, 1.0, 300)
    rounded = sum_up_one_of(shares, widths)
    assert (rounded.sum(axis=1) == 1.0).all()
    assert set(np.unique(rounded)) <= {0.0, 1.0}
    assert deviation(shares, rounded, widths) <= 3.0 * widths.max() + 1e-12


# -------------------------------------------------------------------------------------------------- gears, levels


def car() -> TrajectoryProblem:
    """Two gears, one of which is in: the first pulls with 2 up to a speed of 1, the second with 1 up to 3.

    v' = a 2 (1 - v) + b (1 - v / 3): the first is better below v = 3/5. From rest to v = 2 in the least time: there
    ln(1/(1 - 0.6)) / 2 + 3 ln((1 - 0.2) / (1 - 2/3))."""
    v, a, b = (ca.SX.sym(n) for n in "vab")
    system = System.from_expressions(
        "car",
        states=[(Variable("v", ""), v, 2.0 * a * (1.0 - v) + b * (1.0 - v / 3.0))],
        controls=[(Variable("first", "", 0.0, 1.0), a), (Variable("second", "", 0.0, 1.0), b)],
    )
    phase = Phase(system, tf=(0.1, 10.0), initial={"v": 0.0}, final={"v": 2.0})
    return TrajectoryProblem([phase], cost=lambda e: e.tf)


BEST = 0.5 * np.log(2.5) + 3.0 * np.log(2.4)


def test_one_of_two_gears_is_in() -> None:
    found = solve_switched(car(), {"first": Switch(60, exclusive_with=("second",))}, Options(intervals=60))
    assert found.success
    assert found.relaxed.objective == pytest.approx(BEST, rel=1e-4)
    first, second = found.levels["motion"]["first"], found.levels["motion"]["second"]
    assert (first + second == 1.0).all()
    assert first[0] == 1.0 and second[-1] == 1.0  # noqa: PT018
    assert np.abs(np.diff(first)).sum() == 1.0  # one change of gear
    assert found.rounded.objective == pytest.approx(BEST, rel=1e-3)
    assert found.integral_deviation <= found.bound


def test_levels_are_whole_steps_apart() -> None:
    """x' = u, near a line of slope 0.4, with u in -1, 0, 1, ... 3."""
    x, u = ca.SX.sym("x"), ca.SX.sym("u")
    system = System.from_expressions(
        "steps", states=[(Variable("x", ""), x, u)], controls=[(Variable("u", "", -1.0, 3.0), u)]
    )
    phase = Phase(system, tf=2.0, integrals={"off": Integral(lambda v: (v["x"] - 0.4 * v.time) ** 2)})
    problem = TrajectoryProblem([phase], cost=lambda e: e.integral["off"])
    found = solve_switched(problem, {"u": Switch(20, step=1.0)}, Options(intervals=20))
    levels = found.levels["motion"]["u"]
    assert set(levels.tolist()) == {0.0, 1.0}
    assert levels.mean() == pytest.approx(0.4)
    assert found.bound == pytest.approx(0.05)


# -------------------------------------------------------------------------------------------------- given values


def given(values) -> Solution:
    return solve(fishing(held_controls={"fishing": values}), Options(intervals=30))


def test_a_control_may_be_given_its_values_on_its_pieces() -> None:
    values = [1.0, 0.0, 0.5]
    found = given(values)
    assert found.success
    assert found.phase.at(np.array([0.1, 0.4, 0.9]))["fishing"] == pytest.approx(values, abs=1e-12)
    assert found.phase.bounds["fishing"] == (0.0, 1.0)
    assert found.phase.resimulation_error < 1e-3
    assert given(np.array(values)).objective == pytest.approx(found.objective, rel=1e-12)


def test_given_values_may_change_without_building_again() -> None:
    program = Program(fishing(held_controls={"fishing": [1.0, 0.0]}), meshes=[Mesh.uniform(radau(3), 30)])
    first = program.solve()
    second = program.solve(fishing(held_controls={"fishing": [0.0, 1.0]}))
    assert second.objective == pytest.approx(
        solve(fishing(held_controls={"fishing": [0.0, 1.0]}), Options(intervals=30)).objective
    )
    assert abs(second.objective - first.objective) > 0.1
    with pytest.raises(ProblemError, match="build it again"):
        program.solve(fishing(held_controls={"fishing": 2}))


@pytest.mark.parametrize(
    ("values", "message"),
    [((), "the value on each"), ((0.5, "on"), "the value on each"), ((0.5, 1.5), "0.5 to 1.5 is outside the bounds")],
)
def test_given_values_that_make_no_sense_are_refused(values, message) -> None:
    with pytest.raises(ProblemError, match=message):
        given(values)


# -------------------------------------------------------------------------------------------------- mistakes


def test_a_relaxed_problem_that_fails_is_what_is_returned() -> None:
    impossible = replace(fishing(), constraints={"none": Constraint(lambda e: e.final["prey"], high=-1.0)})
    found = solve_switched(impossible, {"fishing": 10}, Options(intervals=10, persistent=False), gap=0.1)
    assert not found.success
    assert found.rounded is found.relaxed


def test_a_fixed_final_value_that_rounded_switches_do_not_reach_is_named() -> None:
    found = solve_switched(fishing(final={"prey": 1.1}), {"fishing": 10}, Options(intervals=40, persistent=False))
    assert found.relaxed.success
    assert not found.success
    assert found.rounded.message.startswith(
        "The relaxed problem is solved, but the problem with rounded switches is not"
    )
    assert "fixed final values (motion: prey). Give these a range" in found.rounded.message


@pytest.mark.parametrize(
    ("problem", "switches", "message"),
    [
        (fishing(), {"hunting": 10}, "there is no such control; known: fishing"),
        (fishing(bounds={"fishing": (0.0, np.inf)}), {"fishing": 10}, "two finite levels"),
        (fishing(), {"fishing": Switch(10, step=0.3)}, "is not a multiple of the step 0.3"),
        (fishing(held_controls={"fishing": 5}), {"fishing": 10}, "the phase holds 'fishing'"),
        (fishing(final={"fishing": 0.5}), {"fishing": 10}, "'fishing' has a final value, a switch has the level"),
        (car(), {"first": Switch(10, exclusive_with=("second",)), "second": 10}, "is in two switches"),
        (
            replace(car(), phases=[replace(car().phases[0], bounds={"second": (0.0, 2.0)})]),
            {"first": Switch(10, exclusive_with=("second",))},
            "one of several switches is 0 or 1",
        ),
    ],
)
def test_switches_that_make_no_sense_are_refused(problem, switches, message) -> None:
    with pytest.raises(ProblemError, match=message):
        solve_switched(problem, switches, Options(intervals=10))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "pieces"),
        ((2.5,), "pieces"),
        ((10**6,), "from 1 to 100000"),
        ((5, -1.0), "step"),
        ((5, 1.0, ("b",)), "step"),
        ((5, None, "b"), "names"),
    ],
)
def test_switches_without_sense_are_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        Switch(*arguments)
    if len(arguments) == 1:
        with pytest.raises(ValueError, match=message):
            solve_switched(fishing(), {"fishing": arguments[0]})
