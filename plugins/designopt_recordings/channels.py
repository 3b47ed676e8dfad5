"""Analog channels: signals sampled together at one rate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from designopt.arrays import Floats
from designopt_recordings.arrays import checked_array, position, unique_names
from designopt_recordings.errors import RecordingError


@dataclass(frozen=True, eq=False)
class Channels:
    """`values` (k, c) of channels `names`, in `units`, sampled at `rate` Hz from `start` s on."""

    rate: float
    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Floats
    start: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", unique_names("channel", self.names))
        object.__setattr__(self, "values", checked_array("values of channels", self.values, (None, len(self.names))))
        if len(self.units) != len(self.names):
            raise RecordingError(f"{len(self.names)} channels, but {len(self.units)} units")
        if not (np.isfinite(self.rate) and self.rate > 0.0):
            raise RecordingError(f"the rate of the channels is {self.rate:g} Hz; it must be positive")

    @property
    def time(self) -> Floats:
        """(k,) times of the samples, s."""
        return self.start + np.arange(len(self.values)) / self.rate

    def channel(self, name: str) -> Floats:
        """(k,) values of one channel; raises `RecordingError` with the nearest names if it does not exist."""
        return self.values[:, position("channel", name, self.names)]

    def selected(self, names: Iterable[str]) -> Channels:
        """Some of the channels, in the given order."""
        columns = [position("channel", name, self.names) for name in names]
        selection = tuple(self.names[c] for c in columns), tuple(self.units[c] for c in columns)
        return replace(self, names=selection[0], units=selection[1], values=self.values[:, columns])
