"""Equations of motion of the prosthetic leg in minimal form, stated once as CasADi expressions.

Hip and thigh follow the recorded gait. The four-bar knee has one freedom relative to the thigh, the foot another: the
state is (eta, beta1) and their rates, eta being the angle of link BC to the thigh and beta1 that of the sole to the
horizontal. The bodies' equations are projected on these two, so the closed loop needs no multipliers and cannot drift.
They are written in the frame of the thigh, where eta alone decides the places of all links: first and second
derivatives by this one variable come from automatic differentiation, and an evaluation costs a fifth less than with
the derivatives by all coordinates in the ground's frame.

Lü et al. (2020); numbers in brackets are the paper's equations.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import casadi as ca

from designopt.dynamics import System, Variable
from designopt_knee import linkage
from designopt_knee.gait import DRIVING
from designopt_knee.parameters import EQUATION_PARAMETERS, quantities

if TYPE_CHECKING:
    from collections.abc import Mapping

Smoothing = Literal["tanh", "atan"]
ShankMassTerms = Literal["full", "as_printed"]

STATES = (
    Variable("eta", "rad", description="link BC to the thigh, 0 where the knee is straight, negative in flexion"),
    Variable("beta1", "rad", description="sole to the horizontal, toe up is positive"),
    Variable("eta_rate", "rad/s"),
    Variable("beta1_rate", "rad/s"),
)
OUTPUTS = (
    Variable("knee", "rad", description="knee angle, flexion positive"),
    Variable("heel_force", "N", description="normal force of the ground at the heel"),
    Variable("toe_force", "N", description="normal force of the ground at the toe"),
    Variable("stop_force", "N", description="force of the stop of the straight knee"),
    Variable("damper_force", "N", description="force of the damper, tension positive"),
    Variable("toe_height", "m", description="toe above the ground"),
)

#: The linkage ends where AD and CD fold over each other; simulation ends shortly before, `fold` being 1 - this.
FOLD_MARGIN = 1e-4


@lru_cache(maxsize=8)
def knee_system(harmonics: int, smoothing: Smoothing = "tanh", shank_mass_terms: ShankMassTerms = "full") -> System:
    """The leg as a `System` driven by a gait of so many `harmonics`.

    Parameters are `parameters.EQUATION_PARAMETERS`, data are `gait.Gait.data`; neither is compiled in. `smoothing` is
    the step of contact and stop, (1 + tanh s)/2 or 1/2 + atan(s)/pi. With ``as_printed`` the shank's mass enters as in
    the paper's appendix A, where the shank hangs from a fixed point (only M44 and N41 hold it).
    """
    x = ca.SX.sym("x", len(STATES))
    p = ca.SX.sym("p", len(EQUATION_PARAMETERS))
    q = ca.SX.sym("q", 2 + len(DRIVING) * (2 * harmonics + 1))
    t = ca.SX.sym("t")
    g = dict(zip(EQUATION_PARAMETERS, ca.vertsplit(p), strict=True))
    leg = _leg(x, g, q, t, harmonics, smoothing, shank_mass_terms)
    arguments = [x, ca.SX(0, 1), ca.SX(0, 1), p, q, t]
    labels = ["x", "u", "z", "p", "q", "t"]
    data = (
        Variable("period", "s"),
        Variable("belt_speed", "m/s"),
        *(
            Variable(f"{signal}_{c}", "m" if signal.startswith("hip") else "rad")
            for signal in DRIVING
            for c in ("c0", *(f"{f}{k}" for k in range(1, harmonics + 1) for f in "cs"))
        ),
    )
    return System(
        name=f"four_bar_knee_{harmonics}_{smoothing}_{shank_mass_terms}",
        states=STATES,
        parameters=tuple(
            Variable(n, quantities()[n].unit if n in quantities() else "rad") for n in EQUATION_PARAMETERS
        ),
        rhs=ca.Function("rhs", arguments, [leg["rates"]], labels, ["xdot"]),
        data=data,
        outputs=OUTPUTS,
        output=ca.Function("output", arguments, [ca.vertcat(*(leg[v.name] for v in OUTPUTS))], labels, ["y"]),
        guards=("linkage_limit",),
        guard=ca.Function("guard", arguments, [1.0 - FOLD_MARGIN - ca.fabs(leg["fold"])], labels, ["g"]),
    )


def _leg(
    x: Any, g: Mapping[str, Any], q: Any, t: Any, harmonics: int, smoothing: Smoothing, shank_mass_terms: ShankMassTerms
) -> dict[str, Any]:
    """Rates and figures. Vectors are in the frame of the thigh unless their name says ground."""
    step = _step(smoothing)
    eta, beta1, eta_rate, beta1_rate = ca.vertsplit(x)
    (x_h, x_h1, x_h2), (y_h, y_h1, y_h2), (thigh, omega, alpha), (ankle0, _, _) = _gait(q, t, harmonics)
    hip = ca.vertcat(x_h, g["hip_hike"] * y_h)
    hip_velocity = ca.vertcat(x_h1 + q[1], g["hip_hike"] * y_h1)
    gravity = ca.vertcat(0.0, g["gravity"])
    turn = _rotation(thigh)  # from the thigh's frame to the ground's

    bodies, shank, length, fold = _knee(g, eta, shank_mass_terms)
    hip_acceleration = turn.T @ (ca.vertcat(x_h2, g["hip_hike"] * y_h2) + gravity)  # weight as an acceleration
    sole, normal = _rotation(beta1 - thigh)[:, 0], _rotation(beta1 - thigh)[:, 1]

    # Projection of all bodies' equations on eta, with the accelerations that stay when those of eta and beta1 are zero.
    M11, force1 = 0.0, 0.0
    for name, (place, angle) in bodies.items():
        mass, inertia = g[f"{name}_mass"], g.get(f"{name}_inertia", 0.0)
        (place1, place2), (angle1, angle2) = _derivatives(place, eta), _derivatives(angle, eta)
        hung = turn.T @ gravity if name == "shank" and shank_mass_terms == "as_printed" else hip_acceleration
        bias = (
            hung
            + alpha * _quarter_turn(place)
            - omega**2 * place
            + 2.0 * omega * eta_rate * _quarter_turn(place1)
            + eta_rate**2 * place2
        )
        if name == "foot":  # its place here is the ankle; the centre lies on the sole beside it, which beta1 turns
            inertia = 0.0
            offset = (0.5 - g["heel_fraction"]) * g["foot_length"]
            ankle, ankle1, ankle_bias = place, place1, bias
            bias = bias - offset * beta1_rate**2 * sole
        M11 += mass * ca.dot(place1, place1) + inertia * angle1**2
        force1 -= mass * ca.dot(place1, bias) + inertia * angle1 * (alpha + eta_rate**2 * angle2)
    M12 = g["foot_mass"] * offset * ca.dot(ankle1, normal)
    M22 = g["foot_mass"] * offset**2 + g["foot_inertia"]
    force2 = -g["foot_mass"] * offset * ca.dot(normal, ankle_bias)

    # Ground forces at heel and toe (4)-(7).
    ankle_ground = hip + turn @ ankle
    ankle_velocity = hip_velocity + turn @ (omega * _quarter_turn(ankle) + eta_rate * ankle1)
    ankle1_ground, sole_ground = turn @ ankle1, _rotation(beta1)[:, 0]
    normal_forces, toe_height = {}, None
    for end, share in (("heel", -g["heel_fraction"]), ("toe", 1.0 - g["heel_fraction"])):
        arm = share * g["foot_length"] * sole_ground
        velocity = ankle_velocity + beta1_rate * _quarter_turn(arm)
        toe_height = ankle_ground[1] + arm[1]  # that of the toe in the end
        upward = _ground(g, toe_height, velocity[1], step)
        push = ca.vertcat(-g["friction"] * upward * ca.tanh(g["friction_sharpness"] * velocity[0]), upward)
        force1 += ca.dot(ankle1_ground, push)
        force2 += ca.dot(_quarter_turn(arm), push)
        normal_forces[end] = upward

    # Stop (8): depth d_s sin(eta); its moment (9) is an internal pair that reduces eta.
    depth, depth1 = g["stop_lever"] * ca.sin(eta), g["stop_lever"] * ca.cos(eta)
    stop = (g["stop_stiffness"] * depth + g["stop_damping"] * depth1 * eta_rate) * step(g["stop_sharpness"] * depth)
    length1, shank1 = ca.jacobian(length, eta), ca.jacobian(shank, eta)
    damper = g["stiffness"] * (length - g["damper_rest_length"]) + g["damping"] * length1 * eta_rate  # (10)
    ankle_angle, ankle_rate = beta1 - thigh - shank, beta1_rate - omega - shank1 * eta_rate
    moment = -g["ankle_stiffness"] * (ankle_angle - ankle0) - g["ankle_damping"] * ankle_rate  # (12)
    force1 -= stop * depth1 + damper * length1 + moment * shank1
    force2 += moment

    determinant = M11 * M22 - M12**2
    return {
        "rates": ca.vertcat(
            eta_rate,
            beta1_rate,
            (M22 * force1 - M12 * force2) / determinant,
            (M11 * force2 - M12 * force1) / determinant,
        ),
        "knee": -shank,
        "heel_force": normal_forces["heel"],
        "toe_force": normal_forces["toe"],
        "stop_force": stop,
        "damper_force": damper,
        "toe_height": toe_height,
        "fold": fold,
    }


def _knee(
    g: Mapping[str, Any], eta: Any, shank_mass_terms: ShankMassTerms
) -> tuple[dict[str, tuple[Any, Any]], Any, Any, Any]:
    """What eta alone decides, in the frame of the thigh with the hip as the origin.

    Mass centre and angle of every moving body (of the foot: the ankle), the shank's angle, the length of the damper and
    the cosine whose size reaches 1 where the linkage folds over.
    """
    upper = linkage.down(g["upper_body_angle"], ca)
    a = linkage.along((0.0, -g["thigh_length"]), -g["ae_length"], upper)
    b = linkage.along(a, -g["ab_length"], upper)
    ac, ad = linkage.closure(g, eta, ca)
    c, d = (a[0] + ac[0], a[1] + ac[1]), (a[0] + ad[0], a[1] + ad[1])
    lower = ((d[0] - c[0]) / g["cd_length"], (d[1] - c[1]) / g["cd_length"])
    tilt_cos, tilt_sin = ca.cos(g["lower_body_angle"]), ca.sin(g["lower_body_angle"])
    axis = (tilt_cos * lower[0] + tilt_sin * lower[1], tilt_cos * lower[1] - tilt_sin * lower[0])
    f = linkage.along(d, -g["df_length"], lower)
    ankle = linkage.along(f, g["shank_length"], axis)
    shank = ca.atan2(axis[0], -axis[1])
    hung = ca.vertcat(*linkage.along((0.0, 0.0), 0.5 * g["shank_length"], axis))
    bodies = {
        "ad": (_middle(a, d), ca.atan2(ad[0], -ad[1])),
        "bc": (_middle(b, c), eta),
        "cd": (_middle(c, d), shank),
        "shank": (hung if shank_mass_terms == "as_printed" else _middle(f, ankle), shank),
        "foot": (ca.vertcat(*ankle), 0.0 * eta),
    }
    return bodies, shank, linkage.damper_length(g, ad, ca), linkage.fold(g, eta, ca)


def _rotation(angle: Any) -> Any:
    return ca.vertcat(ca.horzcat(ca.cos(angle), -ca.sin(angle)), ca.horzcat(ca.sin(angle), ca.cos(angle)))


def _quarter_turn(v: Any) -> Any:
    return ca.vertcat(-v[1], v[0])


def _derivatives(expression: Any, variable: Any) -> tuple[Any, Any]:
    """First and second derivative by one variable."""
    first = ca.jacobian(expression, variable)
    return first, ca.jacobian(first, variable)


def _middle(a: linkage.Point, b: linkage.Point) -> Any:
    return ca.vertcat(0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1]))


def _step(smoothing: Smoothing) -> Any:
    if smoothing == "tanh":
        return lambda s: 0.5 + 0.5 * ca.tanh(s)
    return lambda s: 0.5 + ca.atan(s) / ca.pi


def _ground(g: Mapping[str, Any], height: Any, speed: Any, step: Any) -> Any:
    """Normal force of the ground on a point at `height` (4), (6); not clipped, as the law is given."""
    normal = -g["ground_stiffness"] * height - g["ground_damping"] * speed
    return normal * step(-g["ground_sharpness"] * height)


def _gait(q: Any, t: Any, harmonics: int) -> list[tuple[Any, Any, Any]]:
    """Value, rate and acceleration of the `DRIVING` signals; sines and cosines of the harmonics by recurrence."""
    omega = 2.0 * ca.pi / q[0]
    c1, s1 = ca.cos(omega * t), ca.sin(omega * t)
    waves = [(c1, s1)]
    for _ in range(harmonics - 1):
        c, s = waves[-1]
        waves.append((c * c1 - s * s1, s * c1 + c * s1))
    motions = []
    for i in range(len(DRIVING)):
        start = 2 + i * (2 * harmonics + 1)
        value, rate, acceleration = q[start], 0.0, 0.0
        for k, (c, s) in enumerate(waves, 1):
            a, b, w = q[start + 2 * k - 1], q[start + 2 * k], k * omega
            value += a * c + b * s
            rate += w * (b * c - a * s)
            acceleration -= w * w * (a * c + b * s)
        motions.append((value, rate, acceleration))
    return motions
