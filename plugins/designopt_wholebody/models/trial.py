"""The model ``wholebody_trial``: how a trial is prepared in, joint loads and how far to trust them out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from designopt_recordings.errors import RecordingError, errors_about
from designopt_recordings.files.read import read_recording, read_table
from designopt_recordings.loads.tables import plates_from_table
from designopt_recordings.plate import ForcePlate
from designopt_recordings.plausibility import force_notes, side_notes
from designopt_recordings.recording import Recording
from numpy.typing import NDArray

from designopt.plugin import Diverged, InputFile, InvalidDesign, InvalidSetting, filled, model
from designopt.plugin import Quantity as Q
from designopt.study.language.errors import StudyError
from designopt_wholebody.dynamics.loads import JointLoads
from designopt_wholebody.model.library import bundled_names, content_of, load_model
from designopt_wholebody.model.reading import read_model
from designopt_wholebody.model.schema import BodyModel
from designopt_wholebody.models.trial_declarations import ARRAYS, TrialOutputs, TrialPreparation, TrialSource
from designopt_wholebody.models.trial_outputs import ENDS, AnalysedTrial
from designopt_wholebody.subject import Subject, SubjectError, make_subject
from designopt_wholebody.synthetic.pushup import pushup
from designopt_wholebody.synthetic.walk import walk
from designopt_wholebody.trial.analysis import Settings, analyse
from designopt_wholebody.trial.hidden_markers import NotRebuilt, hide_marker, rebuilt_error
from designopt_wholebody.trial.landmarks import static_subject
from designopt_wholebody.trial.marker_set import OWN_NAMES, MarkerSet, bundled_marker_set, read_marker_set


@model("wholebody_trial", version=5, arrays=ARRAYS)
class WholebodyTrial:
    """Inverse dynamics of the whole body in natural coordinates, from markers and force plates.

    Landmarks, gaps, filters, kinematic consistency, joint forces and torques, residual loads (Nunes 2017). A scenario
    with files is a trial of a laboratory; without them it is a bundled synthetic push-up (closed or open grip) or walk
    with exact reference loads. Joint forces are those of torque actuators: muscles add to them. Cycles are cut
    at the minima of `cycle_angle`: by default hip or elbow flexion, whichever moves more.
    """

    later_settings: ClassVar[tuple[str, ...]] = ("body_file",)

    body_file: Annotated[
        InputFile | None, Q("", "your own file of the body, in place of the bundled models that 'body' names")
    ] = None
    marker_set: Annotated[InputFile | None, Q("", "your own file of landmarks from the markers of the files")] = None
    markers: Annotated[
        str, Q("", "bundled marker set of the files; own_names: markers have the names of landmarks")
    ] = "own_names"
    cycle_angle: Annotated[str | None, Q("", "joint angle whose minima cut cycles, like knee_R.flexion")] = None
    cycles: Annotated[int, Q("", "of the bundled trials", ge=1, le=100)] = 2
    rate: Annotated[float, Q("Hz", "of the bundled trials", ge=20, le=1000)] = 50.0
    skin: Annotated[float, Q("m", "motion of markers on the skin in the bundled trials", ge=0)] = 0.005
    noise: Annotated[float, Q("m", "white noise of markers in the bundled trials", ge=0)] = 0.0003
    tolerance: Annotated[
        float, Q("", "of the norms of constraints and last step in the search for consistency", gt=0)
    ] = 1e-10
    noise_above: Annotated[float, Q("Hz", "frequency above which joint torques are noise", gt=0)] = 8.0
    inverse: Annotated[
        Literal["newton", "lagrange", "velocity_transformation"],
        Q("", "method of inverse dynamics; all give the same result"),
    ] = "velocity_transformation"

    def check(self) -> None:
        """Raise `InvalidSetting` for a marker set or a body that cannot be read, and for clusters of other segments."""
        body, markers = self._body, self._markers
        try:
            _ = body is None or markers.with_clusters(body)
        except ValueError as error:
            raise InvalidSetting("marker_set" if self.marker_set else "markers", str(error)) from None

    def prepare(self) -> None:
        """Read the marker set and the body."""
        _ = self._markers, self._body

    def remarks(self, conditions: Mapping[str, Any]) -> list[str]:
        """Sentences on what the readers of recordings and reactions left out or assumed, and on a file that cannot be
        read, whose scenario fails."""
        notes = []
        for name, reader in _READERS.items():
            if name in conditions:
                try:
                    notes += [f"{conditions[name].name}: {note}" for note in reader(conditions[name])]
                except RecordingError as error:
                    notes.append(f"{error}: no result")
        with contextlib.suppress(RecordingError):  # named above
            notes += _load_notes(conditions)
        return notes

    @cached_property
    def _body(self) -> BodyModel | None:
        if self.body_file is None:
            return None
        try:
            return read_model(self.body_file.content, self.body_file.name, content_of)
        except StudyError as error:
            first = error.issues[0]
            raise InvalidSetting("body_file", f"line {first.line}, column {first.column}: {first.message}") from None

    @cached_property
    def _markers(self) -> MarkerSet:
        if self.marker_set is None:
            try:
                return bundled_marker_set(self.markers)
            except KeyError as error:
                raise InvalidSetting("markers", str(error.args[0])) from None
        try:
            return read_marker_set(self.marker_set.content, self.marker_set.name)
        except StudyError as error:
            first = error.issues[0]
            raise InvalidSetting("marker_set", f"line {first.line}, column {first.column}: {first.message}") from None

    def evaluate(
        self, design: TrialPreparation, scenario: TrialSource, arrays: Set[str] = frozenset()
    ) -> tuple[TrialOutputs, dict[str, NDArray[Any]]]:
        """Analyse the trial.

        Raises `InvalidDesign` for an unusable recording or setting, and `Diverged` if no frame has joint loads.
        """
        preparing = filled(TrialPreparation, design)
        if self._body is not None and "body" in design:
            raise InvalidDesign("the setting body_file replaces the input body: leave one of them out")
        body = vary_body(self._body or bundled_model(preparing["body"]), cast(Mapping[str, float], preparing))
        try:
            subject, recording, truth = self._trial(body, preparing["grip"], filled(TrialSource, scenario))
            settings = Settings(
                preparation=preparing["preparation"],
                cutoff=preparing["cutoff"],
                weighting=preparing["weighting"],
                contact_weight=preparing["contact_weight"],
                hold_contacts=preparing["hold_contacts"] == "yes",
                tolerance=self.tolerance,
                max_gap=preparing["max_gap"],
                inverse=self.inverse,
            )
            markers = self._calibrate(filled(TrialSource, scenario)) if "recording" in scenario else OWN_NAMES
            visible = recording if preparing["hidden"] == "none" else hide_marker(recording, preparing["hidden"])
            analysis = analyse(subject, visible, settings, markers)
            rebuilt = rebuilt_error(analysis, recording, visible)
            trial_analysis = AnalysedTrial(
                analysis, recording.rate, truth, min(self.noise_above, 0.45 * recording.rate), self.cycle_angle
            )
            _ = trial_analysis.cycles
        except NotRebuilt as error:
            raise Diverged(str(error), reason="not_rebuilt") from None
        except (RecordingError, SubjectError, ValueError) as error:
            raise InvalidDesign(str(error)) from None
        if not analysis.complete_frames.any():
            counts = ", ".join(str(status) for status in np.unique(analysis.status))
            raise Diverged(f"no frame has joint loads (statuses {counts})", reason="no_frames")
        if not trial_analysis.inner_frames.any():
            count = len(analysis.complete_frames)
            text = f"of {count} frames, none with joint loads is at least {ENDS} frames from both ends"
            raise Diverged(text, reason="no_frames")
        return trial_analysis.outputs(rebuilt), trial_analysis.arrays(arrays)

    def _calibrate(self, scenario: TrialSource) -> MarkerSet:
        """The marker set with functional joints by the scenario's movement."""
        movement = scenario.get("functional")
        return self._markers.calibrate(None if movement is None else _read(movement))

    def _trial(
        self, body: BodyModel, grip: Literal["closed", "open"], scenario: TrialSource
    ) -> tuple[Subject, Recording, JointLoads | None]:
        if "recording" in scenario:
            static = scenario.get("static")
            if static is None:
                raise ValueError("a trial from a file needs the file of a static posture: static")
            recording = _read(scenario["recording"])
            if "reactions" in scenario:
                plates = _plates(scenario["reactions"])[0]
                recording = replace(recording, plates=(*recording.plates, *plates))
            mass = scenario.get("mass") or recording.parameters.get("Bodymass")
            if mass is None:
                raise ValueError("the recording does not contain the mass of the subject; give mass")
            return static_subject(body, _read(static), self._calibrate(scenario), float(mass)), recording, None
        seed = scenario["seed"]
        if scenario["exercise"] == "walk":
            trial = walk(cycles=self.cycles, rate=self.rate, skin=self.skin, noise=self.noise, seed=seed)
        else:
            trial = pushup(grip, cycles=self.cycles, rate=self.rate, skin=self.skin, noise=self.noise, seed=seed)
        mass = float(scenario.get("mass", trial.subject.mass))
        return make_subject(body, trial.subject.landmarks, mass), trial.recording, trial.loads


