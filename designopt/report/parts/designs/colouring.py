"""The colours of values: the ends of their scale, logarithmic for values over decades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.report.colours import log_ticks, over_decades

#: Ends of the colours of values; None without values.
ColourLimits = tuple[float, float] | tuple[None, None]

#: Distance from the middle nine tenths of the values, in their range, beyond which values have no colours of their own.
FAR = 1.0
#: Feasible designs from which colours are for their values.
FEASIBLE = 8
#: Maximum number of ticks of a logarithmic bar of colours.
TICKS = 8


@dataclass(frozen=True)
class Colouring:
    """The colours of values are those of `numbers` (the shape of the values) between the `limits`; the bar of colours
    has the `ticks`, Plotly's own where these are None. `is_log`: the numbers are logarithms to base 10."""

    numbers: Floats
    limits: ColourLimits
    ticks: dict[str, Any] = field(default_factory=lambda: {"tickvals": None, "ticktext": None})
    is_log: bool = False

    @property
    def is_clipped(self) -> bool:
        """Whether a value is beyond the limits."""
        low, high = self.limits
        return low is not None and high is not None and bool(((self.numbers < low) | (self.numbers > high)).any())


def colouring(values: Floats, feasible: NDArray[np.bool_]) -> Colouring:
    """The colours of `values`, of which those of `feasible` designs have `colour_limits`; logarithmic where the values
    are positive and their middle nine tenths range over decades, as an axis is (`designopt.report.colours`)."""
    middle = _middle(values, feasible)
    if middle is None or np.nanmin(values) <= 0.0 or not over_decades(middle):
        return Colouring(values, colour_limits(values, feasible))
    numbers = np.log10(values)
    low, high = _ends(numbers, np.log10(middle).tolist())
    ticks = log_ticks(10.0**low, 10.0**high, TICKS)
    words = {"tickvals": np.log10(ticks).tolist(), "ticktext": [f"{tick:.4g}" for tick in ticks]}
    return Colouring(numbers, (low, high), words, is_log=True)


def colour_limits(values: Floats, feasible: NDArray[np.bool_]) -> ColourLimits:
    """Ends of the colours for `values`; None without any.

    They are the range of the values, without those far beyond the middle nine tenths of the feasible designs (of
    all, if few are feasible): these have the colours of the ends.
    """
    middle = _middle(values, feasible)
    return (None, None) if middle is None else _ends(values, middle)


def _ends(values: Floats, middle: Sequence[float]) -> tuple[float, float]:
    """The ends of the colours for `values` with the ends of their `middle` nine tenths."""
    finite, (low, high) = values[np.isfinite(values)], middle
    room = FAR * (high - low) or np.inf
    return max(float(finite.min()), low - room), min(float(finite.max()), high + room)


def _middle(values: Floats, feasible: NDArray[np.bool_]) -> tuple[float, float] | None:
    """The ends of the middle nine tenths of the finite values; None without any."""
    finite = np.isfinite(values)
    if not finite.any():
        return None
    inner = finite & feasible if (finite & feasible).sum() >= FEASIBLE else finite
    low, high = np.percentile(values[inner], (5, 95))
    return float(low), float(high)
