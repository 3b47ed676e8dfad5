"""The tracked vehicle: its numbers, the equations of motion without slip (level 1), trim and linear loops.

The plant is built from published terramechanics; drive lag, delay, rotating-mass factor, maximum force and power are
design assumptions. Turning resistance after Nikitin as given by Zabavnikov (1975).

States: speed v (m/s), yaw rate r (rad/s, to the left positive), heading psi (rad), drive forces of the left and the
right track F_L, F_R (N). The equations are stated once, for the module `m` that computes: with NumPy the states are
arrays (n,), with CasADi symbols from which machine code is generated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.plugin import Quantity

Q = Quantity

GRAVITY = 9.80665

_ROLLING_SPEED = 0.05  # m/s, at which tanh makes rolling resistance full
_MIN_POWER_SPEED = 0.5  # m/s, below which power limits no force further
_CREEP = 0.02  # m/s, keeps Nikitin's law finite at standstill
STICTION_RATE = 2e-3  # rad/s, at which tanh makes stiction full
_NIKITIN = (0.925, 0.15)


@dataclass(frozen=True, kw_only=True)
class Vehicle:
    """An M113-class vehicle converted to remote operation."""

    mass: Annotated[float, Q("kg", "mass", gt=0)] = 10_000.0
    rotating_mass_factor: Annotated[float, Q("", "of the drive's rotating masses (assumption)", ge=1)] = 1.15
    yaw_inertia: Annotated[float, Q("kg m^2", "about the vertical axis, at this mass", gt=0)] = 32_000.0
    track_distance: Annotated[float, Q("m", "between the centre lines of the tracks", gt=0)] = 2.16
    contact_length: Annotated[float, Q("m", "of a track on the ground", gt=0)] = 2.67
    track_width: Annotated[float, Q("m", "of one track", gt=0)] = 0.38
    max_force: Annotated[float, Q("N", "of one track at full command (assumption)", gt=0)] = 30_000.0
    power: Annotated[float, Q("W", "maximum at one sprocket (assumption)", gt=0)] = 75_000.0
    lag: Annotated[float, Q("s", "time constant of the drive's force (assumption)", gt=0)] = 0.35
    delay: Annotated[float, Q("s", "of measurement, network and valve (assumption)", ge=0)] = 0.20
    air_drag: Annotated[float, Q("N s^2/m^2", "half the density times drag coefficient and area", ge=0)] = 2.2


@dataclass(frozen=True)
class VehicleNumbers:
    """Numbers of n vehicles on their ground, arrays (n,) in SI units."""

    weight: Floats
    inertial_mass: Floats
    yaw_inertia: Floats
    track_distance: Floats
    contact_length: Floats
    max_force: Floats
    power: Floats
    lag: Floats
    air_drag: Floats
    rolling: Floats
    turning: Floats
    adhesion: Floats
    shift: Floats  # share of the weight that a side slope moves from the left to the right track
    side_moment: Floats  # N m about the vertical axis, of the weight on a side slope
    stiction: Floats  # N m, Coulomb part of the resistance to turning
    shear_modulus: Floats  # m, of the ground under tracks that slip; 0 where they do not

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def adhesion_limits(self) -> tuple[Floats, Floats]:
        """Maximum forces (N) that the ground can transmit to the left and the right track."""
        grip = self.adhesion * self.weight
        return (0.5 - self.shift) * grip, (0.5 + self.shift) * grip

    @property
    def turning_moment(self) -> Floats:
        """mu_max W L / 4 (N m), the moment of turning resistance at the radius B/2."""
        return 0.25 * self.turning * self.weight * self.contact_length


#: Numbers that only refinements have.
_LEVEL_1 = dict.fromkeys(("shift", "side_moment", "stiction", "shear_modulus"), 0.0)


def plant(*, mass: ArrayLike, rotating_mass_factor: ArrayLike, **numbers: ArrayLike) -> VehicleNumbers:
    """The plant with these values of its fields, broadcast to one length; the last four are 0 by default (level 1).

    `mass` (kg) and `rotating_mass_factor` give the weight and the inertial mass.
    """
    mass = np.asarray(mass, float)
    inertial = mass * np.asarray(rotating_mass_factor, float)
    numbers_of_rows = {"weight": mass * GRAVITY, "inertial_mass": inertial, **_LEVEL_1, **numbers}
    rows = np.broadcast_arrays(*(np.atleast_1d(np.asarray(value, float)) for value in numbers_of_rows.values()))
    return VehicleNumbers(**{name: np.array(row) for name, row in zip(numbers_of_rows, rows, strict=True)})


def trim(p: VehicleNumbers, speed: Floats) -> Floats:
    """The command of both tracks (n,) that holds a `speed` (m/s) on level ground."""
    resistance = p.weight * p.rolling * np.tanh(speed / _ROLLING_SPEED) + p.air_drag * speed * np.abs(speed)
    return np.asarray(resistance / (2.0 * p.max_force))


def trim_difference(p: VehicleNumbers, speed: Floats) -> Floats:
    """Half the difference of the right and left track's commands for driving straight at a `speed`."""
    rolling = p.weight * p.rolling * np.tanh(speed / _ROLLING_SPEED)
    moment = p.side_moment - p.shift * p.track_distance * rolling
    return np.asarray(-moment / (p.track_distance * p.max_force))


