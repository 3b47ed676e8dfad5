"""Trajectory problems whose optimum is known, with the source of it.

[Kelly]: SIAM Review 59 (2017) 849. [Betts]: Practical Methods for Optimal Control and Estimation, SIAM 2010. [COPS]:
Dolan, Moré, Munson, ANL/MCS-TM-273 (2004). [Moco]: Dembia et al., PLoS Comput. Biol. 16 (2020) e1008493, examples.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np
from scipy.optimize import brentq

from designopt.collocation import Constraint, Integral, Phase, TrajectoryProblem
from designopt.dynamics.system import System, Variable

INF = math.inf


def system(
    name: str,
    states: Mapping[str, Any],
    controls: Sequence[str] = (),
    parameters: Sequence[Variable] = (),
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> System:
    """A system of `states` (name: rate as a function of named symbols, ``s["t"]`` is time)."""
    bounds = bounds or {}
    symbols = {n: ca.SX.sym(n) for n in [*states, *controls, *(p.name for p in parameters)]}
    time = ca.SX.sym("t")

    def variable(n: str) -> Variable:
        return Variable(n, "", *bounds.get(n, (-INF, INF)))

    return System.from_expressions(
        name,
        states=[(variable(n), symbols[n], rate({**symbols, "t": time})) for n, rate in states.items()],
        controls=[(variable(n), symbols[n]) for n in controls],
        parameters=[(p, symbols[p.name]) for p in parameters],
        time=time,
    )


def point_mass(mass: float = 1.0, force: float = INF) -> System:
    """``mass x'' = u`` with ``|u| <= force``."""
    return system(
        "point_mass", {"x": lambda s: s["v"], "v": lambda s: s["u"] / mass}, ["u"], bounds={"u": (-force, force)}
    )


def rest_to_rest(mover: System, **more: Any) -> TrajectoryProblem:
    """`mover` from rest to rest over 1 in 1 s with the least int u^2."""
    effort = {"effort": Integral(lambda v: v["u"] ** 2)}
    phase = Phase(mover, tf=1.0, initial={"x": 0.0, "v": 0.0}, final={"x": 1.0, "v": 0.0}, integrals=effort, **more)
    return TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])


def block_move() -> TrajectoryProblem:
    """Least effort from rest to rest over 1 in 1 s: 12, with u = 6 - 12 t. Analytic [Kelly, section 2]."""
    return rest_to_rest(point_mass())


def escaping() -> System:
    """x' = x^2 + u: without control infinite 1/x after x > 0."""
    return system("escaping", {"x": lambda s: s["x"] ** 2 + s["u"]}, ["u"])


def fastest(phase: Phase, **more: Any) -> TrajectoryProblem:
    return TrajectoryProblem([phase], cost=lambda e: e.duration, **more)


def double_integrator() -> TrajectoryProblem:
    """The same in the least time with ``|u| <= 1``: 2, the control switches at 1. Analytic (bang-bang)."""
    return fastest(
        Phase(point_mass(1.0, 1.0), tf=(0.5, 10.0), initial={"x": 0.0, "v": 0.0}, final={"x": 1.0, "v": 0.0})
    )


def sliding_mass() -> TrajectoryProblem:
    """2 kg over 1 m with at most 50 N in the least time: 2 sqrt(m / F) = 0.4 s. Analytic; a [Moco] example."""
    return fastest(
        Phase(
            point_mass(2.0, 50.0),
            tf=(0.1, 1.0),
            bounds={"x": (-5.0, 5.0), "v": (-50.0, 50.0)},
            initial={"x": 0.0, "v": 0.0},
            final={"x": 1.0, "v": 0.0},
        )
    )


def brachistochrone(gravity: float = 9.80665) -> TrajectoryProblem:
    """From rest at (0, 10) m to (10, 5) m in the least time, see `brachistochrone_time`."""
    falling = system(
        "bead",
        {
            "x": lambda s: s["v"] * ca.sin(s["angle"]),
            "y": lambda s: -s["v"] * ca.cos(s["angle"]),
            "v": lambda s: gravity * ca.cos(s["angle"]),
        },
        ["angle"],
        bounds={"angle": (0.0, math.pi)},
    )
    return fastest(Phase(falling, tf=(0.1, 10.0), initial={"x": 0.0, "y": 10.0, "v": 0.0}, final={"x": 10.0, "y": 5.0}))


