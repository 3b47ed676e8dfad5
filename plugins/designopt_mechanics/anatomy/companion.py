"""The companion of a VRML file: joints, masses, kinds of virtual links and laws of wires; the bundled anatomies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from designopt.study.language.findings import nearest_or_all
from designopt_mechanics.anatomy.geometry import Geometry
from designopt_mechanics.anatomy.vrml import read_vrml
from designopt_mechanics.body import Body, BodyError
from designopt_mechanics.model_file.nodes import Findings, LocatedNode, Vector3, named, read_as
from designopt_mechanics.motions import Motion, MotionError, Rotate, Slide
from designopt_mechanics.springs import pulling, pulling_energy
from designopt_mechanics.tree import GROUND, Coordinate, Frame, Point, Tree
from designopt_mechanics.wires import Wire


@dataclass(frozen=True)
class Muscle:
    """Tension between `min_tension`, the muscle tone, and `max_tension` (N)."""

    max_tension: float
    min_tension: float = 1.0


@dataclass(frozen=True)
class ElasticStrand:
    """A tension-only spring: `stiffness` (N/m) and `slack` length (m); see `springs.pulling`."""

    stiffness: float
    slack: float

    def tension(self, length: Any) -> Any:
        """N, an expression."""
        return pulling(self.stiffness, length - self.slack)

    def energy(self, length: Any) -> Any:
        """J, an expression; its derivative by the length is the tension."""
        return pulling_energy(self.stiffness, length - self.slack)


#: Wire ends below which a virtual link cannot be held.
_MIN_ENDS = 3


@dataclass(frozen=True, eq=False)
class Anatomy:
    """A tree of bones and virtual links, with wires and their laws by name.

    `joints` are the coordinates of joints, `links` those of virtual links; both are coordinates of the tree, in this
    order. `warnings` are sentences about what may be undefined.
    """

    tree: Tree
    wires: tuple[Wire, ...]
    laws: Mapping[str, Muscle | ElasticStrand]
    joints: tuple[str, ...]
    links: tuple[str, ...]
    gravity: Vector3
    warnings: tuple[str, ...]


def read_companion(content: bytes, name: str, geometry: Geometry) -> Anatomy:
    """The anatomy that `content` adds to `geometry`; raises `StudyError` with the line and column of each mistake."""
    return read_as(content, name, lambda at, findings: _anatomy(at, geometry, findings))


def _anatomy(at: LocatedNode, geometry: Geometry, findings: Findings) -> Anatomy | None:
    entries = at.mapping(("bones",), ("virtual_links", "laws", "gravity", "allow_default_laws", "title"))
    bones = named(entries["bones"])
    for bone in bones:
        if bone not in geometry.bones:
            raise bones[bone].wrong(f"the geometry has no bone '{bone}'{nearest_or_all(bone, geometry.bones)}")
    for bone in geometry.bones:
        if bone not in bones:
            raise entries["bones"].wrong(f"bone '{bone}' of the geometry is missing")
    coordinates: list[Coordinate] = []
    frames: list[Frame] = []
    parents = [GROUND]
    waiting = dict(bones)
    while waiting:
        ready = [b for b, entry in waiting.items() if _parent(entry, bones) in parents]
        if not ready:
            raise waiting[next(iter(waiting))].wrong("its parents form a loop")
        for bone in ready:
            with findings.item():
                link_coordinates, bone_frames = _bone(bone, waiting[bone], geometry)
                coordinates += link_coordinates
                frames += bone_frames
            parents.append(bone)
            del waiting[bone]
    joints = tuple(c.name for c in coordinates)
    kinds = named(entries["virtual_links"]) if "virtual_links" in entries else {}
    for link in kinds:
        if link not in geometry.virtual:
            raise kinds[link].wrong(
                f"the geometry has no virtual link '{link}'{nearest_or_all(link, geometry.virtual)}"
            )
    warnings: list[str] = []
    for link, location in geometry.virtual.items():
        link_entry = kinds.get(link, at)
        with findings.item():
            link_coordinates, frame = _virtual(link, kinds.get(link), location)
            ends = sum(p.link == link for wire in geometry.wires for p in (wire.points[0], wire.points[-1]))
            if ends < _MIN_ENDS:
                raise link_entry.wrong(f"virtual link '{link}' has {ends} wire ends; at least {_MIN_ENDS} are needed")
            if len(link_coordinates) == 6 and ends < 7:
                warnings.append(f"rigid virtual link '{link}' has {ends} wires: with fewer than 7 all are slack")
            coordinates += link_coordinates
            frames.append(frame)
    laws: dict[str, Muscle | ElasticStrand] = {}
    law_entries = named(entries["laws"]) if "laws" in entries else {}
    for wire_name in law_entries:
        if wire_name not in [w.name for w in geometry.wires]:
            near = nearest_or_all(wire_name, [w.name for w in geometry.wires])
            raise law_entries[wire_name].wrong(f"the geometry has no wire '{wire_name}'{near}")
    default = "allow_default_laws" in entries and entries["allow_default_laws"].node.scalar is True
    wires = []
    for wire in geometry.wires:
        points = [Point(p.link, _local_position(geometry, p.link, p.position)) for p in wire.points]
        wires.append(Wire(wire.name, tuple(points)))
        length = sum(
            float(np.linalg.norm(np.subtract(a.position, b.position)))
            for a, b in zip(wire.points, wire.points[1:], strict=False)
        )
        with findings.item():
            if wire.name in law_entries:
                laws[wire.name] = _law(law_entries[wire.name], wire.kind, length)
            elif default:
                laws[wire.name] = Muscle(1000.0) if wire.kind == "Mus" else ElasticStrand(1e4, length)
            else:
                raise at.wrong(f"wire '{wire.name}' has no law; give one, or allow_default_laws: true")
    if findings.mistakes:
        return None
    for link in geometry.virtual:
        laws_of_link = [laws[w.name] for w in geometry.wires if link in (w.points[0].link, w.points[-1].link)]
        if not any(isinstance(law, ElasticStrand) for law in laws_of_link):
            warnings.append(f"virtual link '{link}' has neither tendon nor ligament: its pose may be undefined")
    gravity = entries["gravity"].vector("m/s^2") if "gravity" in entries else (0.0, 0.0, -9.81)
    if "gravity" not in entries:
        warnings.append("'gravity' is not stated: [0, 0, -9.81] m/s^2 is assumed")
    links = tuple(c.name for c in coordinates[len(joints) :])
    tree = Tree(tuple(coordinates), tuple(frames))
    return Anatomy(tree, tuple(wires), laws, joints, links, gravity, tuple(warnings))


def _parent(at: LocatedNode, bones: Mapping[str, LocatedNode]) -> str:
    joint = at.mapping(("joint",), ("mass", "com", "inertia"))["joint"].mapping(
        ("parent",), ("center", "axes", "range")
    )
    parent = joint["parent"].word()
    if parent != GROUND and parent not in bones:
        raise joint["parent"].wrong(f"no bone '{parent}'{nearest_or_all(parent, [GROUND, *bones])}")
    return parent


def _bone(bone: str, at: LocatedNode, geometry: Geometry) -> tuple[list[Coordinate], list[Frame]]:
    """Coordinates and frames of a bone: the joint in the axes of the world, then the bone where it stands."""
    entries = at.mapping(("joint", "mass"), ("com", "inertia"))
    joint = entries["joint"].mapping(("parent",), ("center", "axes", "range"))
    parent = joint["parent"].word()
    pose = geometry.bones[bone]
    before = geometry.bones.get(parent, np.eye(4))
    centre = np.array(joint["center"].vector("m") if "center" in joint else pose[:3, 3])
    motions: list[Motion] = []
    coordinates = []
    axes = joint["axes"].items() if "axes" in joint else []
    ranges = _ranges(joint["range"], len(axes)) if "range" in joint else []
    for k, item in enumerate(axes, 1):
        name = f"{bone}_{k}"
        slides = item.node.entries is not None
        axis = (item.mapping(("slide",), ())["slide"] if slides else item).vector("")
        try:
            motions.append(Slide(axis, name) if slides else Rotate(axis, name))
        except MotionError as error:
            raise item.wrong(error.message) from None
        unit: Literal["rad", "m"] = "m" if slides else "rad"
        low, high = ranges[k - 1].numbers(unit) if ranges else (-math.inf, math.inf)
        if not low <= 0.0 <= high:
            raise ranges[k - 1].wrong(f"{low:g} to {high:g} does not contain 0, the posture of the file")
        coordinates.append(Coordinate(name, unit, low, high))
    try:
        body = Body(
            entries["mass"].number("kg"),
            entries["com"].vector("m") if "com" in entries else (0.0, 0.0, 0.0),
            entries["inertia"].vector("kg m^2") if "inertia" in entries else (0.0, 0.0, 0.0),
        )
    except BodyError as error:
        key = {"centre": "com"}.get(error.field, error.field)
        raise entries.get(key, at).wrong(error.message) from None
    if body.mass <= 0.0:
        raise entries["mass"].wrong("a bone needs a mass")
    turn = before[:3, :3].T
    frames = [
        Frame(f"{bone}_joint", parent, tuple(motions), position=tuple(turn @ (centre - before[:3, 3])), turn=turn),
        Frame(bone, f"{bone}_joint", (), body, position=tuple(pose[:3, 3] - centre), turn=pose[:3, :3]),
    ]
    return coordinates, frames


def _ranges(at: LocatedNode, axes: int) -> list[LocatedNode]:
    """A range [low, high] for each axis of a joint; one axis may have it without the outer list."""
    items = at.items()
    pairs = [at] if axes == 1 and items and items[0].node.items is None else at.items(axes)
    for pair in pairs:
        pair.items(2)
    return pairs


def _virtual(link: str, at: LocatedNode | None, location: Any) -> tuple[list[Coordinate], Frame]:
    """A virtual link: its place in the world as coordinates, and its turns if it is rigid."""
    kind = "point"
    if at is not None:
        entries = at.mapping((), ("kind", "mass"))
        kind = entries["kind"].word(("point", "rigid")) if "kind" in entries else kind
        if "mass" in entries and entries["mass"].number("kg") != 0.0:
            raise entries["mass"].wrong("a virtual link has no mass; make it a bone")
    axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    letters = "xyz"
    coordinates = [
        Coordinate(f"{link}_{c}", "m", reference=float(v)) for c, v in zip(letters, location[:3, 3], strict=True)
    ]
    motions: list[Motion] = [Slide(axis, c.name) for axis, c in zip(axes, coordinates, strict=True)]
    if kind == "rigid":
        turns = [Coordinate(f"{link}_r{c}") for c in letters]
        motions += [Rotate(axis, c.name) for axis, c in zip(axes, turns, strict=True)]
        coordinates += turns
    return coordinates, Frame(link, GROUND, tuple(motions))


def _local_position(geometry: Geometry, link: str, location: Vector3) -> tuple[float, ...]:
    """A place of the reference posture in the axes of its link; virtual links have those of the world."""
    if link in geometry.bones:
        at = geometry.bones[link]
        return tuple(float(v) for v in at[:3, :3].T @ (np.array(location) - at[:3, 3]))
    return tuple(float(v) for v in np.array(location) - geometry.virtual[link][:3, 3])


def _law(at: LocatedNode, kind: str, length: float) -> Muscle | ElasticStrand:
    if kind == "Mus":
        entries = at.mapping(("max",), ("tone",))
        max_tension = entries["max"].number("N")
        tone = entries["tone"].number("N") if "tone" in entries else 1.0
        if not 0.0 <= tone < max_tension:
            raise entries["max"].wrong(f"a muscle needs 0 <= tone < max, not {tone:g} and {max_tension:g} N")
        return Muscle(max_tension, tone)
    entries = at.mapping(("stiffness",), ("slack_length",))
    stiffness = entries["stiffness"].number("N/m")
    if stiffness <= 0.0:
        raise entries["stiffness"].wrong(f"{stiffness:g} N/m is not positive")
    slack = length
    if "slack_length" in entries and entries["slack_length"].node.scalar != "reference":
        slack = entries["slack_length"].number("m")
        if slack <= 0.0:
            raise entries["slack_length"].wrong(f"{slack:g} m is not positive")
    return ElasticStrand(stiffness, slack)


BUNDLED = ("teres_minor", "obturator_internus", "pectoralis", "biceps", "elbow_ligaments")


def bundled_geometry(name: str) -> Geometry:
    """The VRML file of a bundled pattern."""
    return read_vrml(_content(f"{name}.wrl"), f"{name}.wrl")


def bundled(name: str) -> Anatomy:
    """A bundled pattern, one of `BUNDLED`."""
    return read_companion(_content(f"{name}.yaml"), f"{name}.yaml", bundled_geometry(name))


def _content(file: str) -> bytes:
    return files("designopt_mechanics.anatomy").joinpath("patterns", file).read_bytes()
