"""A passive device on a walker: torques at coordinates, with numbers that a program may choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from designopt.dynamics import Variable

#: Torques (N m) by coordinate, of angles (rad), rates (rad/s) and parameters by name, all CasADi expressions.
Torques = Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]

#: Rounding of one-sided springs and stops (rad).
ROUNDING = 0.02


@dataclass(frozen=True, eq=False)
class Device:
    """Torques at coordinates of a walker.

    `torques(q, dq, p)` gives the generalised forces of the device by coordinate. `parameters` are static parameters of
    the program, with their ranges: a study fixes them at the values of a design or leaves them free. `fixed` are
    parameters with one value. `coordinates` are those with a torque.
    """

    name: str
    coordinates: tuple[str, ...]
    torques: Torques
    parameters: tuple[Variable, ...] = ()
    fixed: Mapping[str, float] = field(default_factory=dict)

    def at(self, q: Mapping[str, Any], dq: Mapping[str, Any], p: Mapping[str, Any]) -> Mapping[str, Any]:
        """Torques (N m) by coordinate, `p` being the values of the parameters that are not fixed."""
        return self.torques(q, dq, {**self.fixed, **p})

    @property
    def one_sided(self) -> bool:
        """Whether a coordinate with a torque has no partner on the other side: the walk is then not symmetric."""
        return any(_mirrored(name) not in self.coordinates for name in self.coordinates)


def positive_part(x: Any, m: Any) -> Any:
    """x where it is positive, 0 elsewhere, rounded over `ROUNDING`; `m` provides ``sqrt``."""
    return 0.5 * (x + m.sqrt(x**2 + ROUNDING**2))


def _mirrored(name: str) -> str:
    return f"{name[:-2]}{'_l' if name.endswith('_r') else '_r'}" if name[-2:] in ("_r", "_l") else name
