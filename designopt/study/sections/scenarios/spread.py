"""Distribution of one condition in a sample: over a range, among values, or normal."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from designopt.lazy import scipy
from designopt.plugin import Field
from designopt.study.language import units
from designopt.study.language.checking.annotations import number_type, type_words
from designopt.study.language.checking.values import check, known_checker
from designopt.study.language.checking.words import JsonKeywords, Something
from designopt.study.language.findings import Path
from designopt.study.language.units import Amount, UnitError
from designopt.study.sections.context import Context, unit_of
from designopt.study.sections.scenarios.undeclared import UNIT, refuse_unit

Numbers = NDArray[np.float64]

#: Maximum number of values of a sampled condition.
MOST_VALUES = 10_000
_LARGEST = float(np.finfo(float).max)


#: A number with an optional unit.
Number = Annotated[Something, JsonKeywords(type=["number", "string"])]


class SpreadSection(TypedDict, total=False):
    """The distribution of a condition; `low`, `high`, `mean` and `values` are checked once the model is known."""

    low: Number
    high: Number
    scale: Literal["linear", "log"]
    type: Literal["real", "int"]
    values: Annotated[list[Any], JsonKeywords(minItems=1)]
    mean: Number
    deviation: Amount


class ConditionSpread(Protocol):
    """A distribution of a condition, in the model's unit."""

    @abstractmethod
    def values(self, u: Numbers) -> list[Any]:
        """One value for each of the numbers `u` (n,) in [0, 1], increasing in `u`."""


@dataclass(frozen=True)
class UniformReal:
    """Uniform between two bounds, on a log scale uniform in the logarithm."""

    low: float
    high: float
    log: bool = False

    def values(self, u: Numbers) -> list[Any]:
        """See `ConditionSpread`."""
        if self.log:
            with np.errstate(over="ignore"):
                inside = np.exp(math.log(self.low) * (1.0 - u) + math.log(self.high) * u)
        else:
            inside = self.low * (1.0 - u) + self.high * u  # their difference may overflow a double
        return [float(x) for x in np.clip(inside, self.low, self.high) + 0.0]


@dataclass(frozen=True)
class UniformInteger:
    """Uniform over the integers between two bounds; `as_float` for a condition that is a real number."""

    low: int
    high: int
    as_float: bool = False

    def values(self, u: Numbers) -> list[Any]:
        """See `ConditionSpread`."""
        count = self.high - self.low + 1
        integers = [self.low + min(int(x * count), count - 1) for x in u.tolist()]
        return [float(n) for n in integers] if self.as_float else list(integers)


@dataclass(frozen=True)
class AmongValues:
    """Uniform over some values."""

    members: tuple[Any, ...]

    def values(self, u: Numbers) -> list[Any]:
        """See `ConditionSpread`."""
        count = len(self.members)
        return [self.members[min(int(x * count), count - 1)] for x in u.tolist()]


@dataclass(frozen=True)
class Normal:
    """Normal, truncated at bounds, by the inverse of the distribution function."""

    mean: float
    deviation: float
    low: float = -math.inf
    high: float = math.inf

    def values(self, u: Numbers) -> list[Any]:
        """See `ConditionSpread`. A `u` of exactly 0, as in an unscrambled sequence, is replaced by half a stratum."""
        floor, ceiling = (scipy.special.ndtr((bound - self.mean) / self.deviation) for bound in (self.low, self.high))
        inside = np.where(u > 0.0, np.minimum(u, 1.0 - 2.0**-53), 0.5 / max(len(u), 1))
        with np.errstate(over="ignore"):
            x = self.mean + self.deviation * scipy.special.ndtri(floor + inside * (ceiling - floor))
        return [float(v) for v in np.clip(x, max(self.low, -_LARGEST), min(self.high, _LARGEST)) + 0.0]


def spreads_of(conditions: Mapping[str, Field]) -> dict[str, ConditionSpread]:
    """The conditions with a declared range for samples."""
    spreads: dict[str, ConditionSpread] = {}
    for name, item in conditions.items():
        if item.quantity is not None and item.quantity.sampled is not None:
            low, high = item.quantity.sampled
            is_integer = number_type(item.annotation) is int
            spreads[name] = (
                UniformInteger(round(low), round(high)) if is_integer else UniformReal(float(low), float(high))
            )
    return spreads


def spread(ctx: Context, section: Mapping[str, Any] | None, field: Field | None, path: Path) -> ConditionSpread | None:
    """The distribution in the section at `path` for the condition `field` (None: the model declares no conditions)."""
    if section is None:
        return None
    required_keys = (
        ("values",)
        if "values" in section
        else ("mean", "deviation")
        if section.keys() & {"mean", "deviation"}
        else ("low", "high")
    )
    if not any(key in section for key in required_keys):
        if not ctx.unknown_key(path):
            ctx.add(path, "give 'low' and 'high', 'values', or 'mean' and 'deviation'")
        return None
    for key in required_keys:
        if key not in section and not ctx.unknown_key(path):
            ctx.add(path, f"'{key}' is missing")
    extra = ("low", "high") if required_keys[0] == "mean" else ("scale", "type") if required_keys[0] == "low" else ()
    foreign = [key for key in section if key not in (*required_keys, *extra)]
    for key in foreign:
        ctx.add(path, f"'{key}' cannot be combined with '{required_keys[0]}'", key=key)
    if foreign:
        return None
    if required_keys[0] == "values":
        return None if section["values"] is None else _one_of(ctx, section["values"], field, path)
    if field is not None and number_type(field.annotation) is None:
        ctx.add(path, f"the model takes {type_words(field.annotation)} here, not a number; use 'values'")
        return None
    return _normal(ctx, section, field, path) if required_keys[0] == "mean" else _range(ctx, section, field, path)


