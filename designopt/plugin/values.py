"""What plugins say about values, and what they raise: quantities, arrays, files of the user, refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from designopt.files import InputFile as InputFile


@dataclass(frozen=True)
class Quantity:
    """Unit, meaning and admissible range of a number; put it into ``Annotated[float, Quantity("N/m", "...")]``.

    `unit` is any unit string; ``""`` means a plain number, and so does ``"1"``, which becomes that. `gt`, `ge`, `lt`,
    `le` are in that unit. `sampled` is the range over which a sampled scenario varies a condition where the study does
    not say; `default` is the value of an input or condition that may be left out (see `filled`). A `notable` output is
    said at the end of a run wherever it is above 0. `former` is the name that the value had in an earlier version: with
    it study files work with a warning, and keys and stores go by it, so that what was computed before is found again.
    """

    unit: str = ""
    description: str = ""
    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None
    sampled: tuple[float, float] | None = None
    notable: bool = False
    former: str = ""
    default: Any = None

    def __post_init__(self) -> None:
        if self.unit == "1":
            object.__setattr__(self, "unit", "")
        v = self.default
        if isinstance(v, (int, float)) and not (
            (self.gt is None or v > self.gt)
            and (self.ge is None or v >= self.ge)
            and (self.lt is None or v < self.lt)
            and (self.le is None or v <= self.le)
        ):
            raise PluginError(f"the default {v:g} is outside its own range")


@dataclass(frozen=True)
class Array:
    """What a model's array is: its axes by name, its unit, its meaning and the type of its values.

    `dtype` is ``float``, ``float32``, ``int``, ``bool``, ``complex`` or ``str``; numbers are kept as they are without
    one, text needs it. `categories` are names for the values 0, 1, ... of whole numbers, such as a status per frame.
    """

    axes: tuple[str, ...]
    unit: str = ""
    description: str = ""
    dtype: Literal["", "float", "float32", "int", "bool", "complex", "str"] = ""
    categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.dtype not in ("", "float", "float32", "int", "bool", "complex", "str"):
            raise PluginError(f"'{self.dtype}' is not an array type (float, float32, int, bool, complex or str)")
        if self.categories:
            if self.dtype not in ("", "int"):
                raise PluginError(f"categories name integers, not {self.dtype}")
            object.__setattr__(self, "categories", tuple(self.categories))
            object.__setattr__(self, "dtype", "int")


@dataclass(frozen=True)
class Fidelity:
    """What makes an evaluation of a model cheap: values that replace `settings`, and its `cost` in full ones.

    A solver may learn from cheap evaluations where to look (`gp` does); fronts and reports are of full ones alone.
    """

    settings: Mapping[str, Any]
    cost: float

    def __post_init__(self) -> None:
        if not self.settings:
            raise PluginError("a Fidelity must name the settings that make an evaluation cheap")
        if not 0.0 < self.cost < 1.0:
            raise PluginError(
                f"the cost of a cheap evaluation must be between 0 and 1 (a full evaluation), not {self.cost:g}"
            )


class Diverged(Exception):
    """Raised by a model: the physics has no answer for this design. `reason` is a short identifier for grouping.

    `arrays` are those that show how far it came, by name; those that the study keeps are kept.
    """

    def __init__(self, message: str, *, reason: str = "", arrays: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.arrays = arrays or {}


class InvalidDesign(Exception):
    """Raised by a model: this design is refused before anything is computed; the message names the value."""


class InvalidSetting(ValueError):
    """Raised by a model's `check()`: the setting `name` cannot be used, and why."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


class PluginError(Exception):
    """A plugin is missing, ambiguous, broken or declared wrongly; the message is one line for the user."""


class UnknownPlugin(PluginError):
    """No plugin has the name, as the first argument says; the second one adds those that there are."""

    def __str__(self) -> str:
        return "".join(self.args)


@dataclass(frozen=True)
class Field:
    """One named value of a plugin: a setting, a design input, a scenario condition or an output."""

    name: str
    annotation: Any
    quantity: Quantity | None
    required: bool
    default: Any = None

    @property
    def key_name(self) -> str:
        """What keys and stores call it: its former name where it had one."""
        return (self.quantity.former if self.quantity else "") or self.name
