"""Coordinates, joint functions and loops of a model file, and the joint variables that name them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from designopt.study.language.findings import nearest_or_all
from designopt_mechanics.functions.affine import Affine
from designopt_mechanics.functions.closure import Closure
from designopt_mechanics.functions.formula import Formula, FormulaError
from designopt_mechanics.functions.piecewise import polynomial, spline
from designopt_mechanics.model_file.nodes import At, named
from designopt_mechanics.motions import Value
from designopt_mechanics.tree import Coordinate

#: Numbers in a file beyond which reading takes too long to be waited for.
_MOST_NODES, _MOST_UNKNOWNS = 101, 12


def coordinate(name: str, at: At) -> Coordinate:
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


def function(at: At, coordinates: Mapping[str, Coordinate]) -> Any:
    if isinstance(at.node.scalar, str):
        return _formula(at, coordinates)
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
            slopes[name] = entry.number("")
        return Affine(slopes, entries["offset"].number("rad") if "offset" in entries else 0.0)
    at.mapping((kind,), ())
    inner = entries[kind]
    if kind == "polynomial":
        parts = inner.mapping(("of", "coefficients"), ())
        name = parts["of"].word()
        _check_coordinate(parts["of"], name, coordinates)
        return polynomial(name, parts["coefficients"].numbers(""))
    parts = inner.mapping(("of", "x", "y"), ("outside", "unit"))
    name = parts["of"].word()
    _check_coordinate(parts["of"], name, coordinates)
    outside = cast(Literal["nan", "linear"], parts["outside"].word(("nan", "linear")) if "outside" in parts else "nan")
    unit = parts["unit"].word(("rad", "m")) if "unit" in parts else "m"
    try:
        return spline(name, parts["x"].numbers(coordinates[name].unit), parts["y"].numbers(unit), outside)
    except ValueError as error:
        raise inner.wrong(str(error)) from None


def loop(at: At, coordinates: Mapping[str, Coordinate]) -> dict[str, Any]:
    entries = at.mapping(("coordinates", "unknowns", "equations"), ("at", "nodes"))
    ranges = {}
    for name, entry in entries["coordinates"].mapping().items():
        _check_coordinate(entry, name, coordinates)
        low, high = (item.number(coordinates[name].unit) for item in entry.items(2))
        ranges[name] = (low, high)
    start = {name: entry.number("rad") for name, entry in named(entries["unknowns"]).items()}
    places: dict[str, float] | None = None
    if "at" in entries:
        places = {}
        for name, entry in entries["at"].mapping().items():
            _check_coordinate(entry, name, coordinates)
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


def value(at: At, unit: str, coordinates: Mapping[str, Coordinate], functions: Mapping[str, Any]) -> Value:
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


def _formula(at: At, names: Mapping[str, Any]) -> Formula:
    text = str(at.node.scalar)
    try:
        formula = Formula(text)
    except FormulaError as error:
        raise at.wrong(error.message, part=(min(error.offset, max(0, len(text) - 1)), 1)) from None
    for name in formula.coordinates:
        if name not in names:
            offset = text.find(name)
            raise at.wrong(f"no coordinate '{name}'{nearest_or_all(name, names)}", part=(max(0, offset), len(name)))
    return formula


def _check_coordinate(at: At, name: str, coordinates: Mapping[str, Coordinate]) -> None:
    if name not in coordinates:
        raise at.wrong(f"no coordinate '{name}'{nearest_or_all(name, coordinates)}")
