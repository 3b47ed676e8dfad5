"""Wires, their surfaces, springs, contacts, loads and measures of a mechanism file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from designopt.study.language import units
from designopt.study.language.findings import nearest_or_all
from designopt_mechanics.contacts import Contact, ContactError, Plane
from designopt_mechanics.mechanism.mechanism import Clearance, Coincidence, LineAngle, PointLoad
from designopt_mechanics.model_file.frames import axis
from designopt_mechanics.model_file.nodes import LocatedNode
from designopt_mechanics.model_file.scope import FileScope
from designopt_mechanics.springs import Spring, SpringError
from designopt_mechanics.surfaces.over import Surface, SurfaceError, SurfaceWrap
from designopt_mechanics.tree import Point
from designopt_mechanics.wires import Wire

_TURNS: Mapping[str, Literal[-1, 1]] = {"left": 1, "right": -1}


def surface(name: str, at: LocatedNode, frames: set[str]) -> Surface:
    """A cylinder or a sphere on a frame, which wires run over."""
    shapes = [kind for kind in ("cylinder", "sphere") if kind in at.mapping()]
    if len(shapes) != 1:
        raise at.wrong("state one shape: cylinder: {axis: [0, 0, 1], radius: 30 mm}, or sphere: {radius: 30 mm}")
    entries = at.mapping(("on", "at", shapes[0]), ())
    shape = entries[shapes[0]].mapping(("radius", *(("axis",) if shapes[0] == "cylinder" else ())), ())
    try:
        along = axis(shape["axis"]) if "axis" in shape else None
        return Surface(name, point(entries, frames), shape["radius"].quantity("m"), along)
    except SurfaceError as error:
        raise shape.get(error.field, at).wrong(error.message) from None


def wire(name: str, at: LocatedNode, frames: set[str], surfaces: Mapping[str, Surface]) -> Wire:
    entries = at.mapping(("points",), ("largest_tension",))
    path = _wire_through(name, at, entries["points"], frames, surfaces)
    if "largest_tension" not in entries:
        return path
    limit = entries["largest_tension"].quantity("N")
    if isinstance(limit, float) and not limit > 0.0:
        raise entries["largest_tension"].wrong(f"{limit:g} N is not positive")
    return Wire(name, path.points, path.overs, limit)


def spring(name: str, at: LocatedNode, frames: set[str], surfaces: Mapping[str, Surface]) -> Spring:
    entries = at.mapping(("points", "stiffness", "rest"), ("damping", "pulls_only"))
    wire = _wire_through(name, at, entries["points"], frames, surfaces)
    units = {"stiffness": "N/m", "rest": "m", "damping": "N s/m"}
    values: dict[str, Any] = {n: entries[n].quantity(unit) for n, unit in units.items() if n in entries}
    if "pulls_only" in entries:
        values["pulls_only"] = entries["pulls_only"].flag()
    try:
        return Spring(wire, **values)
    except SpringError as error:
        raise entries.get(error.field, at).wrong(error.message) from None


def contact(name: str, at: LocatedNode, frames: set[str]) -> Contact:
    units = {"stiffness": "N/m", "dissipation": "s/m", "friction": "", "slip_speed": "m/s", "softness": "m"}
    entries = at.mapping(("on", "at", "stiffness"), ("plane", *(n for n in units if n != "stiffness")))
    values: dict[str, Any] = {n: entries[n].number(unit) for n, unit in units.items() if n in entries}
    plane = Plane()
    if "plane" in entries:
        parts = entries["plane"].mapping(("on", "at", "normal"), ())
        through = point(parts, frames)
        plane = Plane(through.frame, through.position, axis(parts["normal"]))
    try:
        return Contact(name, point(entries, frames), plane, **values)
    except ContactError as error:
        raise entries.get(error.field, at).wrong(error.message) from None


def meet(name: str, at: LocatedNode, frames: set[str]) -> Coincidence:
    """Two points that coincide."""
    first, second = (point(item.mapping(("on", "at"), ()), frames) for item in at.items(2))
    if first.frame == second.frame:
        raise at.wrong(f"both points are on '{first.frame}'; points of two frames meet")
    return Coincidence(name, first, second)


def load(name: str, at: LocatedNode, frames: set[str], scope: FileScope) -> PointLoad:
    """A force at a point, a moment, or both; their components are numbers or formulas."""
    entries = at.mapping(("on",), ("at", "force", "moment"))
    if "force" not in entries and "moment" not in entries:
        raise at.wrong("'force' or 'moment' is missing")
    values = {n: [component(item, unit, scope) for item in entries[n].items(3)] if n in entries else [0.0] * 3
              for n, unit in (("force", "N"), ("moment", "N m"))}  # fmt: skip
    position = entries["at"].quantities("m") if "at" in entries else (0.0, 0.0, 0.0)
    return PointLoad(name, Point(_frame(entries["on"], frames), position), values["force"], values["moment"])


def component(at: LocatedNode, unit: str, scope: FileScope) -> Any:
    """A number in `unit`, or a formula of coordinates, speeds, time and parameters."""
    text = at.node.scalar
    if not isinstance(text, str) or text in scope.parameters or not any(c.isalpha() for c in text) or _is_amount(text):
        return at.quantity(unit)
    return scope.formula(at)


def clearance(at: LocatedNode, frames: set[str], surfaces: Mapping[str, Surface]) -> Clearance:
    """The clearance between two balls, or between a ball (one point) or a bar (two points) and a surface."""
    entries = at.mapping(("points",), ("radius", "surface"))
    count = 1 if "surface" in entries and len(entries["points"].items()) == 1 else 2
    ends = [point(item.mapping(("on", "at"), ()), frames) for item in entries["points"].items(count)]
    against = _surface(entries["surface"], surfaces) if "surface" in entries else None
    return Clearance(ends[0], ends[-1], entries["radius"].quantity("m") if "radius" in entries else 0.0, against)


def line_angle(at: LocatedNode, frames: set[str]) -> LineAngle:
    def line(item: LocatedNode) -> tuple[str, tuple[float, float, float]]:
        parts = item.mapping(("on", "along"), ())
        return _frame(parts["on"], frames), axis(parts["along"])

    first, second = (line(item) for item in at.mapping(("between",), ())["between"].items(2))
    return LineAngle(first, second)


def point(parts: Mapping[str, LocatedNode], frames: set[str]) -> Point:
    """The point given by `on` and `at`."""
    return Point(_frame(parts["on"], frames), parts["at"].quantities("m"))


def _frame(at: LocatedNode, frames: set[str]) -> str:
    frame = at.word()
    if frame not in frames:
        raise at.wrong(f"no frame '{frame}'{nearest_or_all(frame, frames)}")
    return frame


def _surface(at: LocatedNode, surfaces: Mapping[str, Surface]) -> Surface:
    name = at.word()
    if name not in surfaces:
        raise at.wrong(f"no surface '{name}'{nearest_or_all(name, surfaces)}")
    return surfaces[name]


def _surface_wrap(at: LocatedNode, surfaces: Mapping[str, Surface]) -> SurfaceWrap:
    entries = at.mapping(("over",), ("turn", "side"))
    turn: Literal[-1, 0, 1] = _TURNS[entries["turn"].word(tuple(_TURNS))] if "turn" in entries else 0
    try:
        return SurfaceWrap(
            _surface(entries["over"], surfaces), turn, axis(entries["side"]) if "side" in entries else None
        )
    except SurfaceError as error:
        raise entries.get(error.field, at).wrong(error.message) from None


def _wire_through(
    name: str, at: LocatedNode, points: LocatedNode, frames: set[str], surfaces: Mapping[str, Surface]
) -> Wire:
    through = [
        _surface_wrap(item, surfaces) if "over" in item.mapping() else point(item.mapping(("on", "at"), ()), frames)
        for item in points.items()
    ]
    try:
        return Wire(name, tuple(through))
    except ValueError as error:
        raise at.wrong(str(error)) from None


def _is_amount(text: str) -> bool:
    try:
        units.parse_amount(text)
    except units.UnitError:
        return False
    return True
