"""Name, unit, range and meaning of a quantity of a system."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from designopt.study.language import units


@dataclass(frozen=True)
class Variable:
    """One scalar of a system: its name, unit, range (in that unit) and meaning.

    The range bounds the variable in an optimisation; a simulation does not use it.
    """

    name: str
    unit: str
    low: float = -math.inf
    high: float = math.inf
    description: str = ""

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name.isidentifier()):
            raise ValueError(f"'{self.name}' is not a valid name for a variable: use only letters, digits and _")
        if not isinstance(self.unit, str):
            raise ValueError(f"variable '{self.name}': its unit must be text ('' for none), not {self.unit!r}")
        try:
            units.check(self.unit)
        except units.UnitError as error:
            raise ValueError(f"variable '{self.name}': {error}") from None
        if not self.low <= self.high:
            raise ValueError(f"variable '{self.name}': low {self.low!r} is not below high {self.high!r}")


@dataclass(frozen=True)
class Vector:
    """Several variables of one kind under one name: component ``part`` is named ``name_part``.

    Unit and range apply to every component. Replaces a `Variable` in `System.from_expressions`, with columns as symbol
    and expression.
    """

    name: str
    parts: tuple[str, ...]
    unit: str
    low: float = -math.inf
    high: float = math.inf
    description: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise ValueError(f"vector '{self.name}' has no components")
        _ = self.variables

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The components."""
        return tuple(Variable(n, self.unit, self.low, self.high, self.description) for n in self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the components."""
        return tuple(f"{self.name}_{part}" for part in self.parts)

    def columns_of(self, values: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
        """The components among `values` by name, side by side: (n, k) of arrays (n,), (k,) of numbers."""
        return np.stack([np.asarray(values[n], dtype=np.float64) for n in self.names], axis=-1)
