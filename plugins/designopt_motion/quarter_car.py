"""The model ``quarter_car``: the ride over a bump for a suspension's stiffness and damping.

One declaration is simulated, differentiated with respect to the suspension, and transcribed into a program.
"""

from __future__ import annotations

from typing import Any

from designopt.lazy import casadi as ca
from designopt.models import Condition, Final, Integral, Parameter, Peak, Series, Setting, State, motion

#: Number of widths from its middle at which a bump is flat to 1e-11 of its height.
_REACH = 5.0


@motion("quarter_car", version=2, cost="cost")
class QuarterCar:
    """Body and wheel of a car on a linear spring and damper over a smooth bump, from rest.

    The bump is h exp(-((t - t_b)/w)^2). The equations are those of any text on vehicle dynamics.
    """

    stiffness = Parameter("N/m", "of the suspension's spring", gt=0)
    damping = Parameter("N s/m", "of the suspension's damper", ge=0)

    body_mass = Condition("kg", "carried by one wheel", 350.0, gt=0)
    wheel_mass = Condition("kg", "wheel and axle", 45.0, gt=0)
    tyre_stiffness = Condition("N/m", "of the tyre", 2e5, gt=0)
    bump_height = Condition("m", "of the road", 0.08)
    bump_time = Condition("s", "middle of the bump", 0.5, gt=0)
    bump_width = Condition("s", "half the time between 1/e of its height on both sides", 0.08, gt=0)

    duration = Setting("s", "of the ride", 3.0, gt=0)
    travel_weight = Setting("1/s^4", "of the travel in the cost", 2000.0, ge=0)
    tyre_weight = Setting("1/s^4", "of the tyre's deflection in the cost", 5000.0, ge=0)
    rtol = Setting("", "relative tolerance of the simulation", 1e-8, gt=0, le=1e-3)

    body = State("m", "height of the body")
    wheel = State("m", "height of the wheel")
    body_speed = State("m/s", "of the body, upwards")
    wheel_speed = State("m/s", "of the wheel, upwards")

    acceleration = Series("m/s^2", "of the body")
    road = Series("m", "height of the road")

    discomfort = Integral("m^2/s^3", "integral of the body's squared acceleration")
    travel = Integral("m^2 s", "integral of the squared travel of the suspension")
    tyre = Integral("m^2 s", "integral of the squared deflection of the tyre")
    cost = Final("m^2/s^3", "discomfort + travel_weight travel + tyre_weight tyre")
    peak_acceleration = Peak("m/s^2", "largest magnitude of the body's acceleration")
    peak_travel = Peak("m", "largest travel of the suspension")

    def equations(self, v: Any) -> dict[str, Any]:
        """x_s'' = F/m_s, x_u'' = (-F - k_t (x_u - z))/m_u, F = k (x_u - x_s) + c (v_u - v_s)."""
        road = v.bump_height * ca.exp(-(((v.time - v.bump_time) / v.bump_width) ** 2))
        force = v.stiffness * (v.wheel - v.body) + v.damping * (v.wheel_speed - v.body_speed)
        acceleration = force / v.body_mass
        return {
            "body": v.body_speed,
            "wheel": v.wheel_speed,
            "body_speed": acceleration,
            "wheel_speed": (-force - v.tyre_stiffness * (v.wheel - road)) / v.wheel_mass,
            "acceleration": acceleration,
            "road": road,
            "discomfort": acceleration**2,
            "travel": (v.body - v.wheel) ** 2,
            "tyre": (v.wheel - road) ** 2,
            "cost": v.discomfort + v.travel_weight * v.travel + v.tyre_weight * v.tyre,
            "peak_acceleration": acceleration,
            "peak_travel": v.body - v.wheel,
        }

    def breaks(self, v: Any) -> list[float]:
        """Times that the integrator must not step over: from rest, a large step could miss the bump."""
        return [v.bump_time + side * _REACH * v.bump_width for side in (-1.0, 0.0, 1.0)]

    def refusal(self, v: Any) -> tuple[str, str] | None:
        """The bump must lie within the ride."""
        if v.bump_time - _REACH * v.bump_width < v.duration:
            return None
        return "bump_time", f"the bump at {v.bump_time:g} s comes after the end at {v.duration:g} s"
