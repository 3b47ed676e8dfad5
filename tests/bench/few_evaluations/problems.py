"""Problems for searches with few evaluations: published ones in plain NumPy, and bundled studies.

Objectives are minimised, limits are at most 0. RE and CRE: Tanabe & Ishibuchi 2020, "An easy-to-use real-world
multi-objective optimization problem suite", Applied Soft Computing 89; BNH: Binh & Korn 1997; OSY: Osyczka & Kundu
1995; ZDT1: Zitzler, Deb & Thiele 2000; DTLZ2: Deb, Thiele, Laumanns & Zitzler 2005; Branin: Dixon & Szego 1978.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import moocore
import numpy as np

import designopt
from designopt.problem import Problem
from designopt.study.study import DesignVariable
from designopt.testing import problem_from

Vector = np.ndarray


@dataclass(frozen=True)
class TestProblem:
    """A problem: `function` gives objectives and limits of one design within `lower` and `upper`; `integers` are the
    indices of whole numbers."""

    __test__ = False

    name: str
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    function: Callable[[Vector], tuple[list[float], list[float]]]
    objectives: int
    limits: int
    integers: tuple[int, ...] = ()


def _truss(x: Vector) -> tuple[list[float], list[float]]:
    f1 = 200.0 * (2.0 * x[0] + math.sqrt(2.0) * x[1] + math.sqrt(x[2]) + x[3])
    f2 = 0.01 * (2.0 / x[0] + 2.0 * math.sqrt(2.0) / x[1] - 2.0 * math.sqrt(2.0) / x[2] + 2.0 / x[3])
    return [f1, f2], []


def _hatch_cover(x: Vector) -> tuple[list[float], list[float]]:
    E = 700_000.0
    bending, buckling = 4500.0 / (x[0] * x[1]), E * x[0] ** 2 / 100.0
    deflection = 562_000.0 / (E * x[0] * x[1] ** 2)
    g = [bending / 700.0 - 1.0, 1800.0 / x[1] / 450.0 - 1.0, deflection / 1.5 - 1.0, bending / buckling - 1.0]
    return [x[0] + 120.0 * x[1], sum(max(v, 0.0) for v in g)], []


def _crashworthiness(x: Vector) -> tuple[list[float], list[float]]:
    a, b, c, d, e = x
    f1 = 1640.2823 + 2.3573285 * a + 2.3220035 * b + 4.5688768 * c + 7.7213633 * d + 4.4559504 * e
    f2 = 6.5856 + 1.15 * a - 1.0427 * b + 0.9738 * c + 0.8364 * d - 0.3695 * a * d + 0.0861 * a * e
    f2 += 0.3628 * b * d - 0.1106 * a * a - 0.3437 * c * c + 0.1764 * d * d
    f3 = -0.0551 + 0.0181 * a + 0.1024 * b + 0.0421 * c - 0.0073 * a * b + 0.024 * b * c - 0.0118 * b * d
    f3 += -0.0204 * c * d - 0.008 * c * e - 0.0241 * b * b + 0.0109 * d * d
    return [f1, f2, f3], []


def _welded_beam(x: Vector) -> tuple[list[float], list[float]]:
    h, length, t, b = x
    P, L, E, G = 6000.0, 14.0, 30e6, 12e6
    R = math.sqrt(0.25 * length**2 + 0.25 * (h + t) ** 2)
    J = 2.0 * math.sqrt(2.0) * h * length * (length**2 / 12.0 + 0.25 * (h + t) ** 2)
    first, second = P / (math.sqrt(2.0) * h * length), P * (L + 0.5 * length) * R / J
    shear = math.sqrt(first**2 + first * second * length / R + second**2)
    bending = 6.0 * P * L / (b * t**2)
    critical = 4.013 * E * math.sqrt(t**2 * b**6 / 36.0) / L**2 * (1.0 - t / (2.0 * L) * math.sqrt(E / (4.0 * G)))
    cost = 1.10471 * h**2 * length + 0.04811 * t * b * (14.0 + length)
    g = [shear / 13_600.0 - 1.0, bending / 30_000.0 - 1.0, h - b, 1.0 - critical / P]
    return [cost, 4.0 * P * L**3 / (E * b * t**3)], g


def _disc_brake(x: Vector) -> tuple[list[float], list[float]]:
    r, R, force, discs = x
    square, cube = R**2 - r**2, R**3 - r**3
    f1 = 4.9e-5 * square * (discs - 1.0)
    f2 = 9.82e6 * square / (force * discs * cube)
    pressure, heat = force / (3.14 * square), 2.22e-3 * force * cube / square**2
    torque = 2.66e-2 * force * discs * cube / square
    return [f1, f2], [20.0 - (R - r), pressure - 0.4, heat - 1.0, 900.0 - torque]


def _speed_reducer(x: Vector) -> tuple[list[float], list[float]]:
    a, b, c, d, e, f, g = x
    c = round(c)
    weight = 0.7854 * a * b**2 * (10.0 * c**2 / 3.0 + 14.933 * c - 43.0934) - 1.508 * a * (f**2 + g**2)
    weight += 7.477 * (f**3 + g**3) + 0.7854 * (d * f**2 + e * g**2)
    stress = math.sqrt((745.0 * d / (b * c)) ** 2 + 1.69e7) / (0.1 * f**3)
    other = math.sqrt((745.0 * e / (b * c)) ** 2 + 1.575e8) / (0.1 * g**3)
    limits = [
        1.0 / (a * b**2 * c) - 1.0 / 27.0,
        1.0 / (a * b**2 * c**2) - 1.0 / 397.5,
        d**3 / (b * c * f**4) - 1.0 / 1.93,
        e**3 / (b * c * g**4) - 1.0 / 1.93,
        b * c - 40.0,
        a / b - 12.0,
        5.0 - a / b,
        1.9 - d + 1.5 * f,
        1.9 - e + 1.1 * g,
        stress - 1300.0,
        other - 1100.0,
    ]
    return [weight, stress], limits


def _side_impact(x: Vector) -> tuple[list[float], list[float]]:
    a, b, c, d, e, f, g = x
    weight = 1.98 + 4.9 * a + 6.67 * b + 6.98 * c + 4.01 * d + 1.78 * e + 0.00001 * f + 2.73 * g
    force = 4.72 - 0.5 * d - 0.19 * b * c
    pillar = 10.58 - 0.674 * a * b - 0.67275 * b
    door = 16.45 - 0.489 * c * g - 0.843 * e * f
    limits = [
        1.16 - 0.3717 * b * d - 0.0092928 * c - 1.0,
        0.261 - 0.0159 * a * b - 0.06486 * a - 0.019 * b * g + 0.0144 * c * e + 0.0154464 * f - 0.32,
        0.214
        + 0.00817 * e
        - 0.045195 * a
        - 0.0135168 * a
        + 0.03099 * b * f
        - 0.018 * b * g
        + 0.007176 * c
        + 0.023232 * c
        - 0.00364 * e * f
        - 0.018 * b * b
        - 0.32,
        0.74 - 0.61 * b - 0.031296 * c - 0.031872 * g + 0.227 * b * b - 0.32,
        28.98 + 3.818 * c - 4.2 * a * b + 1.27296 * f - 2.68065 * g - 32.0,
        33.86 + 2.95 * c - 5.057 * a * b - 3.795 * b - 3.4431 * g + 1.45728 - 32.0,
        46.36 - 9.9 * b - 4.4505 * a - 32.0,
        force - 4.0,
        pillar - 9.9,
        door - 15.7,
    ]
    return [weight, force, 0.5 * (pillar + door)], limits


def _side_impact_4(x: Vector) -> tuple[list[float], list[float]]:
    F, limits = _side_impact(x)
    return [*F, sum(max(v, 0.0) for v in limits)], []


def _bnh(x: Vector) -> tuple[list[float], list[float]]:
    a, b = x
    g = [(a - 5.0) ** 2 + b**2 - 25.0, 7.7 - (a - 8.0) ** 2 - (b + 3.0) ** 2]
    return [4.0 * a**2 + 4.0 * b**2, (a - 5.0) ** 2 + (b - 5.0) ** 2], g


def _osy(x: Vector) -> tuple[list[float], list[float]]:
    a, b, c, d, e, f = x
    f1 = -(25.0 * (a - 2.0) ** 2 + (b - 2.0) ** 2 + (c - 1.0) ** 2 + (d - 4.0) ** 2 + (e - 1.0) ** 2)
    g = [
        2.0 - a - b,
        a + b - 6.0,
        b - a - 2.0,
        a - 3.0 * b - 2.0,
        (c - 3.0) ** 2 + d - 4.0,
        4.0 - (e - 3.0) ** 2 - f,
    ]
    return [f1, float((np.asarray(x) ** 2).sum())], g


def _zdt1(x: Vector) -> tuple[list[float], list[float]]:
    g = 1.0 + 9.0 * float(np.mean(x[1:]))
    return [float(x[0]), g * (1.0 - math.sqrt(x[0] / g))], []


def _dtlz2(x: Vector) -> tuple[list[float], list[float]]:
    m = 3
    radius = 1.0 + float(((np.asarray(x[m - 1 :]) - 0.5) ** 2).sum())
    angles = np.asarray(x[: m - 1]) * math.pi / 2.0
    f = [radius * float(np.prod(np.cos(angles[: m - 1 - i]))) for i in range(m)]
    return [v * (float(np.sin(angles[m - 1 - i])) if i else 1.0) for i, v in enumerate(f)], []


def _branin(x: Vector) -> tuple[list[float], list[float]]:
    b, c, t = 5.1 / (4.0 * math.pi**2), 5.0 / math.pi, 1.0 / (8.0 * math.pi)
    return [(x[1] - b * x[0] ** 2 + c * x[0] - 6.0) ** 2 + 10.0 * (1.0 - t) * math.cos(x[0]) + 10.0], []


ROOT2 = math.sqrt(2.0)
PUBLISHED = {
    p.name: p
    for p in (
        TestProblem("truss_re21", (1.0, ROOT2, ROOT2, 1.0), (3.0,) * 4, _truss, 2, 0),
        TestProblem("hatch_cover_re24", (0.5, 0.5), (4.0, 50.0), _hatch_cover, 2, 0),
        TestProblem("crashworthiness_re34", (1.0,) * 5, (3.0,) * 5, _crashworthiness, 3, 0),
        TestProblem("welded_beam_cre22", (0.125, 0.1, 0.1, 0.125), (5.0, 10.0, 10.0, 5.0), _welded_beam, 2, 4),
        TestProblem("disc_brake_cre23", (55.0, 75.0, 1000.0, 11.0), (80.0, 110.0, 3000.0, 20.0), _disc_brake, 2, 4),
        TestProblem(
            "speed_reducer_cre24",
            (2.6, 0.7, 17.0, 7.3, 7.3, 2.9, 5.0),
            (3.6, 0.8, 28.0, 8.3, 8.3, 3.9, 5.5),
            _speed_reducer,
            2,
            11,
            (2,),
        ),
        TestProblem(
            "side_impact_cre31",
            (0.5, 0.45, 0.5, 0.5, 0.875, 0.4, 0.4),
            (1.5, 1.35, 1.5, 1.5, 2.625, 1.2, 1.2),
            _side_impact,
            3,
            10,
        ),
        TestProblem(
            "side_impact_re41",
            (0.5, 0.45, 0.5, 0.5, 0.875, 0.4, 0.4),
            (1.5, 1.35, 1.5, 1.5, 2.625, 1.2, 1.2),
            _side_impact_4,
            4,
            0,
        ),
        TestProblem("bnh", (0.0, 0.0), (5.0, 3.0), _bnh, 2, 2),
        TestProblem("osy", (0.0, 0.0, 1.0, 0.0, 1.0, 0.0), (10.0, 10.0, 5.0, 6.0, 5.0, 10.0), _osy, 2, 6),
        TestProblem("zdt1_5", (0.0,) * 5, (1.0,) * 5, _zdt1, 2, 0),
        TestProblem("dtlz2_3_7", (0.0,) * 7, (1.0,) * 7, _dtlz2, 3, 0),
        TestProblem("branin", (-5.0, 0.0), (10.0, 15.0), _branin, 1, 0),
    )
}

#: Bundled studies by the name of their file.
STUDIES = ("knee_damper", "course_pid_2obj", "quarter_car")
PROBLEMS = (*PUBLISHED, *STUDIES)
#: The problems of the table; the others are for trials.
TWELVE = (
    "truss_re21",
    "crashworthiness_re34",
    "side_impact_re41",
    "welded_beam_cre22",
    "disc_brake_cre23",
    "bnh",
    "osy",
    "zdt1_5",
    "dtlz2_3_7",
    *STUDIES,
)


def posed(name: str) -> Problem:
    """The problem as solvers get it."""
    if name in STUDIES:
        return designopt.load(Path(__file__).parents[3] / "studies" / f"{name}.yaml").problem
    p = PUBLISHED[name]
    names = [f"x{i}" for i in range(len(p.lower))]
    kinds = ["int" if i in p.integers else "real" for i in range(len(names))]
    space = [DesignVariable(*one) for one in zip(names, kinds, p.lower, p.upper, strict=True)]

    def function(design, scenario):
        F, G = p.function(np.array([design[n] for n in names], dtype=float))
        return {f"f{i}": v for i, v in enumerate(F)} | {f"g{i}": v for i, v in enumerate(G)}

    minimize, limits = [f"f{i}" for i in range(p.objectives)], {f"g{i}": 0.0 for i in range(p.limits)}
    return problem_from(function, space, minimize=minimize, limits=limits)


#: Lower and upper corner of the front, and its hypervolume over these below 1.1 in each objective: the nondominated
#: designs of two runs of NSGA-II with 50 000 evaluations each (population 200; 30 000 and 300 with four objectives). Of
#: the knee the committed front (results/reference), of the course the best of all runs here and of 2032 designs of the
#: study itself. For one objective the optimum, and a value that a quarter of random designs is below.
FRONTS = {
    "truss_re21": ((1237.846, 0.00276149), (2886.36368, 0.040001), 0.886565),
    "hatch_cover_re24": ((60.5, 0.0), (481.6124, 44.281905), 1.170683),
    "crashworthiness_re34": ((1661.70851, 6.1429479, 0.04248643), (1692.00128, 10.55791, 0.26399), 1.036567),
    "side_impact_re41": ((15.632148, 3.585277, 10.629039, 0.0), (42.535219, 4.427036, 13.088817, 9.439258), 0.902303),
    "welded_beam_cre22": ((1.747211, 0.00043904), (35.64620, 0.0139855), 1.130396),
    "disc_brake_cre23": ((1.284751, 1.139072), (5.306698, 3.218204), 1.030843),
    "speed_reducer_cre24": ((2771.9755, 694.7068), (5775.7669, 1299.83432), 1.179981),
    "side_impact_cre31": ((23.678227, 3.585253, 10.610852), (42.759399, 4.0, 12.514571), 0.810368),
    "bnh": ((0.0, 4.0), (136.0, 50.0), 1.023682),
    "osy": ((-273.884239, 4.003479), (-41.9562, 76.66391), 0.969285),
    "zdt1_5": ((0.0, 0.0), (1.0, 1.0), 0.874971),
    "dtlz2_3_7": ((0.0, 0.0, 0.0), (1.01336, 1.006217, 1.001179), 0.767625),
    "branin": ((0.397887,), (10.0,), 1.1),
    "knee_damper": ((0.00368948, 1.91397), (0.0155913, 5.85027), 0.404029),
    "quarter_car": ((1.94178115,), (10.2,), 1.1),
    "course_pid_2obj": ((7.97, 0.66), (14.361, 1.42364), 1.0793),
}


def share(name: str, F: Vector) -> float:
    """The hypervolume of feasible designs with objectives `F` (n, m), relative to that of the front."""
    low, high, best = FRONTS[name]
    F = (F.reshape(-1, len(low)) - low) / (np.array(high) - low)
    F = F[(F < 1.1).all(axis=1)]
    if F.shape[1] == 1:
        return float(1.1 - F.min()) / best if len(F) else 0.0
    return float(moocore.hypervolume(F, ref=np.full(len(low), 1.1))) / best if len(F) else 0.0
