"""Tracks that slip (level 2): their speeds are states, and the ground's force grows with slip.

Traction after Janosi & Hanamoto (1961) under uniform pressure (Wong 2010): at a slip i a track of length L on ground of
shear modulus K has the share 1 - (K/(iL)) (1 - exp(-iL/K)) of its maximum force. The rotating masses, which level 1
adds to the vehicle's, are those of the tracks here. States: those of `equations`, then the speeds of the left and the
right track (m/s).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from designopt.arrays import Floats
from designopt_regulator.vehicle.equations import GRAVITY, State, VehicleDynamics, VehicleNumbers

_MIN_SPEED = 0.1  # m/s; slip is relative to the speed, at least to this one
#: Product of step and decay rate up to which the classical Runge-Kutta method is used; it is stable up to 2.785.
STABLE_PRODUCT = 2.5


class SlippingMotion(NamedTuple):
    """The equations of motion with slipping tracks, and the constants of one vehicle or of many in them."""

    body: VehicleDynamics  # with the mass that does not rotate, and grips that are the maximum forces at any slip
    shear_per_slip: Any  # L/K
    per_track_mass: Any

    @classmethod
    def of_vehicle(cls, p: VehicleNumbers) -> SlippingMotion:
        """The equations for the vehicles of a plant whose shear modulus is above 0."""
        mass = p.weight / GRAVITY
        return cls(
            body=VehicleDynamics.of_vehicle(p)._replace(per_mass=1.0 / mass),
            shear_per_slip=p.contact_length / p.shear_modulus,
            per_track_mass=2.0 / (p.inertial_mass - mass),
        )

    @property
    def arm(self) -> Any:
        """Half the distance of the tracks, m."""
        return self.body.arm

    def rates(self, m: Any, x: State, command: State, load: State) -> State:
        """Time derivatives of the states `x`; arguments as for `equations.VehicleDynamics.rates`."""
        body, v, r, left, right = self.body, x[0], x[1], x[3], x[4]
        force, moment = body.resistance(m, v, r)
        T_L, T_R = self.ground_forces(m, x)
        return (
            (T_L + T_R - force + load[0]) * body.per_mass,
            ((T_R - T_L) * body.arm - moment + load[1]) * body.per_yaw_inertia,
            r,
            body.lagging(m, left, command[0], x[5]),
            body.lagging(m, right, command[1], x[6]),
            (left - T_L) * self.per_track_mass,
            (right - T_R) * self.per_track_mass,
        )

    def ground_forces(self, m: Any, x: State) -> tuple[Any, Any]:
        """Forces (N) of the ground on the left and the right track."""
        v, turning = x[0], x[1] * self.body.arm
        return (
            self.body.left_grip * self._share(m, x[5], v - turning),
            self.body.right_grip * self._share(m, x[6], v + turning),
        )

    def _share(self, m: Any, track: Any, ground: Any) -> Any:
        """Signed share of the maximum traction of a `track` of this speed over `ground` of this speed (m/s)."""
        slip = (track - ground) / m.fmax(m.fmax(m.fabs(track), m.fabs(ground)), _MIN_SPEED)
        shear = self.shear_per_slip * m.fabs(slip) + 1e-12  # 0/0 has the limit 0
        return m.sign(slip) * (1.0 + m.expm1(-shear) / shear)

    def drive_power(self, m: Any, x: State) -> Any:
        """Power (W) of the tracks, slip losses included: ground force times speed of the track."""
        left, right = self.ground_forces(m, x)
        return left * x[5] + right * x[6]


def trim_slip(p: VehicleNumbers, left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Slip (n,) of the left and the right track that give these forces (N); above 1 where they cannot."""
    return tuple(  # type: ignore[return-value]
        _shear_of_share(force / grip) * np.sign(force) * p.shear_modulus / p.contact_length
        for force, grip in zip((left, right), p.adhesion_limits, strict=True)
    )


def _shear_of_share(share: Floats) -> Floats:
    """q > 0 with 1 - (1 - exp(-q))/q = |share|, by bisection."""
    low, high = np.full_like(share, -40.0), np.full_like(share, 40.0)  # logarithms of q
    for _ in range(100):
        middle = 0.5 * (low + high)
        q = np.exp(middle)
        above = 1.0 + np.expm1(-q) / q > np.abs(share)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(np.exp(0.5 * (low + high)))


def longest_step(p: VehicleNumbers, speed: Floats) -> Floats:
    """The longest step (s) with which tracks at a `speed` (m/s) are integrated without growing oscillations."""
    mass = p.weight / GRAVITY
    slope = np.maximum(*p.adhesion_limits) * p.contact_length / (2.0 * p.shear_modulus * np.abs(speed))
    body = 1.0 / mass + 0.25 * p.track_distance**2 / p.yaw_inertia
    return np.asarray(STABLE_PRODUCT / (slope * (2.0 / (p.inertial_mass - mass) + body)))
