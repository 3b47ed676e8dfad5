"""A tree of frames: data without muscles, rods or closed chains, which are built on it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from designopt.plugin import closest
from designopt_mechanics.body import Body, is_number, vector
from designopt_mechanics.motions import Ball, Motion, Rotate

GROUND = "ground"


class TreeError(ValueError):
    """A tree that cannot be: `name` is the frame or coordinate concerned, `field` what of it."""

    def __init__(self, name: str, field: str, message: str) -> None:
        super().__init__(f"'{name}', {field}: {message}")
        self.name = name
        self.field = field
        self.message = message


@dataclass(frozen=True)
class Coordinate:
    """An independent coordinate: its unit, range and value in the reference posture.

    The unit is "rad", "m", or "1" for the components of the quaternion of a `Ball`. `inertia` (kg m^2 or kg) moves with
    this coordinate alone: a rotor behind a gear adds the square of the ratio times its own inertia.
    """

    name: str
    unit: Literal["rad", "m", "1"] = "rad"
    low: float = -math.inf
    high: float = math.inf
    reference: float = 0.0
    inertia: Any = 0.0

    @property
    def effort_unit(self) -> str:
        """The unit of its generalised force: work per displacement."""
        return "N" if self.unit == "m" else "N m"


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame: fixed to its `parent` at `position` (3) m with the axes `turn` (3, 3), then moved by `motions` in order.

    The columns of `turn` are the axes in those of the parent. A frame without motions is welded. `body` is the body
    that the frame carries; a frame without one has no mass. `position` may be a CasADi expression.
    """

    name: str
    parent: str = GROUND
    motions: Sequence[Motion] = ()
    body: Body | None = None
    position: Any = (0.0, 0.0, 0.0)
    turn: Any = None


@dataclass(frozen=True)
class Point:
    """A point fixed in `frame` at `position` (3) m in its axes."""

    frame: str
    position: Any = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Tree:
    """Frames on the ground, moved by `coordinates`; parents come before their children.

    Raises `TreeError` for names given twice, parents that are not there or come later, places and turns that are none,
    and joint variables that name no coordinate.
    """

    coordinates: tuple[Coordinate, ...]
    frames: tuple[Frame, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "coordinates", tuple(self.coordinates))
        object.__setattr__(self, "frames", tuple(self.frames))
        for c in self.coordinates:
            if not c.name.isidentifier():
                raise TreeError(c.name, "name", "is not a valid name: use only letters, digits and _")
            if not c.low <= c.reference <= c.high:
                raise TreeError(c.name, "reference", f"{c.reference:g} is not within {c.low:g} to {c.high:g}")
            if is_number(c.inertia) and not 0.0 <= float(c.inertia) < math.inf:
                raise TreeError(c.name, "inertia", f"{float(c.inertia):g} is not finite and at least 0")
        _check_unique([c.name for c in self.coordinates])
        _check_unique([GROUND, *(f.name for f in self.frames)])
        frame_names = [GROUND]
        for frame in self.frames:
            if frame.parent not in frame_names:
                raise TreeError(frame.name, "parent", self._no_parent(frame, frame_names))
            frame_names.append(frame.name)
            _check_frame(frame)
            for value in values_of(frame):
                if isinstance(value, str) and value not in self.names:
                    near = closest(value, self.names)
                    hint = f"; did you mean '{near}'?" if near else f" (known: {', '.join(self.names) or 'none'})"
                    raise TreeError(frame.name, "motions", f"no coordinate '{value}'{hint}")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates, in order."""
        return tuple(c.name for c in self.coordinates)

    @cached_property
    def reference(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """(m,) the coordinates of the reference posture."""
        return np.array([c.reference for c in self.coordinates], dtype=np.float64)

    def frame(self, name: str) -> Frame:
        """The frame `name`; raises `TreeError` with the nearest name."""
        for frame in self.frames:
            if frame.name == name:
                return frame
        near = closest(name, [f.name for f in self.frames])
        raise TreeError(name, "name", f"there is no such frame{f'; did you mean {near!r}?' if near else ''}")

    def _no_parent(self, frame: Frame, names: Sequence[str]) -> str:
        if frame.parent == frame.name:
            return "is the frame itself"
        if any(f.name == frame.parent for f in self.frames):
            return f"'{frame.parent}' comes after it or is attached to it; give parents before their children"
        near = closest(frame.parent, names)
        return f"no frame '{frame.parent}'{f'; did you mean {near!r}?' if near else ''}"


def values_of(frame: Frame) -> Iterator[Any]:
    """The joint variables of a frame's motions."""
    for motion in frame.motions:
        if isinstance(motion, Ball):
            yield from motion.quaternion
        else:
            yield motion.angle if isinstance(motion, Rotate) else motion.distance


def _check_unique(names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise TreeError(name, "name", "is given more than once")


def _check_frame(frame: Frame) -> None:
    def fail(field: str, message: str) -> TreeError:
        return TreeError(frame.name, field, message)

    if is_number(frame.position):
        vector("place", frame.position, fail)
    if frame.turn is not None:
        turn = np.asarray(frame.turn, dtype=np.float64)
        if turn.shape != (3, 3) or not np.isfinite(turn).all():
            raise fail("turn", "is not a finite (3, 3) matrix")
        if np.abs(turn @ turn.T - np.eye(3)).max() > 1e-9 or np.linalg.det(turn) < 0.0:
            raise fail("turn", "is not a rotation: its columns are not three right-handed unit vectors")
