"""The files of a recorded walk as conditions of a model: what they contain, and what a person would see in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Required, TypedDict

from designopt_muscle.models.plausibility import pose_notes
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_table
from designopt_recordings.plausibility import force_notes

from designopt.plugin import InputFile, InvalidDesign, InvalidSetting
from designopt.plugin import Quantity as Q
from designopt_walking.programs.track import RecordedWalk, WalkTables
from designopt_walking.walker import Walker


class WalkRecording(TypedDict, total=False):
    """What was recorded."""

    motion: Required[Annotated[InputFile, Q("", "coordinates, and speeds if there are any (STO, MOT or CSV)")]]
    ground: Annotated[InputFile, Q("", "ground forces of both feet (STO, MOT or CSV)")]


@dataclass(frozen=True)
class RecordingReader:
    """Reads recorded walks; the fields are those of `WalkTables`."""

    columns: Mapping[str, str]
    window: tuple[float, float] | None
    cutoff: float | None
    axes: str = "xy"
    unrecorded: Collection[str] = ()

    def walk(self, files: Mapping[str, Any], walker: Walker) -> RecordedWalk:
        """The walk in `files`, conditions named as in `WalkRecording`. Raises `InvalidDesign` for an unusable one."""
        ground = files.get("ground")
        try:
            tables = WalkTables(
                read_table(files["motion"]),
                None if ground is None else read_table(ground),
                self.columns,
                self.window,
                self.cutoff,
                self.axes,
                self.unrecorded,
            )
            return tables.walk(walker)
        except RecordingError as error:
            raise InvalidDesign(str(error)) from None

    def notes(self, files: Mapping[str, Any], walker: Walker) -> list[str]:
        """What the readers of `files` replaced or assumed, and what a person would see in the curves. Raises
        `InvalidSetting` for an unreadable file."""
        notes = []
        for name in ("motion", "ground"):
            if (file := files.get(name)) is None:
                continue
            try:
                table = read_table(file)
                if name == "motion":
                    radians = table.radians([c for c in walker.angles if c not in self.unrecorded])
                    table_notes = [*radians.notes, *pose_notes(radians, walker.model)]
                else:
                    labels = [f"{prefix}y" for prefix in self.columns.values()]
                    total = sum((table.column(label) for label in labels), 0.0 * table.time)
                    table_notes = [*table.notes, *force_notes(total, walker.weight)]
            except RecordingError as error:
                raise InvalidSetting(name, str(error)) from None
            notes += [f"{file.name}: {note}" for note in table_notes]
        return notes
