"""Springs and dampers along wires: between points of frames, straight or through further points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.lazy import casadi as ca
from designopt_mechanics.body import is_number
from designopt_mechanics.loads import Load
from designopt_mechanics.state import TreeState
from designopt_mechanics.wires import Wire, lengths, pulls

#: Length over which a spring that only pulls goes slack (m).
SOFTNESS = 1e-4


class SpringError(ValueError):
    """An impossible spring; `field` names the wrong value."""

    def __init__(self, name: str, field: str, message: str) -> None:
        super().__init__(f"spring '{name}', {field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True, eq=False)
class Spring:
    """Tension k (l - l0) + d dl/dt along `wire`: `stiffness` k (N/m), `rest` length l0 (m), `damping` d (N s/m).

    With `pulls_only` it is slack below its rest length, smoothly (`pulling`), and has no damping. Numbers are checked,
    expressions are not. Raises `SpringError`.
    """

    wire: Wire
    stiffness: Any
    rest: Any
    damping: Any = 0.0
    pulls_only: bool = False

    def __post_init__(self) -> None:
        for field, unit in (("stiffness", "N/m"), ("rest", "m"), ("damping", "N s/m")):
            value = getattr(self, field)
            if is_number(value) and not 0.0 <= float(value) < np.inf:
                raise SpringError(self.wire.name, field, f"{float(value):g} {unit} is not finite and at least 0")
        if self.pulls_only and not (is_number(self.damping) and float(self.damping) == 0.0):
            raise SpringError(self.wire.name, "damping", "does not go with a spring that only pulls")

    def tension(self, length: Any, rate: Any = 0.0) -> Any:
        """N at `length` (m) and its `rate` (m/s)."""
        stretch = length - self.rest
        if self.pulls_only:
            return pulling(self.stiffness, stretch)
        return self.stiffness * stretch + self.damping * rate

    def energy(self, length: Any) -> Any:
        """J; its derivative by the length is the tension at rest."""
        stretch = length - self.rest
        return pulling_energy(self.stiffness, stretch) if self.pulls_only else 0.5 * self.stiffness * stretch**2


@dataclass(frozen=True, eq=False)
class WirePull:
    """A tension (N) along `wire` that is given: a number or an expression."""

    wire: Wire
    force: Any
    damping: float = 0.0

    def tension(self, length: Any, rate: Any = 0.0) -> Any:
        """N, whatever the length."""
        return ca.SX(self.force)

    def energy(self, length: Any) -> Any:
        """J; its derivative by the length is the tension."""
        return self.force * length


def pulling(stiffness: Any, stretch: Any) -> Any:
    """Tension (N) of a spring that only pulls: k/2 (s + sqrt(s^2 + e^2)) with e = 0.1 mm."""
    return stiffness * positive(stretch, SOFTNESS)


def pulling_energy(stiffness: Any, stretch: Any) -> Any:
    """Energy (J) whose derivative by the stretch is `pulling`."""
    s, e = stretch, SOFTNESS
    r = ca.sqrt(s**2 + e**2)
    # ln(s + r) is asinh(s/e) + ln e, which keeps its digits when slack
    return 0.25 * stiffness * (s**2 + s * r + e**2 * ca.asinh(s / e))


def positive(value: Any, softness: float) -> Any:
    """Smooth max(value, 0): (v + sqrt(v^2 + e^2)) / 2, e/2 at zero."""
    return 0.5 * (value + ca.sqrt(value**2 + softness**2))


def tensions(state: TreeState, springs: Sequence[Spring | WirePull]) -> Any:
    """(k, 1) N. Springs with damping need a state with rates."""
    tension_list = []
    for spring in springs:
        length = lengths(state, [spring.wire])
        has_damping = not is_number(spring.damping) or float(spring.damping) > 0.0
        tension_list.append(spring.tension(length, state.rate(length) if has_damping else 0.0))
    return ca.vertcat(ca.SX(0, 1), *tension_list)


def spring_loads(state: TreeState, springs: Sequence[Spring | WirePull]) -> list[Load]:
    """The forces of springs on the frames of all their points."""
    return pulls(state, [spring.wire for spring in springs], tensions(state, springs))


def spring_energy(state: TreeState, springs: Sequence[Spring]) -> Any:
    """Stored in all springs (J)."""
    return sum((spring.energy(lengths(state, [spring.wire])) for spring in springs), ca.SX(0.0))