def _number(ctx: Context, value: Any, field: Field | None, path: Path) -> float | None:
    """The number in the model's unit; None if invalid or missing."""
    if value is None:
        return None
    if field is not None:
        number = ctx.check_value(value, field, path)
        if number is None or not isinstance(number, (int, float)):
            return None
        return number
    amount, findings = check(known_checker(Amount), value, ctx.read)
    ctx.findings.extend(finding.below(path) for finding in findings)
    if findings:
        return None
    if amount.unit:
        ctx.add(path, UNIT)
        return None
    return float(amount.value)


def _one_of(ctx: Context, values: list[Any], field: Field | None, path: Path) -> ConditionSpread | None:
    if not values:
        ctx.add((*path, "values"), "at least one value is needed")
        return None
    if len(values) > MOST_VALUES:
        ctx.add((*path, "values"), f"at most {MOST_VALUES} values are allowed, not {len(values)}")
        return None
    before = len(ctx.findings)
    if field is None:
        refuse_unit(ctx, values, (*path, "values"))
    members = [ctx.check_value(value, field, (*path, "values", i)) for i, value in enumerate(values) if not ctx.full]
    return AmongValues(tuple(members)) if len(ctx.findings) == before and len(members) == len(values) else None


def _range(ctx: Context, section: Mapping[str, Any], field: Field | None, path: Path) -> ConditionSpread | None:
    low, high = (_number(ctx, section.get(key), field, (*path, key)) for key in ("low", "high"))
    if low is None or high is None or not ctx.sound(path):
        return None
    if not low < high:
        ctx.add(path, f"low ({section['low']}) must be below high ({section['high']})")
        return None
    declared_type = number_type(field.annotation) if field is not None else None
    log = section.get("scale") == "log"
    if section.get("type") == "int" or declared_type is int:
        if section.get("type") == "real":
            ctx.add((*path, "type"), "the model takes an integer here; use type: int")
            return None
        if log:
            ctx.add((*path, "scale"), "a log scale needs a range of type real, this is int")
            return None
        for key, value in (("low", low), ("high", high)):
            if value != round(value) or abs(value) > 2**53:
                ctx.add((*path, key), f"must be an integer within -2**53 and 2**53, not {value:g}")
                return None
        return UniformInteger(int(low), int(high), as_float=declared_type is float)
    if log and low <= 0.0:
        ctx.add((*path, "low"), f"a log scale needs low above 0, not {low:g}")
        return None
    return UniformReal(float(low), float(high), log)


def _normal(ctx: Context, section: Mapping[str, Any], field: Field | None, path: Path) -> ConditionSpread | None:
    if field is not None and number_type(field.annotation) is int:
        ctx.add(path, "the model takes an integer here; use 'low' and 'high', or 'values'")
        return None
    mean = _number(ctx, section.get("mean"), field, (*path, "mean"))
    low, high = model_range(field)
    limits = {key: _number(ctx, section[key], field, (*path, key)) for key in ("low", "high") if key in section}
    bounds = {key: value for key, value in limits.items() if value is not None}
    deviation = _difference(ctx, section.get("deviation"), field, (*path, "deviation"))
    if deviation is not None and not deviation > 0.0:
        ctx.add((*path, "deviation"), f"must be above 0, not {deviation:g}")
    if mean is None or deviation is None or not ctx.sound(path):
        return None
    low, high = bounds.get("low", low), bounds.get("high", high)
    if not (low <= mean <= high and low < high):
        ctx.add((*path, "mean"), f"must be between low ({low:g}) and high ({high:g}), not {mean:g}")
        return None
    return Normal(float(mean), deviation, float(low), float(high))


def model_range(field: Field | None) -> tuple[float, float]:
    """The range admitted by the model, ends included."""
    q = field.quantity if field is not None else None
    if q is None:
        return -math.inf, math.inf
    lows = [b for b in (q.ge, None if q.gt is None else float(np.nextafter(q.gt, math.inf))) if b is not None]
    highs = [b for b in (q.le, None if q.lt is None else float(np.nextafter(q.lt, -math.inf))) if b is not None]
    return max(lows, default=-math.inf), min(highs, default=math.inf)


def _difference(ctx: Context, amount: Amount | None, field: Field | None, path: Path) -> float | None:
    """A difference of values in the model's unit: for a temperature without the offset."""
    if amount is None:
        return None
    if amount.unit is None:
        return amount.value
    unit = unit_of(field) if field is not None else None
    if unit is None:
        ctx.add(path, "the model does not declare a unit here, so it cannot be converted; write a plain number")
        return None
    try:
        return units.factor_offset(amount.unit, unit)[0] * amount.value
    except UnitError as error:
        ctx.add(path, f"incompatible units: {error}")
        return None
