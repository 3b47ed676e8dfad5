"""MJCF, the model file of MuJoCo: bodies, joints, inertias, spatial tendons, and equality constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import casadi as ca
from designopt_mechanics.body import Body
from designopt_mechanics.functions.piecewise import polynomial
from designopt_mechanics.mechanism.mechanism import Coincidence
from designopt_mechanics.motions import Motion, Rotate, Slide, Value
from designopt_mechanics.robot_files.geoms import NO_VOLUME, combined_mass, geom_mass
from designopt_mechanics.robot_files.mjcf_text import MjcfText
from designopt_mechanics.robot_files.parts import (
    LocalPose,
    RobotParts,
    affine,
    axis_of,
    body_of,
    moved,
    point,
    quaternion_from,
    triple,
)
from designopt_mechanics.robot_files.xml import Element
from designopt_mechanics.springs import Spring, SpringError
from designopt_mechanics.state import TreeState
from designopt_mechanics.surfaces.over import Surface, SurfaceError, SurfaceWrap
from designopt_mechanics.tree import GROUND, Coordinate, Frame, Point, Tree
from designopt_mechanics.wires import Wire, lengths

_SETTINGS = "settings of another program are not read"
#: Elements that are not carried over, with the reasons.
_OMITTED = {
    "asset": "meshes and textures are not read",
    "visual": _SETTINGS,
    "statistic": _SETTINGS,
    "size": _SETTINGS,
    "custom": _SETTINGS,
    "contact": "contacts of geoms are not read; state contacts of points with planes",
    "sensor": "sensors are not read",
    "keyframe": "states are not read",
    "deformable": "deformable bodies are not read",
    "camera": "has no part in the equations",
    "light": "has no part in the equations",
}
_REFUSED = ("include", "replicate", "composite", "flexcomp", "attach", "extension", "plugin")
_NO_TURN = np.array([1.0, 0.0, 0.0, 0.0])


@dataclass
class _Joints:
    """Properties of joints with one coordinate, by their names in the file."""

    names: dict[str, str] = field(default_factory=dict)
    references: dict[str, float] = field(default_factory=dict)
    laws: dict[str, tuple[Element, dict[str, Any]]] = field(default_factory=dict)


@dataclass
class _Reader:
    """Reads the bodies; `followers` are joint variables of joints that an equality constraint couples."""

    text: MjcfText
    parts: RobotParts = field(default_factory=RobotParts)
    joints: _Joints = field(default_factory=_Joints)
    sites: dict[str, Point] = field(default_factory=dict)
    surfaces: dict[str, Surface | Element] = field(default_factory=dict)
    start: dict[str, float] = field(default_factory=dict)
    followers: dict[str, Value] = field(default_factory=dict)

    def body(self, element: Element, parent: str, outer: LocalPose, child_class: str) -> None:
        child_class = element.attributes.get("childclass", child_class)
        name = self.parts.frame_name(element, element.name or f"body_{len(self.parts.frames) + 1}")
        pose = outer @ self.text.pose(element)
        if (compensation := element.attributes.get("gravcomp", "0")) != "0":
            self.parts.omit(element, f"gravcomp {compensation}: weight is not compensated")
        joints = [self.text.with_defaults(e, child_class) for e in element.children if e.tag in ("joint", "freejoint")]
        motions: list[Motion] = []
        for joint in joints:
            kind = "free" if joint.tag == "freejoint" else joint.attributes.get("type", "hinge")
            label = joint.name or (name if len(joints) == 1 else f"{name}_{joints.index(joint) + 1}")
            if kind == "free":
                if parent != GROUND or len(joints) > 1:
                    raise joint.error(
                        "a free joint must be the only joint of its body, and the body a child of the world"
                    )
                motions = self.parts.free_motions(joint, label, pose.position, quaternion_from(pose.turn))
                pose = LocalPose(np.zeros(3), np.eye(3))
                self._without_law(joint)
            else:
                motions += self._joint(joint, kind, label)
        frame = len(self.parts.frames)
        self.parts.frames.append(Frame(name, parent, tuple(motions), None, triple(pose.position), pose.turn))
        self.parts.frames[frame] = replace(self.parts.frames[frame], body=self.contents(element, name, child_class))

    def contents(self, element: Element, name: str, child_class: str) -> Body | None:
        """Add the bodies, sites and shapes in the body (or world) `element`, and its mass."""
        shapes: list[tuple[Element, LocalPose]] = []
        self._children(element, name, LocalPose(np.zeros(3), np.eye(3)), child_class, shapes)
        if name == GROUND:
            return None
        inertial = element.find("inertial")
        if inertial is not None and self.text.inertia_from_geom != "true":
            pose = self.text.pose(inertial)
            (mass,) = inertial.attribute("mass", (1,))
            if "fullinertia" in inertial.attributes:
                xx, yy, zz, xy, xz, yz = inertial.attribute("fullinertia", (6,))
                inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            else:
                inertia = np.diag(inertial.attribute("diaginertia", (3,), (0.0, 0.0, 0.0)))
            return body_of(inertial, mass, pose.position, pose.turn @ inertia @ pose.turn.T)
        if self.text.inertia_from_geom == "false":
            return None
        solid = [(geom, pose) for geom, pose in shapes if geom.attributes.get("type", "sphere") not in NO_VOLUME]
        masses = [geom_mass(geom, pose) for geom, pose in solid if not _is_massless(geom)]
        total = combined_mass(masses)
        return body_of(element, total.mass, total.centre, total.inertia)

    def _children(
        self, element: Element, name: str, pose: LocalPose, child_class: str, shapes: list[tuple[Element, LocalPose]]
    ) -> None:
        for child in element.children:
            if child.tag == "frame":
                inner = child.attributes.get("childclass", child_class)
                self._children(child, name, pose @ self.text.pose(child), inner, shapes)
            elif child.tag == "body":
                self.body(child, name, pose, child_class)
            elif child.tag == "site":
                site = self.text.with_defaults(child, child_class)
                self.sites[child.name] = point(name, (pose @ self.text.pose(site)).position)
            elif child.tag == "geom":
                geom = self.text.with_defaults(child, child_class)
                shapes.append((geom, pose @ self.text.pose(geom)))
                self._surface(geom, name, shapes[-1][1])
                self.parts.omit(child, "its shape touches nothing but tendons; its mass is that of the body")
            elif child.tag not in ("joint", "freejoint", "inertial"):
                _omit(self.parts, child)

    def _surface(self, geom: Element, frame: str, pose: LocalPose) -> None:
        """Note a surface over which tendons may run; a geom that is neither sphere nor cylinder is noted unchanged."""
        kind = geom.attributes.get("type", "sphere")
        self.surfaces[geom.name] = geom
        if kind in ("sphere", "cylinder"):
            radius = geom.attribute("size", (1, 2, 3))[0]
            axis = triple(pose.turn[:, 2]) if kind == "cylinder" else None
            try:
                self.surfaces[geom.name] = Surface(geom.name, point(frame, pose.position), radius, axis)
            except SurfaceError as error:
                raise geom.error(f"size: {error.message}") from None

    def over(self, element: Element) -> SurfaceWrap | str:
        """The surface for the wire that a <geom> of a tendon states, or the reason why it cannot be read. Raises
        `ModelError`."""
        name, side = (element.attributes.get(key, "") for key in ("geom", "sidesite"))
        if name not in self.surfaces:
            raise element.error(f"there is no geom '{name}'")
        surface = self.surfaces[name]
        if isinstance(surface, Element):
            return f"tendons run over spheres and cylinders, not over a {surface.attributes.get('type')}"
        if not side:
            return SurfaceWrap(surface)
        if side not in self.sites:
            raise element.error(f"there is no site '{side}'")
        if self.sites[side].frame != surface.centre.frame:
            return f"the site '{side}' is not on the body of the geom '{name}'"
        direction = np.asarray(self.sites[side].position) - np.asarray(surface.centre.position)
        if surface.axis is not None:
            direction = direction - (direction @ surface.axis) * np.asarray(surface.axis)
        if not np.linalg.norm(direction) > surface.radius:
            return f"the site '{side}' is inside of the geom '{name}': a path on the inside is not read"
        return SurfaceWrap(surface, side=triple(direction / np.linalg.norm(direction)))

    def _joint(self, joint: Element, kind: str, label: str) -> list[Motion]:
        anchor = np.array(joint.attribute("pos", (3,), (0.0, 0.0, 0.0)))
        if kind == "ball":
            self._without_law(joint)
            return _motions_about(anchor, [self.parts.ball(joint, label, _NO_TURN)])
        if kind not in ("hinge", "slide"):
            raise joint.error(f"the type '{kind}' is not one of hinge, slide, ball, free")
        turns = kind == "hinge"
        axis = axis_of(joint, joint.attribute("axis", (3,), (0.0, 0.0, 1.0)))
        factor = self.text.to_rad if turns else 1.0
        reference = factor * joint.attribute("ref", (1,), (0.0,))[0]
        if label in self.followers:
            variable = self.followers[label]
        else:
            name = self._coordinate(joint, label, factor, reference)
            variable = affine(name, 1.0, -reference)
        motion = moved(Rotate if turns else Slide, axis, variable)
        return _motions_about(anchor, [motion]) if turns else [motion]

    def _coordinate(self, joint: Element, label: str, factor: float, reference: float) -> str:
        low, high = -math.inf, math.inf
        limit_mode = joint.attributes.get("limited", "auto")
        if limit_mode == "true" or (limit_mode == "auto" and self.text.autolimits and "range" in joint.attributes):
            low, high = (factor * value for value in joint.attribute("range", (2,)))
            if not low < high:
                raise joint.error(f"range: {low:g} is not below {high:g}")
        unit: Literal["rad", "m"] = "rad" if joint.attributes.get("type", "hinge") == "hinge" else "m"
        start = min(max(reference, low), high)
        (armature,) = joint.attribute("armature", (1,), (0.0,))
        if armature < 0.0:
            raise joint.error(f"armature {armature:g} is negative")
        name = self.parts.coordinate(joint, Coordinate(label, unit, low, high, start, armature))
        values = {"damping": joint.attribute("damping", (1, 2, 3), (0.0,))}
        values |= {"stiffness": joint.attribute("stiffness", (1, 2, 3), (0.0,))}
        for key, series in values.items():
            if any(series[1:]):
                self.parts.omit(joint, f"{key}: only the first of the numbers is read")
        law: dict[str, Any] = {key: series[0] for key, series in values.items()}
        (law["friction"],) = joint.attribute("frictionloss", (1,), (0.0,))
        if law["stiffness"]:
            law["rest"] = factor * joint.attribute("springref", (1,), (0.0,))[0]
        if "actuatorfrcrange" in joint.attributes:
            law["largest_effort"] = max(abs(v) for v in joint.attribute("actuatorfrcrange", (2,)))
        self.joints.names[label], self.joints.references[label] = name, reference
        self.joints.laws[name] = (joint, law)
        self.start[name] = reference
        return name

    def _without_law(self, joint: Element) -> None:
        for key in ("damping", "frictionloss", "stiffness", "armature", "range"):
            if any(float(v or 0) for v in joint.attributes.get(key, "").split() if _is_float(v)):
                self.parts.omit(joint, f"{key}: is not read for joints with a quaternion")


def read_mjcf(root: Element) -> RobotParts:
    """The parts of a <mujoco>. Raises `ModelError`."""
    for element in root.walk():
        if element.tag in _REFUSED:
            raise element.error("is not supported; save the compiled model as one file (mj_saveLastXML) and use that")
    text = MjcfText()
    sections: dict[str, list[Element]] = {}
    for element in root.children:
        sections.setdefault(element.tag, []).append(element)
    reader = _Reader(text)
    reader.parts.gravity = (0.0, 0.0, -9.81)
    for element in sections.pop("compiler", []):
        text.read_compiler(element)
    for element in sections.pop("default", []):
        text.read_defaults(element)
    for element in sections.pop("option", []):
        reader.parts.gravity = triple(element.attribute("gravity", (3,), reader.parts.gravity))
        if set(element.attributes) - {"gravity"} or element.children:
            reader.parts.omit(element, "only the gravity is read")
    bodies = [body for world in sections.pop("worldbody", []) for body in world.walk() if body.tag == "body"]
    if not bodies:
        raise root.error("has no body in its worldbody")
    equalities = [(text.with_defaults(e, ""), e) for section in sections.pop("equality", []) for e in section.children]
    _couple(reader, bodies, equalities)
    for world in (element for element in root.children if element.tag == "worldbody"):
        reader.contents(world, GROUND, world.attributes.get("childclass", ""))
    for section in sections.pop("actuator", []):
        for element in section.children:
            _actuator(reader, text.with_defaults(element, ""))
    tendons = [text.with_defaults(e, "") for section in sections.pop("tendon", []) for e in section.children]
    for name, (joint, law) in reader.joints.laws.items():
        reader.parts.law(joint, name, **law)
    positions = _ReferencePositions(reader)
    for tendon in tendons:
        _tendon(reader, tendon, positions)
    for equality, _ in equalities:
        if equality.tag == "connect" and equality.attributes.get("active", "true") == "true":
            _connect(reader, equality, positions)
    for elements in sections.values():
        for element in elements:
            _omit(reader.parts, element)
    if text.total_mass > 0.0:
        _scale_masses(reader.parts, text.total_mass)
    return reader.parts


class _ReferencePositions:
    """Positions of points and lengths of wires in the reference posture of the file."""

    def __init__(self, reader: _Reader) -> None:
        tree = Tree(tuple(reader.parts.coordinates.values()), tuple(reader.parts.frames))
        self._state = TreeState.symbols(tree)
        self._z = [reader.start.get(c.name, c.reference) for c in tree.coordinates]

    def number(self, expression: Callable[[TreeState], Any]) -> Floats:
        function = ca.Function("reference", [self._state.z], [expression(self._state)])
        return np.asarray(function(self._z), dtype=np.float64)


def _couple(reader: _Reader, bodies: list[Element], equalities: list[tuple[Element, Element]]) -> None:
    """The joint variables that equality constraints of joints state; other constraints than those read are noted."""
    joints = {j.name: j for body in bodies for j in body.walk() if j.tag == "joint" and j.name}
    leaders: set[str] = set()
    for equality, original in equalities:
        if equality.attributes.get("active", "true") != "true":
            reader.parts.omit(original, "is not active")
        elif equality.tag == "joint":
            first, second = (equality.attributes.get(key, "") for key in ("joint1", "joint2"))
            for name in (first, second) if second else (first,):
                if name not in joints:
                    raise equality.error(f"there is no joint '{name}'")
            if first in leaders or second in reader.followers or first == second:
                reader.parts.omit(
                    original, "a joint that follows another one can neither lead a joint nor follow a second one"
                )
                continue
            leaders.add(second)
            coefficients = equality.attribute("polycoef", (1, 2, 3, 4, 5), (0.0, 1.0, 0.0, 0.0, 0.0))
            reader.followers[first] = _follower(reader, joints, second, coefficients)
            for key in ("range", "damping", "frictionloss", "armature", "stiffness"):
                if key in joints[first].attributes:
                    reader.parts.omit(joints[first], f"{key}: the joint follows '{second}'")
        elif equality.tag != "connect":
            reader.parts.omit(original, "this constraint is not read; connect and joint are")


def _follower(reader: _Reader, joints: Mapping[str, Element], leader: str, coefficients: list[float]) -> Value:
    """The displacement of a joint by the polynomial of the leader's displacement; a number without a leader."""
    if not leader:
        return float(coefficients[0])
    joint = joints[leader]
    factor = reader.text.to_rad if joint.attributes.get("type", "hinge") == "hinge" else 1.0
    shift = np.polynomial.Polynomial([-factor * joint.attribute("ref", (1,), (0.0,))[0], 1.0])
    series = np.polynomial.Polynomial(coefficients)(shift)
    name = RobotParts().coordinate(joint, Coordinate(leader))
    offset, *slopes = (float(c) for c in series.coef)
    if not any(slopes[1:]):
        return affine(name, slopes[0] if slopes else 0.0, offset)
    return polynomial(name, [*reversed(slopes), offset])