def brachistochrone_time(gravity: float = 9.80665) -> float:
    """The cycloid x = r (a - sin a), fall = r (1 - cos a) through the end: time a sqrt(r / g). Bernoulli, 1697."""
    a = brentq(lambda a: (a - math.sin(a)) / (1.0 - math.cos(a)) - 10.0 / 5.0, 1e-3, 2.0 * math.pi - 1e-3, xtol=1e-14)
    return float(a * math.sqrt(5.0 / (1.0 - math.cos(a)) / gravity))


def linear_tangent() -> TrajectoryProblem:
    """Thrust of constant size to a level flight at height 5 in the least time: 0.554570879 [Betts, example 4.1]."""
    flight = system(
        "thrust",
        {
            "x": lambda s: s["vx"],
            "y": lambda s: s["vy"],
            "vx": lambda s: 100.0 * ca.cos(s["angle"]),
            "vy": lambda s: 100.0 * ca.sin(s["angle"]),
        },
        ["angle"],
        bounds={"angle": (-0.5 * math.pi, 0.5 * math.pi)},
    )
    return fastest(
        Phase(
            flight,
            tf=(0.1, 5.0),
            initial={"x": 0.0, "y": 0.0, "vx": 0.0, "vy": 0.0},
            final={"y": 5.0, "vx": 45.0, "vy": 0.0},
        )
    )


def hyper_sensitive(duration: float = 1e4) -> TrajectoryProblem:
    """x' = -x^3 + u from 1 to 1.5, see `hyper_sensitive_cost`. Rao and Mease, Automatica 35 (1999) 633."""
    return TrajectoryProblem(
        [
            Phase(
                system("hyper", {"x": lambda s: -(s["x"] ** 3) + s["u"]}, ["u"]),
                tf=duration,
                initial={"x": 1.0},
                final={"x": 1.5},
                integrals={"cost": Integral(lambda v: 0.5 * (v["x"] ** 2 + v["u"] ** 2))},
            )
        ],
        cost=lambda e: e.integral["cost"],
    )


def hyper_sensitive_cost() -> float:
    """The limit of a long time: costates -x^3 -+ x sqrt(x^4 + 1) on the branches that leave 0 and come to it."""

    def part(a: float) -> float:
        return (a * a * math.sqrt(a**4 + 1.0) + math.asinh(a * a)) / 4.0

    return part(1.0) - 0.25 + part(1.5) + 1.5**4 / 4.0


def hyper_sensitive_nodes(intervals: int, duration: float = 1e4) -> np.ndarray:
    """Nodes as fractions: fine where the motion leaves 1 and comes to 1.5, some 30 s each, coarse between."""
    boundary = intervals * 45 // 100
    side = 40.0 / duration * np.linspace(0.0, 1.0, boundary + 1) ** 2
    middle = np.linspace(side[-1], 1.0 - side[-1], intervals - 2 * boundary + 1)
    return np.concatenate([side[:-1], middle, 1.0 - side[-2::-1]])


def rocket() -> System:
    """The normalised Goddard rocket [COPS, problem 10]."""
    hc, vc, c = 500.0, 620.0, 0.5

    def acceleration(s: Mapping[str, Any]) -> Any:
        drag = 0.5 * vc * s["v"] ** 2 * ca.exp(-hc * (s["h"] - 1.0))
        return (s["thrust"] - drag) / s["m"] - 1.0 / s["h"] ** 2

    return system(
        "rocket",
        {"h": lambda s: s["v"], "v": acceleration, "m": lambda s: -s["thrust"] / c},
        ["thrust"],
        bounds={"h": (1.0, 2.0), "v": (0.0, 1.0), "m": (0.6, 1.0), "thrust": (0.0, 3.5)},
    )


def goddard() -> TrajectoryProblem:
    """The highest ascent: h(T) = 1.01283(8), T = 0.1989 [COPS, problem 10]."""
    return TrajectoryProblem(
        [
            Phase(
                rocket(),
                tf=(0.05, 1.0),
                initial={"h": 1.0, "v": 0.0, "m": 1.0},
                final={"m": 0.6},
            )
        ],
        cost=lambda e: -e.final["h"],
    )


