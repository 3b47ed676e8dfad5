"""How a figure's values over scenarios become one number. Values come as (designs, scenarios), larger is worse."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import Quantity, aggregation

Values = NDArray[np.float64]
Level = Annotated[float, Quantity("", "share of scenarios that are better", ge=0.0, le=1.0)]


@aggregation("nominal", version=1)
def nominal(values: Values) -> Values:
    """The first scenario alone."""
    return values[:, 0]


@aggregation("worst", version=1)
def worst(values: Values) -> Values:
    """The worst scenario."""
    return np.asarray(values.max(axis=1))


@aggregation("mean", version=1)
def mean(values: Values) -> Values:
    """The average over scenarios."""
    return np.asarray(values.mean(axis=1))


@aggregation("quantile", version=1)
def quantile(values: Values, *, level: Level = 0.9) -> Values:
    """The value that a share `level` of the scenarios does not exceed (linear interpolation)."""
    return np.asarray(np.quantile(values, level, axis=1))


@aggregation("cvar", version=1)
def cvar(values: Values, *, level: Level = 0.9) -> Values:
    """Conditional value at risk: the average of the worst share ``1 - level`` of the scenarios, at least one.

    Rockafellar & Uryasev (2000), discrete case with equal weights.
    """
    count = max(1, int(np.ceil((1.0 - level) * values.shape[1] - 1e-9)))
    return np.asarray(np.sort(values, axis=1)[:, -count:].mean(axis=1))
