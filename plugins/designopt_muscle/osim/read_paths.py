"""Read the paths of muscles, springs and ligaments: points, and the surfaces that they wrap around."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from designopt_mechanics.robot_files.xml import Element

from designopt_muscle.osim.functions import ManyPolynomial, ordered_exponents
from designopt_muscle.osim.model import Axis, PathFunction, PathPoint, PathWrap, WrapObject
from designopt_muscle.osim.poses import last_name, refuse_other_children
from designopt_muscle.osim.read_functions import TAGS, function_in

_POINTS = {
    "PathPoint": set(),
    "ConditionalPathPoint": {"socket_coordinate", "coordinate", "range"},
    "MovingPathPoint": {f"{s}{a}_{w}" for a in "xyz" for s in ("socket_", "") for w in ("coordinate", "location")},
}
_POINT = {"socket_parent_frame", "body", "location", "display_preference", "VisibleObject", "Appearance"}
_PATH = {"PathPointSet", "PathWrapSet", "Appearance", "VisibleObject", "default_color", "display_preference"}


def read_path(
    element: Element, bodies: set[str], coordinates: set[str], wraps: Mapping[str, WrapObject]
) -> tuple[tuple[PathPoint, ...], tuple[PathWrap, ...]]:
    """Points and surfaces of the path of a force. Raises `ModelError` for other paths."""
    path = element.find("GeometryPath") or element.find("path", "GeometryPath")
    if path is None:
        raise element.error("has no GeometryPath; other paths are not supported")
    refuse_other_children(path, _PATH)
    points = [_point(e, bodies, coordinates) for e in path.need("PathPointSet", "objects").children]
    if len(points) < 2:
        raise path.error("has fewer than two points")
    wrap_set = path.find("PathWrapSet", "objects")
    wrap_uses = [_wrap(e, wraps, len(points)) for e in ([] if wrap_set is None else wrap_set.children)]
    return tuple(points), tuple(wrap_uses)


def _point(element: Element, bodies: set[str], coordinates: set[str]) -> PathPoint:
    if element.tag not in _POINTS:
        raise element.error("is not a supported point")
    refuse_other_children(element, _POINT | _POINTS[element.tag])
    body = last_name(element.word("socket_parent_frame") or element.word("body"))
    if body not in bodies:
        raise element.error(f"is fixed to '{body}', which is not a body")
    moving: tuple[Axis, ...] = ()
    condition, within = "", (-np.inf, np.inf)
    if element.tag == "ConditionalPathPoint":
        condition = _coordinate_name(element, "coordinate", coordinates)
        low, high = element.numbers("range", 2, infinite=True)
        within = min(low, high), max(low, high)
    if element.tag == "MovingPathPoint":
        moving = tuple(_location(element, axis, coordinates) for axis in "xyz")
        location = np.zeros(3)
    else:
        location = np.array(element.numbers("location", 3))
    return PathPoint(element.name, body, location, condition, within, moving)


def _location(element: Element, axis: str, coordinates: set[str]) -> Axis:
    holder = element.need(f"{axis}_location")
    functions = [child for child in holder.children if child.tag in TAGS]
    function = function_in(holder) if functions else None
    if function is None:
        raise holder.error("contains no supported function")
    unit = np.eye(3)["xyz".index(axis)]
    return Axis(unit, function, _coordinate_name(element, f"{axis}_coordinate", coordinates))


def _coordinate_name(element: Element, tag: str, coordinates: set[str]) -> str:
    name = last_name(element.word(f"socket_{tag}") or element.word(tag))
    if name not in coordinates:
        raise element.error(f"depends on '{name}', which is not a coordinate")
    return name


def _wrap(element: Element, wraps: Mapping[str, WrapObject], points: int) -> PathWrap:
    refuse_other_children(element, {"wrap_object", "method", "range"})
    name = element.word("wrap_object")
    if name not in wraps:
        raise element.error(f"wraps around '{name}', which does not exist")
    first, last = (int(v) for v in element.numbers("range", 2, (-1.0, -1.0)))
    for end in (first, last):
        if end != -1 and not 1 <= end <= points:
            raise element.need("range").error(f"names the point {end} of {points}")
    return PathWrap(name, None if first == -1 else first - 1, None if last == -1 else last - 1)


def read_path_function(element: Element, coordinates: set[str]) -> PathFunction | None:
    """The path of a force as functions of coordinates, None if it has points. Raises `ModelError`."""
    path = element.find("FunctionBasedPath") or element.find("path", "FunctionBasedPath")
    if path is None:
        return None
    known_tags = {"coordinate_paths", "length_function", "moment_arm_functions", "lengthening_speed_function"}
    refuse_other_children(path, {*known_tags, "Appearance", "components"})
    names = tuple(last_name(word) for word in path.need("coordinate_paths").text.split())
    if unknown := [name for name in names if name not in coordinates]:
        raise path.need("coordinate_paths").error(f"'{unknown[0]}' is not a coordinate")
    if not names:
        raise path.error("names no coordinate")
    holder = path.need("length_function")
    if len(holder.children) != 1:
        raise holder.error(f"contains {len(holder.children)} functions, not one")
    length = _polynomial(holder.children[0], len(names))
    arm_functions = path.find("moment_arm_functions")
    arms = tuple(_polynomial(e, len(names)) for e in ([] if arm_functions is None else arm_functions.children))
    if arms and len(arms) != len(names):
        raise path.need("moment_arm_functions").error(f"has {len(arms)} functions for {len(names)} coordinates")
    return PathFunction(names, length, arms)


def _polynomial(element: Element, variables: int) -> ManyPolynomial:
    """A polynomial of as many variables; of one also OpenSim's ``PolynomialFunction``, constants and lines."""
    match element.tag:
        case "MultivariatePolynomialFunction":
            dimension, order = int(element.number("dimension")), int(element.number("order"))
            if dimension != variables or not 0 <= order <= 20:
                raise element.error(f"has {dimension} variables and order {order}; there are {variables} coordinates")
            exponents = ordered_exponents(variables, order)
            coefficients = element.numbers("coefficients", len(exponents))
        case "Constant":
            exponents, coefficients = np.zeros((1, variables), dtype=np.int64), [element.number("value", 0.0)]
        case "LinearFunction":
            exponents = np.vstack([np.eye(variables, dtype=np.int64), np.zeros((1, variables), dtype=np.int64)])
            coefficients = element.numbers("coefficients", variables + 1)
        case "PolynomialFunction" if variables == 1:
            coefficients = element.numbers("coefficients")
            exponents = np.arange(len(coefficients))[::-1, None]
        case _:
            raise element.error(f"is not a supported function of {variables} coordinates: polynomials are")
    return ManyPolynomial(np.array(coefficients), exponents)
