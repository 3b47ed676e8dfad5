"""The contact of foot or stop that begins or ends where a branch of motions of period T ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics.simulation.side_by_side import OverRuns
from designopt_knee.periodic import BODIES, Body
from designopt_knee.periodic.strides import Stride, Strides, distance

#: Force (N) from which a contact counts as closed, and samples of a cycle that are tested for it.
_CLOSED, _SAMPLES = 1.0, 4000
#: A walk that leaves the end of a branch is followed for at most so many cycles and so many deg.
_CYCLES, _AWAY = 60, 3.0


@dataclass(frozen=True)
class ContactChange:
    """A contact that only one of two neighbouring motions has: the `body`, and the `phase` (0 to 1) of its middle.

    `is_touch`: it is one more touch, else one more gap. `begins`: the neighbour beyond the end has it, else it ceases.
    """

    body: Body
    phase: float
    is_touch: bool
    begins: bool


def contact_at_end(last: Strides, state: Floats, beyond: Strides) -> OverRuns[ContactChange | None]:
    """The first contact that differs between the motion `last` at `state` (4,) and the walk from there `beyond` it.

    None when the contacts stay the same for `_CYCLES` or until the walk is far from the motion. Raises `Diverged`.
    """
    strides = beyond.sampled(_SAMPLES)
    motion, at = (yield from last.sampled(_SAMPLES)(state)), state
    for _ in range(_CYCLES):
        stride = yield from strides(at)
        change = contact_change(motion, stride, strides.names)
        if change is not None:
            return change
        at = stride.x[-1]
        if distance(at - state) > _AWAY:
            return None
    return None


def contact_change(before: Stride, after: Stride, names: Sequence[str]) -> ContactChange | None:
    """The shortest contact or gap that only one of two cycles has; None if there is none.

    `names` are the names of the cycles' outputs.
    """
    changes = []
    for body in BODIES:
        column = names.index(f"{body}_force")
        is_closed = [bool(stride.y[0, column] > _CLOSED) for stride in (before, after)]
        edges = [_edges(stride.y[:, column]) for stride in (before, after)]
        begins = len(edges[1]) > len(edges[0])
        longer, shorter = edges[begins], edges[not begins]
        if (len(longer) - len(shorter)) % 2:  # one edge has passed the beginning of the cycle
            at_end = 1.0 - longer[-1] < longer[0]
            is_closed[begins] ^= not at_end
            longer = longer[:-1] if at_end else longer[1:]
        if len(longer) <= len(shorter):
            continue
        i = _added(longer, shorter)
        touch = is_closed[begins] == bool(i % 2)  # edges alternate: the first opens what is closed at phase 0
        length = float(longer[i + 1] - longer[i])
        changes.append((length, ContactChange(body, float(longer[i] + longer[i + 1]) / 2.0, touch, begins)))
    return min(changes, key=lambda change: change[0])[1] if changes else None


def _edges(force: Floats) -> Floats:
    """Phases (k,) at which a contact closes or opens, from the `force` (samples + 1,) of a cycle."""
    is_closed = force > _CLOSED
    at = np.flatnonzero(is_closed[1:] != is_closed[:-1])
    share = (_CLOSED - force[at]) / (force[at + 1] - force[at])
    return np.asarray((at + share) / (len(force) - 1))


def _added(longer: Floats, shorter: Floats) -> int:
    """The first of the two neighbours in `longer` (k,) without which it is nearest to the first k - 2 of `shorter`."""
    count = min(len(longer) - 2, len(shorter))

    def apart(i: int) -> float:
        return float(np.abs(np.delete(longer, [i, i + 1])[:count] - shorter[:count]).sum())

    return min(range(len(longer) - 1), key=apart)
