"""Markers fixed to the bodies of a model: of an ``.osim`` file, or of a file of a marker set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from designopt_mechanics.robot_files.xml import Element, parse

from designopt.arrays import Floats
from designopt_muscle.osim.model import GROUND
from designopt_muscle.osim.poses import last_name


@dataclass(frozen=True, eq=False)
class OsimMarker:
    """A marker at `location` (3,) m in the axes of `body`; a `fixed` one is not moved to where it was recorded."""

    name: str
    body: str
    location: Floats
    fixed: bool = False


def read_markers(content: bytes) -> tuple[OsimMarker, ...]:
    """The markers of an ``.osim`` file or of OpenSim's file of a ``MarkerSet``, in its order.

    Raises `ModelError` with line and column for files without markers, markers without a body and names used twice.
    """
    root = parse(content)
    holder = root if root.tag == "MarkerSet" else root.find("Model", "MarkerSet") or root.find("MarkerSet")
    if holder is None:
        raise root.error("contains no <MarkerSet>")
    objects = holder.find("objects")
    default = root.find("Model", "defaults", "Marker") or holder.find("defaults", "Marker")
    markers: dict[str, OsimMarker] = {}
    for element in [] if objects is None else objects.children:
        if element.tag != "Marker":
            raise element.error("is not a marker")
        marker = _marker(element.with_defaults(default))
        if marker.name in markers:
            raise element.error(f"the name '{marker.name}' is given more than once")
        markers[marker.name] = marker
    return tuple(markers.values())


def _marker(element: Element) -> OsimMarker:
    body = last_name(element.word("socket_parent_frame") or element.word("body"))
    if not element.name:
        raise element.error("has no name")
    if not body:
        raise element.error("names no body: <socket_parent_frame> or <body> is expected")
    return OsimMarker(element.name, body, np.array(element.numbers("location", 3)), element.flag("fixed", False))


def with_markers(root: Element, markers: Iterable[OsimMarker]) -> None:
    """Replace the marker set of the model in the document `root` by `markers`, in the form of its version."""
    model = root.need("Model")
    version = int(root.attributes.get("Version", "0"))
    objects = Element("objects", {})
    for marker in markers:
        path = "/ground" if marker.body == GROUND else f"/bodyset/{marker.body}"
        socket = ("socket_parent_frame", path) if version >= 40000 else ("body", marker.body)
        element = Element("Marker", {"name": marker.name})
        element.set_text(*socket)
        element.set_numbers("location", marker.location)
        element.set_text("fixed", str(marker.fixed).lower())
        objects.children.append(element)
    holder = model.find("MarkerSet")
    name = "markerset" if holder is None else holder.name or "markerset"
    position = len(model.children) if holder is None else model.children.index(holder)
    model.children[position : position + (holder is not None)] = [
        Element("MarkerSet", {"name": name}, children=[objects, Element("groups", {})])
    ]
