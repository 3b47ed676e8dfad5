"""Read joints of both file versions: each becomes six steps between two fixed frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from designopt_mechanics.robot_files.xml import Element

from designopt.arrays import Floats
from designopt_muscle.osim.functions import Function, Polynomial, is_constant
from designopt_muscle.osim.model import GROUND, Axis, Joint, OsimCoordinate
from designopt_muscle.osim.poses import last_name, pose, refuse_other_children
from designopt_muscle.osim.read_functions import TAGS, function_in, read_function

_JOINT = {
    "socket_parent_frame", "socket_child_frame", "frames", "coordinates", "SpatialTransform", "parent_body", "reverse",
    "location_in_parent", "orientation_in_parent", "location", "orientation", "CoordinateSet", "components",
}  # fmt: skip
_COORDINATE = {
    "motion_type", "default_value", "default_speed_value", "range", "clamped", "locked", "prescribed_function",
    "prescribed", "is_free_to_satisfy_constraints",
}  # fmt: skip
_OFFSET = {"FrameGeometry", "attached_geometry", "WrapObjectSet", "socket_parent", "translation", "orientation"}
_STEPS = ("rotation1", "rotation2", "rotation3", "translation1", "translation2", "translation3")

#: Steps that the coordinates of a joint drive, as indices among three rotations and three translations.
_DRIVEN = {
    "WeldJoint": (),
    "PinJoint": (2,),
    "SliderJoint": (3,),
    "UniversalJoint": (0, 1),
    "GimbalJoint": (0, 1, 2),
    "BallJoint": (0, 1, 2),
    "PlanarJoint": (2, 3, 4),
    "FreeJoint": (0, 1, 2, 3, 4, 5),
}
_IDENTITY = Polynomial((1.0, 0.0))
_ZERO = Polynomial((0.0,))


class Joints:
    """The joints read so far, their coordinates, and `notes` for people."""

    def __init__(self, bodies: set[str]) -> None:
        self.bodies = bodies
        self.coordinates: list[OsimCoordinate] = []
        self.notes: list[str] = []
        self._joints: dict[str, tuple[Joint, Element]] = {}

    def read(self, element: Element, body: str) -> None:
        """Read a joint; `body` is the body that contains it, '' in files of version 4."""
        if element.tag != "CustomJoint" and element.tag not in _DRIVEN:
            raise element.error("is not a supported joint")
        refuse_other_children(element, _JOINT)
        if element.flag("reverse", False):
            raise element.need("reverse").error("reversed joints are not supported; swap parent and child")
        if body:
            parent, child = element.word("parent_body"), body
            in_parent = pose(
                element.numbers("location_in_parent", 3, (0.0,) * 3),
                element.numbers("orientation_in_parent", 3, (0.0,) * 3),
            )
            in_child = pose(element.numbers("location", 3, (0.0,) * 3), element.numbers("orientation", 3, (0.0,) * 3))
            coordinate_set = element.find("CoordinateSet", "objects")
        else:
            parent, in_parent = self._frame(element, "socket_parent_frame")
            child, in_child = self._frame(element, "socket_child_frame")
            coordinate_set = element.find("coordinates")
        if parent not in self.bodies:
            raise element.error(f"is attached to the body '{parent}', which does not exist")
        if child in self._joints:
            raise element.error(f"moves the body '{child}', which another joint already moves; loops are not supported")
        names = [self._coordinate(e, element) for e in ([] if coordinate_set is None else coordinate_set.children)]
        if element.tag == "CustomJoint":
            axes = _spatial_transform(element, names)
        else:
            axes = _plain(element, names)
            if element.tag in ("BallJoint", "FreeJoint"):
                self.notes.append(
                    f"joint '{element.name}': its moments are about the axes of the angles x, y, z, not of the body"
                )
        joint = Joint(element.name, parent, child, in_parent, in_child, axes[:3], axes[3:])
        self._set_units(joint)
        self._joints[child] = joint, element

    def parents_first(self) -> tuple[Joint, ...]:
        """The joints, parents before their children. Raises `ModelError` for bodies that hang on themselves."""
        order: list[Joint] = []
        parents = {GROUND}
        left = dict(self._joints)
        while left:
            ready = [child for child, (joint, _) in left.items() if joint.parent in parents]
            if not ready:
                joint, element = next(iter(left.values()))
                raise element.error(f"'{joint.child}' is not attached to the ground, but to itself")
            for child in ready:
                order.append(left.pop(child)[0])
                parents.add(child)
        file_order = {c.name: i for i, c in enumerate(self.coordinates)}
        order_of = {joint.name: i for i, joint in enumerate(order)}
        self.coordinates.sort(key=lambda c: (order_of[c.joint], file_order[c.name]))
        return tuple(order)

    def _frame(self, element: Element, socket: str) -> tuple[str, Floats]:
        """The body that a socket leads to, and the pose of the joint's frame in it."""
        frame_name = last_name(element.need(socket).text)
        frames = element.find("frames")
        for frame in [] if frames is None else frames.children:
            if frame.tag != "PhysicalOffsetFrame":
                raise frame.error("is not a supported frame")
            refuse_other_children(frame, _OFFSET)
            if frame.name == frame_name:
                body = last_name(frame.need("socket_parent").text)
                if body not in self.bodies:
                    raise frame.need("socket_parent").error(f"leads to '{body}', which is not a body")
                offset = frame.numbers("translation", 3, (0.0,) * 3), frame.numbers("orientation", 3, (0.0,) * 3)
                return body, pose(*offset)
        if frame_name in self.bodies:
            return frame_name, np.eye(4)
        raise element.need(socket).error(f"leads to '{frame_name}', which is neither a body nor a frame of this joint")

    def _coordinate(self, element: Element, joint: Element) -> str:
        if element.tag != "Coordinate" or not element.name:
            raise element.error("is not supported as a coordinate of a joint")
        refuse_other_children(element, _COORDINATE)
        if any(c.name == element.name for c in self.coordinates):
            raise element.error(f"the coordinate '{element.name}' is given more than once")
        low, high = element.numbers("range", 2, (-np.inf, np.inf), infinite=True)
        if not low <= high:
            raise element.need("range").error(f"from {low:g} to {high:g} is not a range")
        if element.flag("prescribed", False):
            self.notes.append(f"coordinate '{element.name}': its prescribed function is not used")
        self.coordinates.append(
            OsimCoordinate(
                element.name,
                joint.name,
                True,
                element.number("default_value", 0.0),
                low,
                high,
                element.flag("locked", False),
                element.flag("clamped", False),
            )
        )
        return element.name

    def _set_units(self, joint: Joint) -> None:
        """A coordinate is a length if it moves translations alone, an angle otherwise."""
        turning = {a.coordinate for a in joint.rotations}
        for i, c in enumerate(self.coordinates):
            if c.joint == joint.name and c.name not in turning:
                self.coordinates[i] = replace(c, rotational=False)