@lru_cache(maxsize=16)
def _read(file: InputFile) -> Recording:
    """A recording, read once per content."""
    return read_recording(file)


def _plates(file: InputFile) -> tuple[tuple[ForcePlate, ...], tuple[str, ...]]:
    """Plates of a table of ground reactions, and the notes of its reader."""
    with errors_about(file.name):
        table = read_table(file)
        return plates_from_table(table), table.notes


def _load_notes(conditions: Mapping[str, Any]) -> list[str]:
    """Notes on the most loaded plate of a trial from a file, if the mass of the subject is known."""
    if "recording" not in conditions:
        return []
    recording, reactions = _read(conditions["recording"]), conditions.get("reactions")
    plates = [*recording.plates, *(_plates(reactions)[0] if reactions is not None else ())]
    mass = conditions.get("mass") or recording.parameters.get("Bodymass")
    if not plates or mass is None:
        return []
    vertical = max((plate.force[:, 1] for plate in plates), key=lambda force: np.nanmax(np.abs(force), initial=0.0))
    return [f"{(reactions or conditions['recording']).name}: {note}" for note in force_notes(vertical, 9.81 * mass)]


#: Notes of the reader of each condition that is a file.
_READERS: dict[str, Callable[[InputFile], tuple[str, ...]]] = {
    "recording": lambda file: (*_read(file).notes, *side_notes(_read(file))),
    "static": lambda file: _read(file).notes,
    "functional": lambda file: _read(file).notes,
    "reactions": lambda file: _plates(file)[1],
}


