"""Outputs and arrays of a task with a motion: reductions of its signals, and how far paths miss their targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Array, Declaration, InvalidSetting, Quantity
from designopt.study.language.findings import nearest_or_all
from designopt_mechanics.mechanism.signals import TAKES, MechanismSignal, MotionSignals, reduce_values, unit_of

#: Reductions of the distances of a path from its targets.
_MISSES = {"rms": "root mean square", "max": "largest"}

#: Output that marks forces of redundant loops.
LEAST_SQUARES = "least_squares"


@dataclass(frozen=True, eq=False)
class MotionResults:
    """Results of `signals`; outputs `output_names`, all when it is empty; `targets` (n, 3) m by path point."""

    signals: MotionSignals
    output_names: Sequence[str] = ()
    targets: Mapping[str, Sequence[Sequence[float]]] = ()  # type: ignore[assignment]

    @cached_property
    def _reductions(self) -> dict[str, tuple[int, str, MechanismSignal]]:
        """Column, reduction and signal of every output that is one."""
        every = {
            f"{signal.name}_{take}": (i, take, signal)
            for i, signal in enumerate(self.signals.signals)
            for take in TAKES
        }
        return {n: r for n, r in every.items() if not self.output_names or n in self.output_names}

    @cached_property
    def _misses(self) -> dict[str, tuple[str, str]]:
        """Path point and reduction of every output about targets."""
        every = {f"miss_{point}_{take}": (point, take) for point in dict(self.targets) for take in _MISSES}
        return {n: m for n, m in every.items() if not self.output_names or n in self.output_names}

    def check(self) -> Iterator[InvalidSetting]:
        """Unknown outputs and targets."""
        points = self.signals.forces.loops.mechanism.points
        for name, rows in dict(self.targets).items():
            if name not in points:
                hint = nearest_or_all(name, points)
                yield InvalidSetting(f"targets.{name}", f"the mechanism has no point '{name}'{hint}")
            elif not rows or any(len(row) not in (2, 3) or not np.isfinite(row).all() for row in rows):
                yield InvalidSetting(f"targets.{name}", "must be a list of points [x, y] or [x, y, z] in m")
        names = [f"{s.name}_{take}" for s in self.signals.signals for take in TAKES]
        names += [f"miss_{point}_{take}" for point in dict(self.targets) for take in _MISSES]
        for name in self.output_names:
            if name not in names:
                yield InvalidSetting("outputs", f"there is no output '{name}'{nearest_or_all(name, names)}")

    def declares(self) -> Declaration:
        """Outputs, and an array for each signal."""
        outputs = {
            name: Quantity(unit_of(take, signal.unit), f"{TAKES[take]} {signal.meaning}")
            for name, (_, take, signal) in self._reductions.items()
        }
        for name, (point, take) in self._misses.items():
            outputs[name] = Quantity("m", f"{_MISSES[take]} distance of the targets from the path of {point}")
        if self._least_squares:
            about = "1 where joint forces are the smallest of those that balance: rigid bodies leave them open"
            outputs[LEAST_SQUARES] = Quantity("", about, notable=True)
        arrays = {"time": Array(("time",), "s", "of the motion")}
        arrays |= {s.name: Array(("time",), s.unit, s.meaning) for s in self.signals.signals}
        arrays["scene"] = Array(("time", "vertex", "axis"), "m", "drawing; lines end where a place is not a number")
        return Declaration(outputs=outputs, arrays=arrays)

    def outputs(self, time: Floats, values: Floats) -> dict[str, float]:
        """All outputs from the signals (n, s)."""
        numbers = {n: reduce_values(take, time, values[:, i])[0] for n, (i, take, _) in self._reductions.items()}
        for name, (point, take) in self._misses.items():
            distances = self._distances(point, values)[0]
            numbers[name] = float(np.sqrt((distances**2).mean()) if take == "rms" else distances.max())
        if self._least_squares:
            numbers[LEAST_SQUARES] = float(self.signals.forces.is_redundant)
        return numbers

    @property
    def _least_squares(self) -> bool:
        return self.signals.forces.redundant == "least_squares"

    def gradient(self, time: Floats, values: Floats, slopes: Floats) -> dict[str, Floats]:
        """Derivatives (np,) of all outputs from those of the signals (n, s, np)."""
        derivatives = {
            name: reduce_values(take, time, values[:, i])[1] @ slopes[:, i]
            for name, (i, take, _) in self._reductions.items()
        }
        for name, (point, take) in self._misses.items():
            distances, weights = self._distances(point, values)
            columns = self._columns(point)
            by_target = np.einsum("tnk,nkp->tp", weights, slopes[:, columns])
            if take == "rms":
                size = float(np.sqrt((distances**2).mean())) or 1.0
                derivatives[name] = distances @ by_target / (len(distances) * size)
            else:
                derivatives[name] = by_target[int(np.argmax(distances))]
        return derivatives

    def arrays(self, time: Floats, values: Floats) -> dict[str, Floats]:
        """Time and all signals."""
        return {"time": time, **{s.name: values[:, i] for i, s in enumerate(self.signals.signals)}}

    def _columns(self, point: str) -> list[int]:
        return [self.signals.names.index(f"path_{point}_{axis}") for axis in "xyz"]

    def _distances(self, point: str, values: Floats) -> tuple[Floats, Floats]:
        """(t,) m from each target to the nearest point of the polyline through the path, and their derivatives (t, n,
        3) by its points."""
        path = values[:, self._columns(point)]
        begin, way = path[:-1], np.diff(path, axis=0)
        squares = np.maximum((way**2).sum(axis=1), 1e-300)
        distances, weights = [], []
        for row in dict(self.targets)[point]:
            target = np.array([*row, 0.0][:3], dtype=np.float64)
            share = np.clip(((target - begin) * way).sum(axis=1) / squares, 0.0, 1.0)
            gaps = target - begin - share[:, None] * way
            lengths = np.linalg.norm(gaps, axis=1)
            at = int(np.argmin(lengths))
            slope: Any = np.zeros_like(path)
            direction = -gaps[at] / max(float(lengths[at]), 1e-300)
            slope[at], slope[at + 1] = (1.0 - share[at]) * direction, share[at] * direction
            distances.append(float(lengths[at]))
            weights.append(slope)
        return np.array(distances), np.array(weights)
