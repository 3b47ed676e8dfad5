"""Equations of motion of the prosthetic leg in minimal form, stated once as CasADi expressions.

Hip and thigh follow the recorded gait. The four-bar knee has one freedom relative to the thigh, the foot another: the
state is (eta, beta1) and their rates, eta being the angle of link BC to the thigh and beta1 that of the sole to the
horizontal. The bodies' equations are projected on these two, so the closed loop needs no multipliers and cannot drift.
They are written in the frame of the thigh, where eta alone decides the places of all links (`projection`).

Lü et al. (2020); numbers in brackets are the paper's equations.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from designopt.dynamics import System, Variable
from designopt.lazy import casadi as ca
from designopt_knee import linkage
from designopt_knee.gait import DRIVING
from designopt_knee.parameters import EQUATION_PARAMETERS, quantities
from designopt_knee.projection import KneeMotion, cross, links, quarter_turn

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
    Variable("hip_moment", "N m", description="of the hip on the leg below the thigh, flexion positive"),
    Variable("hip_power", "W", description="of hip and trunk on the leg below the thigh"),
    Variable("damper_power", "W", description="dissipated by the damper"),
)

#: The linkage ends where AD and CD fold over each other; simulation ends shortly before, `fold` being 1 - this.
FOLD_MARGIN = 1e-4


@lru_cache(maxsize=8)
def knee_system(harmonics: int, smoothing: Smoothing = "tanh", shank_mass_terms: ShankMassTerms = "full") -> System:
    """The leg as a `System` driven by a gait with the given number of `harmonics`.

    Parameters are `parameters.EQUATION_PARAMETERS`, data are `gait.Gait.data`; neither is compiled in. `smoothing` is
    the step function of contact and stop, (1 + tanh s)/2 or 1/2 + atan(s)/pi. With ``as_printed`` the shank's mass
    enters as in the paper's appendix A, where the shank hangs from a fixed point (only M44 and N41 contain it).
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
    """Rates and outputs. Vectors are in the frame of the thigh unless their name contains ground."""
    step = _step(smoothing)
    eta, beta1, eta_rate, beta1_rate = ca.vertsplit(x)
    (x_h, x_h1, x_h2), (y_h, y_h1, y_h2), (thigh, omega, alpha), (ankle0, _, _) = _gait(q, t, harmonics)
    hip = ca.vertcat(x_h, g["hip_hike"] * y_h)
    hip_velocity = ca.vertcat(x_h1 + q[1], g["hip_hike"] * y_h1)
    gravity = ca.vertcat(0.0, g["gravity"])
    turn = _rotation(thigh)  # from the thigh's frame to the ground's
    sole_ground = _rotation(beta1)[:, 0]
    sole = turn.T @ sole_ground

    knee = KneeMotion(g, eta)
    hip_acceleration = turn.T @ (ca.vertcat(x_h2, g["hip_hike"] * y_h2) + gravity)  # weight as an acceleration

    # Projection of all bodies' equations on eta, with the accelerations that stay when those of eta and beta1 are zero.
    M11, force1 = 0.0, 0.0
    bodies = links(g, knee, shank_hung=shank_mass_terms == "as_printed")
    for link, hung in bodies:
        M11 += link.projected_mass
        force1 -= link.projected_bias(turn.T @ gravity if hung else hip_acceleration, omega, alpha, eta_rate)
    offset = (0.5 - g["heel_fraction"]) * g["foot_length"]  # of the foot's centre from the ankle, along the sole
    ankle, ankle1, ankle2 = knee.ankle
    ankle_bias = (
        hip_acceleration
        + alpha * quarter_turn(ankle)
        - omega**2 * ankle
        + 2.0 * omega * eta_rate * quarter_turn(ankle1)
        + eta_rate**2 * ankle2
    )
    M12 = g["foot_mass"] * offset * ca.dot(ankle1, quarter_turn(sole))
    M22 = g["foot_mass"] * offset**2 + g["foot_inertia"]
    force1 += g["foot_mass"] * offset * beta1_rate**2 * ca.dot(ankle1, sole)
    force2 = -g["foot_mass"] * offset * ca.dot(quarter_turn(sole), ankle_bias)

    # Ground forces at heel and toe (4)-(7).
    ankle_ground = hip + turn @ ankle
    ankle_velocity = hip_velocity + turn @ (omega * quarter_turn(ankle) + eta_rate * ankle1)
    ankle1_ground = turn @ ankle1
    normal_forces, toe_height = {}, None
    ground_force, ground_moment = ca.SX(2, 1), ca.SX(1, 1)  # about the hip
    for end, share in (("heel", -g["heel_fraction"]), ("toe", 1.0 - g["heel_fraction"])):
        arm = share * g["foot_length"] * sole_ground
        velocity = ankle_velocity + beta1_rate * quarter_turn(arm)
        toe_height = ankle_ground[1] + arm[1]  # that of the toe in the end
        upward = _ground(g, toe_height, velocity[1], step)
        push = ca.vertcat(-g["friction"] * upward * ca.tanh(g["friction_sharpness"] * velocity[0]), upward)
        force1 += ca.dot(ankle1_ground, push)
        force2 += ca.dot(quarter_turn(arm), push)
        normal_forces[end] = upward
        ground_force += push
        ground_moment += cross(ankle_ground - hip + arm, push)

    # Stop (8): depth d_s sin(eta); its moment (9) is an internal pair that reduces eta.
    depth, depth1 = g["stop_lever"] * ca.sin(eta), g["stop_lever"] * ca.cos(eta)
    stop = (g["stop_stiffness"] * depth + g["stop_damping"] * depth1 * eta_rate) * step(g["stop_sharpness"] * depth)
    length, (shank, shank1, _) = knee.damper, knee.shank
    length1 = knee.ad1 * linkage.damper_arm(g, knee.ad[0], length, ca)
    speed = length1 * eta_rate  # of the damper, which shortens as the knee bends
    resistance = (
        g["damping"] * ca.fmin(speed, 0.0)
        + g["extension_damping"] * ca.fmax(speed, 0.0)
        + g["quadratic_damping"] * speed * ca.fabs(speed)
    )
    damper = g["stiffness"] * (length - g["damper_rest_length"]) + resistance  # (10)
    ankle_angle, ankle_rate = beta1 - thigh - shank, beta1_rate - omega - shank1 * eta_rate
    moment = -g["ankle_stiffness"] * (ankle_angle - ankle0) - g["ankle_damping"] * ankle_rate  # (12)
    force1 -= stop * depth1 + damper * length1 + moment * shank1
    force2 += moment

    determinant = M11 * M22 - M12**2
    eta_acceleration = (M22 * force1 - M12 * force2) / determinant
    beta1_acceleration = (M11 * force2 - M12 * force1) / determinant

    # What the hip gives: the rate of the momenta of all that moves below the thigh less what the ground gives.
    offset_of_foot = offset * sole  # of the foot's centre, from the ankle: the links hold the foot's mass at the ankle
    beside = g["foot_mass"] * (beta1_acceleration * quarter_turn(offset_of_foot) - beta1_rate**2 * offset_of_foot)
    ankle_acceleration = ankle_bias + eta_acceleration * ankle1
    hip_force = beside
    hip_moment = (
        cross(ankle + offset_of_foot, beside)
        + g["foot_mass"] * cross(offset_of_foot, ankle_acceleration)
        + g["foot_inertia"] * beta1_acceleration
    )
    for link, _ in bodies:
        load = link.hip_load(hip_acceleration, omega, alpha, eta_rate, eta_acceleration)
        hip_force, hip_moment = hip_force + load[0], hip_moment + load[1]
    hip_force, hip_moment = turn @ hip_force - ground_force, hip_moment - ground_moment
    return {
        "rates": ca.vertcat(eta_rate, beta1_rate, eta_acceleration, beta1_acceleration),
        "hip_moment": hip_moment,
        "hip_power": hip_moment * omega + ca.dot(hip_force, hip_velocity),
        "damper_power": resistance * speed,
        "knee": -shank,
        "heel_force": normal_forces["heel"],
        "toe_force": normal_forces["toe"],
        "stop_force": stop,
        "damper_force": damper,
        "toe_height": toe_height,
        "fold": linkage.fold(g, eta, ca),
    }


def _rotation(angle: Any) -> Any:
    return ca.vertcat(ca.horzcat(ca.cos(angle), -ca.sin(angle)), ca.horzcat(ca.sin(angle), ca.cos(angle)))


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
            # Factors of c and s hold data alone: they are computed once in a run.
            value += a * c + b * s
            rate += (w * b) * c - (w * a) * s
            acceleration -= (w * w * a) * c + (w * w * b) * s
        motions.append((value, rate, acceleration))
    return motions
