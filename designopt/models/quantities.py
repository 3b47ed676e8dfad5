"""The quantities that a model with equations of motion declares, each once: unit, meaning, default, range.

Numbers that are given are a `Parameter` (designed), a `Condition` (of the scenario) or a `Setting` (of the model);
`State` and `Unknown` move; `Series` is an array over time; `Integral`, `Peak`, `Final` and `Event` are figures, the
outputs of the model; a `Guard` ends a motion that the equations describe no further.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

from designopt.plugin import Quantity


@dataclass(frozen=True)
class ModelQuantity:
    """What all have: a unit and a meaning."""

    unit: str
    description: str


@dataclass(frozen=True)
class Given(ModelQuantity):
    """A number that is given, and the range that it must be in."""

    default: float | None = None
    gt: float | None = field(default=None, kw_only=True)
    ge: float | None = field(default=None, kw_only=True)
    lt: float | None = field(default=None, kw_only=True)
    le: float | None = field(default=None, kw_only=True)

    @property
    def quantity(self) -> Quantity:
        """As in an annotation."""
        return Quantity(self.unit, self.description, self.gt, self.ge, self.lt, self.le, default=self.default)

    @property
    def low(self) -> float:
        """The lower end of the range."""
        return max((float(v) for v in (self.gt, self.ge) if v is not None), default=-math.inf)

    @property
    def high(self) -> float:
        """The upper end of the range."""
        return min((float(v) for v in (self.lt, self.le) if v is not None), default=math.inf)


@dataclass(frozen=True)
class Parameter(Given):
    """A number that is designed: an input of the model; it has no default."""

    default: None = None


@dataclass(frozen=True)
class Condition(Given):
    """A number that a scenario gives; with a default it may be left out. `sampled`: as in `Quantity`."""

    sampled: tuple[float, float] | None = field(default=None, kw_only=True)

    @property
    def quantity(self) -> Quantity:
        """As in an annotation."""
        return replace(super().quantity, sampled=self.sampled)


@dataclass(frozen=True)
class Setting(Given):
    """A number that the model section of a study may set."""


@dataclass(frozen=True)
class State(ModelQuantity):
    """A state; its equation is its rate. It is an array too.

    `initial` is a number, or the name of a parameter, condition or setting. `low` and `high` bound it in a trajectory
    problem; `size` is that below which differences do not matter.
    """

    initial: float | str = 0.0
    low: float = field(default=-math.inf, kw_only=True)
    high: float = field(default=math.inf, kw_only=True)
    size: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True)
class Unknown(ModelQuantity):
    """A rate that the equations leave unknown, as an acceleration; its equation is an expression that is zero."""


@dataclass(frozen=True)
class Series(ModelQuantity):
    """An array over time; its equation is its value."""


@dataclass(frozen=True)
class Guard(ModelQuantity):
    """Its equation is positive wherever the others hold; where it is not, the model has no answer (`Diverged`)."""


@dataclass(frozen=True)
class Output(ModelQuantity):
    """A number that the model gives."""


@dataclass(frozen=True)
class Integral(Output):
    """The integral of its equation over the motion; other figures may name it."""

    size: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True)
class Peak(Output):
    """The largest magnitude of its equation at the samples of the motion; its largest or smallest value by `of`."""

    of: Literal["size", "largest", "smallest"] = field(default="size", kw_only=True)


@dataclass(frozen=True)
class Final(Output):
    """The value of its equation at the end of the motion."""


@dataclass(frozen=True)
class Event(Output):
    """The time at which its equation, positive before, is zero first.

    `never` is the figure where that does not happen; without it the model has no answer then (`Diverged`).
    """

    never: float | str | None = None
