"""Types that plugins use for values, and their exceptions: quantities, arrays, input files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from designopt.files import InputFile as InputFile


@dataclass(frozen=True)
class Quantity:
    """Unit, meaning and admissible range of a number; for ``Annotated[float, Quantity("N/m", "...")]``.

    `unit` is any unit string; ``""`` or ``"1"`` is dimensionless. `gt`, `ge`, `lt`, `le` are in that unit. `sampled` is
    the default range of a condition in sampled scenarios; `default` is the value of an optional input or condition (see
    `filled`). A report quotes `why` (the reason of the admissible range of an input) where a design is at its `ge` or
    `le`. The end of a run reports a `notable` output wherever it is above 0, with the sentences of the array of
    text that it is `listed_by`; and of the recommended design the outputs beyond their `usual` range (low, high):
    with the `remedy` of a numerical cause, as the end of a sentence, else with the likely `mistakes` in the inputs, as
    questions, where no feasible design is within.
    """

    unit: str = ""
    description: str = ""
    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None
    sampled: tuple[float, float] | None = None
    notable: bool = False
    listed_by: str = ""
    usual: tuple[float, float] | None = None
    mistakes: str = ""
    remedy: str = ""
    why: str = ""
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
        if self.usual is not None and not self.usual[0] <= self.usual[1]:
            raise PluginError(f"the usual range ends at {self.usual[1]:g} before it begins at {self.usual[0]:g}")


@dataclass(frozen=True)
class Array:
    """An array of a model: its axes by name, unit, meaning and value type.

    `dtype` is ``float``, ``float32``, ``int``, ``bool``, ``complex`` or ``str``. Numbers without a `dtype` keep theirs;
    text needs it. `categories` name the integer values 0, 1, ..., such as a status per frame. `components` name the
    three items of the last axis of a drawing, the last of which points up; a drawing in a plane has the first and the
    last.
    """

    axes: tuple[str, ...]
    unit: str = ""
    description: str = ""
    dtype: Literal["", "float", "float32", "int", "bool", "complex", "str"] = ""
    categories: tuple[str, ...] = ()
    components: tuple[str, ...] = ()

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
    """A cheap evaluation of a model: values that replace `settings`, and its `cost` relative to a full one.

    A solver may use cheap evaluations to guide its search (`gp` does); fronts and reports contain full ones only.
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
    """Raised by a model if the physics has no solution for this design. `reason` is a short identifier for grouping.

    `arrays` are the partial arrays by name; those that the study stores are stored.
    """

    def __init__(self, message: str, *, reason: str = "", arrays: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.arrays = arrays or {}


class Unusable(Diverged):
    """Raised by a model if files or values of a scenario give no result, for this design or for any: recordings that do
    not fit each other, forces of another trial. `reason` and `arrays` as for `Diverged`."""


class ProgramFailed(Exception):
    """Raised by a model if the program or compiled code that it runs fails: an evaluation of the class `status`.

    The last line of `message` says what happened; lines before it may contain what the program printed. `reason` is a
    short identifier for grouping. `arrays` as for `Diverged`.
    """

    def __init__(
        self,
        message: str,
        *,
        status: Literal["error", "timeout", "crashed"] = "error",
        reason: str = "",
        arrays: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.arrays = arrays or {}


class InvalidDesign(Exception):
    """Raised by a model that rejects a design before computing anything; the message names the value."""


class InvalidSetting(ValueError):
    """Raised by a model's `check()`: the setting `name` is invalid, with the reason; `key` is a wrong key in it."""

    def __init__(self, name: str, message: str, key: str | None = None) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message
        self.key = key


class PluginError(Exception):
    """A plugin is missing, ambiguous, broken or incorrectly declared; the message is one line for the user."""


class PluginFailed(PluginError):
    """The code of a plugin raised an exception, or returned something else than it should."""


class UnknownPlugin(PluginError):
    """No plugin has the name; the first argument says so, the second lists the existing names."""

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
