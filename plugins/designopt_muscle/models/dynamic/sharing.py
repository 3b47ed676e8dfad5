"""The model ``dynamic_sharing``: a device and the strength of muscles in, excitations over a recorded motion out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
from designopt_mechanics.robot_files.xml import ModelError
from designopt_mechanics.sharing.statement.criteria import Tracking
from designopt_mechanics.sharing.statement.synergies import command_matrix, factorise_signals
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.collocation import TrajectoryProblem
from designopt.collocation.statement.mesh import SchemeName
from designopt.plugin import Declaration, Diverged, InputFile, InvalidDesign, InvalidSetting, Unusable, model
from designopt.plugin import Quantity as Q
from designopt_muscle.dynamic_sharing.equations import DynamicTrial
from designopt_muscle.dynamic_sharing.information import information
from designopt_muscle.dynamic_sharing.problem import problem
from designopt_muscle.dynamic_sharing.share import share_dynamic
from designopt_muscle.dynamic_sharing.sharing import DynamicSharing
from designopt_muscle.dynamic_sharing.terms import (
    SCALED,
    Device,
    DynamicReserves,
    DynamicTerms,
    Factor,
    MeasuredFibres,
    checked_factors,
)
from designopt_muscle.models.dynamic.figures import ARRAYS, DynamicOutputs, figures, tables
from designopt_muscle.models.dynamic.frames import MeshFrames
from designopt_muscle.models.dynamic.muscles import dynamic_muscles, fibre_lengths
from designopt_muscle.models.emg import MeasuredActivity, read_activity
from designopt_muscle.models.errors import TrialError
from designopt_muscle.models.muscle_names import check_muscles, read_muscle_model
from designopt_muscle.models.sharing_files import as_mistakes
from designopt_muscle.models.sharing_inputs import SharingScenario
from designopt_muscle.models.trial import Trial, TrialFrames, bundled_file, read_trial, recorded_times, trial_notes
from designopt_muscle.osim.read import read_model

#: Remark on a cost that has no minimum as the mesh refines: only one excitation there equals the activation.
_FREE_START = (
    "the first activations are free and the cost has excitations alone: on finer meshes activation at the start costs"
    " ever less, without a limit; set 'effort: activation', or judge only times well after the start"
)
#: Conditions that are files.
_FILES = ("motion", "moments", "emg", "fibres")


class DynamicDesign(TypedDict, total=False):
    """Values of a design; defaults are those of the model's description."""

    strength: Annotated[float, Q("", "factor on the isometric forces of all muscles", gt=0)]
    stiffness: Annotated[float, Q("N m/rad", "of a spring at the assisted coordinate", ge=0)]
    rest: Annotated[float, Q("rad", "coordinate at which the spring is relaxed")]
    assistance: Annotated[float, Q("", "share of the required moment that a drive provides there", ge=0, le=1)]


class DynamicScenario(SharingScenario, total=False):
    """The trial and further measurements."""

    emg: Annotated[InputFile, Q("", "measured activity (MOT, STO, CSV or C3D), for the setting 'emg'")]
    fibres: Annotated[InputFile, Q("", "table of fibre lengths in m (ultrasound), for the setting 'fibres'")]


@dataclass(frozen=True)
class ScaledMuscles:
    """Target of a factor, whose value a design gives or a program chooses."""

    scales: Annotated[Literal["force", "fibre", "slack", "strain"], Q("", "which quantity of the muscles")]
    muscles: Annotated[list[str], Q("", "that have this factor in common")]


@dataclass(frozen=True)
class TrackedFibres:
    """Settings of measured fibre lengths."""

    track: Annotated[dict[str, str], Q("", "column of each muscle whose fibre was measured")]
    weight: Annotated[float, Q("", "of the squared difference by the optimal length", ge=0)] = 1.0


