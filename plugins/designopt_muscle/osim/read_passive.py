"""Read forces that follow from the motion alone: springs and limits of coordinates, ligaments, bushings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from designopt_mechanics.robot_files.xml import Element

from designopt.arrays import Floats
from designopt.study.language.expressions.expression import Expression
from designopt.study.language.expressions.grammar import ExpressionError
from designopt_muscle.osim.functions import Function, simm_spline
from designopt_muscle.osim.laws import (
    Blankevoort,
    CoordinateExpression,
    CoordinateForceLaw,
    CoordinateLimit,
    CoordinateSpring,
    LigamentCurve,
    PathLaw,
    StretchSpring,
)
from designopt_muscle.osim.model import GROUND, Bushing, CoordinateForce, PassiveForce, PathForce, WrapObject
from designopt_muscle.osim.poses import last_name, pose, refuse_other_children
from designopt_muscle.osim.read_functions import function_in
from designopt_muscle.osim.read_paths import read_path

_SWITCH = {"appliesForce", "isDisabled", "components"}
_LIMIT = {
    "coordinate", "upper_stiffness", "upper_limit", "lower_stiffness", "lower_limit", "damping", "transition",
    "compute_dissipation_energy",
}  # fmt: skip
_VECTORS = ("rotational_stiffness", "translational_stiffness", "rotational_damping", "translational_damping")
#: OpenSim's own curve of a ligament: force by length over resting length.
_LIGAMENT = (
    (-5.0, 0.998, 0.999, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.601, 1.602, 5.0),
    (0.0, 0.0, 0.0, 0.0, 0.035, 0.12, 0.26, 0.55, 1.17, 2.0, 2.0, 2.0, 2.0),
)


@dataclass(frozen=True, eq=False)
class _Names:
    """The names to which a force may refer."""

    bodies: set[str]
    coordinates: Mapping[str, bool]
    wraps: Mapping[str, WrapObject]


def read_passive(
    elements: Sequence[Element], bodies: set[str], coordinates: Mapping[str, bool], wraps: Mapping[str, WrapObject]
) -> tuple[PassiveForce, ...]:
    """The passive forces among `elements`, which are switched on; `coordinates` say whether they are angles.

    Raises `ModelError` for unknown names, and numbers that are no constants of the law.
    """
    names = _Names(bodies, coordinates, wraps)
    return tuple(PASSIVE[element.tag](element, names) for element in elements if element.tag in PASSIVE)


def _coordinate(element: Element, names: _Names) -> str:
    coordinate = last_name(element.word("coordinate") or element.word("socket_coordinate"))
    if coordinate not in names.coordinates:
        raise element.error(f"acts at '{coordinate}', which is not a coordinate")
    return coordinate


def _limit(element: Element, names: _Names) -> PassiveForce:
    """Numbers of a rotation are per degree in the file."""
    refuse_other_children(element, _LIMIT | _SWITCH)
    coordinate = _coordinate(element, names)
    degree = float(np.pi / 180.0) if names.coordinates[coordinate] else 1.0
    number = element.number
    law = CoordinateLimit(
        number("lower_limit", 0.0) * degree,
        number("upper_limit", 0.0) * degree,
        number("lower_stiffness", 1.0) / degree,
        number("upper_stiffness", 1.0) / degree,
        number("damping", 0.001) / degree,
        _positive(element, "transition", 0.1) * degree,
    )
    return CoordinateForce(element.name, coordinate, law)


def _spring(element: Element, names: _Names) -> PassiveForce:
    refuse_other_children(element, {"coordinate", "stiffness", "rest_length", "viscosity"} | _SWITCH)
    constants = (element.number(tag, 0.0) for tag in ("stiffness", "rest_length", "viscosity"))
    return CoordinateForce(element.name, _coordinate(element, names), CoordinateSpring(*constants))


def _expression(element: Element, names: _Names) -> PassiveForce:
    """OpenSim writes a power as ^."""
    refuse_other_children(element, {"coordinate", "expression"} | _SWITCH)
    text = element.need("expression")
    try:
        expression = Expression.parse(text.text.strip().replace("^", "**"))
    except ExpressionError as error:
        raise text.error(f"is not understood: {error.message}") from None
    if expression.is_relation or expression.names - {"q", "qdot"}:
        raise text.error("must be an expression of q and qdot")
    law: CoordinateForceLaw = CoordinateExpression(expression)
    return CoordinateForce(element.name, _coordinate(element, names), law)


def _path_spring(element: Element, names: _Names) -> PassiveForce:
    refuse_other_children(element, {"GeometryPath", "path", "stiffness", "resting_length", "dissipation"} | _SWITCH)
    stiffness, rest_length, dissipation = (
        element.number(tag) for tag in ("stiffness", "resting_length", "dissipation")
    )
    return _along_path(element, names, StretchSpring(stiffness, rest_length, dissipation))


def _ligament(element: Element, names: _Names) -> PassiveForce:
    refuse_other_children(
        element, {"GeometryPath", "path", "resting_length", "pcsa_force", "force_length_curve"} | _SWITCH
    )
    holder = element.find("force_length_curve")
    curve: Function = simm_spline(*(np.array(part) for part in _LIGAMENT)) if holder is None else function_in(holder)
    rest_length = _positive(element, "resting_length")
    return _along_path(element, names, LigamentCurve(rest_length, element.number("pcsa_force", 0.0), curve))


def _blankevoort(element: Element, names: _Names) -> PassiveForce:
    tags = {"linear_stiffness", "transition_strain", "damping_coefficient", "slack_length"}
    refuse_other_children(element, {"GeometryPath", "path"} | tags | _SWITCH)
    law = Blankevoort(
        _positive(element, "slack_length"),
        element.number("linear_stiffness", 1.0),
        _positive(element, "transition_strain", 0.06),
        element.number("damping_coefficient", 0.003),
    )
    return _along_path(element, names, law)


def _along_path(element: Element, names: _Names, law: PathLaw) -> PassiveForce:
    return PathForce(element.name, *read_path(element, names.bodies, set(names.coordinates), names.wraps), law)


def _bushing(element: Element, names: _Names) -> PassiveForce:
    refuse_other_children(element, {"socket_frame1", "socket_frame2", "frames", *_VECTORS} | _SWITCH)
    vectors = [np.array(element.numbers(tag, 3, (0.0,) * 3)) for tag in _VECTORS]
    first, second = (_frame(element, tag, names) for tag in ("socket_frame1", "socket_frame2"))
    return Bushing(element.name, (first, second), np.concatenate(vectors[:2]), np.concatenate(vectors[2:]))


def _frame(element: Element, socket: str, names: _Names) -> tuple[str, Floats]:
    """The body of a frame and the pose (4, 4) of the frame in it."""
    name = last_name(element.word(socket))
    frame_list = element.find("frames")
    for frame in [] if frame_list is None else frame_list.children:
        if frame.name == name:
            body = last_name(frame.word("socket_parent"))
            at = frame.numbers("translation", 3, (0.0,) * 3), frame.numbers("orientation", 3, (0.0,) * 3)
            break
    else:
        body, at = name, ([0.0] * 3, [0.0] * 3)
    if body not in names.bodies and body != GROUND:
        raise element.error(f"{socket} leads to '{body}', which is not a body")
    return body, pose(*at)


def _positive(element: Element, tag: str, default: float | None = None) -> float:
    value = element.number(tag, default)
    if value <= 0.0:
        raise element.need(tag).error(f"must be positive, not {value:g}")
    return value


#: Passive forces that are read, with the functions that read them.
PASSIVE: dict[str, Callable[[Element, _Names], PassiveForce]] = {
    "CoordinateLimitForce": _limit,
    "SpringGeneralizedForce": _spring,
    "ExpressionBasedCoordinateForce": _expression,
    "PathSpring": _path_spring,
    "Ligament": _ligament,
    "Blankevoort1991Ligament": _blankevoort,
    "BushingForce": _bushing,
}
