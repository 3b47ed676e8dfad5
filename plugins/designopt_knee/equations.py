"""Equations of motion of the prosthetic leg in minimal form, stated once as CasADi expressions.

Hip and thigh follow the recorded gait. The four-bar knee has one freedom relative to the thigh, the foot another: the
state is (eta, beta1) and their rates, eta being the angle of link BC to the thigh and beta1 that of the sole to the
horizontal. The bodies' equations are projected on these two with the derivatives of all positions, which automatic
differentiation supplies; so the closed loop needs no multipliers and cannot drift.

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
    step = _step(smoothing)
    (x_h, x_h1, x_h2), (y_h, y_h1, y_h2), (thigh, thigh1, thigh2), (ankle0, _, _) = _gait(q, t, harmonics)
    hike = g["hip_hike"]
    driven1 = ca.vertcat(x_h1 + q[1], hike * y_h1, thigh1)
    driven2 = ca.vertcat(x_h2, hike * y_h2, thigh2)

    # Positions as functions of the driven (hip, thigh) and the free coordinates (eta, beta1).
    s = ca.SX.sym("s", 5)
    hip_x, hip_y, alpha1, eta, beta1 = ca.vertsplit(s)
    ad, shank = linkage.relative_angles(g, eta, ca)
    p = linkage.points(g, (hip_x, hip_y), alpha1, alpha1 + shank, alpha1 + ad, alpha1 + eta, beta1, ca)
    length = linkage.damper_length(g, ad, ca)
    shank_centre = _middle(p["F"], p["ankle"])
    if shank_mass_terms == "as_printed":
        shank_centre = linkage.along((0.0, 0.0), 0.5 * g["shank_length"], linkage.down(alpha1 + shank, ca))
    places = (
        ("ad", _middle(p["A"], p["D"]), alpha1 + ad),
        ("bc", _middle(p["B"], p["C"]), alpha1 + eta),
        ("cd", _middle(p["C"], p["D"]), alpha1 + shank),
        ("shank", shank_centre, alpha1 + shank),
        ("foot", _middle(p["heel"], p["toe"]), beta1),
    )
    r = ca.vertcat(*(ca.vertcat(*centre, angle) for _, centre, angle in places))
    ends = ca.vertcat(*p["heel"], *p["toe"], alpha1 + shank, length, linkage.fold(g, eta, ca))
    inertia = ca.vertcat(*(ca.vertcat(g[f"{b}_mass"], g[f"{b}_mass"], g[f"{b}_inertia"]) for b, _, _ in places))
    weight = ca.vertcat(*(ca.vertcat(0.0, -g[f"{b}_mass"] * g["gravity"], 0.0) for b, _, _ in places))

    v = ca.SX.sym("v", 5)
    J = ca.jacobian(r, s)
    J_ends = ca.jacobian(ends, s)
    bias = ca.jtimes(J @ v, s, v)
    # One function evaluated at the gait's values keeps the graph of the derivatives free of the gait's sums.
    at = ca.Function("at", [s, v, ca.vertcat(*g.values())], [J, J_ends, bias, ends])
    place = ca.vertcat(x_h, hike * y_h, thigh, x[0], x[1])
    speed = ca.vertcat(driven1, x[2], x[3])
    J, J_ends, bias, ends = at(place, speed, ca.vertcat(*g.values()))

    end_speed = J_ends @ speed
    heel_y, toe_y, shank, length, fold = ends[1], ends[3], ends[4], ends[5], ends[6]
    heel = _ground(g, heel_y, end_speed[1], step)
    toe = _ground(g, toe_y, end_speed[3], step)
    heel_friction = -g["friction"] * heel * ca.tanh(g["friction_sharpness"] * end_speed[0])
    toe_friction = -g["friction"] * toe * ca.tanh(g["friction_sharpness"] * end_speed[2])
    # Stop (8): depth d_s sin(eta); its moment (9) is an internal pair that reduces eta.
    depth, depth1 = g["stop_lever"] * ca.sin(x[0]), g["stop_lever"] * ca.cos(x[0]) * x[2]
    stop = (g["stop_stiffness"] * depth + g["stop_damping"] * depth1) * step(g["stop_sharpness"] * depth)
    damper = g["stiffness"] * (length - g["damper_rest_length"]) + g["damping"] * end_speed[5]
    ankle = -g["ankle_stiffness"] * (x[1] - shank - ankle0) - g["ankle_damping"] * (x[3] - end_speed[4])

    # Generalised forces on (eta, beta1): ground (4), (5), damper (11), ankle (12), stop (9), weight.
    ends_force = ca.vertcat(heel_friction, heel, toe_friction, toe, -ankle, -damper, 0.0)
    force = J_ends[:, 3:].T @ ends_force + ca.vertcat(-stop * g["stop_lever"] * ca.cos(x[0]), ankle)
    free, held = J[:, 3:], J[:, :3]
    force += free.T @ (weight - inertia * (bias + held @ driven2))
    M = free.T @ (ca.repmat(inertia, 1, 2) * free)
    determinant = M[0, 0] * M[1, 1] - M[0, 1] * M[1, 0]
    eta2 = (M[1, 1] * force[0] - M[0, 1] * force[1]) / determinant
    beta2 = (M[0, 0] * force[1] - M[1, 0] * force[0]) / determinant
    return {
        "rates": ca.vertcat(x[2], x[3], eta2, beta2),
        "knee": thigh - shank,
        "heel_force": heel,
        "toe_force": toe,
        "stop_force": stop,
        "damper_force": damper,
        "toe_height": toe_y,
        "fold": fold,
    }


def _middle(a: linkage.Point, b: linkage.Point) -> linkage.Point:
    return 0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1])


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
