"""Metabolic rate of muscles with rigid tendons: the smoothed model of Bhargava et al. (2004).

L. Bhargava, M. Pandy, F. Anderson, Journal of Biomechanics 37 (2004) 81-88, with the smooth switches and constants of
OpenSim's `Bhargava2004SmoothedMuscleMetabolics`. All functions are of numbers, arrays and CasADi expressions alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.lazy import casadi
from designopt_muscle.curves import FASTEST, OPENSIM, Curves

#: Muscle density (kg/m^3) and specific tension (Pa) of the muscle mass.
DENSITY, TENSION = 1059.7, 0.25e6
#: Heat (W/kg of muscle) of activation and of maintenance, of slow and of fast fibres; half of the fibres are slow.
ACTIVATION, MAINTENANCE = (40.0, 133.0), (74.0, 111.0)
#: Basal rate, W/kg of body mass.
BASAL = 1.2
#: Steepness of the switches, per W or per m/s.
_STEEP = 10.0
#: Rounding of the corners of the maintenance factor, in optimal fibre lengths, where derivatives are needed.
ROUNDING = 0.05


@dataclass(frozen=True)
class MuscleState:
    """What the metabolic rate of a muscle depends on: numbers, arrays (n,) or expressions.

    `excitation` and `activation` within 0 to 1, `fibre_length` in optimal lengths, `fibre_speed` in maximum speeds of
    shortening (shortening is negative); `isometric_force` N and `optimal_length` m of the muscle.
    """

    isometric_force: float
    optimal_length: float
    excitation: Any
    activation: Any
    fibre_length: Any
    fibre_speed: Any


def metabolic_rate(muscle: MuscleState, *, curves: Curves = OPENSIM, damping: float = 0.01, rounding: float = 0.0) -> Any:
    """Heat and work of one muscle, W: at least 1 W/kg of heat, no negative total power.

    `damping` is that of the fibre, in maximum isometric forces at its maximum speed. The maintenance heat depends on
    the fibre length by a polygon; `rounding` (optimal lengths) rounds its corners for use in an objective, where
    `ROUNDING` changes the heat by at most a few hundredths of its maximum.
    """
    m = _library(muscle.excitation, muscle.activation, muscle.fibre_length, muscle.fibre_speed)
    e, length, speed = muscle.excitation, muscle.fibre_length, muscle.fibre_speed
    mass = muscle.isometric_force * muscle.optimal_length * DENSITY / TENSION
    slow, fast = 0.5 * m.sin(0.5 * math.pi * e), 0.5 * (1.0 - m.cos(0.5 * math.pi * e))
    v = speed * FASTEST * muscle.optimal_length
    active = muscle.isometric_force * muscle.activation * curves.active_length(length) * curves.velocity(speed)
    total = active + muscle.isometric_force * (curves.passive(length) + damping * speed)

    activation_heat = mass * (ACTIVATION[0] * slow + ACTIVATION[1] * fast)
    maintenance = mass * _length_factor(length, rounding, m) * (MAINTENANCE[0] * slow + MAINTENANCE[1] * fast)
    shortening = -0.25 * total * (1.0 - _switch(v, m)) * v
    work = -active * v
    rate = activation_heat + maintenance + shortening + work
    shortening = shortening - rate * _switch(-rate, m)
    heat = activation_heat + maintenance + shortening
    return heat + (mass - heat) * _switch(mass - heat, m) + work


def _switch(x: Any, m: Any) -> Any:
    return 0.5 + 0.5 * m.tanh(_STEEP * x)


def _length_factor(length: Any, rounding: float, m: Any) -> Any:
    """The polygon (0.5, 0.5), (1, 1), (1.5, 0), constant beyond its ends, as a sum of ramps."""

    def ramp(x: Any) -> Any:
        if rounding:
            return 0.5 * (x + m.sqrt(x**2 + rounding**2))
        return m.fmax(x, 0.0)

    return 0.5 + ramp(length - 0.5) - 3.0 * ramp(length - 1.0) + 2.0 * ramp(length - 1.5)


def _library(*values: Any) -> Any:
    """CasADi for its expressions, NumPy for anything else."""
    if any(type(value).__module__.partition(".")[0] == "casadi" for value in values):
        return casadi
    return np
