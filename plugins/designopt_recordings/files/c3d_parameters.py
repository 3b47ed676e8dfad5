"""Parameters of a C3D file as ezc3d gives them: texts, numbers and events, whatever was stored in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt_recordings.files.names import printable
from designopt_recordings.recording import MarkedEvent


class Group:
    """Values of one group of parameters; missing values, or those of another kind, are empty."""

    def __init__(self, parameters: Mapping[str, Any], name: str) -> None:
        entries = parameters.get(name, {})
        self._values = {key: entry["value"] for key, entry in entries.items() if not key.startswith("__")}

    def texts(self, key: str) -> list[str]:
        """Texts of a parameter and of its continuations (LABELS, LABELS2, LABELS3, ...), without blanks around."""
        labels: list[str] = []
        for name in [key, *(f"{key}{i}" for i in range(2, 100))]:
            if name not in self._values:
                break
            value = self._values[name]
            labels += [printable(text) for text in value] if isinstance(value, list) else []
        return labels

    def text(self, key: str) -> str:
        """The first text of a parameter."""
        return next(iter(self.texts(key)), "")

    def array(self, key: str) -> Floats:
        """The numbers of a parameter in their dimensions; empty if missing."""
        value = self._values.get(key, [])
        return np.zeros(0) if isinstance(value, list) else np.asarray(value, dtype=float)

    def joined_numbers(self, key: str) -> Floats:
        """The numbers of a parameter and of its continuations, one after the other."""
        names = [key, *(f"{key}{i}" for i in range(2, 100))]
        return np.concatenate([self.array(name).ravel() for name in names if name in self._values] or [np.zeros(0)])

    def number(self, key: str, default: float) -> float:
        """The first number of a parameter."""
        value = self.array(key).ravel()
        return float(value[0]) if value.size and np.isfinite(value[0]) else default

    def numbers(self) -> dict[str, float]:
        """All parameters that are one finite number."""
        single = {key: self.array(key).ravel() for key in self._values}
        return {key: float(value[0]) for key, value in single.items() if value.size == 1 and np.isfinite(value[0])}


def events(parameters: Mapping[str, Any]) -> tuple[MarkedEvent, ...]:
    """Events in the order of their times, s, as the parameters of EVENT list them."""
    group = Group(parameters, "EVENT")
    times = group.array("TIMES")
    if times.ndim != 2 or times.shape[0] != 2:
        return ()
    seconds = 60.0 * times[0] + times[1]
    labels, sides = group.texts("LABELS"), group.texts("CONTEXTS")
    marked_events = [
        MarkedEvent(labels[i] if i < len(labels) else "", float(time), sides[i] if i < len(sides) else "")
        for i, time in enumerate(seconds[: int(group.number("USED", len(seconds)))])
        if np.isfinite(time)
    ]
    return tuple(sorted(marked_events, key=lambda event: event.time))
