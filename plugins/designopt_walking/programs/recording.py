"""Recorded walks: what files contain, splines through their tables, and what a person would see in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Required, TypedDict

import numpy as np
from designopt_muscle.models.plausibility import pose_notes
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_table
from designopt_recordings.plausibility import force_notes
from designopt_recordings.signals.filters import lowpass
from designopt_recordings.table import TimeTable

from designopt.arrays import Floats
from designopt.collocation import PhaseSolution
from designopt.lazy import scipy
from designopt.plugin import InputFile, InvalidDesign, InvalidSetting
from designopt.plugin import Quantity as Q
from designopt_walking.programs.recorded_posture import RecordedPosture
from designopt_walking.system import side_of
from designopt_walking.walker import Walker

#: Beginnings of the columns of ground forces by side, as in files of OpenSim.
FORCE_COLUMNS = {"r": "ground_force_r_v", "l": "ground_force_l_v"}
#: Degree of the splines through a recording, and samples between its rows at which their cubics are formed.
DEGREE, DENSER = 5, 8


class WalkRecording(TypedDict, total=False):
    """The recorded files of a walk."""

    motion: Required[Annotated[InputFile, Q("", "coordinates, and speeds if there are any (STO, MOT or CSV)")]]
    ground: Annotated[InputFile, Q("", "ground forces of both feet (STO, MOT or CSV)")]


@dataclass(frozen=True, eq=False)
class RecordedWalk:
    """A recorded part of a walk, which begins at the time `begin` (s) of its table: at `time` (n,) s, from 0 on, the
    `motion` (n,) by coordinate and ``<coordinate>_speed``, and recorded `forces` (n,) N on the feet,
    ``ground_x_<side>``, ``ground_y_<side>`` and so on."""

    begin: float
    time: Floats
    motion: Mapping[str, Floats]
    forces: Mapping[str, Floats]

    @property
    def duration(self) -> float:
        """The duration (s)."""
        return float(self.time[-1])

    @property
    def values(self) -> dict[str, Floats]:
        """Motion and forces (n,) by name."""
        return {**self.motion, **self.forces}

    def distances(self, phase: PhaseSolution) -> dict[str, Floats]:
        """The distances of a solved motion from the recorded `values`, at the times of the recording (n,), by name."""
        trajectories = phase.interpolate(np.minimum(self.time, phase.tf))
        return {name: trajectories[name] - column for name, column in self.values.items()}


@dataclass(frozen=True)
class RecordingReader:
    """How recorded walks are read: `columns` are the beginnings of the columns of ground forces by side, `window` (s)
    the part that counts, all of the motion if None; `cutoff` (Hz) of a low-pass filter for the coordinates, whose
    recorded speeds are then not used; `axes` of the ground forces; `unrecorded` coordinates, which the motion need not
    have."""

    columns: Mapping[str, str] = field(default_factory=FORCE_COLUMNS.copy)
    window: tuple[float, float] | None = None
    cutoff: float | None = None
    axes: str = "xy"
    unrecorded: Collection[str] = ()

    def walk(self, walker: Walker, motion: TimeTable, ground: TimeTable | None = None) -> RecordedWalk:
        """The recording for the coordinates and feet of `walker`, by quintic splines through the tables.

        Raises `RecordingError` for columns that are not there, gaps, and tables that are shorter than the window.
        """
        coordinates = [name for name in walker.coordinates if name not in self.unrecorded]
        motion = motion.radians([name for name in walker.angles if name in coordinates])
        if self.cutoff is not None:
            motion = _filter_columns(motion, [motion.label(name, "value") for name in coordinates], self.cutoff)
        begin, end = self.window or (float(motion.time[0]), float(motion.time[-1]))
        if not begin < end:
            raise RecordingError(f"the window from {begin:g} to {end:g} s is empty")
        rows = int(np.count_nonzero((motion.time >= begin) & (motion.time <= end)))
        time = np.linspace(begin, end, DENSER * max(rows - 1, DEGREE) + 1)
        of_motion: dict[str, Floats] = {}
        for name in coordinates:
            spline = _spline(motion, motion.label(name, "value"), begin, end)
            of_motion[name] = np.asarray(spline(time), dtype=np.float64)
            speed_labels = [label for label in motion.names if label.split("/")[-2:] == [name, "speed"]]
            rate = _spline(motion, speed_labels[0], begin, end) if speed_labels else spline.derivative()
            of_motion[f"{name}_speed"] = np.asarray(rate(time), dtype=np.float64)
        forces: dict[str, Floats] = {}
        if ground is not None:
            for side in dict.fromkeys(map(side_of, walker.ground_forces)):
                if side not in self.columns:
                    raise RecordingError(
                        f"no column of the ground forces is named for the foot '{side}' (setting force_columns)"
                    )
                for axis in self.axes:
                    spline = _spline(ground, f"{self.columns[side]}{axis}", begin, end)
                    forces[f"ground_{axis}_{side}"] = np.asarray(spline(time), dtype=np.float64)
        return RecordedWalk(begin, time - begin, of_motion, forces)

    def of_files(self, walker: Walker, files: Mapping[str, Any]) -> RecordedWalk:
        """The walk in `files`, conditions named as in `WalkRecording`. Raises `InvalidDesign` for an unusable one."""
        ground = files.get("ground")
        try:
            return self.walk(walker, read_table(files["motion"]), None if ground is None else read_table(ground))
        except RecordingError as error:
            raise InvalidDesign(str(error)) from None

    def checked(self, walker: Walker, conditions: Mapping[str, Any]) -> RecordedWalk | None:
        """The walk in the files among `conditions`; None before there is a motion. Raises `InvalidSetting` that names
        the unusable file."""
        walk, files = None, dict[str, Any]()
        for name in WalkRecording.__annotations__ if conditions.get("motion") is not None else ():
            if conditions.get(name) is None:
                continue
            files[name] = conditions[name]
            try:
                walk = self.of_files(walker, files)
            except InvalidDesign as error:
                raise InvalidSetting(name, str(error)) from None
        return walk

    def notes(self, walker: Walker, files: Mapping[str, Any]) -> list[str]:
        """Sentences on what the readers of `files` replaced or assumed, and on what a person would see in the curves.
        Raises `InvalidSetting` for an unreadable file."""
        notes, cause, sliding = [], *self._of_posture(walker, files)
        for name in WalkRecording.__annotations__:
            if (file := files.get(name)) is None:
                continue
            try:
                table = read_table(file)
                if name == "motion":
                    radians = table.radians([c for c in walker.angles if c not in self.unrecorded])
                    of_pose = [cause] if cause else pose_notes(radians, walker.model) or sliding
                    table_notes = [*radians.notes, *of_pose]
                else:
                    labels = [f"{prefix}y" for prefix in self.columns.values()]
                    total = sum((table.column(label) for label in labels), 0.0 * table.time)
                    table_notes = [*table.notes, *force_notes(total, walker.weight)]
            except RecordingError as error:
                raise InvalidSetting(name, str(error)) from None
            notes += [f"{file.name}: {note}" for note in table_notes]
        return notes

    def _of_posture(self, walker: Walker, files: Mapping[str, Any]) -> tuple[str, list[str]]:
        """Why no foot stands in the recorded posture, or else notes on it; nothing of files that cannot be used."""
        if files.get("motion") is None:
            return "", []
        try:
            walk = self.of_files(walker, files)
        except InvalidDesign:
            return "", []
        posture = RecordedPosture.sampled(walker, walk.time, walk.motion, walk.forces)
        if not posture.has_feet:
            return "", []
        cause = posture.cause()
        return cause, [] if cause else posture.notes()


def root_mean_square(values: Any) -> float:
    """The root mean square of all `values`."""
    return float(np.sqrt(np.mean(np.square(values))))


def _filter_columns(motion: TimeTable, labels: list[str], cutoff: float) -> TimeTable:
    """The columns `labels` of `motion`, filtered."""
    steps = np.diff(motion.time)
    if np.ptp(steps) > 1e-3 * steps.mean():
        raise RecordingError("a filter needs equal steps of time; resample the motion, or leave the cut-off out")
    columns = np.column_stack([motion.column(label) for label in labels])
    return TimeTable(motion.time, tuple(labels), lowpass(columns, 1.0 / float(steps.mean()), cutoff))


def _spline(table: TimeTable, label: str, begin: float, end: float) -> Any:
    """The spline of a column that covers a window."""
    values = table.column(label)
    if not np.isfinite(values).all():
        raise RecordingError(f"column '{label}' has gaps; fill them")
    slack = 1e-6 * (end - begin)
    if table.time[0] > begin + slack or table.time[-1] < end - slack:
        interval = f"{table.time[0]:g} to {table.time[-1]:g} s"
        raise RecordingError(f"column '{label}' is recorded from {interval}, not from {begin:g} to {end:g} s")
    if len(table.time) <= DEGREE:
        raise RecordingError(f"column '{label}' has {len(table.time)} rows; a spline needs at least {DEGREE + 1}")
    return scipy.interpolate.make_interp_spline(table.time, values, k=DEGREE)