@model("dynamic_sharing", version=3, arrays=ARRAYS)
class DynamicSharingModel:
    """Shares the net moments of a recorded motion among muscles with activation dynamics and elastic tendons.

    One sparse program over the whole motion, by direct collocation: the integral of squared excitations is minimal
    subject to activation dynamics, equilibrium of fibres and tendons and the balance of moments (De Groote et al.
    2016). Initial excitations and activations are equal. Every row has a reserve. Measured activity may be tracked or
    bound the excitations; synergies may command them.

    By default: the right leg of an adult walking, with nine muscles in a plane, at full strength without a device.
    Muscles of other models have the curves of De Groote et al. (2016).

    As a trajectory problem the inputs are parameters of the same program: a device or factors on muscle parameters are
    optimised together with the motion.
    """

    own_options = True

    model: Annotated[InputFile | None, Q("", "OpenSim model (.osim); the bundled planar leg if none")] = None
    window: Annotated[tuple[float, float] | None, Q("s", "first and last time; the whole motion if not given")] = None
    margin: Annotated[
        int,
        Q("", "recorded samples before and after the window that are solved and left out, where there are any", ge=0),
    ] = 5
    cutoff: Annotated[float | None, Q("Hz", "of a low-pass filter for the coordinates; none if not given", gt=0)] = None
    mesh: Annotated[float, Q("s", "largest length of an interval of the mesh", gt=0, le=0.2)] = 0.025
    scheme: Annotated[SchemeName, Q("", "of collocation; radau has the degree 3")] = "hermite_simpson"
    tendon: Annotated[
        Literal["compliant", "rigid"], Q("", "compliant unless the model says rigid, or rigid for all")
    ] = "compliant"
    passive: Annotated[bool, Q("", "count the passive forces of the fibres")] = False
    sharpness: Annotated[
        float, Q("", "of the switch between activation and deactivation; 0.1 as published, above 2 pulses pay", gt=0)
    ] = 1.0
    effort: Annotated[Literal["excitation", "activation"], Q("", "controls whose squares are minimised")] = "excitation"
    effort_weight: Annotated[float, Q("", "of these squares", ge=0)] = 1.0
    weights: Annotated[Literal["none", "volume", "pcsa"], Q("", "of the muscles in the effort")] = "none"
    reserve: Annotated[float, Q("N m", "generalised force of a reserve at control 1 (N for translations)", gt=0)] = 10.0
    reserve_weight: Annotated[float, Q("", "of squared controls of reserves", gt=0)] = 10.0
    rate_weight: Annotated[float, Q("s^2", "of squared rates of tendon forces", ge=0)] = 0.01
    assisted: Annotated[str | None, Q("", "coordinate at which a device helps")] = None
    emg: Annotated[MeasuredActivity | None, Q("", "measured activity that excitations follow")] = None
    fibres: Annotated[TrackedFibres | None, Q("", "measured fibre lengths that the fibres follow")] = None
    synergies: Annotated[
        dict[str, dict[str, float]] | None,
        Q("", "muscles that a common command moves, each with its weight; muscles in none have their own", ge=0),
    ] = None
    synergies_of_emg: Annotated[
        int | None, Q("", "number of synergies of the measured muscles, factored from their signals", ge=1)
    ] = None
    factors: Annotated[dict[str, ScaledMuscles], Q("", "numbers that scale parameters of muscles, by name")] = field(
        default_factory=dict
    )

    _trials: dict[tuple[str, ...], tuple[DynamicTrial, MeshFrames]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _last: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    def check(self) -> None:
        """Read the model before the run. Raises `InvalidSetting` for an unusable file and unknown names."""
        skeleton = read_muscle_model(self._skeleton)
        if self.assisted is not None and self.assisted not in skeleton.free:
            raise InvalidSetting("assisted", f"'{self.assisted}' is not a free coordinate ({', '.join(skeleton.free)})")
        muscles = tuple(m.name for m in skeleton.muscles)
        muscle_lists = [("emg", list(self.emg.track) if self.emg else [])]
        muscle_lists += [("fibres", list(self.fibres.track) if self.fibres else [])]
        muscle_lists += [("synergies", list(weights)) for weights in (self.synergies or {}).values()]
        muscle_lists += [("factors", factor.muscles) for factor in self.factors.values()]
        for setting, names in muscle_lists:
            check_muscles(setting, names, muscles)
        for command, weights in (self.synergies or {}).items():
            if not any(weights.values()):
                raise InvalidSetting("synergies", f"'{command}' moves no muscle")
        if self.synergies_of_emg is not None and (self.synergies is not None or self.emg is None):
            raise InvalidSetting("synergies_of_emg", "it needs 'emg', and replaces 'synergies'")
        if self.synergies_of_emg is not None and self.synergies_of_emg > len(self.emg.track if self.emg else ()):
            raise InvalidSetting("synergies_of_emg", "there are more of them than measured muscles")
        for name in self.factors:
            if name in DynamicDesign.__annotations__:
                raise InvalidSetting("factors", f"'{name}' is already an input of the model")
        try:
            checked_factors(self._factors, muscles)
        except ValueError as error:
            raise InvalidSetting("factors", str(error)) from None

    def check_scenario(self, conditions: Mapping[str, Any]) -> None:
        """Open the files of a scenario. Raises `InvalidSetting` for unusable ones and for misspelt columns."""
        with as_mistakes({name: conditions.get(name) for name in _FILES}):
            self._notes(conditions)

    def remarks(self, conditions: Mapping[str, Any]) -> list[str]:
        """Sentences on what the readers of model and trial left out or assumed."""
        with as_mistakes({name: conditions.get(name) for name in _FILES}):
            return self._notes(conditions)

    def declares(self) -> Declaration:
        """The factors are inputs."""
        inputs = {
            name: Q("", f"factor on the {SCALED[factor.scales]} of {', '.join(factor.muscles)}", gt=0)
            for name, factor in self.factors.items()
        }
        return Declaration(inputs=inputs, optional=frozenset(inputs))

    def evaluate(
        self, design: DynamicDesign, scenario: DynamicScenario, arrays: Set[str] = frozenset()
    ) -> tuple[DynamicOutputs, dict[str, NDArray[Any]]]:
        """Solve the program of the trial."""
        trial, frames = self._trial(scenario)
        sharing = self._solution(trial, design)
        without_margin = frames.cut(sharing)
        all_arrays = {
            name: value[frames.sampled_points] if ARRAYS[name].axes[0] == "time" else value
            for name, value in tables(trial, sharing).items()
        }
        all_arrays["factors"] = np.array(list(self.factors), dtype=str)
        if "information" in arrays:
            all_arrays["information"] = information(sharing.program, sharing.solution, list(self.factors))
        return figures(trial, without_margin), {name: all_arrays[name] for name in arrays}

    def gradient(self, design: DynamicDesign, scenario: DynamicScenario) -> dict[str, dict[str, float]]:
        """Exact derivatives of the objective with respect to the design, if no margin is cut off."""
        trial, frames = self._trial(scenario)
        if frames.before + frames.after:
            return {}
        slopes = self._solution(trial, design).slopes
        return {"objective": {name: slopes[name] for name in design if name in slopes}}

    def trajectory_problem(self, scenario: Mapping[str, Any]) -> TrajectoryProblem:
        """The same program, with the design's values as parameters.

        Raises `InvalidSetting` for an unusable trial or a margin.
        """
        try:
            trial, frames = self._trial(scenario)
        except (InvalidDesign, Unusable) as error:
            raise InvalidSetting("use", str(error)) from None
        if frames.before + frames.after:
            raise InvalidSetting("use", "a program has no margin around the window: set 'margin: 0'")
        return problem([trial])

    # ---------------------------------------------------------------------------------------------------------- parts

    @property
    def _skeleton(self) -> InputFile:
        return self.model if self.model is not None else bundled_file("planar_leg.osim")

    @property
    def _factors(self) -> tuple[Factor, ...]:
        return tuple(Factor(name, factor.scales, tuple(factor.muscles)) for name, factor in self.factors.items())

    def _solution(self, trial: DynamicTrial, design: Mapping[str, Any]) -> DynamicSharing:
        """The solution for a design, cached until the next one. Raises `Diverged` with the cause."""
        if trial.device is None and (design.get("stiffness") or design.get("assistance")):
            raise InvalidDesign("a device needs a coordinate: name it with the model's setting 'assisted'")
        parameter_names = [v.name for v in trial.system.parameters]
        values = {name: float(value) for name, value in design.items() if name in parameter_names}
        key = id(trial), tuple(sorted(values.items()))
        if self._last.get("key") == key:
            return self._last["sharing"]  # type: ignore[no-any-return]
        scales = {name: (0.0, 10.0) for name in parameter_names if name.startswith("signal_scale_")}
        sharing = share_dynamic(trial, {**values, **scales}, scheme=self.scheme)
        if not sharing.converged:
            raise Diverged(
                f"{sharing.message} Frame by frame with rigid tendons: {sharing.static.summary()}.",
                reason=sharing.solution.status.name.lower(),
            )
        self._last.update(key=key, sharing=sharing)
        return sharing

    def _trial(self, scenario: Mapping[str, Any]) -> tuple[DynamicTrial, MeshFrames]:
        """The trial at the points of the mesh, read once in a process. Raises `Unusable` for files that make no trial,
        and `InvalidDesign` for an incomplete scenario."""
        self._refuse(scenario)
        motion, moments, emg, fibres = (scenario.get(name) for name in _FILES)
        motion = motion or bundled_file("walking_leg.csv")
        key = tuple("" if file is None else file.digest for file in (motion, moments, emg, fibres))
        if key not in self._trials:
            try:
                self._trials[key] = self._read(motion, moments, emg, fibres)
            except (TrialError, ModelError, ValueError) as error:
                raise Unusable(str(error), reason="unreadable") from None
        return self._trials[key]

    def _refuse(self, scenario: Mapping[str, Any]) -> None:
        for name, setting in (("emg", self.emg), ("fibres", self.fibres)):
            if (setting is None) != (scenario.get(name) is None):
                raise InvalidDesign(
                    f"the condition '{name}' (a file) and the setting '{name}' belong together: give both or none"
                )

    def _notes(self, scenario: Mapping[str, Any]) -> list[str]:
        self._refuse(scenario)
        motion, moments, emg, fibres = (scenario.get(name) for name in _FILES)
        motion, skeleton = motion or bundled_file("walking_leg.csv"), read_model(self._skeleton.content)
        muscles, time = tuple(m.name for m in skeleton.muscles), recorded_times(motion)
        if self.emg is not None and emg is not None:
            read_activity(emg, self.emg, muscles, time)
        if self.fibres is not None and fibres is not None:
            fibre_lengths(fibres, self.fibres.track, muscles, time)
        notes = [f"{self._skeleton.name}: {note}" for note in skeleton.notes]
        if self.effort == "excitation" and self.effort_weight > 0.0:
            notes.append(_FREE_START)
        return notes + trial_notes(skeleton, motion, moments, computes_moments=False, cutoff=self.cutoff)

    def _read(
        self, motion: InputFile, moments: InputFile | None, emg: InputFile | None, fibres: InputFile | None
    ) -> tuple[DynamicTrial, MeshFrames]:
        frames = MeshFrames.over(recorded_times(motion), self.window, self.mesh, self.scheme, self.margin)
        trial = read_trial(self._skeleton, motion, moments, frames=TrialFrames(times=frames.time, cutoff=self.cutoff))
        rows = np.flatnonzero((np.abs(trial.balance.arms) > 0).any(axis=(0, 2)))
        balance = replace(
            trial.balance,
            rows=tuple(trial.balance.rows[i] for i in rows),
            row_units=tuple(trial.balance.row_units[i] for i in rows),
            arms=trial.balance.arms[:, rows],
            moments=trial.balance.moments[:, rows],
        )
        device = None
        if self.assisted is not None:
            if self.assisted not in balance.rows:
                raise TrialError(f"the trial has no net moment about the assisted coordinate '{self.assisted}'")
            device = Device(self.assisted, trial.values[self.assisted])
        signals = None
        if self.emg is not None and emg is not None:
            signals = read_activity(emg, self.emg, balance.columns, balance.time)
        reserves = DynamicReserves(np.full(len(balance.rows), self.reserve), self.reserve_weight, limit=1e3)
        terms = self._terms(trial, signals)
        if self.fibres is not None and fibres is not None:
            lengths = fibre_lengths(fibres, self.fibres.track, balance.columns, balance.time)
            terms = replace(terms, fibres=MeasuredFibres(lengths, self.fibres.weight))
        return DynamicTrial(
            balance,
            dynamic_muscles(trial, rigid=self.tendon == "rigid", passive=self.passive),
            reserves,
            terms,
            device,
            self._factors,
        ), frames

    def _terms(self, trial: Trial, signals: Floats | None) -> DynamicTerms:
        muscles = trial.muscles
        weights = {"none": lambda: None, "volume": muscles.volumes, "pcsa": muscles.areas}[self.weights]()
        tracking, synergies = None, self.synergies
        if self.emg is not None and signals is not None:
            silent = [n for n in self.emg.track if not np.isfinite(signals[:, muscles.names.index(n)]).any()]
            if silent:
                raise TrialError(f"the signal of '{silent[0]}' has no sample within the motion")
            tracking = Tracking(signals, self.emg.weight, self.emg.scale == "free", self.emg.band)
            if self.synergies_of_emg is not None:
                synergies = _synergies(signals, list(self.emg.track), muscles.names, self.synergies_of_emg)
        return DynamicTerms(
            effort=self.effort_weight,
            charged=self.effort,
            weights=weights,
            rates=self.rate_weight,
            sharpness=self.sharpness,
            tracking=tracking,
            synergies=None if synergies is None else command_matrix(synergies, muscles.names),
        )


def _synergies(
    signals: Floats, measured_muscles: list[str], muscles: tuple[str, ...], count: int
) -> dict[str, dict[str, float]]:
    """Weights of the measured muscles in this number of synergies, factored from the frames in which all are
    measured.
    """
    columns = signals[:, [muscles.index(name) for name in measured_muscles]]
    is_measured = np.isfinite(columns).all(axis=1)
    W, _, _ = factorise_signals(np.maximum(columns[is_measured], 0.0), count)
    synergies = (dict(zip(measured_muscles, weights.tolist(), strict=True)) for weights in W.T)
    return {f"synergy_{s}": weights for s, weights in enumerate(synergies, 1)}
