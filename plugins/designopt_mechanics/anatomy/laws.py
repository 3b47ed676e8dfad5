"""What pulls: muscles between bounds, tendons and ligaments as springs that pull only, smooth at slack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from designopt_mechanics.springs import pulling, pulling_energy


@dataclass(frozen=True)
class Muscle:
    """Tension between `min_tension`, the muscle tone, and `max_tension` (N)."""

    max_tension: float
    min_tension: float = 1.0


@dataclass(frozen=True)
class Elastic:
    """A tension-only spring: `stiffness` (N/m) and `slack` length (m); see `springs.pulling`."""

    stiffness: float
    slack: float

    def tension(self, length: Any) -> Any:
        """N, an expression."""
        return pulling(self.stiffness, length - self.slack)

    def energy(self, length: Any) -> Any:
        """J, an expression; its derivative by the length is the tension."""
        return pulling_energy(self.stiffness, length - self.slack)
