"""Curves of a trial over its cycles: which quantities, of which side, at 0 to 100 %."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from designopt_recordings.signals.cycles import Cycle, normalised

from designopt.arrays import Floats

#: Samples of a cycle: every percent from 0 to 100.
SAMPLES = 101

_SIDES = {"r": "right", "l": "left", "right": "right", "left": "left"}
_SIDE = re.compile(r"^(.*?)_(r|l|right|left)(_\w+)?$", re.IGNORECASE)
_SIDE_FIRST = re.compile(r"^(r|l|right|left)_(.*)$", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class CurveBlock:
    """Signals `values` (n, c) over time of one `kind` (angle, moment ...) with `names` and `units` of their columns.

    `bounded` ones have kinks at bounds, which no curve passes: activations and forces of muscles, frame by frame.
    """

    kind: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Floats
    bounded: bool = False


@dataclass(frozen=True, eq=False)
class CycleCurves:
    """`values` (c, 101, v) of v curves in c cycles: `sides` (c,), `starts` and `ends` (c,) s of the cycles.

    A curve is named by its signal and `kinds`, as ``knee_angle_r`` and ``moment``; `units` (v,). A curve of one side is
    NaN in cycles of the other, one of neither side is in cycles of the right (of the left, if there is no other). A
    curve with a gap in a cycle is NaN in it.
    """

    sides: tuple[str, ...]
    starts: Floats
    ends: Floats
    kinds: tuple[str, ...]
    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Floats


def side_of(name: str) -> tuple[str, str]:
    """The name without its side, and the side: ``knee_angle_r`` is (``knee_angle``, ``right``); no side is ``""``."""
    if match := _SIDE.match(name):
        return f"{match[1]}{match[3] or ''}", _SIDES[match[2].lower()]
    if match := _SIDE_FIRST.match(name):
        return match[2], _SIDES[match[1].lower()]
    return name, ""


def cycle_curves(time: Floats, blocks: Sequence[CurveBlock], cycles: Sequence[tuple[str, Cycle]]) -> CycleCurves:
    """The signals of `blocks` at `time` (n,) s, cut into `cycles` with their sides."""
    kinds = tuple(block.kind for block in blocks for _ in block.names)
    names = tuple(name for block in blocks for name in block.names)
    units = tuple(unit for block in blocks for unit in block.units)
    sides = tuple(side for side, _ in cycles)
    values = np.full((len(cycles), SAMPLES, len(names)), np.nan)
    central = "right" if "right" in sides or not sides else sides[0]
    first = 0
    for block in blocks:
        cycle_values = _resample(time, block, [cycle for _, cycle in cycles])
        for column, name in enumerate(block.names):
            is_of_cycle = np.array([side == (side_of(name)[1] or central) for side in sides], dtype=bool)
            values[is_of_cycle, :, first + column] = cycle_values[is_of_cycle, :, column]
        first += len(block.names)
    starts, ends = (np.array([getattr(cycle, end) for _, cycle in cycles], dtype=float) for end in ("start", "end"))
    return CycleCurves(sides, starts, ends, kinds, names, units, values)


def _resample(time: Floats, block: CurveBlock, cycles: list[Cycle]) -> Floats:
    """(c, 101, columns); columns with the same gaps are cut together."""
    values = block.values
    cycle_values = np.full((len(cycles), SAMPLES, values.shape[1]), np.nan)
    if not cycles or not values.shape[1]:
        return cycle_values
    finite = np.isfinite(values)
    patterns, of_column = np.unique(finite, axis=1, return_inverse=True)
    for pattern in range(patterns.shape[1]):
        if patterns[:, pattern].any():
            columns = np.flatnonzero(of_column.ravel() == pattern)
            cycle_values[:, :, columns] = normalised(time, values[:, columns], cycles, SAMPLES, bounded=block.bounded)[
                0
            ]
    return cycle_values
