"""Forces along one coordinate of a mechanism: spring, damping, dry friction, stops; and the limits of its drive."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from designopt.lazy import casadi as ca
from designopt_mechanics.body import PartError, is_not_zero, is_number
from designopt_mechanics.springs import positive
from designopt_mechanics.state import TreeState

#: Part of a stop's elastic force below which its damping factor goes smoothly to zero when the coordinate returns.
_RELEASE = 1e-2


class CoordinateLawError(PartError):
    """An impossible law."""


@dataclass(frozen=True, eq=False)
class CoordinateLaw:
    """The force law of one coordinate z, in units of its generalised force (N m or N) and of the coordinate.

    The force is -`damping` dz, minus `friction` dz / sqrt(dz^2 + w^2) with w the `friction_speed` (Coulomb friction,
    smooth over this speed: below it the coordinate creeps), minus `stiffness` (z - `rest`). Beyond the `stops` (lowest
    and highest value) it adds `stop_stiffness` p (1 + `stop_dissipation` dp/dt), not negative, with the penetration
    p(s) = (s + sqrt(s^2 + e^2)) / 2 and e the `stop_softness`. A drive acts by a gear of `ratio`: it turns ratio times
    as fast as the coordinate, with the effort of the coordinate divided by the ratio. `largest_effort` and
    `largest_speed` of the coordinate limit trajectory problems.

    Numbers are checked, expressions of parameters are not. Raises `CoordinateLawError`.
    """

    damping: Any = 0.0
    friction: Any = 0.0
    friction_speed: float = 1e-2
    stiffness: Any = 0.0
    rest: Any = 0.0
    stops: tuple[float, float] | None = None
    stop_stiffness: Any = 0.0
    stop_dissipation: Any = 0.0
    stop_softness: float = 1e-4
    ratio: Any = 1.0
    largest_effort: float = math.inf
    largest_speed: float = math.inf

    def __post_init__(self) -> None:
        for field in ("damping", "friction", "stiffness", "stop_stiffness", "stop_dissipation"):
            value = getattr(self, field)
            if is_number(value) and not 0.0 <= float(value) < math.inf:
                raise CoordinateLawError(field, f"{float(value):g} is not finite and at least 0")
        for field in ("friction_speed", "stop_softness", "largest_effort", "largest_speed"):
            value = float(getattr(self, field))
            if not value > 0.0:
                raise CoordinateLawError(field, f"{value:g} is not positive")
        if is_number(self.ratio) and not (math.isfinite(float(self.ratio)) and float(self.ratio) != 0.0):
            raise CoordinateLawError("ratio", f"{float(self.ratio):g} is not finite and different from 0")
        if is_not_zero(self.stop_stiffness) and not any(math.isfinite(end) for end in self.stops or ()):
            raise CoordinateLawError("stops", "need a range of the coordinate")

    def force(self, z: Any, dz: Any) -> Any:
        """The generalised force on the coordinate."""
        force = -self.stiffness * (z - self.rest) - self.damping * dz
        if is_not_zero(self.friction):
            force -= self.friction * dz / ca.sqrt(dz**2 + self.friction_speed**2)
        for sign, end in self._ends():
            release = positive(1.0 + self.stop_dissipation * sign * dz, _RELEASE) / positive(ca.SX(1.0), _RELEASE)
            force -= sign * self.stop_stiffness * positive(sign * (z - end), self.stop_softness) * release
        return force

    def energy(self, z: Any) -> Any:
        """J in the spring and the stops; minus its derivative is the force at rest."""
        energy = 0.5 * self.stiffness * (z - self.rest) ** 2
        for sign, end in self._ends():
            s, e = sign * (z - end), self.stop_softness
            r = ca.sqrt(s**2 + e**2)
            energy += 0.25 * self.stop_stiffness * (s**2 + s * r + e**2 * ca.asinh(s / e))
        return energy

    def _ends(self) -> list[tuple[float, float]]:
        if self.stops is None or not is_not_zero(self.stop_stiffness):
            return []
        return [(sign, end) for sign, end in zip((-1.0, 1.0), self.stops, strict=True) if math.isfinite(end)]


def coordinate_forces(state: TreeState, laws: Mapping[str, CoordinateLaw]) -> Any:
    """(m, 1) the generalised forces that the laws exert on the coordinates. The state has rates."""
    forces = ca.SX.zeros(len(state.tree.names))
    for name, law in laws.items():
        i = state.tree.names.index(name)
        forces[i] = law.force(state.z[i], state.dz[i])
    return forces
