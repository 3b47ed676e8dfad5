"""Joint variables that are affine in the coordinates: rhythms, couplers, mirrored joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from designopt.lazy import casadi as ca


@dataclass(frozen=True)
class Affine:
    """`offset` plus the sum of `slopes` times coordinates, in rad or m."""

    slopes: Mapping[str, float]
    offset: float = 0.0

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The coordinates that it depends on."""
        return tuple(self.slopes)

    def __call__(self, z: Mapping[str, Any]) -> Any:
        return sum((slope * z[name] for name, slope in self.slopes.items() if slope), ca.SX(self.offset))