#: Segments by the beginning of their names, whose masses a design may scale together.
_GROUPS = {
    "trunk_mass": ("head", "thorax", "pelvis", "clavicle", "scapula"),
    "arm_mass": ("humerus", "ulna", "radius", "hand"),
    "leg_mass": ("thigh", "shank", "foot"),
}


def bundled_model(name: str) -> BodyModel:
    """The bundled model of this name; raises `InvalidDesign` for an unknown one."""
    if name not in bundled_names():
        raise InvalidDesign(f"there is no model '{name}'; known: {', '.join(bundled_names())}")
    return load_model(name)


def vary_body(body: BodyModel, factors: Mapping[str, float]) -> BodyModel:
    """The model with the masses of groups of segments and the radii of surfaces scaled by factors of a design.

    Tensors that are given scale with the mass.
    """
    segments = dict(body.segments)
    for group, beginnings in _GROUPS.items():
        factor = factors[group]
        for name, segment in segments.items():
            if factor != 1.0 and name.startswith(beginnings):
                i = segment.inertia
                inertia = replace(
                    i,
                    mass=None if i.mass is None else factor * i.mass,
                    mass_percent=None if i.mass_percent is None else factor * i.mass_percent,
                    mass_less=factor * i.mass_less,
                    tensor=None if i.tensor is None else tuple(factor * value for value in i.tensor),  # type: ignore[arg-type]
                )
                segments[name] = replace(segment, inertia=inertia)
    joints = dict(body.joints)
    factor = factors["ellipsoid"]
    for name, joint in joints.items():
        if factor != 1.0 and joint.radii is not None:
            x, y, z = joint.radii
            joints[name] = replace(joint, radii=(factor * x, factor * y, factor * z))
    varied_body = replace(body, segments=segments, joints=joints)
    object.__setattr__(varied_body, "mirrored", body.mirrored)
    return varied_body
