"""A small cost is found as exactly as a large one."""

from __future__ import annotations

import casadi as ca
import pytest

from designopt.collocation import Integral, Options, Phase, TrajectoryProblem, solve
from designopt.dynamics.system import System, Variable


def push(size: float) -> TrajectoryProblem:
    """A block moves by 1 m in 1 s, rest to rest, with a force of 0.5 to 5 N forward and one of as much backward; what
    is paid is `size` times the integral of their squares."""
    x, v, forward, backward = (ca.SX.sym(n) for n in ("x", "v", "forward", "backward"))
    block = System.from_expressions(
        "block",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, forward - backward)],
        controls=[(Variable("forward", "N", 0.5, 5.0), forward), (Variable("backward", "N", 0.5, 5.0), backward)],
    )
    phase = Phase(
        block,
        tf=1.0,
        initial={"x": 0.0, "v": 0.0},
        final={"x": 1.0, "v": 0.0},
        integrals={"effort": Integral(lambda s: size * (s["forward"] ** 2 + s["backward"] ** 2))},
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])


@pytest.mark.parametrize("size", [1e-2, 1e-3, 1e-5])
def test_the_unit_of_the_cost_does_not_change_the_motion(size: float) -> None:
    """The tolerance of an interior-point solver is absolute: on 100 intervals bounds cost 1e-6 beside a true cost of
    1e-4 unless the cost is scaled up, and the more the finer the mesh is."""
    options = Options(scheme="radau", intervals=100)
    large, small = solve(push(1.0), options), solve(push(size), options)
    assert small.success, small.message
    assert small.objective / size == pytest.approx(large.objective, rel=1e-6)