def van_der_pol() -> TrajectoryProblem:
    """An oscillator with bounds of control and state: 3.61518, recomputed with radau 5 on 200 intervals."""
    oscillator = system(
        "van_der_pol",
        {"x1": lambda s: (1.0 - s["x2"] ** 2) * s["x1"] - s["x2"] + s["u"], "x2": lambda s: s["x1"]},
        ["u"],
        bounds={"x1": (-0.25, INF), "u": (-1.0, 1.0)},
    )
    return TrajectoryProblem(
        [
            Phase(
                oscillator,
                tf=10.0,
                initial={"x1": 0.0, "x2": 1.0},
                integrals={"cost": Integral(lambda v: v["x1"] ** 2 + v["x2"] ** 2 + v["u"] ** 2)},
            )
        ],
        cost=lambda e: e.integral["cost"],
    )


def cart_pole_system() -> System:
    """Cart and pole of [Kelly, section 6] without an inverted mass matrix; its explicit form follows."""
    m1, m2, length, g = 1.0, 0.3, 0.5, 9.81
    x, angle, v, omega, u, a, alpha = (ca.SX.sym(n) for n in ("x", "angle", "v", "omega", "u", "a", "alpha"))
    cart = (m1 + m2) * a + m2 * length * (alpha * ca.cos(angle) - omega**2 * ca.sin(angle)) - u
    return System.from_expressions(
        "cart_pole",
        states=[
            (Variable("x", "m", -2.0, 2.0), x, v),
            (Variable("angle", "rad"), angle, omega),
            (Variable("v", "m/s"), v, a),
            (Variable("omega", "rad/s"), omega, alpha),
        ],
        controls=[(Variable("u", "N", -20.0, 20.0), u)],
        unknowns=[
            (Variable("a", "m/s^2"), a, cart),
            (Variable("alpha", "rad/s^2"), alpha, a * ca.cos(angle) + length * alpha + g * ca.sin(angle)),
        ],
    )


def cart_pole() -> TrajectoryProblem:
    """Swing-up with the least effort: 58.80766746. Set-up of [Kelly, section 6]; recomputed with four codes."""
    return TrajectoryProblem(
        [
            Phase(
                cart_pole_system(),
                tf=2.0,
                initial={"x": 0.0, "angle": 0.0, "v": 0.0, "omega": 0.0},
                final={"x": 1.0, "angle": math.pi, "v": 0.0, "omega": 0.0},
                integrals={"effort": Integral(lambda v: v["u"] ** 2)},
            )
        ],
        cost=lambda e: e.integral["effort"],
    )


def damped_start(k: float = 1.0) -> TrajectoryProblem:
    """x'' = -k x - c x' from 1 at rest: int x^2 = 1/(2 c) + c/(2 k), least for c = sqrt k, then 1/sqrt k. Analytic."""
    spring = system(
        "spring",
        {"x": lambda s: s["v"], "v": lambda s: -k * s["x"] - s["c"] * s["v"]},
        parameters=[Variable("c", "", 0.05, 10.0)],
    )
    return TrajectoryProblem(
        [
            Phase(
                spring,
                tf=40.0,
                initial={"x": 1.0, "v": 0.0},
                integrals={"square": Integral(lambda v: v["x"] ** 2)},
            )
        ],
        cost=lambda e: e.integral["square"],
    )


