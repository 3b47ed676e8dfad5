"""The model ``four_bar_knee``: the walk of the prosthetic leg for a damper's stiffness and damping.

Importing this module is fast; `FourBarKnee.prepare` imports the heavy libraries, once per worker process.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Diverged, InputFile, InvalidDesign, InvalidSetting, Quantity, model
from designopt_knee import figures, linkage
from designopt_knee.gait import Gait, bundled_text, read_gait
from designopt_knee.leg_ranges import check_units
from designopt_knee.outputs import ARRAYS, KneeOutputs
from designopt_knee.parameters import (
    EQUATION_PARAMETERS,
    PARAMETER_SETS,
    WALK,
    KneeConditions,
    KneeDesign,
    KneeParameters,
    check_geometry,
    check_ranges,
    complete,
    damper_remarks,
    substitute_remarks,
)
from designopt_knee.recorded_leg import check_walk, clearance_remarks, leg_remarks
from designopt_knee.straight_knee import bent_knee_remarks, straight_knee_remarks

if TYPE_CHECKING:
    from designopt.dynamics.simulation.side_by_side import OverRuns
    from designopt_knee.periodic.strides import Strides
    from designopt_knee.periodic.walk import WalkCycles

Q = Quantity

_FRAMES_PER_CYCLE = 60
_WALK_CYCLES = 2
_FLEXIONS = np.arange(0.0, 111.0, 2.0)  # deg, of the path of the instant centre
_CONTACT_FORCE = 1.0  # N, heel and toe together, from which the foot counts as on the ground

#: Maximum number of walks of scenarios in the cache.
_WALKS = 64

#: Value of the multiplier of a motion that was not found.
NO_MOTION = 999.0

#: Bytes of a file with one gait cycle: some thousand times a usual one.
LARGEST_GAIT = 2**21


@dataclass(frozen=True)
class Response:
    """The end of a walk: times (n,), states (n, 4) and outputs of the equations by name (n,), over whole cycles.

    For a periodic motion the cycle is repeated. `walk` is the walk that they come from.
    """

    t: Floats
    x: Floats
    y: Mapping[str, Floats]
    walk: WalkCycles

    @property
    def periodic(self) -> bool:
        """Whether the walk has converged to a stable motion of period T."""
        return self.walk.is_periodic


_ONE_START = (
    "the walk of each damper begins at one initial state: it, or a neighbour, may have another stable walk; the model's"
    " 'starts: 8' looks for some"
)


@model("four_bar_knee", version=4, arrays=ARRAYS)
class FourBarKnee:
    """Walk of a prosthetic leg with a four-bar knee and a spring-damper, driven by recorded motion of hip and thigh.

    Equations: Lü et al. (2020), Chinese Journal of Theoretical and Applied Mechanics 52(4), 1157-1173, with the
    corrected mass of the shank. Geometry and masses that are missing in the paper's text are substitutes
    (``substitute_v1``, ``substitute_v2``): results reproduce the class and pattern of the paper's results, not its
    numbers. Ground forces are not predictions: the hip is driven, so the leg need not carry the body. A response may
    depend on its initial state (attractors coexist near the critical stiffness), so outputs are discontinuous in the
    design.
    """

    batch_size: ClassVar[int] = 128

    gait: Annotated[
        InputFile | None, Q("", "CSV of one cycle or of Fourier coefficients; the bundled walk if none")
    ] = None
    period: Annotated[float | None, Q("s", "gait period; replaces that of the gait file", gt=0)] = None
    belt_speed: Annotated[float | None, Q("m/s", "treadmill's speed; replaces that of the gait file", ge=0)] = None
    harmonics: Annotated[int | None, Q("", "harmonics of the gait's series; 8, or all of a coefficient file", ge=1)] = (
        None
    )
    parameter_set: Annotated[Literal["substitute_v1", "substitute_v2"], Q("", "named values of all parameters")] = (
        "substitute_v1"
    )
    parameters: KneeParameters = field(default_factory=KneeParameters)
    allow_low_instant_centre: Annotated[bool, Q("", "accept a linkage whose centre is not above the knee")] = False
    smoothing: Annotated[Literal["tanh", "atan"], Q("", "step at the touch of ground and stop")] = "tanh"
    shank_mass_terms: Annotated[
        Literal["full", "as_printed"], Q("", "mass of the shank everywhere, or as in the paper's appendix")
    ] = "full"
    cycles: Annotated[int, Q("", "gait cycles simulated", ge=1)] = 20
    analysis_cycles: Annotated[int, Q("", "last cycles from which the figures are taken", ge=1)] = 5
    spectrum_cycles: Annotated[int, Q("", "last cycles from which the spectrum is taken", ge=1)] = 12
    samples_per_cycle: Annotated[int, Q("", "samples of the response", ge=40)] = 200
    starts: Annotated[int, Q("", "initial states; the worst rho decides", ge=1, le=100)] = 1
    shooting: Annotated[
        bool,
        Q("", "find the periodic motion by Newton's method as soon as the walk settles; else simulate all cycles"),
    ] = True
    stop_when_periodic: Annotated[
        bool, Q("", "instead of shooting, simulate until analysis_cycles after two equal cycles")
    ] = False
    swing_window: Annotated[tuple[float, float], Q("", "phases between which the toe should clear the ground")] = (
        0.62,
        0.93,
    )
    method: Annotated[Literal["rosenbrock4", "lsoda"], Q("", "integrator")] = "rosenbrock4"
    relative_tolerance: Annotated[float, Q("", "of the integration", gt=0, le=1e-2)] = 3e-6
    absolute_tolerance: Annotated[float, Q("rad", "of the integration; 100 times as much for rates", gt=0, le=1e-2)] = (
        1e-7
    )
    max_steps: Annotated[int, Q("", "maximum number of integrator steps", ge=1)] = 400_000
    compiled: Annotated[
        Literal["auto", "always", "never"], Q("", "compile the equations; without a compiler lsoda interprets them")
    ] = "auto"

    _gait: Gait = field(init=False, repr=False, compare=False)
    _integrators: Any = field(init=False, repr=False, compare=False)
    #: The model on the walk of each scenario that has one; integrators by the harmonics of the gait.
    _walks: dict[tuple[Any, ...], Self] = field(init=False, repr=False, compare=False)
    _cached: dict[int, Any] = field(init=False, repr=False, compare=False)
    _walk_remarks: dict[tuple[Any, ...], list[str]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def check(self) -> None:
        """Raise `InvalidSetting` for unusable settings. Nothing is integrated."""
        for name in ("analysis_cycles", "spectrum_cycles"):
            if getattr(self, name) > self.cycles:
                raise InvalidSetting(name, f"{getattr(self, name)} is more than the {self.cycles} cycles simulated")
        first, last = self.swing_window
        if not 0.0 <= first < last <= 1.0:
            raise InvalidSetting("swing_window", f"({first:g}, {last:g}) is not an interval within a cycle (0 to 1)")
        try:
            base = self._base()
            check_ranges(base)
            check_units(base, "parameters.")
            check_geometry(
                {"ad_length": linkage.straight_ad_length(base), **base},
                allow_low_instant_centre=self.allow_low_instant_centre,
            )
        except InvalidDesign as error:
            raise InvalidSetting("parameters", str(error)) from None
        check_walk(self._gait_of({}), self._leg({}))

    def remarks(self, conditions: KneeConditions) -> list[str]:
        """Contradictions in the recorded walk of a scenario, and between it and the leg; at most `_WALKS` different
        scenarios of a sample are checked."""
        key = tuple(sorted((name, getattr(value, "digest", value)) for name, value in conditions.items()))
        if key not in self._walk_remarks and len(self._walk_remarks) < _WALKS:
            gait = self._gait_of(conditions)
            self._walk_remarks[key] = [*gait.warnings, *leg_remarks(gait, self._leg(conditions))]
        return self._walk_remarks.get(key, [])

    def study_remarks(
        self, parameters: Collection[str], judged: Mapping[str, tuple[float | None, float | None]]
    ) -> list[str]:
        """Whether the load keeps the straight knee straight, whether the leg can keep a limit of its toe above the
        ground, and what the recorded swing has; nothing of a leg that the study varies."""
        if {*parameters} & {*PARAMETER_SETS[self.parameter_set]}:
            return []
        remarks = straight_knee_remarks(self._leg({}))
        return remarks + self._toe_remarks(judged["toe_clearance"][0]) if "toe_clearance" in judged else remarks

    def _toe_remarks(self, least: float | None) -> list[str]:
        if self.parameter_set == "substitute_v1" and self.gait is None and not self.parameters:
            return [
                "the toe of parameter_set substitute_v1 touches the ground in every swing, whatever the damper "
                "(toe_clearance is below 0): parameter_set substitute_v2 clears it"
            ]
        return [] if least is None else clearance_remarks(self._gait_of({}), self._leg({}), self.swing_window, least)

    def design_remarks(self, design: KneeDesign, scenarios: Sequence[KneeConditions]) -> list[str]:
        """Sentences on the damper of `design`, on a knee that it leaves bent at heel strike, in the scenario where it
        does so most, on a leg that is a substitute, and on walks from a single initial state."""
        self.prepare()
        angles = frozenset({"knee_angle", "knee_angle_recorded"})
        answers = self.batch([design] * len(scenarios), scenarios, angles)
        arrays = [answer[1] for answer in answers if not isinstance(answer, Exception)]
        bent = bent_knee_remarks([(a["knee_angle"][0], a["knee_angle_recorded"][0]) for a in arrays])
        damper = damper_remarks(cast(Mapping[str, float], design))
        return [*damper, *bent, *self._leg_origin(design, scenarios), *([] if self.starts > 1 else [_ONE_START])]

    def _leg_origin(self, design: Mapping[str, Any], scenarios: Sequence[KneeConditions]) -> list[str]:
        """A sentence on the values of the leg that are substitutes, and on scenarios that would vary them."""
        return substitute_remarks(self.parameter_set, {*self.parameters, *design}, frozenset().union(*scenarios))

    def prepare(self) -> None:
        """Read the gait, state the equations, and compile them if there is a C compiler."""
        self._gait, self._walks, self._cached = self._gait_of({}), {}, {}
        self._integrators = self._integrators_for(self._gait.harmonics)

    def _integrators_for(self, harmonics: int) -> Any:
        """Integrators of the equations for a gait with this number of harmonics, created once."""
        from designopt_knee.equations import knee_system
        from designopt_knee.periodic.strides import Integrators

        if harmonics not in self._cached:
            self._cached[harmonics] = Integrators(
                knee_system(harmonics, self.smoothing, self.shank_mass_terms),
                self.method,
                (self.relative_tolerance, self.absolute_tolerance),
                self.max_steps,
                "auto" if self.compiled == "auto" else self.compiled == "always",
            )
        return self._cached[harmonics]

    def evaluate(
        self, design: KneeDesign, scenario: KneeConditions, arrays: Set[str]
    ) -> tuple[KneeOutputs, dict[str, Floats]]:
        """Outputs of one damper under one set of conditions, and the requested `arrays`.

        Raises `InvalidDesign` for values that are out of range or make no knee, and `Diverged` if the response ends
        early (reasons ``linkage_limit``, ``step_limit``, ``nonfinite``) or has no meaning (``no_contact``,
        ``degenerate``).
        """
        from designopt.dynamics.simulation.side_by_side import run_alone

        return run_alone(self._evaluation(design, scenario, arrays))

    def batch(
        self, designs: Sequence[KneeDesign], scenarios: Sequence[KneeConditions], arrays: Set[str]
    ) -> list[tuple[KneeOutputs, dict[str, Floats]] | Exception]:
        """`evaluate` of several designs, each in its scenario, with their cycles side by side in lanes."""
        from designopt.dynamics.simulation.side_by_side import side_by_side

        rows = zip(designs, scenarios, strict=True)
        return side_by_side([self._evaluation(design, scenario, arrays) for design, scenario in rows])

    def _evaluation(
        self, design: KneeDesign, scenario: KneeConditions, arrays: Set[str]
    ) -> OverRuns[tuple[KneeOutputs, dict[str, Floats]]]:
        """`evaluate`, which yields its cycles."""
        if WALK & scenario.keys():
            return (yield from self._walking(scenario)._evaluation(design, leg_conditions(scenario), arrays))
        numbers = cast(Mapping[str, float], scenario), cast(Mapping[str, float], design)
        g = complete(self._base(), *numbers, allow_low_instant_centre=self.allow_low_instant_centre)
        p = np.array([g[name] for name in EQUATION_PARAMETERS])
        candidates = []
        for start in initial_states(self.starts):
            response = yield from self._walk(start, p)
            candidates.append((self._figures(response, g), response))
        outputs, response = min(candidates, key=lambda pair: pair[0]["rho"])
        outputs["rho_best"] = max(figures_["rho"] for figures_, _ in candidates)
        return outputs, self._arrays(response, g, arrays)

    def check_scenario(self, scenario: KneeConditions) -> None:
        """Raise `InvalidSetting`, which names the condition, for an unusable walk and a number in another unit."""
        check_units(self._leg(scenario))
        if WALK & scenario.keys():
            try:
                check_walk(self._gait_of(scenario), self._leg(scenario))
            except InvalidSetting as error:
                name = {"gait": "gait_file", "period": "gait_period", "belt_speed": "gait_speed"}.get(error.name)
                raise InvalidSetting(name or "gait_file", str(error)) from None

    def _leg(self, scenario: KneeConditions) -> dict[str, float]:
        """The parameters of the leg in a scenario, without those of a design."""
        g = {**self._base(), **cast(Mapping[str, float], leg_conditions(scenario))}
        g.setdefault("ad_length", linkage.straight_ad_length(g))
        return g

    def _walking(self, scenario: KneeConditions) -> Self:
        """This model with the recorded walk of `scenario`, cached for the next designs; the oldest entry of a full
        cache is dropped.
        """
        file = scenario.get("gait_file")
        key = (file and file.digest, scenario.get("gait_period"), scenario.get("gait_speed"))
        if key not in self._walks:
            with_walk = copy.copy(self)
            with_walk._gait = self._gait_of(scenario)
            with_walk._integrators = self._integrators_for(with_walk._gait.harmonics)
            while len(self._walks) >= _WALKS:
                del self._walks[next(iter(self._walks))]
            self._walks[key] = with_walk
        return self._walks[key]

    def _gait_of(self, scenario: KneeConditions) -> Gait:
        return self._read_gait(
            scenario.get("gait_file", self.gait),
            scenario.get("gait_period", self.period),
            scenario.get("gait_speed", self.belt_speed),
        )

    def _base(self) -> dict[str, float]:
        defaults = {name: parameter.value for name, parameter in PARAMETER_SETS[self.parameter_set].items()}
        return {**defaults, **cast(Mapping[str, float], self.parameters)}

    def _read_gait(self, file: InputFile | None, period: float | None, belt_speed: float | None) -> Gait:
        if file is not None and file.size > LARGEST_GAIT:
            raise InvalidSetting("gait", f"has {file.size} bytes; the file of one cycle has at most {LARGEST_GAIT}")
        try:
            text = bundled_text() if file is None else file.text()
        except UnicodeDecodeError:
            raise InvalidSetting(
                "gait", "the file is not UTF-8 text; save it as UTF-8 (spreadsheets: 'CSV UTF-8')"
            ) from None
        return read_gait(text, harmonics=self.harmonics, period=period, belt_speed=belt_speed)

    def strides(self, p: Floats) -> Strides:
        """The map of one cycle for parameters `p` of the equations (`EQUATION_PARAMETERS`)."""
        from designopt_knee.periodic.strides import Strides

        return Strides(self._integrators, p, self._gait.data(), self._gait.period, self.samples_per_cycle)

    def _walk(self, start: Floats, p: Floats) -> OverRuns[Response]:
        """The walk from the state `start`."""
        from designopt_knee.periodic.walk import walk, walk_through

        strides = self.strides(p)
        if self.shooting and not self.stop_when_periodic:
            walk_cycles = yield from walk(strides, start, self.cycles)
        else:
            walk_cycles = yield from walk_through(
                strides, start, self.cycles, self.analysis_cycles if self.stop_when_periodic else None
            )
        return self._response(walk_cycles)

    def _response(self, walk_cycles: WalkCycles) -> Response:
        """The last cycles of a walk."""
        cycle_count = max(self.analysis_cycles + figures.LONGEST_PERIOD, self.spectrum_cycles, _WALK_CYCLES)
        count = cycle_count if walk_cycles.is_periodic else len(walk_cycles.strides)
        x, y = walk_cycles.trailing(count)
        last = self.cycles if walk_cycles.is_periodic else count
        samples = np.arange(len(x), dtype=np.float64) + (last - count) * self.samples_per_cycle
        t = samples * (self._gait.period / self.samples_per_cycle)
        names = [v.name for v in self._integrators.system.outputs]
        return Response(t, x, dict(zip(names, y.T, strict=True)), walk_cycles)

    def _recorded(self, cycles: int) -> Floats:
        """Recorded knee angle (deg) at the samples of this number of cycles, end point included."""
        phase = np.arange(cycles * self.samples_per_cycle + 1) / self.samples_per_cycle
        return np.degrees(self._gait.series("knee", phase))

    def _trailing(self, knee: Floats, response: Response) -> Floats:
        """Cycles for the spectrum: the last ones; of a run that was stopped early only those that are settled."""
        per_cycle = figures.complete_cycles(knee, self.samples_per_cycle)
        count = self.spectrum_cycles
        if not response.periodic and len(per_cycle) < self.cycles:
            count = min(count, len(per_cycle) - figures.settled_cycles(per_cycle))
        return per_cycle[-count:]

    def _figures(self, response: Response, g: Mapping[str, float]) -> KneeOutputs:
        samples, window = self.samples_per_cycle, self.analysis_cycles
        knee = np.degrees(response.y["knee"])
        cycles = figures.complete_cycles(knee, samples)
        last = slice(-1 - window * samples, -1)
        recorded_angle = self._recorded(window)[:-1]
        force = (response.y["heel_force"] + response.y["toe_force"])[last]
        if not (force > _CONTACT_FORCE).any():
            raise Diverged("the foot does not touch the ground in the analysis window", reason="no_contact")
        rho = figures.correlation(knee[last], recorded_angle)
        if not np.isfinite(rho):
            raise Diverged("the knee angle does not vary in the analysis window", reason="degenerate")
        trailing = self._trailing(knee, response)
        phase = np.arange(samples) / samples
        swing = (phase >= self.swing_window[0]) & (phase <= self.swing_window[1])
        toe = figures.complete_cycles(response.y["toe_height"], samples)[-window:, swing]
        peak = float(cycles[-window:].max(axis=1).mean())
        residuals = self._gait.residuals
        motion, simulated_angle = response.walk.motion, self._simulated(response)
        leaving = response.walk.leaving
        centre_height, centre_offset = linkage.centre_offset(g)
        return {
            "rho": rho,
            "rho_best": rho,
            "peak_flexion": peak,
            "peak_error": peak - float(recorded_angle.max()),
            "rms_error": float(np.sqrt(np.mean((knee[last] - recorded_angle) ** 2))),
            "period_n": _repeating(figures.period_n(cycles, window), leaving),
            "repeat_error": float(figures.repeat_errors(cycles, window)[:1].min(initial=360.0)),
            "section_n": _repeating(1 if response.periodic else self._section_n(response), leaving),
            "floquet_modulus": NO_MOTION if motion is None else motion.modulus,
            "flip_margin": 1.0 - NO_MOTION if motion is None else motion.flip_margin,
            "subharmonic": figures.subharmonic(*figures.spectrum(trailing)),
            "subharmonic_half": figures.line(trailing, 2),
            "subharmonic_third": figures.line(trailing, 3),
            "toe_clearance": float(toe.min()),
            "mean_normal_force": float(force.mean()),
            "contact_duty": float(np.mean(force > _CONTACT_FORCE)),
            "max_stop_force": float(response.y["stop_force"][last].max()),
            "hip_moment_peak": float(np.abs(response.y["hip_moment"][last]).max()),
            "hip_work": self._per_cycle(np.maximum(response.y["hip_power"], 0.0)),
            "damper_work": self._per_cycle(response.y["damper_power"]),
            "centre_height": centre_height,
            "centre_offset": centre_offset,
            "min_phi": float(knee[last].min()),
            "settled_cycles": float(figures.settled_cycles(simulated_angle)),
            "cycles_simulated": float(len(simulated_angle)),
            "gait_angle_residual": float(np.degrees(max(residuals[s] for s in ("thigh", "knee", "ankle")))),
            "gait_hip_residual": max(residuals["hip_x"], residuals["hip_y"]),
        }

    def _per_cycle(self, power: Floats) -> float:
        """Work (J) in a cycle, mean over the analysis window: trapezoids over `power` (W)."""
        window = power[-1 - self.analysis_cycles * self.samples_per_cycle :]
        step = self._gait.period / self.samples_per_cycle
        return float(step * (window.sum() - 0.5 * (window[0] + window[-1])) / self.analysis_cycles)

    def _simulated(self, response: Response) -> Floats:
        """Knee angle (deg) of all cycles that were simulated (cycles, samples)."""
        return np.array([np.degrees(stride.y[:-1, 0]) for stride in response.walk.strides])

    def _section_n(self, response: Response) -> int:
        """After how many cycles the state at phase 0 repeats: angles in deg, rates in deg per radian of phase."""
        per_radian = self._gait.period / (2.0 * np.pi)
        scale = np.array([1.0, 1.0, per_radian, per_radian])
        return figures.section_n(np.degrees(response.x[:: self.samples_per_cycle]) * scale, self.analysis_cycles)

    def _arrays(self, response: Response, g: Mapping[str, float], names: Set[str]) -> dict[str, Floats]:
        """The requested arrays (see `ARRAYS`)."""
        last = slice(-1 - self.analysis_cycles * self.samples_per_cycle, None)
        knee = np.degrees(response.y["knee"])
        trailing = self._trailing(knee, response)
        frequency, amplitude = figures.spectrum(trailing)
        makers: dict[str, Callable[[], Floats]] = {
            "time": lambda: response.t[last],
            "phase": lambda: response.t[last] / self._gait.period,
            "knee_angle": lambda: knee[last],
            "knee_angle_recorded": lambda: self._recorded(self.analysis_cycles),
            "knee_peaks": lambda: trailing.max(axis=1),
            "spectrum_frequency": lambda: frequency,
            "spectrum_amplitude": lambda: amplitude,
            "walk": lambda: self._joints(response, g),
            "heel_force": lambda: response.y["heel_force"][last],
            "toe_force": lambda: response.y["toe_force"][last],
            "damper_force": lambda: response.y["damper_force"][last],
            "hip_moment": lambda: response.y["hip_moment"][last],
            "hip_power": lambda: response.y["hip_power"][last],
            "centre_flexion": lambda: _FLEXIONS,
            "centre_path": lambda: np.stack(
                linkage.instant_centre(g, linkage.eta_of_flexion(g, np.radians(_FLEXIONS))), axis=1
            ),
        }
        return {name: make() for name, make in makers.items() if name in names}

    def _joints(self, response: Response, g: Mapping[str, float]) -> Floats:
        """Positions (frame, joint, axis) of `linkage.JOINTS` over the last two cycles (all, when fewer), ends included.

        About 60 frames per cycle, a number that divides the samples so that the frames of all cycles are alike.
        """
        samples = self.samples_per_cycle
        span = min(_WALK_CYCLES, len(response.t) // samples) * samples
        stride = min(
            (d for d in range(1, samples + 1) if samples % d == 0), key=lambda d: abs(samples / d - _FRAMES_PER_CYCLE)
        )
        rows = slice(-1 - span, None, stride)
        t, (eta, foot) = response.t[rows], response.x[rows, :2].T
        phase = t / self._gait.period
        thigh = self._gait.series("thigh", phase)
        hip_x = self._gait.belt_speed * (t - t[0]) + self._gait.series("hip_x", phase)
        hip = (hip_x, g["hip_hike"] * self._gait.series("hip_y", phase))
        ad, shank = linkage.relative_angles(g, eta)
        positions = linkage.points(g, hip, thigh, thigh + shank, thigh + ad, thigh + eta, foot)
        return np.stack([np.stack(positions[name], axis=1) for name in linkage.JOINTS], axis=1)


def leg_conditions(scenario: KneeConditions) -> KneeConditions:
    """The conditions of a scenario that are parameters of the leg."""
    return cast(KneeConditions, {name: value for name, value in scenario.items() if name not in WALK})


def _repeating(n: int, leaving: bool) -> float:
    """A period of `n` cycles that a walk keeps: one that still leaves an unstable motion has none."""
    return 0.0 if n == 1 and leaving else float(n)


def initial_states(count: int) -> Iterator[Floats]:
    """Initial states (eta, beta1, rates 0): the usual one first, then an even spread around it.

    The others follow the additive sequence of the plastic number (Roberts 2018) over eta from -0.45 to -0.02 rad and
    beta1 from 0 to 0.5 rad.
    """
    yield np.array([-0.15, 0.25, 0.0, 0.0])
    plastic = 1.324717957244746
    for i in range(1, count):
        a, b = (0.5 + i / plastic) % 1.0, (0.5 + i / plastic**2) % 1.0
        yield np.array([-0.45 + 0.43 * a, 0.5 * b, 0.0, 0.0])
