"""Aggregations: the values of a figure over scenarios become one number. Values are (designs, scenarios); larger is
worse.

The derivative of an aggregation is a weight for each scenario. At a kink (two scenarios tie), the weights are those of
one side.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Quantity, aggregation

#: Number of standard deviations added to a mean by default.
TIMES = 1.0
Times = Annotated[float, Quantity("", "number of standard deviations added", ge=0.0)]
Level = Annotated[float, Quantity("", "probability level", ge=0.0, le=1.0)]


def _nominal_weights(values: Floats) -> Floats:
    weights = np.zeros_like(values)
    weights[:, 0] = 1.0
    return weights


def _worst_weights(values: Floats) -> Floats:
    return _ordered(values, np.eye(1, values.shape[1])[0])


def _mean_weights(values: Floats) -> Floats:
    return np.full_like(values, 1.0 / values.shape[1])


def _quantile_weights(values: Floats, *, level: Level = 0.9) -> Floats:
    rank = (1.0 - level) * (values.shape[1] - 1)  # 0 is the worst scenario
    return _ordered(values, np.maximum(0.0, 1.0 - np.abs(np.arange(values.shape[1]) - rank)))


def _cvar_weights(values: Floats, *, level: Level = 0.9) -> Floats:
    return _ordered(values, _tail(values.shape[1], level))


def _mean_plus_deviation_weights(values: Floats, *, times: Times = TIMES) -> Floats:
    apart = values - values.mean(axis=1, keepdims=True)
    deviations = values.std(axis=1, keepdims=True)
    slopes = np.divide(apart, deviations, out=np.zeros_like(apart), where=deviations > 0.0)
    return np.asarray((1.0 + times * slopes) / values.shape[1])


def _ordered(values: Floats, weights: Floats) -> Floats:
    """Weights in the order of the scenarios, from `weights` (scenarios,) in descending order of value."""
    sorted_values = np.empty_like(values)
    np.put_along_axis(sorted_values, np.argsort(-values, axis=1, kind="stable"), weights[None], axis=1)
    return sorted_values


@aggregation("nominal", version=1, weights=_nominal_weights)
def nominal(values: Floats) -> Floats:
    """The value of the first scenario."""
    return values[:, 0]


@aggregation("worst", version=1, weights=_worst_weights)
def worst(values: Floats) -> Floats:
    """The value of the worst scenario."""
    return np.asarray(values.max(axis=1))


@aggregation("mean", version=1, weights=_mean_weights)
def mean(values: Floats) -> Floats:
    """The mean over scenarios."""
    return np.asarray(values.mean(axis=1))


@aggregation("quantile", version=1, weights=_quantile_weights)
def quantile(values: Floats, *, level: Level = 0.9) -> Floats:
    """The quantile `level` over scenarios (linear interpolation)."""
    return np.asarray(np.quantile(values, level, axis=1))


@aggregation("cvar", version=1, weights=_cvar_weights)
def cvar(values: Floats, *, level: Level = 0.9) -> Floats:
    """The conditional value at risk: the mean of the worst share ``1 - level`` of the scenarios.

    A scenario that lies partly in that share enters with its fraction (Rockafellar & Uryasev 2002, proposition 8, equal
    probabilities). A share smaller than one scenario gives the worst scenario.
    """
    return np.asarray((-np.sort(-values, axis=1) * _tail(values.shape[1], level)).sum(axis=1))


@aggregation("mean_plus_deviation", version=1, weights=_mean_plus_deviation_weights)
def mean_plus_deviation(values: Floats, *, times: Times = TIMES) -> Floats:
    """The mean plus `times` standard deviations over scenarios (population standard deviation, divided by n).

    For a normal distribution, a limit with ``times: 2`` is met with probability 0.977.
    """
    return np.asarray(values.mean(axis=1) + times * values.std(axis=1))


def _tail(scenarios: int, level: float) -> Floats:
    """Weights of the tail, worst scenario first."""
    share = max(1.0, round((1.0 - level) * scenarios, 9))  # number of scenarios, without the rounding error of 1 - 0.9
    return np.asarray(np.clip(share - np.arange(scenarios), 0.0, 1.0) / share)
