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
    """Conditional value at risk: the average of the worst share ``1 - level`` of the scenarios.

    A scenario that lies partly in that share counts with its part, as in Rockafellar & Uryasev (2002), proposition 8,
    for equal probabilities; a share smaller than one scenario is the worst one.
    """
    share = max(1.0, round((1.0 - level) * values.shape[1], 9))  # in scenarios, without the noise of 1 - 0.9
    weights = np.clip(share - np.arange(values.shape[1]), 0.0, 1.0) / share
    return np.asarray((-np.sort(-values, axis=1) * weights).sum(axis=1))
