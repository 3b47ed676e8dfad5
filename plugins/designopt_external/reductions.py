"""Reductions of a signal over time to one number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import InvalidSetting, Quantity
from designopt.study.language import units

Floats = NDArray[np.float64]
Take = Literal["first", "last", "max", "min", "largest", "mean", "rms", "integral", "crossing"]
Direction = Literal["rising", "falling", "any"]


class ReductionSection(TypedDict, total=False):
    """The reduction of a signal; `mean`, `rms` and `integral` are those over time, by the trapezoidal rule."""

    take: Annotated[Take, Quantity("", "reduction; largest is that of the magnitudes, crossing a time; default last")]
    level: Annotated[float, Quantity("", "crossing: value of the signal, in its unit; default 0")]
    direction: Annotated[Direction, Quantity("", "crossing: rising, falling or any (default)")]
    meaning: Annotated[str, Quantity("", "for tables and the report")]


def check(section: Mapping[str, Any], at: str) -> Iterator[InvalidSetting]:
    """The mistakes in the reduction of the setting `at`, ``outputs.travel``."""
    for key in ("level", "direction"):
        if key in section and section.get("take") != "crossing":
            yield InvalidSetting(f"{at}.{key}", "is for crossings; add 'take: crossing', or remove it")


def reduce(section: Mapping[str, Any], time: Floats, values: Floats) -> float:
    """The number of a signal with `values` (n,) at `time` (n,) s; infinite for a crossing that does not occur."""
    take = section.get("take", "last")
    if take == "crossing":
        return crossing(time, values - section.get("level", 0.0), section.get("direction", "any"))
    if take in ("mean", "rms", "integral"):
        return _over_time(take, time, values)
    if take in ("first", "last"):
        return float(values[0 if take == "first" else -1])
    sizes = np.abs(values) if take == "largest" else values
    number = sizes.min() if take == "min" else sizes.max()
    return float(number)


def _over_time(take: str, time: Floats, values: Floats) -> float:
    duration = float(time[-1] - time[0])
    integral = float(np.trapezoid(values**2 if take == "rms" else values, time))
    if take == "integral":
        return integral
    if duration == 0.0:
        return abs(float(values[-1])) if take == "rms" else float(values[-1])
    return math.sqrt(integral / duration) if take == "rms" else integral / duration


def crossing(time: Floats, values: Floats, direction: str = "any") -> float:
    """The first time (s) at which `values` (n,) pass through zero, linear between samples; infinite without one."""
    before, after = values[:-1], values[1:]
    rising, falling = (before < 0.0) & (after >= 0.0), (before > 0.0) & (after <= 0.0)
    passes = {"rising": rising, "falling": falling, "any": rising | falling}[direction]
    if not passes.any():
        return math.inf
    i = int(passes.argmax())
    return float(time[i] + (time[i + 1] - time[i]) * before[i] / (before[i] - after[i]))


def unit_of(section: Mapping[str, Any], unit: str) -> str:
    """The unit of the reduction of a signal in `unit`."""
    take = section.get("take", "last")
    if take == "crossing":
        return "s"
    return (units.product(unit, "s") if unit else "s") if take == "integral" else unit


def may_be_missing(outputs: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """The outputs that may be infinite: times of crossings."""
    return frozenset(name for name, section in outputs.items() if section.get("take") == "crossing")
