"""A problem with delayed variables whose optimum is known in closed form."""

from __future__ import annotations

from typing import Any

from benchmark_problems import system

from designopt.collocation import Delay, Integral, Phase, TrajectoryProblem


def product(**more: Any) -> TrajectoryProblem:
    """x' = x(t - 1) u(t - 2), int x^2 + u^2 over 3, x = 1 and u = 0 before (the analytic example of Goellmann, Kern,
    Maurer, Optim. Control Appl. Meth. 30 (2009) 341). Nothing moves before 2, and then x' = u(t - 2) from 1 on over 1:
    2 + tanh 1. From x(0) = a it is 2 a^2 + a tanh a."""
    of = system("product", {"x": lambda s: s["x_late"] * s["u_late"]}, ["u", "x_late", "u_late"])
    stated: dict[str, Any] = {
        "tf": 3.0,
        "initial": {"x": 1.0},
        "integrals": {"cost": Integral(lambda v: v["x"] ** 2 + v["u"] ** 2)},
        "delays": {"x_late": Delay("x", 1.0, 1.0), "u_late": Delay("u", 2.0, 0.0)},
    }
    return TrajectoryProblem([Phase(of, **{**stated, **more})], cost=lambda e: e.integral["cost"])
