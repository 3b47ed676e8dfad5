"""Read contact geometry and the forces of spheres on half spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from designopt_mechanics.contacts import ContactError, Plane, SphereContact
from designopt_mechanics.robot_files.xml import Element
from designopt_mechanics.tree import Point

from designopt.arrays import Floats
from designopt_muscle.osim.poses import last_name, pose, refuse_other_children

#: The force that is read, by its name in the file.
TAG = "SmoothSphereHalfSpaceForce"
_GEOMETRY = {"socket_frame", "body_name", "location", "orientation", "display_preference", "color", "Appearance"}
#: Names of the constants in the file, those of `SphereContact`, and the values of OpenSim where the file has none.
_CONSTANTS = {
    "stiffness": ("stiffness", 1.0),
    "dissipation": ("dissipation", 0.0),
    "static_friction": ("static", 0.0),
    "dynamic_friction": ("dynamic", 0.0),
    "viscous_friction": ("viscous", 0.0),
    "transition_velocity": ("transition_speed", 0.01),
    "constant_contact_force": ("constant_force", 1e-5),
    "hertz_smoothing": ("hertz_smoothing", 300.0),
    "hunt_crossley_smoothing": ("speed_smoothing", 50.0),
}
#: A former name of the constant force, which OpenSim ignores, and what does not change the mechanics.
_IGNORED = {"derivative_smoothing", "appliesForce", "isDisabled", "force_visualization_radius", "components"}
_FORCE_VIEW = {"force_visualization_scale_factor"}


@dataclass(frozen=True, eq=False)
class ContactShape:
    """A sphere with a `radius` (m), or a half space (None), at a pose (4, 4) in `body`."""

    body: str
    pose: Floats
    radius: float | None


def contact_shapes(elements: Sequence[Element], bodies: set[str]) -> dict[str, ContactShape | Element]:
    """Spheres and half spaces by name; other geometry as its element, an error only where a force uses it."""
    shapes: dict[str, ContactShape | Element] = {}
    for element in elements:
        if element.tag not in ("ContactSphere", "ContactHalfSpace"):
            shapes[element.name] = element
            continue
        refuse_other_children(element, _GEOMETRY | ({"radius"} if element.tag == "ContactSphere" else set()))
        body = last_name(element.word("socket_frame") or element.word("body_name"))
        if body not in bodies:
            raise element.error(f"is fixed to '{body}', which is not a body")
        at = pose(element.numbers("location", 3, (0.0,) * 3), element.numbers("orientation", 3, (0.0,) * 3))
        shapes[element.name] = ContactShape(
            body, at, element.number("radius") if element.tag == "ContactSphere" else None
        )
    return shapes


def sphere_contact(element: Element, shapes: Mapping[str, ContactShape | Element]) -> SphereContact:
    """The contact of a sphere with a half space, which lies on the side of its positive x axis.

    Raises `ModelError`.
    """
    refuse_other_children(element, {"socket_sphere", "socket_half_space", *_CONSTANTS, *_IGNORED, *_FORCE_VIEW})
    sphere, plane = (_shape(element, tag, shapes) for tag in ("socket_sphere", "socket_half_space"))
    if sphere.radius is None or plane.radius is not None:
        raise element.error("needs a ContactSphere as socket_sphere and a ContactHalfSpace as socket_half_space")
    constants = {name: element.number(tag, usual) for tag, (name, usual) in _CONSTANTS.items()}
    normal = np.where(np.abs(plane.pose[:3, 0]) < 1e-15, 0.0, -plane.pose[:3, 0])
    try:
        return SphereContact(
            element.name,
            Point(sphere.body, tuple(sphere.pose[:3, 3].tolist())),
            sphere.radius,
            Plane(plane.body, tuple(plane.pose[:3, 3].tolist()), tuple(normal.tolist())),
            friction="opensim",
            **constants,
        )
    except ContactError as error:
        raise element.error(f"{error.field}: {error.message}") from None


def _shape(element: Element, tag: str, shapes: Mapping[str, ContactShape | Element]) -> ContactShape:
    name = last_name(element.word(tag))
    shape = shapes.get(name)
    if shape is None:
        raise element.error(f"{tag} names '{name}', which is not in ContactGeometrySet")
    if isinstance(shape, Element):
        raise shape.error("is not supported contact geometry; a sphere on a half space is")
    return shape