def _plain(element: Element, names: list[str]) -> tuple[Axis, ...]:
    driven = _DRIVEN[element.tag]
    if len(names) != len(driven):
        raise element.error(f"has {len(names)} coordinates, not {len(driven)}")
    axes = [Axis(unit, _ZERO) for unit in (*np.eye(3), *np.eye(3))]
    for name, step in zip(names, driven, strict=True):
        axes[step] = Axis(axes[step].axis, _IDENTITY, name)
    return tuple(axes)


def _spatial_transform(element: Element, names: list[str]) -> tuple[Axis, ...]:
    transform = element.need("SpatialTransform")
    steps = {child.name: child for child in transform.children}
    if set(steps) != set(_STEPS) or len(transform.children) != 6:
        raise transform.error(f"does not have the six axes {', '.join(_STEPS)}")
    axes = []
    for name in _STEPS:
        step = steps[name]
        refuse_other_children(step, {"coordinates", "axis", "function", *TAGS})
        axis = np.array(step.numbers("axis", 3))
        length = float(np.linalg.norm(axis))
        if not 0.0 < length < np.inf:
            raise step.need("axis").error("is not a direction")
        holder = step.find("function")
        if holder is not None and holder.tag == "function":
            function = function_in(holder)
        else:
            functions = [child for child in step.children if child.tag in TAGS]
            if len(functions) > 1:
                raise step.error(f"has {len(functions)} functions, not one")
            function = read_function(functions[0]) if functions else _ZERO
        axis = axis / length if name.startswith("rotation") else axis
        axes.append(Axis(axis, function, _driver(step, function, names)))
    turns = np.array([a.axis for a in axes[:3]])
    if abs(np.linalg.det(turns)) < 1e-6 and len({a.coordinate for a in axes[:3] if a.coordinate}) == 3:
        raise transform.error("rotates three coordinates about axes in one plane")
    return tuple(axes)


def _driver(step: Element, function: Function, names: list[str]) -> str:
    driving = [last_name(word) for word in step.word("coordinates").split()]
    if not driving:
        if is_constant(function):
            return ""
        raise step.error("is a function of a coordinate, but names no coordinate")
    if len(driving) > 1:
        raise step.error("is a function of several coordinates, which is not supported")
    if driving[0] not in names:
        raise step.need("coordinates").error(f"'{driving[0]}' is not a coordinate of this joint")
    return driving[0]
