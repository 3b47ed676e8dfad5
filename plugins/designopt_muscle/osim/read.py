"""Read an OpenSim model file (versions 3 and 4) into an `OsimModel`."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from designopt_mechanics.robot_files.xml import Element, parse

from designopt_muscle.osim.functions import ScaledFunction
from designopt_muscle.osim.model import GROUND, Coupler, OsimBody, OsimModel, WrapObject
from designopt_muscle.osim.poses import last_name, pose, refuse_other_children
from designopt_muscle.osim.read_contacts import TAG as CONTACT
from designopt_muscle.osim.read_contacts import contact_shapes, sphere_contact
from designopt_muscle.osim.read_forces import FORCES, is_off, read_forces
from designopt_muscle.osim.read_functions import function_in
from designopt_muscle.osim.read_joints import Joints
from designopt_muscle.osim.read_passive import read_passive

#: Parts of a model that say nothing of its mechanics.
_DECORATION = {
    "credits", "publications", "length_units", "force_units", "MarkerSet", "ProbeSet", "assembly_accuracy", "defaults",
    "ModelVisualPreferences", "Ground", "BodySet", "JointSet", "ConstraintSet", "ForceSet", "gravity",
    "ContactGeometrySet", "ControllerSet", "ComponentSet", "MiscModelComponents", "components", "use_visualizer",
    "FrameSet",
}  # fmt: skip
#: Sets of a model; each has its members in <objects>.
_SETS = (
    "BodySet", "JointSet", "ConstraintSet", "ForceSet", "ContactGeometrySet", "ControllerSet", "ComponentSet",
    "MiscModelComponents", "MarkerSet", "ProbeSet", "FrameSet",
)  # fmt: skip
#: Components without effect on the mechanics, with those whose names end in _REPORTING.
_HARMLESS = {"Marker", "Station", "PhysicalOffsetFrame", "FrameGeometry", "Mesh", "Brick", "Sphere", "Cylinder",
             "Ellipsoid", "Cone", "Arrow", "LineGeometry"}  # fmt: skip
_REPORTING = ("Probe", "Reporter")
_BODY = {
    "mass", "mass_center", "inertia", "inertia_xx", "inertia_yy", "inertia_zz", "inertia_xy", "inertia_xz",
    "inertia_yz", "FrameGeometry", "attached_geometry", "WrapObjectSet", "VisibleObject", "Joint", "components",
    "frame_geometry", "Appearance",
}  # fmt: skip
_WRAP = {
    "active", "xyz_body_rotation", "translation", "quadrant", "display_preference", "VisibleObject", "Appearance",
    "radius", "length", "dimensions", "inner_radius", "outer_radius", "color", "SurfaceProperties",
}  # fmt: skip
_COUPLER = {
    "isEnforced", "isDisabled", "coupled_coordinates_function", "independent_coordinate_names",
    "dependent_coordinate_name", "scale_factor",
}  # fmt: skip
_QUADRANTS = ("all", "+x", "-x", "+y", "-y", "+z", "-z")


@lru_cache(maxsize=8)
def read_model(content: bytes) -> OsimModel:
    """The model in an ``.osim`` file.

    Raises `ModelError` with path, line and column for files that are not models, invalid numbers, references to unknown
    names, and every unknown element that would change the mechanics.
    """
    root = parse(content)
    model = root.find("Model") if root.tag == "OpenSimDocument" else None
    if model is None:
        raise root.error("is not an OpenSim model: a <Model> within <OpenSimDocument> is expected")
    version = root.attributes.get("Version", "")
    if not version.isdigit() or not 30000 <= int(version) < 50000:
        raise root.error(f"has the version '{version}'; files of the versions 30000 to 49999 are read")
    refuse_other_children(model, _DECORATION)
    _apply_defaults(model)
    _refuse_unread(model)
    reader = _Reader(model, new=int(version) >= 40000)
    return reader.read()


class _Reader:
    def __init__(self, model: Element, new: bool) -> None:
        self.model = model
        self.new = new

    def read(self) -> OsimModel:
        elements = {e.name: e for e in _objects(self.model, "BodySet", "Body")}
        ground = self.model.find("Ground")
        bodies = {name: _body(e) for name, e in elements.items() if name != GROUND}
        body_names = {GROUND, *bodies}
        joints = Joints(body_names)
        for element in self._joint_elements(elements):
            joints.read(element[0], element[1])
        order = joints.parents_first()
        without = set(bodies) - {joint.child for joint in order}
        if without:
            name = min(without)
            raise elements[name].error("is attached to no joint; weld it to the ground or remove it")
        wraps = [w for name, e in elements.items() for w in _wraps(e, name)]
        if ground is not None:
            wraps += _wraps(ground, GROUND)
        names = {c.name for c in joints.coordinates}
        couplers = tuple(c for e in _objects(self.model, "ConstraintSet") if (c := _coupler(e, names)) is not None)
        forces = [e for e in _force_elements(self.model) if not is_off(e)]
        shapes = contact_shapes(_objects(self.model, "ContactGeometrySet"), body_names)
        contacts = tuple(sphere_contact(e, shapes) for e in forces if e.tag == CONTACT)
        loads = [e for e in forces if e.tag != CONTACT]
        surfaces = {w.name: w for w in wraps}
        muscles, actuators, notes = read_forces(loads, body_names, names, surfaces)
        if contacts:
            contact_names = ", ".join(contact.name for contact in contacts)
            notes = (*notes, f"contacts do not take part in the sharing: {contact_names}")
        passive = read_passive(loads, body_names, {c.name: c.rotational for c in joints.coordinates}, surfaces)
        gravity = self.model.find("gravity")
        return OsimModel(
            self.model.name,
            np.array(gravity.values(3) if gravity is not None else [0.0, -9.80665, 0.0]),
            tuple(bodies[joint.child] for joint in order),
            order,
            tuple(joints.coordinates),
            couplers,
            tuple(wraps),
            muscles,
            actuators,
            (*joints.notes, *notes, *_controllers(self.model)),
            contacts,
            passive,
        )

    def _joint_elements(self, elements: dict[str, Element]) -> list[tuple[Element, str]]:
        """The joints, and in files of version 3 the body that each is written in."""
        if self.new:
            return [(e, "") for e in _objects(self.model, "JointSet")]
        if joints := _objects(self.model, "JointSet"):
            raise joints[0].error("is of a form between versions 3 and 4; save the model with OpenSim 4")
        named_joints = []
        for name, body in elements.items():
            holder = body.find("Joint")
            for joint in [] if holder is None else holder.children:
                named_joints.append((joint, name))
        return named_joints


def _apply_defaults(model: Element) -> None:
    """Give each element what it does not state from the element of its kind in the <defaults> of the file."""
    holder = model.find("defaults")
    if holder is None:
        return
    defaults = {default.tag: default for default in holder.children}
    for part in model.children:
        for element in [] if part is holder else list(part.walk()):
            element.children = element.with_defaults(defaults.get(element.tag)).children


def _refuse_unread(model: Element) -> None:
    """Raise `ModelError` for whatever would change the mechanics in places that are not read: a set that appears twice,
    members outside its <objects>, and components besides markers, frames, geometry, probes and reporters."""
    for name in _SETS:
        holders = [child for child in model.children if child.tag == name]
        if len(holders) > 1:
            raise holders[1].error(f"a model has one <{name}>; join both")
        for holder in holders:
            refuse_other_children(holder, {"objects", "groups", "defaults"})
            if len([child for child in holder.children if child.tag == "objects"]) > 1:
                raise holder.error("has more than one <objects>; join them")
    lists = [e for e in model.walk() if e.tag == "components"]
    forces = _force_elements(model)
    lists += [
        e
        for name in ("ComponentSet", "MiscModelComponents", "FrameSet")
        if (e := model.find(name, "objects")) is not None
    ]
    for holder in lists:
        place_tag = holder.tag if holder.parent is None or holder.tag != "objects" else holder.parent.tag
        for member in holder.children:
            if not (member in forces or is_off(member) or member.tag in _HARMLESS or member.tag.endswith(_REPORTING)):
                raise member.error(f"is not read within <{place_tag}>; move it into the set of its kind, or remove it")


def _force_elements(model: Element) -> list[Element]:
    """The forces in the set and those among the model's own components. Raises `ModelError` for names given twice."""
    holder, components = model.find("ForceSet", "objects"), model.find("components")
    forces = [] if holder is None else list(holder.children)
    forces += [] if components is None else [e for e in components.children if e.tag in FORCES or e.tag == CONTACT]
    active = [e for e in forces if not is_off(e)]
    names = [e.name for e in active]
    for element in active:
        if not element.name or names.count(element.name) > 1:
            raise element.error("has no name of its own")
    return forces