def _actuator(reader: _Reader, actuator: Element) -> None:
    """Gear and effort limit of a motor on a joint."""
    name = reader.joints.names.get(actuator.attributes.get("joint", ""))
    if name is None:
        reader.parts.omit(actuator, "only actuators on hinges and slides that are free are read")
        return
    law = reader.joints.laws[name][1]
    gear = actuator.attribute("gear", (1, 2, 3, 4, 5, 6), (1.0,))[0]
    law["ratio"] = gear
    if actuator.tag != "motor":
        reader.parts.omit(actuator, f"the law of a {actuator.tag} actuator is not read; its gear is")
    elif "ctrlrange" in actuator.attributes and actuator.attributes.get("ctrllimited", "auto") != "false":
        law["largest_effort"] = abs(gear) * max(abs(v) for v in actuator.attribute("ctrlrange", (2,)))


def _tendon(reader: _Reader, tendon: Element, positions: _ReferencePositions) -> None:
    kinds = {child.tag for child in tendon.children}
    if tendon.tag != "spatial" or kinds - {"site", "geom"}:
        reader.parts.omit(tendon, "only spatial tendons through sites and over geoms are read: no joints or divisors")
        return
    points: list[Point | SurfaceWrap] = []
    for child in tendon.children:
        if child.tag == "geom":
            over = reader.over(child)
            if isinstance(over, str):
                reader.parts.omit(tendon, over)
                return
            points.append(over)
            continue
        name = child.attributes.get("site", "")
        if name not in reader.sites:
            raise child.error(f"there is no site '{name}'")
        points.append(reader.sites[name])
    try:
        wire = Wire(tendon.name or f"tendon_{len(reader.parts.wires) + 1}", tuple(points))
    except ValueError as error:
        raise tendon.error(str(error)) from None
    reader.parts.wires.append(wire)
    stiffness, damping = (tendon.attribute(key, (1, 2, 3), (0.0,))[0] for key in ("stiffness", "damping"))
    rest_lengths = tendon.attribute("springlength", (1, 2), (-1.0,))
    if not stiffness and not damping:
        return
    if len(set(rest_lengths)) > 1:
        reader.parts.omit(tendon, "springlength: a spring with a range of rest lengths is not read")
        return
    length = (
        rest_lengths[0]
        if rest_lengths[0] >= 0.0
        else float(positions.number(lambda state: lengths(state, [wire])).item())
    )
    try:
        reader.parts.springs.append(Spring(wire, stiffness, length, damping))
    except SpringError as error:
        raise tendon.error(f"{error.field}: {error.message}") from None


