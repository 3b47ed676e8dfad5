"""Frames of a model file: places, turns, motions and bodies."""

from __future__ import annotations

from typing import Any, Literal, cast

from designopt.lazy import casadi as ca
from designopt_mechanics.body import Body, BodyError, is_number
from designopt_mechanics.model_file.functions import value
from designopt_mechanics.model_file.nodes import LocatedNode, Vector3
from designopt_mechanics.model_file.scope import FileScope
from designopt_mechanics.model_file.shapes import SHAPES, shaped_body
from designopt_mechanics.motions import Ball, Motion, MotionError, Rotate, Slide, unit
from designopt_mechanics.state import rotation
from designopt_mechanics.tree import GROUND, Frame


def frame(name: str, at: LocatedNode, scope: FileScope) -> Frame:
    entries = at.mapping((), ("parent", "place", "turn", "motions", "body"))
    motions: list[Motion] = []
    if "motions" in entries:
        for item in entries["motions"].items():
            motions.append(_motion(item, scope))
    return Frame(
        name,
        entries["parent"].word() if "parent" in entries else GROUND,
        tuple(motions),
        _body(entries["body"]) if "body" in entries else None,
        position=entries["place"].quantities("m") if "place" in entries else (0.0, 0.0, 0.0),
        turn=_turn(entries["turn"]) if "turn" in entries else None,
    )


def axis(at: LocatedNode) -> Vector3:
    """A unit vector."""
    direction = at.vector("")
    try:
        return unit(direction)
    except MotionError as error:
        raise at.wrong(error.message) from None


def _turn(at: LocatedNode) -> Any:
    """A matrix from one or several turns {axis, angle} in order."""
    import numpy as np

    turns = at.items() if at.node.items is not None else [at]
    matrix = np.eye(3)
    for item in turns:
        entries = item.mapping(("axis", "angle"), ())
        about = axis(entries["axis"])
        matrix = matrix @ np.asarray(ca.evalf(rotation(about, ca.SX(entries["angle"].number("rad")))), dtype=np.float64)
    return matrix


def _motion(at: LocatedNode, scope: FileScope) -> Motion:
    entries = at.mapping()
    if len(entries) != 1 or next(iter(entries)) not in ("rotate", "slide", "ball"):
        raise at.wrong("a motion must be one of rotate, slide and ball: {rotate: {axis: [0, 0, 1], by: knee}}")
    ((kind, inner),) = entries.items()
    if kind == "ball":
        w, x, y, z = (value(item, "1", scope) for item in inner.items(4))
        return Ball((w, x, y, z))
    parts = inner.mapping(("axis", "by"), ("inertia",))
    unit_, inertia = ("rad", "kg m^2") if kind == "rotate" else ("m", "kg")
    by = value(parts["by"], unit_, scope)
    rotor = parts["inertia"].quantity(inertia) if "inertia" in parts else 0.0
    if is_number(rotor) and rotor < 0.0:
        raise parts["inertia"].wrong(f"{rotor:g} is negative")
    return (Rotate if kind == "rotate" else Slide)(axis(parts["axis"]), by, rotor)


def _body(at: LocatedNode) -> Body:
    if shape := next((name for name in SHAPES if name in at.mapping()), None):
        return shaped_body(shape, at)
    entries = at.mapping(("mass",), ("centre", "inertia", "triangle"))
    inertia: Any = (0.0, 0.0, 0.0)
    if "inertia" in entries and entries["inertia"].node.items is None:
        inertia = entries["inertia"].quantity("kg m^2")
    elif "inertia" in entries:
        rows = entries["inertia"].items(3)
        if rows[0].node.items is None:
            inertia = tuple(row.quantity("kg m^2") for row in rows)
        else:
            inertia = [[e.quantity("kg m^2") for e in row.items(3)] for row in rows]
    triangle = entries["triangle"].word(("checked", "ignored")) if "triangle" in entries else "checked"
    mass = entries["mass"].quantity("kg")
    centre = entries["centre"].quantities("m") if "centre" in entries else (0.0, 0.0, 0.0)
    try:
        return Body(mass, centre, inertia, cast(Literal["checked", "ignored"], triangle))
    except BodyError as error:
        raise entries.get(error.field, at).wrong(error.message) from None
