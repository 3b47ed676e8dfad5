"""A plant from a record in time: the user's CSV of time, input and output, and the model that fits it best.

Between its samples the input is held, or runs straight: the model's output is then a sum of responses to steps, or to
ramps, in closed form, with the delay exact. Nothing is integrated, and the delay may lie between samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.plugin import InputFile
from designopt_regulator.identification.table import BadData, factor, read_columns
from designopt_regulator.plants import linear as plants
from designopt_regulator.plants.linear import Plant

Model = Literal["fopdt", "ipdt", "sopdt"]

PARAMETERS: dict[Model, tuple[str, ...]] = {
    "fopdt": ("gain", "time_constant", "delay"),
    "ipdt": ("gain", "delay"),
    "sopdt": ("gain", "time_constant", "time_constant_2", "delay"),
}
#: How the input runs between its samples.
Between = Literal["held", "linear", "unknown"]

_COLUMNS = ("time", "input", "output")
_MIN_ROWS = 10
_ROUNDING = 1e-9  # of the steepest slope, below which a change of slope is none
_MOST_TERMS = 2_000_000  # changes of the input times samples: one step response each
_SEARCHED = 300  # maximum number of samples of the search for a start
_FEW = 3  # changes of the input that may have been made by hand, between samples


@dataclass(frozen=True)
class StepData:
    """Samples: time (s), input and output in their `units`, which are only shown; `time_unit` is that of the file, ""
    without any."""

    time: Floats
    input: Floats
    output: Floats
    units: tuple[str, str]
    time_unit: str = "s"


@dataclass(frozen=True)
class StepFit:
    """A model with its parameters by name, in SI units of time.

    `confidence` are half-widths of 95 % intervals, assuming that the residual is white noise. `residual` is its root
    mean square in the output's unit, `explained_variance` the share of the output's variance that the model explains.
    """

    model: Model
    parameters: dict[str, float]
    confidence: dict[str, float]
    offset: float  # the output at rest
    residual: float
    explained_variance: float
    output: Floats  # the model's output at the samples
    delay_between: tuple[float, float] = (0.0, 0.0)  # s shorter and longer, as the input changed between two samples

    @property
    def uncertain(self) -> float:
        """The time (s) before the sample that shows it, within which the input changed."""
        return sum(self.delay_between)

    def deviations(self, name: str) -> tuple[float, float]:
        """How far the number `name` may lie below and above its value: its 95 % interval, for the delay with the time
        between two samples, and from 0 on."""
        half = self.confidence[name]
        if name != "delay":
            return half, half
        shorter, longer = self.delay_between
        return min(half + shorter, self.parameters[name]), half + longer

    def plant(self) -> Plant:
        return plant_of(self.model, self.parameters)


def plant_of(model: Model, parameters: Mapping[str, float]) -> Plant:
    """The plant of a model with these numbers."""
    if model == "fopdt":
        return plants.fopdt(**parameters)
    return plants.ipdt(**parameters) if model == "ipdt" else plants.sopdt(**parameters)


def read_step(file: InputFile, columns: tuple[str, ...] | None = None) -> StepData:
    """The samples of a CSV whose first line is ``time [s],input [unit],output [unit]``, in any order of columns, or of
    its `columns` with these heads.

    Lines that begin with # are remarks. Raises `BadData` with line and column.
    """
    head, units, rows = read_columns(
        file, _COLUMNS, "time [s],input,output", dict(zip(_COLUMNS, columns, strict=True)) if columns else None
    )
    seconds = factor(head, "time", units["time"], "s")
    values: dict[str, list[float]] = {name: [] for name in _COLUMNS}
    for position, row in rows:
        for name in _COLUMNS:
            value = row[name]
            if name == "time" and values["time"] and value <= values["time"][-1]:
                raise BadData(f"{position}: column 'time': {value:g} does not come after {values['time'][-1]:g}")
            values[name].append(value)
    if len(rows) < _MIN_ROWS:
        raise BadData(f"{file.name}: has {len(rows)} samples; a fit needs {_MIN_ROWS}")
    t, u, y = (np.array(values[name]) for name in _COLUMNS)
    if (u == u[0]).all():
        raise BadData(f"{file.name}: column 'input' never changes; a step is needed")
    if (y == y[0]).all():
        raise BadData(f"{file.name}: column 'output' never changes")
    if (changes := int((np.diff(u) != 0.0).sum())) * len(u) > _MOST_TERMS:
        raise BadData(
            f"{file.name}: column 'input' changes {changes} times in {len(u)} samples; remove its noise, or "
            "give fewer samples"
        )
    return StepData((t - t[0]) * seconds, u, y, (units["input"], units["output"]), units["time"])


@lru_cache(maxsize=16)
def read_file(file: InputFile, columns: tuple[str, ...] | None = None) -> StepData:
    """`read_step` of `file`; the same file is read once."""
    return read_step(file, columns)


@lru_cache(maxsize=16)
def fit_file(
    file: InputFile, model: Model, between: Between | None = None, columns: tuple[str, ...] | None = None
) -> StepFit:
    """`fit_step` of the samples in `file`; the same file is fitted once."""
    return fit_step(read_file(file, columns), model, between)


def fit_step(data: StepData, model: Model, between: Between | None = None) -> StepFit:
    """The `model` whose output, from rest at the first sample's input, is nearest by least squares.

    `between` its samples the input is constant (``held``: it changes at the sample that shows it), linear, or changes
    at an ``unknown`` instant since the sample before: the delay then counts from the middle, and may be shorter and
    longer by half of the time between. None is ``held``, but the delay may be longer by that time if the input changes
    a few times only.
    Raises `BadData` for too few samples, too many input changes and a search that does not converge.
    """
    from scipy.optimize import least_squares
    from scipy.stats import t as student

    names = PARAMETERS[model]
    if len(data.time) <= len(names) + 1:
        raise BadData(f"{len(data.time)} samples are too few for the {len(names) + 1} numbers of {model}")
    # Less the first, so that digits are not lost where the output lies far from 0.
    level_at_rest, output = float(data.output[0]), data.output - data.output[0]
    respond = _ramp if between == "linear" else _step
    jumps, sizes = _changes(data, between)
    if len(jumps) * len(data.time) > _MOST_TERMS:
        raise BadData(f"the input changes {len(jumps)} times in {len(data.time)} samples; give fewer samples")
    since = data.time[:, None] - data.time[jumps]  # (samples, jumps)
    span = data.time[-1] - data.time[jumps[0]]
    if span <= 0.0:
        raise BadData("the input changes in the last sample only")

    def shape(slow: Floats, rows: slice | NDArray[np.intp] = slice(None)) -> Floats:
        """Output for gain 1 with the times `slow`, the delay last."""
        x = np.maximum(since[rows] - slow[-1], 0.0)
        return np.asarray(respond(model, x, slow[:-1]) @ sizes)

    indices = np.unique(np.linspace(0, len(data.time) - 1, min(len(data.time), _SEARCHED)).astype(np.intp))

    def linear(slow: Floats) -> tuple[Floats, float]:
        basis = np.stack([shape(slow, indices), np.ones(len(indices))], axis=1)
        coefficients, *_ = np.linalg.lstsq(basis, output[indices])
        return np.asarray(coefficients, dtype=np.float64), float(((basis @ coefficients - output[indices]) ** 2).sum())

    # Gain and offset follow from the times: the best of a grid of times is where the search begins.
    lags = np.geomspace(0.005, 3.0, 14) * span
    delays = np.concatenate([[0.0], np.geomspace(0.003, 0.8, 14)]) * span
    spreads: dict[Model, list[list[float]]] = {
        "fopdt": [[T] for T in lags],
        "ipdt": [[]],
        "sopdt": [[T, share * T] for T in lags for share in (0.1, 0.4, 0.9)],
    }
    starts = [np.array([*spread, delay]) for spread in spreads[model] for delay in delays]
    first = min(starts, key=lambda slow: linear(slow)[1])
    (gain, offset), _ = linear(first)

    level = float(np.std(output))
    lower = np.array([-np.inf, *[1e-6 * span] * (len(names) - 2), 0.0, -np.inf])
    upper = np.array([np.inf, *[1e3 * span] * (len(names) - 2), span, np.inf])
    start = np.clip(np.array([gain, *first, offset]), lower, np.where(np.isfinite(upper), upper * (1.0 - 1e-12), upper))
    fit = least_squares(
        lambda p: (p[0] * shape(p[1:-1]) + p[-1] - output) / level,
        start,
        bounds=(lower, upper),
        x_scale=np.maximum(np.abs(start), [1e-9, *[1e-3 * span] * (len(names) - 1), 1e-3 * level]),
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-14,
        max_nfev=400,
    )
    if not (fit.success and np.isfinite(fit.x).all()):
        raise BadData(
            f"the fit of {model} does not converge: {fit.message}; take another model, or a record of a whole step"
        )
    free = len(data.time) - len(fit.x)
    misfit = fit.fun * level
    with np.errstate(invalid="ignore"):
        # In columns of size 1, as numbers of different units are of different size; what has no effect is not known.
        size = np.linalg.norm(fit.jac, axis=0)
        columns = fit.jac / np.where(size > 0.0, size, 1.0)
        variance = np.diag(np.linalg.pinv(columns.T @ columns)) * float((fit.fun**2).sum()) / free
        is_determined = (size > 0.0) & (variance >= 0.0)
        width = float(student.ppf(0.975, free)) * np.sqrt(np.where(is_determined, variance, 0.0))
        half = np.where(is_determined, width / np.where(size > 0.0, size, 1.0), np.inf)
    values, wide = [float(v) for v in fit.x[:-1]], [float(v) for v in half[:-1]]
    shorter = longer = 0.0
    if between == "unknown" or (between is None and len(jumps) <= _FEW):
        longer = float((data.time[jumps] - data.time[jumps - 1]).max())
        shorter = 0.5 * longer if between == "unknown" else 0.0
        values[-1], longer = values[-1] + shorter, longer - shorter
    if model == "sopdt" and values[1] < values[2]:
        for order in (values, wide):
            order[1], order[2] = order[2], order[1]
    return StepFit(
        model,
        dict(zip(names, values, strict=True)),
        dict(zip(names, wide, strict=True)),
        float(fit.x[-1]) + level_at_rest,
        float(np.sqrt((misfit**2).mean())),
        1.0 - float((misfit**2).sum() / ((data.output - data.output.mean()) ** 2).sum()),
        np.asarray(data.output + misfit),
        (shorter, longer),
    )


def predict(data: StepData, fit: StepFit, between: Between | None) -> Floats:
    """The output (n,) of a fitted model at the samples of `data`, which may go on beyond those of the fit."""
    jumps, sizes = _changes(data, between)
    delay = fit.parameters["delay"] - fit.delay_between[0]
    x = np.maximum(data.time[:, None] - data.time[jumps] - delay, 0.0)
    lags = np.array([value for name, value in fit.parameters.items() if name.startswith("time_constant")])
    respond = _ramp if between == "linear" else _step
    return np.asarray(fit.offset + fit.parameters["gain"] * (respond(fit.model, x, lags) @ sizes))


def _changes(data: StepData, between: Between | None) -> tuple[NDArray[np.intp], Floats]:
    """The samples at which the input (or, where it is linear between samples, its slope) changes, and by how much."""
    if between != "linear":
        jumps = np.flatnonzero(np.diff(data.input)) + 1
        return jumps, np.diff(data.input)[jumps - 1]
    slopes = np.diff(data.input) / np.diff(data.time)
    turns = np.diff(slopes, prepend=0.0)
    jumps = np.flatnonzero(np.abs(turns) > _ROUNDING * np.abs(slopes).max())
    return jumps, turns[jumps]


def _step(model: Model, x: Floats, lags: Floats) -> Floats:
    """Unit step responses of gain 1 at times x >= 0 after the delay."""
    if model == "ipdt":
        return x
    if model == "fopdt":
        return np.asarray(-np.expm1(-x / lags[0]))
    first, second = max(lags), min(lags)
    gap = 1.0 / second - 1.0 / first
    # 1 - e^(-x/T1) less what the second lag holds back,
    # e^(-x/T1) (1 - e^(-gap x)) / (gap T1): no cancellation.
    slow = np.exp(-x / first)
    held_response = x / first if gap * float(x.max(initial=0.0)) < 1e-12 else -np.expm1(-gap * x) / (gap * first)
    return np.asarray(1.0 - slow * (1.0 + held_response))


def _ramp(model: Model, x: Floats, lags: Floats) -> Floats:
    """Responses of gain 1 to an input that rises by 1 in a second, at times x >= 0 after the delay."""
    if model == "ipdt":
        return 0.5 * x * x
    if model == "fopdt":
        return np.asarray(x + lags[0] * np.expm1(-x / lags[0]))
    first, second = float(max(lags)), float(min(lags))
    if first - second < 1e-4 * first:  # two equal lags to the digits that the difference would leave
        T = 0.5 * (first + second)
        return np.asarray(x - 2.0 * T + (x + 2.0 * T) * np.exp(-x / T))
    slow, fast = (T * T * np.expm1(-x / T) for T in (first, second))
    return np.asarray(x + (slow - fast) / (first - second))
