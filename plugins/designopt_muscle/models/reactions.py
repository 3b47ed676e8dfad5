"""Joint reaction forces of a trial: what a study says of them, and how they depend on the muscle forces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from designopt.plugin import Quantity as Q
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.geometry.reactions import reaction_gains
from designopt_muscle.models.trial import Trial
from designopt_muscle.sharing.statement.criteria import JointReaction

_COMPONENTS = {"norm": None, "x": 0, "y": 1, "z": 2}


@dataclass(frozen=True)
class ReactionTerm:
    """What a study says of one joint's reaction: the force of the parent on the child.

    A joint that is only named is an output; with a `weight` its square is part of the cost, a `maximum` limits it.
    """

    joint: Annotated[str, Q("", "name in the model file")]
    component: Annotated[Literal["norm", "x", "y", "z"], Q("", "of the force, for cost and limit")] = "norm"
    axes: Annotated[Literal["child", "parent", "ground"], Q("", "of the body in which the force is given")] = "child"
    weight: Annotated[float, Q("1/N^2", "of the square in the cost", ge=0)] = 0.0
    maximum: Annotated[float | None, Q("N", "of the norm, or of the size of the component", gt=0)] = None


def joint_reactions(trial: Trial, terms: Sequence[ReactionTerm]) -> tuple[JointReaction, ...]:
    """The reactions (n, 3) as affine functions of the muscle forces, in the axes that `terms` ask for.

    `trial` was read with its dynamics; in frames that cannot be used all is 0.
    """
    assert trial.dynamics is not None, "the trial was read without its dynamics"
    of = {joint.name: joint for joint in trial.model.joints}
    offsets = trial.dynamics.joint_forces([of[term.joint].child for term in terms])
    gains = reaction_gains(trial.model, trial.finite_values, [term.joint for term in terms])
    motion = kinematics(trial.model, trial.finite_values)
    good = trial.balance.usable
    found = []
    for term in terms:
        body = {"child": of[term.joint].child, "parent": of[term.joint].parent, "ground": "ground"}[term.axes]
        turn = motion.rotation[body].transpose(0, 2, 1)
        offset = np.where(good[:, None], (turn @ offsets[of[term.joint].child][:, :, None])[:, :, 0], 0.0)
        gain = np.where(good[:, None, None], turn @ gains[term.joint], 0.0)
        found.append(
            JointReaction(offset, gain, term.weight, _COMPONENTS[term.component], term.maximum, name=term.joint)
        )
    return tuple(found)
