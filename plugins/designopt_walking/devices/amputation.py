"""A walker whose leg is amputated above the knee: fewer muscles, a lighter shank, and the joints of a prosthesis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from designopt_mechanics.tree import Tree
from designopt_muscle.osim.model import OsimModel, OsimMuscle, PathPoint
from designopt_muscle.osim.poses import inverse
from designopt_muscle.osim.tree import joint_frame

from designopt_walking.devices.four_bar import FourBar

#: Muscles that cross the knee or the ankle, without the endings of the sides.
LOST = ("hamstrings", "bifemsh", "rect_fem", "vasti", "gastroc", "soleus", "tib_ant")
#: Those of them that a myodesis fixes to the femur.
FIXED = ("hamstrings", "rect_fem")
#: Bodies of the prosthesis, and their share of the mass and inertia of the healthy ones.
REPLACED, SHARE = ("tibia", "talus", "calcn", "toes"), 0.65


def amputate(model: OsimModel, side: str = "r", *, myodesis: bool = False) -> OsimModel:
    """The model after a transfemoral amputation of a `side`, "r" or "l", with the masses of a prosthesis.

    With `myodesis` the hamstrings and the rectus femoris stay as muscles of the hip that end on the femur, where their
    ends are with the knee straight. Raises `ValueError` for a model without one of the muscles and bodies.
    """
    bodies, muscles = {b.name for b in model.bodies}, {m.name for m in model.muscles}
    for kind, names, available in (("body", REPLACED, bodies), ("muscle", LOST, muscles)):
        for name in names:
            if f"{name}_{side}" not in available:
                raise ValueError(
                    f"the model has no {kind} '{name}_{side}', which an amputation above the knee concerns"
                )
    left = []
    for muscle in model.muscles:
        name, _, of_side = muscle.name.rpartition("_")
        if of_side != side or name not in LOST:
            left.append(muscle)
        elif myodesis and name in FIXED:
            left.append(_on_femur(model, muscle, side))
    lighter = {f"{name}_{side}" for name in REPLACED}
    return replace(
        model,
        muscles=tuple(left),
        bodies=tuple(
            replace(b, mass=SHARE * b.mass, inertia=SHARE * b.inertia) if b.name in lighter else b for b in model.bodies
        ),
    )


def with_four_bar(tree: Tree, linkage: FourBar, side: str = "r") -> Tree:
    """The tree with the `linkage` in place of the single-axis knee of a `side`."""
    name = joint_frame(f"tibia_{side}")
    frames = tuple(
        replace(frame, motions=linkage.motions(f"knee_angle_{side}")) if frame.name == name else frame
        for frame in tree.frames
    )
    return Tree(tree.coordinates, frames)


def _on_femur(model: OsimModel, muscle: OsimMuscle, side: str) -> OsimMuscle:
    """The muscle with its points below the knee fixed to the femur, where they are at the straight knee."""
    joint = next(j for j in model.joints if j.child == f"tibia_{side}")
    to_femur = joint.in_parent @ inverse(joint.in_child)
    points: list[PathPoint] = []
    for point in muscle.points:
        if point.condition and not point.within[0] <= 0.0 <= point.within[1]:
            continue  # a point of the bent knee
        if point.body == joint.child:
            local = np.array([*point.location, 1.0])
            for i, axis in enumerate(point.moving):
                local[i] = float(axis.function.value(np.zeros(1))[0])
            location = (to_femur @ local)[:3]
            point = PathPoint(point.name, joint.parent, location)
        points.append(point)
    return replace(muscle, points=tuple(points))
