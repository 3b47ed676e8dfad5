"""The files of one trial, read: model of the subject, markers or coordinates, plates, external loads."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from designopt_mechanics.robot_files.xml import ModelError
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.markers.problem import coordinate_targets
from designopt_muscle.markers.status import MarkerError
from designopt_muscle.markers.tasks import IkTasks, read_ik_setup
from designopt_muscle.models.dynamics import read_loads
from designopt_muscle.models.errors import TrialError
from designopt_muscle.osim.markers import OsimMarker, read_markers
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.read import read_model
from designopt_muscle.scaling.apply import scaled
from designopt_muscle.scaling.factors import moved_markers
from designopt_muscle.scaling.scale import scale_subject
from designopt_muscle.scaling.setup import Measurement, Method, ScaleSetup, read_scale_setup
from designopt_recordings.errors import RecordingError, about
from designopt_recordings.files.read import read_recording, read_table
from designopt_recordings.loads.tables import plates_from_table
from designopt_recordings.plate import ForcePlate
from designopt_recordings.recording import Recording
from designopt_recordings.table import TimeTable

from designopt.arrays import Floats
from designopt.plugin import InputFile
from designopt.study.language.findings import nearest_or_all

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Conditions of a scenario that are files.
FILE_CONDITIONS = (
    "recording", "motion", "static", "reactions", "external_loads", "emg", "subject_model", "targets",
)  # fmt: skip


#: A mass beyond this times that of the model, or below its inverse, is probably in another unit.
_MASSES = 5.0


@dataclass(frozen=True)
class Scaling:
    """How the model is scaled: by OpenSim's `setup`, or by least squares on all markers of the static pose
    (`to_static`), `measurements` and `factors` (3,) of bodies; each replaces the factors of the one before."""

    setup: InputFile | None = None
    to_static: bool = False
    measurements: tuple[Measurement, ...] = ()
    factors: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)

    @property
    def needs_static(self) -> bool:
        """Whether it reads the markers of a static pose."""
        return self.setup is not None or self.to_static or bool(self.measurements)

    @property
    def methods(self) -> tuple[Method, ...]:
        """Those of a scaling without a set-up."""
        use: dict[Method, bool] = {
            "least_squares": self.to_static,
            "measurements": bool(self.measurements),
            "manualScale": bool(self.factors),
        }
        return tuple(method for method, used in use.items() if used)


@dataclass(frozen=True)
class SubjectFiles:
    """Settings of the subject: the generic or scaled `model`, its `scaling`, and the files of a `marker_set` and of the
    `tasks` (weights) of inverse kinematics, with further `coordinate_weights`."""

    model: InputFile
    scaling: Scaling = field(default_factory=Scaling)
    marker_set: InputFile | None = None
    tasks: InputFile | None = None
    coordinate_weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class TrialFiles:
    """One trial. `content` is the subject's model file, scaled if the settings say so, and `model` the same as values.

    `recording` are measured markers, placed on the model as `markers` say and weighted by `tasks`; `table` are
    coordinates, in place of a recording. `plates` are force plates; `assignments` (OpenSim's ExternalLoads) with the
    table `reactions` are loads on bodies, in place of plates, and `loads_name` is the file of either. `notes` are
    remarks of the readers.
    """

    name: str
    content: bytes
    model: OsimModel
    markers: tuple[OsimMarker, ...]
    tasks: IkTasks
    recording: Recording | None
    table: TimeTable | None
    plates: tuple[ForcePlate, ...]
    assignments: InputFile | None
    reactions: TimeTable | None
    notes: tuple[str, ...]
    loads_name: str = ""

    @property
    def times(self) -> Floats:
        """(n,) s of the frames of markers or coordinates."""
        series = self.recording or self.table
        assert series is not None
        return series.time


@contextmanager
def readable(file: InputFile) -> Iterator[None]:
    """What is wrong with a file becomes a `TrialError` that begins with its name."""
    try:
        with about(file.name):
            yield
    except (RecordingError, ModelError, MarkerError) as error:
        text = str(error)
        raise TrialError(text if text.startswith(file.name) else f"{file.name}: {text}") from None


def read_files(settings: SubjectFiles, conditions: Mapping[str, Any]) -> TrialFiles:
    """The files of a trial. Raises `TrialError` that names the file, for unusable ones and for combinations without
    a meaning."""
    files: dict[str, InputFile | None] = {name: conditions.get(name) for name in FILE_CONDITIONS}
    _refuse(files, settings)
    content, markers, notes = _subject(settings, files, conditions.get("mass"))
    recording = table = None
    if (file := files["recording"]) is not None:
        with readable(file):
            recording = read_recording(file)
        notes += [f"{file.name}: {note}" for note in recording.notes]
    elif (file := files["motion"]) is not None:
        with readable(file):
            table = read_table(file)
        notes += [f"{file.name}: {note}" for note in table.notes]
    assert file is not None
    reactions, plates = None, () if recording is None else recording.plates
    if (loads := files["reactions"]) is not None:
        with readable(loads):
            reactions = read_table(loads)
            if files["external_loads"] is None:
                plates = (*plates, *plates_from_table(reactions))
        notes += [f"{loads.name}: {note}" for note in reactions.notes]
    subject, tasks = read_model(content), IkTasks()
    if recording is not None:
        tasks = _tasks(settings, files["targets"], subject, recording.time)
    if (assignment := files["external_loads"]) is not None and reactions is not None:
        read_loads(assignment, reactions, kinematics(subject, {}), reactions.time[:1])
    name = PurePath(file.name).stem
    return TrialFiles(
        name, content, subject, markers, tasks, recording, table, plates, files["external_loads"],
        reactions, tuple(notes), (loads or file).name,
    )  # fmt: skip


def _tasks(settings: SubjectFiles, targets: InputFile | None, model: OsimModel, time: Floats) -> IkTasks:
    """The weights of inverse kinematics; coordinates of the settings follow the table `targets`, if there is one."""
    tasks = IkTasks()
    if settings.tasks is not None:
        with readable(settings.tasks):
            tasks = replace(read_ik_setup(settings.tasks.content).tasks, window=None)
    weights = settings.coordinate_weights
    tasks = replace(tasks, coordinates={**tasks.coordinates, **weights})
    if targets is None:
        followed = [name for name in tasks.from_table if tasks.coordinates.get(name)]
        if followed and settings.tasks is not None:
            raise TrialError(
                f"{settings.tasks.name}: the task of '{min(followed)}' follows a table of coordinates: name it with"
                " targets"
            )
        return tasks
    with readable(targets):
        table = read_table(targets)
        tasks = replace(tasks, from_table=tasks.from_table | weights.keys(), references=table)
        if not any(tasks.coordinates.get(name) for name in tasks.from_table):
            raise MarkerError("no coordinate follows this table: weight it with the setting coordinate_weights")
        coordinate_targets(model, tasks, time)
    return tasks


def resized(files: TrialFiles, factor: float) -> TrialFiles:
    """The files with all lengths of the subject's model, and the places of its markers, times `factor`; masses stay."""
    if factor == 1.0:
        return files
    model = files.model
    factors = {body.name: np.full(3, factor) for body in model.bodies}
    content = scaled(files.content, factors, float(sum(body.mass for body in model.bodies)))
    return replace(files, content=content, model=read_model(content), markers=moved_markers(files.markers, factors))


def _refuse(files: Mapping[str, InputFile | None], settings: SubjectFiles) -> None:
    """Raise `TrialError` for files that contradict or miss each other."""
    if (files["recording"] is None) == (files["motion"] is None):
        raise TrialError(
            "a trial has either markers (recording: a C3D or TRC file) or coordinates (motion: a MOT, STO or CSV"
            f" file); this one has {'neither' if files['recording'] is None else 'both'}"
        )
    if files["targets"] is not None and files["recording"] is None:
        raise TrialError("targets draw coordinates in inverse kinematics; a trial without markers has none")
    if files["external_loads"] is not None and files["reactions"] is None:
        raise TrialError(
            "external_loads assigns columns of a table of forces to bodies: name that table with reactions"
        )
    if settings.scaling.needs_static and files["static"] is None and files["subject_model"] is None:
        raise TrialError("scaling needs the recording of a static pose: name it with static")


def _subject(
    settings: SubjectFiles, files: Mapping[str, InputFile | None], mass: float | None
) -> tuple[bytes, tuple[OsimMarker, ...], list[str]]:
    """The subject's model file, the markers on it, and notes."""
    scaled_before, static, scaling = files["subject_model"], files["static"], settings.scaling
    scales = scaled_before is None and static is not None and (scaling.setup is not None or bool(scaling.methods))
    source = scaled_before or settings.model
    with readable(source):
        model = read_model(source.content)
        has_markers = (files["recording"] is not None or scales) and (
            settings.marker_set is None or scaled_before is not None
        )
        try:
            markers = read_markers(source.content) if has_markers else ()
        except ModelError as error:
            raise MarkerError(f"{error}: name a file of them with the setting marker_set") from None
    notes = [f"{source.name}: {note}" for note in model.notes]
    generic = sum(body.mass for body in model.bodies)
    if mass is not None and generic > 0.0 and not 1.0 / _MASSES < mass / generic < _MASSES:
        notes.append(
            f"the subject's mass of {mass:g} kg is {mass / generic:.3g} times that of {source.name}: check its unit"
        )
    if settings.marker_set is not None and scaled_before is None:
        with readable(settings.marker_set):
            markers = read_markers(settings.marker_set.content)
    mass = None if mass is None else float(mass)
    if scales and static is not None:
        with readable(static):
            recording = read_recording(static)
            _check_measurements(scaling.measurements, recording)
            subject = scale_subject(source.content, recording, _setup(scaling, mass), markers)
        return subject.content, subject.markers, [*notes, *(f"{static.name}: {note}" for note in subject.notes)]
    factors = {body: np.array(factor) for body, factor in scaling.factors.items()}
    if scaled_before is None and (factors or mass is not None):
        return scaled(source.content, factors, mass), moved_markers(markers, factors), notes
    return source.content, markers, notes


def _setup(scaling: Scaling, mass: float | None) -> ScaleSetup:
    """The set-up of a scaling for a subject; a `mass` (kg) replaces that of the file."""
    setup = ScaleSetup(
        measurements=scaling.measurements, manual=scaling.factors, order=scaling.methods, placing=IkTasks()
    )
    if scaling.setup is not None:
        with readable(scaling.setup):
            setup = read_scale_setup(scaling.setup.content)
    return setup if mass is None else replace(setup, mass=mass)


def _check_measurements(measurements: tuple[Measurement, ...], static: Recording) -> None:
    for measurement in measurements:
        for name in (name for pair in measurement.pairs for name in pair):
            if name not in static.marker_names or not np.isfinite(static.marker(name)).all(axis=1).any():
                near = nearest_or_all(name, sorted({*static.marker_names} - {name}))
                raise MarkerError(f"the measurement '{measurement.name}' needs the marker '{name}'{near}")
