"""The files of one trial, read: model of the subject, markers or coordinates, plates, external loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

import numpy as np
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.geometry.loads import loads_without_effect
from designopt_muscle.markers.fit import MotionFit
from designopt_muscle.markers.problem import coordinate_targets
from designopt_muscle.markers.status import MarkerError
from designopt_muscle.markers.tasks import IkSetup, IkTasks, read_ik_setup
from designopt_muscle.models.columns import present_coordinates
from designopt_muscle.models.dynamics import read_loads
from designopt_muscle.models.errors import TrialError, readable
from designopt_muscle.models.plausibility import pose_notes
from designopt_muscle.osim.markers import OsimMarker
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.read import read_model
from designopt_muscle.scaling.apply import scale_model
from designopt_muscle.scaling.factors import moved_markers
from designopt_recordings.files.read import read_recording, read_table
from designopt_recordings.loads.tables import plates_from_table
from designopt_recordings.plate import ForcePlate
from designopt_recordings.recording import Recording
from designopt_recordings.table import TimeTable

from designopt.arrays import Floats
from designopt.plugin import InputFile
from designopt_laboratory.trial.subject import (
    SubjectSettings,
    static_doubts,
    subject_doubts,
    subject_of,
    unread,
)

#: Conditions of a scenario that are files.
FILE_CONDITIONS = (
    "recording", "motion", "static", "reactions", "external_loads", "emg", "subject_model", "targets",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class TrialFiles:
    """One trial. `content` is the subject's model file, scaled if the settings say so, and `model` the same as values.

    `recording` are measured markers, placed on the model as `markers` say and weighted by `tasks`; `table` are
    coordinates, in place of a recording. `plates` are force plates; `assignments` (OpenSim's ExternalLoads) with the
    table `reactions` are loads on bodies, in place of plates, and `loads_name` is the file of either; `time_offset` of
    the trial is in their times. `notes` are remarks of the readers, `doubts` what makes the trial doubtful. `window`
    (s) is the part of the trial that has results. `factors` (3,) by body have scaled the model, in the pose `static`.
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
    window: tuple[float, float] | None = None
    factors: Mapping[str, Floats] = field(default_factory=dict)
    static: MotionFit | None = None
    doubts: tuple[str, ...] = ()
    time_offset: float = 0.0

    @property
    def times(self) -> Floats:
        """(n,) s of the frames of markers or coordinates."""
        series = self.recording or self.table
        assert series is not None
        return series.time


def read_files(settings: SubjectSettings, conditions: Mapping[str, Any]) -> TrialFiles:
    """The files of a trial. Raises `TrialError` that names the file, for unusable ones and for combinations without
    a meaning."""
    files: dict[str, InputFile | None] = {name: conditions.get(name) for name in FILE_CONDITIONS}
    movements = tuple(conditions.get("functional", ()))
    _refuse(files, settings, movements)
    subject = subject_of(settings, files, movements, conditions.get("mass"))
    notes, model, setup = list(subject.notes), subject.model, _ik_setup(settings)
    tasks, window, recording, table = IkTasks(), settings.window, None, None
    doubts = subject_doubts(settings, files, subject, conditions.get("mass"))
    if (file := files["recording"]) is not None:
        with readable(file):
            recording = settings.markers.on_model(read_recording(file))
        tasks = _tasks(settings, setup, files["targets"], model, recording.time)
        doubts = [*static_doubts(files["static"], settings, subject, recording), *doubts]
        with readable(file):
            settings.markers.check(model, subject.markers, recording, tasks)
        notes += [f"{file.name}: {note}" for note in settings.markers.notes(recording)]
        if files["static"] is not None and files["static"].digest == file.digest:
            doubts.append(
                f"{file.name} is the static pose, too: a trial in which nothing moves has no meaningful loads"
            )
        window, window_notes = _window(settings, setup, file.name, recording.time)
        notes += window_notes
        notes += [f"{file.name}: {note}" for note in recording.notes]
    elif (file := files["motion"]) is not None:
        with readable(file):
            table = read_table(file)
            turning = {c.name for c in model.coordinates if c.rotational and c.name in model.free}
            posture = table.radians(
                [name for name in model.free if name in turning & present_coordinates(table, model.names)]
            )
        notes += [f"{file.name}: {note}" for note in table.notes]
        doubts = [*(f"{file.name}: {note}" for note in pose_notes(posture, model)), *doubts]
    assert file is not None
    reactions, plates, offset = None, () if recording is None else recording.plates, conditions.get("time_offset", 0.0)
    plates = tuple(replace(plate, start=plate.start + offset) for plate in plates)
    if (loads := files["reactions"]) is not None:
        with readable(loads):
            reactions = read_table(loads)
            reactions = replace(reactions, time=reactions.time + offset)
            if files["external_loads"] is None:
                plates = (*plates, *plates_from_table(reactions))
        notes += [f"{loads.name}: {note}" for note in reactions.notes]
    if (assignment := files["external_loads"]) is not None and reactions is not None:
        read_loads(assignment, reactions, kinematics(model, {}), reactions.time[:1])
        notes += unread(assignment, loads_without_effect(assignment.content))
    name = PurePath(file.name).stem
    return TrialFiles(
        name, subject.content, model, subject.markers, tasks, recording, table, plates, files["external_loads"],
        reactions, tuple(notes), (loads or file).name, window, subject.factors, subject.static,
        tuple(doubts), offset,
    )  # fmt: skip


def _ik_setup(settings: SubjectSettings) -> IkSetup:
    if settings.tasks is None:
        return IkSetup(IkTasks())
    with readable(settings.tasks):
        return read_ik_setup(settings.tasks.content)


def _window(
    settings: SubjectSettings, setup: IkSetup, recording: str, time: Floats
) -> tuple[tuple[float, float] | None, list[str]]:
    """The part of a trial (s) that has results: of the study, else of a set-up for this recording; and notes.

    Raises `TrialError` for a set-up whose time is outside of the recording's.
    """
    window, file = setup.tasks.window, settings.tasks
    if file is None:
        return settings.window, []
    notes = unread(file, setup.without_effect)
    if window is None or settings.window is not None:
        note = f"{file.name}: the study's window replaces the time_range"
        return settings.window, [*notes, *([] if window is None else [note])]
    span = f"the time_range from {window[0]:g} to {window[1]:g} s"
    trial = setup.marker_file.replace("\\", "/")
    if trial and PurePath(trial).stem != PurePath(recording).stem:
        return None, [
            *notes,
            f"{file.name}: {span} is for {PurePath(trial).name}, not for {recording}, and has no effect",
        ]
    if window[1] < time[0] or window[0] > time[-1]:
        raise TrialError(
            f"{file.name}: {span} is outside of {recording}, which runs from {time[0]:g} to {time[-1]:g} s: correct it,"
            " or state the window in the study"
        )
    return window, [*notes, f"{file.name}: results are within {span}"]


def _tasks(
    settings: SubjectSettings, setup: IkSetup, targets: InputFile | None, model: OsimModel, time: Floats
) -> IkTasks:
    """The weights of inverse kinematics; coordinates of the settings follow the table `targets`, if there is one."""
    weights = settings.coordinate_weights
    tasks = replace(setup.tasks, window=None, coordinates={**setup.tasks.coordinates, **weights})
    if targets is None:
        table_tasks = [name for name in tasks.from_table if tasks.coordinates.get(name)]
        if table_tasks and settings.tasks is not None:
            raise TrialError(
                f"{settings.tasks.name}: the task of '{min(table_tasks)}' follows a table of coordinates: name it with"
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


def resize(files: TrialFiles, factor: float) -> TrialFiles:
    """The files with all lengths of the subject's model, and the places of its markers, times `factor`; masses stay."""
    if factor == 1.0:
        return files
    model = files.model
    factors = {body.name: np.full(3, factor) for body in model.bodies}
    content = scale_model(files.content, factors, float(sum(body.mass for body in model.bodies)))
    return replace(
        files,
        content=content,
        model=read_model(content),
        markers=moved_markers(files.markers, factors),
        factors={name: files.factors.get(name, 1.0) * size for name, size in factors.items()},
    )


def _refuse(files: Mapping[str, InputFile | None], settings: SubjectSettings, movements: tuple[InputFile, ...]) -> None:
    """Raise `TrialError` for files that contradict or miss each other."""
    if (files["recording"] is None) == (files["motion"] is None):
        raise TrialError(
            "a trial has either markers (recording: a C3D or TRC file) or coordinates (motion: a MOT, STO or CSV"
            f" file); this one has {'neither' if files['recording'] is None else 'both'}"
        )
    if files["targets"] is not None and files["recording"] is None:
        raise TrialError("targets draw coordinates in inverse kinematics; a trial without markers has none")
    if (loads := files["external_loads"]) is not None and files["reactions"] is None:
        raise TrialError(
            f"{loads.name}: external_loads assigns columns of a table of forces to bodies: name that table with"
            " reactions"
        )
    if settings.scaling.functional and not movements and files["subject_model"] is None:
        raise TrialError("functional_joints need the recording of their movement: name it with functional")
    if movements and not settings.scaling.functional:
        raise TrialError("the movement 'functional' needs the setting functional_joints, the joints that it gives")
    if movements and (model := files["subject_model"]) is not None:
        raise TrialError(
            f"{movements[0].name}: the movement gives joints to the model that is scaled, but {model.name} is the"
            " subject's own (subject_model): leave out one of the two"
        )
    if settings.scaling.needs_static and files["static"] is None and files["subject_model"] is None:
        raise TrialError("scaling needs the recording of a static pose: name it with static")
