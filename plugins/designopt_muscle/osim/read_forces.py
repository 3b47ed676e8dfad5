"""Read muscles with their paths, and drives of coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from designopt_mechanics.robot_files.xml import Element

from designopt_muscle.osim.model import (
    Axis,
    CoordinateActuator,
    OsimMuscle,
    PathPoint,
    PathWrap,
    WrapObject,
)
from designopt_muscle.osim.poses import last_name, only
from designopt_muscle.osim.read_functions import TAGS, function_in

#: Muscles that are read, with the names of their models.
MUSCLES = {
    "Thelen2003Muscle": "thelen",
    "Millard2012EquilibriumMuscle": "millard",
    "DeGrooteFregly2016Muscle": "degroote",
}
_CURVES = {"ActiveForceLengthCurve", "FiberForceLengthCurve", "ForceVelocityCurve", "TendonForceLengthCurve"}
_COMMON = {
    "appliesForce", "isDisabled", "min_control", "max_control", "GeometryPath", "optimal_force",
    "max_isometric_force", "optimal_fiber_length", "tendon_slack_length", "pennation_angle_at_optimal",
    "max_contraction_velocity", "ignore_tendon_compliance", "ignore_activation_dynamics", "activation_time_constant",
    "deactivation_time_constant", "minimum_activation", "default_activation", "default_fiber_length", "components",
    "path",
}  # fmt: skip
#: What only one model has: its name in the file and OpenSim's own value where the file has none.
_SHAPES: dict[str, dict[str, float]] = {
    "thelen": {
        "FmaxTendonStrain": 0.04, "FmaxMuscleStrain": 0.6, "KshapeActive": 0.45, "KshapePassive": 5.0, "Af": 0.25,
        "Flen": 1.4, "fv_linear_extrap_threshold": 0.95, "maximum_pennation_angle": float(np.arccos(0.1)),
    },
    "millard": {"fiber_damping": 0.1, "maximum_pennation_angle": float(np.arccos(0.1))},
    "degroote": {
        "active_force_width_scale": 1.0, "fiber_damping": 0.0, "passive_fiber_strain_at_one_norm_force": 0.6,
        "tendon_strain_at_one_norm_force": 0.049,
    },
}  # fmt: skip
_MORE = {
    "thelen": set(),
    "millard": _CURVES,
    "degroote": {"ignore_passive_fiber_force", "tendon_compliance_dynamics_mode", "default_normalized_tendon_force"},
}
#: Curves of Millard's muscles whose strain at one normalised force is taken over: its name here, OpenSim's own value.
_STRAINS = (
    ("FiberForceLengthCurve", "passive_fiber_strain_at_one_norm_force", 0.7),
    ("TendonForceLengthCurve", "tendon_strain_at_one_norm_force", 0.049),
)
_POINTS = {
    "PathPoint": set(),
    "ConditionalPathPoint": {"socket_coordinate", "coordinate", "range"},
    "MovingPathPoint": {f"{s}{a}_{w}" for a in "xyz" for s in ("socket_", "") for w in ("coordinate", "location")},
}
_POINT = {"socket_parent_frame", "body", "location", "display_preference", "VisibleObject", "Appearance"}
_PATH = {"PathPointSet", "PathWrapSet", "Appearance", "VisibleObject", "default_color", "display_preference"}
_DRIVE = {
    "appliesForce", "isDisabled", "min_control", "max_control", "optimal_force", "coordinate", "socket_coordinate",
}  # fmt: skip


#: The forces that are read here.
FORCES = {*MUSCLES, "CoordinateActuator"}


def is_off(element: Element) -> bool:
    """Whether a force is switched off."""
    return not element.flag("appliesForce", True) or element.flag("isDisabled", False)


def read_forces(
    elements: Sequence[Element], bodies: set[str], coordinates: set[str], wraps: Mapping[str, WrapObject]
) -> tuple[tuple[OsimMuscle, ...], tuple[CoordinateActuator, ...], tuple[str, ...]]:
    """Muscles, drives, and notes, from the forces that are switched on."""
    muscles: list[OsimMuscle] = []
    drives: list[CoordinateActuator] = []
    notes: list[str] = []
    for element in elements:
        if element.tag in MUSCLES:
            muscles.append(_muscle(element, bodies, coordinates, wraps))
        elif element.tag == "CoordinateActuator":
            drives.append(_drive(element, coordinates))
        else:
            raise element.error("is not a supported force; switch it off (appliesForce) if it does not matter")
    if any(muscle.model == "millard" for muscle in muscles):
        notes.append("Millard2012 muscles are evaluated with the curves of De Groote et al. (2016)")
    if drives:
        listed = ", ".join(drive.name for drive in drives)
        notes.append(f"drives of coordinates do not take part in the sharing: {listed}")
    return tuple(muscles), tuple(drives), tuple(notes)


def _drive(element: Element, coordinates: set[str]) -> CoordinateActuator:
    only(element, _DRIVE)
    coordinate = last_name(element.word("coordinate") or element.word("socket_coordinate"))
    if coordinate not in coordinates:
        raise element.error(f"drives '{coordinate}', which is not a coordinate")
    optimal = element.number("optimal_force", 1.0)
    low = element.number("min_control", -np.inf, infinite=True)
    high = element.number("max_control", np.inf, infinite=True)
    return CoordinateActuator(element.name, coordinate, optimal, low, high)


def _muscle(
    element: Element,
    bodies: set[str],
    coordinates: set[str],
    wraps: Mapping[str, WrapObject],
) -> OsimMuscle:
    model = MUSCLES[element.tag]
    shapes = _SHAPES[model]
    only(element, _COMMON | set(shapes) | _MORE[model])

    number = element.number

    def positive(tag: str, otherwise: float | None = None, least: float = 0.0) -> float:
        value = number(tag, otherwise)
        if not least < value < np.inf:
            bound = f"above {least:g}" if least else "positive"
            raise (element.find(tag) or element).error(f"{tag} must be {bound}, not {value:g}")
        return value

    path = element.find("GeometryPath")
    if path is None:
        raise element.error("has no GeometryPath; other paths are not supported")
    only(path, _PATH)
    points = [_point(e, bodies, coordinates) for e in path.need("PathPointSet", "objects").children]
    if len(points) < 2:
        raise path.error("has fewer than two points")
    listed = path.find("PathWrapSet", "objects")
    used = [_wrap(e, wraps, len(points)) for e in ([] if listed is None else listed.children)]
    pennation = number("pennation_angle_at_optimal", 0.0)
    if not 0.0 <= pennation < np.pi / 2:
        raise element.need("pennation_angle_at_optimal").error(f"{pennation:g} rad is not between 0 and a right angle")
    lowest, highest = number("min_control", 0.01), number("max_control", 1.0)
    if not 0.0 <= lowest <= highest <= 1.0:
        raise element.error(f"controls from {lowest:g} to {highest:g} are not within 0 and 1")
    shape = {name: _shape(name, positive, number, value) for name, value in shapes.items()}
    if model == "millard":
        for curve, name, usual in _STRAINS:
            holder = element.find(curve)
            shape[name] = usual if holder is None else holder.number("strain_at_one_norm_force", usual)
    if model == "degroote":
        shape["ignore_passive_fiber_force"] = float(element.flag("ignore_passive_fiber_force", False))
    return OsimMuscle(
        name=element.name,
        model=model,  # type: ignore[arg-type]
        points=tuple(points),
        wraps=tuple(used),
        force=positive("max_isometric_force"),
        fibre=positive("optimal_fiber_length"),
        slack=positive("tendon_slack_length"),
        pennation=pennation,
        fastest=positive("max_contraction_velocity", 10.0),
        min_control=lowest,
        max_control=highest,
        rigid=element.flag("ignore_tendon_compliance", False),
        rise=positive("activation_time_constant", 0.015),
        fall=positive("deactivation_time_constant", 0.060 if model == "degroote" else 0.050),
        shape=shape,
    )


def _shape(name: str, positive: Callable[..., float], number: Callable[..., float], value: float) -> float:
    """A constant of a curve: a positive one, but for dampings and thresholds that may be 0."""
    if name in ("fiber_damping", "fv_linear_extrap_threshold"):
        return number(name, value)
    return positive(name, value, 1.0 if name == "Flen" else 0.0)


def _point(element: Element, bodies: set[str], coordinates: set[str]) -> PathPoint:
    if element.tag not in _POINTS:
        raise element.error("is not a supported point")
    only(element, _POINT | _POINTS[element.tag])
    body = last_name(element.word("socket_parent_frame") or element.word("body"))
    if body not in bodies:
        raise element.error(f"is fixed to '{body}', which is not a body")
    moving: tuple[Axis, ...] = ()
    condition, within = "", (-np.inf, np.inf)
    if element.tag == "ConditionalPathPoint":
        condition = _named(element, "coordinate", coordinates)
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
    return Axis(unit, function, _named(element, f"{axis}_coordinate", coordinates))


def _named(element: Element, tag: str, coordinates: set[str]) -> str:
    name = last_name(element.word(f"socket_{tag}") or element.word(tag))
    if name not in coordinates:
        raise element.error(f"depends on '{name}', which is not a coordinate")
    return name


def _wrap(element: Element, wraps: Mapping[str, WrapObject], points: int) -> PathWrap:
    only(element, {"wrap_object", "method", "range"})
    name = element.word("wrap_object")
    if name not in wraps:
        raise element.error(f"wraps around '{name}', which does not exist")
    first, last = (int(v) for v in element.numbers("range", 2, (-1.0, -1.0)))
    for end in (first, last):
        if end != -1 and not 1 <= end <= points:
            raise element.need("range").error(f"names the point {end} of {points}")
    return PathWrap(name, None if first == -1 else first - 1, None if last == -1 else last - 1)
