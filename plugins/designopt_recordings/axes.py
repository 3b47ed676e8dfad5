"""Conversion of a laboratory's axes and units to metres with Y up."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt_recordings.errors import RecordingError

#: Metres per unit of length.
LENGTHS = {"m": 1.0, "dm": 0.1, "cm": 0.01, "mm": 0.001, "meters": 1.0, "metres": 1.0, "millimeters": 0.001}

#: Rows of the rotation from axes with the vertical named to axes with Y up, by a quarter turn (right-handed).
_TURNS = {
    "y": np.eye(3),
    "z": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]),  # (x, y, z) -> (x, z, -y)
    "x": np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),  # (x, y, z) -> (-y, x, z)
}

_LARGEST, _SMALLEST = 100.0, 0.02  # m: coordinates of a laboratory beyond these were given in another unit


def length(unit: str) -> float:
    """Metres per `unit`; raises `RecordingError` for an unknown one."""
    if unit.strip().lower() not in LENGTHS:
        raise RecordingError(f"the unit of length is '{unit}'; it must be one of {', '.join(LENGTHS)}")
    return LENGTHS[unit.strip().lower()]


def turn_axes(vectors: ArrayLike, up: str) -> Floats:
    """Vectors (..., 3) given with the axis `up` ("x", "y" or "z", "-z" where it points down) in axes with Y up.

    Raises `RecordingError` for another axis.
    """
    axis = up.strip().lower().lstrip("+")
    if axis.lstrip("-") not in _TURNS:
        raise RecordingError(f"the vertical axis is '{up}'; it must be x, y or z, with - if it points down")
    turn = _TURNS[axis.lstrip("-")]
    if axis.startswith("-"):
        turn = np.diag([1.0, -1.0, -1.0]) @ turn  # half a turn about X
    return np.asarray(np.asarray(vectors, dtype=float) @ turn.T)


def check_size(markers: Floats, unit: str) -> None:
    """Raise `RecordingError` if positions (m) were probably written in another unit than the stated one."""
    present = np.abs(markers[np.isfinite(markers)])
    if not present.size:
        return
    size = float(np.quantile(present, 0.99))
    if size > _LARGEST or float(present.max()) < _SMALLEST:
        probable = "mm" if size > _LARGEST else "m" if unit != "m" else "another unit"
        raise RecordingError(
            f"the file says {unit}, but its markers are {size:.4g} m from the origin; they are probably in {probable}:"
            " correct the unit that the file states"
        )
