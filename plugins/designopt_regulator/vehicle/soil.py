"""Soft ground (level 2): sinkage and compaction after Bekker (1969), traction after Janosi & Hanamoto (1961).

The pressure under the tracks is taken as uniform. Losses of the running gear and the peaks of pressure under the road
wheels are not included: compaction adds to the rolling resistance of hard ground and does not replace it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np

from designopt.plugin import Quantity

Q = Quantity


class Soil(NamedTuple):
    """Constants of a soil: `exponent` n, `cohesive_modulus` k_c in N/m^(n+1), `frictional_modulus` k_phi in N/m^(n+2).

    `cohesion` in Pa, `friction_angle` in rad, `shear_modulus` K in m.
    """

    exponent: float
    cohesive_modulus: float
    frictional_modulus: float
    cohesion: float
    friction_angle: float
    shear_modulus: float


SoilName = Literal["dry_sand", "sandy_loam", "clayey_soil", "snow"]

#: Wong (2010), tables of terrain values: dry sand and sandy loam (Land Locomotion Laboratory), clayey soil (Thailand),
#: snow (Harrison).
SOILS: Mapping[SoilName, Soil] = {
    "dry_sand": Soil(1.1, 0.99e3, 1528.43e3, 1.04e3, float(np.radians(28.0)), 0.025),
    "sandy_loam": Soil(0.7, 5.27e3, 1515.04e3, 1.72e3, float(np.radians(29.0)), 0.025),
    "clayey_soil": Soil(0.5, 13.19e3, 692.15e3, 4.14e3, float(np.radians(13.0)), 0.006),
    "snow": Soil(1.6, 4.37e3, 196.72e3, 1.03e3, float(np.radians(19.7)), 0.04),
}


@dataclass(frozen=True, kw_only=True)
class SoftGround:
    """Soil in all scenarios: its compaction adds to the rolling resistance, its strength is the adhesion."""

    soil: Annotated[SoilName, Q("", "whose constants are taken")]
    slip: Annotated[float, Q("", "at which traction is evaluated", gt=0, le=1)] = 0.2
    clearance: Annotated[float, Q("m", "between hull and ground; deeper sinkage is warned of", gt=0)] = 0.40


def sinkage(soil: Soil, weight: float, width: float, length: float) -> float:
    """Depth (m) of two tracks of this width and contact length (m) under a weight (N), (p/k)^(1/n)."""
    pressure = weight / (2.0 * width * length)
    return float((pressure / _stiffness(soil, width)) ** (1.0 / soil.exponent))


def compaction(soil: Soil, weight: float, width: float, length: float) -> float:
    """Resistance of both tracks as a share of the weight, 2 b k z^(n+1) / ((n+1) W)."""
    z, n = sinkage(soil, weight, width, length), soil.exponent
    return float(2.0 * width * _stiffness(soil, width) * z ** (n + 1.0) / ((n + 1.0) * weight))


def traction(soil: Soil, weight: float, width: float, length: float, slip: float | None = None) -> float:
    """Maximum traction of both tracks as a share of the weight, at a `slip`, or over all slips by default."""
    max_coefficient = 2.0 * width * length * soil.cohesion / weight + float(np.tan(soil.friction_angle))
    if slip is None:
        return max_coefficient
    shear = slip * length / soil.shear_modulus
    return max_coefficient * float(1.0 + np.expm1(-shear) / shear)


def _stiffness(soil: Soil, width: float) -> float:
    return soil.cohesive_modulus / width + soil.frictional_modulus
