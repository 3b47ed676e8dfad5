"""URDF, the robot description of ROS: links and joints with inertias, limits, damping, friction and `mimic`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from designopt.arrays import Floats
from designopt_mechanics.body import Body
from designopt_mechanics.model_file.nodes import TURN
from designopt_mechanics.motions import Motion, Rotate, Slide
from designopt_mechanics.robot_files.parts import (
    LocalPose,
    RobotParts,
    affine,
    axis_of,
    body_of,
    follow,
    moved,
    rotation_from,
    triple,
)
from designopt_mechanics.robot_files.xml import Element, ModelError
from designopt_mechanics.tree import GROUND, Coordinate, Frame

_KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
_SHAPES = "shapes have no part in the equations; inertias come from <inertial>"
_SETTINGS = "settings of another program are not read"
#: Elements that are not carried over, with the reasons.
_OMITTED = {
    "visual": _SHAPES,
    "collision": _SHAPES,
    "material": "a colour has no part in the equations",
    "gazebo": _SETTINGS,
    "ros2_control": _SETTINGS,
    "safety_controller": _SETTINGS,
    "calibration": "the position of a reference mark is not read",
    "sensor": "sensors are not read",
}


def read_urdf(root: Element) -> RobotParts:
    """The parts of a <robot>, whose root link is fixed to the ground. Raises `ModelError`."""
    parts = RobotParts()
    links, joints = _elements(root, "link"), _elements(root, "joint")
    if not links:
        raise root.error("has no link")
    ratios: dict[str, float] = {}
    for element in root.children:
        if element.tag == "transmission":
            _transmission(parts, element, ratios)
        elif element.tag not in ("link", "joint"):
            _omit(parts, element)
    motions = _motions(parts, joints, ratios)
    children = {_link(joint, "child", links): joint for joint in joints.values()}
    if len(children) < len(joints):
        raise root.error("a link is the child of more than one joint; URDF has no loops")
    roots = [name for name in links if name not in children]
    if len(roots) != 1:
        raise root.error(f"has {len(roots)} links without a parent ({', '.join(roots) or 'a circle'}), not one")
    waiting = roots
    while waiting:
        name = waiting.pop(0)
        joint = children.get(name)
        parent = GROUND if joint is None else parts.frame_names[_link(joint, "parent", links)]
        pose = _origin(joint)
        frame, body = parts.frame_name(links[name], name), _body(parts, links[name])
        moves = () if joint is None else tuple(motions[joint.name])
        parts.frames.append(Frame(frame, parent, moves, body, triple(pose.position), pose.turn))
        waiting += [link for link, upper in children.items() if _link(upper, "parent", links) == name]
    if len(parts.frames) < len(links):
        raise root.error(
            f"links are connected in a circle: {', '.join(n for n in links if n not in parts.frame_names)}"
        )
    return parts


def _elements(root: Element, tag: str) -> dict[str, Element]:
    elements: dict[str, Element] = {}
    for element in root.children:
        if element.tag == tag:
            if not element.name:
                raise element.error("has no name")
            if element.name in elements:
                raise element.error(f"the name '{element.name}' is not unique")
            elements[element.name] = element
    return elements


def _omit(parts: RobotParts, element: Element) -> None:
    parts.omit(element, _OMITTED.get(element.tag, "this element is not known here"))


def _motions(parts: RobotParts, joints: Mapping[str, Element], ratios: Mapping[str, float]) -> dict[str, list[Motion]]:
    """The motions of each joint; coordinates are in the order of the joints that have some."""
    leaders: dict[str, tuple[str, float, float]] = {}
    for name, joint in joints.items():
        if (mimic := joint.find("mimic")) is not None:
            leader = mimic.attributes.get("joint", "")
            if leader not in joints or joints[leader].attributes.get("type") not in _KINDS[:3]:
                raise mimic.error(f"there is no joint '{leader}' of one coordinate")
            (slope,) = mimic.attribute("multiplier", (1,), (1.0,))
            (offset,) = mimic.attribute("offset", (1,), (0.0,))
            leaders[name] = (leader, slope, offset)
    names: dict[str, str] = {}
    motions: dict[str, list[Motion]] = {}
    for name, joint in joints.items():
        kind = joint.attributes.get("type", "")
        if kind not in _KINDS:
            raise joint.error(f"the type '{kind}' is not one of {', '.join(_KINDS)}")
        for element in joint.children:
            if element.tag not in ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"):
                _omit(parts, element)
        if kind == "floating":
            motions[name] = parts.free_motions(joint, name, np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
        elif kind == "planar":
            motions[name] = _planar(parts, joint)
        elif kind == "fixed":
            motions[name] = []
        elif name not in leaders:
            names[name] = _coordinate(parts, joint, ratios.get(name, 1.0))
    for name, joint in joints.items():
        if name in motions:
            continue
        try:
            leader, slope, offset = follow(name, leaders)
        except ValueError as error:
            raise joint.error(str(error)) from None
        for tag in ("limit", "dynamics") if name in leaders else ():
            if (law_element := joint.find(tag)) is not None:
                parts.omit(law_element, f"the joint follows '{leader}', which has its own")
        turns = joint.attributes["type"] != "prismatic"
        motions[name] = [moved(Rotate if turns else Slide, _axis(joint), affine(names[leader], slope, offset))]
    return motions


def _coordinate(parts: RobotParts, joint: Element, ratio: float) -> str:
    """Add the coordinate of a joint that has one; its name."""
    kind = joint.attributes["type"]
    low, high, effort, speed, damping, friction = -math.inf, math.inf, 0.0, 0.0, 0.0, 0.0
    if (limit := joint.find("limit")) is not None:
        effort, speed = (limit.attribute(key, (1,), (0.0,))[0] for key in ("effort", "velocity"))
        if kind != "continuous":
            low, high = (limit.attribute(key, (1,), (0.0,))[0] for key in ("lower", "upper"))
            if low == high:
                parts.omit(limit, f"lower and upper are both {low:g}: the joint has no range here")
                low, high = -math.inf, math.inf
            elif not low < high:
                raise limit.error(f"lower {low:g} is not below upper {high:g}")
            elif kind == "revolute" and max(-low, high) > TURN:
                parts.omit(limit, f"{low:g} to {high:g} rad are more than a turn: are they in degrees?")
    elif kind != "continuous":
        raise joint.error("has no <limit>, which URDF requires of revolute and prismatic joints")
    if (dynamics := joint.find("dynamics")) is not None:
        damping, friction = (dynamics.attribute(key, (1,), (0.0,))[0] for key in ("damping", "friction"))
    reference = min(max(0.0, low), high)
    unit: Literal["rad", "m"] = "m" if kind == "prismatic" else "rad"
    name = parts.coordinate(joint, Coordinate(joint.name, unit, low, high, reference))
    limits = {"largest_effort": effort, "largest_speed": speed}
    bounds = {key: value for key, value in limits.items() if value != 0.0}  # URDF writes 0 where nothing is known
    parts.law(dynamics or limit or joint, name, damping=damping, friction=friction, ratio=ratio, **bounds)
    return name


def _planar(parts: RobotParts, joint: Element) -> list[Motion]:
    """Two slides in the plane normal to the axis, and a turn about it."""
    normal = _axis(joint)
    normal = normal / np.linalg.norm(normal)
    first = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
    slides = [
        moved(Slide, direction, parts.coordinate(joint, Coordinate(f"{joint.name}_{letter}", "m")))
        for letter, direction in (("x", first), ("y", np.cross(normal, first)))
    ]
    return [*slides, moved(Rotate, normal, parts.coordinate(joint, Coordinate(f"{joint.name}_turn")))]


def _axis(joint: Element) -> Floats:
    element = joint.find("axis")
    return np.array([1.0, 0.0, 0.0]) if element is None else axis_of(element, element.attribute("xyz", (3,)))


def _link(joint: Element, tag: str, links: Mapping[str, Element]) -> str:
    element = joint.need(tag)
    name = element.attributes.get("link", "")
    if name not in links:
        raise element.error(f"there is no link '{name}'")
    return name


def _origin(element: Element | None) -> LocalPose:
    origin = None if element is None else element.find("origin")
    if origin is None:
        return LocalPose(np.zeros(3), np.eye(3))
    zeros = (0.0, 0.0, 0.0)
    position = np.array(origin.attribute("xyz", (3,), zeros))
    return LocalPose(position, rotation_from("XYZ", origin.attribute("rpy", (3,), zeros)))


def _body(parts: RobotParts, link: Element) -> Body | None:
    for element in link.children:
        if element.tag != "inertial":
            _omit(parts, element)
    inertial = link.find("inertial")
    if inertial is None:
        return None
    pose, element = _origin(inertial), inertial.need("inertia")
    (mass,) = inertial.need("mass").attribute("value", (1,))
    xx, yy, zz = (element.attribute(key, (1,))[0] for key in ("ixx", "iyy", "izz"))
    xy, xz, yz = (element.attribute(key, (1,), (0.0,))[0] for key in ("ixy", "ixz", "iyz"))
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    link_inertia = pose.turn @ inertia @ pose.turn.T
    try:
        return body_of(inertial, mass, pose.position, link_inertia)
    except ModelError as error:  # many published robots have rounded or estimated tensors
        body = body_of(inertial, mass, pose.position, link_inertia, triangle="ignored")
        parts.omit(inertial, f"{error.message}; the tensor is used as it stands")
        return body


def _transmission(parts: RobotParts, element: Element, ratios: dict[str, float]) -> None:
    """The reduction between an actuator and a joint."""
    actuator, joint = element.find("actuator"), element.find("joint")
    reduction = None if actuator is None else actuator.find("mechanicalReduction")
    if joint is None or reduction is None:
        parts.omit(element, "it states no joint with a mechanicalReduction")
        return
    (ratio,) = reduction.values(1)
    if ratio == 0.0:
        raise reduction.error("is 0")
    ratios[joint.name] = ratio
