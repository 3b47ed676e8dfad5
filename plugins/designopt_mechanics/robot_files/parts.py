"""What a reader of a robot file collects: coordinates, frames, wires, and what it does not carry over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from designopt.arrays import Floats
from designopt_mechanics.body import Body, BodyError
from designopt_mechanics.coordinate_laws import CoordinateLaw, CoordinateLawError
from designopt_mechanics.functions.affine import Affine
from designopt_mechanics.mechanism.mechanism import Coincidence
from designopt_mechanics.motions import Ball, Motion, Rotate, Slide, Value
from designopt_mechanics.robot_files.xml import Element
from designopt_mechanics.springs import Spring
from designopt_mechanics.tree import GROUND, Coordinate, Frame, Point
from designopt_mechanics.wires import Wire

#: Axes of the slides of a body that moves freely.
_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True)
class Omission:
    """An element of a file that the mechanism does not have: its line and column, its path, and the reason."""

    line: int
    column: int
    path: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.path}: {self.reason}"


@dataclass(frozen=True, eq=False)
class LocalPose:
    """Where axes are in those of a parent: `position` (3) m, and `turn` (3, 3) with the axes as columns."""

    position: Floats
    turn: Floats

    def __matmul__(self, inner: LocalPose) -> LocalPose:
        return LocalPose(self.position + self.turn @ inner.position, self.turn @ inner.turn)


@dataclass
class RobotParts:
    """The parts that have been read so far."""

    coordinates: dict[str, Coordinate] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    springs: list[Spring] = field(default_factory=list)
    meets: list[Coincidence] = field(default_factory=list)
    laws: dict[str, CoordinateLaw] = field(default_factory=dict)
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    omissions: list[Omission] = field(default_factory=list)
    frame_names: dict[str, str] = field(default_factory=dict)

    def omit(self, element: Element, reason: str) -> None:
        """Note that `element` is not carried over."""
        self.omissions.append(Omission(element.line, element.column, element.path, reason))

    def coordinate(self, element: Element, coordinate: Coordinate) -> str:
        """Add a coordinate under its name, changed to a valid one, which is returned."""
        name = re.sub(r"\W", "_", coordinate.name)
        name = name if name.isidentifier() else f"_{name}"
        if name != coordinate.name:
            self.omit(element, f"the name '{coordinate.name}' is '{name}' here: letters, digits and _")
        if name in self.coordinates:
            raise element.error(f"the name '{name}' of a joint is not unique")
        self.coordinates[name] = replace(coordinate, name=name)
        return name

    def law(self, element: Element, name: str, **values: Any) -> None:
        """Record the law of the coordinate `name` unless it is neutral. Raises `ModelError`."""
        try:
            law = CoordinateLaw(**values)
        except CoordinateLawError as error:
            raise element.error(f"{error.field}: {error.message}") from None
        if any(getattr(law, key) != getattr(CoordinateLaw, key) for key in values):
            self.laws[name] = law

    def frame_name(self, element: Element, name: str) -> str:
        """The name of the frame of a body; the ground's own name is changed."""
        if name in self.frame_names:
            raise element.error(f"the name '{name}' of a body is not unique")
        self.frame_names[name] = f"{GROUND}_body" if name == GROUND else name
        return self.frame_names[name]

    def free_motions(self, element: Element, name: str, start: Floats, quaternion: Floats) -> list[Motion]:
        """Three slides and a ball, with coordinates called after `name`: a floating base, at `start` (3) m."""
        slides: list[Motion] = [
            Slide(axis, self.coordinate(element, Coordinate(f"{name}_{letter}", "m", reference=float(value))))
            for (letter, axis), value in zip(_AXES.items(), start, strict=True)
        ]
        return [*slides, self.ball(element, name, quaternion)]

    def ball(self, element: Element, name: str, quaternion: Floats) -> Ball:
        """A ball joint with four coordinates called after `name`."""
        w, x, y, z = (
            self.coordinate(element, Coordinate(f"{name}_q{letter}", "1", -2.0, 2.0, float(value)))
            for letter, value in zip("wxyz", quaternion, strict=True)
        )
        return Ball((w, x, y, z))


def moved(kind: type[Rotate | Slide], axis: Floats, variable: Value) -> Motion:
    """A rotation about, or a slide along `axis` (3) of any length but 0."""
    return kind(triple(axis / np.linalg.norm(axis)), variable)


def affine(name: str, slope: float, offset: float) -> Value:
    """slope * coordinate + offset; the coordinate itself where that is it."""
    return name if slope == 1.0 and offset == 0.0 else Affine({name: slope}, offset)


def body_of(
    element: Element,
    mass: float,
    centre: Floats,
    inertia: Floats,
    triangle: Literal["checked", "ignored"] = "checked",
) -> Body | None:
    """A body with the `inertia` (3, 3) about its centre, None without mass. Raises `ModelError`."""
    if mass == 0.0 and not inertia.any():
        return None
    try:
        with np.errstate(all="ignore"):
            return Body(mass, triple(centre), 0.5 * (inertia + inertia.T), triangle)
    except BodyError as error:
        raise element.error(error.message) from None


def point(frame: str, position: Any) -> Point:
    """A point of a frame at `position` (3) m."""
    return Point(frame, triple(position))


def triple(values: Any) -> tuple[float, float, float]:
    """Three numbers as Python's."""
    x, y, z = (float(v) for v in values)
    return x, y, z


def axis_of(element: Element, values: Any) -> Floats:
    """A direction of any length; raises `ModelError` for zero."""
    axis = np.asarray(values, dtype=np.float64)
    if not np.linalg.norm(axis) > 1e-9:
        raise element.error("axis has the length 0")
    return axis


def rotation_from(order: str, angles: Any) -> Floats:
    """(3, 3) from angles (rad) in `order` of the axes: lower case turns with the body, upper case are fixed axes."""
    from scipy.spatial.transform import Rotation

    # SciPy writes it the other way round: upper case turns with the body
    return np.asarray(Rotation.from_euler(order.swapcase(), angles).as_matrix(), dtype=np.float64)


def rotation_from_quaternion(quaternion: Any) -> Floats:
    """(3, 3) from (w, x, y, z) of any length but 0."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_quat(quaternion, scalar_first=True).as_matrix(), dtype=np.float64)


def quaternion_from(turn: Floats) -> Floats:
    """(w, x, y, z) of a (3, 3) rotation."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(turn).as_quat(scalar_first=True), dtype=np.float64)


def follow(name: str, leaders: Mapping[str, tuple[str, float, float]]) -> tuple[str, float, float]:
    """The free coordinate that `name` follows, with slope and offset; `leaders` may follow each other.

    Raises `ValueError` where they follow each other in a circle.
    """
    slope, offset, chain = 1.0, 0.0, [name]
    while name in leaders:
        name, factor, shift = leaders[name]
        if name in chain:
            raise ValueError(f"joints mimic each other in a circle: {', '.join(chain)}")
        chain.append(name)
        offset += slope * shift
        slope *= factor
    return name, slope, offset
