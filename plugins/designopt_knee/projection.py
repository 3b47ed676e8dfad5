"""The single degree of freedom of the knee: positions of the links as functions of an angle eta, their rates, and the
projected inertia and loads.

Symbols of CasADi in the frame of the thigh, hip at the origin. Rates are derivatives with respect to eta in closed
form: each follows from the closed loop A-B-C-D by two cross products, so an evaluation needs no derivative of an
inverse function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from designopt.lazy import casadi as ca
from designopt_knee import linkage

#: A quantity and its first and second derivative by eta.
Motion = tuple[Any, Any, Any]


def quarter_turn(v: Any) -> Any:
    """`v` (2,) turned by a right angle: the derivative of a turning vector by its angle."""
    return ca.vertcat(-v[1], v[0])


def cross(a: Any, b: Any) -> Any:
    """The third component of the cross product of two vectors (2,)."""
    return a[0] * b[1] - a[1] * b[0]


def turning(vector: Any, angle1: Any, angle2: Any) -> Motion:
    """A `vector` (2,) that turns with rates `angle1` and `angle2`."""
    side = quarter_turn(vector)
    return vector, angle1 * side, angle2 * side - angle1**2 * vector


def total(*motions: Motion) -> Motion:
    """The sum of several."""
    return sum(m[0] for m in motions), sum(m[1] for m in motions), sum(m[2] for m in motions)


class KneeMotion:
    """Positions (m) and angles (rad) of the links as functions of eta for parameters `g` (see
    `designopt_knee.parameters`).

    `a`, `b` are fixed positions, `bc` the vector from B to C, `lower` and `axis` the directions from C to D and of the
    shank, `f` the position of F relative to D. `ad` (from A), `d`, `ankle` and the angle `shank` are motions; `ad1`,
    `ad2` are the rates of AD's angle. `damper` is its length.
    """

    def __init__(self, g: Mapping[str, Any], eta: Any) -> None:
        upper = linkage.down(g["upper_body_angle"], ca)
        a = linkage.along((0.0, -g["thigh_length"]), -g["ae_length"], upper)
        self.a: Any = ca.vertcat(*a)
        self.b: Any = ca.vertcat(*linkage.along(a, -g["ab_length"], upper))
        self.bc: Any = g["bc_length"] * ca.vertcat(*linkage.down(eta, ca))
        closure = linkage.closure(g, eta, ca)
        ac: Any = ca.vertcat(*closure[0])
        ad: Any = ca.vertcat(*closure[1])
        front: Any = ad / g["ad_length"]
        self.lower: Any = (ad - ac) / g["cd_length"]
        # Derivatives of the closed loop AD = AB + BC + CD, vectors turned back by a right angle, by cross products:
        # l_AD ad1 front - l_CD shank1 lower = bc;  l_AD ad2 front - l_CD shank2 lower = rest.
        between = cross(front, self.lower)

        def rates(right: Any) -> tuple[Any, Any]:
            return (
                cross(right, self.lower) / between / g["ad_length"],
                cross(right, front) / between / g["cd_length"],
            )

        self.ad1, shank1 = rates(self.bc)
        self.ad2, shank2 = rates(
            quarter_turn(self.bc - g["ad_length"] * self.ad1**2 * front + g["cd_length"] * shank1**2 * self.lower)
        )
        self.ad = turning(ad, self.ad1, self.ad2)
        self.d: Motion = (self.a + ad, *self.ad[1:])
        tilt_cos, tilt_sin = ca.cos(g["lower_body_angle"]), ca.sin(g["lower_body_angle"])
        self.axis: Any = tilt_cos * self.lower - tilt_sin * quarter_turn(self.lower)
        self.shank: Motion = (ca.atan2(self.axis[0], -self.axis[1]), shank1, shank2)
        self.f: Any = -g["df_length"] * self.lower
        self.ankle = total(self.d, turning(self.f + g["shank_length"] * self.axis, shank1, shank2))
        self.damper = linkage.damper_length(g, (ad[0], ad[1]), ca)


@dataclass(frozen=True)
class RigidGroup:
    """Bodies that turn as one with rates `angle1`, `angle2` about a point `base`, which may move.

    `moment` (2,) is the sum of mass times place seen from the base, `inertia` the sum of moments of inertia about it.
    """

    mass: Any
    base: Motion
    moment: Any
    inertia: Any
    angle1: Any
    angle2: Any

    @property
    def projected_mass(self) -> Any:
        """Sum of mass times squared speed for a unit rate of eta."""
        _, base1, _ = self.base
        side = quarter_turn(self.moment)
        return (
            self.mass * ca.dot(base1, base1) + 2.0 * self.angle1 * ca.dot(base1, side) + self.angle1**2 * self.inertia
        )

    def projected_bias(self, field: Any, omega: Any, alpha: Any, eta_rate: Any) -> Any:
        """Sum of mass times acceleration along eta where eta itself does not accelerate.

        `field` is the acceleration of the frame's origin less that of free fall; the frame turns with `omega` and
        `alpha`. Coriolis terms have no part along the motion of one freedom.
        """
        base, base1, base2 = self.base
        side, total_moment = quarter_turn(self.moment), self.mass * base + self.moment
        along = self.mass * base1 + self.angle1 * side
        return (
            ca.dot(along, field)
            + alpha
            * (ca.dot(base1, quarter_turn(total_moment)) + self.angle1 * (ca.dot(self.moment, base) + self.inertia))
            - omega**2 * (ca.dot(base1, total_moment) + self.angle1 * ca.dot(side, base))
            + eta_rate**2
            * (
                ca.dot(along, base2)
                + self.angle2 * ca.dot(base1, side)
                - self.angle1**2 * ca.dot(base1, self.moment)
                + self.angle1 * self.angle2 * self.inertia
            )
        )

    def hip_load(self, field: Any, omega: Any, alpha: Any, eta_rate: Any, eta_acceleration: Any) -> tuple[Any, Any]:
        """Force (2,) and moment about the frame's origin that the motion takes, weight included.

        As in `projected_bias`; the sums of mass times acceleration, and of place cross mass times acceleration, with
        the bodies' own moments of inertia in `inertia`.
        """
        base, base1, base2 = self.base
        at_base = (
            field
            + alpha * quarter_turn(base)
            - omega**2 * base
            + 2.0 * omega * eta_rate * quarter_turn(base1)
            + eta_rate**2 * base2
            + eta_acceleration * base1
        )
        turning = alpha + eta_rate**2 * self.angle2 + eta_acceleration * self.angle1
        relative = turning * quarter_turn(self.moment) - (omega + eta_rate * self.angle1) ** 2 * self.moment
        moment = cross(self.mass * base + self.moment, at_base) + cross(base, relative) + turning * self.inertia
        return self.mass * at_base + relative, moment


def links(g: Mapping[str, Any], knee: KneeMotion, *, shank_hung: bool) -> list[tuple[RigidGroup, bool]]:
    """The links of the leg below the thigh, and whether each hangs from a point at rest instead of from the hip.

    The foot is a mass at the ankle: its centre lies on the sole, which does not turn with eta. With `shank_hung` the
    shank alone hangs from a fixed point by its upper end.
    """
    zero = ca.SX(2, 1)
    _, shank1, shank2 = knee.shank

    def rod(name: str, along: Any) -> tuple[Any, Any, Any]:
        """Mass, moment and moment of inertia about its end of a rod whose centre is its middle."""
        mass, middle = g[f"{name}_mass"], 0.5 * along
        return mass, mass * middle, g[f"{name}_inertia"] + mass * ca.dot(middle, middle)

    rear = RigidGroup(g["bc_mass"], (knee.b, zero, zero), *rod("bc", knee.bc)[1:], 1.0, 0.0)
    front = RigidGroup(g["ad_mass"], (knee.a, zero, zero), *rod("ad", knee.ad[0])[1:], knee.ad1, knee.ad2)
    mass, moment, inertia = rod("cd", -g["cd_length"] * knee.lower)
    ankle = knee.f + g["shank_length"] * knee.axis
    mass, moment = mass + g["foot_mass"], moment + g["foot_mass"] * ankle
    inertia += g["foot_mass"] * ca.dot(ankle, ankle)
    hung = []
    if shank_hung:
        shank = rod("shank", g["shank_length"] * knee.axis)
        hung = [(RigidGroup(shank[0], (zero, zero, zero), *shank[1:], shank1, shank2), True)]
    else:
        middle = knee.f + 0.5 * g["shank_length"] * knee.axis
        mass, moment = mass + g["shank_mass"], moment + g["shank_mass"] * middle
        inertia += g["shank_inertia"] + g["shank_mass"] * ca.dot(middle, middle)
    lower = RigidGroup(mass, knee.d, moment, inertia, shank1, shank2)
    return [(rear, False), (front, False), (lower, False), *hung]
