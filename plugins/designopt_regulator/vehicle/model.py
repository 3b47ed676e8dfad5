"""The model ``tracked_carrier_10t``: performance and robustness of its loops for settings of its controllers."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Declaration, Diverged, InvalidDesign, InvalidSetting, Quantity, model
from designopt_regulator.controllers.pid import (
    PARAMETERS,
    PID,
    UNUSUAL,
    Kind,
    absent_parameters,
    is_unusual,
    pid,
    unusual_ends,
)
from designopt_regulator.controllers.quantities import noise_remarks
from designopt_regulator.frequency.sampled_loop import LoopMeasures, measures
from designopt_regulator.vehicle import soil
from designopt_regulator.vehicle.cascade import cascade_measures
from designopt_regulator.vehicle.declarations import ARRAYS, Disturbance, FixedController
from designopt_regulator.vehicle.equations import GRAVITY, Vehicle, VehicleNumbers, course_loop, plant, speed_loop
from designopt_regulator.vehicle.quality import SETTLED
from designopt_regulator.vehicle.refinements import (
    RefinedConditions,
    RefinedDesign,
    RefinedOutputs,
    check_steps,
    feed_forward,
    noise,
    noise_command,
    noises,
    rate_loop,
)
from designopt_regulator.vehicle.scene import check_speeds, numbers_in, on_tracks
from designopt_regulator.vehicle.simulation import (
    Loop,
    Manoeuvre,
    RateLoop,
    Schedule,
    SimulatedRuns,
    simulate,
    whole_number,
)
from designopt_regulator.vehicle.soil import SoftGround

Q = Quantity
Answer = tuple[RefinedOutputs, dict[str, Floats]]

#: Controllers of the loop that is not tuned, from the heading and the speed study.
FIXED_SPEED_CONTROLLER = FixedController(kp=0.55, ti=4.0, td=0.0, tf=0.1, b=0.6, tt=2.0)
FIXED_COURSE_CONTROLLER = FixedController(kp=1.5, ti=8.0, td=0.6, tf=0.1, b=1.0, tt=3.0)

_DEFAULT_TURN = float(np.radians(20.0))
_DEFAULT_SPEED_STEP = 2.0
_RATE_LOOP = ("rate_gain", "max_rate")
_LOOPS: tuple[Loop, ...] = ("course", "speed")
_NAMES = ("kp", "ti", "td", "tf", "b", "tt")
_NO_EFFECT = {"ti": np.inf, "td": 0.0, "tf": 0.1, "b": 1.0, "tt": np.nan}
_SMALLEST = float(np.nextafter(0.0, 1.0))
_MOST_STEPS = 1_000_000  # integration steps of a run
_MOST_DELAY = 1000  # samples of delay: each is a state of the linear loop, and more would fill the memory
_QUALITY = ("iae", "ise", "itae", "iae_step", "iae_load", "overshoot", "settling", "not_settled", "residual_error",
            "load_peak", "tv",            "effort", "sat_fraction")  # fmt: skip
_MEASURES = ("spectral_radius", "stab_degree", "ms", "mt", "gm", "gm_down", "pm", "delay_margin",
             "crossover", "noise_gain")  # fmt: skip
_SPEED_QUALITY = ("iae", "itae", "overshoot", "settling", "residual_error", "load_peak", "tv", "effort", "sat_fraction")
_SPEED_MEASURES = ("ms", "mt", "stab_degree", "noise_gain")


@dataclass(frozen=True)
class _Scene:
    """A scenario as numbers; `plant` has the names of `equations.plant`."""

    plant: Mapping[str, float]
    speed: float
    target_speed: float
    grade: float
    delay_steps: int
    noise: Floats | None


_Settings = dict[Loop, dict[str, float]]


@model("tracked_carrier_10t", version=3, arrays=ARRAYS)
class TrackedVehicle:
    """Heavy tracked vehicle on a class of terrain; sampled PID controllers control its speed and heading.

    From trim, a step of the reference, then a disturbing moment and a slope. The loop measures are those of the sampled
    linear loop at the scenario's speed (of the speed loop: at the speed after the step). Mass, dimensions and terrains
    are from published terramechanics; lag, delay, rotating masses, maximum force and power are assumptions.
    """

    batch_size: ClassVar[int] = 400
    later_settings: ClassVar[tuple[str, ...]] = ("settling_band",)

    loop: Annotated[Literal["course", "speed", "both"], Q("", "controller that the design sets")] = "course"
    course_kind: Annotated[Kind | None, Q("", "kind of the tuned heading controller; PID if none")] = None
    speed_kind: Annotated[Kind | None, Q("", "kind of the tuned speed controller; PI if none")] = None
    course_regulator: Annotated[
        FixedController | None,
        Q("", "where the speed is tuned; kp 1.5, ti 8 s, td 0.6 s, tf 0.1 s, b 1, tt 3 s if none"),
    ] = None
    speed_regulator: Annotated[
        FixedController | None, Q("", "where the heading is tuned; kp 0.55, ti 4 s, td 0, b 0.6, tt 2 s if none")
    ] = None
    horizon: Annotated[float, Q("s", "time simulated", gt=0)] = 30.0
    step: Annotated[float | None, Q("rad", "of the heading's reference; 20 deg if none")] = None
    speed_step: Annotated[float | None, Q("m/s", "of the speed's reference; 2 m/s if none")] = None
    step_at: Annotated[float, Q("s", "when the references step", ge=0)] = 1.0
    disturbance: Disturbance = field(default_factory=Disturbance)
    sample_time: Annotated[float, Q("s", "of the controllers", gt=0)] = 0.05
    substeps: Annotated[int, Q("", "integration steps in a sample; 5: 1e-5 of the iae, 20: 1e-6", ge=1, le=1000)] = 5
    settling_band: Annotated[float, Q("", "share of the step within which a loop is settled", gt=0, lt=1)] = SETTLED
    gain_schedule: Annotated[
        Schedule | None, Q("", "gain of the heading controller that falls with speed; constant if none")
    ] = None
    vehicle: Vehicle = field(default_factory=Vehicle)
    soft_ground: Annotated[SoftGround | None, Q("", "soil under the terrain; firm ground if none")] = None

    def declares(self) -> Declaration:
        """Units of the gains: commands are shares of the drive, the heading is in rad, the speed in m/s."""
        return Declaration(units={"kp": "s/m" if self.loop == "speed" else "1/rad"})

    def check(self) -> None:
        """Raise `InvalidSetting` for contradictory settings."""
        for name, loop, value in (
            ("course_kind", "course", self.course_kind), ("step", "course", self.step),
            ("speed_kind", "speed", self.speed_kind), ("speed_step", "speed", self.speed_step),
        ):  # fmt: skip
            if value is not None and loop not in self.tuned_loops:
                raise InvalidSetting(name, f"has no effect with loop: {self.loop}; leave it out")
        for name, loop, fixed in (
            ("course_regulator", "course", self.course_regulator), ("speed_regulator", "speed", self.speed_regulator)
        ):  # fmt: skip
            if fixed is not None and loop in self.tuned_loops:
                raise InvalidSetting(name, f"the design gives this controller with loop: {self.loop}; leave it out")
        for name, step in (("step", self.step), ("speed_step", self.speed_step)):
            if step == 0.0:
                raise InvalidSetting(name, "must not be 0: the controller would have nothing to do")
        if self.step is not None and not abs(self.step) < np.pi:
            raise InvalidSetting("step", f"{np.degrees(self.step):g} deg must be less than 180 deg to either side")
        at, T = self.disturbance.at, self.sample_time
        if not self.horizon / T * self.substeps <= _MOST_STEPS:
            count = self.horizon / T * self.substeps
            raise InvalidSetting(
                "sample_time", f"{T:g} s makes {count:.3g} integration steps of the horizon; at most {_MOST_STEPS:g}"
            )
        if not self.step_at < at:
            raise InvalidSetting("disturbance", f"at: {at:g} s must be after the step at {self.step_at:g} s")
        if not at < self.horizon:
            raise InvalidSetting("horizon", f"{self.horizon:g} s must be after the disturbance at {at:g} s")
        for name, time in (("horizon", self.horizon), ("step_at", self.step_at), ("disturbance", at)):
            if whole_number(time, T) is None:
                nearest = max(1, round(time / T)) * T
                raise InvalidSetting(
                    name, f"{time:g} s is not a whole number of samples of {T:g} s; the nearest is {nearest:g} s"
                )
        try:
            self._delay_steps(self.vehicle.delay)
        except InvalidDesign as error:
            raise InvalidSetting("vehicle", str(error)) from None
        if self.soft_ground is not None:
            name, clearance = self.soft_ground.soil, self.soft_ground.clearance
            depth = soil.sinkage(soil.SOILS[name], *on_tracks(self.vehicle, self.vehicle.mass))
            if depth > clearance:
                message = f"the tracks sink {depth:.3g} m into {name}, deeper than the clearance of {clearance:g} m"
                warnings.warn(f"soft_ground: {message}", stacklevel=2)

    def study_remarks(self, parameters: Collection[str], judged: Collection[str]) -> list[str]:
        """A sentence if no objective and no limit penalises the noise that derivatives amplify."""
        return noise_remarks(parameters, judged, "noise_gain")

    def check_space(self, parameters: Collection[str]) -> Iterator[InvalidSetting]:
        """Objections of the tuned controllers to the names of a study's parameters, independent of their values."""
        try:
            self.settings_of(dict.fromkeys(parameters, 1.0))
        except InvalidDesign as error:
            yield _mistake(error)
        if isinstance(parameters, Mapping):
            yield from unusual_ends(parameters.values())

    def check_scenario(self, scenario: RefinedConditions) -> Iterator[InvalidSetting]:
        """Why the model rejects a scenario: a speed that the vehicle cannot hold, a delay between steps."""
        if isinstance(scene := self.scene_in(scenario), InvalidDesign):
            yield _mistake(scene)

    def evaluate(self, design: RefinedDesign, scenario: RefinedConditions, arrays: Set[str]) -> Answer:
        """Outputs of one design in one scenario. Raises `InvalidDesign`, `Diverged`."""
        (answer,) = self.batch([design], [scenario], arrays)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def batch(
        self, designs: Sequence[RefinedDesign], scenarios: Sequence[RefinedConditions], arrays: Set[str]
    ) -> list[Answer | Exception]:
        """Outputs of design i in scenario i, or the reason for their absence."""
        answers: list[Answer | Exception | None] = []
        scenes: dict[int, _Scene | InvalidDesign] = {}
        rows: list[tuple[_Scene, _Settings]] = []
        for design, scenario in zip(designs, scenarios, strict=True):
            if id(scenario) not in scenes:  # many designs share few scenarios
                scenes[id(scenario)] = self.scene_in(cast(Mapping[str, Any], scenario))
            scene = scenes[id(scenario)]
            try:
                settings = self.settings_of(cast(Mapping[str, float], design))
            except InvalidDesign as error:
                answers.append(error)
                continue
            if isinstance(scene, InvalidDesign):
                answers.append(scene)
            else:
                answers.append(None)
                rows.append((scene, settings))
        remaining_answers = iter(self._answers(rows, arrays) if rows else [])
        return [next(remaining_answers) if answer is None else answer for answer in answers]

    # ------------------------------------------------------------------------------------------------- one row

    @property
    def tuned_loops(self) -> tuple[Loop, ...]:
        """The loops whose controllers the design sets."""
        return ("course", "speed") if self.loop == "both" else (self.loop,)

    def scene_in(self, scenario: Mapping[str, Any]) -> _Scene | InvalidDesign:
        """A scenario as numbers, or the reason why the model rejects it."""
        try:
            numbers, delay_steps = self._vehicle(scenario)
            speed = scenario["speed"]
            step = _DEFAULT_SPEED_STEP if self.speed_step is None else self.speed_step
            target = speed + (step if "speed" in self.tuned_loops else 0.0)
            samples = round(self.horizon / self.sample_time)
            scene = _Scene(numbers, speed, target, scenario.get("grade", 0.0), delay_steps, noise(scenario, samples))
            check_speeds(plant(**numbers), (speed, 0.0), (target, scene.grade), scenario["terrain"])
            check_steps(plant(**numbers), np.array([speed, target]), self.sample_time, self.substeps)
        except InvalidDesign as error:
            return error
        return scene

    def settings_of(self, design: Mapping[str, float]) -> _Settings:
        """The settings of both controllers for a design. Raises `InvalidDesign` for settings of an untuned one."""
        endings = ("", "_v") if self.loop == "both" else ("",)
        setting_names = {name + ending for name in _NAMES for ending in endings}
        if "course" in self.tuned_loops:
            setting_names |= {"rate_gain", "max_rate"}
        if "speed" in self.tuned_loops:
            setting_names |= {"grade_share"}
        if foreign := [name for name in design if name not in setting_names]:
            raise InvalidDesign(f"{foreign[0]}: belongs to no controller that is tuned with loop: {self.loop}")
        course, speed = (self._controller(loop, design) for loop in _LOOPS)
        return {"course": {**course, **rate_loop(design)}, "speed": {**speed, **feed_forward(design)}}

    def _vehicle(self, scenario: Mapping[str, Any]) -> tuple[dict[str, float], int]:
        """The numbers of `equations.plant`, and the delay in steps, of this scenario."""
        numbers = numbers_in(scenario, self.vehicle, self.soft_ground)
        if "delay" in scenario and "delay_samples" in scenario:
            raise InvalidDesign("delay: give it or delay_samples, not both")
        if "delay_samples" in scenario:
            return numbers, self._delay_steps(scenario["delay_samples"] * self.sample_time)
        return numbers, self._delay_steps(scenario.get("delay", self.vehicle.delay))

    def _delay_steps(self, delay: float) -> int:
        h = self.sample_time / self.substeps
        if not delay <= _MOST_DELAY * self.sample_time:
            raise InvalidDesign(f"delay: {delay:g} s is more than {_MOST_DELAY} samples; take a longer sample_time")
        steps = whole_number(delay, h)
        if steps is None or steps < 0:
            nearest = max(0, round(delay / h)) * h
            raise InvalidDesign(
                f"delay: {delay:g} s is not a whole number of integration steps of {h:g} s; the nearest is "
                f"{nearest:g} s"
            )
        return steps

    def _controller(self, loop: Loop, design: Mapping[str, float]) -> dict[str, float]:
        if loop not in self.tuned_loops:
            fixed = (
                self.course_regulator or FIXED_COURSE_CONTROLLER
                if loop == "course"
                else self.speed_regulator or FIXED_SPEED_CONTROLLER
            )
            fixed_values = {name: getattr(fixed, name) for name in _NAMES}
            return {**_NO_EFFECT, **{name: value for name, value in fixed_values.items() if value is not None}}
        kind: Kind = self.course_kind or "PID" if loop == "course" else self.speed_kind or "PI"
        ending = "_v" if self.loop == "both" and loop == "speed" else ""
        fixed_values = {name: design[name + ending] for name in _NAMES if name + ending in design}
        if absent := absent_parameters(kind, fixed_values):
            raise InvalidDesign(
                f"{absent[0]}{ending}: {kind} controllers do not have it (they have {', '.join(PARAMETERS[kind])})"
            )
        for name in ("kp", "ti", "td"):
            if name in PARAMETERS[kind] and name not in fixed_values:
                raise InvalidDesign(f"{name}{ending}: is missing; {kind} controllers need it")
        for name, value in fixed_values.items():
            least = 0.0 if name in ("td", "b") else _SMALLEST
            if not least <= value <= (1.5 if name == "b" else np.finfo(float).max):
                bound = {"td": "at least 0", "b": "between 0 and 1.5"}.get(name, "above 0")
                raise InvalidDesign(f"{name}{ending}: {value:g} must be {bound}")
            if is_unusual(value):
                raise InvalidDesign(f"{name}{ending}: {value:g} {UNUSUAL}")
        fixed_by_kind = {"I_PD": {"b": 0.0}, "PI_D": {"b": 1.0}}.get(kind, {})
        return {**_NO_EFFECT, **fixed_values, **fixed_by_kind}

    # ------------------------------------------------------------------------------------------------ all rows

    def _answers(self, rows: Sequence[tuple[_Scene, _Settings]], arrays: Set[str]) -> list[Answer | Exception]:
        n, scenes = len(rows), [scene for scene, _ in rows]
        p = plant(**{name: [scene.plant[name] for scene in scenes] for name in scenes[0].plant})
        controllers = {loop: self.pid_of([settings[loop] for _, settings in rows]) for loop in rows[0][1]}
        speed = np.array([scene.speed for scene in scenes])
        target = np.array([scene.target_speed for scene in scenes])
        turn = (_DEFAULT_TURN if self.step is None else self.step) if "course" in self.tuned_loops else 0.0
        grade = np.array([scene.grade for scene in scenes])
        share = np.array([settings["speed"]["grade_share"] for _, settings in rows])
        inner = RateLoop(*(np.array([settings["course"][name] for _, settings in rows]) for name in _RATE_LOOP))
        manoeuvre = Manoeuvre(
            speed=speed,
            target_speed=target,
            turn=np.full(n, turn),
            moment=np.full(n, self.disturbance.moment),
            grade=grade,
            feed=share * self.vehicle.mass * GRAVITY * grade / (2.0 * self.vehicle.max_force),
            noise=noises([scene.noise for scene in scenes]),
            step_at=self.step_at,
            load_at=self.disturbance.at,
            band=self.settling_band,
            horizon=self.horizon,
        )
        delay_steps = np.array([scene.delay_steps for scene in scenes])
        simulation = partial(
            simulate, p, controllers["speed"], controllers["course"], delay_steps=delay_steps, substeps=self.substeps,
            schedule=self.gain_schedule, rate_loop=inner, quality_loops=self.tuned_loops,
        )  # fmt: skip
        runs = simulation(manoeuvre=manoeuvre, trace=bool(arrays) or manoeuvre.noise is not None)
        figures = self._figures(runs, p, controllers, inner, speed, target, delay_steps / self.substeps)
        if manoeuvre.noise is not None:
            without_noise = simulation(manoeuvre=replace(manoeuvre, noise=None), trace=True)
            figures["noise_command"] = noise_command(runs, without_noise, self.tuned_loops[0])
        names, columns = list(figures), [values.tolist() for values in figures.values()]
        answers: list[Answer | Exception] = []
        for i, values in enumerate(zip(*columns, strict=True)):
            if runs.failed[i]:
                answers.append(Diverged(f"speed or heading diverged at {runs.divergence_time[i]:g} s", reason="bounds"))
                continue
            outputs = dict(zip(names, values, strict=True))
            if outputs["not_risen"]:
                del outputs["rise"]
            if scenes[i].noise is None:
                outputs.pop("noise_command", None)
            answers.append((cast(RefinedOutputs, outputs), self._arrays(runs, i, arrays)))
        return answers

    def pid_of(self, rows: Sequence[Mapping[str, float]]) -> PID:
        """The controllers of settings of one loop."""
        return pid(**{name: [row[name] for row in rows] for name in _NAMES}, sample_time=self.sample_time)

    def _figures(
        self, runs: SimulatedRuns, p: VehicleNumbers, controllers: Mapping[Loop, PID], inner: RateLoop, speed: Floats,
        target: Floats, delay: Floats,
    ) -> dict[str, Floats]:  # fmt: skip
        """All outputs by name (n,); `rise` is inf for a response that does not reach its level."""
        figures_of_runs: dict[str, Floats] = {}
        first = self.tuned_loops[0]
        for loop in self.tuned_loops:
            quality = runs.quality[loop]
            at = speed if loop == "course" else target
            linear = self._measures(loop, p, controllers[loop], inner, at, delay)
            if loop == first:
                figures_of_runs |= {name: getattr(quality, name) for name in _QUALITY}
                figures_of_runs |= {"rise": quality.rise, "not_risen": np.isinf(quality.rise).astype(float)}
                figures_of_runs |= {name: getattr(linear, name) for name in _MEASURES}
            else:
                figures_of_runs |= {f"{loop}_{name}": getattr(quality, name) for name in _SPEED_QUALITY}
                figures_of_runs |= {f"{loop}_{name}": getattr(linear, name) for name in _SPEED_MEASURES}
        figures_of_runs |= {"energy": runs.energy, "sharp_turn": runs.sharp}
        return figures_of_runs

    def _measures(
        self, loop: Loop, p: VehicleNumbers, controller: PID, inner: RateLoop, speed: Floats, delay: Floats
    ) -> LoopMeasures:
        if loop == "speed":
            return measures(*speed_loop(p, speed), delay, controller)
        if self.gain_schedule is not None:
            controller = replace(controller, kp=controller.kp * self.gain_schedule.factor(speed))
        linear = course_loop(p, speed)
        loop_measures = measures(*linear, delay, controller)
        if inner.gain.any():  # the figures of a row do not depend on the rows computed with it
            with_rate = np.flatnonzero(inner.gain)
            controllers = replace(controller, kp=controller.kp * inner.forward).rows(with_rate)
            A, B, C = (part[with_rate] for part in linear)
            cascade = cascade_measures(A, B, C, delay[with_rate], controllers, inner.gain[with_rate])
            for name, values in vars(loop_measures).items():
                values[with_rate] = getattr(cascade, name)
        return loop_measures

    def _arrays(self, runs: SimulatedRuns, row: int, array_names: Set[str]) -> dict[str, Floats]:
        if runs.trace is None:
            return {}
        trace = runs.trace
        return {
            name: trace.time.copy() if name == "time" else getattr(trace, name)[:, row].copy()
            for name in ARRAYS
            if name in array_names
        }


def _mistake(error: InvalidDesign) -> InvalidSetting:
    """An error that begins with the name of a value."""
    name, _, message = str(error).partition(": ")
    return InvalidSetting(name, message)
