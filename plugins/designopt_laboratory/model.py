"""The model ``laboratory_trial``: from a laboratory's files to joint angles, moments, muscle forces and joint loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
from designopt_mechanics.robot_files.xml import ModelError
from designopt_mechanics.sharing.statement.criteria import Tracking, criterion_of
from designopt_muscle.markers.problem import Limits, motion_problem
from designopt_muscle.markers.status import MarkerError
from designopt_muscle.models.emg import MeasuredActivity, read_activity
from designopt_muscle.models.errors import TrialError
from designopt_muscle.scaling.setup import Measurement
from designopt_recordings.errors import RecordingError
from designopt_recordings.plausibility import side_notes
from numpy.typing import NDArray

from designopt.plugin import InputFile, InvalidDesign, InvalidSetting, Unusable, filled, model
from designopt.plugin import Quantity as Q
from designopt_laboratory.declared import ARRAYS, LaboratoryDesign, TrialConditions, TrialFigures
from designopt_laboratory.mistakes import marker_mistakes, setting_mistakes, unusable_files
from designopt_laboratory.results import TrialResults
from designopt_laboratory.trial.files import FILE_CONDITIONS, TrialFiles, read_files, resize
from designopt_laboratory.trial.functional import FunctionalJoint
from designopt_laboratory.trial.poses import MarkerErrors, PoseSeries, check_poses, poses
from designopt_laboratory.trial.records import check_records, check_source, record_mistakes, record_notes
from designopt_laboratory.trial.steps import STEPS, Chain, Factors, Processing, Step, check_window, take_steps
from designopt_laboratory.trial.strikes import Source
from designopt_laboratory.trial.subject import MarkerSettings, Scaling, SubjectSettings

#: Poses of a trial that are kept for designs with the same errors of markers.
_KEPT_POSES = 4


@dataclass(frozen=True)
class PoseSettings:
    """The settings on which the poses of a trial depend: errors of markers, a factor on the `size` of the model, and
    the `weight` of some markers."""

    errors: MarkerErrors
    size: float
    weight: float


@dataclass(frozen=True, eq=False)
class ReadTrial:
    """The files of a trial, and the poses that were computed from them, by what they depend on."""

    files: TrialFiles
    poses: dict[PoseSettings, tuple[TrialFiles, PoseSeries]] = field(default_factory=dict)


@model("laboratory_trial", version=3, arrays=ARRAYS)
class LaboratoryTrial:
    """Joint angles, moments, muscle forces and joint loads from markers (or coordinates) and force plates.

    The steps are those of a laboratory with OpenSim: scaling of a generic model to a static pose, inverse kinematics,
    a filter, inverse dynamics, static sharing among the muscles, joint reactions. `until` names the last one. Plates
    are assigned to feet by position, or columns of a table to bodies by OpenSim's ExternalLoads. Curves are cut into
    cycles at foot strikes. Every result is an array; what is not known exactly is an input of designs and scenarios.
    """

    model: Annotated[InputFile, Q("", "OpenSim model (.osim): generic, or of the subject")]
    scaling: Annotated[InputFile | None, Q("", "OpenSim's ScaleTool file; the model is not scaled without")] = None
    scale_to_static: Annotated[
        bool, Q("", "without a set-up: scale by least squares on all markers of the static pose, and place them there")
    ] = False
    measurements: Annotated[
        list[Measurement],
        Q("", "lengths between markers of the static pose, whose ratio to those on the model scales bodies"),
    ] = field(default_factory=list)
    scale_factors: Annotated[
        dict[str, tuple[float, float, float]], Q("", "scale factors of single bodies along x, y, z", gt=0)
    ] = field(default_factory=dict)
    functional_joints: Annotated[
        dict[str, FunctionalJoint],
        Q("", "joints whose centre or axis the trial's movement 'functional' gives: markers in scaling and placing"),
    ] = field(default_factory=dict)
    marker_set: Annotated[InputFile | None, Q("", "markers on the bodies (MarkerSet XML), if the model has none")] = (
        None
    )
    tasks: Annotated[
        InputFile | None, Q("", "weights of inverse kinematics (OpenSim's InverseKinematicsTool or IKTaskSet)")
    ] = None
    marker_weights: Annotated[
        dict[str, float], Q("", "weights of single markers; 1, or that of the tasks, for others", ge=0)
    ] = field(default_factory=dict)
    rename_markers: Annotated[
        dict[str, str], Q("", "names on the model of markers that are recorded under other names")
    ] = field(default_factory=dict)
    weighted_markers: Annotated[
        list[str], Q("", "markers whose weight in inverse kinematics is the design input 'marker_weight'")
    ] = field(default_factory=list)
    coordinate_weights: Annotated[
        dict[str, float],
        Q(
            "",
            "of coordinates that inverse kinematics draws to the trial's 'targets', or to their defaults without",
            ge=0,
        ),
    ] = field(default_factory=dict)
    limits: Annotated[
        Limits, Q("", "of coordinates in inverse kinematics: those that the model clamps, all, by a penalty, or none")
    ] = "clamped"
    until: Annotated[Step, Q("", "last step")] = "reactions"
    window: Annotated[tuple[float, float] | None, Q("s", "first and last time; the complete trial if none")] = None
    max_gap: Annotated[float, Q("s", "of unusable frames that is bridged", ge=0)] = 0.1
    feet: Annotated[
        dict[str, str] | None, Q("", "bodies that stand on plates: {right: BODY, left: BODY}; calcn_r, calcn_l if none")
    ] = None
    residual_limit: Annotated[
        float | None, Q("", "share of the weight that plates may fail to carry; frames beyond have no moments", gt=0)
    ] = 0.25
    cycles: Annotated[Source, Q("", "where foot strikes come from; auto: events, plates or feet")] = "auto"
    reserve: Annotated[
        float | dict[str, float],
        Q("N m", "generalised force of a reserve at control 1 (N for translations); by coordinate, or for all", ge=0),
    ] = 1.0
    tendon: Annotated[Literal["rigid", "equilibrium"], Q("", "rigid, or in static equilibrium with the fibre")] = (
        "rigid"
    )
    passive: Annotated[bool, Q("", "count the passive forces of the fibres")] = False
    linear: Annotated[float, Q("", "linear part of the criterion 'quadratic_linear'", ge=0)] = 0.1
    tie_break: Annotated[float, Q("", "share of the squares in the criterion 'minmax'", gt=0, lt=1)] = 1e-4
    emg: Annotated[
        MeasuredActivity | None,
        Q("", "measured activity: shown beside activations, followed where its weight is not 0"),
    ] = None
    joints: Annotated[list[str] | None, Q("", "joints with reactions; all that move if none")] = None
    reaction_axes: Annotated[str, Q("", "of the reactions: child, parent, ground or the name of a body")] = "child"
    metabolics: Annotated[
        Literal["none", "bhargava", "umberger"], Q("", "metabolic rates: Bhargava et al. (2004), Umberger (2010)")
    ] = "none"

    _last_files: dict[tuple[Any, ...], TrialFiles] = field(init=False, repr=False, compare=False, default_factory=dict)

    def check(self) -> list[InvalidSetting]:
        """Mistakes in the settings, read with the model before the run: unusable files and unknown names."""
        return setting_mistakes(self)

    def check_scenario(self, conditions: Mapping[str, Any]) -> list[InvalidSetting]:
        """The mistakes of a trial, all of them: unknown markers in the settings, unusable files, files that do not fit
        each other, a window beyond the record."""
        mistakes: list[InvalidSetting] = []
        with _collect_errors(mistakes, conditions):
            mistakes += marker_mistakes(self, conditions)
        names_are_known = not mistakes  # unknown ones are reported already
        files: TrialFiles | None = None
        misfits: list[InvalidSetting] = []
        with _collect_errors(misfits, conditions):
            files = self._read(conditions)
        if files is None:
            return [*mistakes, *(unusable_files(conditions) or misfits)]
        with _collect_errors(mistakes, conditions):
            check_poses(files, self._weighted_markers(files) if names_are_known else ())
        with _collect_errors(mistakes, conditions):
            check_source(self.cycles, files)
        with _collect_errors(mistakes, conditions):
            self._signals(conditions, files, files.times)
        window = files.window
        try:
            check_window(files.times, window, files.name)
        except TrialError as error:
            if self.window is None and self.tasks is not None:
                sentence = (
                    f"{self.tasks.name}: of its time_range, {error}; correct it, state window, or check the record"
                )
                mistakes.append(InvalidSetting("tasks", sentence))
            else:
                mistakes.append(InvalidSetting("window", str(error)))
            window = None
        if self.until != "angles":
            with _collect_errors(mistakes, conditions):
                sentences = record_mistakes(files, window, self.feet)
                mistakes += [_at_its_file(sentence, conditions) for sentence in sentences]
        return mistakes

    def remarks(self, conditions: Mapping[str, Any]) -> list[str]:
        """Sentences on what the readers of the files left out or assumed."""
        with _as_mistakes(conditions):
            files = self._read(conditions)
            loads = [] if self.until == "angles" else record_notes(files, files.window, self.feet)
            if files.recording is None:
                return list(dict.fromkeys([*files.doubts, *files.notes, *poses(files).notes, *loads]))
            problem = motion_problem(files.model, files.markers, files.recording, files.tasks, self.limits)
            marker_notes = [*problem.notes, *side_notes(files.recording)]
            notes = [*files.doubts, *files.notes, *(f"{files.name}: {note}" for note in marker_notes), *loads]
            return list(dict.fromkeys(notes))

    def prepare_scenario(self, conditions: TrialConditions) -> ReadTrial:
        """Read the files and scale the model. Raises `Unusable` for unusable ones."""
        try:
            return ReadTrial(self._read(conditions))
        except TrialError as error:
            raise Unusable(str(error), reason="unreadable") from None

    def evaluate(
        self, design: LaboratoryDesign, scenario: TrialConditions, arrays: Set[str], prepared: ReadTrial
    ) -> tuple[TrialFigures, dict[str, NDArray[Any]]]:
        """Take the steps. Raises `InvalidDesign` for an impossible cut-off, `Unusable` for a trial without a result."""
        values, conditions = (
            cast(Mapping[str, Any], filled(schema, setting_values))
            for schema, setting_values in ((LaboratoryDesign, design), (TrialConditions, scenario))
        )
        try:
            check_poses(prepared.files, self._weighted_markers(prepared.files))
            if self.until != "angles":
                check_records(prepared.files, prepared.files.window, self.feet)
            size = values["size_factor"] * conditions["size_factor"]
            posing = PoseSettings(_marker_errors(values, conditions), size, values["marker_weight"])
            files, series = self._poses(prepared, posing)
            signals = self._signals(conditions, files, series.time)
            steps = take_steps(
                files, series, self._chain(files), self._processing(values, conditions), self._tracking(signals)
            )
            if not (steps.status < 100).any():
                raise Unusable(
                    f"{files.name}: no frame is usable; {'; '.join([*steps.doubts, *steps.notes][:3])}", reason="frames"
                )
            if signals is not None:
                signals = signals[np.isin(series.time, steps.coordinates.time)]
            labels = (conditions["subject"], conditions["group"])
            results = TrialResults(steps, files, self.cycles, signals, labels)
            return results.figures(), results.arrays(arrays)
        except RecordingError as error:
            raise InvalidDesign(str(error)) from None
        except (TrialError, ModelError, MarkerError) as error:
            raise Unusable(str(error), reason="trial") from None

    @staticmethod
    def folder_study(folder: Path, target: Path, name: str) -> tuple[str, list[str]]:
        """A study of the files in a `folder`, to be written to `target`, and sentences on what it assumes."""
        from designopt_laboratory.folder.study import study_of_folder

        return study_of_folder(folder, target, name)

    # ---------------------------------------------------------------------------------------------------------- parts

    def _read(self, conditions: Mapping[str, Any]) -> TrialFiles:
        """The files of a trial; the last one is kept, since checks and remarks read it too."""
        files = [*(conditions.get(name) for name in FILE_CONDITIONS), *conditions.get("functional", ())]
        key = (
            *("" if file is None else file.digest for file in files),
            conditions.get("mass"),
            conditions.get("time_offset"),
        )
        if key not in self._last_files:
            self._last_files.clear()
            scaling = Scaling(
                self.scaling, self.scale_to_static, tuple(self.measurements), dict(self.scale_factors),
                dict(self.functional_joints),
            )  # fmt: skip
            markers = MarkerSettings(self.marker_set, self.rename_markers, self.marker_weights)
            settings = SubjectSettings(self.model, scaling, markers, self.tasks, self.coordinate_weights, self.window)
            self._last_files[key] = read_files(settings, conditions)
        return self._last_files[key]

    def _poses(self, trial: ReadTrial, posing: PoseSettings) -> tuple[TrialFiles, PoseSeries]:
        """Inverse kinematics, once for what it depends on, and the files of the model that it moved."""
        if posing not in trial.poses:
            if len(trial.poses) >= _KEPT_POSES:
                del trial.poses[next(iter(trial.poses))]
            files = resize(trial.files, posing.size)
            recorded_names = () if files.recording is None else files.recording.marker_names
            recorded_weights = {name: weight for name, weight in self.marker_weights.items() if name in recorded_names}
            weights = {**recorded_weights, **dict.fromkeys(self.weighted_markers, posing.weight)}
            trial.poses[posing] = files, poses(files, posing.errors, weights, self.limits)
        return trial.poses[posing]

    def _weighted_markers(self, files: TrialFiles) -> tuple[str, ...]:
        """Markers with a weight of their own; one that is not measured has the weight 0."""
        recorded_names = () if files.recording is None else files.recording.marker_names
        weighted_names = [
            name for name, weight in self.marker_weights.items() if weight > 0.0 or name in recorded_names
        ]
        return (*weighted_names, *self.weighted_markers)

    def _chain(self, files: TrialFiles) -> Chain:
        return Chain(
            self.until, files.window, self.max_gap, self.feet, self.residual_limit, self.reserve, self.tendon,
            self.passive, None if self.joints is None else tuple(self.joints), self.reaction_axes,
            None if self.metabolics == "none" else self.metabolics,
        )  # fmt: skip

    def _processing(self, values: Mapping[str, Any], conditions: Mapping[str, Any]) -> Processing:
        factors = Factors(
            *(values[name] * conditions[name] for name in ("mass_factor", "strength", "fibre_factor", "slack_factor"))
        )
        criterion = criterion_of(values, self.linear, self.tie_break)
        return Processing(values["cutoff"], values["load_cutoff"], criterion, factors)

    def _signals(
        self, conditions: Mapping[str, Any], files: TrialFiles, time: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """(n, k) measured activity of the muscles at `time` (n,) s."""
        if self.emg is None or STEPS.index(self.until) < STEPS.index("forces"):
            return None
        file = conditions.get("emg") or conditions.get("recording")
        if file is None or (conditions.get("emg") is None and not file.name.lower().endswith(".c3d")):
            raise TrialError(f"{files.name}: the setting 'emg' needs a file of measured activity: name it with emg")
        return read_activity(file, self.emg, tuple(m.name for m in files.model.muscles), time)

    def _tracking(self, signals: NDArray[np.float64] | None) -> Tracking | None:
        if self.emg is None or signals is None or (self.emg.weight == 0.0 and self.emg.band is None):
            return None
        return Tracking(signals, self.emg.weight, self.emg.scale == "free", self.emg.band)


def _marker_errors(values: Mapping[str, Any], conditions: Mapping[str, Any]) -> MarkerErrors:
    """The errors of design and scenario together; the seed is that of the scenario unless only the design has one."""
    sizes = {name: float(np.hypot(values[name], conditions[name])) for name in ("skin", "placement")}
    seed = int(conditions["seed"]) if values["seed"] == 1 else int(values["seed"])
    if not any(sizes.values()):
        return MarkerErrors()
    return replace(MarkerErrors(), **sizes, seed=seed)


@contextmanager
def _as_mistakes(conditions: Mapping[str, Any]) -> Iterator[None]:
    """Errors of a trial become an `InvalidSetting` at the condition whose file they name, else at its first file."""
    try:
        yield
    except (TrialError, ModelError, MarkerError) as error:
        raise _at_its_file(str(error), conditions) from None


@contextmanager
def _collect_errors(mistakes: list[InvalidSetting], conditions: Mapping[str, Any]) -> Iterator[None]:
    """Errors of a trial join the `mistakes`."""
    try:
        with _as_mistakes(conditions):
            yield
    except InvalidSetting as mistake:
        mistakes.append(mistake)


def _at_its_file(sentence: str, conditions: Mapping[str, Any]) -> InvalidSetting:
    """A mistake at the condition whose file the sentence begins with, else at the first one with a file."""
    files = [(name, conditions[name]) for name in FILE_CONDITIONS if conditions.get(name) is not None]
    files += [("functional", file) for file in conditions.get("functional", ())]
    first = files[0][0] if files else "recording"
    return InvalidSetting(next((name for name, file in files if sentence.startswith(file.name)), first), sentence)
