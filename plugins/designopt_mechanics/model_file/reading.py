"""From a model file to a mechanism: a tree with the elements attached to its frames, and gravity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeVar

from designopt.study.language.findings import Finding, nearest_or_all
from designopt_mechanics.checks import check, check_wires
from designopt_mechanics.contacts import Contact, ContactError, Plane, contact_loads
from designopt_mechanics.loads import Load
from designopt_mechanics.model_file.frames import axis, frame
from designopt_mechanics.model_file.functions import coordinate, function, loop
from designopt_mechanics.model_file.nodes import At, Findings, Vector3, Wrong, named, read_as
from designopt_mechanics.springs import Spring, SpringError, spring_loads
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import GROUND, Coordinate, Frame, Point, Tree, TreeError
from designopt_mechanics.wires import Wire

T = TypeVar("T")

_SECTIONS = ("gravity", "functions", "loops", "wires", "springs", "contacts", "title", "source")
#: Number of frames in a file beyond which reading takes too long to be waited for.
_MOST_FRAMES = 500


@dataclass(frozen=True, eq=False)
class Mechanism:
    """Contents of a model file."""

    tree: Tree
    wires: tuple[Wire, ...]
    gravity: Vector3
    springs: tuple[Spring, ...] = ()
    contacts: tuple[Contact, ...] = ()

    def attached(self, state: TreeState) -> list[Load]:
        """What springs and contacts do to the frames; `state` has rates."""
        return [*spring_loads(state, self.springs), *contact_loads(state, self.contacts)]

    def wire(self, name: str) -> Wire:
        """The wire `name`; raises `ValueError` with those that there are."""
        wires_by_name = {w.name: w for w in self.wires}
        if name not in wires_by_name:
            raise ValueError(f"there is no wire '{name}'{nearest_or_all(name, wires_by_name)}")
        return wires_by_name[name]


def bundled(name: str) -> Mechanism:
    """The bundled model file `name` (without ending)."""
    return read(files("designopt_mechanics.model_file").joinpath("models", f"{name}.yaml").read_bytes(), f"{name}.yaml")


def read(content: bytes, name: str) -> Mechanism:
    """The mechanism in the bytes of a YAML file called `name`.

    Raises `StudyError` with everything that is wrong, each with line and column.
    """
    return read_as(content, name, _mechanism)


def _mechanism(at: At, findings: Findings) -> Mechanism | None:
    entries = at.mapping(("coordinates", "frames"), _SECTIONS)

    def each(section: str, make: Callable[[str, At], T]) -> dict[str, T]:
        section_entries = named(entries[section]) if section in entries else {}
        return findings.each(section_entries, make)

    coordinates = each("coordinates", coordinate)
    if findings.mistakes:  # what follows from a mistake is none
        return None
    functions: dict[str, Any] = each("functions", lambda _, entry: function(entry, coordinates))
    if findings.mistakes:
        return None
    for result_entry in each("loops", lambda _, entry: loop(entry, coordinates)).values():
        functions |= result_entry
    if findings.mistakes:
        return None
    frame_entries = named(entries["frames"])
    if len(frame_entries) > _MOST_FRAMES:
        raise entries["frames"].wrong(f"a model file has at most {_MOST_FRAMES} frames")
    frames = each("frames", lambda name, entry: frame(name, entry, coordinates, functions))
    gravity: Vector3 = (0.0, 0.0, 0.0)
    with findings.item():
        if "gravity" in entries:
            gravity = entries["gravity"].vector("m/s^2")
        elif any(f.body is not None and f.body.mass > 0.0 for f in frames.values()):
            raise at.wrong(
                "bodies with mass need a 'gravity': write gravity: [0, -9.81, 0] (m/s^2, in the axes of the ground), "
                "or gravity: [0, 0, 0] for a motion without weight"
            )
    frame_names = {GROUND, *frame_entries}
    wires = each("wires", lambda name, entry: wire(name, entry, frame_names))
    springs = each("springs", lambda name, entry: spring(name, entry, frame_names))
    contacts = each("contacts", lambda name, entry: contact(name, entry, frame_names))
    if findings.mistakes:
        return None
    tree = _tree(tuple(coordinates.values()), tuple(frames.values()), frame_entries)
    for section, paths in (("wires", list(wires.values())), ("springs", [s.wire for s in springs.values()])):
        try:
            check_wires(tree, paths)
        except TreeError as error:
            raise Wrong(Finding((section, error.name, error.field), error.message)) from None
    return Mechanism(tree, tuple(wires.values()), gravity, tuple(springs.values()), tuple(contacts.values()))


def _tree(coordinates: tuple[Coordinate, ...], frames: tuple[Frame, ...], frame_entries: Mapping[str, At]) -> Tree:
    try:
        tree = Tree(coordinates, frames)
        check(tree)
    except TreeError as error:
        section = "frames" if error.name in frame_entries else "coordinates"
        path: tuple[str, ...] = (section, error.name)
        inner = frame_entries.get(error.name)
        if inner is not None and error.field in (inner.node.entries or {}):
            path = (*path, error.field)
        raise Wrong(Finding(path, f"{error.field}: {error.message}")) from None
    return tree


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
        plane = Plane(through.frame, through.position, axis(parts["normal"]))
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
    """The point given by `on` and `at`."""
    frame = parts["on"].word()
    if frame not in frames:
        raise parts["on"].wrong(f"no frame '{frame}'{nearest_or_all(frame, frames)}")
    return Point(frame, parts["at"].vector("m"))
