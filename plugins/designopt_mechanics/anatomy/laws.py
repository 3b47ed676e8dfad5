"""What pulls: muscles between bounds, tendons and ligaments as springs that pull only, smooth at slack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: Length over which a spring goes slack (m).
SOFTNESS = 1e-4


@dataclass(frozen=True)
class Muscle:
    """Tension between `tone` and `greatest` (N)."""

    greatest: float
    tone: float = 1.0


@dataclass(frozen=True)
class Elastic:
    """T(l) = k/2 (d + sqrt(d^2 + e^2)) with d = l - slack: `stiffness` k (N/m), `slack` length (m), e = 0.1 mm."""

    stiffness: float
    slack: float

    def tension(self, length: Any) -> Any:
        """N, an expression."""
        import casadi as ca

        d = length - self.slack
        return 0.5 * self.stiffness * (d + ca.sqrt(d**2 + SOFTNESS**2))

    def energy(self, length: Any) -> Any:
        """J, an expression; its derivative by the length is the tension."""
        import casadi as ca

        d = length - self.slack
        r = ca.sqrt(d**2 + SOFTNESS**2)
        # ln(d + r) is asinh(d/e) + ln e, which keeps its digits when slack
        return 0.25 * self.stiffness * (d**2 + d * r + SOFTNESS**2 * ca.asinh(d / SOFTNESS))
