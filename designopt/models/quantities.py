"""The quantities of a model with equations of motion, each declared once: unit, meaning, default, range.

Given numbers are a `Parameter` (design variable), a `Condition` (of the scenario) or a `Setting` (of the model).
`State` and `Unknown` vary over time, `Series` is an array over time. `Integral`, `Peak`, `Final` and `Event` are
figures, the outputs of the model. A `Guard` ends a motion outside the validity of the equations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

from designopt.plugin import Quantity


@dataclass(frozen=True)
class ModelQuantity:
    """Common fields of all quantities: unit and meaning."""

    unit: str
    description: str


@dataclass(frozen=True)
class NumberInRange(ModelQuantity):
    """A given number with its admissible range."""

    default: float | None = None
    gt: float | None = field(default=None, kw_only=True)
    ge: float | None = field(default=None, kw_only=True)
    lt: float | None = field(default=None, kw_only=True)
    le: float | None = field(default=None, kw_only=True)

    @property
    def quantity(self) -> Quantity:
        """The same as a `Quantity` of an annotation."""
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
class Parameter(NumberInRange):
    """A design variable: an input of the model, without a default."""

    default: None = None


@dataclass(frozen=True)
class Condition(NumberInRange):
    """A number of the scenario; optional if it has a default. `sampled` as in `Quantity`."""

    sampled: tuple[float, float] | None = field(default=None, kw_only=True)

    @property
    def quantity(self) -> Quantity:
        """The same as a `Quantity` of an annotation."""
        return replace(super().quantity, sampled=self.sampled)


@dataclass(frozen=True)
class Setting(NumberInRange):
    """A number of the section `model` of a study."""


@dataclass(frozen=True)
class State(ModelQuantity):
    """A state, which may also be requested as an array; its equation is its rate.

    `initial` is a number, or the name of a parameter, condition or setting. `low` and `high` bound it in a trajectory
    problem; `size` is the magnitude below which differences do not matter.
    """

    initial: float | str = 0.0
    low: float = field(default=-math.inf, kw_only=True)
    high: float = field(default=math.inf, kw_only=True)
    size: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True)
class Unknown(ModelQuantity):
    """An unknown rate, such as an acceleration; its equation is an expression that is zero, linear in all unknowns."""


@dataclass(frozen=True)
class Series(ModelQuantity):
    """An array over time; its equation is its value."""


@dataclass(frozen=True)
class Guard(ModelQuantity):
    """Its equation is positive where the other equations are valid; elsewhere the model has no result (`Diverged`)."""


@dataclass(frozen=True)
class Output(ModelQuantity):
    """An output of the model."""


@dataclass(frozen=True)
class Integral(Output):
    """The integral of its equation over the motion; a `Final` may contain it."""

    size: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True)
class Peak(Output):
    """The `extremum` of its equation over the samples of the motion: the largest magnitude, largest or smallest
    value."""

    extremum: Literal["size", "largest", "smallest"] = field(default="size", kw_only=True)


@dataclass(frozen=True)
class Final(Output):
    """The value of its equation at the end of the motion."""


@dataclass(frozen=True)
class Event(Output):
    """The time (s) at which its equation, positive before, first becomes zero.

    `never` is the value if this does not happen; without it the model then has no result (`Diverged`).
    """

    never: float | str | None = None
