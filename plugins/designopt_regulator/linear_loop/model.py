"""The model ``linear_loop``: PI(D) settings in, quality and robustness of the loop around a linear plant out.

Continuous loops are solved exactly (`continuous`); sampled ones are simulated with the discrete controller, saturation
and anti-windup of the tracked vehicle. Their linear measures are those of `frequency.sampled_loop`, for one with
more parts than a PID those of `frequency.structured_loop`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import numpy as np

from designopt.counts import percent
from designopt.plugin import Declaration, Diverged, InvalidDesign, InvalidSetting, Quantity, model
from designopt_regulator.controllers.pid import UNUSUAL, Kind, Limits, RunningPID, is_unusual, pid, unusual_ends
from designopt_regulator.controllers.quantities import noise_remarks
from designopt_regulator.controllers.rules import settings_by_rules
from designopt_regulator.controllers.sections import SECTIONS
from designopt_regulator.controllers.structure import RunningControllers, Structure
from designopt_regulator.linear_loop.assembly import (
    CHOICES,
    Parts,
    Plants,
    analyse,
    assemble,
    check_sampled,
    contradictions,
    mistakes,
    parts_of,
    predictor,
    sampled_plants,
    unconditional,
)
from designopt_regulator.linear_loop.declarations import (
    ARRAYS,
    LinearConditions,
    LinearDesign,
    LinearOutputs,
    figure_units,
    gain_units,
)
from designopt_regulator.linear_loop.figures import (
    Answer,
    continuous_answers,
    figures_of_steps,
    pid_figures,
    structure_figures,
)
from designopt_regulator.linear_loop.plant_setting import LinearPlant
from designopt_regulator.linear_loop.simulation import Steps, simulate
from designopt_regulator.plants.linear import Plant, series

if TYPE_CHECKING:
    from designopt.study.study import DesignVariable

Q = Quantity

#: Figures that exclude loops which never reach their set-point.
_REACHED = frozenset({"residual_error", "not_settled", "settling"})
_POOR_FIT = 0.9  # share of the output's variance below which a model of data is warned about
_LARGE_ERROR = 0.3  # relative error of a fitted frequency response above which it is warned about
_MOST_STEPS = 1_000_000  # integration steps of a sampled run
_MOST_DELAY = 1000  # samples of delay: each is a state of the sampled loop, and more would fill the memory
_LONG_DELAY = f"the plant's delay is more than {_MOST_DELAY} samples; take a longer sample_time"


@model("linear_loop", version=5, arrays=ARRAYS)
class LinearLoop:
    """A PI(D) loop around a linear plant with exact delay: steps of set-point and load, robustness.

    Without `sample_time` the controller is continuous and the integrals extend to the end of the motion; unstable
    loops have no outputs. With it the controller is sampled and may be limited, and the run has a horizon.
    """

    batch_size: ClassVar[int] = 64
    later_settings: ClassVar[tuple[str, ...]] = (
        "kind", "action", "limits", "rate_limit", "rate_limits", "inner_plant", "setpoint_limits",
        "setpoint_step", "load_step",
    )  # fmt: skip

    plant: LinearPlant
    inner_plant: Annotated[
        LinearPlant | None, Q("", "plant before 'plant', whose output is measured too: for two controllers in cascade")
    ] = None
    kind: Annotated[Kind | None, Q("", "kind of controller; if none, it has the terms that the design gives")] = None
    action: Annotated[
        Literal["reverse", "direct"] | None,
        Q("", "direct: the command falls when the output is too low; if none, by the sign of the plant's gain"),
    ] = None
    sample_time: Annotated[float | None, Q("s", "of a sampled controller; continuous if none", gt=0)] = None
    limit: Annotated[
        float | None, Q("", "size at which a sampled controller's command is clipped; not clipped if none", gt=0)
    ] = None
    limits: Annotated[
        tuple[float, ...] | None, Q("", "lowest and highest command of a sampled controller, instead of 'limit'")
    ] = None
    rate_limit: Annotated[
        float | None, Q("1/s", "maximum rate of a sampled controller's command; unlimited if none", gt=0)
    ] = None
    rate_limits: Annotated[
        tuple[float, ...] | None,
        Q("1/s", "maximum rates at which the command falls and rises, instead of 'rate_limit'"),
    ] = None
    setpoint_limits: Annotated[
        tuple[float, ...] | None, Q("", "lowest and highest set-point of the inner controller of a cascade")
    ] = None
    horizon: Annotated[float | None, Q("s", "time simulated of a sampled loop", gt=0)] = None
    load_at: Annotated[
        float | None, Q("s", "when the load of a sampled loop comes; half the horizon if none", gt=0)
    ] = None
    setpoint_step: Annotated[float, Q("", "size of the step of the set-point, not 0")] = 1.0
    load_step: Annotated[float, Q("", "size of the step of the load, in the unit of the plant's input, not 0")] = 1.0
    substeps: Annotated[int, Q("", "points of the integrals in a sample", ge=1, le=1000)] = 5

    def declares(self) -> Declaration:
        """Units of the gains and signals, from those of the plant's input and output. Raises `InvalidSetting`."""
        command, output = self.plant.signal_units
        units = gain_units(command, output)
        if self.inner_plant is not None:
            command, inner_output = self.inner_plant.signal_units
            units["kp_inner"] = gain_units(command, inner_output).get("kp", "")
        units |= {"output": output, "command": command, **figure_units(command, output)}
        return Declaration(units=units, plots=("step_responses",))

    def remarks(self, conditions: LinearConditions) -> list[str]:
        """Sentences on the plant fitted to measurements, the uncertainty of its delay, and the zero of the limits."""
        sentences = [text for plant in (self.plant, self.inner_plant) if plant for text in plant.remarks()]
        command_range = self._command_range
        if self.plant.type == "data" and self.inner_plant is None and command_range is not None:
            data = self.plant.data()
            at_rest, unit = float(data.input[0]), data.units[0]
            if at_rest != 0.0:
                low, high = (f"{at_rest + end:.4g}" for end in command_range)
                output = f"{self.plant.fit().offset:.4g} {data.units[1]}"
                setpoint, load = f"{self.setpoint_step:g} {data.units[1]}", f"{self.load_step:g} {unit}"
                sentences.append(
                    f"limits, set-point and overshoot count from rest (input {at_rest:.4g} {unit}, output {output}): "
                    f"the command may lie between {low} and {high} {unit}; the "
                    f"steps simulated are {setpoint} of the set-point and {load} of the load ('setpoint_step', "
                    "'load_step')"
                )
        return sentences

    def study_remarks(self, parameters: Collection[str], judged: Collection[str]) -> list[str]:
        """Sentences if no objective and no limit penalises the noise that the derivative amplifies, or a sampled loop
        that never reaches its set-point."""
        noise = noise_remarks(parameters, judged, "ks_peak" if self.sample_time is None else "noise_gain")
        if self.sample_time is None or not _REACHED.isdisjoint(judged):
            return noise
        return [
            *noise,
            "no objective or limit requires the output to reach the set-point before the load comes: limit "
            "residual_error (max: 2 %), not_settled or settling",
        ]

    def design_remarks(self, design: Mapping[str, Any], scenarios: Sequence[Mapping[str, Any]]) -> list[str]:
        """What `design` gives in the worst of the `scenarios` if the delay of the plant, fitted to a step between two
        samples, is as long as it may be; nothing if a scenario has that delay."""
        if self.plant.type != "data" or self.inner_plant is not None or not (fit := self.plant.fit()).uncertain:
            return []
        longer, delay = fit.deviations("delay")[1], fit.parameters["delay"]
        late, factor = self, 1.0 + longer / delay if delay > 0.0 else 1.0
        if delay == 0.0:
            numbers: dict[str, Any] = {**fit.parameters, "delay": longer}
            late = replace(cast(Any, self), plant=LinearPlant(type=fit.model, **numbers))
        factors = [s.get("delay_factor", 1.0) for s in scenarios]
        if delay > 0.0 and max(factors) >= factor:
            return []
        late_scenarios = [
            {**s, "delay_factor": max(delay_factor, factor)} for s, delay_factor in zip(scenarios, factors, strict=True)
        ]
        worst, late_worst = self._worst(design, scenarios), late._worst(design, late_scenarios)
        if not worst or late_worst in ("", worst):
            return []
        enough = math.ceil(100.0 * factor) / 100.0
        scenario = f"a scenario with delay_factor: {enough:g} applies the limits to it, " if delay > 0.0 else ""
        return [
            f"the plant's delay of {delay:.3g} s may be {longer:.2g} s longer, as the record steps between two samples:"
            f" this design then has {late_worst} instead of {worst}; {scenario}a record with shorter samples narrows it"
        ]

    def _worst(self, design: Mapping[str, Any], scenarios: Sequence[Mapping[str, Any]]) -> str:
        """The largest ``ms`` and overshoot of a design in `scenarios` in words; "" where the model refuses one."""
        answers = self.batch([cast(LinearDesign, design)] * len(scenarios), cast(Any, scenarios), frozenset())
        if any(isinstance(answer, InvalidDesign) for answer in answers):
            return ""
        figures = [answer[0] for answer in answers if not isinstance(answer, Exception)]
        if len(figures) < len(answers) or not all(f["stable"] for f in figures):
            return "an unstable loop"
        ms, overshoot = max(f["ms"] for f in figures), max(f["overshoot"] for f in figures)
        return f"ms {ms:.3g} and an overshoot of {percent(overshoot, 1)}"

    def baselines(self, parameters: Collection[str]) -> Mapping[str, Mapping[str, float]]:
        """Settings by `controllers.rules`, of a PID if the design has `td`, for a plant of one or two lags, or an
        integrator, with delay. A sampled loop counts half a sample as delay, a direct-acting one the size of the
        gain."""
        if self.inner_plant is not None or (numbers := self.plant.numbers_of_rules) is None:
            return {}
        half_sample = 0.5 * (self.sample_time or 0.0)
        numbers = {**numbers, "gain": abs(numbers["gain"]), "delay": numbers.get("delay", 0.0) + half_sample}
        return settings_by_rules(numbers, pid="td" in parameters)

    @property
    def _command_range(self) -> tuple[float, float] | None:
        """The lowest and the highest command, from rest; None without a limit."""
        if self.limits is not None and len(self.limits) == 2:
            return self.limits[0], self.limits[1]
        return None if self.limit is None else (-self.limit, self.limit)

    def check(self) -> None:
        """Raise `InvalidSetting` for settings that do not fit together."""
        for name in ("setpoint_step", "load_step"):
            if not np.isfinite(getattr(self, name)) or getattr(self, name) == 0.0:
                raise InvalidSetting(name, f"is {getattr(self, name):g}; it must be a finite number other than 0")
        self.plant.plant()
        if self.inner_plant is not None:
            try:
                self.inner_plant.plant()
            except InvalidSetting as error:
                raise InvalidSetting("inner_" + error.name, error.message) from None
        if self.plant.type == "frequency_response":
            if (deviation := self.plant.response_fit().residual) > _LARGE_ERROR:
                text = f"differs by {percent(deviation)} (root mean square) from the measured frequency response"
                warnings.warn(f"plant: the model {text}", stacklevel=2)
        elif (share := self.plant.explained_variance) is not None and share < _POOR_FIT:
            warnings.warn(f"plant: the model explains only {share:.0%} of the measured output", stacklevel=2)
        if self.plant.type == "discrete" and self.plant.sample_time != self.sample_time:
            period = "none" if self.sample_time is None else f"{self.sample_time:g} s"
            raise InvalidSetting(
                "sample_time", f"is {period}; samples of the plant are {self.plant.sample_time:g} s apart"
            )
        if self.sample_time is None:
            for name in ("limit", "limits", "rate_limit", "rate_limits", "setpoint_limits", "horizon", "load_at"):
                if getattr(self, name) is not None:
                    raise InvalidSetting(name, "belongs to a sampled loop: give its sample_time, or leave it out")
            plant_as_set = self.plant_in({})
            if plant_as_set.D != 0.0 and plant_as_set.delay > 0.0:
                raise InvalidSetting(
                    "plant", "has direct feedthrough after a delay: a controller for it needs a sample_time"
                )
            return
        self._check_limits()
        if self.horizon is None:
            raise InvalidSetting("horizon", "is missing; a sampled loop needs it")
        if not self._load_at > 0.0:
            raise InvalidSetting(
                "horizon", f"{self.horizon:g} s must be at least two samples of {self.sample_time:g} s"
            )
        if not self.horizon / self.sample_time * self.substeps <= _MOST_STEPS:
            count = self.horizon / self.sample_time * self.substeps
            raise InvalidSetting(
                "sample_time",
                f"{self.sample_time:g} s makes {count:.3g} points of the horizon; at most {_MOST_STEPS:g}",
            )
        if self._has_long_delay(self.plant_in({})):
            raise InvalidSetting("sample_time", f"{self.sample_time:g} s: {_LONG_DELAY}")
        if not self._load_at < self.horizon:
            raise InvalidSetting("load_at", f"{self._load_at:g} s must be before the horizon at {self.horizon:g} s")
        for name, time in (("horizon", self.horizon), ("load_at", self._load_at)):
            samples = time / self.sample_time
            if abs(samples - round(samples)) > 1e-6:
                nearest = max(1, round(samples)) * self.sample_time
                raise InvalidSetting(
                    name,
                    f"{time:g} s is not a whole number of samples of {self.sample_time:g} s; the nearest is "
                    f"{nearest:g} s",
                )

    def _check_limits(self) -> None:
        if self.setpoint_limits is not None and self.inner_plant is None:
            raise InvalidSetting(
                "setpoint_limits", "belong to a cascade: give the model an inner_plant, or leave them out"
            )
        for limit, pair_name in (("limit", "limits"), ("rate_limit", "rate_limits"), ("", "setpoint_limits")):
            bounds = getattr(self, pair_name)
            if bounds is not None and limit and getattr(self, limit) is not None:
                raise InvalidSetting(pair_name, f"give it or {limit}, not both")
            if bounds is not None and (len(bounds) != 2 or not np.isfinite(bounds).all()):
                raise InvalidSetting(pair_name, f"{list(bounds)} must be two numbers")
        for name in ("limits", "setpoint_limits"):
            pair = getattr(self, name)
            if pair is not None and not (pair[0] <= 0.0 <= pair[1] and pair[0] < pair[1]):
                raise InvalidSetting(
                    name, f"{list(pair)} must be the lowest and the highest, with 0 (at rest) between them"
                )
        if self.rate_limits is not None and not min(self.rate_limits) > 0.0:
            raise InvalidSetting("rate_limits", f"{list(self.rate_limits)} must be above 0, falling and rising")

    @property
    def command_limits(self) -> Limits:
        """Limits of the command and of its change in a sample; infinite by default."""
        low, high = self.limits or ((-self.limit, self.limit) if self.limit is not None else (-np.inf, np.inf))
        fall, climb = self.rate_limits or ((self.rate_limit,) * 2 if self.rate_limit is not None else (np.inf, np.inf))
        T = self.sample_time or 0.0
        return Limits(low, high, fall * T if T else np.inf, climb * T if T else np.inf)

    @property
    def inner_setpoint_limits(self) -> Limits:
        """Limits of the set-point of the inner controller of a cascade."""
        return Limits(*(self.setpoint_limits or ()))

    @property
    def _limited(self) -> bool:
        return any(np.isfinite(value) for value in (*self.command_limits, *self.inner_setpoint_limits))

    def check_space(self, parameters: Mapping[str, DesignVariable]) -> Iterator[InvalidSetting]:
        """Objections of the kind of controller and the plant to the parameters of a study."""
        always = [p.name for p in parameters.values() if not p.when]
        choices = {name: [str(v) for v in parameters[name].values] for name in CHOICES if name in parameters}
        mistake_of = dict([*self._mistakes(parameters, always), *unconditional(always, choices)])
        yield from (InvalidSetting(name, mistake) for name, mistake in mistake_of.items())
        yield from unusual_ends([p for p in parameters.values() if p.name not in CHOICES])
        if (structure := parameters.get("structure")) is not None:
            for name in structure.values:
                if (mistake := self._structure_refusal(str(name))) is not None:
                    yield InvalidSetting("structure", mistake)
        derivative = [p for p in parameters.values() if p.name in ("td", "kd") and p.name not in mistake_of]
        acts = any(max([p.high, *map(float, p.values)]) > 0.0 for p in derivative)
        if acts and "tf" not in parameters and self._needs_filter(self.plant_in({})):
            yield InvalidSetting("tf", _NO_FILTER)
        for name in (names[0] for names in SECTIONS.values()):
            p = parameters.get(name)
            highest = 0.0 if p is None else max([p.high, *map(float, p.values)])
            if self.sample_time is not None and highest * self.sample_time >= np.pi:
                yield InvalidSetting(
                    name,
                    f"reaches {highest:g} rad/s; it must be below half the sampling rate, "
                    f"{np.pi / self.sample_time:.6g} rad/s",
                )

    def _structure_refusal(self, structure: str) -> str | None:
        """Why a `structure` is impossible around this plant; None if it is possible."""
        if structure != "single" and self.sample_time is None:
            return f"{structure}: needs a sampled controller; give the model a sample_time"
        if structure == "cascade" and self.inner_plant is None:
            return "cascade: needs an inner output; give the model its inner_plant"
        if structure == "smith":
            try:
                predictor(self.plant_in({}), cast(float, self.sample_time))
            except InvalidDesign as error:
                return str(error).removeprefix("structure: ")
        return None

    def check_scenario(self, scenario: LinearConditions) -> Iterator[InvalidSetting]:
        """Why the model refuses a scenario: a delay of too many samples."""
        if self._has_long_delay(self.plant_in(cast(Mapping[str, float], scenario))):
            yield InvalidSetting("delay_factor", _LONG_DELAY)

    def _has_long_delay(self, plant: Plant) -> bool:
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
        """Outputs of design i in scenario i, or the reason for their absence."""
        answers: list[Answer | Exception | None] = []
        rows: list[tuple[Plants, Parts]] = []
        plants_of: dict[str, Plants] = {}  # cached: a plant of data is fitted
        for design, scenario in zip(designs, scenarios, strict=True):
            at = repr(sorted(cast(Mapping[str, float], scenario).items()))
            if at not in plants_of:
                plants_of[at] = self.plants_in(cast(Mapping[str, float], scenario))
            plants = plants_of[at]
            try:
                if self._has_long_delay(plants.plant):
                    raise InvalidDesign(f"delay_factor: {_LONG_DELAY}")
                parts = self.parts_of(plants.plant, cast(Mapping[str, Any], design))
            except InvalidDesign as error:
                answers.append(error)
                continue
            answers.append(None)
            rows.append((plants, parts))
        if self.sample_time is None:
            remaining_answers = iter(continuous_answers(rows, arrays, self.setpoint_step, self.load_step))
        else:
            remaining_answers = iter(self._evaluate_sampled(rows, arrays))
        return [next(remaining_answers) if answer is None else answer for answer in answers]

    def plants_in(self, scenario: Mapping[str, float]) -> Plants:
        """The plants under the conditions of a scenario: other gain, other pace, other delay."""
        if self.inner_plant is None:
            return Plants(_under_conditions(self.plant.plant(), scenario))
        inner = _under_conditions(self.inner_plant.plant(), scenario)  # the gain is changed once
        return Plants(series(inner, _under_conditions(self.plant.plant(), {**scenario, "gain_factor": 1.0})), inner)

    def plant_in(self, scenario: Mapping[str, float]) -> Plant:
        """The whole plant, from the command to the output, under the conditions of a scenario."""
        return self.plants_in(scenario).plant

    def parts_of(self, plant: Plant, design: Mapping[str, Any]) -> Parts:
        """The controllers of a design. Raises `InvalidDesign`."""
        for name, mistake in (*self._mistakes(design, design), *contradictions(design)):
            raise InvalidDesign(f"{name}: {mistake}")
        for name, value in design.items():
            if name in CHOICES:
                continue
            if not np.isfinite(value) or value < 0.0 or (value == 0.0 and name not in _MAY_BE_0):
                raise InvalidDesign(f"{name}: {value:g} must be {'at least' if name in _MAY_BE_0 else 'above'} 0")
            if is_unusual(value):
                raise InvalidDesign(f"{name}: {value:g} {UNUSUAL}")
        falls = self.plant.falls if self.action is None else self.action == "direct"
        inner_falls = self.inner_plant is not None and self.inner_plant.falls
        parts = parts_of(design, falls, inner_falls, self.kind)
        if parts.inner is None and self.action is None:
            parts = replace(
                parts, outer={**parts.outer, "kp": -parts.outer["kp"] if inner_falls else parts.outer["kp"]}
            )
        if (reason := self._structure_refusal(parts.name)) is not None:
            raise InvalidDesign(f"structure: {reason}")
        if self.sample_time is not None:
            check_sampled(parts, self.sample_time)
        elif parts.outer["td"] > 0.0 and parts.outer["tf"] == 0.0 and self._needs_filter(plant):
            raise InvalidDesign(f"tf: {_NO_FILTER}")
        return parts

    def controllers_of(self, design: Mapping[str, Any]) -> Structure:
        """The sampled controllers of a design, their numbers arrays (1,); raises `InvalidDesign`."""
        nominal, T = self.plant_in({}), cast(float, self.sample_time)
        parts = self.parts_of(nominal, design)
        model = predictor(nominal, T) if parts.name == "smith" else None
        return assemble([parts], T, self.command_limits, self.inner_setpoint_limits, model)

    def _mistakes(self, names: Collection[str], always: Collection[str]) -> Iterator[tuple[str, str]]:
        return mistakes(names, always, self.kind, self._limited, self.inner_plant is not None)

    def _needs_filter(self, plant: Plant) -> bool:
        """Whether an unfiltered derivative makes the command unbounded."""
        return self.sample_time is None and bool(plant.C @ plant.B != 0.0 or plant.D != 0.0)

    def _evaluate_sampled(self, rows: Sequence[tuple[Plants, Parts]], arrays: Set[str]) -> list[Answer | Exception]:
        answers: list[Answer | Exception] = [Diverged("")] * len(rows)
        kinds = [(parts.pattern, plants.plant.D != 0.0) for plants, parts in rows]
        for kind in dict.fromkeys(kinds):
            each = [i for i, other_kind in enumerate(kinds) if other_kind == kind]
            for i, answer in zip(each, self._same_parts([rows[i] for i in each], arrays), strict=True):
                answers[i] = answer
        return answers

    def _same_parts(self, rows: Sequence[tuple[Plants, Parts]], arrays: Set[str]) -> list[Answer | Exception]:
        """Figures of sampled loops with controllers of the same parts."""
        T = cast(float, self.sample_time)
        plant, name = _stack([plants.plant for plants, _ in rows]), rows[0][1].name
        step = self.setpoint_step  # signals are simulated as multiples of it
        steps = Steps(T, self.substeps, cast(float, self.horizon), self._load_at, self.load_step / step)
        limits, inner_limits = self.command_limits.per(step), self.inner_setpoint_limits.per(step)
        inner_plant = None
        if rows[0][1].is_pid and not plant.D.any():
            settings = pid(**{key: [parts.outer[key] for _, parts in rows] for key in rows[0][1].outer}, sample_time=T)
            linear = pid_figures(plant, settings, T)
            controller: RunningPID | RunningControllers = RunningPID(
                settings, np.zeros(len(rows)), np.zeros(len(rows)), limits=limits
            )
        else:
            nominal = self.plant_in({})
            model = predictor(nominal, T) if name == "smith" else None
            sampled_of = {
                id(plants): sampled_plants(plants, nominal, T, name) for plants in {id(p): p for p, _ in rows}.values()
            }
            linear = [
                structure_figures(analyse(sampled_of[id(plants)], parts, model, T), name) for plants, parts in rows
            ]
            structure = assemble([p for _, p in rows], T, limits, inner_limits, model)
            controller = RunningControllers(structure, len(rows))
            if name == "cascade":
                inner_plant = _stack([plants.inner for plants, _ in rows if plants.inner is not None])
        runs = simulate(plant, controller, steps, inner=inner_plant, trace=bool(arrays))
        answers: list[Answer | Exception] = []
        for i in range(len(rows)):
            if runs.failed[i]:
                answers.append(Diverged("the output diverged", reason="bounds"))
                continue
            outputs = {key: float(values[i]) for key, values in runs.figures.items()}
            outputs = figures_of_steps(outputs, step, step) | linear[i]
            if np.isinf(outputs["rise"]):
                del outputs["rise"]
            traces = {
                key: values[i] * (1.0 if key == "time" else step) for key, values in runs.trace.items() if key in arrays
            }
            answers.append((cast(LinearOutputs, outputs), traces))
        return answers


def _stack(plants: Sequence[Plant]) -> Plant:
    return Plant(*(np.stack([getattr(plant, f.name) for plant in plants]) for f in fields(Plant)))


_MAY_BE_0 = ("td", "kd", "tf", "b", "td_inner", "tf_inner", "b_inner", "notch_depth")
_NO_FILTER = "is missing; the derivative of this plant's output needs a filter"


def _under_conditions(plant: Plant, scenario: Mapping[str, float]) -> Plant:
    """The plant under conditions: other gain, other pace, other delay."""
    pace = scenario.get("lag_factor", 1.0)
    return replace(
        plant,
        A=plant.A / pace,
        B=plant.B / pace,
        C=plant.C * scenario.get("gain_factor", 1.0),
        D=plant.D * scenario.get("gain_factor", 1.0),
        delay=plant.delay * scenario.get("delay_factor", 1.0),
    )
