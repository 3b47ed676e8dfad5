"""The model ``linear_loop``: PI(D) settings in, quality and robustness of the loop around a linear plant out.

Continuous loops are solved exactly (`continuous`); sampled ones are simulated with the discrete regulator, saturation
and anti-windup of the carrier, their linear measures are those of `loop`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, NotRequired, TypedDict, cast

import numpy as np

from designopt.plugin import Array, Diverged, InputFile, InvalidDesign, InvalidSetting, Quantity, model
from designopt_regulator import plants
from designopt_regulator.continuous import Loop, NotSettled, StepResponse, loop_margins, step_responses
from designopt_regulator.fit import BadData, Fit, fit_file
from designopt_regulator.loop import measures
from designopt_regulator.margins import Margins
from designopt_regulator.plants import Plant
from designopt_regulator.regulator import pid
from designopt_regulator.sampled_loop import Steps, simulate

Q = Quantity

#: The numbers that each type of plant has; those without a default are needed.
_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "fopdt": ("gain", "time_constant", "delay"),
    "ipdt": ("gain", "delay"),
    "sopdt": ("gain", "time_constant", "time_constant_2", "delay"),
    "lag": ("gain", "time_constant", "order", "delay"),
    "double_integrator": ("gain", "delay"),
    "transfer_function": ("numerator", "denominator", "delay"),
    "data": ("file", "model"),
}
_DEFAULTS: Mapping[str, Any] = {"gain": 1.0, "delay": 0.0, "model": "fopdt"}
_POOR_FIT = 0.9  # share of the output's variance below which a model of data is warned about
_HIGHEST_ORDER = 10
_SAMPLES = 501  # of the arrays of a continuous loop


class LinearDesign(TypedDict, total=False):
    """Settings of the regulator; what is left out is absent."""

    kp: Annotated[float, Q("", "proportional gain; needed", gt=0)]
    ti: Annotated[float, Q("s", "integral time", gt=0)]
    ki: Annotated[float, Q("1/s", "integral gain kp/ti, instead of ti", gt=0)]
    td: Annotated[float, Q("s", "derivative time", ge=0)]
    kd: Annotated[float, Q("s", "derivative gain kp*td, instead of td", ge=0)]
    tf: Annotated[float, Q("s", "time constant of the derivative's filter; none if left out", ge=0)]
    b: Annotated[float, Q("", "set-point weight; 1 if left out", ge=0, le=1.5)]
    tt: Annotated[float, Q("s", "tracking time of the anti-windup; sqrt(ti td), without D ti, if left out", gt=0)]


class LinearConditions(TypedDict, total=False):
    """How the plant differs from the nominal one."""

    gain_factor: Annotated[float, Q("", "on the plant's gain", gt=0, sampled=(0.8, 1.25))]
    lag_factor: Annotated[float, Q("", "on all times of the plant but its delay", gt=0, sampled=(0.8, 1.25))]
    delay_factor: Annotated[float, Q("", "on the plant's delay", ge=0, sampled=(0.8, 1.25))]


class LinearOutputs(TypedDict):
    """Figures of unit steps of the set-point and of the plant's input (load).

    Where an error stays, its integrals are inf. Those of a sampled loop are of the simulated time: after the set-point
    until the load comes, after the load from then on.
    """

    iae_setpoint: NotRequired[Annotated[float, Q("s", "integral of the error's size after the set-point")]]
    iae_load: NotRequired[Annotated[float, Q("s", "integral of the error's size after the load")]]
    ise_setpoint: NotRequired[Annotated[float, Q("s", "integral of the squared error after the set-point")]]
    ise_load: NotRequired[Annotated[float, Q("s", "integral of the squared error after the load")]]
    overshoot: Annotated[float, Q("", "farthest beyond the final value after the set-point")]
    effort: Annotated[float, Q("s", "integral of the squared command, less its final value, after the set-point")]
    tv: Annotated[float, Q("", "total variation of the command after the set-point")]
    tv_load: Annotated[float, Q("", "total variation of the command after the load")]
    stable: Annotated[float, Q("", "1 for a stable linear loop")]
    ms: NotRequired[Annotated[float, Q("", "peak of the sensitivity; inf if unstable")]]
    mt: NotRequired[Annotated[float, Q("", "peak of the complementary sensitivity; inf if unstable")]]
    gm: NotRequired[Annotated[float, Q("", "gain margin, a factor; -inf if unstable")]]
    pm: NotRequired[Annotated[float, Q("rad", "phase margin; -inf if unstable")]]
    delay_margin: NotRequired[Annotated[float, Q("s", "smallest further delay that is too much; -inf if unstable")]]
    crossover: NotRequired[Annotated[float, Q("rad/s", "highest frequency at which the loop's gain is 1")]]
    spectral_radius: NotRequired[Annotated[float, Q("", "of a sampled loop; stable below 1")]]
    stab_degree: NotRequired[Annotated[float, Q("1/s", "-ln(spectral_radius) / sample time of a sampled loop")]]
    noise_gain: NotRequired[
        Annotated[float, Q("", "of a sampled loop: deviation of the command over that of white measurement noise")]
    ]


Answer = tuple[LinearOutputs, dict[str, np.ndarray]]

ARRAYS = {
    "time": Array(("time",), "s", "from the step of the set-point on; the load follows"),
    "output": Array(("time",), "", "of the plant"),
    "command": Array(("time",), "", "of the regulator"),
}


@dataclass(frozen=True, kw_only=True)
class LinearPlant:
    """The numbers of a plant of some `type`; each type has its own."""

    type: Annotated[
        Literal["fopdt", "ipdt", "sopdt", "lag", "double_integrator", "transfer_function", "data"],
        Q("", "first order, integrator, second order, equal lags, double integrator, coefficients, or a measured step"),
    ]
    gain: Annotated[float | None, Q("", "gain (of integrators: rate of the output for input 1); 1 if none")] = None
    time_constant: Annotated[float | None, Q("s", "of fopdt, sopdt, lag", gt=0)] = None
    time_constant_2: Annotated[float | None, Q("s", "second one of sopdt", gt=0)] = None
    order: Annotated[int | None, Q("", "of lag: how many equal lags", ge=1, le=_HIGHEST_ORDER)] = None
    delay: Annotated[float | None, Q("s", "exact delay; 0 if none", ge=0)] = None
    numerator: Annotated[tuple[float, ...] | None, Q("", "coefficients of falling powers of s (s in 1/s)")] = None
    denominator: Annotated[tuple[float, ...] | None, Q("", "coefficients of falling powers of s")] = None

    file: Annotated[InputFile | None, Q("", "of data: CSV with the columns time [s], input and output")] = None
    model: Annotated[Literal["fopdt", "ipdt", "sopdt"] | None, Q("", "what is fitted to data; fopdt if none")] = None

    def plant(self) -> Plant:
        """The plant; raises `InvalidSetting` for numbers that it lacks or does not have."""
        known = _NUMBERS[self.type]
        every = dict.fromkeys(name for names in _NUMBERS.values() for name in names)
        given = {name: getattr(self, name) for name in every if getattr(self, name) is not None}
        for name in given:
            if name not in known:
                raise InvalidSetting(
                    "plant", f"{name}: a plant of type {self.type} has none (it has {', '.join(known)})"
                )
        for name in known:
            if name not in given and name not in _DEFAULTS:
                raise InvalidSetting("plant", f"{name}: is missing; a plant of type {self.type} needs it")
        numbers = {**{name: value for name, value in _DEFAULTS.items() if name in known}, **given}
        if self.type == "data":
            return self.fit().plant()
        for name, value in numbers.items():
            if not np.isfinite(value).all():
                raise InvalidSetting("plant", f"{name}: {value} is not finite")
        if numbers.get("gain") == 0.0:
            raise InvalidSetting("plant", "gain: 0 leaves nothing to control")
        if self.type == "transfer_function" and len(numbers["denominator"]) > _HIGHEST_ORDER + 1:
            raise InvalidSetting("plant", f"denominator: the highest degree is {_HIGHEST_ORDER}")
        try:
            return cast(Plant, getattr(plants, self.type)(**numbers))
        except ValueError as error:
            raise InvalidSetting("plant", str(error)) from None

    def fit(self) -> Fit:
        """What was fitted to the data of a plant of type data; raises `InvalidSetting` for a file that is of no use."""
        if self.file is None:
            raise InvalidSetting("plant", f"a plant of type {self.type} has no data")
        try:
            return fit_file(self.file, self.model or "fopdt")
        except BadData as error:
            raise InvalidSetting("plant", f"file: {error}") from None


@model("linear_loop", version=1, arrays=ARRAYS)
class LinearLoop:
    """A PI(D) loop around a linear plant with exact delay: unit steps of set-point and load, robustness.

    Without `sample_time` the regulator is continuous and the integrals reach to the end of the motion; an unstable loop
    has no answer. With it the regulator is sampled and may be limited, and the run has a horizon.
    """

    batch_size: ClassVar[int] = 64

    plant: LinearPlant
    sample_time: Annotated[float | None, Q("s", "of a sampled regulator; continuous if none", gt=0)] = None
    limit: Annotated[
        float | None, Q("", "size at which a sampled regulator's command is clipped; none if none", gt=0)
    ] = None
    horizon: Annotated[float | None, Q("s", "time simulated of a sampled loop", gt=0)] = None
    load_at: Annotated[
        float | None, Q("s", "when the load of a sampled loop comes; half the horizon if none", gt=0)
    ] = None
    substeps: Annotated[int, Q("", "points of the integrals in a sample", ge=1, le=1000)] = 5

    def check(self) -> None:
        """Raise `InvalidSetting` for settings that do not fit together."""
        self.plant.plant()
        if self.plant.type == "data" and (share := self.plant.fit().explained) < _POOR_FIT:
            warnings.warn(f"plant: the model explains only {share:.0%} of the measured output", stacklevel=2)
        if self.sample_time is None:
            for name in ("limit", "horizon", "load_at"):
                if getattr(self, name) is not None:
                    raise InvalidSetting(name, "is of a sampled loop: give its sample_time, or leave it out")
            return
        if self.horizon is None:
            raise InvalidSetting("horizon", "is missing; a sampled loop needs it")
        if not self._load_at < self.horizon:
            raise InvalidSetting("load_at", f"{self._load_at:g} s has to be before the horizon at {self.horizon:g} s")
        for name, time in (("horizon", self.horizon), ("load_at", self._load_at)):
            samples = time / self.sample_time
            if abs(samples - round(samples)) > 1e-6:
                raise InvalidSetting(name, f"{time:g} s is no whole number of samples of {self.sample_time:g} s")

    @property
    def _load_at(self) -> float:
        horizon = self.horizon or 0.0
        return self.load_at or round(0.5 * horizon / (self.sample_time or 1.0)) * (self.sample_time or 1.0)

    def evaluate(self, design: LinearDesign, scenario: LinearConditions, arrays: Set[str]) -> Answer:
        """Figures of one design. Raises `InvalidDesign`, and `Diverged` for an unstable continuous loop."""
        (answer,) = self.batch([design], [scenario], arrays)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def batch(
        self, designs: Sequence[LinearDesign], scenarios: Sequence[LinearConditions], arrays: Set[str]
    ) -> list[Answer | Exception]:
        """Figures of design i in scenario i, or why there are none."""
        answers: list[Answer | Exception | None] = []
        rows: list[tuple[Plant, dict[str, float]]] = []
        nominal = self.plant.plant()
        for design, scenario in zip(designs, scenarios, strict=True):
            plant = _changed(nominal, cast(Mapping[str, float], scenario))
            try:
                settings = self._settings(plant, cast(Mapping[str, float], design))
            except InvalidDesign as error:
                answers.append(error)
                continue
            answers.append(None)
            rows.append((plant, settings))
        compute = _continuous if self.sample_time is None else self._sampled
        found = iter(compute(rows, arrays) if rows else [])
        return [next(found) if answer is None else answer for answer in answers]

    def _settings(self, plant: Plant, design: Mapping[str, float]) -> dict[str, float]:
        """kp, ti, td, tf, b, tt; what is absent has no effect."""
        for one, other in (("ti", "ki"), ("td", "kd")):
            if one in design and other in design:
                raise InvalidDesign(f"{other}: give it or {one}, not both")
        if "kp" not in design:
            raise InvalidDesign("kp: is missing; every regulator needs it")
        for name, value in design.items():
            if not np.isfinite(value) or value < 0.0 or (value == 0.0 and name in ("kp", "ti", "ki", "tt")):
                raise InvalidDesign(
                    f"{name}: {value:g} has to be {'above' if name not in ('td', 'kd', 'tf', 'b') else 'at least'} 0"
                )
        kp = design["kp"]
        ti = kp / design["ki"] if "ki" in design else design.get("ti", np.inf)
        td = design["kd"] / kp if "kd" in design else design.get("td", 0.0)
        tf = design.get("tf", 0.0)
        if td > 0.0 and tf == 0.0 and self.sample_time is None and plant.C @ plant.B != 0.0:
            raise InvalidDesign("tf: is missing; the derivative of this plant's output needs a filter")
        return {"kp": kp, "ti": ti, "td": td, "tf": tf, "b": design.get("b", 1.0), "tt": design.get("tt", np.nan)}

    def _sampled(self, rows: Sequence[tuple[Plant, dict[str, float]]], arrays: Set[str]) -> list[Answer | Exception]:
        T = cast(float, self.sample_time)
        A, B, C, delay = (np.stack([getattr(p, name) for p, _ in rows]) for name in ("A", "B", "C", "delay"))
        settings = pid(**{name: [s[name] for _, s in rows] for name in rows[0][1]}, sample_time=T)
        linear = measures(A, B, C, delay / T, settings, T)
        steps = Steps(T, self.substeps, cast(float, self.horizon), self._load_at, self.limit)
        runs = simulate(Plant(A, B, C, delay), settings, steps, trace=bool(arrays))
        answers: list[Answer | Exception] = []
        for i in range(len(rows)):
            if runs.failed[i]:
                answers.append(Diverged("the output grew beyond all bounds", reason="bounds"))
                continue
            outputs = {name: float(values[i]) for name, values in runs.figures.items()}
            outputs |= {name: float(getattr(linear, name)[i]) for name in _SAMPLED_MEASURES}
            outputs["stable"] = float(linear.stable[i])
            kept = {name: np.array(values[i]) for name, values in runs.trace.items() if name in arrays}
            answers.append((cast(LinearOutputs, outputs), kept))
        return answers


_MARGINS = ("ms", "mt", "gm", "pm", "delay_margin", "crossover")
_SAMPLED_MEASURES = (*_MARGINS, "spectral_radius", "stab_degree", "noise_gain")


def _changed(plant: Plant, scenario: Mapping[str, float]) -> Plant:
    """The plant under conditions: other gain, other pace, other delay."""
    pace = scenario.get("lag_factor", 1.0)
    return replace(
        plant,
        A=plant.A / pace,
        B=plant.B / pace,
        C=plant.C * scenario.get("gain_factor", 1.0),
        delay=plant.delay * scenario.get("delay_factor", 1.0),
    )


def _continuous(rows: Sequence[tuple[Plant, dict[str, float]]], arrays: Set[str]) -> list[Answer | Exception]:
    loops = [Loop(plant, *(settings[name] for name in ("kp", "ti", "td", "tf", "b"))) for plant, settings in rows]
    return [_solved(loop, seen, arrays) for loop, seen in zip(loops, loop_margins(loops), strict=True)]


def _solved(loop: Loop, seen: Margins | None, arrays: Set[str]) -> Answer | Exception:
    if seen is None:
        return Diverged("the loop is unstable", reason="unstable")
    try:
        setpoint, load = step_responses(loop)
    except NotSettled as error:
        return Diverged(str(error), reason="not_settled")
    outputs = {
        "iae_setpoint": setpoint.iae,
        "iae_load": load.iae,
        "ise_setpoint": setpoint.ise,
        "ise_load": load.ise,
        "overshoot": setpoint.overshoot,
        "effort": setpoint.effort,
        "tv": setpoint.tv,
        "tv_load": load.tv,
        "stable": 1.0,
        **{name: float(getattr(seen, name)[0]) for name in _MARGINS},
    }
    answer: Answer = (cast(LinearOutputs, outputs), _curves(setpoint, load, arrays) if arrays else {})
    return answer


def _curves(setpoint: StepResponse, load: StepResponse, wanted: Set[str]) -> dict[str, np.ndarray]:
    """Both steps after one another, each until it has all but settled."""
    load_at, lasts = setpoint.settled(0.005), load.settled(0.005)
    time = np.linspace(0.0, load_at + lasts, _SAMPLES)
    later = time >= load_at
    output = 1.0 - setpoint.at(time, setpoint.error)
    command = setpoint.at(time, setpoint.command)
    output[later] -= load.at(time[later] - load_at, load.error)
    command[later] += load.at(time[later] - load_at, load.command)
    made = {"time": time, "output": output, "command": command}
    return {name: made[name] for name in ARRAYS if name in wanted}