def _connect(reader: _Reader, equality: Element, positions: _ReferencePositions) -> None:
    """Two points that meet; the second is where the first lies in the reference posture."""
    attributes = equality.attributes
    name = equality.name or f"connect_{len(reader.parts.meets) + 1}"
    if "site1" in attributes:
        for key in ("site1", "site2"):
            if attributes.get(key, "") not in reader.sites:
                raise equality.error(f"there is no site '{attributes.get(key, '')}'")
        first, second = reader.sites[attributes["site1"]], reader.sites[attributes["site2"]]
    else:
        frames = {"world": GROUND, **reader.parts.frame_names}
        bodies = [attributes.get("body1", ""), attributes.get("body2", "world")]
        for body in bodies:
            if body not in frames:
                raise equality.error(f"there is no body '{body}'")
        first = point(frames[bodies[0]], equality.attribute("anchor", (3,)))

        def local(state: TreeState) -> Any:
            frame = frames[bodies[1]]
            return state.axes(frame).T @ (state.position(first) - state.position(Point(frame)))

        second = point(frames[bodies[1]], positions.number(local).ravel())
    reader.parts.meets.append(Coincidence(name, first, second))


def _scale_masses(parts: RobotParts, total: float) -> None:
    factor = total / sum(f.body.mass for f in parts.frames if f.body is not None)
    for i, frame in enumerate(parts.frames):
        if (body := frame.body) is not None:
            parts.frames[i] = replace(
                frame, body=Body(factor * body.mass, body.centre, factor * np.asarray(body.inertia))
            )


def _omit(parts: RobotParts, element: Element) -> None:
    parts.omit(element, _OMITTED.get(element.tag, "this element is not known here"))


def _motions_about(anchor: Floats, motions: list[Motion]) -> list[Motion]:
    """`motions` about a point of the frame instead of its origin."""
    distance = float(np.linalg.norm(anchor))
    if distance == 0.0:
        return motions
    return [moved(Slide, anchor, distance), *motions, moved(Slide, anchor, -distance)]


def _is_massless(geom: Element) -> bool:
    key = "mass" if "mass" in geom.attributes else "density"
    return geom.attribute(key, (1,), (1.0,))[0] == 0.0


def _is_float(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