def _controllers(model: Element) -> list[str]:
    holder = model.find("ControllerSet", "objects")
    names = [] if holder is None else [member.name or member.tag for member in holder.children]
    return [f"controllers are not used: {', '.join(names)}"] if names else []


def _objects(model: Element, collection: str, tag: str = "") -> list[Element]:
    """The members of a set; with a `tag`, members of another kind are refused."""
    holder = model.find(collection)
    if holder is None:
        return []
    objects = holder.find("objects")
    members = [] if objects is None else objects.children
    for member in members:
        if tag and member.tag != tag:
            raise member.error(f"is not supported in {collection}")
        if not member.name:
            raise member.error("has no name")
    names = [m.name for m in members]
    for member in members:
        if names.count(member.name) > 1:
            raise member.error(f"the name '{member.name}' is given more than once in {collection}")
    return members


def _body(element: Element) -> OsimBody:
    refuse_other_children(element, _BODY)
    mass = element.number("mass")
    if not 0.0 <= mass < np.inf:
        raise element.need("mass").error(f"{mass:g} kg is not a mass")
    if element.find("inertia") is not None:
        xx, yy, zz, xy, xz, yz = element.numbers("inertia", 6)
    else:
        xx, yy, zz, xy, xz, yz = (
            element.number(f"inertia_{axes}", 0.0) for axes in ("xx", "yy", "zz", "xy", "xz", "yz")
        )
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return OsimBody(element.name, mass, np.array(element.numbers("mass_center", 3, (0.0, 0.0, 0.0))), inertia)


