"""An OpenSim model as a tree of frames: its equations of motion, without muscles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from designopt_mechanics.body import Body
from designopt_mechanics.motions import Motion, Rotate, Slide
from designopt_mechanics.robot_files.parts import triple
from designopt_mechanics.tree import Coordinate, Frame, Tree

from designopt_muscle.osim.functions import Polynomial, is_constant
from designopt_muscle.osim.model import Axis, OsimModel
from designopt_muscle.osim.poses import inverse

#: Suffix of the frame that a joint moves and that carries its body.
_JOINT = "_joint"


def tree_of(model: OsimModel, fixed: Collection[str] = ()) -> Tree:
    """The tree of a model, with its free coordinates and their ranges; coordinates that couplers drive are functions of
    them; `fixed` ones, such as locked ones, are numbers: their defaults.

    Every body is a frame of its own name, on a frame ``NAME_joint`` that its joint moves. Bodies without mass are empty
    frames. Inertias of no mass distribution, as in some published models, are accepted.
    """
    driven = {c.dependent: c for c in model.couplers}
    numbers = {c.name: c.default for c in model.coordinates if c.name in fixed}

    def variable(step: Axis) -> Any:
        """The joint variable of a step: a number, or a function of the coordinates."""
        if not step.coordinate or is_constant(step.function):
            return float(step.function.value(np.zeros(1))[0])
        coupler = driven.get(step.coordinate)
        source = step.coordinate if coupler is None else coupler.independent
        if source in numbers:
            q = np.array([numbers[source]])
            return float(step.function.value(q if coupler is None else coupler.function.value(q))[0])
        if coupler is None and step.function == Polynomial((1.0, 0.0)):
            return step.coordinate

        def value(z: Mapping[str, Any]) -> Any:
            q = z[source] if coupler is None else coupler.function.expression(z[source])
            return step.function.expression(q)

        return value

    frames = []
    for joint, body in zip(model.joints, model.bodies, strict=True):
        motions: list[Motion] = []
        for step in joint.translations:
            length = float(np.linalg.norm(step.axis))
            if length and not (is_constant(step.function) and not step.function.value(np.zeros(1))[0]):
                motions.append(Slide(triple(step.axis / length), _product(variable(step), length)))
        for step in joint.rotations:
            if not (is_constant(step.function) and not step.function.value(np.zeros(1))[0]):
                motions.append(Rotate(triple(step.axis), variable(step)))
        between = joint_frame(joint.child)
        pose = joint.in_parent
        frames.append(Frame(between, joint.parent, tuple(motions), None, triple(pose[:3, 3]), pose[:3, :3]))
        back = inverse(joint.in_child)
        solid = None
        if body.mass > 0:
            solid = Body(body.mass, triple(body.centre), body.inertia, triangle="ignored")
        frames.append(Frame(joint.child, between, (), solid, triple(back[:3, 3]), back[:3, :3]))
    free = set(model.free) - set(numbers)
    coordinates = tuple(
        Coordinate(
            c.name, "rad" if c.rotational else "m", min(c.low, c.default), max(c.high, c.default), reference=c.default
        )
        for c in model.coordinates
        if c.name in free
    )
    return Tree(coordinates, tuple(frames))


def joint_frame(child: str) -> str:
    """The frame of a tree that the joint of the body `child` moves."""
    return f"{child}{_JOINT}"


def _product(value: Any, factor: float) -> Any:
    if factor == 1.0:
        return value
    if isinstance(value, str):
        return lambda z: factor * z[value]
    if isinstance(value, float):
        return factor * value
    inner: Callable[[Mapping[str, Any]], Any] = value
    return lambda z: factor * inner(z)
