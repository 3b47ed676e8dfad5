"""Measured trajectories, single or in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from designopt.dynamics.variable import Vector
from designopt.lazy import scipy


@dataclass(frozen=True, eq=False)
class Signal:
    """A measured trajectory of a data entry: `values` (n,) at `times` (n,), interpolated by a cubic spline.

    Times are in s in the phase, or a fraction 0 to 1 of its duration (`of_duration`), which phases with free ends need.
    """

    times: NDArray[np.float64]
    values: NDArray[np.float64]
    of_duration: bool = False

    def __post_init__(self) -> None:
        times, values = np.asarray(self.times, float), np.asarray(self.values, float)
        if times.ndim != 1 or times.shape != values.shape or len(times) < 2:
            raise ValueError(
                f"a signal needs at least two times and one value for each, not {times.shape}, {values.shape}"
            )
        if not (np.isfinite(times).all() and np.isfinite(values).all() and (np.diff(times) > 0.0).all()):
            raise ValueError("times of a signal must increase, and all its numbers must be finite")

    def at(self, times: ArrayLike) -> NDArray[np.float64]:
        """Values at `times`. Raises `ValueError` outside the signal."""
        query_times = np.asarray(times, float)
        span = self.times[-1] - self.times[0]
        if query_times.min() < self.times[0] - 1e-9 * span or query_times.max() > self.times[-1] + 1e-9 * span:
            raise ValueError(
                f"the signal is defined from {self.times[0]:g} to {self.times[-1]:g},"
                f" not from {query_times.min():g} to {query_times.max():g}"
            )
        return np.asarray(self._spline(np.clip(query_times, self.times[0], self.times[-1])), float)

    def slope(self, times: ArrayLike) -> NDArray[np.float64]:
        """Time derivatives at `times`; beyond the signal, those at its ends."""
        return np.asarray(self._spline.derivative()(np.clip(times, self.times[0], self.times[-1])), float)

    @cached_property
    def pieces(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The spline as cubics: knots (m + 1,), and coefficients (m, 4) of powers 3 to 0 of the time since a knot."""
        polynomial = scipy.interpolate.PPoly.from_spline(self._spline)
        real = np.diff(polynomial.x) > 0.0
        knots = np.append(polynomial.x[:-1][real], polynomial.x[-1])
        coefficients = np.zeros((int(real.sum()), 4))
        coefficients[:, 4 - len(polynomial.c) :] = polynomial.c[:, real].T
        return np.ascontiguousarray(knots, dtype=np.float64), coefficients

    @cached_property
    def _spline(self) -> Any:
        return scipy.interpolate.make_interp_spline(self.times, self.values, k=min(3, len(self.times) - 1))


@dataclass(frozen=True, eq=False)
class SignalTable:
    """Measured trajectories of several data entries: `values` (n, k) at `times` (n,), one column for each of `names`.

    Each column is a `Signal`. Raises `ValueError` for inconsistent shapes and for numbers that are not finite, with the
    name of the column.
    """

    times: NDArray[np.float64]
    values: NDArray[np.float64]
    names: tuple[str, ...]
    of_duration: bool = False

    def __post_init__(self) -> None:
        times, values = np.asarray(self.times, float), np.asarray(self.values, float)
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "names", tuple(self.names))
        if values.ndim != 2 or values.shape != (len(times), len(self.names)):
            shape = (len(times), len(self.names))
            raise ValueError(f"the values of a table of signals have shape {values.shape}, not {shape}")
        if twice := sorted({n for n in self.names if self.names.count(n) > 1}):
            raise ValueError(f"a table of signals names {', '.join(map(repr, twice))} more than once")
        if odd := [n for n, column in zip(self.names, values.T, strict=True) if not np.isfinite(column).all()]:
            raise ValueError(f"a table of signals has a number in {', '.join(map(repr, odd))} that is not finite")

    def signals(self, names: Sequence[str] | None = None) -> dict[str, Signal]:
        """The columns as signals, in the order of `names` (default: all). Raises `KeyError` for a missing one."""
        columns = dict(zip(self.names, self.values.T, strict=True))
        if missing := [n for n in names or () if n not in columns]:
            raise KeyError(f"the table of signals has no '{missing[0]}'; it has {', '.join(self.names)}")
        return {n: Signal(self.times, columns[n], self.of_duration) for n in (names or self.names)}


def columns(entries: Mapping[str, Any], vectors: Sequence[Vector]) -> dict[str, Any]:
    """`entries` with tables replaced by their columns: of a table under the name of a vector the columns of its
    components, of one under any other name all columns. Raises `KeyError` for a missing component."""
    vector_of = {v.name: v for v in vectors}
    flat: dict[str, Any] = {}
    for name, value in entries.items():
        if not isinstance(value, SignalTable):
            flat[name] = value
        elif name in vector_of:
            flat.update({f"{name}_{part}": signal for part, signal in value.signals(vector_of[name].parts).items()})
        else:
            flat.update(value.signals())
    return flat
