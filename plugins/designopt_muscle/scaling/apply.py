"""Scale factors applied to an OpenSim model file, as OpenSim's ``Model::scale`` does.

Facts of OpenSim 4.6 (opensim-core, ``extendScale`` of each component): lengths fixed to a body follow its factors; what
a custom joint translates follows those of the joint's parent, but not a translation that is a coordinate; fibres,
tendons and resting lengths follow the length of their path in the default pose; contact geometry does not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

import numpy as np
from designopt_mechanics.robot_files.xml import Element, document, parse

from designopt.arrays import Floats
from designopt_muscle.geometry.geometry import muscle_geometry, path_length
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.geometry.paths import wrapped_paths
from designopt_muscle.osim.model import GROUND, PathForce
from designopt_muscle.osim.poses import last_name, pose
from designopt_muscle.osim.read import read_model
from designopt_muscle.osim.read_forces import MUSCLES

Factors = Mapping[str, Floats]

_FUNCTIONS = {"LinearFunction", "MultiplierFunction", "Constant", "PolynomialFunction", "SimmSpline", "GCVSpline",
              "NaturalCubicSpline", "PiecewiseLinearFunction", "Sine"}  # fmt: skip
#: Lengths of forces that follow their paths.
_LENGTHS = {
    **dict.fromkeys(MUSCLES, ("optimal_fiber_length", "tendon_slack_length")),
    "PathSpring": ("resting_length",),
    "Ligament": ("resting_length",),
    "Blankevoort1991Ligament": ("slack_length",),
}


def scale_model(content: bytes, factors: Factors, mass: float | None = None, *, preserve_mass: bool = True) -> bytes:
    """The ``.osim`` file of a model with its bodies scaled by `factors` (3,) along their axes; 1 for bodies not named.

    Bodies, joints, attached geometry, path points, wrap surfaces, markers, masses and inertias (to the total `mass` in
    kg), and the lengths of fibres and tendons. With `preserve_mass` the masses of the bodies keep their ratios,
    otherwise they follow the product of the factors.

    Raises `ModelError` for files that are not read, and `ValueError` for bodies that the model does not have, and a
    mass and factors that are not positive.
    """
    root = parse(content)
    model = root.need("Model")
    read = read_model(content)
    bodies = {GROUND, *(body.name for body in read.bodies)}
    for body, factor in factors.items():
        if body not in bodies:
            raise ValueError(f"'{body}' is not a body of the model '{read.name}' ({', '.join(sorted(bodies))})")
        if not (np.isfinite(factor).all() and np.min(factor) > 0.0):
            raise ValueError(f"the factors {list(map(float, factor))} of '{body}' are not positive numbers")
    if mass is not None and not 0.0 < mass < np.inf:
        raise ValueError(f"the mass of the subject is {mass:g} kg; it must be positive")
    before = _path_lengths(root)
    _Scaling(root, {body: np.asarray(factors.get(body, np.ones(3)), dtype=float) for body in bodies}).apply()
    _scale_masses(model, factors, mass, preserve_mass)
    after = _path_lengths(root)
    for element in _with_paths(model):
        ratio = after[element.name] / before[element.name]
        for tag in _LENGTHS[element.tag]:
            element.set_numbers(tag, [element.with_defaults(model.find("defaults", element.tag)).number(tag) * ratio])
    return document(root)


def _with_paths(model: Element) -> list[Element]:
    """The forces of a model that have lengths."""
    holder = model.find("ForceSet", "objects")
    return [e for e in ([] if holder is None else holder.children) if e.tag in _LENGTHS]


def _path_lengths(root: Element) -> dict[str, float]:
    """Lengths (m) of all paths in the default pose, those of forces that are switched off too."""
    copy = deepcopy(root)
    for element in _with_paths(copy.need("Model")):
        element.set_text("appliesForce", "true")
        element.set_text("isDisabled", "false")
    model = read_model(document(copy))
    geometry, default_pose = muscle_geometry(model, {}), kinematics(model, {})
    surfaces = {wrap.name: wrap for wrap in model.wraps}
    lengths = dict(zip(geometry.muscles, geometry.lengths[0].tolist(), strict=True))
    for force in model.passive:
        if isinstance(force, PathForce):
            lengths[force.name] = float(path_length(wrapped_paths(force, surfaces, default_pose)[0])[0][0])
    return lengths


class _Scaling:
    """The elements of a document, with the body that each frame is fixed to."""

    def __init__(self, root: Element, factors: Factors) -> None:
        self.model = root.need("Model")
        self.factors = factors
        self.elements = [e for part in self.model.children if part.tag != "defaults" for e in part.walk()]
        offsets = [e for e in self.elements if e.tag == "PhysicalOffsetFrame"]
        #: The frame that each offset frame is on, by the names of its component (a joint, a body) and its own.
        self.frames = {(_owner(e), e.name): e.word("socket_parent") for e in offsets}

    def apply(self) -> None:
        """Scale every element in place."""
        for element in self.elements:
            match element.tag:
                case "Body" | "Ground":
                    self._body(element, self.factors[element.name or GROUND])
                case "PhysicalOffsetFrame":
                    factor = self.factor_of(element.word("socket_parent"), _owner(element))
                    self._lengths(element, "translation", factor)
                    self._geometry(element, factor)
                case "PathPoint" | "ConditionalPathPoint" | "Marker" | "Station":
                    self._lengths(element, "location", self._parent(element))
                case "MovingPathPoint":
                    self._moving_point(element)
                case "CustomJoint":
                    self._translations(element)
                case "CoordinateCouplerConstraint":
                    self._coupler(element)

    def factor_of(self, path: str, component: str = "") -> Floats | None:
        """The factors of the body that the frame at a path is fixed to; None for what is no body.

        Offset frames are looked for in the `component` first, then in the one that the path names, then anywhere.
        """
        for _ in range(len(self.frames) + 1):
            *parents, name = path.strip().rstrip("/").split("/")
            if name in self.factors:
                return self.factors[name]
            owners = [component, *parents[-1:], *(owner for owner, frame in self.frames if frame == name)]
            owner = next((o for o in owners if (o, name) in self.frames), None)
            if owner is None:
                return None
            path, component = self.frames[owner, name], owner
        return None

    def _parent(self, element: Element) -> Floats | None:
        return self.factor_of(element.word("socket_parent_frame") or element.word("body"))

    def _lengths(self, element: Element, tag: str, factor: Floats | None) -> None:
        if factor is not None and element.find(tag) is not None:
            element.set_numbers(tag, np.array(element.numbers(tag, 3)) * factor)

    def _body(self, element: Element, factor: Floats) -> None:
        self._lengths(element, "mass_center", factor)
        self._geometry(element, factor)
        visible = element.find("VisibleObject")
        if visible is not None:
            self._lengths(visible, "scale_factors", factor)
        surfaces = element.find("WrapObjectSet", "objects")
        for surface in [] if surfaces is None else surfaces.children:
            _scale_surface(surface, factor)
            self._lengths(surface, "translation", factor)
        joint = element.find("Joint")  # of files of version 3: within its child
        for inner in [] if joint is None else joint.children:
            self._lengths(inner, "location", factor)
            self._lengths(inner, "location_in_parent", self.factor_of(inner.word("parent_body")))

    def _geometry(self, element: Element, factor: Floats | None) -> None:
        geometry_list = element.find("attached_geometry")
        for part in [] if geometry_list is None or factor is None else geometry_list.children:
            part.set_numbers("scale_factors", np.array(part.numbers("scale_factors", 3, (1.0, 1.0, 1.0))) * factor)

    def _joint_parent(self, joint: Element) -> Floats | None:
        return self.factor_of(joint.word("socket_parent_frame") or joint.word("parent_body"), joint.name)

    def _translations(self, joint: Element) -> None:
        factor = self._joint_parent(joint)
        for step in joint.need("SpatialTransform").children:
            if factor is None or not step.name.startswith("translation"):
                continue
            holder = step.find("function")
            holder = holder if holder is not None and holder.tag == "function" and holder.children else step
            function = next((e for e in holder.children if e.tag in _FUNCTIONS), None)
            if function is None or _is_coordinate(function):
                continue
            _multiply(holder, function, float(np.abs(step.numbers("axis", 3)) @ factor))

    def _moving_point(self, element: Element) -> None:
        factor = self._parent(element)
        for axis, scale in zip("xyz", [] if factor is None else factor, strict=False):
            holder = element.find(f"{axis}_location")
            if holder is not None and holder.children:
                _multiply(holder, holder.children[0], float(scale))

    def _coupler(self, element: Element) -> None:
        name = last_name(element.word("dependent_coordinate_name"))
        for joint in [e for e in self.elements if e.tag == "CustomJoint"]:
            transform = joint.find("SpatialTransform")
            steps = [] if transform is None else transform.children
            driven = [s.name for s in steps if name in s.word("coordinates").split()]
            factor = self._joint_parent(joint)
            if driven and factor is not None and all(s.startswith("translation") for s in driven):
                if np.ptp(factor) > 1e-12:
                    raise element.error(f"couples the translation '{name}' of a body that is scaled unevenly")
                element.set_numbers("scale_factor", [element.number("scale_factor", 1.0) * float(factor[0])])


def _owner(frame: Element) -> str:
    """The name of the component that lists a frame in its <frames> or <components>."""
    return "" if frame.parent is None or frame.parent.parent is None else frame.parent.parent.name


def _is_coordinate(function: Element) -> bool:
    return function.tag == "LinearFunction" and function.numbers("coefficients", 2, (1.0, 0.0)) == [1.0, 0.0]


def _multiply(element: Element, function: Element, scale: float) -> None:
    """Multiply the function in an element: a factor of its own, or that of a multiplier around it."""
    if function.tag == "MultiplierFunction":
        function.set_numbers("scale", [function.number("scale", 1.0) * scale])
        return
    multiplier = Element("MultiplierFunction", dict(function.attributes), function.line, function.column, element)
    multiplier.children.append(Element("function", {}, parent=multiplier, children=[function]))
    multiplier.set_numbers("scale", [scale])
    element.children[element.children.index(function)] = multiplier


def _scale_surface(element: Element, factor: Floats) -> None:
    """Sizes of a wrap surface by the factors along its own axes."""
    turn = pose((0.0, 0.0, 0.0), element.numbers("xyz_body_rotation", 3, (0.0,) * 3))[:3, :3]
    x, y, z = np.linalg.norm(turn * factor[:, None], axis=0)
    sizes: dict[str, float | Floats]
    match element.tag:
        case "WrapCylinder":
            sizes = {"radius": 0.5 * (x + y), "length": z}
        case "WrapSphere":
            sizes = {"radius": float(factor.mean())}
        case "WrapEllipsoid":
            sizes = {"dimensions": np.array([x, y, z])}
        case _:
            sizes = {"inner_radius": 0.5 * (x + y), "outer_radius": 0.5 * (x + y)}
    for tag, scale in sizes.items():
        element.set_numbers(tag, np.array(element.numbers(tag)) * scale)


def _scale_masses(model: Element, factors: Factors, mass: float | None, preserve_mass: bool) -> None:
    """Masses and inertias of all bodies by their factors, then all together to the total `mass`."""
    bodies = [e for e in model.need("BodySet", "objects").children if e.name != GROUND]
    for element in bodies:
        _put_inertia(element, *scaled_inertia(*_inertia(element), factors.get(element.name, np.ones(3)), preserve_mass))
    total = sum(element.number("mass") for element in bodies)
    if mass is not None and total > 0.0:
        for element in bodies:
            body_mass, inertia = _inertia(element)
            _put_inertia(element, body_mass * (mass / total), inertia * (mass / total))


_ENTRIES = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}


def _inertia(element: Element) -> tuple[float, Floats]:
    """Mass and inertia (3, 3) of a body."""
    if element.find("inertia") is not None:
        entries = element.numbers("inertia", 6)
    else:
        entries = [element.number(f"inertia_{axes}", 0.0) for axes in _ENTRIES]
    inertia = np.zeros((3, 3))
    for (i, j), value in zip(_ENTRIES.values(), entries, strict=True):
        inertia[i, j] = inertia[j, i] = value
    return element.number("mass"), inertia


def _put_inertia(element: Element, mass: float, inertia: Floats) -> None:
    element.set_numbers("mass", [mass])
    if element.find("inertia") is not None:
        element.set_numbers("inertia", [inertia[i] for i in _ENTRIES.values()])
    else:
        for axes, i in _ENTRIES.items():
            element.set_numbers(f"inertia_{axes}", [inertia[i]])


#: Factors closer than this are equal (Simbody's significant digits of a double).
_EQUAL = 2e-14


def scaled_inertia(mass: float, inertia: Floats, factors: Floats, preserve_mass: bool) -> tuple[float, Floats]:
    """Mass and inertia (3, 3) after scaling by `factors` (3,) along the axes; the mass stays with `preserve_mass`.

    Equal factors s multiply the inertia by s^2 (and by the mass'). For unequal ones the body is a cylinder about the
    axis of its smallest moment, with the radius and length that its moments have, each scaled along its axes; products
    of inertia follow the two axes. These are the rules of OpenSim 4.6 (``Body::scaleInertialProperties``).
    """
    volume = 1.0 if preserve_mass else float(abs(np.prod(factors)))
    new_mass = mass * volume
    if new_mass <= np.finfo(float).eps:
        return new_mass, np.zeros((3, 3))
    if np.ptp(factors) <= _EQUAL * max(1.0, float(np.max(factors))):
        return new_mass, np.asarray(inertia * volume * factors[0] ** 2)
    axis = int(np.argmin(np.diag(inertia)))
    across = [i for i in range(3) if i != axis]
    radius2 = max(2.0 * inertia[axis, axis] / mass, 0.0)
    length2 = max(12.0 * (inertia[across[0], across[0]] / mass - 0.25 * radius2), 0.0)
    radius2 *= factors[across[0]] * factors[across[1]]
    length2 *= factors[axis] ** 2
    new_inertia = inertia * np.outer(factors, factors) * volume
    new_inertia[axis, axis] = 0.5 * new_mass * radius2
    for i in across:
        new_inertia[i, i] = new_mass * (length2 / 12.0 + 0.25 * radius2)
    return new_mass, np.asarray(new_inertia)