def quarter_car() -> TrajectoryProblem:
    """Ride over a bump, choose spring and damper: 1.9417811, c = 510.55, k = 2000; nested simulation 1.9417812."""
    ms, mu, kt = 350.0, 45.0, 2e5

    def force(s: Mapping[str, Any]) -> Any:
        return s["k"] * (s["xu"] - s["xs"]) + s["c"] * (s["vu"] - s["vs"])

    def road(t: Any) -> Any:
        return 0.08 * ca.exp(-(((t - 0.5) / 0.08) ** 2))

    car = system(
        "quarter_car",
        {
            "xs": lambda s: s["vs"],
            "vs": lambda s: force(s) / ms,
            "xu": lambda s: s["vu"],
            "vu": lambda s: (-force(s) - kt * (s["xu"] - road(s["t"]))) / mu,
        },
        parameters=[Variable("k", "N/m", 2000.0, 2e5), Variable("c", "N s/m", 100.0, 2e4)],
    )

    def cost(v: Any) -> Any:
        tyre = v["xu"] - road(v.time)
        return (force(v) / ms) ** 2 + 2000.0 * (v["xs"] - v["xu"]) ** 2 + 5000.0 * tyre**2

    return TrajectoryProblem(
        [
            Phase(
                car,
                tf=3.0,
                initial={"xs": 0.0, "vs": 0.0, "xu": 0.0, "vu": 0.0},
                integrals={"cost": Integral(cost)},
            )
        ],
        cost=lambda e: e.integral["cost"],
        guess={"k": 20000.0, "c": 1500.0},
    )


def oscillator_mass() -> TrajectoryProblem:
    """The mass whose half period is pi sqrt(5 / k): 5. Analytic; set-up of a [Moco] example."""
    k = 100.0
    oscillator = system(
        "oscillator",
        {"x": lambda s: s["v"], "v": lambda s: -k * s["x"] / s["m"]},
        parameters=[Variable("m", "kg", 0.5, 10.0)],
    )
    return TrajectoryProblem(
        [
            Phase(
                oscillator,
                tf=math.pi * math.sqrt(5.0 / k),
                bounds={"x": (-5.0, 5.0), "v": (-20.0, 20.0)},
                initial={"x": -0.5, "v": 0.0},
                final={"x": (0.25, 0.75), "v": 0.0},
            )
        ],
        cost=lambda e: (e.final["x"] - 0.5) ** 2,
    )


def four_peaks(limit: float = INF) -> TrajectoryProblem:
    """Four states that decay, two of them unstable in time reversed and forward, stay outside a sphere with four narrow
    peaks: 2030.85609 [Betts, section 4.7: "Alp rider"]. `limit` bounds the controls."""
    hills = system(
        "hills",
        {
            "a": lambda s: -10.0 * s["a"] + s["u"] + s["w"],
            "b": lambda s: -2.0 * s["b"] + s["u"] + 2.0 * s["w"],
            "c": lambda s: -3.0 * s["c"] + 5.0 * s["d"] + s["u"] - s["w"],
            "d": lambda s: 5.0 * s["c"] - 3.0 * s["d"] + s["u"] + 3.0 * s["w"],
        },
        ["u", "w"],
        bounds={"u": (-limit, limit), "w": (-limit, limit)},
    )

    def square(v: Any) -> Any:
        return v["a"] ** 2 + v["b"] ** 2 + v["c"] ** 2 + v["d"] ** 2

    def peaks(t: Any) -> Any:
        shapes = ((3.0, 3.0, 12.0), (3.0, 6.0, 10.0), (3.0, 10.0, 6.0), (8.0, 15.0, 4.0))
        return sum(height * ca.exp(-sharpness * (t - at) ** 2) for height, at, sharpness in shapes) + 0.01

    phase = Phase(
        hills,
        tf=20.0,
        initial={"a": 2.0, "b": 1.0, "c": 2.0, "d": 1.0},
        final={"a": 2.0, "b": 3.0, "c": 1.0, "d": -2.0},
        path={"outside": Constraint(lambda v: square(v) - peaks(v.time), 0.0)},
        integrals={"cost": Integral(lambda v: 100.0 * square(v) + 0.01 * (v["u"] ** 2 + v["w"] ** 2))},
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["cost"])


def struck(at: float) -> TrajectoryProblem:
    """A state that decays is struck by a pulse of 4 ms: invisible to points that are all 10 ms from it."""
    state = system("struck", {"x": lambda s: s["u"] - s["x"] + 160.0 * ca.exp(-(((s["t"] - at) / 0.0025) ** 2))}, ["u"])
    phase = Phase(state, tf=1.0, initial={"x": 1.0}, integrals={"cost": Integral(lambda v: v["x"] ** 2 + v["u"] ** 2)})
    return TrajectoryProblem([phase], cost=lambda e: e.integral["cost"])