def missing_force(p: VehicleNumbers, speed: Floats, grade: Floats) -> Floats:
    """Force (N) that is missing to hold a speed up a grade (the sine of the slope); negative for a reserve.

    The smallest of adhesion, maximum force and power decides.
    """
    speed = np.abs(speed)
    steering_force = 2.0 * p.max_force * np.abs(trim_difference(p, speed))
    required_force = p.weight * (p.rolling + grade) + p.air_drag * speed**2 + steering_force
    drive = np.minimum(p.max_force, p.power / np.maximum(speed, _MIN_POWER_SPEED))
    return np.asarray(required_force - 2.0 * np.minimum(np.minimum(*p.adhesion_limits), drive))


def speed_loop(p: VehicleNumbers, speed: Floats) -> tuple[Floats, Floats, Floats]:
    """Linear plant from the common command to the speed: A (n, 2, 2), B (n, 2), C (n, 2); without delay."""
    n = len(p)
    A, B, C = np.zeros((n, 2, 2)), np.zeros((n, 2)), np.zeros((n, 2))
    A[:, 0, 0] = -2.0 * p.air_drag * np.abs(speed) / p.inertial_mass
    A[:, 0, 1] = 2.0 * p.max_force / p.inertial_mass
    A[:, 1, 1] = -1.0 / p.lag
    B[:, 1] = 1.0 / p.lag
    C[:, 0] = 1.0
    return A, B, C


def course_loop(p: VehicleNumbers, speed: Floats) -> tuple[Floats, Floats, Floats]:
    """Linear plant from the difference command to the heading: A (n, 3, 3), B (n, 3), C (n, 3); without delay."""
    n = len(p)
    A, B, C = np.zeros((n, 3, 3)), np.zeros((n, 3)), np.zeros((n, 3))
    A[:, 0, 1] = 1.0
    A[:, 1, 1] = -yaw_damping(p, speed) / p.yaw_inertia
    A[:, 1, 2] = p.track_distance * p.max_force / p.yaw_inertia
    A[:, 2, 2] = -1.0 / p.lag
    B[:, 2] = 1.0 / p.lag
    C[:, 0] = 1.0
    return A, B, C


def yaw_damping(p: VehicleNumbers, speed: Floats) -> Floats:
    """Slope (N m s) of the turning resistance over the yaw rate, straight ahead at a `speed` (m/s)."""
    return np.asarray(p.turning_moment * p.track_distance / (_NIKITIN[1] * np.abs(speed) + _CREEP))


