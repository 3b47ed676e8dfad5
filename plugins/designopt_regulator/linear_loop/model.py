"""The model ``linear_loop``: PI(D) settings in, quality and robustness of the loop around a linear plant out.

Continuous loops are solved exactly (`continuous`); sampled ones are simulated with the discrete regulator, saturation
and anti-windup of the carrier, their linear measures are those of `frequency.sampled_loop`.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, cast

import numpy as np

from designopt.plugin import Diverged, InvalidDesign, InvalidSetting, Quantity, model
from designopt_regulator.controllers.pid import PARAMETERS, UNUSUAL, Kind, Limits, pid, unusual, unusual_ends
from designopt_regulator.frequency.margins import Margins
from designopt_regulator.frequency.sampled_loop import measures, sensitivity_peaks
from designopt_regulator.linear_loop.continuous import Loop, NotSettled, StepResponse, loop_margins, step_responses
from designopt_regulator.linear_loop.declarations import ARRAYS, LinearConditions, LinearDesign, LinearOutputs
from designopt_regulator.linear_loop.plant_setting import LinearPlant
from designopt_regulator.linear_loop.simulation import SETTLED, Steps, simulate
from designopt_regulator.plants.linear import Plant

if TYPE_CHECKING:
    from designopt.study.study import Parameter

Q = Quantity
Answer = tuple[LinearOutputs, dict[str, np.ndarray]]

_POOR_FIT = 0.9  # share of the output's variance below which a model of data is warned about
_MOST_STEPS = 1_000_000  # of a sampled run, and
_MOST_DELAY = 1000  # samples, which are states of the sampled loop: more would fill the memory
_TOO_LATE = f"the plant's delay is more than {_MOST_DELAY} samples; take a longer sample_time"
_SAMPLES = 501  # of the arrays of a continuous loop
#: Two ways to say the same of a regulator: a time, or a gain in parallel.
_TWINS = (("ti", "ki"), ("td", "kd"))


@model("linear_loop", version=2, arrays=ARRAYS)
class LinearLoop:
    """A PI(D) loop around a linear plant with exact delay: unit steps of set-point and load, robustness.

    Without `sample_time` the regulator is continuous and the integrals reach to the end of the motion; an unstable loop
    has no answer. With it the regulator is sampled and may be limited, and the run has a horizon.
    """

    batch_size: ClassVar[int] = 64
    later_settings: ClassVar[tuple[str, ...]] = ("kind", "action", "limits", "rate_limit", "rate_limits")

    plant: LinearPlant
    kind: Annotated[
        Kind | None, Q("", "kind of the regulator; if none, whatever the design gives: what it leaves out is absent")
    ] = None
    action: Annotated[
        Literal["reverse", "direct"] | None,
        Q("", "direct: the command falls when the output is too low; if none, by the sign of the plant's gain"),
    ] = None
    sample_time: Annotated[float | None, Q("s", "of a sampled regulator; continuous if none", gt=0)] = None
    limit: Annotated[
        float | None, Q("", "size at which a sampled regulator's command is clipped; none if none", gt=0)
    ] = None
    limits: Annotated[
        tuple[float, ...] | None, Q("", "lowest and highest command of a sampled regulator, instead of 'limit'")
    ] = None
    rate_limit: Annotated[
        float | None, Q("1/s", "how fast a sampled regulator's command may change; none if none", gt=0)
    ] = None
    rate_limits: Annotated[
        tuple[float, ...] | None, Q("1/s", "how fast the command may fall and rise, instead of 'rate_limit'")
    ] = None
    horizon: Annotated[float | None, Q("s", "time simulated of a sampled loop", gt=0)] = None
    load_at: Annotated[
        float | None, Q("s", "when the load of a sampled loop comes; half the horizon if none", gt=0)
    ] = None
    substeps: Annotated[int, Q("", "points of the integrals in a sample", ge=1, le=1000)] = 5

    def check(self) -> None:
        """Raise `InvalidSetting` for settings that do not fit together."""
        self.plant.plant()
        if (share := self.plant.explained) is not None and share < _POOR_FIT:
            warnings.warn(f"plant: the model explains only {share:.0%} of the measured output", stacklevel=2)
        if self.plant.type == "discrete" and self.plant.sample_time != self.sample_time:
            given = "none" if self.sample_time is None else f"{self.sample_time:g} s"
            raise InvalidSetting(
                "sample_time", f"is {given}; samples of the plant are {self.plant.sample_time:g} s apart"
            )
        if self.sample_time is None:
            for name in ("limit", "limits", "rate_limit", "rate_limits", "horizon", "load_at"):
                if getattr(self, name) is not None:
                    raise InvalidSetting(name, "is of a sampled loop: give its sample_time, or leave it out")
            return
        self._check_limits()
        if self.horizon is None:
            raise InvalidSetting("horizon", "is missing; a sampled loop needs it")
        if not self._load_at > 0.0:
            raise InvalidSetting(
                "horizon", f"{self.horizon:g} s has to be at least two samples of {self.sample_time:g} s"
            )
        if not self.horizon / self.sample_time * self.substeps <= _MOST_STEPS:
            count = self.horizon / self.sample_time * self.substeps
            raise InvalidSetting(
                "sample_time",
                f"{self.sample_time:g} s makes {count:.3g} points of the horizon; at most {_MOST_STEPS:g}",
            )
        if self._too_late(self.plant.plant()):
            raise InvalidSetting("sample_time", f"{self.sample_time:g} s: {_TOO_LATE}")
        if not self._load_at < self.horizon:
            raise InvalidSetting("load_at", f"{self._load_at:g} s has to be before the horizon at {self.horizon:g} s")
        for name, time in (("horizon", self.horizon), ("load_at", self._load_at)):
            samples = time / self.sample_time
            if abs(samples - round(samples)) > 1e-6:
                nearest = max(1, round(samples)) * self.sample_time
                raise InvalidSetting(
                    name,
                    f"{time:g} s is no whole number of samples of {self.sample_time:g} s; the nearest is {nearest:g} s",
                )

    def _check_limits(self) -> None:
        for one, other in (("limit", "limits"), ("rate_limit", "rate_limits")):
            both = getattr(self, other)
            if both is not None and getattr(self, one) is not None:
                raise InvalidSetting(other, f"give it or {one}, not both")
            if both is not None and (len(both) != 2 or not np.isfinite(both).all()):
                raise InvalidSetting(other, f"{list(both)} has to be two numbers")
        if self.limits is not None and not (
            self.limits[0] <= 0.0 <= self.limits[1] and self.limits[0] < self.limits[1]
        ):
            raise InvalidSetting(
                "limits", f"{list(self.limits)} have to be the lowest and the highest, about 0: at rest"
            )
        if self.rate_limits is not None and not min(self.rate_limits) > 0.0:
            raise InvalidSetting("rate_limits", f"{list(self.rate_limits)} have to be above 0, falling and rising")

    @property
    def command_limits(self) -> Limits:
        """Limits of the command and, in a sample, of its change; infinite where there is none."""
        low, high = self.limits or ((-self.limit, self.limit) if self.limit is not None else (-np.inf, np.inf))
        fall, climb = self.rate_limits or ((self.rate_limit,) * 2 if self.rate_limit is not None else (np.inf, np.inf))
        T = self.sample_time or 0.0
        return Limits(low, high, fall * T if T else np.inf, climb * T if T else np.inf)

    @property
    def _limited(self) -> bool:
        return any(np.isfinite(value) for value in self.command_limits)

    def check_space(self, parameters: Mapping[str, Parameter]) -> Iterator[InvalidSetting]:
        """What the kind of regulator and the plant have against the parameters of a study."""
        always = [p.name for p in parameters.values() if not p.when]
        mistakes = dict(self._mistakes(parameters, always))
        yield from (InvalidSetting(name, mistake) for name, mistake in mistakes.items())
        yield from unusual_ends(parameters)
        derivative = [p for p in parameters.values() if p.name in ("td", "kd") and p.name not in mistakes]
        acts = any(max([p.high, *map(float, p.values)]) > 0.0 for p in derivative)
        if acts and "tf" not in parameters and self._needs_filter(self.plant.plant()):
            yield InvalidSetting("tf", _NO_FILTER)

    def check_scenario(self, scenario: LinearConditions) -> Iterator[InvalidSetting]:
        """Why the model refuses a scenario: a delay of too many samples."""
        if self._too_late(self.plant_in(cast(Mapping[str, float], scenario))):
            yield InvalidSetting("delay_factor", _TOO_LATE)

    def _too_late(self, plant: Plant) -> bool:
        return self.sample_time is not None and not float(plant.delay) <= _MOST_DELAY * self.sample_time

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
        nominal = self.plant.plant()  # once: a plant of data is fitted for it
        for design, scenario in zip(designs, scenarios, strict=True):
            plant = _changed(nominal, cast(Mapping[str, float], scenario))
            try:
                if self._too_late(plant):
                    raise InvalidDesign(f"delay_factor: {_TOO_LATE}")
                settings = self.regulator_of(plant, cast(Mapping[str, float], design))
            except InvalidDesign as error:
                answers.append(error)
                continue
            answers.append(None)
            rows.append((plant, settings))
        compute = _continuous if self.sample_time is None else self._sampled
        found = iter(compute(rows, arrays) if rows else [])
        return [next(found) if answer is None else answer for answer in answers]

    def plant_in(self, scenario: Mapping[str, float]) -> Plant:
        """The plant under the conditions of a scenario: other gain, other pace, other delay."""
        return _changed(self.plant.plant(), scenario)

    def regulator_of(self, plant: Plant, design: Mapping[str, float]) -> dict[str, float]:
        """kp, ti, td, tf, b, tt of a design; what is absent has no effect, kp is below 0 for direct action.

        Raises `InvalidDesign`.
        """
        for name, mistake in self._mistakes(design, design):
            raise InvalidDesign(f"{name}: {mistake}")
        for name, value in design.items():
            if not np.isfinite(value) or value < 0.0 or (value == 0.0 and name in ("kp", "ti", "ki", "tt")):
                raise InvalidDesign(
                    f"{name}: {value:g} has to be {'above' if name not in ('td', 'kd', 'tf', 'b') else 'at least'} 0"
                )
            if unusual(value):
                raise InvalidDesign(f"{name}: {value:g} {UNUSUAL}")
        kp = design["kp"]
        ti = kp / design["ki"] if "ki" in design else design.get("ti", np.inf)
        sign = -1.0 if (self.plant.falls if self.action is None else self.action == "direct") else 1.0
        td = design["kd"] / kp if "kd" in design else design.get("td", 0.0)
        tf = design.get("tf", 0.0)
        if td > 0.0 and tf == 0.0 and self._needs_filter(plant):
            raise InvalidDesign(f"tf: {_NO_FILTER}")
        b = 0.0 if self.kind == "I_PD" else design.get("b", 1.0)
        return {"kp": sign * kp, "ti": ti, "td": td, "tf": tf, "b": b, "tt": design.get("tt", np.nan)}

    def _mistakes(self, given: Collection[str], always: Collection[str]) -> Iterator[tuple[str, str]]:
        """Parameters that do not fit the kind or each other, and why; those `always` given are in every design."""
        if "kp" not in given:
            yield "kp", "is missing; every regulator needs it"
        for one, other in _TWINS:
            if one in always and other in always:
                yield other, f"give it or {one}, not both"
        if "tt" in given and not self._limited:
            yield "tt", "is of no use without 'limit' or 'rate_limit': the command is never clipped"
        if self.kind is None:
            return
        known = PARAMETERS[self.kind]
        known = (*known, *(other for one, other in _TWINS if one in known))
        for name in given:
            if name not in known:
                yield name, f"a {self.kind} regulator has none (it has {', '.join(known)})"
        for one, other in _TWINS:
            if one in known and one not in given and other not in given:
                yield one, f"is missing; a {self.kind} regulator needs it or {other}"

    def _needs_filter(self, plant: Plant) -> bool:
        """Whether a derivative without filter would let the command jump beyond all bounds."""
        return self.sample_time is None and bool(plant.C @ plant.B != 0.0)

    def _sampled(self, rows: Sequence[tuple[Plant, dict[str, float]]], arrays: Set[str]) -> list[Answer | Exception]:
        T = cast(float, self.sample_time)
        A, B, C, delay = (np.stack([getattr(p, name) for p, _ in rows]) for name in ("A", "B", "C", "delay"))
        settings = pid(**{name: [s[name] for _, s in rows] for name in rows[0][1]}, sample_time=T)
        linear = measures(A, B, C, delay / T, settings, T)
        ks, gs = np.full(len(rows), np.inf), np.full(len(rows), np.inf)
        if len(good := np.flatnonzero(linear.stable)):
            some = replace(settings, **{name: getattr(settings, name)[good] for name in rows[0][1]})
            ks[good], gs[good] = sensitivity_peaks(A[good], B[good], C[good], delay[good] / T, some, T)
        steps = Steps(T, self.substeps, cast(float, self.horizon), self._load_at, self.command_limits)
        runs = simulate(Plant(A, B, C, delay), settings, steps, trace=bool(arrays))
        answers: list[Answer | Exception] = []
        for i in range(len(rows)):
            if runs.failed[i]:
                answers.append(Diverged("the output grew beyond all bounds", reason="bounds"))
                continue
            outputs = {name: float(values[i]) for name, values in runs.figures.items()}
            outputs |= {name: float(getattr(linear, name)[i]) for name in _SAMPLED_MEASURES}
            outputs |= {"stable": float(linear.stable[i]), "ks_peak": float(ks[i]), "gs_peak": float(gs[i])}
            if np.isinf(outputs["rise"]):
                del outputs["rise"]
            kept = {name: np.array(values[i]) for name, values in runs.trace.items() if name in arrays}
            answers.append((cast(LinearOutputs, outputs), kept))
        return answers


_NO_FILTER = "is missing; the derivative of this plant's output needs a filter"
_MARGINS = ("ms", "mt", "gm", "gm_down", "pm", "delay_margin", "crossover")
_SAMPLED_MEASURES = (*_MARGINS, "damping", "spectral_radius", "stab_degree", "noise_gain")


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


def _solved(loop: Loop, seen: Margins | NotSettled | None, arrays: Set[str]) -> Answer | Exception:
    if seen is None:
        return Diverged("the loop is unstable", reason="unstable")
    try:
        if isinstance(seen, NotSettled):
            raise seen
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
        "largest_command": setpoint.largest_command,
        "damping": loop.damping(),
        **dict(zip(("ks_peak", "gs_peak"), loop.sensitivity_peaks(), strict=True)),
        **_times(setpoint),
        "error_left": abs(setpoint.final_error),
        **{name: float(getattr(seen, name)[0]) for name in _MARGINS},
    }
    answer: Answer = (cast(LinearOutputs, outputs), _curves(setpoint, load, arrays) if arrays else {})
    return answer


def _times(setpoint: StepResponse) -> dict[str, float]:
    """Rise and settling time as far as there are any, and whether the loop settles."""
    times = {"rise": setpoint.rise, "settling": setpoint.settling(SETTLED)}
    return {
        **{name: value for name, value in times.items() if np.isfinite(value)},
        "not_settled": float(np.isinf(times["settling"])),
    }


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
