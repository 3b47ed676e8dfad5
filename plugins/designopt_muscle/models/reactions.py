"""Joint reaction forces of a trial: their settings, and their dependence on the muscle forces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from designopt_mechanics.sharing.statement.criteria import JointReaction

from designopt.arrays import Floats, Integers
from designopt.plugin import Quantity as Q
from designopt_muscle.geometry.geometry import path_length
from designopt_muscle.geometry.kinematics import Kinematics, cross, kinematics
from designopt_muscle.geometry.paths import wrapped_paths
from designopt_muscle.models.trial import Trial
from designopt_muscle.osim.model import GROUND, OsimModel

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


def reaction_gains(model: OsimModel, values: dict[str, Floats], joints: Sequence[str]) -> dict[str, Floats]:
    """(n, 3, k) for each joint: contribution of a unit muscle force to the force of the parent on the child, in ground
    axes.

    The muscles pull at the bodies beyond the joint with the resultant of their tensions, which the parent balances.
    Raises `ValueError` for unknown joints or coordinates.
    """
    motion = kinematics(model, values)
    gains = {name: np.zeros((len(motion.origin[GROUND]), 3, len(model.muscles))) for name in joints}
    for pull in _pulls(model, motion, joints):
        gains[pull.joint][pull.frames, :, pull.muscle] = pull.force
    return gains


@dataclass(frozen=True, eq=False)
class JointWrenches:
    """The wrenches of the parents of `joints` on their children in n frames: `force` (n, j, 3) N and `moment` (n, j, 3)
    N m about `point` (n, j, 3) m, the centre of the joint on the child."""

    joints: tuple[str, ...]
    force: Floats
    moment: Floats
    point: Floats


def joint_wrenches(trial: Trial, forces: Floats, joints: Sequence[str], axes: str = "child") -> JointWrenches:
    """The reactions of `joints` under muscle `forces` (n, k) N along the tendons; NaN where these are.

    The wrench balances everything beyond the joint: masses, motion, external loads and muscles; reserves and other
    drives of coordinates act within it, as part of its moment. All is given in the axes of the ``child``, the
    ``parent``, the ``ground`` or the body with this name, points from the origin of that body. `trial` was read with
    its dynamics. Raises `ValueError` for unknown joints or bodies.
    """
    assert trial.dynamics is not None, "the trial was read without its dynamics"
    joint_of = {joint.name: joint for joint in trial.model.joints}
    motion = kinematics(trial.model, trial.finite_values)
    bodies = {name: _axes_body(trial.model, name, axes) for name in joints}
    offsets = trial.dynamics.joint_wrenches([joint_of[name].child for name in joints])
    wrenches = {name: np.array(offsets[joint_of[name].child]) for name in joints}
    for pull in _pulls(trial.model, motion, joints):
        tension = forces[pull.frames, pull.muscle][:, None]
        wrenches[pull.joint][pull.frames, :3] += tension * pull.force
        wrenches[pull.joint][pull.frames, 3:] += tension * pull.moment
    missing = ~(trial.balance.usable & np.isfinite(forces).all(axis=1))
    parts: list[Floats] = []
    for name in joints:
        turn, origin = motion.rotation[bodies[name]].transpose(0, 2, 1), motion.origin[bodies[name]]
        centre = motion.position(joint_of[name].child, joint_of[name].in_child[:3, 3])
        wrench = np.where(missing[:, None], np.nan, wrenches[name])
        vectors = np.stack([wrench[:, :3], wrench[:, 3:], centre - origin], axis=2)
        parts.append(turn @ vectors)
    force, moment, point = np.moveaxis(np.stack(parts, axis=1), 3, 0)
    return JointWrenches(tuple(joints), force, moment, point)


def _axes_body(model: OsimModel, name: str, axes: str) -> str:
    """The body whose axes a reaction has. Raises `ValueError` for an unknown joint or body."""
    by_name = {joint.name: joint for joint in model.joints}
    if name not in by_name:
        raise ValueError(f"'{name}' is not a joint of the model '{model.name}' ({', '.join(by_name)})")
    bodies = {body.name: body.name for body in model.bodies} | {GROUND: GROUND}
    bodies |= {"child": by_name[name].child, "parent": by_name[name].parent}
    if axes not in bodies:
        raise ValueError(f"'{axes}' is not child, parent, ground or a body of the model '{model.name}'")
    return bodies[axes]


@dataclass(frozen=True, eq=False)
class _Pull:
    """The part of a unit force of a `muscle` in the wrench of the parent on the child of a `joint`, in some
    `frames`."""

    joint: str
    muscle: int
    frames: Integers
    force: Floats
    moment: Floats


def _pulls(model: OsimModel, motion: Kinematics, joints: Sequence[str]) -> Iterator[_Pull]:
    """The parents balance the tensions on the bodies beyond their joints, about the joint's centre on the child, in
    ground axes. Raises `ValueError` for unknown joints."""
    for name in joints:
        _axes_body(model, name, GROUND)
    by_name = {joint.name: joint for joint in model.joints if joint.name in joints}
    beyond = {name: bodies_beyond(model, name) for name in by_name}
    centres = {name: motion.position(joint.child, joint.in_child[:3, 3]) for name, joint in by_name.items()}
    surfaces = {w.name: w for w in model.wraps}
    for j, muscle in enumerate(model.muscles):
        for path in wrapped_paths(muscle, surfaces, motion):
            _, slope = path_length(path)
            turning = cross(np.stack([node.x for node in path.nodes]), slope)
            sums: dict[tuple[bool, ...], tuple[Floats, Floats]] = {}
            for name in by_name:
                mask = tuple(node.body in beyond[name] for node in path.nodes)
                if all(mask) or not any(mask):
                    continue
                if mask not in sums:
                    sums[mask] = slope[np.array(mask)].sum(axis=0), turning[np.array(mask)].sum(axis=0)
                force, moment = sums[mask]
                yield _Pull(name, j, path.frames, force, moment - cross(centres[name][path.frames], force))


def bodies_beyond(model: OsimModel, joint: str) -> frozenset[str]:
    """The bodies that a joint carries: its child and everything on it."""
    bodies: set[str] = set()
    for item in model.joints:  # parents come first
        if item.name == joint or item.parent in bodies:
            bodies.add(item.child)
    return frozenset(bodies)
