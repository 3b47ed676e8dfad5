"""The left side of a model, mirrored from its right side in the plane z = 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from designopt_wholebody.model.schema import Angles, BodyModel, Joint

T = TypeVar("T")

RIGHT, LEFT = "_R", "_L"


def left_of(name: str) -> str:
    """The name of the same thing on the left; names of the middle stay."""
    return name.removesuffix(RIGHT) + LEFT if name.endswith(RIGHT) else name


def renamed(value: T) -> T:
    """`value` with every name of the right replaced by that of the left (and the other way round)."""
    if isinstance(value, str):
        if value.endswith(LEFT):
            return value.removesuffix(LEFT) + RIGHT  # type: ignore[return-value]
        return left_of(value)  # type: ignore[return-value]
    if isinstance(value, tuple):
        return tuple(renamed(item) for item in value)  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: renamed(getattr(value, f.name)) for f in fields(value) if f.init})
    return value


def both_sides(model: BodyModel) -> BodyModel:
    """`model` with the left side written out after each entry of the right side.

    Landmarks always have both sides. Segments, joints and the rest are mirrored if the file says so; their frames and
    inertia are mirrored when the bodies are made (`BodyModel.mirrored` names them).
    """
    landmarks: dict[str, tuple[float, float, float]] = {}
    for name, (x, y, z) in model.landmarks.items():
        landmarks[name] = (x, y, z)
        if name.endswith(RIGHT):
            landmarks.setdefault(left_of(name), (x, y, -z))
    derived_landmarks: dict[str, tuple[str, ...]] = {}
    for name, parts in model.derived.items():
        derived_landmarks[name] = parts
        if name.endswith(RIGHT):
            derived_landmarks[left_of(name)] = renamed(parts)
    has_both = model.sides == "both"
    left_segments = frozenset(left_of(name) for name in model.segments if has_both and name.endswith(RIGHT))
    doubled_model = replace(
        model,
        landmarks=landmarks,
        derived=derived_landmarks,
        segments=_both_sides(model.segments, has_both),
        joints=_both_sides(model.joints, has_both, _joint),
        springs=_both_sides(model.springs, has_both),
        contacts=_both_sides(model.contacts, has_both),
        angles=_both_sides(model.angles, has_both, _angles),
    )
    object.__setattr__(doubled_model, "mirrored", left_segments)
    return doubled_model


def _identity(left: T) -> T:
    return left


def _both_sides(entries: Mapping[str, T], has_both: bool, mirror: Callable[[T], T] = _identity) -> dict[str, T]:
    doubled_entries: dict[str, T] = {}
    for name, entry in entries.items():
        doubled_entries[name] = entry
        if has_both and name.endswith(RIGHT):
            doubled_entries[left_of(name)] = mirror(renamed(entry))
    return doubled_entries


def _joint(left: Joint) -> Joint:
    """The ellipsoid's centre and attitude mirrored: turns about x and y change their sign. So do turns of springs about
    any axis but w, which points to the right on both sides."""
    if left.spring is not None and left.axis != "w":
        spring = replace(left.spring, rest=-left.spring.rest, torque=-left.spring.torque)
        left = replace(left, spring=spring)
    if left.centre is None:
        return left
    (x, y, z), (a, b, c) = left.centre, left.attitude
    return replace(left, centre=(x, y, -z), attitude=(-a, -b, c))


def _angles(left: Angles) -> Angles:
    """Turns about x and y are positive the other way on the left, so that a name means the same on both sides."""
    names = {n: s * (1.0 if k == "Z" else -1.0) for (n, s), k in zip(left.names.items(), left.sequence, strict=False)}
    return replace(left, names=names)
