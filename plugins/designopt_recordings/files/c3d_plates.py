"""Force plates of a C3D file: from channels to the wrench on the subject, for plates of types 1 to 4.

Plate axes, channels, ORIGIN and CAL_MATRIX: The C3D File Format User Guide, "The FORCE_PLATFORM group", c3d.org. In
plate axes X points from corner 2 to corner 1, Y from corner 4 to corner 1 and Z, into the plate, completes them. The
centre of the surface lies at ORIGIN, seen from the transducers' origin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt_recordings import axes
from designopt_recordings.channels import Channels
from designopt_recordings.files.c3d_parameters import Group
from designopt_recordings.files.c3d_points import moment_factor
from designopt_recordings.plate import ForcePlate

_CHANNELS = {1: 6, 2: 6, 3: 8, 4: 6}
_LOADED = 100.0  # N across the surface: samples that tell whether the force on the plate was recorded


class _UnusablePlate(Exception):
    """A plate is left out, for the reason given."""


@dataclass(frozen=True)
class _RawPlate:
    """Stored values of one plate: `channels` (k, n), N·m per unit of each, `origin` and `corners` in m."""

    kind: int
    channels: Floats
    moments: Floats
    origin: Floats
    corners: Floats
    matrix: Floats
    scale: float


def plates_of(
    parameters: Mapping[str, Any], analog: Channels, scale: float, up: str, notes: list[str]
) -> tuple[ForcePlate, ...]:
    """Plates in the laboratory's frame with Y up, SI units, forces on the subject.

    `scale` is m per unit of length, `up` the vertical axis of the file. A plate that cannot be used is left out and
    noted.
    """
    group = Group(parameters, "FORCE_PLATFORM")
    plates: list[ForcePlate] = []
    plates_with_note: dict[str, list[str]] = {}
    for i in range(min(int(group.number("USED", 0.0)), len(group.array("TYPE").ravel()))):
        name, odd = f"plate {i + 1}", list[str]()
        try:
            plates.append(_plate(name, _raw(group, i, analog, scale, odd), analog, up, odd))
            if _idle_frames(group) is not None:
                odd.append(
                    f"ZERO declares it unloaded in frames {_idle_frames(group)}; nothing is subtracted from its forces"
                )
        except _UnusablePlate as reason:
            odd = [f"it is skipped:  {reason}"]
        for note in odd:
            plates_with_note.setdefault(note, []).append(name)
    notes += [f"{', '.join(names)}: {note}" for note, names in plates_with_note.items()]
    return tuple(plates)


def _raw(group: Group, i: int, analog: Channels, scale: float, notes: list[str]) -> _RawPlate:
    kind = int(group.array("TYPE").ravel()[i])
    if kind not in _CHANNELS:
        raise _UnusablePlate(f"its type is {kind}; types 1 to 4 are read")
    columns = _columns(group, i, _CHANNELS[kind], analog)
    origin = _parameter(group, "ORIGIN", (3,), i) * scale
    if origin[2] > 0.0:
        notes.append("ORIGIN has the surface below the transducers; the opposite is assumed")
        origin = origin * [1.0, 1.0, -1.0] if kind == 3 else -origin
    factors = [moment_factor(analog.units[c]) for c in columns]
    moments = {1: factors[5:], 2: factors[3:]}.get(kind, [])
    if None in moments:
        notes.append("the unit of its moments is not known; N times the unit of length is assumed")
    return _RawPlate(
        kind,
        analog.values[:, columns],
        np.array([scale if factor is None else factor for factor in factors]),
        origin,
        _parameter(group, "CORNERS", (3, 4), i).T * scale,
        _parameter(group, "CAL_MATRIX", (6, 6), i) if kind == 4 else np.eye(6),
        scale,
    )


def _idle_frames(group: Group) -> str | None:
    """Frames in which the plates were unloaded according to the file, as "1 to 10"."""
    frames = group.array("ZERO").ravel()
    return f"{frames[0]:g} to {frames[1]:g}" if len(frames) > 1 and 0 < frames[0] <= frames[1] else None


def _parameter(group: Group, key: str, sizes: tuple[int, ...], i: int) -> Floats:
    """Values of plate `i`, the last dimension."""
    value = group.array(key)
    if value.shape[: len(sizes)] != sizes or value.size < np.prod(sizes) * (i + 1):
        raise _UnusablePlate(f"FORCE_PLATFORM:{key} has no values for it")
    values = np.asarray(value.reshape(*sizes, -1, order="F")[..., i])
    if not np.isfinite(values).all():
        raise _UnusablePlate(f"FORCE_PLATFORM:{key} has values that are not numbers")
    return values


def _columns(group: Group, i: int, count: int, analog: Channels) -> Sequence[int]:
    channels = group.array("CHANNEL")
    if channels.ndim != 2 or channels.shape[0] < count or channels.shape[1] <= i:
        raise _UnusablePlate(f"FORCE_PLATFORM:CHANNEL does not name its {count} channels")
    columns = [int(c) - 1 for c in channels[:count, i]]
    if not all(0 <= c < len(analog.names) for c in columns) or len(set(columns)) < count:
        raise _UnusablePlate(f"FORCE_PLATFORM:CHANNEL names channels beyond the {len(analog.names)} of the file")
    return columns


def _plate(name: str, raw: _RawPlate, analog: Channels, up: str, notes: list[str]) -> ForcePlate:
    x, y = raw.corners[0] - raw.corners[1], raw.corners[0] - raw.corners[3]
    z = np.cross(x, y)
    if not np.linalg.norm(z) > 1e-6 * np.linalg.norm(x) * np.linalg.norm(y) > 0.0:
        raise _UnusablePlate("its corners span no surface")
    x, z = x / np.linalg.norm(x), z / np.linalg.norm(z)
    rotation = np.column_stack([x, np.cross(z, x), z])
    force, moment = _WRENCHES[raw.kind](raw)
    across = force[:, 2]
    if np.sum(across[np.abs(across) > _LOADED]) > 0.0:
        notes.append("it recorded the forces on the plate; their opposites, the forces on the subject, are used")
        force, moment = -force, -moment
    force, moment = force @ rotation.T, moment @ rotation.T
    moment = moment + np.cross(raw.corners.mean(axis=0), force)
    force, moment, corners = (axes.turn_axes(vectors, up) for vectors in (force, moment, raw.corners))
    return ForcePlate(name, analog.rate, force, moment, corners, start=analog.start)


# Force (k, 3) and moment about the centre of the surface (k, 3), N and N·m in plate axes, for each type.


def _type_1(raw: _RawPlate) -> tuple[Floats, Floats]:
    """Fx Fy Fz, centre of pressure x y on the surface, free moment; of an unloaded plate the centre is arbitrary."""
    force, point, free = raw.channels[:, :3], raw.channels[:, 3:5] * raw.scale, raw.channels[:, 5] * raw.moments[5]
    fx, fy, fz = force.T
    is_loaded = np.isfinite(point).all(axis=1) & (fz != 0.0)
    px, py = np.where(is_loaded[:, None], point, 0.0).T
    return force, np.column_stack([py * fz, -px * fz, free + px * fy - py * fx])


def _type_2(raw: _RawPlate) -> tuple[Floats, Floats]:
    """Fx Fy Fz Mx My Mz about the transducers' origin."""
    force, moment = raw.channels[:, :3], raw.channels[:, 3:] * raw.moments[3:]
    return force, moment - np.cross(raw.origin, force)


def _type_3(raw: _RawPlate) -> tuple[Floats, Floats]:
    """Fx12 Fx34 Fy14 Fy23 Fz1 Fz2 Fz3 Fz4 of four transducers at (+-a, +-b); ORIGIN is (a, b, depth)."""
    x12, x34, y14, y23, z1, z2, z3, z4 = raw.channels.T
    a, b, depth = raw.origin
    force = np.column_stack([x12 + x34, y14 + y23, z1 + z2 + z3 + z4])
    moment = np.column_stack([b * (z1 + z2 - z3 - z4), a * (-z1 + z2 + z3 - z4), b * (x34 - x12) + a * (y14 - y23)])
    return force, moment - np.cross([0.0, 0.0, depth], force)


def _type_4(raw: _RawPlate) -> tuple[Floats, Floats]:
    """Six channels by a calibration matrix to Fx Fy Fz (N) and Mx My Mz (N times the unit of length)."""
    wrench = raw.channels @ raw.matrix.T
    force, moment = wrench[:, :3], wrench[:, 3:] * raw.scale
    return force, moment - np.cross(raw.origin, force)


_WRENCHES = {1: _type_1, 2: _type_2, 3: _type_3, 4: _type_4}
