"""The four-bar knee of `designopt_knee` as a knee joint of a walker: its polycentric path and its damper.

Lü et al. (2020), see `designopt_knee.linkage`. There the angle of the rear link BC describes the linkage; a walker has
the knee angle as coordinate, and the pose follows from it in closed form: the knee angle gives the direction of CD, and
D is where a circle about A meets one about B shifted along CD.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from designopt_knee import linkage
from designopt_knee.parameters import PARAMETER_SETS, complete
from designopt_mechanics.motions import Motion, Rotate, Slide

from designopt.dynamics import Variable
from designopt.lazy import casadi as ca
from designopt_walking.devices.joint_springs import angle_and_rate, stop_torque
from designopt_walking.walker import Device, DeviceForces, Walker


@dataclass(frozen=True)
class FourBar:
    """A linkage of a named set of parameters of `designopt_knee`.

    Its front end E is `rise` (m) above the axis of the single-axis knee that it replaces, on the axis of the thigh. The
    straight leg is as long as before. Raises `designopt.plugin.InvalidDesign` for an unknown or impossible linkage.
    """

    parameters: str = "substitute_v2"
    rise: float = 0.0

    @cached_property
    def geometry(self) -> dict[str, float]:
        """The lengths and angles of the linkage, by the names of `designopt_knee.parameters`."""
        base = {name: entry.value for name, entry in PARAMETER_SETS[self.parameters].items()}
        return complete(base, {}, {"stiffness": 1.0, "damping": 0.0})

    def front_joint(self, angle: Any, m: Any = np) -> tuple[Any, Any]:
        """D (m) in the axes of the thigh, A being the origin, at a knee `angle` (rad, flexion negative)."""
        g = self.geometry
        b = linkage.along((0.0, 0.0), -g["ab_length"], linkage.down(g["upper_body_angle"]))
        p = linkage.along(b, g["cd_length"], linkage.down(angle + g["lower_body_angle"], m))
        r = m.sqrt(p[0] ** 2 + p[1] ** 2)
        cosine = (g["ad_length"] ** 2 + r**2 - g["bc_length"] ** 2) / (2.0 * g["ad_length"] * r)
        sine = self._branch * m.sqrt(1.0 - cosine**2)
        length = g["ad_length"] / r
        return length * (cosine * p[0] - sine * p[1]), length * (cosine * p[1] + sine * p[0])

    def shift(self, angle: Any, m: Any = np) -> tuple[Any, Any]:
        """Way (m) of the point of the shank at the knee's former axis, in the axes of the thigh, from the straight
        knee to a knee `angle` (rad)."""
        g = self.geometry
        d, d0 = self.front_joint(angle, m), linkage.closure(g, 0.0)[1]
        before = linkage.along((0.0, -self.rise), g["ae_length"], linkage.down(g["upper_body_angle"]))  # from A
        arm = before[0] - d0[0], before[1] - d0[1]
        c, s = m.cos(angle), m.sin(angle)
        x, y = d[0] + c * arm[0] - s * arm[1], d[1] + s * arm[0] + c * arm[1]
        return x - before[0], y - before[1]

    def damper_length(self, angle: Any, m: Any = np) -> Any:
        """Length (m) of the damper at a knee `angle` (rad); `designopt_knee.linkage.damper_length`."""
        return linkage.damper_length(self.geometry, self.front_joint(angle, m), m)

    def motions(self, coordinate: str) -> tuple[Motion, ...]:
        """The motions of the shank's joint frame, which stood at the single axis."""
        return (
            Slide((1.0, 0.0, 0.0), lambda z: self.shift(z[coordinate], ca)[0]),
            Slide((0.0, 1.0, 0.0), lambda z: self.shift(z[coordinate], ca)[1]),
            Rotate((0.0, 0.0, 1.0), coordinate),
        )

    def device(self, side: str) -> Device:
        """Spring and damper along the damper's line at the knee of a `side`, with the stop of the single-axis knee.

        Parameters `damper_stiffness` (N/m) and `damper_damping` (N s/m): tau = -(K (l - l0) + C dl/dt) dl/dq.
        """
        angle = ca.SX.sym("angle")
        of_angle = self.damper_length(angle, ca)
        line = ca.Function("damper", [angle], [of_angle, ca.gradient(of_angle, angle)])

        def device(walker: Walker) -> DeviceForces:
            q, dq = angle_and_rate(walker, f"knee_angle_{side}")
            stiffness = Variable("damper_stiffness", "N/m", 0.0, 1.5e5, "spring along the damper of the four-bar knee")
            damping = Variable("damper_damping", "N s/m", 0.0, 5e4, "damper of the four-bar knee")
            k, c = ca.SX.sym(stiffness.name), ca.SX.sym(damping.name)
            length, arm = line(q)
            pull = k * (length - self.geometry["damper_rest_length"]) + c * arm * dq
            return DeviceForces({f"knee_angle_{side}": -pull * arm + stop_torque(q)}, [(stiffness, k), (damping, c)])

        return device

    @cached_property
    def _branch(self) -> float:
        """The side of the line from A on which D lies, from the straight knee."""
        g = self.geometry
        b = linkage.along((0.0, 0.0), -g["ab_length"], linkage.down(g["upper_body_angle"]))
        p = linkage.along(b, g["cd_length"], linkage.down(g["lower_body_angle"]))
        d = linkage.closure(g, 0.0)[1]
        return float(np.sign(p[0] * d[1] - p[1] * d[0]))
