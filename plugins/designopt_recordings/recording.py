"""A recording: what one trial of a laboratory holds, in SI units and one frame of axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from designopt.arrays import Floats, Mask
from designopt_recordings.arrays import checked_array, increasing, position, unique_names
from designopt_recordings.channels import Channels
from designopt_recordings.errors import RecordingError
from designopt_recordings.plate import ForcePlate
from designopt_recordings.signals.even_steps import ROUNDED


@dataclass(frozen=True)
class MarkedEvent:
    """Something marked in time: `label` ("Foot Strike"), `side` ("Left", "Right", "General" or ""), `time` s."""

    label: str
    time: float
    side: str = ""


@dataclass(frozen=True, eq=False)
class Points:
    """Results (n, m, 3) that the laboratory's software stored frame by frame: joint angles, forces, moments, powers.

    `kinds` are "angle", "force", "moment", "power", "scalar" or a kind of the file's; `units` are the units of
    `values`, SI, for a file that states its units truly. Axes are those of the software, never turned.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    units: tuple[str, ...]
    values: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", unique_names("result", self.names))
        object.__setattr__(self, "values", checked_array("values of results", self.values, (None, len(self.names), 3)))
        if not len(self.names) == len(self.kinds) == len(self.units):
            raise RecordingError(f"{len(self.names)} results,  {len(self.kinds)} kinds, {len(self.units)} units")

    def result(self, name: str) -> Floats:
        """(n, 3) values of one result; raises `RecordingError` with the nearest names if it does not exist."""
        return self.values[:, position("result", name, self.names)]


@dataclass(frozen=True, eq=False)
class Recording:
    """One trial: `markers` (n, m, 3) m, Y up, NaN where missing, at `time` (n,) s, `rate` Hz.

    `analog` are the other channels, `plates` the force plates, `events` the marked times, `results` the results of the
    laboratory's software, `parameters` its numbers about the subject (in their own units: body mass kg, lengths mm
    ...), `notes` the reader's assumptions and anomalies, one sentence each.
    """

    rate: float
    time: Floats
    marker_names: tuple[str, ...]
    markers: Floats
    analog: Channels | None = None
    plates: tuple[ForcePlate, ...] = ()
    events: tuple[MarkedEvent, ...] = ()
    results: Points | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (np.isfinite(self.rate) and self.rate > 0.0):
            raise RecordingError(f"the rate of the recording is {self.rate:g} Hz; it must be positive")
        object.__setattr__(self, "time", checked_array("time", self.time, (None,)))
        object.__setattr__(self, "marker_names", unique_names("marker", self.marker_names))
        shape = (len(self.time), len(self.marker_names), 3)
        object.__setattr__(self, "markers", checked_array("positions of markers", self.markers, shape))
        increasing("time", self.time)
        off = np.abs((self.time - self.time[:1]) * self.rate - np.arange(len(self.time)))
        if off.max(initial=0.0) > ROUNDED + 1e-6:
            row = int(np.argmax(off > ROUNDED + 1e-6))
            raise RecordingError(
                f"frame {row + 1} ({self.time[row]:.6g} s) is off the rate of {self.rate:g} Hz by more than a quarter"
                " of a step; resample the recording at even times"
            )
        unique_names("plate", [plate.name for plate in self.plates])
        if self.results is not None:
            checked_array("values of results", self.results.values, (len(self.time), None, 3))

    def marker(self, name: str) -> Floats:
        """(n, 3) positions of one marker, m; raises `RecordingError` with the nearest names if it does not exist."""
        return self.markers[:, position("marker", name, self.marker_names)]

    def selected(self, names: Iterable[str]) -> Floats:
        """(n, k, 3) positions of several markers, in the given order."""
        return self.markers[:, [position("marker", name, self.marker_names) for name in names]]

    def missing(self) -> Mask:
        """(n, m) where a marker has no position."""
        return np.asarray(~np.isfinite(self.markers).all(axis=2))

    def plate(self, name: str) -> ForcePlate:
        """The plate of this name; raises `RecordingError` if it does not exist."""
        names = [plate.name for plate in self.plates]
        return self.plates[position("plate", name, names)]
