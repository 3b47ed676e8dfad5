"""Motions of machines: a quadrotor and a point past a disc, an arm, a crane."""

from collections.abc import Mapping
from typing import Any

import casadi as ca
from benchmark_problems import fastest, system

from designopt.collocation import Constraint, Integral, Phase, TrajectoryProblem


def quadrotor() -> TrajectoryProblem:
    """A planar quadrotor flies 4 m, past a disc of 0.5 m radius on its way, in 3 s with the least squared thrust."""
    mass, arm, inertia, g = 0.5, 0.15, 5e-3, 9.81
    plant = system(
        "quadrotor",
        {
            "x": lambda s: s["vx"],
            "y": lambda s: s["vy"],
            "angle": lambda s: s["omega"],
            "vx": lambda s: -(s["left"] + s["right"]) * ca.sin(s["angle"]) / mass,
            "vy": lambda s: (s["left"] + s["right"]) * ca.cos(s["angle"]) / mass - g,
            "omega": lambda s: arm * (s["right"] - s["left"]) / inertia,
        },
        ["left", "right"],
        bounds=dict.fromkeys(("left", "right"), (0.0, 6.0)),
    )
    rest = {"angle": 0.0, "vx": 0.0, "vy": 0.0, "omega": 0.0}
    phase = Phase(
        plant,
        tf=3.0,
        initial={"x": 0.0, "y": 0.0, **rest},
        final={"x": 4.0, "y": 0.0, **rest},
        path={"disc": Constraint(lambda v: (v["x"] - 2.0) ** 2 + (v["y"] - 0.1) ** 2 - 0.25, 0.0)},
        integrals={"effort": Integral(lambda v: v["left"] ** 2 + v["right"] ** 2)},
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])


def point_past_disc() -> TrajectoryProblem:
    """A unit mass in the plane passes a disc with the least squared force."""
    plant = system(
        "point",
        {"x": lambda s: s["vx"], "y": lambda s: s["vy"], "vx": lambda s: s["fx"], "vy": lambda s: s["fy"]},
        ["fx", "fy"],
    )
    rest = {"vx": 0.0, "vy": 0.0}
    phase = Phase(
        plant,
        tf=2.0,
        initial={"x": 0.0, "y": 0.0, **rest},
        final={"x": 2.0, "y": 0.0, **rest},
        path={"disc": Constraint(lambda v: (v["x"] - 1.0) ** 2 + (v["y"] + 0.05) ** 2 - 0.16, 0.0)},
        integrals={"effort": Integral(lambda v: v["fx"] ** 2 + v["fy"] ** 2)},
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])


def two_link_arm() -> TrajectoryProblem:
    """A horizontal arm of two equal rods turns from rest to rest in the least time (Luus 2000, section 12.4.2)."""

    def first(s: Mapping[str, Any]) -> Any:
        sine, cosine = ca.sin(s["c"]), ca.cos(s["c"])
        top = sine * (9.0 / 4.0 * cosine * s["a"] ** 2 + 2.0 * s["b"] ** 2)
        return (top + 4.0 / 3.0 * (s["u"] - s["w"]) - 1.5 * cosine * s["w"]) / (31.0 / 36.0 + 9.0 / 4.0 * sine**2)

    def second(s: Mapping[str, Any]) -> Any:
        sine, cosine = ca.sin(s["c"]), ca.cos(s["c"])
        top = -(sine * (9.0 / 4.0 * cosine * s["b"] ** 2 + 3.5 * s["a"] ** 2) - 7.0 / 3.0 * s["w"])
        top -= 1.5 * cosine * (s["u"] - s["w"])
        return top / (31.0 / 36.0 + 9.0 / 4.0 * sine**2)

    plant = system(
        "arm",
        {"a": first, "b": second, "c": lambda s: s["b"] - s["a"], "d": lambda s: s["a"]},
        ["u", "w"],
        bounds=dict.fromkeys(("u", "w"), (-1.0, 1.0)),
    )
    rest = {"a": 0.0, "b": 0.0}
    return fastest(
        Phase(plant, tf=(0.5, 20.0), initial={**rest, "c": 0.5, "d": 0.0}, final={**rest, "c": 0.5, "d": 0.522})
    )


def crane() -> TrajectoryProblem:
    """A container crane lowers and carries its load in 9 s with little swing (Augustin, Maurer, in: Online
    Optimization of Large Scale Systems, 2001, 17)."""
    plant = system(
        "crane",
        {
            "x": lambda s: s["v"],
            "hoist": lambda s: s["vh"],
            "swing": lambda s: s["omega"],
            "v": lambda s: s["u"] + 17.2656 * s["swing"],
            "vh": lambda s: s["w"],
            "omega": lambda s: -(s["u"] + 27.0756 * s["swing"] + 2.0 * s["vh"] * s["omega"]) / s["hoist"],
        },
        ["u", "w"],
        bounds={"u": (-2.83374, 2.83374), "w": (-0.80865, 0.71265), "v": (-2.5, 2.5), "vh": (-1.0, 1.0)},
    )
    phase = Phase(
        plant,
        tf=9.0,
        initial={"x": 0.0, "hoist": 22.0, "swing": 0.0, "v": 0.0, "vh": -1.0, "omega": 0.0},
        final={"x": 10.0, "hoist": 14.0, "swing": 0.0, "v": 2.5, "vh": 0.0, "omega": 0.0},
        integrals={
            "swing": Integral(lambda v: 0.5 * (v["swing"] ** 2 + v["omega"] ** 2) + 0.005 * (v["u"] ** 2 + v["w"] ** 2))
        },
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["swing"])
