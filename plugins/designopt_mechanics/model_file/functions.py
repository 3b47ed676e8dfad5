"""Coordinates, joint functions and loops of a model file, and the joint variables that name them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from designopt.study.language.findings import nearest_or_all
from designopt_mechanics.functions.affine import Affine
from designopt_mechanics.functions.closure import Closure
from designopt_mechanics.functions.piecewise import polynomial, spline
from designopt_mechanics.mechanism.mechanism import Relation
from designopt_mechanics.model_file.laws import LAW_KEYS, gear_inertia
from designopt_mechanics.model_file.nodes import FileMistake, LocatedNode, named
from designopt_mechanics.model_file.scope import FileScope
from designopt_mechanics.motions import Value
from designopt_mechanics.tree import Coordinate

#: Numbers in a file beyond which reading takes too long to be waited for.
_MOST_NODES, _MOST_UNKNOWNS = 101, 12


def coordinate(name: str, at: LocatedNode) -> Coordinate:
    entries = at.mapping(("unit",), ("range", "reference", *LAW_KEYS))
    unit = cast(Literal["rad", "m", "1"], _unit(entries["unit"]))
    low, high = -float("inf"), float("inf")
    if unit == "1" and (law_key := next((key for key in LAW_KEYS if key in entries), None)):
        raise entries[law_key].wrong("is for a coordinate in rad or m; a component of a quaternion has none")
    if "range" in entries:
        low, high = (item.number(unit) for item in entries["range"].items(2))
        if not low < high:
            raise entries["range"].wrong(f"{low:g} is not below {high:g}")
    reference = entries["reference"].number(unit) if "reference" in entries else 0.0
    if not low <= reference <= high:
        raise entries.get("reference", at).wrong(f"the reference {reference:g} is not within {low:g} to {high:g}")
    return Coordinate(name, unit, low, high, reference, gear_inertia(entries, unit))


def _unit(at: LocatedNode) -> str:
    """``1``, which YAML reads as a number, is the unit of the components of a quaternion."""
    return "1" if at.node.scalar == 1 and not isinstance(at.node.scalar, bool) else at.word(("rad", "m", "1"))


def function(at: LocatedNode, scope: FileScope) -> Any:
    coordinates = scope.coordinates
    if isinstance(at.node.scalar, str):
        return scope.formula(at)
    entries = at.mapping()
    kinds = ("affine", "spline", "polynomial")
    kind = next((k for k in kinds if k in entries), None)
    if kind is None:
        raise at.wrong("a function must be a formula or one of affine, spline and polynomial")
    if kind == "affine":
        entries = at.mapping(("affine",), ("offset",))
        slopes = {}
        for name, entry in entries["affine"].mapping().items():
            _check_coordinate(entry, name, coordinates)
            slopes[name] = entry.quantity("")
        return Affine(slopes, entries["offset"].quantity("rad") if "offset" in entries else 0.0)
    at.mapping((kind,), ())
    inner = entries[kind]
    if kind == "polynomial":
        parts = inner.mapping(("of", "coefficients"), ())
        name = parts["of"].word()
        _check_coordinate(parts["of"], name, coordinates)
        return polynomial(name, parts["coefficients"].numbers(""))
    parts = inner.mapping(("of", "x", "y"), ("outside", "unit", "degree"))
    name = parts["of"].word()
    _check_coordinate(parts["of"], name, coordinates)
    outside = cast(Literal["nan", "linear"], parts["outside"].word(("nan", "linear")) if "outside" in parts else "nan")
    unit = parts["unit"].word(("rad", "m")) if "unit" in parts else "m"
    degree = parts["degree"].number("") if "degree" in parts else 3
    if degree not in (3, 5):
        raise parts["degree"].wrong("a spline has the degree 3 or 5")
    try:
        x, y = parts["x"].numbers(coordinates[name].unit), parts["y"].numbers(unit)
        return spline(name, x, y, outside, int(degree))
    except ValueError as error:
        raise inner.wrong(str(error)) from None


def is_followed(at: LocatedNode) -> bool:
    """Whether a loop states no range, so that it is solved from its start and followed."""
    return "coordinates" not in at.mapping()


def followed_unknowns(at: LocatedNode) -> dict[str, Coordinate]:
    """The unknowns of a followed loop as coordinates that start where the file says."""
    unknowns = {}
    for name, entry in named(at.mapping(("unknowns", "equations"), ())["unknowns"]).items():
        unit: Literal["rad", "m"] = "m" if _is_length(entry) else "rad"
        unknowns[name] = Coordinate(name, unit, reference=entry.number(unit))
    return unknowns


def relations(label: str, at: LocatedNode, scope: FileScope) -> list[Relation]:
    """The equations of a followed loop."""
    entries = at.mapping(("unknowns", "equations"), ())
    items = entries["equations"].items(len(entries["unknowns"].mapping()))
    return [Relation(f"{label} {i + 1}", scope.formula(item)) for i, item in enumerate(items)]


def loop(at: LocatedNode, scope: FileScope) -> dict[str, Any]:
    coordinates = scope.coordinates
    entries = at.mapping(("coordinates", "unknowns", "equations"), ("at", "nodes"))
    ranges = {}
    for name, entry in entries["coordinates"].mapping().items():
        _check_coordinate(entry, name, coordinates)
        low, high = (item.number(coordinates[name].unit) for item in entry.items(2))
        ranges[name] = (low, high)
    start = {name: entry.number("rad") for name, entry in named(entries["unknowns"]).items()}
    start_coordinates: dict[str, float] | None = None
    if "at" in entries:
        start_coordinates = {}
        for name, entry in entries["at"].mapping().items():
            _check_coordinate(entry, name, coordinates)
            start_coordinates[name] = entry.number(coordinates[name].unit)
    if len(start) > _MOST_UNKNOWNS:
        raise entries["unknowns"].wrong(f"a loop has at most {_MOST_UNKNOWNS} unknowns")
    names = {**ranges, **start}
    formulas = []
    for item in entries["equations"].items(len(start)):
        formula = scope.formula(item, names)
        if parameter_names := [n for n in formula.names if n in scope.parameters]:
            raise item.wrong(
                f"'{parameter_names[0]}' is a parameter, which a loop with a fitted range does not follow;"
                " leave out 'coordinates'"
            )
        formulas.append(formula)
    nodes = int(entries["nodes"].number("")) if "nodes" in entries else 25
    if not 4 <= nodes <= _MOST_NODES or nodes ** len(ranges) > 10_000:
        raise entries["nodes" if "nodes" in entries else "coordinates"].wrong(
            f"nodes are 4 to {_MOST_NODES}, 10000 in all"
        )
    try:
        closure = Closure(
            tuple(ranges),
            tuple(start),
            lambda v: [f(v) for f in formulas],
            list(ranges.values()),
            start,
            start_coordinates,
            nodes,
        )
    except ValueError as error:
        raise at.wrong(str(error)) from None
    return {name: closure.function(name) for name in start}


def value(at: LocatedNode, unit: str, scope: FileScope) -> Value:
    text = at.node.scalar
    if not isinstance(text, str):
        return cast(Value, at.quantity(unit))
    if text in scope.functions:
        return cast(Value, scope.functions[text])
    if text in scope.coordinates:
        if scope.coordinates[text].unit != unit:
            raise at.wrong(f"'{text}' is in {scope.coordinates[text].unit}, not in {unit}")
        return text
    if text in scope.parameters or (text[:1] in "0123456789+-." and not any(c in text for c in "*/(")):
        return cast(Value, at.quantity(unit))
    if text.isidentifier():
        raise at.wrong(f"no coordinate or function '{text}'{nearest_or_all(text, scope.names)}")
    return cast(Value, scope.formula(at))


def _is_length(at: LocatedNode) -> bool:
    try:
        at.number("rad", certain=True)
    except FileMistake:
        return True
    return False


def _check_coordinate(at: LocatedNode, name: str, coordinates: Mapping[str, Coordinate]) -> None:
    if name not in coordinates:
        raise at.wrong(f"no coordinate '{name}'{nearest_or_all(name, coordinates)}")
