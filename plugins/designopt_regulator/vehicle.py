"""The tracked carrier: its numbers, the terrains, the equations of motion of level 1, trim and linear loops.

The plant is built from published terramechanics; drive lag, delay, rotating-mass factor, greatest force and power are
design assumptions. Turning resistance after Nikitin as given by Zabavnikov (1975).

States, rows of an array (5, n): speed v (m/s), yaw rate r (rad/s), course psi (rad), drive forces of the left and the
right track F_L, F_R (N). Column i is a vehicle of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy import absolute, add, divide, maximum, minimum, multiply, negative, subtract, tanh
from numpy.typing import ArrayLike, NDArray

from designopt.plugin import Quantity

Q = Quantity
Vector = NDArray[np.float64]

GRAVITY = 9.80665
STATES = ("speed", "yaw_rate", "course", "left_force", "right_force")

_ROLLING_SPEED = 0.05  # m/s, at which tanh makes rolling resistance full
_LEAST_POWER_SPEED = 0.5  # m/s, below which power limits no force further
_CREEP = 0.02  # m/s, keeps Nikitin's law finite at standstill
_NIKITIN = (0.925, 0.15)


@dataclass(frozen=True, kw_only=True)
class Vehicle:
    """An M113-class carrier converted to remote operation."""

    mass: Annotated[float, Q("kg", "mass", gt=0)] = 10_000.0
    rotating_mass_factor: Annotated[float, Q("", "of the drive's rotating masses (assumption)", ge=1)] = 1.15
    yaw_inertia: Annotated[float, Q("kg m^2", "about the vertical axis, at this mass", gt=0)] = 32_000.0
    track_distance: Annotated[float, Q("m", "between the centre lines of the tracks", gt=0)] = 2.16
    contact_length: Annotated[float, Q("m", "of a track on the ground", gt=0)] = 2.67
    track_width: Annotated[float, Q("m", "of one track", gt=0)] = 0.38
    greatest_force: Annotated[float, Q("N", "of one track at full command (assumption)", gt=0)] = 30_000.0
    power: Annotated[float, Q("W", "greatest at one sprocket (assumption)", gt=0)] = 75_000.0
    lag: Annotated[float, Q("s", "time constant of the drive's force (assumption)", gt=0)] = 0.35
    delay: Annotated[float, Q("s", "of measurement, network and valve (assumption)", ge=0)] = 0.20
    air_drag: Annotated[float, Q("N s^2/m^2", "half the density times drag coefficient and area", ge=0)] = 2.2


class Terrain(NamedTuple):
    """Coefficients of a class of terrain, and the ranges over which they vary."""

    rolling: float
    turning: float
    adhesion: float
    rolling_range: tuple[float, float]
    turning_range: tuple[float, float]
    adhesion_range: tuple[float, float]


TerrainName = Literal["paved", "dry_dirt", "turf", "wet_dirt", "sand", "snow_road"]

#: Representative handbook values; the columns of rolling and turning resistance are no measurements.
TERRAINS: Mapping[TerrainName, Terrain] = {
    "paved": Terrain(0.04, 0.60, 0.75, (0.03, 0.05), (0.50, 0.70), (0.70, 0.80)),
    "dry_dirt": Terrain(0.06, 0.80, 0.85, (0.05, 0.07), (0.65, 0.90), (0.80, 0.90)),
    "turf": Terrain(0.09, 0.90, 0.80, (0.07, 0.11), (0.80, 1.00), (0.70, 0.95)),
    "wet_dirt": Terrain(0.12, 0.45, 0.60, (0.10, 0.15), (0.35, 0.60), (0.50, 0.70)),
    "sand": Terrain(0.15, 0.55, 0.45, (0.12, 0.20), (0.45, 0.65), (0.40, 0.50)),
    "snow_road": Terrain(0.06, 0.30, 0.25, (0.04, 0.10), (0.20, 0.40), (0.20, 0.30)),
}


@dataclass(frozen=True)
class Plant:
    """Numbers of n vehicles on their ground, arrays (n,) in SI units."""

    weight: Vector
    inertial_mass: Vector
    yaw_inertia: Vector
    track_distance: Vector
    contact_length: Vector
    greatest_force: Vector
    power: Vector
    lag: Vector
    air_drag: Vector
    rolling: Vector
    turning: Vector
    adhesion: Vector

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def adhesion_limit(self) -> Vector:
        """Greatest force (N) that the ground takes from one track."""
        return 0.5 * self.adhesion * self.weight

    @property
    def turning_moment(self) -> Vector:
        """mu_max W L / 4 (N m), the moment of turning resistance at the radius B/2."""
        return 0.25 * self.turning * self.weight * self.contact_length


def plant(
    *,
    mass: ArrayLike,
    rotating_mass_factor: ArrayLike,
    yaw_inertia: ArrayLike,
    track_distance: ArrayLike,
    contact_length: ArrayLike,
    greatest_force: ArrayLike,
    power: ArrayLike,
    lag: ArrayLike,
    air_drag: ArrayLike,
    rolling: ArrayLike,
    turning: ArrayLike,
    adhesion: ArrayLike,
) -> Plant:
    """The plant of these numbers, broadcast to one length."""
    mass = np.asarray(mass, float)
    rows = np.broadcast_arrays(
        *(
            np.atleast_1d(np.asarray(value, float))
            for value in (
                mass * GRAVITY, mass * np.asarray(rotating_mass_factor, float), yaw_inertia, track_distance,
                contact_length, greatest_force, power, lag, air_drag, rolling, turning, adhesion,
            )
        )
    )  # fmt: skip
    return Plant(*(np.array(row) for row in rows))


def turning_resistance(radius: ArrayLike, turning: ArrayLike, track_distance: ArrayLike) -> Vector:
    """Nikitin's coefficient of turning resistance at a `radius` (m) of the vehicle's centre."""
    offset, slope = _NIKITIN
    ratio = np.asarray(radius, float) / np.asarray(track_distance, float)
    return np.asarray(np.asarray(turning, float) / (offset + slope * ratio))


def trim(p: Plant, speed: Vector) -> Vector:
    """The command of both tracks (n,) that holds a `speed` (m/s) on level ground."""
    resistance = p.weight * p.rolling * np.tanh(speed / _ROLLING_SPEED) + p.air_drag * speed * np.abs(speed)
    return np.asarray(resistance / (2.0 * p.greatest_force))


def missing_force(p: Plant, speed: Vector, grade: Vector) -> Vector:
    """Force (N) that is missing to hold a speed up a grade (the sine of the slope); negative where it is in reserve.

    The least of adhesion, greatest force and power decides.
    """
    speed = np.abs(speed)
    need = p.weight * (p.rolling + grade) + p.air_drag * speed**2
    drive = np.minimum(p.greatest_force, p.power / np.maximum(speed, _LEAST_POWER_SPEED))
    return np.asarray(need - 2.0 * np.minimum(p.adhesion_limit, drive))


def speed_loop(p: Plant, speed: Vector) -> tuple[Vector, Vector, Vector]:
    """Linear plant from the common command to the speed: A (n, 2, 2), B (n, 2), C (n, 2); without delay."""
    n = len(p)
    A, B, C = np.zeros((n, 2, 2)), np.zeros((n, 2)), np.zeros((n, 2))
    A[:, 0, 0] = -2.0 * p.air_drag * np.abs(speed) / p.inertial_mass
    A[:, 0, 1] = 2.0 * p.greatest_force / p.inertial_mass
    A[:, 1, 1] = -1.0 / p.lag
    B[:, 1] = 1.0 / p.lag
    C[:, 0] = 1.0
    return A, B, C


def course_loop(p: Plant, speed: Vector) -> tuple[Vector, Vector, Vector]:
    """Linear plant from the difference command to the course: A (n, 3, 3), B (n, 3), C (n, 3); without delay."""
    n = len(p)
    A, B, C = np.zeros((n, 3, 3)), np.zeros((n, 3)), np.zeros((n, 3))
    A[:, 0, 1] = 1.0
    A[:, 1, 1] = -yaw_damping(p, speed) / p.yaw_inertia
    A[:, 1, 2] = p.track_distance * p.greatest_force / p.yaw_inertia
    A[:, 2, 2] = -1.0 / p.lag
    B[:, 2] = 1.0 / p.lag
    C[:, 0] = 1.0
    return A, B, C


def yaw_damping(p: Plant, speed: Vector) -> Vector:
    """Slope (N m s) of the turning resistance over the yaw rate, straight ahead at a `speed` (m/s)."""
    return np.asarray(p.turning_moment * p.track_distance / (_NIKITIN[1] * np.abs(speed) + _CREEP))


class Columns(NamedTuple):
    """An array (5, n) of states or their rates and what is often taken of it: making a view costs as much as a sum."""

    all: Vector
    motion: Vector  # speed and yaw rate
    speed: Vector
    yaw_rate: Vector
    course: Vector
    forces: Vector

    @classmethod
    def of(cls, x: Vector) -> Columns:
        """Of states (5, n)."""
        return cls(x, x[:2], x[0], x[1], x[2], x[3:])


class Rates:
    """The equations of motion of n vehicles, with memory of their own: a call allocates nothing.

    A column of a result depends on no other column.
    """

    def __init__(self, p: Plant) -> None:
        n = len(p)
        size, forces, resist, limit, lowest = np.empty((5, 2, n))
        self._work = size, *size, forces, *forces, resist, *resist, limit, *limit, lowest, np.empty(n)
        # Operands of equal shape and numbers as arrays () spare the ufuncs their broadcasting and conversions.
        self._scalars = tuple(np.array(v) for v in (_LEAST_POWER_SPEED, 1.0 / _ROLLING_SPEED, _CREEP))
        both = np.ones((2, 1))
        self._pairs = (
            both * (1.0 / p.lag),
            np.stack([np.full(n, _NIKITIN[1]), _NIKITIN[0] * p.track_distance]),
            both * p.adhesion_limit,
            both * -p.adhesion_limit,
            np.stack([1.0 / p.inertial_mass, 1.0 / p.yaw_inertia]),
        )
        self._rows = (
            p.power,
            p.air_drag,
            p.weight * p.rolling,
            p.turning_moment * p.track_distance,
            0.5 * p.track_distance,
        )

    def __call__(self, state: Columns, command: Vector, load: Vector, rates: Columns) -> None:
        """Time derivatives of a `state`, into `rates`.

        `command` (2, n) are the delayed forces asked of left and right (N), `load` (2, n) the force (N) and the moment
        (N m) from outside: of the slope, -W sin(slope), and M_z.
        """
        size, v_size, r_size, forces, left, right, resist, resist_v, resist_r, *work = self._work
        limit, left_limit, right_limit, lowest, row = work
        least_speed, per_rolling_speed, creep = self._scalars
        per_lag, turn, adhesion, least_adhesion, per_inertia = self._pairs
        power, drag, rolling, moment, arm = self._rows
        _, motion, v, r, _, drive = state
        _, motion_rates, v_rate, r_rate, course_rate, drive_rates = rates
        absolute(motion, size)

        # T_d dF/dt = clip(c, ±P_max / max(|v|, 0.5)) - F
        maximum(v_size, least_speed, out=row)
        divide(power, row, left_limit)
        right_limit[:] = left_limit
        negative(limit, lowest)
        minimum(command, limit, out=drive_rates)
        maximum(drive_rates, lowest, out=drive_rates)
        subtract(drive_rates, drive, drive_rates)
        multiply(drive_rates, per_lag, drive_rates)

        # W f tanh(v/0.05) + c_A v|v|;  M_r = mu_max W L B r / (4 (0.925 B|r| + 0.15|v| + 0.02))
        multiply(v, v_size, row)
        multiply(row, drag, row)
        multiply(v, per_rolling_speed, resist_v)
        tanh(resist_v, resist_v)
        multiply(resist_v, rolling, resist_v)
        add(resist_v, row, resist_v)
        multiply(size, turn, size)
        add(v_size, r_size, row)
        add(row, creep, row)
        multiply(moment, r, resist_r)
        divide(resist_r, row, resist_r)

        # delta m dv/dt = A_L + A_R - ...,  I_z dr/dt = (A_R - A_L) B/2 - ...
        minimum(drive, adhesion, out=forces)
        maximum(forces, least_adhesion, out=forces)
        add(left, right, v_rate)
        subtract(right, left, r_rate)
        multiply(r_rate, arm, r_rate)
        subtract(motion_rates, resist, motion_rates)
        add(motion_rates, load, motion_rates)
        multiply(motion_rates, per_inertia, motion_rates)
        course_rate[:] = r


def drive_power(p: Plant, x: Vector) -> Vector:
    """Power (W) of both tracks, A_L v_L + A_R v_R with v_L,R = v ∓ r B/2, for states `x` (..., 5, n)."""
    forces = np.clip(x[..., 3:, :], -p.adhesion_limit, p.adhesion_limit)
    left, right = forces[..., 0, :], forces[..., 1, :]
    return (left + right) * x[..., 0, :] + (right - left) * (x[..., 1, :] * (0.5 * p.track_distance))
