"""Scales of a phase, and outputs of its system in a solution."""

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest

from designopt.collocation import (
    Guess,
    Integral,
    Options,
    Phase,
    ProblemError,
    Program,
    TrajectoryProblem,
    load_solution,
    save_solution,
    solve,
)
from designopt.dynamics.system import System, Variable


def phase(**more: Any) -> Phase:
    """A mass moves by 1 m in 1 s, rest to rest, at a power that is an output; its acceleration is an unknown."""
    x, v, a, u = (ca.SX.sym(n) for n in ("x", "v", "a", "u"))
    system = System.from_expressions(
        "mass",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s", -50.0, 50.0), v, a)],
        unknowns=[(Variable("a", "m/s^2"), a, 2.0 * a - u)],
        controls=[(Variable("u", "N", -20.0, 20.0), u)],
        outputs=[(Variable("power", "W"), u * v), (Variable("x", "m"), x)],
    )
    ends = {"x": 0.0, "v": 0.0}, {"x": 1.0, "v": 0.0}
    effort = {"effort": Integral(lambda s: s["u"] ** 2)}
    return Phase(system, tf=1.0, initial=ends[0], final=ends[1], integrals=effort, **more)


def problem(**more: Any) -> TrajectoryProblem:
    return TrajectoryProblem([phase(**more)], cost=lambda e: e.integral["effort"])


@pytest.mark.parametrize("scheme", ["hermite_simpson", "radau", "trapezoidal"])
def test_outputs_are_among_the_values_of_a_solution(scheme, tmp_path) -> None:  # type: ignore[no-untyped-def]
    solution = solve(problem(), Options(scheme=scheme, intervals=10))
    values = solution.phase.values
    assert values["power"][1:] == pytest.approx((values["u"] * values["v"])[1:], abs=1e-9)
    assert solution.phase.of_kind("output") == ["power"]
    assert solution.phase.units["power"] == "W"
    assert solution.interpolate([0.5])["power"][0] == pytest.approx(
        values["power"][np.argmin(np.abs(solution.phase.times - 0.5))], abs=0.5
    )
    save_solution(solution, tmp_path / "solution.npz")
    assert load_solution(tmp_path / "solution.npz").phase.values["power"] == pytest.approx(values["power"])
    assert solve(problem(), Options(intervals=10), Guess.from_solution(solution)).success


def test_scales_of_a_phase_replace_those_of_ranges_and_options_have_precedence() -> None:
    assert Program(problem()).solve().scales["motion.v"] == pytest.approx(50.0)
    scaled = problem(scales={"v": 3.0, "a": 7.0})
    scales = Program(scaled).solve().scales
    assert (scales["motion.v"], scales["motion.a"]) == (3.0, 7.0)
    assert Program(scaled, Options(scales={"v": 2.0})).solve().scales["motion.v"] == 2.0
    two_phases = TrajectoryProblem(
        [phase(scales={"v": 3.0}), replace(phase(), name="later", t0=None, tf=2.0)],
        cost=lambda e: sum(part.integral["effort"] for part in e.phase.values()),
    )
    scales = Program(two_phases).solve().scales
    assert (scales["motion.v"], scales["later.v"]) == (3.0, 50.0)


@pytest.mark.parametrize(
    ("scales", "message"), [({"w": 1.0}, "no such variable"), ({"v": 0.0}, "positive"), ({"v": "big"}, "positive")]
)
def test_scales_are_positive_numbers_of_variables(scales, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ProblemError, match=message):
        Program(problem(scales=scales))
