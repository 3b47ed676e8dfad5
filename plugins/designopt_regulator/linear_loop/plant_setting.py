"""The setting `plant` of the model `linear_loop`: numbers of a known type, coefficients, or a measured step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, cast

import numpy as np

from designopt.counts import percent
from designopt.plugin import InputFile, InvalidSetting, Quantity
from designopt.study.language import units
from designopt_regulator.controllers.pid import UNUSUAL, is_unusual
from designopt_regulator.identification.frequency_fit import (
    ResponseData,
    ResponseFit,
    fit_response_file,
    read_response,
)
from designopt_regulator.identification.step_fit import StepData, StepFit, fit_file, read_file
from designopt_regulator.identification.structures import (
    SAME,
    ComparedFit,
    best_structure,
    compare_file,
    compare_response_file,
    record_remarks,
)
from designopt_regulator.identification.table import BadData
from designopt_regulator.plants import linear as plants
from designopt_regulator.plants.linear import Plant

Q = Quantity
T = TypeVar("T")

#: The numbers that each type of plant has; those without a default are needed.
NUMBERS: Mapping[str, tuple[str, ...]] = {
    "fopdt": ("gain", "time_constant", "delay"),
    "ipdt": ("gain", "delay"),
    "sopdt": ("gain", "time_constant", "time_constant_2", "delay"),
    "lag": ("gain", "time_constant", "order", "delay"),
    "double_integrator": ("gain", "delay"),
    "transfer_function": ("numerator", "denominator", "delay"),
    "state_space": ("A", "B", "C", "D", "delay"),
    "discrete": ("numerator", "denominator", "sample_time", "delay"),
    "data": ("file", "model", "between", "columns"),
    "frequency_response": ("file", "model"),
}
_DEFAULTS: Mapping[str, Any] = {"gain": 1.0, "delay": 0.0, "D": 0.0, "model": "fopdt", "between": None, "columns": None}
_HIGHEST_ORDER = 10


@dataclass(frozen=True, kw_only=True)
class LinearPlant:
    """The numbers of a plant of some `type`; each type has its own."""

    type: Annotated[
        Literal[
            "fopdt",
            "ipdt",
            "sopdt",
            "lag",
            "double_integrator",
            "transfer_function",
            "state_space",
            "discrete",
            "data",
            "frequency_response",
        ],
        Q(
            "",
            "first or second order, integrators, equal lags, coefficients, matrices, or measured data",
        ),
    ]
    gain: Annotated[float | None, Q("", "gain (of integrators: rate of the output for input 1); 1 if none")] = None
    time_constant: Annotated[float | None, Q("s", "of fopdt, sopdt, lag", gt=0)] = None
    time_constant_2: Annotated[float | None, Q("s", "second one of sopdt", gt=0)] = None
    order: Annotated[int | None, Q("", "of lag: number of equal lags", ge=1, le=_HIGHEST_ORDER)] = None
    delay: Annotated[float | None, Q("s", "exact delay; 0 if none", ge=0)] = None
    numerator: Annotated[
        tuple[float, ...] | None, Q("", "coefficients of falling powers of s (s in 1/s), of discrete: of z")
    ] = None
    denominator: Annotated[tuple[float, ...] | None, Q("", "coefficients of falling powers of s, or z")] = None
    sample_time: Annotated[float | None, Q("s", "of discrete: from sample to sample, that of the controller", gt=0)] = (
        None
    )
    A: Annotated[tuple[float, ...] | None, Q("", "of x' = A x + B u, row after row, times in s")] = None
    B: Annotated[tuple[float, ...] | None, Q("", "of x' = A x + B u")] = None
    C: Annotated[tuple[float, ...] | None, Q("", "of y = C x + D u")] = None
    D: Annotated[float | None, Q("", "of y = C x + D u: direct feedthrough; 0 if none")] = field(
        default=None, metadata={"later": True}
    )

    file: Annotated[
        InputFile | None,
        Q("", "CSV of data: time [s], input [unit], output [unit]; of a response: frequency, magnitude, phase"),
    ] = None
    model: Annotated[
        Literal["fopdt", "ipdt", "sopdt", "auto"] | None,
        Q("", "model that is fitted to data; auto: the best of all by Akaike's criterion; fopdt if none"),
    ] = None
    between: Annotated[
        Literal["held", "linear", "unknown"] | None,
        Q("", "input of data between its samples: unknown if it steps at any instant; held if none"),
    ] = None
    columns: Annotated[
        tuple[str, ...] | None, Q("", "heads of the columns of data for time, input and output, in this order")
    ] = field(default=None, metadata={"later": True})

    units: Annotated[
        tuple[str, ...] | None, Q("", "of input and output, as in [%, degC]; of data, those of its columns if none")
    ] = field(default=None, metadata={"later": True})

    @property
    def signal_units(self) -> tuple[str, str]:
        """The units of input and output; "" for one that is not stated or not known. Raises `InvalidSetting`."""
        if self.units is None:
            texts = self.data().units if self.type == "data" else ("", "")
            return (_unit_or_none(texts[0]), _unit_or_none(texts[1]))
        if len(self.units) != 2:
            raise _setting_error("units", "state two units: those of input and output")
        for text in self.units:
            try:
                units.check(text)
            except units.UnitError as error:
                raise _setting_error("units", str(error)) from None
        return self.units[0], self.units[1]

    def plant(self) -> Plant:
        """The plant; raises `InvalidSetting` for missing or unknown numbers."""
        type_numbers = NUMBERS[self.type]
        all_names = dict.fromkeys(name for names in NUMBERS.values() for name in names)
        numbers_stated = {name: getattr(self, name) for name in all_names if getattr(self, name) is not None}
        for name in numbers_stated:
            if name not in type_numbers:
                raise _setting_error(
                    name, f"a plant of type {self.type} does not have it (it has {', '.join(type_numbers)})"
                )
        for name in type_numbers:
            if name not in numbers_stated and name not in _DEFAULTS:
                raise _setting_error(name, f"is missing; a plant of type {self.type} needs it")
        numbers = {**{name: value for name, value in _DEFAULTS.items() if name in type_numbers}, **numbers_stated}
        if self.type == "data":
            return self.fit().plant()
        if self.type == "frequency_response":
            return self.response_fit().plant()
        for name, value in numbers.items():
            if not np.isfinite(value).all():
                raise _setting_error(name, f"{value} is not finite")
            if any(is_unusual(v) for v in np.ravel(value)):
                raise _setting_error(name, f"{value} {UNUSUAL}")
        if numbers.get("gain", 1.0) == 0.0:
            raise _setting_error("gain", "must not be 0: the input would not act on the output")
        if self.type in ("transfer_function", "discrete") and len(numbers["denominator"]) > _HIGHEST_ORDER + 1:
            raise _setting_error("denominator", f"the highest degree is {_HIGHEST_ORDER}")
        try:
            return cast(Plant, getattr(plants, self.type)(**numbers))
        except ValueError as error:
            raise InvalidSetting("plant", str(error)) from None

    @property
    def numbers_of_rules(self) -> Mapping[str, float] | None:
        """The numbers of a plant of type fopdt, ipdt or sopdt, stated or fitted; None for other types."""
        if self.type in ("data", "frequency_response"):
            return (self.fit() if self.type == "data" else self.response_fit()).parameters
        if self.type not in ("fopdt", "ipdt", "sopdt"):
            return None
        numbers = {name: getattr(self, name) for name in NUMBERS[self.type]}
        return {name: _DEFAULTS[name] if value is None else value for name, value in numbers.items()}

    @property
    def falls(self) -> bool:
        """Whether the gain is below 0: the output falls when the input rises."""
        if self.type == "data":
            return self.fit().parameters["gain"] < 0.0
        if self.type == "frequency_response":
            return self.response_fit().parameters["gain"] < 0.0
        return self.gain is not None and self.gain < 0.0

    def fit(self) -> StepFit:
        """The fit to the data of a plant of type data; raises `InvalidSetting` for an unusable file."""
        model = best_structure(self.structures()) if self.model == "auto" else self.model or "fopdt"
        return self._from_file(lambda file: fit_file(file, model, self.between, self._columns))

    def response_fit(self) -> ResponseFit:
        """The fit to a measured frequency response; raises as `fit` does."""
        model = best_structure(self.structures()) if self.model == "auto" else self.model or "fopdt"
        return self._from_file(lambda file: fit_response_file(file, model))

    def structures(self) -> tuple[ComparedFit, ...]:
        """All structures fitted to the data, the best first; raises as `fit` does."""
        if self.type == "data":
            return self._from_file(lambda file: compare_file(file, self.between, self._columns))
        return self._from_file(compare_response_file)

    def response_data(self) -> ResponseData:
        """The rows of a measured frequency response; raises as `fit` does."""
        return self._from_file(read_response)

    def remarks(self) -> list[str]:
        """Sentences about the model that is fitted to a record or a frequency response."""
        if self.type == "frequency_response":
            return [self._response_remark()]
        if self.type != "data":
            return []
        fit, data = self.fit(), self.data()
        gain = "/".join(unit or "1" for unit in reversed(data.units)) + (" per s" if fit.model == "ipdt" else "")
        numbers = ", ".join(
            f"{name} {value:.4g} {interval_words(fit, name)} {gain if name == 'gain' else 's'}"
            for name, value in fit.parameters.items()
        )
        sentences = [
            f"fitted plant: {fit.model} with {numbers}; explains {fit.explained_variance:.2%} of the output's variance"
        ]
        sentences += record_remarks(data, fit)
        comparison = self.structures()
        order = ", ".join(f"{c.model} {c.difference:+.4g}" if c.difference else f"{c.model} 0" for c in comparison)
        if self.model == "auto" or best_structure(comparison) != fit.model:
            sentences.append(
                f"structures by Akaike's criterion, less that of the best: {order}; "
                + ("'model: auto' took " if self.model == "auto" else "'model: auto' would take ")
                + f"{best_structure(comparison)} (the simplest within {SAME:g})"
            )
        if fit.uncertain and self.between is None:
            sentences.append(
                f"the input may have stepped up to {fit.uncertain:.3g} s before the sample that shows it, and the delay"
                " be longer by as much: its interval has one side; 'between: unknown' estimates the delay from the"
                " middle, 'between: held' states that the step is at the sample"
            )
        return sentences

    def _response_remark(self) -> str:
        fit, unit = self.response_fit(), self.response_data().unit or "1"
        gain = unit + (" per s" if fit.model == "ipdt" else "")
        numbers = ", ".join(
            f"{name} {value:.4g} ± {fit.confidence[name]:.2g} {gain if name == 'gain' else 's'}"
            for name, value in fit.parameters.items()
        )
        return f"fitted plant: {fit.model} with {numbers}; relative error {percent(fit.residual, 1)} (root mean square)"

    @property
    def explained_variance(self) -> float | None:
        """The share of the measured variance that a fitted model explains; None for a plant without a fit."""
        if self.type == "data":
            return self.fit().explained_variance
        return self.response_fit().explained_variance if self.type == "frequency_response" else None

    def data(self) -> StepData:
        """The samples of a plant of type data, in the stated units if its columns have none; raises as `fit` does."""
        data = self._from_file(lambda file: read_file(file, self._columns))
        if self.units is None:
            return data
        for head, unit in zip(data.units, self.signal_units, strict=True):
            if _unit_or_none(head) not in ("", unit):
                raise _setting_error(
                    "units", f"the record states '{head}' in a head of its columns, not '{unit}'; remove 'units'"
                )
        return dataclasses.replace(data, units=self.signal_units)

    @property
    def _columns(self) -> tuple[str, ...] | None:
        if self.columns is not None and len(self.columns) != 3:
            raise _setting_error("columns", "name three columns: those of time, input and output")
        return None if self.columns is None else tuple(self.columns)  # a list in a store

    def _from_file(self, read: Callable[[InputFile], T]) -> T:
        if self.file is None:
            raise _setting_error("file", f"is missing; a plant of type {self.type} has no data")
        try:
            return read(self.file)
        except BadData as error:
            raise _setting_error("file", str(error)) from None


def interval_words(fit: StepFit, name: str) -> str:
    """``± 0.5``, or ``(− 0.5, + 10.5)`` for an interval that is longer on one side."""
    below, above = fit.deviations(name)
    return f"\u00b1 {above:.2g}" if below == above else f"(\u2212 {below:.2g}, + {above:.2g})"


def _unit_or_none(unit: str) -> str:
    try:
        units.check(unit)
    except units.UnitError:
        return ""
    return unit


def _setting_error(name: str, message: str) -> InvalidSetting:
    return InvalidSetting(f"plant.{name}", message)
