"""Problems with free time and bang-bang controls, on which a straight-line guess often leads nowhere.

Bryson, Ho: Applied Optimal Control, 1975. Kaya, Noakes: J. Optim. Theory Appl. 117 (2003) 69 (Van der Pol).
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
from benchmark_problems import fastest, system

from designopt.collocation import Phase, TrajectoryProblem
from designopt.dynamics.system import System

INF = math.inf


def _task(plant: System, begin: Mapping[str, float], end: Mapping[str, float], tf: tuple[float, float]) -> Any:
    return fastest(Phase(plant, tf=tf, initial=dict(begin), final=dict(end)))


def oscillator() -> TrajectoryProblem:
    """x'' = -x + u with abs(u) <= 1 from (10, 0) to rest: the switching curve is made of half circles of radius 1, so
    that five switches are needed (Bryson, Ho 1975, section 3.9)."""
    plant = system(
        "oscillator", {"x": lambda s: s["v"], "v": lambda s: s["u"] - s["x"]}, ["u"], bounds={"u": (-1.0, 1.0)}
    )
    return _task(plant, {"x": 10.0, "v": 0.0}, {"x": 0.0, "v": 0.0}, (0.1, 100.0))


def van_der_pol() -> TrajectoryProblem:
    """To rest from (-2, 4)."""
    plant = system(
        "van_der_pol",
        {"x": lambda s: s["v"], "v": lambda s: -s["x"] - (s["x"] ** 2 - 1.0) * s["v"] + s["u"]},
        ["u"],
        bounds={"u": (-1.0, 1.0)},
    )
    return _task(plant, {"x": -2.0, "v": 4.0}, {"x": 0.0, "v": 0.0}, (0.1, 100.0))


def pendulum() -> TrajectoryProblem:
    """Swing up with a quarter of the torque that would hold it level."""
    plant = system(
        "pendulum",
        {"angle": lambda s: s["rate"], "rate": lambda s: s["u"] - ca.sin(s["angle"])},
        ["u"],
        bounds={"u": (-0.25, 0.25)},
    )
    return _task(plant, {"angle": 0.0, "rate": 0.0}, {"angle": math.pi, "rate": 0.0}, (0.1, 100.0))


def two_masses() -> TrajectoryProblem:
    """Two masses and a spring, pushed at one of them, from rest to rest 10 m away."""
    plant = system(
        "two_masses",
        {
            "a": lambda s: s["va"],
            "b": lambda s: s["vb"],
            "va": lambda s: s["u"] - (s["a"] - s["b"]),
            "vb": lambda s: s["a"] - s["b"],
        },
        ["u"],
        bounds={"u": (-1.0, 1.0)},
    )
    rest = {"va": 0.0, "vb": 0.0}
    return _task(plant, {"a": 0.0, "b": 0.0, **rest}, {"a": 10.0, "b": 10.0, **rest}, (0.1, 100.0))


def car() -> TrajectoryProblem:
    """A car of constant speed turns round on the spot where it began (Dubins, Amer. J. Math. 79 (1957) 497)."""
    plant = system(
        "car",
        {"x": lambda s: ca.cos(s["course"]), "y": lambda s: ca.sin(s["course"]), "course": lambda s: s["u"]},
        ["u"],
        bounds={"u": (-1.0, 1.0)},
    )
    return _task(plant, {"x": 0.0, "y": 0.0, "course": 0.0}, {"x": 0.0, "y": 0.0, "course": math.pi}, (0.1, 100.0))


def cart_pole() -> TrajectoryProblem:
    """A pole of 0.5 m swings up on a cart with at most 10 N, no bounds on the motion."""
    m1, m2, length, g = 1.0, 0.3, 0.5, 9.81

    def inertia(s: Mapping[str, Any]) -> Any:
        return m1 + m2 * ca.sin(s["angle"]) ** 2

    def cart(s: Mapping[str, Any]) -> Any:
        c, sine = ca.cos(s["angle"]), ca.sin(s["angle"])
        return (length * m2 * sine * s["omega"] ** 2 + s["u"] + m2 * g * c * sine) / inertia(s)

    def pole(s: Mapping[str, Any]) -> Any:
        c, sine = ca.cos(s["angle"]), ca.sin(s["angle"])
        total = length * m2 * c * sine * s["omega"] ** 2 + s["u"] * c + (m1 + m2) * g * sine
        return -total / (length * inertia(s))

    plant = system(
        "cart_pole",
        {"x": lambda s: s["v"], "angle": lambda s: s["omega"], "v": cart, "omega": pole},
        ["u"],
        bounds={"u": (-10.0, 10.0)},
    )
    rest = {"v": 0.0, "omega": 0.0}
    return _task(plant, {"x": 0.0, "angle": 0.0, **rest}, {"x": 1.0, "angle": math.pi, **rest}, (0.1, 50.0))


def hovercraft() -> TrajectoryProblem:
    """A body on ice with one thruster ahead and a torque goes 5 m sideways, from rest to rest."""
    plant = system(
        "hovercraft",
        {
            "x": lambda s: s["vx"],
            "y": lambda s: s["vy"],
            "angle": lambda s: s["omega"],
            "vx": lambda s: s["thrust"] * ca.cos(s["angle"]),
            "vy": lambda s: s["thrust"] * ca.sin(s["angle"]),
            "omega": lambda s: s["torque"],
        },
        ["thrust", "torque"],
        bounds={"thrust": (0.0, 1.0), "torque": (-1.0, 1.0)},
    )
    rest = {"vx": 0.0, "vy": 0.0, "omega": 0.0}
    return _task(
        plant, {"x": 0.0, "y": 0.0, "angle": 0.0, **rest}, {"x": 0.0, "y": 5.0, "angle": 0.0, **rest}, (0.1, 100.0)
    )


PROBLEMS: Mapping[str, Callable[[], TrajectoryProblem]] = {
    f.__name__: f for f in (oscillator, van_der_pol, pendulum, two_masses, car, cart_pole, hovercraft)
}
