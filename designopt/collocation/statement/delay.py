"""Delayed variables: constant delays, with a history before the start."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from designopt.arrays import Vector
from designopt.dynamics.signals import Signal


@dataclass(frozen=True, eq=False)
class Delay:
    """The value of the variable `of` (a state, control or algebraic variable of the phase) `by` seconds ago.

    `history` is its value before the start of the phase: a number, a function of the time (s), or a `Signal` over time.
    It also applies at the start itself. Raises `ValueError` for a delay that is not positive and finite and for another
    type of history.
    """

    variable: str
    by: float
    history: float | Callable[[float], float] | Signal

    def __post_init__(self) -> None:
        if not isinstance(self.by, Real) or isinstance(self.by, bool) or not 0.0 < float(self.by) < math.inf:
            raise ValueError(f"by is {self.by!r}: a delay is a positive and finite number of seconds")
        number = isinstance(self.history, Real) and math.isfinite(self.history)
        if not (number or isinstance(self.history, Signal) or callable(self.history)):
            raise ValueError(f"history is {self.history!r}: give a finite number, a function of time or a Signal")
        if isinstance(self.history, Signal) and self.history.of_duration:
            raise ValueError("history is a signal over the duration of a phase: give one over time, before the start")

    def before(self, times: Vector) -> Vector:
        """The history (n,) at `times` (n,) in s. Raises `ValueError` if it is not finite."""
        history: Any = self.history
        if not len(times):
            return np.empty(0)
        if isinstance(history, Signal):
            values = history.at(times)
        elif isinstance(history, Real):
            values = np.full(len(times), float(history))
        else:
            values = np.array([_number(history, float(t)) for t in times])
        if not np.isfinite(values).all():
            first = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(f"the history of '{self.variable}' is {values[first]} at {times[first]:g} s")
        return np.asarray(values, float)


def _number(history: Callable[[float], Any], time: float) -> float:
    try:
        returned = history(time)
    except Exception as error:
        raise ValueError(f"the history at {time:g} s ends with {type(error).__name__}: {error}") from error
    try:
        return float(returned)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the history at {time:g} s is {returned!r}, not a number") from error
