"""A walk from an initial state, cycle by cycle, until it converges to a periodic motion or all cycles are simulated."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics.simulation.side_by_side import OverRuns
from designopt_knee import figures
from designopt_knee.periodic.shooting import FOUND, PeriodicMotion, extrapolated, shoot, shoot_between
from designopt_knee.periodic.strides import Stride, Strides, distance

#: Newton begins where the walk will move by less than this (deg) before it repeats, as far as two cycles tell,
_NEAR = 0.1
#: or, where it settles slowly, where it moves by less than this in a cycle.
_SLOW, _SLOW_CYCLES = 2.0, 8
#: States this near (deg) to a motion may be on their way from it, if they move by this part of what is expected.
_SAME, _LEAVING = 1.0, 0.1


@dataclass
class WalkCycles:
    """Cycles simulated one after the other, and the nearest motion of period T.

    `is_periodic`: the walk ends on `motion`, which is stable. Otherwise the walk passes or crosses `motion`, mostly an
    unstable one.
    """

    strides: list[Stride] = field(default_factory=list)
    motion: PeriodicMotion | None = None
    is_periodic: bool = False

    @cached_property
    def sections(self) -> Floats:
        """The states at phase 0, the last one included (cycles + 1, 4)."""
        return np.array([*(s.x[0] for s in self.strides), self.strides[-1].x[-1]])

    @property
    def leaving(self) -> bool:
        """Whether the last cycle is still on the way from an unstable motion."""
        return _leaves(self.sections[-1], distance(self.sections[-1] - self.sections[-2]), self.motion)

    def trailing(self, cycles: int) -> tuple[Floats, Floats]:
        """States and outputs of the last `cycles`, end point included; a periodic motion is repeated."""
        last = [self.motion.stride] * cycles if self.is_periodic and self.motion else self.strides[-cycles:]
        x = np.concatenate([*(stride.x[:-1] for stride in last), last[-1].x[-1:]])
        y = np.concatenate([*(stride.y[:-1] for stride in last), last[-1].y[-1:]])
        return x, y


def walk(strides: Strides, start: Floats, cycles: int) -> OverRuns[WalkCycles]:
    """The walk that begins with the state `start` (4,), of at most this number of `cycles`; raises `Diverged`.

    As soon as the walk is about to repeat, Newton's method finds the motion to which it converges. A motion that the
    walk leaves again is unstable and does not end it.
    """
    walk_cycles, states = WalkCycles(), [start]
    tried_distance = np.inf
    for k in range(1, cycles + 1):
        walk_cycles.strides.append((yield from strides(states[-1])))
        states.append(walk_cycles.strides[-1].x[-1])
        if k < 2:
            continue
        before, last = np.diff(states[-3:], axis=0)
        change = distance(last)
        if _leaves(states[-1], change, walk_cycles.motion):
            tried_distance = np.inf  # what comes after the motion that the walk leaves is another one
            continue
        if not (change < 0.5 * tried_distance and _about_to_repeat(before, last, k)):
            continue
        ahead, _ = extrapolated(before, last)
        motion = yield from shoot(strides, states[-1] + ahead)
        if motion is not None and distance(motion.state - states[-1]) < _SAME + _SLOW:
            walk_cycles.motion, walk_cycles.is_periodic = motion, motion.stable
            if motion.stable:
                return walk_cycles
        tried_distance = change
    if walk_cycles.motion is None:
        walk_cycles.motion = yield from beside(strides, walk_cycles)
    return walk_cycles


def walk_through(strides: Strides, start: Floats, cycles: int, after_settling: int | None) -> OverRuns[WalkCycles]:
    """All `cycles` simulated, or `after_settling` cycles after two successive cycles of the knee angle have repeated.

    The cycles after that must repeat as well, or the walk continues. The motion is found afterwards.
    """
    walk_cycles = WalkCycles()
    state = start
    knee: list[Floats] = []
    for k in range(1, cycles + 1):
        walk_cycles.strides.append((yield from strides(state)))
        state = walk_cycles.strides[-1].x[-1]
        knee.append(np.degrees(walk_cycles.strides[-1].y[:-1, 0]))
        # `settled_cycles` counts those before the first that repeats: two differences make three cycles.
        if after_settling is not None and k >= figures.settled_cycles(np.array(knee)) + 3 + after_settling:
            break
    walk_cycles.motion = (yield from shoot(strides, state)) or (yield from beside(strides, walk_cycles))
    return walk_cycles


def beside(strides: Strides, walk_cycles: WalkCycles) -> OverRuns[PeriodicMotion | None]:
    """The motion of period T that a walk of another period crosses, where eta at phase 0 alternates least."""
    moves = np.diff(walk_cycles.sections[1:, 0])  # without the first cycle, whose start is arbitrary
    crossing = np.flatnonzero(moves[1:] * moves[:-1] < 0.0)
    if not len(crossing):
        return None
    k = 1 + int(crossing[np.argmin(np.abs(moves[crossing]))])
    return (yield from shoot_between(strides, walk_cycles.sections[k], walk_cycles.sections[k + 1]))


def _about_to_repeat(before: Floats, last: Floats, cycle: int) -> bool:
    change = distance(last)
    ahead, factor = extrapolated(before, last)
    return bool(
        (abs(factor) < 1.0 and distance(ahead) < _NEAR and change < _SAME)
        or (cycle >= _SLOW_CYCLES and change < _SLOW and abs(factor) < 1.2)
    )


def _leaves(state: Floats, change: float, motion: PeriodicMotion | None) -> bool:
    """Whether a walk in `state` whose last cycle moved it by `change` deg is leaving an unstable `motion`.

    At a distance from the motion, a cycle moves the walk by about this distance times the difference of the multiplier
    from 1. A walk that moves much less has converged to another motion nearby.
    """
    if motion is None or motion.stable:
        return False
    apart = distance(state - motion.state)
    return apart < FOUND or (apart < _SAME and change > _LEAVING * apart * abs(motion.multipliers[0] - 1.0))
