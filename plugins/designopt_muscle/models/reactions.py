"""Joint reaction forces of a trial: their settings, and their dependence on the muscle forces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from designopt.arrays import Vector
from designopt.plugin import Quantity as Q
from designopt_muscle.geometry.geometry import stretched
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.geometry.paths import wrapped_paths
from designopt_muscle.models.trial import Trial
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.sharing.statement.criteria import JointReaction

_COMPONENTS = {"norm": None, "x": 0, "y": 1, "z": 2}


@dataclass(frozen=True)
class ReactionTerm:
    """Settings of one joint's reaction: the force of the parent on the child.

    A joint without weight and maximum is an output; with a `weight` its square is part of the cost, a `maximum` limits
    it.
    """

    joint: Annotated[str, Q("", "name in the model file")]
    component: Annotated[Literal["norm", "x", "y", "z"], Q("", "of the force, for cost and limit")] = "norm"
    axes: Annotated[Literal["child", "parent", "ground"], Q("", "of the body in which the force is given")] = "child"
    weight: Annotated[float, Q("1/N^2", "of the square in the cost", ge=0)] = 0.0
    maximum: Annotated[float | None, Q("N", "of the norm, or of the size of the component", gt=0)] = None


def joint_reactions(trial: Trial, terms: Sequence[ReactionTerm]) -> tuple[JointReaction, ...]:
    """The reactions (n, 3) as affine functions of the muscle forces, in the axes of `terms`.

    `trial` was read with its dynamics; unusable frames are 0.
    """
    assert trial.dynamics is not None, "the trial was read without its dynamics"
    joint_of = {joint.name: joint for joint in trial.model.joints}
    offsets = trial.dynamics.joint_forces([joint_of[term.joint].child for term in terms])
    gains = reaction_gains(trial.model, trial.finite_values, [term.joint for term in terms])
    motion = kinematics(trial.model, trial.finite_values)
    good = trial.balance.usable
    joint_terms = []
    for term in terms:
        body = {"child": joint_of[term.joint].child, "parent": joint_of[term.joint].parent, "ground": "ground"}[
            term.axes
        ]
        turn = motion.rotation[body].transpose(0, 2, 1)
        offset = np.where(good[:, None], (turn @ offsets[joint_of[term.joint].child][:, :, None])[:, :, 0], 0.0)
        gain = np.where(good[:, None, None], turn @ gains[term.joint], 0.0)
        joint_terms.append(
            JointReaction(offset, gain, term.weight, _COMPONENTS[term.component], term.maximum, name=term.joint)
        )
    return tuple(joint_terms)


def reaction_gains(model: OsimModel, values: dict[str, Vector], joints: Sequence[str]) -> dict[str, Vector]:
    """(n, 3, k) for each joint: contribution of a unit muscle force to the force of the parent on the child, in ground
    axes.

    The muscles pull at the bodies beyond the joint with the resultant of their tensions, which the parent balances.
    Raises `ValueError` for unknown joints or coordinates.
    """
    names = [joint.name for joint in model.joints]
    if unknown := [name for name in joints if name not in names]:
        raise ValueError(f"'{unknown[0]}' is not a joint of the model '{model.name}' ({', '.join(names)})")
    motion = kinematics(model, values)
    n, k = len(motion.origin["ground"]), len(model.muscles)
    beyond = {joint.name: bodies_beyond(model, joint.name) for joint in model.joints if joint.name in joints}
    surfaces = {w.name: w for w in model.wraps}
    gains = {name: np.zeros((n, 3, k)) for name in joints}
    for j, muscle in enumerate(model.muscles):
        for path in wrapped_paths(muscle, surfaces, motion):
            _, slope = stretched(path)
            for name in joints:
                mask = np.array([node.body in beyond[name] for node in path.nodes])
                if mask.any() and not mask.all():
                    gains[name][path.frames, :, j] = slope[mask].sum(axis=0)
    return gains


def bodies_beyond(model: OsimModel, joint: str) -> frozenset[str]:
    """The bodies that a joint carries: its child and everything on it."""
    bodies: set[str] = set()
    for item in model.joints:  # parents come first
        if item.name == joint or item.parent in bodies:
            bodies.add(item.child)
    return frozenset(bodies)
