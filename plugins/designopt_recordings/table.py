"""A table of signals over time, as OpenSim writes it: coordinates, moments, ground reactions, activations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from designopt.arrays import Floats
from designopt_recordings.arrays import checked_array, increasing, position, unique_names
from designopt_recordings.errors import RecordingError

_KINDS = ("value", "speed", "activation")  # last parts of the paths of states


#: Rotations of a table, and the change (degrees) of one, from which a motion below a few degrees is doubtful.
_SEVERAL, _MOVING = 3, 0.2


@dataclass(frozen=True, eq=False)
class TimeTable:
    """`values` (n, c) of columns `names` at `time` (n,) s, as in the file.

    `in_degrees` is the unit of the rotations; `assumption` is the reason if the file does not state it. `title` is the
    file's first line, `notes` the anomalies found by the reader, one sentence each.
    """

    time: Floats
    names: tuple[str, ...]
    values: Floats
    in_degrees: bool = False
    title: str = ""
    notes: tuple[str, ...] = ()
    assumption: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", checked_array("time", self.time, (None,)))
        object.__setattr__(self, "names", unique_names("column", self.names))
        object.__setattr__(
            self, "values", checked_array("values of columns", self.values, (len(self.time), len(self.names)))
        )
        increasing("time", self.time)

    def column(self, name: str) -> Floats:
        """(n,) values of the column `name`, a label as in the file or a coordinate's name (see `label`)."""
        return self.values[:, position("column", self.label(name), self.names)]

    def label(self, coordinate: str, kind: str = "value") -> str:
        """The column of a coordinate: its plain name, or the path ``.../coordinate/kind`` that ends so.

        Raises `RecordingError` where no column or more than one fits.
        """
        if coordinate in self.names:
            return coordinate
        paths = {name: ["", *name.split("/")] for name in self.names}
        fitting = [n for n, parts in paths.items() if parts[-2:] == [coordinate, kind]]
        fitting = fitting or [n for n, parts in paths.items() if parts[-1] == coordinate]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise RecordingError(f"columns {' and '.join(fitting)} both fit '{coordinate}'; name one of them in full")
        coordinates = [parts[-2] if parts[-1] in _KINDS else parts[-1] for parts in paths.values()]
        position("column", coordinate, sorted(set(coordinates)))
        raise RecordingError(f"column '{coordinate}' exists, but not as '{coordinate}/{kind}'")

    def radians(self, rotations: Iterable[str]) -> TimeTable:
        """The table with the columns of these coordinates in rad, those of their speeds (``.../coordinate/speed``) in
        rad/s; others, translations, are unchanged.

        A note is added for an assumed unit, for a rotation beyond a whole turn in a table in radians, which was
        probably written in degrees, and for several moving rotations below a few degrees, perhaps in radians.
        """
        coordinates = list(rotations)
        labels = [self.label(name) for name in coordinates]
        columns = [self.names.index(label) for label in labels]
        values, notes = self.values.copy(), list(self.notes)
        if labels and self.assumption:
            notes.append(self.assumption)
        if self.in_degrees:
            moving = values[:, columns]
            moving = moving[np.isfinite(moving).all(axis=1)]
            largest = np.max(np.abs(moving), initial=0.0)
            if min(moving.shape) >= _SEVERAL and largest < np.pi and np.ptp(moving, axis=0).max() > _MOVING:
                notes.append(
                    f"the rotations reach at most {largest:.3g} in a table that says degrees; they are perhaps in"
                    " radians"
                )
            paths = [name.split("/")[-2:] for name in self.names]
            of_speeds = [k for k, path in enumerate(paths) if path[-1] == "speed" and path[0] in coordinates]
            values[:, [*columns, *of_speeds]] = np.radians(values[:, [*columns, *of_speeds]])
        else:
            for label, column in zip(labels, columns, strict=True):
                largest = np.max(np.abs(values[:, column]), initial=0.0, where=np.isfinite(values[:, column]))
                if largest > 2.0 * np.pi:
                    notes.append(
                        f"column '{label}' reaches {largest:.4g} in a table that says radians; it is probably in"
                        " degrees"
                    )
        return replace(self, values=values, in_degrees=False, notes=tuple(notes), assumption="")
