"""A model file to a mechanism: a tree with wires and gravity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal, TypeVar, cast

from designopt.study.language.errors import StudyError
from designopt.study.language.findings import Finding, issues, nearest_or_all
from designopt.study.language.yaml import parse_bytes
from designopt_mechanics.body import Body, BodyError
from designopt_mechanics.checks import check
from designopt_mechanics.functions.affine import Affine
from designopt_mechanics.functions.closure import Closure
from designopt_mechanics.functions.formula import Formula, FormulaError
from designopt_mechanics.functions.piecewise import polynomial, spline
from designopt_mechanics.model_file.nodes import At, Findings, Vector3, Wrong, named
from designopt_mechanics.motions import Motion, MotionError, Polar, Rotate, Slide, Value
from designopt_mechanics.state import rotation
from designopt_mechanics.tree import GROUND, Coordinate, Frame, Point, Tree, TreeError
from designopt_mechanics.wires import Wire

T = TypeVar("T")

_SECTIONS = ("gravity", "functions", "loops", "wires", "title", "source")
#: Numbers in a file beyond which reading takes too long to be waited for.
_MOST_FRAMES, _MOST_NODES, _MOST_UNKNOWNS = 500, 101, 12


@dataclass(frozen=True, eq=False)
class Mechanism:
    """What a model file says."""

    tree: Tree
    wires: tuple[Wire, ...]
    gravity: Vector3

    def wire(self, name: str) -> Wire:
        """The wire `name`; raises `ValueError` with those that there are."""
        for wire in self.wires:
            if wire.name == name:
                return wire
        known = [wire.name for wire in self.wires]
        raise ValueError(f"there is no wire '{name}'{nearest_or_all(name, known)}")


def bundled(name: str) -> Mechanism:
    """The bundled model file `name` (without ending)."""
    return read(files("designopt_mechanics.model_file").joinpath("models", f"{name}.yaml").read_bytes(), f"{name}.yaml")


def read(content: bytes, name: str) -> Mechanism:
    """The mechanism in the bytes of a YAML file called `name`.

    Raises `StudyError` with everything that is wrong, each with line and column.
    """
    root = parse_bytes(content, name)
    findings = Findings()
    made = None
    with findings.item():
        made = _mechanism(At(root), findings)
    if findings.found or made is None:
        raise StudyError(issues(findings.found, root))
    return made


def _mechanism(at: At, findings: Findings) -> Mechanism | None:
    entries = at.mapping(("coordinates", "frames"), _SECTIONS)
    coordinates: dict[str, Coordinate] = {}
    for name, entry in named(entries["coordinates"]).items():
        with findings.item():
            coordinates[name] = _coordinate(name, entry)
    if findings.found:  # what follows from a mistake is none
        return None
    functions: dict[str, Any] = {}
    if "functions" in entries:
        for name, entry in named(entries["functions"]).items():
            with findings.item():
                functions[name] = _function(entry, coordinates)
    if "loops" in entries and not findings.found:
        for entry in named(entries["loops"]).values():
            with findings.item():
                functions |= _loop(entry, coordinates)
    if findings.found:
        return None
    given = named(entries["frames"])
    if len(given) > _MOST_FRAMES:
        raise entries["frames"].wrong(f"a model file has at most {_MOST_FRAMES} frames")
    frames = []
    for name, entry in given.items():
        with findings.item():
            frames.append(_frame(name, entry, coordinates, functions))
    gravity: Vector3 = (0.0, 0.0, 0.0)
    wires: list[Wire] = []
    with findings.item():
        gravity = entries["gravity"].vector("m/s^2") if "gravity" in entries else gravity
    if "wires" in entries:
        for name, entry in named(entries["wires"]).items():
            with findings.item():
                wires.append(_wire(name, entry, {GROUND, *given}))
    if findings.found:
        return None
    try:
        tree = Tree(tuple(coordinates.values()), tuple(frames))
        check(tree)
    except TreeError as error:
        section = "frames" if error.name in given else "coordinates"
        path: tuple[str, ...] = (section, error.name)
        inner = given.get(error.name)
        if inner is not None and error.field in (inner.node.entries or {}):
            path = (*path, error.field)
        raise Wrong(Finding(path, f"{error.field}: {error.message}")) from None
    return Mechanism(tree, tuple(wires), gravity)


def _coordinate(name: str, at: At) -> Coordinate:
    entries = at.mapping(("unit",), ("range", "reference"))
    unit = cast(Literal["rad", "m"], entries["unit"].word(("rad", "m")))
    low, high = -float("inf"), float("inf")
    if "range" in entries:
        low, high = (item.number(unit) for item in entries["range"].items(2))
        if not low < high:
            raise entries["range"].wrong(f"{low:g} is not below {high:g}")
    reference = entries["reference"].number(unit) if "reference" in entries else 0.0
    if not low <= reference <= high:
        raise entries.get("reference", at).wrong(f"the reference {reference:g} is not within {low:g} to {high:g}")
    return Coordinate(name, unit, low, high, reference)


def _function(at: At, coordinates: Mapping[str, Coordinate]) -> Any:
    if isinstance(at.node.scalar, str):
        return _formula(at, coordinates)
    entries = at.mapping()
    kinds = ("affine", "spline", "polynomial")
    kind = next((k for k in kinds if k in entries), None)
    if kind is None:
        raise at.wrong("a function is a formula, or one of affine, spline and polynomial")
    if kind == "affine":
        entries = at.mapping(("affine",), ("offset",))
        slopes = {}
        for name, entry in entries["affine"].mapping().items():
            _known(entry, name, coordinates)
            slopes[name] = entry.number("")
        return Affine(slopes, entries["offset"].number("rad") if "offset" in entries else 0.0)
    at.mapping((kind,), ())
    inner = entries[kind]
    if kind == "polynomial":
        parts = inner.mapping(("of", "coefficients"), ())
        name = parts["of"].word()
        _known(parts["of"], name, coordinates)
        return polynomial(name, parts["coefficients"].numbers(""))
    parts = inner.mapping(("of", "x", "y"), ("outside", "unit"))
    name = parts["of"].word()
    _known(parts["of"], name, coordinates)
    outside = cast(Literal["nan", "linear"], parts["outside"].word(("nan", "linear")) if "outside" in parts else "nan")
    unit = parts["unit"].word(("rad", "m")) if "unit" in parts else "m"
    try:
        return spline(name, parts["x"].numbers(coordinates[name].unit), parts["y"].numbers(unit), outside)
    except ValueError as error:
        raise inner.wrong(str(error)) from None


def _formula(at: At, names: Mapping[str, Any]) -> Formula:
    text = str(at.node.scalar)
    try:
        made = Formula(text)
    except FormulaError as error:
        raise at.wrong(error.message, part=(min(error.offset, max(0, len(text) - 1)), 1)) from None
    for name in made.coordinates:
        if name not in names:
            offset = text.find(name)
            raise at.wrong(f"no coordinate '{name}'{nearest_or_all(name, names)}", part=(max(0, offset), len(name)))
    return made


def _loop(at: At, coordinates: Mapping[str, Coordinate]) -> dict[str, Any]:
    entries = at.mapping(("coordinates", "unknowns", "equations"), ("at", "nodes"))
    ranges = {}
    for name, entry in entries["coordinates"].mapping().items():
        _known(entry, name, coordinates)
        low, high = (item.number(coordinates[name].unit) for item in entry.items(2))
        ranges[name] = (low, high)
    start = {name: entry.number("rad") for name, entry in named(entries["unknowns"]).items()}
    places: dict[str, float] | None = None
    if "at" in entries:
        places = {}
        for name, entry in entries["at"].mapping().items():
            _known(entry, name, coordinates)
            places[name] = entry.number(coordinates[name].unit)
    if len(start) > _MOST_UNKNOWNS:
        raise entries["unknowns"].wrong(f"a loop has at most {_MOST_UNKNOWNS} unknowns")
    formulas = [_formula(item, {**ranges, **start}) for item in entries["equations"].items(len(start))]
    nodes = int(entries["nodes"].number("")) if "nodes" in entries else 25
    if not 4 <= nodes <= _MOST_NODES or nodes ** len(ranges) > 10_000:
        raise entries["nodes" if "nodes" in entries else "coordinates"].wrong(
            f"nodes are 4 to {_MOST_NODES}, 10000 in all"
        )
    try:
        closure = Closure(
            tuple(ranges), tuple(start), lambda v: [f(v) for f in formulas], list(ranges.values()), start, places, nodes
        )
    except ValueError as error:
        raise at.wrong(str(error)) from None
    return {name: closure.function(name) for name in start}


def _frame(name: str, at: At, coordinates: Mapping[str, Coordinate], functions: Mapping[str, Any]) -> Frame:
    entries = at.mapping((), ("parent", "place", "turn", "motions", "body"))
    motions: list[Motion] = []
    if "motions" in entries:
        for item in entries["motions"].items():
            motions.append(_motion(item, coordinates, functions))
    return Frame(
        name,
        entries["parent"].word() if "parent" in entries else GROUND,
        tuple(motions),
        _body(entries["body"]) if "body" in entries else None,
        place=entries["place"].vector("m") if "place" in entries else (0.0, 0.0, 0.0),
        turn=_turn(entries["turn"]) if "turn" in entries else None,
    )


def _turn(at: At) -> Any:
    """A matrix from one or several turns {axis, angle} in order."""
    import casadi as ca
    import numpy as np

    turns = at.items() if at.node.items is not None else [at]
    matrix = np.eye(3)
    for item in turns:
        entries = item.mapping(("axis", "angle"), ())
        axis = _made(entries["axis"], lambda v: Rotate(v, 0.0)).axis
        matrix = matrix @ np.asarray(ca.evalf(rotation(axis, ca.SX(entries["angle"].number("rad")))), dtype=np.float64)
    return matrix


def _motion(at: At, coordinates: Mapping[str, Coordinate], functions: Mapping[str, Any]) -> Motion:
    entries = at.mapping()
    if len(entries) != 1 or next(iter(entries)) not in ("rotate", "slide", "polar"):
        raise at.wrong("a motion is one of rotate, slide and polar: {rotate: {axis: [0, 0, 1], by: knee}}")
    ((kind, inner),) = entries.items()
    if kind == "polar":
        parts = inner.mapping(("azimuth", "elevation", "length"), ("scale",))
        azimuth, elevation = (_value(parts[n], "rad", coordinates, functions) for n in ("azimuth", "elevation"))
        length = _value(parts["length"], "m", coordinates, functions)
        return Polar(azimuth, elevation, length, parts["scale"].number("") if "scale" in parts else 1.0)
    parts = inner.mapping(("axis", "by"), ("inertia",))
    unit, inertia = ("rad", "kg m^2") if kind == "rotate" else ("m", "kg")
    value = _value(parts["by"], unit, coordinates, functions)
    rotor = parts["inertia"].number(inertia) if "inertia" in parts else 0.0
    if rotor < 0.0:
        raise parts["inertia"].wrong(f"{rotor:g} is negative")
    if kind == "rotate":
        return _made(parts["axis"], lambda axis: Rotate(axis, value, rotor))
    return _made(parts["axis"], lambda axis: Slide(axis, value, rotor))


def _made(at: At, make: Callable[[Vector3], T]) -> T:
    axis = at.vector("")
    try:
        return make(axis)
    except MotionError as error:
        raise at.wrong(error.message) from None


def _value(at: At, unit: str, coordinates: Mapping[str, Coordinate], functions: Mapping[str, Any]) -> Value:
    text = at.node.scalar
    if not isinstance(text, str):
        return at.number(unit)
    if text in functions:
        return cast(Value, functions[text])
    if text in coordinates:
        if coordinates[text].unit != unit:
            raise at.wrong(f"'{text}' is in {coordinates[text].unit}, not in {unit}")
        return text
    if text[:1] in "0123456789+-." and not any(c in text for c in "*/("):
        return at.number(unit)
    if text.isidentifier():
        raise at.wrong(f"no coordinate or function '{text}'{nearest_or_all(text, [*coordinates, *functions])}")
    return _formula(at, coordinates)


def _body(at: At) -> Body:
    entries = at.mapping(("mass",), ("centre", "inertia", "triangle"))
    inertia: Any = (0.0, 0.0, 0.0)
    if "inertia" in entries:
        rows = entries["inertia"].items(3)
        if rows[0].node.items is None:
            inertia = tuple(row.number("kg m^2") for row in rows)
        else:
            inertia = [[e.number("kg m^2") for e in row.items(3)] for row in rows]
    triangle = entries["triangle"].word(("checked", "ignored")) if "triangle" in entries else "checked"
    mass = entries["mass"].number("kg")
    centre = entries["centre"].vector("m") if "centre" in entries else (0.0, 0.0, 0.0)
    try:
        return Body(mass, centre, inertia, cast(Literal["checked", "ignored"], triangle))
    except BodyError as error:
        raise entries.get(error.field, at).wrong(error.message) from None


def _wire(name: str, at: At, frames: set[str]) -> Wire:
    points = []
    for item in at.mapping(("points",), ())["points"].items():
        parts = item.mapping(("on", "at"), ())
        frame = parts["on"].word()
        if frame not in frames:
            raise parts["on"].wrong(f"no frame '{frame}'{nearest_or_all(frame, frames)}")
        points.append(Point(frame, parts["at"].vector("m")))
    try:
        return Wire(name, tuple(points))
    except ValueError as error:
        raise at.wrong(str(error)) from None


def _known(at: At, name: str, coordinates: Mapping[str, Coordinate]) -> None:
    if name not in coordinates:
        raise at.wrong(f"no coordinate '{name}'{nearest_or_all(name, coordinates)}")
