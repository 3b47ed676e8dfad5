"""What carriers of force must balance in every frame: arms, and the moments that a motion needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats

T = TypeVar("T", bound=np.generic)

#: Units that a row may have: of a rotation, of a translation.
ROW_UNITS = ("N m", "N")


@dataclass(frozen=True, eq=False)
class MomentBalance:
    """``sum over k of arms[:, i, k] * force[:, k] = moments[:, i]`` for n frames, m rows and k actuators.

    `time` (n,) s, increasing. `rows` names the coordinates, `columns` the actuators (muscles, cables, drives). `arms`
    (n, m, k) is the generalised force of a unit force, R = -dl/dq: m in rows of rotations, 1 in rows of translations.
    `moments` (n, m) is the net generalised force that the motion needs, in `row_units` ("N m" or "N"). `status` (n,) is
    the quality of each frame: frames below 100 are usable, as in `designopt_recordings.frames`; the default is 0 for
    all.

    Arms and moments are finite in usable frames; the others may hold NaN. The arrays are kept read-only.

    Raises `ValueError` for shapes that do not fit, repeated names, unknown units, time that does not increase and
    numbers that are not finite, with the first position.
    """

    time: Floats
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    arms: Floats
    moments: Floats
    row_units: tuple[str, ...]
    status: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        for name in ("rows", "columns", "row_units"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("time", "arms", "moments"):
            object.__setattr__(self, name, _freeze(np.array(getattr(self, name), dtype=np.float64)))
        frames = self.time.shape[0] if self.time.ndim == 1 else 0
        if not frames:
            raise ValueError(f"time has shape {self.time.shape}, not (n,) with at least one frame")
        status = np.asarray(self.status)
        if not np.issubdtype(status.dtype, np.integer):
            raise ValueError(f"status must be integers, not {status.dtype}")
        codes = np.array(status, dtype=np.int64) if status.size else np.zeros(frames, dtype=np.int64)
        object.__setattr__(self, "status", _freeze(codes))
        self._check_names()
        self._check_shapes(frames)
        self._check_numbers()

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(n,) whether a frame can be used: a status below 100, as everywhere."""
        return np.asarray(self.status < 100)

    def residual(self, forces: Floats) -> Floats:
        """(n, m) residual moments under `forces` (n, k), NaN in unusable frames.

        Raises `ValueError` for another shape.
        """
        force_values = np.asarray(forces, dtype=np.float64)
        if force_values.shape != (len(self.time), len(self.columns)):
            raise ValueError(f"forces have shape {force_values.shape}, not {(len(self.time), len(self.columns))}")
        left = np.full(self.moments.shape, np.nan)
        use = self.usable
        left[use] = self.moments[use] - np.einsum("nmk,nk->nm", self.arms[use], force_values[use])
        return left

    def _check_names(self) -> None:
        if not self.rows:
            raise ValueError("rows is empty: name at least one coordinate")
        for group, names in (("rows", self.rows), ("columns", self.columns)):
            if twice := sorted(name for name, count in Counter(names).items() if count > 1):
                raise ValueError(f"{group} name {', '.join(map(repr, twice))} more than once")
        for name, unit in zip(self.rows, self.row_units, strict=False):
            if unit not in ROW_UNITS:
                raise ValueError(f"row '{name}' has the unit '{unit}', not one of {', '.join(map(repr, ROW_UNITS))}")

    def _check_shapes(self, frames: int) -> None:
        m, k = len(self.rows), len(self.columns)
        expected_shapes: Sequence[tuple[str, tuple[int, ...], tuple[int, ...]]] = (
            ("arms", self.arms.shape, (frames, m, k)),
            ("moments", self.moments.shape, (frames, m)),
            ("row_units", (len(self.row_units),), (m,)),
            ("status", self.status.shape, (frames,)),
        )
        for name, shape, fits in expected_shapes:
            if shape != fits:
                raise ValueError(f"{name} has shape {shape}, not {fits}: {frames} frames, {m} rows, {k} columns")

    def _check_numbers(self) -> None:
        if not np.isfinite(self.time).all() or not (np.diff(self.time) > 0).all():
            raise ValueError("time is not finite and increasing")
        names = {"moments": (self.rows,), "arms": (self.rows, self.columns)}
        for array, axes in names.items():
            bad = ~np.isfinite(getattr(self, array)) & self.usable.reshape((-1,) + (1,) * len(axes))
            if bad.any():
                frame, *indices = (int(i) for i in np.argwhere(bad)[0])
                entry = ", ".join(f"'{axis[i]}'" for axis, i in zip(axes, indices, strict=True))
                raise ValueError(
                    f"{array} of {entry} at {self.time[frame]:g} s (frame {frame}) is not finite;"
                    " give frames that cannot be used a status from 100 on"
                )


def _freeze(array: NDArray[T]) -> NDArray[T]:
    array.flags.writeable = False
    return array
