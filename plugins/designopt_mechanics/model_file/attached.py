"""What is attached to the frames of a model file: wires, springs and contacts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from designopt.study.language.findings import nearest_or_all
from designopt_mechanics.contacts import Contact, ContactError, Plane
from designopt_mechanics.model_file.frames import axis
from designopt_mechanics.model_file.nodes import At
from designopt_mechanics.springs import Spring, SpringError
from designopt_mechanics.tree import Point
from designopt_mechanics.wires import Wire


def wire(name: str, at: At, frames: set[str]) -> Wire:
    return _through(name, at, at.mapping(("points",), ())["points"], frames)


def spring(name: str, at: At, frames: set[str]) -> Spring:
    entries = at.mapping(("points", "stiffness", "rest"), ("damping", "pulls_only"))
    wire = _through(name, at, entries["points"], frames)
    units = {"stiffness": "N/m", "rest": "m", "damping": "N s/m"}
    values: dict[str, Any] = {n: entries[n].number(unit) for n, unit in units.items() if n in entries}
    if "pulls_only" in entries:
        values["pulls_only"] = entries["pulls_only"].flag()
    try:
        return Spring(wire, **values)
    except SpringError as error:
        raise entries.get(error.field, at).wrong(error.message) from None


def contact(name: str, at: At, frames: set[str]) -> Contact:
    units = {"stiffness": "N/m", "dissipation": "s/m", "friction": "", "slip_speed": "m/s", "softness": "m"}
    entries = at.mapping(("on", "at", "stiffness"), ("plane", *(n for n in units if n != "stiffness")))
    values: dict[str, Any] = {n: entries[n].number(unit) for n, unit in units.items() if n in entries}
    plane = Plane()
    if "plane" in entries:
        parts = entries["plane"].mapping(("on", "at", "normal"), ())
        through = _point(parts, frames)
        plane = Plane(through.frame, through.place, axis(parts["normal"]))
    try:
        return Contact(name, _point(entries, frames), plane, **values)
    except ContactError as error:
        raise entries.get(error.field, at).wrong(error.message) from None


def _through(name: str, at: At, points: At, frames: set[str]) -> Wire:
    through = [_point(item.mapping(("on", "at"), ()), frames) for item in points.items()]
    try:
        return Wire(name, tuple(through))
    except ValueError as error:
        raise at.wrong(str(error)) from None


def _point(parts: Mapping[str, At], frames: set[str]) -> Point:
    """Where `on` and `at` say."""
    frame = parts["on"].word()
    if frame not in frames:
        raise parts["on"].wrong(f"no frame '{frame}'{nearest_or_all(frame, frames)}")
    return Point(frame, parts["at"].vector("m"))
