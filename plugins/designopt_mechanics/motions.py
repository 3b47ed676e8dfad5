"""Elementary motions: how a frame moves against the one before it."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from designopt_mechanics.body import PartError, is_number, vector

logger = logging.getLogger(__name__)

#: A joint variable: a number, the name of a coordinate, or a function of the coordinates by name.
Value: TypeAlias = float | str | Callable[[Mapping[str, Any]], Any]

#: Axes this far from unit length are normalised without a word, with a warning, or not at all.
_EXACT, _NEAR = 1e-6, 1e-2


class MotionError(PartError):
    """An invalid axis or place."""


@dataclass(frozen=True)
class Rotate:
    """A turn by `angle` (rad) about the unit vector `axis`, which is the same in the axes before and after it.

    `inertia` (kg m^2) is that of a rotor which turns with the joint variable alone: it adds inertia / 2 times the
    squared rate to the kinetic energy.
    """

    axis: tuple[float, float, float]
    angle: Value
    inertia: float = 0.0

    def __post_init__(self) -> None:
        _finite("angle", self.angle)
        object.__setattr__(self, "axis", unit(self.axis))
        _not_negative(self.inertia)


@dataclass(frozen=True)
class Slide:
    """A shift by `distance` (m) along the unit vector `axis`; `inertia` (kg) is one of this variable alone."""

    axis: tuple[float, float, float]
    distance: Value
    inertia: float = 0.0

    def __post_init__(self) -> None:
        _finite("distance", self.distance)
        object.__setattr__(self, "axis", unit(self.axis))
        _not_negative(self.inertia)


@dataclass(frozen=True)
class Ball:
    """A turn by the `quaternion` (w, x, y, z) divided by its length: a ball joint without a singular posture.

    The four are names of coordinates (or joint functions); the reference posture has the length 1. The length, which
    turns nothing, has the inertia 1 kg m^2: it stays where it is, so that no constraint is needed. The generalised
    forces Q of the four give the moment ``E' Q`` about the axes after the turn, E = [-x -y -z; w -z y; z w -x; -y x w]
    / 2 (Shabana 2013, 2.3).
    """

    quaternion: tuple[Value, Value, Value, Value]

    def __post_init__(self) -> None:
        object.__setattr__(self, "quaternion", tuple(self.quaternion))
        if len(self.quaternion) != 4:
            raise MotionError("quaternion", f"has {len(self.quaternion)} components, not 4")
        for component in self.quaternion:
            _finite("quaternion", component)


Motion: TypeAlias = Rotate | Slide | Ball


def unit(axis: Any) -> tuple[float, float, float]:
    """`axis` of length 1; raises `MotionError` when it is zero, not finite, or off by more than 1 %."""
    direction = vector("axis", axis, MotionError)
    length = math.hypot(*direction)
    if abs(length - 1.0) > _NEAR:
        raise MotionError("axis", f"{direction.tolist()} has the length {length:g}, not 1")
    if abs(length - 1.0) > _EXACT:
        logger.warning("axis %s has the length %.8g and is normalised", direction.tolist(), length)
    x, y, z = (float(v) for v in direction / length)
    return x, y, z


def _finite(field: str, value: Any) -> None:
    """Raise `MotionError` for a number that is not finite; names, functions and expressions pass."""
    if is_number(value) and not np.isfinite(float(value)):
        raise MotionError(field, f"{float(value):g} is not a finite number")


def _not_negative(inertia: Any) -> None:
    if is_number(inertia) and not 0.0 <= float(inertia) < np.inf:
        raise MotionError("inertia", f"{float(inertia):g} is not an inertia; it must be finite and at least 0")
