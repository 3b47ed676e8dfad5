"""One sample of the closed loops: the controllers' commands, then integration steps.

Stated once, for the module `m` that computes: with NumPy the numbers are arrays (n,) of n vehicles side by side, with
CasADi they are symbols from which machine code is generated (`compiled_step`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from designopt_regulator.controllers.pid import Law, Memory
from designopt_regulator.vehicle.equations import State, clip


class Gain(NamedTuple):
    """Gain schedule of the heading controller: kp times reference_speed / max(v, min_speed)."""

    reference_speed: Any
    min_speed: Any


class Loops(NamedTuple):
    """All numbers of one closed loop, or of n side by side."""

    motion: Any  # `equations.VehicleDynamics` or another statement of the equations of motion
    speed: Law
    course: Law
    schedule: Gain | None
    forward: Any  # of the heading controller's output to the difference command; 1 without a yaw-rate loop
    rate_gain: Any  # s/rad, of the yaw rate to the difference command; 0 without a yaw-rate loop
    max_force: Any


class MeasuredSignals(NamedTuple):
    """Measurements of the controllers at a sample."""

    speed: Any
    yaw_rate: Any
    course: Any


class References(NamedTuple):
    """References of the controllers at a sample, and the command fed forward to the speed."""

    speed: Any
    course: Any
    feed: Any


class Commands(NamedTuple):
    """Commands of a sample, from -1 to 1, the same before clipping, and the commanded forces (N) of the tracks."""

    speed: Any
    speed_raw: Any
    course: Any
    course_raw: Any
    left: Any
    right: Any


def sample(
    m: Any, loops: Loops, memory: tuple[Memory, Memory], measurement: MeasuredSignals, references: References
) -> tuple[Commands, tuple[Memory, Memory]]:
    """Commands of this sample, and the states of speed and heading controller after it."""
    scale = 1.0
    if loops.schedule is not None:
        scale = loops.schedule.reference_speed / m.fmax(measurement.speed, loops.schedule.min_speed)
    u, u_raw, speed = loops.speed.sample(m, memory[0], references.speed, measurement.speed, feed=references.feed)
    w, w_raw, course = loops.course.sample(m, memory[1], references.course, measurement.course, scale=scale, angle=True)
    # With a yaw-rate loop the heading controller asks for a rate, which is followed in proportion.
    turn = loops.forward * w_raw - loops.rate_gain * measurement.yaw_rate
    turn_clipped = clip(m, loops.forward * w - loops.rate_gain * measurement.yaw_rate, 1.0)
    left, right = (
        loops.max_force * clip(m, side_command, 1.0) for side_command in (u - turn_clipped, u + turn_clipped)
    )
    return Commands(u, u_raw, turn_clipped, turn, left, right), (speed, course)


def runge_kutta(rates: Callable[[State], State], x: State, h: Any) -> State:
    """One step `h` (s) of the classical method of order 4."""
    k1 = rates(x)
    k2 = rates(_advance(x, k1, 0.5 * h))
    k3 = rates(_advance(x, k2, 0.5 * h))
    k4 = rates(_advance(x, k3, h))
    return _advance(x, tuple(a + 2.0 * (b + c) + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True)), h / 6.0)


def _advance(x: State, rate: State, h: Any) -> State:
    return tuple(a + h * b for a, b in zip(x, rate, strict=True))
