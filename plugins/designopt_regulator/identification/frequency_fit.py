"""A plant from a measured frequency response: a CSV of frequency, magnitude and phase, and the model that fits it best.

The misfit is the logarithm of the ratio of model and measurement, relative error of the magnitude and error of the
phase alike, so that every decade counts; the delay is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.plugin import InputFile
from designopt_regulator.identification.step_fit import PARAMETERS, Model, plant_of
from designopt_regulator.identification.table import BadData, factor, read_columns
from designopt_regulator.plants.linear import Plant

_COLUMNS = ("frequency", "magnitude", "phase")
_MIN_ROWS = 5
#: Relative error that no wrong number of turns of the phase leaves; turn (rad) up to which a search finds the delay.
_NEAR, _TURNED = 0.05, 3.0
#: Share of the misfit below which another fit is not the same within rounding errors.
_BETTER = 1.0 - 1e-6


@dataclass(frozen=True)
class ResponseData:
    """Frequencies (rad/s, rising) and the response there, output over input in their unit."""

    frequency: Floats
    response: NDArray[np.complex128]
    unit: str


@dataclass(frozen=True)
class ResponseFit:
    """A model with its parameters by name, SI units of time.

    `confidence` are half-widths of 95 % intervals, assuming independent residuals of equal variance. `residual` is the
    root mean square of the relative error, `explained_variance` one minus the share of the residual in the squared
    magnitude of the response.
    """

    model: Model
    parameters: dict[str, float]
    confidence: dict[str, float]
    residual: float
    explained_variance: float

    def plant(self) -> Plant:
        return plant_of(self.model, self.parameters)


def read_response(file: InputFile) -> ResponseData:
    """The rows of a CSV with the columns ``frequency [rad/s],magnitude [unit],phase [deg]``, in any order.

    A magnitude in dB is 20 times the logarithm to base 10 of the ratio. Lines that begin with # are remarks. Raises
    `BadData` with the line.
    """
    head, units, rows = read_columns(file, _COLUMNS, "frequency [rad/s],magnitude,phase [deg]")
    decibels, turns = units["magnitude"].lower() == "db", units["frequency"].lower().endswith("hz")
    # A frequency in Hz is a number of turns: 2 pi rad each.
    per_unit = factor(head, "frequency", units["frequency"], "Hz" if turns else "rad/s")
    per_angle = factor(head, "phase", units["phase"], "rad")
    values = np.empty((len(rows), len(_COLUMNS)))
    for k, (position, row) in enumerate(rows):
        values[k] = [row[name] for name in _COLUMNS]
        for name, value in zip(_COLUMNS[: 1 if decibels else 2], values[k].tolist(), strict=False):
            if value <= 0.0:
                raise BadData(f"{position}: column '{name}': '{value:g}' is not a number above 0")
        if k and values[k, 0] <= values[k - 1, 0]:
            raise BadData(f"{position}: column 'frequency': {values[k, 0]:g} is not above the one before")
    if len(rows) < _MIN_ROWS:
        raise BadData(f"{file.name}: has {len(rows)} rows; a fit needs {_MIN_ROWS}")
    frequency = (2.0 * np.pi if turns else 1.0) * per_unit * values[:, 0]
    magnitude = 10.0 ** (values[:, 1] / 20.0) if decibels else values[:, 1]
    return ResponseData(
        frequency, magnitude * np.exp(1j * per_angle * values[:, 2]), "" if decibels else units["magnitude"]
    )


@lru_cache(maxsize=16)
def fit_response_file(file: InputFile, model: Model) -> ResponseFit:
    """`fit_response` of the rows in `file`; the same file is fitted once."""
    return fit_response(read_response(file), model)


class _Search:
    """Searches for the numbers of a `model` by least squares: logarithms of the gain and of the lags, then the delay in
    1 / the highest frequency."""

    def __init__(self, data: ResponseData, model: Model) -> None:
        self._w, self._response = data.frequency, data.response
        self._lags = len(PARAMETERS[model]) - 2
        self._order = {"ipdt": 1.0}.get(model, 0.0)
        w = self._w
        self._size = np.log(np.abs(self._response[0]) * w[0] ** self._order)
        self._lower = np.array([self._size - 20.0, *[np.log(1e-4 / w[-1])] * self._lags, 0.0])
        self._upper = np.array([self._size + 20.0, *[np.log(1e4 / w[0])] * self._lags, 1e3])

    def best(self) -> tuple[Any, float] | None:
        """The best fit with the sign of its gain; None where no search converges."""
        w, response = self._w, self._response
        best = self._from_many(len(w))
        if best is not None and best[0].cost <= len(w) * _NEAR**2:
            return best
        # A long delay turns the phase several times: begin where it has hardly turned, and add row after row.
        late_rows = np.abs(np.unwrap(np.angle(response)) - np.angle(response[0])) > _TURNED
        begin = max(int(np.argmax(late_rows)) if late_rows.any() else len(w), self._lags + 2, _MIN_ROWS)
        partial = self._from_many(begin) if begin < len(w) else None
        for rows in range(begin + 1, len(w) + 1):
            partial = None if partial is None else (self._from_one(partial[0].x, partial[1], rows), partial[1])
        if partial is not None and partial[0].success and (best is None or partial[0].cost < _BETTER * best[0].cost):
            return partial
        return best

    def _from_many(self, rows: int) -> tuple[Any, float] | None:
        """The best fit to the first `rows` from starts over all lags and delays."""
        best, w, lags, end = None, self._w, self._lags, self._w[rows - 1]
        starts = [[np.log(c / end)] * lags for c in np.geomspace(1.0, 3.0 * end / w[0], 8)] if lags else [[]]
        for sign in (1.0, -1.0):
            for start in starts:
                for delay in (0.0, 0.3, 1.0, 3.0):
                    logs = [log - 0.5 * i for i, log in enumerate(start)]
                    first = np.array([self._size, *logs, delay * w[-1] / end])
                    fit = self._from_one(np.clip(first, self._lower, self._upper), sign, rows)
                    if fit.success and (best is None or fit.cost < best[0].cost):
                        best = fit, sign
        return best

    def _from_one(self, first: Floats, sign: float, rows: int) -> Any:
        from scipy.optimize import least_squares

        bounds = (self._lower, self._upper)
        return least_squares(self._misfit, first, bounds=bounds, x_scale="jac", args=(sign, rows))

    def _misfit(self, p: Floats, sign: float, rows: int) -> Floats:
        s = 1j * self._w[:rows]
        G = sign * np.exp(p[0]) * np.exp(-s * p[-1] / self._w[-1]) / s**self._order
        for log in p[1 : 1 + self._lags]:
            G = G / (np.exp(log) * s + 1.0)
        ratio = np.log(G / self._response[:rows])
        return np.concatenate([ratio.real, ratio.imag])


def fit_response(data: ResponseData, model: Model) -> ResponseFit:
    """The `model` whose frequency response is nearest by least squares of the logarithm of the ratio.

    Raises `BadData` for too few frequencies, and where no search converges.
    """
    names, w, response = PARAMETERS[model], data.frequency, data.response
    if 2 * len(w) <= len(names):
        raise BadData(f"{len(w)} frequencies are too few for the {len(names)} numbers of {model}")
    best = _Search(data, model).best()
    if best is None:
        raise BadData(f"no search for the numbers of {model} converges; take another model")
    numbers, half_widths = _numbers(*best, w)
    if model == "sopdt" and numbers[1] < numbers[2]:
        for values in (numbers, half_widths):
            values[1], values[2] = values[2], values[1]
    parameters = dict(zip(names, numbers, strict=True))
    left = np.abs(plant_of(model, parameters).response(w) - response) ** 2
    residual = float(np.sqrt((left / np.abs(response) ** 2).mean()))
    explained_share = 1.0 - float(left.sum() / (np.abs(response) ** 2).sum())
    return ResponseFit(model, parameters, dict(zip(names, half_widths, strict=True)), residual, explained_share)


def _numbers(fit: Any, sign: float, w: Floats) -> tuple[list[float], list[float]]:
    """The numbers of a model from a `fit` to frequencies `w` (n,), and the half-widths of their 95 % intervals."""
    from scipy.stats import t as student

    free = 2 * len(w) - len(fit.x)
    covariance = np.linalg.pinv(fit.jac.T @ fit.jac) * 2.0 * fit.cost / free
    half = float(student.ppf(0.975, free)) * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    numbers = [sign * float(np.exp(fit.x[0])), *(float(np.exp(x)) for x in fit.x[1:-1]), float(fit.x[-1] / w[-1])]
    half_widths = [abs(v) * float(h) for v, h in zip(numbers[:-1], half[:-1], strict=True)]
    return numbers, [*half_widths, float(half[-1] / w[-1])]