def _wraps(body: Element, name: str) -> list[WrapObject]:
    holder = body.find("WrapObjectSet", "objects")
    surfaces = []
    for element in [] if holder is None else holder.children:
        refuse_other_children(element, _WRAP)
        kind: str
        sizes: tuple[float, ...]
        match element.tag:
            case "WrapCylinder":
                kind, sizes = "cylinder", (element.number("radius"), element.number("length"))
            case "WrapSphere":
                kind, sizes = "sphere", (element.number("radius"),)
            case "WrapEllipsoid":
                kind, sizes = "ellipsoid", tuple(element.numbers("dimensions", 3))
            case "WrapTorus":
                kind, sizes = "torus", (element.number("inner_radius"), element.number("outer_radius"))
            case _:
                raise element.error("is not a supported wrap object")
        if not all(0.0 < size < np.inf for size in sizes):
            raise element.error(f"has the sizes {', '.join(f'{s:g}' for s in sizes)}; they must be positive")
        if kind == "torus" and sizes[0] >= sizes[1]:
            raise element.error(
                f"has an outer_radius of {sizes[1]:g}; it must be larger than the inner_radius, {sizes[0]:g}"
            )
        quadrant = element.word("quadrant", "all") or "all"
        quadrant = f"+{quadrant}" if quadrant in ("x", "y", "z") else quadrant
        if quadrant not in _QUADRANTS:
            raise element.need("quadrant").error(f"'{quadrant}' is not one of {', '.join(_QUADRANTS)}")
        if kind in ("cylinder", "torus") and quadrant[1] == "z":
            raise element.need("quadrant").error(f"a {kind} has no side along its axis z")
        surface_pose = pose(
            element.numbers("translation", 3, (0.0,) * 3), element.numbers("xyz_body_rotation", 3, (0.0,) * 3)
        )
        surfaces.append(
            WrapObject(element.name, name, kind, sizes, surface_pose, quadrant, element.flag("active", True))  # type: ignore[arg-type]
        )
    return surfaces


def _coupler(element: Element, names: set[str]) -> Coupler | None:
    if not element.flag("isEnforced", True) or element.flag("isDisabled", False):
        return None
    if element.tag != "CoordinateCouplerConstraint":
        raise element.error("is not a supported constraint; disable it if it does not matter")
    refuse_other_children(element, _COUPLER)
    dependent = last_name(element.word("dependent_coordinate_name"))
    independent = element.word("independent_coordinate_names").split()
    if len(independent) != 1:
        raise element.error(f"couples to {len(independent)} coordinates; only one is supported")
    for name in (dependent, last_name(independent[0])):
        if name not in names:
            raise element.error(f"names the coordinate '{name}', which does not exist")
    function = function_in(element.need("coupled_coordinates_function"))
    if (factor := element.number("scale_factor", 1.0)) != 1.0:
        function = ScaledFunction(function, factor)
    return Coupler(dependent, last_name(independent[0]), function)
