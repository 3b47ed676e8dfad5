"""Analog channels of a C3D file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.arrays import Array
from designopt_recordings.channels import Channels
from designopt_recordings.files.c3d_parameters import Group
from designopt_recordings.files.names import numbered


def channels_of(
    parameters: Mapping[str, Any], analogs: Array, rate: float, start: float, integers: bool, notes: list[str]
) -> Channels | None:
    """The channels that ezc3d gives as `analogs` (1, c, k), from `start` s on; nothing where there are none.

    `rate` is that of the frames, Hz; `integers` says that the file stores integers.
    """
    values = np.asarray(analogs, dtype=float)[0].T
    if not values.size:
        return None
    group, count = Group(parameters, "ANALOG"), values.shape[1]
    labels = [*group.texts("LABELS"), *[""] * count][:count]
    names = numbered([name or f"channel {i}" for i, name in enumerate(labels, 1)], "channel", notes)
    units = tuple([*group.texts("UNITS"), *[""] * count][:count])
    analog_rate = group.number("RATE", rate)
    scaled = _corrected(values, group, integers)
    missing = ~np.isfinite(scaled)
    if missing.any():
        notes.append(f"{int(missing.sum())} values of channels are not finite; they are taken as missing")
        scaled = np.where(missing, np.nan, scaled)
    return Channels(analog_rate if analog_rate > 0.0 else rate, names, units, scaled, start)


def _corrected(values: Array, group: Group, integers: bool) -> Array:
    """(stored - OFFSET) SCALE GEN_SCALE, where the library subtracts |OFFSET| and takes all integers as signed.

    FORMAT says UNSIGNED where integers, and offsets, go from 0 to 65535.
    """
    count = values.shape[1]
    offset, scale = group.joined("OFFSET")[:count], group.joined("SCALE")[:count]
    if len(offset) < count or len(scale) < count:
        return values
    factor = scale * group.number("GEN_SCALE", 1.0)
    if not (integers and group.text("FORMAT").upper() == "UNSIGNED"):
        return np.asarray(values + (np.abs(offset) - offset) * factor)
    with np.errstate(invalid="ignore", divide="ignore"):
        stored = np.where(factor != 0.0, np.round(values / factor + np.abs(offset)), 0.0)
    return np.asarray((stored % 65536.0 - offset % 65536.0) * factor)
