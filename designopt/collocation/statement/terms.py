"""Elements of a statement besides phases: samples, constraints, integrals and peaks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

import numpy as np

from designopt.collocation.statement.symbols import Symbols


def _check_limits(low: object, high: object) -> None:
    for name, limit in (("low", low), ("high", high)):
        if not isinstance(limit, Real):
            raise ValueError(f"{name} is {limit!r}: give a number, an infinite one where there is no limit")


@dataclass(frozen=True, eq=False)
class Samples:
    """Given `times` (n,) of a phase: in s, or as fractions 0..1 (`of_duration`), which free ends need.

    `data` are numbers (n,) of each sample, such as measurements, by names that functions of the samples may use in
    addition to those of the phase. The data may change from solve to solve, the times may not. Raises `ValueError` for
    inconsistent arrays.
    """

    times: Any
    data: Mapping[str, Any] = field(default_factory=dict)
    of_duration: bool = False

    def __post_init__(self) -> None:
        times = np.atleast_1d(np.asarray(self.times, float))
        if times.ndim != 1 or not len(times) or not np.isfinite(times).all():
            raise ValueError("times of samples must be a row of at least one finite number")
        data = {name: np.asarray(column, float) for name, column in self.data.items()}
        for name, values in data.items():
            if values.shape not in ((), times.shape) or not np.isfinite(values).all():
                raise ValueError(f"{name}: {len(times)} finite numbers are needed, one for each time, or a single one")
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "data", data)


@dataclass(frozen=True)
class Constraint:
    """``low <= value(symbols) <= high``; equal limits make an equality. `value` returns a scalar or a column.

    The argument of a path constraint is `Symbols`, between ends `Ends`; one of `Phase.samples` holds `at` these
    samples. `unit` is that of the value and limits. `states` are the states that its rows link, for messages.
    """

    value: Callable[[Any], Any]
    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    at: Samples | None = None
    states: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_limits(self.low, self.high)


@dataclass(frozen=True)
class Integral:
    """The integral of `value(symbols)` over a phase; with finite limits it is a constraint. `unit` is that of the
    integral.

    With `at`, it is the sum of the values at these samples.
    """

    value: Callable[[Symbols], Any]
    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    at: Samples | None = None

    def __post_init__(self) -> None:
        _check_limits(self.low, self.high)


@dataclass(frozen=True)
class Peak:
    """The `extremum` of `value(symbols)` along a `phase`: the largest, the smallest, or the largest magnitude
    (``size``).

    The maximum is over the samples `at`, by default over all collocation points. A figure that a problem may include
    (`with_peaks`, which names its `state`). `unit` is that of the value. Raises `ValueError` for another word.
    """

    value: Callable[[Symbols], Any]
    extremum: Literal["largest", "smallest", "size"] = "largest"
    unit: str = ""
    phase: str = "motion"
    at: Samples | None = None
    state: str = ""

    def __post_init__(self) -> None:
        if self.extremum not in (choices := ("largest", "smallest", "size")):
            raise ValueError(f"a peak must be of one of {', '.join(choices)}, not of {self.extremum!r}")
