"""Metabolic rates of muscles: Bhargava, Pandy & Anderson, J. Biomech. 37 (2004) 81; Umberger, J. R. Soc. Interface 7
(2010) 1345, after Umberger, Gerritsen & Martin, Comput. Methods Biomech. Biomed. Eng. 6 (2003) 99.

Excitations are taken to be the activations: static sharing has no others. Activation heat does not decay (its function
of the stimulation time is 1), as usual where that time is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from designopt.arrays import Floats
from designopt_muscle.osim.model import OsimMuscle
from designopt_muscle.strength import Fibres, isometric_curve

MetabolicModel = Literal["bhargava", "umberger"]

#: Muscle tissue: tension (Pa) of the maximum isometric force, and density (kg/m^3).
TENSION, DENSITY = 0.25e6, 1059.7
#: Least heat of a muscle, W/kg.
_LEAST_HEAT = 1.0


@dataclass(frozen=True, eq=False)
class FibreState:
    """The fibres of k muscles in n frames: `activation` (n, k), `force` (n, k) N of the active fibre along it,
    `fibres`."""

    activation: Floats
    force: Floats
    fibres: Fibres


def muscle_masses(muscles: tuple[OsimMuscle, ...]) -> Floats:
    """(k,) kg: cross-section by the maximum isometric force, times optimal fibre length and density."""
    return np.array([m.force / TENSION * DENSITY * m.fibre for m in muscles])


def metabolic_rates(
    muscles: tuple[OsimMuscle, ...], state: FibreState, model: MetabolicModel, slow: float | Floats = 0.5
) -> Floats:
    """(n, k) W of each muscle, heat and mechanical work, without the basal rate of the body.

    `slow` is the share of slow-twitch fibres, a number or (k,). Lengthening fibres take up work in Bhargava's model; in
    that of Umberger (2010), whose heat of lengthening is a thirteenth of that of 2003, they do not. The heat is at
    least 1 W/kg, and no muscle gains energy. NaN where the activation is.
    """
    speed = np.array([m.fastest * m.fibre for m in muscles]) * state.fibres.speed  # m/s, negative when shortening
    masses = muscle_masses(muscles)
    work = -state.force * speed
    if model == "bhargava":
        heat = _bhargava(muscles, state, masses, speed, np.asarray(slow))
    else:
        heat, work = _umberger(muscles, state, masses, np.asarray(slow)), np.maximum(work, 0.0)
    return np.maximum(np.maximum(heat, _LEAST_HEAT * masses) + work, 0.0)


def _bhargava(
    muscles: tuple[OsimMuscle, ...], state: FibreState, masses: Floats, speed: Floats, slow: Floats
) -> Floats:
    """(n, k) W of heat: activation, maintenance, shortening (equations 4 to 11)."""
    u = 0.5 * np.pi * state.activation
    by_slow, by_fast = slow * np.sin(u), (1.0 - slow) * (1.0 - np.cos(u))
    activation = masses * (40.0 * by_slow + 133.0 * by_fast)
    stretch = np.interp(state.fibres.length, [0.0, 0.5, 1.0, 1.5], [0.5, 0.5, 1.0, 0.0])
    maintenance = masses * stretch * (74.0 * by_slow + 111.0 * by_fast)
    isometric = state.activation * isometric_curve(muscles, state.fibres.length)
    isometric = isometric * np.array([m.force for m in muscles])
    per_speed = np.where(speed <= 0.0, 0.16 * isometric + 0.18 * state.force, 0.157 * state.force)
    return np.asarray(activation + maintenance - per_speed * speed)


def _umberger(muscles: tuple[OsimMuscle, ...], state: FibreState, masses: Floats, slow: Floats) -> Floats:
    """(n, k) W of heat: activation and maintenance, shortening or lengthening; aerobic conditions."""
    fastest = np.array([m.fastest for m in muscles])
    speed = fastest * state.fibres.speed  # optimal lengths per second
    a, curve = state.activation, isometric_curve(muscles, state.fibres.length)
    steady = (128.0 * (1.0 - slow) + 25.0) * a**0.6
    per_slow, per_fast = 100.0 / (fastest / 2.5), 153.0 / fastest
    shortening = np.minimum(-per_slow * speed, 100.0) * slow - per_fast * speed * (1.0 - slow)
    motion_heat = np.where(speed <= 0.0, shortening * a**2, 0.3 * per_slow * speed * a)
    long = state.fibres.length > 1.0
    steady = np.where(long, steady * (0.4 + 0.6 * curve), steady)
    motion_heat = np.where(long, motion_heat * curve, motion_heat)
    return np.asarray(masses * 1.5 * (steady + motion_heat))
