"""Metabolic rate of muscles from the speeds of their fibres: the smoothed model of Bhargava et al. (2004).

L. Bhargava, M. Pandy, F. Anderson, Journal of Biomechanics 37 (2004) 81-88, with the smooth switches and constants of
OpenSim's ``Bhargava2004SmoothedMuscleMetabolics``.
"""

from __future__ import annotations

import math
from typing import Any

from designopt.lazy import casadi as ca
from designopt_walking.muscles import MuscleStates

#: Muscle density (kg/m^3) and specific tension (Pa), for the masses of muscles.
DENSITY, TENSION = 1059.7, 0.25e6
#: Heat of activation and of maintenance (W/kg of muscle), of slow and of fast fibres; half of the fibres are slow.
ACTIVATION, MAINTENANCE = (40.0, 133.0), (74.0, 111.0)
#: Basal rate (W/kg of body mass).
BASAL = 1.2
#: Rounding of the corners of the maintenance heat (optimal lengths) with which a rate is smooth enough for a cost.
ROUNDING = 0.05
#: Steepness of the switches, per W or per m/s.
_STEEP = 10.0


def metabolic_rates(muscles: MuscleStates, *, rounding: float = 0.0) -> Any:
    """(k, 1) W of heat and work of the muscles: at least 1 W of heat per kg of muscle, and no negative total.

    The maintenance heat over the fibre length is a polygon; `rounding` (optimal lengths) rounds its corners, for costs.
    """
    scale = [m.force * m.fibre * DENSITY / TENSION for m in muscles.muscles]
    mass, excitation, v = ca.SX(scale), muscles.excitation, muscles.fibre_velocity
    slow, fast = 0.5 * ca.sin(0.5 * math.pi * excitation), 0.5 * (1.0 - ca.cos(0.5 * math.pi * excitation))
    activation = mass * (ACTIVATION[0] * slow + ACTIVATION[1] * fast)
    maintenance = mass * _length_factor(muscles.fibre_length, rounding)
    maintenance *= MAINTENANCE[0] * slow + MAINTENANCE[1] * fast
    shortening = -0.25 * muscles.fibre_force * (1.0 - _switch(v)) * v
    work = -muscles.active_force * v
    rate = activation + maintenance + shortening + work
    heat = activation + maintenance + shortening - rate * _switch(-rate)
    return heat + (mass - heat) * _switch(mass - heat) + work


def _switch(x: Any) -> Any:
    return 0.5 + 0.5 * ca.tanh(_STEEP * x)


def _length_factor(length: Any, rounding: float) -> Any:
    """The polygon (0.5, 0.5), (1, 1), (1.5, 0), constant beyond its ends, as a sum of ramps."""

    def ramp(x: Any) -> Any:
        return 0.5 * (x + ca.sqrt(x**2 + rounding**2)) if rounding else ca.fmax(x, 0.0)

    return 0.5 + ramp(length - 0.5) - 3.0 * ramp(length - 1.0) + 2.0 * ramp(length - 1.5)
