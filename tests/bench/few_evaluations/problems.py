"""The published problems of `few_evaluations.yaml` as one model, whose condition `problem` names them.

Objectives are minimised, limits are at most 0. RE and CRE: Tanabe & Ishibuchi 2020, "An easy-to-use real-world
multi-objective optimization problem suite", Applied Soft Computing 89; BNH: Binh & Korn 1997; OSY: Osyczka & Kundu
1995; ZDT1, ZDT3: Zitzler, Deb & Thiele 2000; DTLZ2: Deb, Thiele, Laumanns & Zitzler 2005; Kursawe 1991; Branin 1972;
Hartmann 1973; Ackley 1987; Levy & Montalvo 1985; Rosenbrock 1960; Styblinski & Tang 1990; Michalewicz 1992; speed
reducer: Golinski 1970; spring: Belegundu 1982; pressure vessel: Sandgren 1990, with continuous thicknesses.
"""

from __future__ import annotations

import math

import numpy as np

Vector = np.ndarray


def _truss(x: Vector) -> tuple[list[float], list[float]]:
    f1 = 200.0 * (2.0 * x[0] + math.sqrt(2.0) * x[1] + math.sqrt(x[2]) + x[3])
    f2 = 0.01 * (2.0 / x[0] + 2.0 * math.sqrt(2.0) / x[1] - 2.0 * math.sqrt(2.0) / x[2] + 2.0 / x[3])
    return [f1, f2], []


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


def _zdt3(x: Vector) -> tuple[list[float], list[float]]:
    g = 1.0 + 9.0 * float(np.mean(x[1:]))
    ratio = x[0] / g
    return [float(x[0]), g * (1.0 - math.sqrt(ratio) - ratio * math.sin(10.0 * math.pi * x[0]))], []


def _kursawe(x: Vector) -> tuple[list[float], list[float]]:
    f1 = float((-10.0 * np.exp(-0.2 * np.hypot(x[:-1], x[1:]))).sum())
    f2 = float((np.abs(x) ** 0.8 + 5.0 * np.sin(x**3)).sum())
    return [f1, f2], []


def _branin(x: Vector) -> tuple[list[float], list[float]]:
    a, b = x
    hump = b - 5.1 / (4.0 * math.pi**2) * a**2 + 5.0 / math.pi * a - 6.0
    return [hump**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(a) + 10.0], []


_HARTMANN_WIDTHS = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_HARTMANN_CENTRES = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)


def _hartmann(x: Vector) -> tuple[list[float], list[float]]:
    exponents = (_HARTMANN_WIDTHS * (x - _HARTMANN_CENTRES) ** 2).sum(axis=1)
    return [-float(np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-exponents))], []


def _ackley(x: Vector) -> tuple[list[float], list[float]]:
    bowl = -20.0 * math.exp(-0.2 * math.sqrt(float(np.mean(x**2))))
    return [bowl - math.exp(float(np.mean(np.cos(2.0 * math.pi * x)))) + 20.0 + math.e], []


def _levy(x: Vector) -> tuple[list[float], list[float]]:
    w = 1.0 + (x - 1.0) / 4.0
    inner = ((w[:-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(math.pi * w[:-1] + 1.0) ** 2)).sum()
    last = (w[-1] - 1.0) ** 2 * (1.0 + math.sin(2.0 * math.pi * w[-1]) ** 2)
    return [math.sin(math.pi * w[0]) ** 2 + float(inner) + float(last)], []


def _rosenbrock(x: Vector) -> tuple[list[float], list[float]]:
    return [float((100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum())], []


def _styblinski_tang(x: Vector) -> tuple[list[float], list[float]]:
    return [0.5 * float((x**4 - 16.0 * x**2 + 5.0 * x).sum())], []


def _michalewicz(x: Vector) -> tuple[list[float], list[float]]:
    i = np.arange(1, len(x) + 1)
    return [-float((np.sin(x) * np.sin(i * x**2 / math.pi) ** 20).sum())], []


def _speed_reducer(x: Vector) -> tuple[list[float], list[float]]:
    b, m, z, first, second, d1, d2 = x
    weight = 0.7854 * b * m**2 * (3.3333 * z**2 + 14.9334 * z - 43.0934) - 1.508 * b * (d1**2 + d2**2)
    weight += 7.4777 * (d1**3 + d2**3) + 0.7854 * (first * d1**2 + second * d2**2)
    limits = [
        27.0 / (b * m**2 * z) - 1.0,
        397.5 / (b * m**2 * z**2) - 1.0,
        1.93 * first**3 / (m * z * d1**4) - 1.0,
        1.93 * second**3 / (m * z * d2**4) - 1.0,
        math.sqrt((745.0 * first / (m * z)) ** 2 + 16.9e6) / (110.0 * d1**3) - 1.0,
        math.sqrt((745.0 * second / (m * z)) ** 2 + 157.5e6) / (85.0 * d2**3) - 1.0,
        m * z / 40.0 - 1.0,
        5.0 * m / b - 1.0,
        b / (12.0 * m) - 1.0,
        (1.5 * d1 + 1.9) / first - 1.0,
        (1.1 * d2 + 1.9) / second - 1.0,
    ]
    return [weight], limits


def _spring(x: Vector) -> tuple[list[float], list[float]]:
    d, coil, turns = x
    limits = [
        1.0 - coil**3 * turns / (71_785.0 * d**4),
        (4.0 * coil**2 - d * coil) / (12_566.0 * (coil * d**3 - d**4)) + 1.0 / (5_108.0 * d**2) - 1.0,
        1.0 - 140.45 * d / (coil**2 * turns),
        (d + coil) / 1.5 - 1.0,
    ]
    return [(turns + 2.0) * coil * d**2], limits


def _pressure_vessel(x: Vector) -> tuple[list[float], list[float]]:
    shell, head, radius, length = x
    cost = 0.6224 * shell * radius * length + 1.7781 * head * radius**2
    cost += 3.1661 * shell**2 * length + 19.84 * shell**2 * radius
    volume = math.pi * radius**2 * length + 4.0 / 3.0 * math.pi * radius**3
    return [cost], [0.0193 * radius - shell, 0.00954 * radius - head, 1.0 - volume / 1_296_000.0]


FUNCTIONS = {
    "truss_re21": _truss,
    "crashworthiness_re34": _crashworthiness,
    "side_impact_re41": _side_impact_4,
    "welded_beam_cre22": _welded_beam,
    "disc_brake_cre23": _disc_brake,
    "bnh": _bnh,
    "osy": _osy,
    "zdt1_5": _zdt1,
    "dtlz2_3_7": _dtlz2,
    "zdt3_5": _zdt3,
    "kursawe": _kursawe,
    "branin": _branin,
    "hartmann_6": _hartmann,
    "ackley_5": _ackley,
    "levy_8": _levy,
    "rosenbrock_4": _rosenbrock,
    "styblinski_tang_5": _styblinski_tang,
    "michalewicz_5": _michalewicz,
    "speed_reducer": _speed_reducer,
    "spring": _spring,
    "pressure_vessel": _pressure_vessel,
}


def published(design, scenario):
    """Objectives f0, f1, ... and limits g0, g1, ... of the problem in `scenario`; x0, x1, ... are the design."""
    x = np.array([design[f"x{i}"] for i in range(len(design))], dtype=float)
    F, G = FUNCTIONS[scenario["problem"]](x)
    return {f"f{i}": float(v) for i, v in enumerate(F)} | {f"g{i}": float(v) for i, v in enumerate(G)}
