"""What a quantity of a system is called, its unit, its range and its meaning."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    """One scalar of a system: its name, unit, range (in that unit) and meaning.

    The range bounds what an optimisation may choose; a simulation goes where the equations lead.
    """

    name: str
    unit: str
    low: float = -math.inf
    high: float = math.inf
    description: str = ""

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"'{self.name}' is no name for a variable: letters, digits and _ only")
        if not self.low <= self.high:
            raise ValueError(f"variable '{self.name}': low {self.low!r} is not below high {self.high!r}")