class VehicleDynamics(NamedTuple):
    """The equations of motion without slip of the tracks, and the constants of one vehicle or of many in them."""

    power: Any
    air_drag: Any
    rolling: Any  # N, W f
    turning: Any  # N m^2, mu_max W L B / 4
    turning_speed: Any  # m, 0.925 B
    left_grip: Any
    right_grip: Any
    arm: Any  # m, B/2
    shift: Any  # m, of the weight to the right, times two
    side_moment: Any
    stiction: Any | None
    per_lag: Any
    per_mass: Any
    per_yaw_inertia: Any

    @classmethod
    def of_vehicle(cls, p: VehicleNumbers) -> VehicleDynamics:
        """The equations for the vehicles of a plant."""
        left, right = p.adhesion_limits
        return cls(
            power=p.power,
            air_drag=p.air_drag,
            rolling=p.weight * p.rolling,
            turning=p.turning_moment * p.track_distance,
            turning_speed=_NIKITIN[0] * p.track_distance,
            left_grip=left,
            right_grip=right,
            arm=0.5 * p.track_distance,
            shift=p.shift * p.track_distance,
            side_moment=p.side_moment,
            stiction=p.stiction if p.stiction.any() else None,
            per_lag=1.0 / p.lag,
            per_mass=1.0 / p.inertial_mass,
            per_yaw_inertia=1.0 / p.yaw_inertia,
        )

    def rates(self, m: Any, x: State, command: State, load: State) -> State:
        """Time derivatives of the states `x`.

        `command` are the delayed force commands of left and right (N), `load` the external force (N) and moment (N m):
        of the slope, -W sin(slope), and M_z.
        """
        v, r, _, left, right = x
        force, moment = self.resistance(m, v, r)
        A_L, A_R = self.ground_forces(m, x)
        return (
            (A_L + A_R - force + load[0]) * self.per_mass,
            ((A_R - A_L) * self.arm - moment + load[1]) * self.per_yaw_inertia,
            r,
            self.lagging(m, left, command[0], v),
            self.lagging(m, right, command[1], v),
        )

    def resistance(self, m: Any, v: Any, r: Any) -> tuple[Any, Any]:
        """Force (N) against the speed and moment (N m) against the yaw rate, without grade and disturbance."""
        rolling = self.rolling * m.tanh(v * (1.0 / _ROLLING_SPEED))
        force = rolling + self.air_drag * v * m.fabs(v)
        turning = self.turning * r / (self.turning_speed * m.fabs(r) + _NIKITIN[1] * m.fabs(v) + _CREEP)
        moment = turning + self.shift * rolling - self.side_moment
        if self.stiction is not None:
            moment = moment + self.stiction * m.tanh(r * (1.0 / STICTION_RATE))
        return force, moment

    def ground_forces(self, m: Any, x: State) -> tuple[Any, Any]:
        """Ground forces (N) on the left and the right track: the drive forces, limited by adhesion."""
        return clip(m, x[3], self.left_grip), clip(m, x[4], self.right_grip)

    def lagging(self, m: Any, force: Any, command: Any, speed: Any) -> Any:
        """Rate (N/s) of a track's drive force towards the command, which the power limits at the track's speed."""
        return (clip(m, command, self.power / m.fmax(m.fabs(speed), _MIN_POWER_SPEED)) - force) * self.per_lag

    def drive_power(self, m: Any, x: State) -> Any:
        """Power (W) of both tracks, A_L v_L + A_R v_R with v_L,R = v ∓ r B/2."""
        left, right = self.ground_forces(m, x)
        return (left + right) * x[0] + (right - left) * (x[1] * self.arm)


#: Numbers side by side: states, their rates, commands.
State = tuple[Any, ...]


def clip(m: Any, value: Any, limit: Any) -> Any:
    """`value` clipped to ±`limit`."""
    return m.fmax(m.fmin(value, limit), -limit)
