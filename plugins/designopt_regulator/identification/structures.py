"""Which structure of plant a record shows: all models fitted to it and compared.

The criterion is Akaike's with the correction for small samples (Hurvich & Tsai 1989; Burnham & Anderson 2002, section
2.4): n ln(RSS/n) + 2 k + 2 k (k + 1) / (n - k - 1) with k estimated numbers, the variance included. It assumes
independent residuals. A check without that assumption predicts the last third of the record from the first two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from designopt_recordings.signals.even_steps import irregular_steps

from designopt.plugin import InputFile
from designopt_regulator.identification.frequency_fit import ResponseFit, fit_response, read_response
from designopt_regulator.identification.step_fit import (
    PARAMETERS,
    Between,
    Model,
    StepData,
    StepFit,
    fit_file,
    fit_step,
    predict,
    read_file,
)
from designopt_regulator.identification.table import BadData

#: Difference of the criterion below which a simpler model is as good (Burnham & Anderson 2002, section 2.6).
SAME = 2.0
#: Share of a record from which the rest is predicted.
FIRST = 2.0 / 3.0


@dataclass(frozen=True)
class ComparedFit:
    """A structure fitted to a record: its `criterion` less that of the best, and the root mean square of the error in
    the last third of the record, predicted from the rest (NaN if that has no change of the input)."""

    fit: StepFit | ResponseFit
    difference: float
    prediction: float = math.nan

    @property
    def model(self) -> Model:
        """The name of the structure."""
        return self.fit.model


@lru_cache(maxsize=16)
def compare_file(
    file: InputFile, between: Between | None = None, columns: tuple[str, ...] | None = None
) -> tuple[ComparedFit, ...]:
    """All structures that converge on the record in `file`, the best first. Raises `BadData` if none does."""
    data = read_file(file, columns)
    fits: list[StepFit] = []
    for model in PARAMETERS:
        try:
            fits.append(fit_file(file, model, between, columns))
        except BadData as error:
            reason = error
    if not fits:
        raise reason
    n = len(data.time)
    criteria = [criterion(n, fit.residual, len(fit.parameters) + 2) for fit in fits]
    comparison = [
        ComparedFit(fit, value - min(criteria), _prediction(data, fit.model, between))
        for fit, value in zip(fits, criteria, strict=True)
    ]
    return tuple(sorted(comparison, key=lambda c: c.difference))


@lru_cache(maxsize=16)
def compare_response_file(file: InputFile) -> tuple[ComparedFit, ...]:
    """The same for a measured frequency response, by the relative error; real and imaginary parts count alone."""
    data = read_response(file)
    fits: list[ResponseFit] = []
    for model in PARAMETERS:
        try:
            fits.append(fit_response(data, model))
        except BadData as error:
            reason = error
    if not fits:
        raise reason
    criteria = [criterion(2 * len(data.frequency), fit.residual, len(fit.parameters) + 1) for fit in fits]
    comparison = [ComparedFit(fit, value - min(criteria)) for fit, value in zip(fits, criteria, strict=True)]
    return tuple(sorted(comparison, key=lambda c: c.difference))


def best_structure(comparison: tuple[ComparedFit, ...]) -> Model:
    """The structure with the fewest numbers among those within `SAME` of the best."""
    return min(
        (c for c in comparison if c.difference < SAME), key=lambda c: (len(c.fit.parameters), c.difference)
    ).model


def criterion(n: int, residual: float, k: int) -> float:
    """Akaike's criterion with correction of `k` numbers from `n` values with the root mean square `residual`; infinite
    for too few values."""
    if n - k - 1 <= 0:
        return math.inf
    return 2.0 * n * math.log(max(residual, 1e-300)) + 2.0 * k + 2.0 * k * (k + 1.0) / (n - k - 1.0)


def _prediction(data: StepData, model: Model, between: Between | None) -> float:
    """Root mean square of the error in the last third of the record, predicted by a fit to the rest."""
    m = int(FIRST * len(data.time))
    first = StepData(data.time[:m], data.input[:m], data.output[:m], data.units)
    if not np.ptp(first.input) or not np.ptp(first.output):
        return math.nan
    try:
        fit = fit_step(first, model, between)
    except BadData:
        return math.nan
    error = (predict(data, fit, between) - data.output)[m:]
    return float(np.sqrt((error**2).mean()))


#: Share of the output's range by which it may move before the first change of the input, and multiple of its noise.
MOVED, NOISE = 0.05, 4.0
#: Time constants after the last change that show a gain, and samples in a time constant that show its size.
SETTLED, SAMPLED = 3.0, 3.0


def record_remarks(data: StepData, fit: StepFit) -> list[str]:
    """Sentences on what a look at the record shows: an output that is not at rest at first, falls, or has not settled
    at the end; too few samples."""
    changes, unit = np.flatnonzero(np.diff(data.input)) + 1, f" {data.units[1]}".rstrip()
    sentences = [] if data.time_unit else ["the column of time has no unit and is taken in s"]
    before = data.output[: changes[0]]
    drift = abs(float(before[-1] - before[0])) if len(before) > 2 else 0.0
    if drift > MOVED * np.ptp(data.output) and drift > NOISE * float(np.std(np.diff(before))):
        sentences.append(
            f"the output moves by {drift:.3g}{unit} before the input changes: the plant was not at rest, as the fit"
            " assumes; begin the record at rest"
        )
    if fit.parameters["gain"] < 0.0:
        sentences.append("the output falls when the input rises: the controller is direct-acting")
    lag = fit.parameters.get("time_constant", 0.0)
    left = float(data.time[-1] - data.time[changes[-1]]) - fit.parameters["delay"]
    if 0.0 < left < SETTLED * lag and len(changes) <= 3:
        sentences.append(
            f"the record ends {left / lag:.2g} time constants after the last change, before the output has settled:"
            " gain and time constant are known less well than their intervals say"
        )
    step = float(np.median(np.diff(data.time)))
    if irregular := irregular_steps(data.time):
        sentences.append(
            f"{irregular} from the start: check the times; a change of the input between them has another time than the"
            " fit takes"
        )
    if 0.0 < lag < SAMPLED * step:
        sentences.append(
            f"there are {lag / step:.2g} samples in a time constant: the delay and it are hardly separable"
        )
    return sentences
