"""Published problems with their optima: the table of the page on direct collocation, and its test.

Each with a reference that has nothing to do with a transcription where there is one ("analytic"); else the digits that
are printed, or those that several codes agree on. [Betts], [COPS], [Kelly]: see `benchmark_problems`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import benchmark_problems as known
import casadi as ca
import hard_starts
from benchmark_problems import fastest, point_mass, system
from singular_arcs import catalyst, damped_to_rest

from designopt.collocation import Integral, Phase, TrajectoryProblem


class Published(NamedTuple):
    """A problem, its optimum, how well that is known (relative), the source, and what is special about it."""

    problem: Callable[[], TrajectoryProblem]
    optimum: float
    known_to: float
    source: str
    kind: str = ""


def bryson_denham() -> TrajectoryProblem:
    """x'' = u from (0, 1) to (0, -1) in 1 s with x <= 1/9: int u^2/2 = 4 / (9 * 1/9) = 4."""
    phase = Phase(
        point_mass(),
        tf=1.0,
        bounds={"x": (-1.0, 1.0 / 9.0)},
        initial={"x": 0.0, "v": 1.0},
        final={"x": 0.0, "v": -1.0},
        integrals={"effort": Integral(lambda v: 0.5 * v["u"] ** 2)},
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])


def lander() -> TrajectoryProblem:
    """Least thrust for a soft landing from 10 at -2 under 1.5 of gravity with 0 <= u <= 3: free fall, then full thrust.
    T = 2/3 v0 + 4/3 sqrt(v0^2 / 2 + 3/2 h0), the integral of u is 1.5 T - v0 (Meditch, IEEE Trans. 9 (1964) 477)."""
    falling = system(
        "lander",
        {"h": lambda s: s["v"], "v": lambda s: s["u"] - 1.5},
        ["u"],
        bounds={"h": (0.0, 20.0), "u": (0.0, 3.0)},
    )
    phase = Phase(
        falling,
        tf=(0.1, 20.0),
        initial={"h": 10.0, "v": -2.0},
        final={"h": 0.0, "v": 0.0},
        integrals={"thrust": Integral(lambda v: v["u"])},
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["thrust"])


def lander_cost() -> float:
    return 1.5 * (-4.0 / 3.0 + 4.0 / 3.0 * math.sqrt(17.0)) + 2.0


def totally_singular() -> TrajectoryProblem:
    """x'' = u, int (v^2 - x^2)/2 over a quarter period from (0, 1): u = -sin t all the way, cost 0 (Aly, Chan, Int. J.
    Control 17 (1973) 809)."""
    phase = Phase(
        point_mass(1.0, 1.0),
        tf=0.5 * math.pi,
        initial={"x": 0.0, "v": 1.0},
        integrals={"action": Integral(lambda v: 0.5 * (v["v"] ** 2 - v["x"] ** 2))},
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["action"])


def third_on_a_bound() -> TrajectoryProblem:
    """x' = u, y' = -x, cost of int (x^2 - y) over T = 10 with abs(u) <= 1. The costate of y is t - T; on a singular arc
    x = (t - T)/2 with u = 1/2, which u = -1 reaches at T/3: cost -T^3/18."""
    plant = system("third", {"x": lambda s: s["u"], "y": lambda s: -s["x"]}, ["u"], bounds={"u": (-1.0, 1.0)})
    phase = Phase(
        plant, tf=10.0, initial={"x": 0.0, "y": 0.0}, integrals={"cost": Integral(lambda v: v["x"] ** 2 - v["y"])}
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["cost"])


def robot_arm() -> TrajectoryProblem:
    """An arm that extends and turns in least time [COPS, problem 8]."""

    def inertia(s: Any) -> Any:
        return ((5.0 - s["r"]) ** 3 + s["r"] ** 3) / 3.0

    arm = system(
        "robot_arm",
        {
            "r": lambda s: s["vr"],
            "turn": lambda s: s["vt"],
            "lift": lambda s: s["vl"],
            "vr": lambda s: s["ur"] / 5.0,
            "vt": lambda s: s["ut"] / (inertia(s) * ca.sin(s["lift"]) ** 2),
            "vl": lambda s: s["ul"] / inertia(s),
        },
        ["ur", "ut", "ul"],
        bounds={
            "r": (0.0, 5.0),
            "turn": (-math.pi, math.pi),
            "lift": (0.0, math.pi),
            **dict.fromkeys(("ur", "ut", "ul"), (-1.0, 1.0)),
        },
    )
    rest = {"vr": 0.0, "vt": 0.0, "vl": 0.0}
    begin = {"r": 4.5, "turn": 0.0, "lift": math.pi / 4.0, **rest}
    return fastest(Phase(arm, tf=(0.1, 50.0), initial=begin, final={**begin, "turn": 2.0 * math.pi / 3.0}))


PUBLISHED = {
    "block": Published(known.block_move, 12.0, 1e-12, "analytic"),
    "double integrator": Published(known.double_integrator, 2.0, 1e-12, "analytic", "free time, bang-bang"),
    "sliding mass": Published(known.sliding_mass, 0.4, 1e-12, "analytic", "free time, bang-bang"),
    "oscillator": Published(hard_starts.oscillator, 5.0 * math.pi, 1e-12, "analytic", "free time, bang-bang"),
    "car": Published(hard_starts.car, 7.0 * math.pi / 3.0, 1e-12, "analytic", "free time, bang-bang"),
    "robot arm": Published(robot_arm, 9.14093, 2e-6, "COPS 8", "free time, bang-bang"),
    "lander": Published(lander, lander_cost(), 1e-12, "analytic", "free time, bang-bang"),
    "brachistochrone": Published(known.brachistochrone, 1.801603122, 1e-9, "analytic", "free time"),
    "linear tangent": Published(known.linear_tangent, 0.554570879, 2e-9, "analytic", "free time"),
    "bryson-denham": Published(bryson_denham, 4.0, 1e-12, "analytic", "bound of a state"),
    "hyper-sensitive": Published(known.hyper_sensitive, 3.3620569049, 1e-10, "analytic", "stiff"),
    "hyper-sensitive, 1000 s": Published(
        lambda: known.hyper_sensitive(1000.0), 3.3620569049, 1e-10, "analytic", "stiff"
    ),
    "quarter car": Published(known.quarter_car, 1.9417811, 5e-8, "simulation", "stiff, pulse"),
    "struck": Published(lambda: known.struck(0.527), 0.7236371042, 1e-9, "radau 5, 2000 intervals", "narrow pulse"),
    "four peaks": Published(known.four_peaks, 2030.85609, 1e-6, "Betts 4.7", "narrow pulses"),
    "goddard": Published(known.goddard, -1.01283, 1e-5, "COPS 10", "singular, free time"),
    "catalyst": Published(catalyst, -0.0480556, 2e-6, "COPS 14", "singular"),
    "damped to rest": Published(damped_to_rest, 0.3769919, 3e-7, "Aly 1978", "singular"),
    "totally singular": Published(totally_singular, 0.0, 1e-9, "analytic", "singular"),
    "third on a bound": Published(third_on_a_bound, -500.0 / 9.0, 1e-12, "analytic", "singular"),
    "van der pol": Published(known.van_der_pol, 3.61518, 2e-6, "radau 5, 200 intervals", "bound of a state"),
    "cart-pole": Published(known.cart_pole, 58.80766746, 1e-9, "four codes"),
    "damped start": Published(lambda: known.damped_start(1.0), 1.0, 1e-12, "analytic", "parameter"),
}
