"""Geometry of the leg: closure of the four-bar knee, positions of the joints, length of the damper.

Written once for NumPy arrays and for CasADi symbols: functions that the equations of motion use take the module `m`,
which provides ``sin``, ``cos`` and ``sqrt``. A parameter mapping `g` has the names of `designopt_knee.parameters`.

Lü et al. (2020), Chinese Journal of Theoretical and Applied Mechanics 52(4), 1157-1173, called "the paper"; numbers in
brackets are its equations. Angles of links are measured from the vertical, lower end forward is positive: ``u(a) = (sin
a, -cos a)``; the foot from the horizontal, toe up is positive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

#: Joints in the order of the model's `walk` array.
JOINTS = ("hip", "E", "A", "B", "C", "D", "F", "ankle", "heel", "toe")

#: Straight lines that draw the leg, as pairs of `JOINTS`.
LINKS = (
    ("hip", "E"),
    ("E", "A"),
    ("A", "B"),
    ("A", "D"),
    ("B", "C"),
    ("C", "D"),
    ("D", "F"),
    ("F", "ankle"),
    ("heel", "ankle"),
    ("ankle", "toe"),
)

Point = tuple[Any, Any]


def down(angle: Any, m: Any = np) -> Point:
    """u(a): the unit vector that points straight down for 0 and forward for a right angle."""
    return m.sin(angle), -m.cos(angle)


def along(origin: Point, length: Any, direction: Point) -> Point:
    """The point at `length` from `origin` in `direction`."""
    return origin[0] + length * direction[0], origin[1] + length * direction[1]


def fold(g: Mapping[str, Any], eta: Any, m: Any = np) -> Any:
    """Cosine of the angle at A between AC and AD for the angle `eta` of BC to the thigh, closure (1), (2).

    The linkage exists where it lies inside (-1, 1); at either end AD and CD lie in one line and the linkage folds over.
    """
    c = _rear_joint(g, eta, m)
    r = m.sqrt(c[0] ** 2 + c[1] ** 2)
    return (g["ad_length"] ** 2 + r**2 - g["cd_length"] ** 2) / (2.0 * g["ad_length"] * r)


def closure(g: Mapping[str, Any], eta: Any, m: Any = np) -> tuple[Point, Point]:
    """C and D in the frame of the thigh, seen from A, for the angle `eta` of BC relative to the thigh.

    The closure (1), (2) solved on the branch where the leg stands. `eta` is 0 where the knee is straight and negative
    in flexion; it is a good coordinate from hyperextension to beyond 110 degrees, unlike the angle of AD.
    """
    c = _rear_joint(g, eta, m)
    r = m.sqrt(c[0] ** 2 + c[1] ** 2)
    cosine = fold(g, eta, m)
    sine = m.sqrt(1.0 - cosine**2)
    d_x = g["ad_length"] * (cosine * c[0] - sine * c[1]) / r
    d_y = g["ad_length"] * (cosine * c[1] + sine * c[0]) / r
    return c, (d_x, d_y)


def relative_angles(g: Mapping[str, Any], eta: Any) -> tuple[Any, Any]:
    """Angles (rad) of AD and of the shank relative to the thigh, for the angle `eta` of BC relative to the thigh."""
    c, d = closure(g, eta)
    return np.arctan2(d[0], -d[1]), np.arctan2(d[0] - c[0], c[1] - d[1]) - g["lower_body_angle"]


def _rear_joint(g: Mapping[str, Any], eta: Any, m: Any) -> Point:
    """C in the frame of the thigh, A being the origin."""
    b = along((0.0, 0.0), -g["ab_length"], down(g["upper_body_angle"], m))
    return along(b, g["bc_length"], down(eta, m))


def points(g: Mapping[str, Any], hip: Point, thigh: Any, shank: Any, ad: Any, bc: Any, foot: Any) -> dict[str, Point]:
    """Positions of all `JOINTS` from that of the hip and the angles (rad) of the links."""
    upper, lower = down(thigh + g["upper_body_angle"]), down(shank + g["lower_body_angle"])
    sole = (np.cos(foot), np.sin(foot))
    e = along(hip, g["thigh_length"], down(thigh))
    a = along(e, -g["ae_length"], upper)
    b = along(a, -g["ab_length"], upper)
    c = along(b, g["bc_length"], down(bc))
    d = along(a, g["ad_length"], down(ad))
    f = along(d, -g["df_length"], lower)
    ankle = along(f, g["shank_length"], down(shank))
    return {
        "hip": hip,
        "E": e,
        "A": a,
        "B": b,
        "C": c,
        "D": d,
        "F": f,
        "ankle": ankle,
        "heel": along(ankle, -g["heel_fraction"] * g["foot_length"], sole),
        "toe": along(ankle, (1.0 - g["heel_fraction"]) * g["foot_length"], sole),
    }


def instant_centre(g: Mapping[str, Any], eta: Any) -> tuple[Any, Any]:
    """Instant centre (m) of the shank relative to the thigh, seen from A with the thigh upright: the intersection of AD
    and BC (3).
    """
    c, d = closure(g, eta)
    b = along((0.0, 0.0), -g["ab_length"], down(g["upper_body_angle"]))
    rear = (c[0] - b[0], c[1] - b[1])
    share = (b[0] * rear[1] - b[1] * rear[0]) / (d[0] * rear[1] - d[1] * rear[0])
    return share * d[0], share * d[1]


def eta_of_flexion(g: Mapping[str, Any], flexion: Any) -> Any:
    """The angles eta (rad, decreasing) for knee flexions `flexion` (rad, (n,), starting at 0)."""
    eta = np.arange(0.0, -np.pi, -0.002)
    eta = eta[np.cumprod(np.abs(fold(g, eta)) < 1.0).astype(bool)]
    knee = -np.unwrap(relative_angles(g, eta)[1])
    reach = int(np.argmax(knee)) + 1
    return np.interp(flexion, knee[:reach], eta[:reach])


def straight_leg(g: Mapping[str, Any]) -> dict[str, Point]:
    """Positions (m) of all `JOINTS`, seen from the hip, of the leg that hangs straight with its sole level."""
    return points(g, (0.0, 0.0), 0.0, 0.0, float(relative_angles(g, 0.0)[0]), 0.0, 0.0)


def centre_offset(g: Mapping[str, Any]) -> tuple[float, float]:
    """The straight knee's instant centre: its height above A and how far it lies behind the line from hip to heel (m).

    The line is that of the load at heel strike with the leg straight and the sole level. A centre behind it keeps the
    knee straight by the load; one before it needs a hip moment of load times leg length times offset over height above
    the heel (Radcliffe 1994, Prosthetics and Orthotics International 18, 159-173).
    """
    x, y = (float(v) for v in instant_centre(g, 0.0))
    positions = straight_leg(g)
    heel, a = np.array(positions["heel"], dtype=float), np.array(positions["A"], dtype=float)
    centre, along_line = a + np.array([x, y]), heel / np.hypot(*heel)
    return y, float(along_line[1] * centre[0] - along_line[0] * centre[1])


def straight_ad_length(g: Mapping[str, float]) -> float:
    """Length of AD with which the knee is straight (shank in line with the thigh) exactly where eta is 0."""
    upper, lower = g["upper_body_angle"], g["lower_body_angle"]
    d_x = -g["ab_length"] * np.sin(upper) + g["cd_length"] * np.sin(lower)
    d_y = g["ab_length"] * np.cos(upper) - g["bc_length"] - g["cd_length"] * np.cos(lower)
    return float(np.hypot(d_x, d_y))


def flexion_range(g: Mapping[str, float]) -> tuple[float, float]:
    """Knee angles (rad) that the linkage reaches from the straight position on, lowest and highest.

    Scanned in steps of 0.005 rad of eta until the linkage folds; at most a quarter turn of extension and a half turn of
    flexion. NaN twice when the linkage does not close at eta = 0.
    """
    if not abs(fold(g, 0.0)) < 1.0:
        return np.nan, np.nan
    extremes = []
    for eta in (np.arange(0.0, 0.5 * np.pi, 0.005), np.arange(0.0, -np.pi, -0.005)):
        open_ = np.abs(fold(g, eta)) < 1.0
        count = len(eta) if open_.all() else int(np.argmin(open_))
        knee = -np.unwrap(relative_angles(g, eta[:count])[1])
        extremes += [knee.min(), knee.max()]
    return float(min(extremes)), float(max(extremes))


def damper_length(g: Mapping[str, Any], d: Point, m: Any = np) -> Any:
    """Length of the damper for the place `d` of D in the frame of the thigh, seen from A (`closure`).

    A triangle of levers on AB and AD; its angle at A is that of BAD plus psi_d (`damper_phase`). The source gives the
    rest length alone: the triangle is a substitute.
    """
    a, b = g["damper_upper_lever"], g["damper_lower_lever"]
    sine = (d[0] * m.cos(g["damper_phase"]) - d[1] * m.sin(g["damper_phase"])) / g["ad_length"]  # of AD's angle + psi_d
    return m.sqrt(a**2 + b**2 + 2.0 * a * b * sine)


def damper_arm(g: Mapping[str, Any], d: Point, length: Any, m: Any = np) -> Any:
    """Derivative (m/rad) of the damper's `length` (`damper_length`) by the angle of AD."""
    product = g["damper_upper_lever"] * g["damper_lower_lever"]
    cosine = -(d[0] * m.sin(g["damper_phase"]) + d[1] * m.cos(g["damper_phase"])) / g["ad_length"]
    return product * cosine / length


def damper_phase(g: Mapping[str, float]) -> float:
    """psi_d: with it the damper has its rest length where the knee is straight (eta = 0)."""
    a, b, rest_length = g["damper_upper_lever"], g["damper_lower_lever"], g["damper_rest_length"]
    ad, _ = relative_angles(g, 0.0)
    return float(np.arccos((a**2 + b**2 - rest_length**2) / (2.0 * a * b)) - (0.5 * np.pi + ad))
