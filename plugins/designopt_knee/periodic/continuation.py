"""Continuation of motions of period T over one value of the design, down to the value at which they lose their
stability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics.simulation.side_by_side import OverRuns
from designopt.plugin import Diverged
from designopt_knee.periodic.contacts import ContactChange, contact_at_end
from designopt_knee.periodic.shooting import FOUND, PeriodicMotion, shoot
from designopt_knee.periodic.strides import Strides, distance

#: How a stable motion is lost: a multiplier leaves the unit circle at -1 (period doubles), at +1 (the motion meets an
#: unstable one and both vanish) or as a pair in between; or the motion ends inside of it where a contact begins or
#: ceases, or for no reason seen.
Loss = Literal["flip", "fold", "torus", "contact", "unknown"]

#: Two motions of neighbouring values lie this close (deg); further apart they are not the same one.
_NEIGHBOURS = 3.0
#: Multipliers this far from the unit circle at the loss did not cross it: the motion itself jumped or ended.
_CROSSING = 0.1
#: Deg within which the motions of a branch repeat.
_FOUND = 1e-3
#: Number of cycles walked where Newton's method finds nothing, and of those from which it begins again.
_CYCLES, _TRIALS = 12, 4


@dataclass(frozen=True, eq=False)
class Branch:
    """Stable motions of period T at decreasing `values` (n,), and the value at which their stability is `lost`.

    `lost` is None if the last value is stable. `kind` is the kind of bifurcation, `known_to` the width of the
    enclosure, `contact` the contact that changes there, if any.
    """

    values: Floats
    motions: list[PeriodicMotion]
    lost: float | None
    kind: Loss | None
    known_to: float
    contact: ContactChange | None = None


def follow(
    at: Callable[[float], Strides], motion: PeriodicMotion, start: float, stop: float, step: float, known_to: float
) -> OverRuns[Branch]:
    """The branch of the stable `motion` at `start`, followed down to `stop` in steps of at most `step`.

    `at` gives the map of a cycle for a value. Every motion starts Newton's method at the next value, extrapolated from
    the last two (secant predictor). Where neither Newton nor a walk finds a stable one near, the place is enclosed: by
    false position on the distance of the multiplier to the unit circle while both ends have a motion, else by halving,
    until both ends lie within `known_to`. The motion is lost if it is not found from there either.
    """
    values, motions = [start], [motion]
    while values[-1] > stop:
        value = max(stop, values[-1] - step)
        next_motion = yield from _next(at, values, motions, value)
        if next_motion is None or not next_motion.stable:
            value, beyond, width = yield from _enclose(at, values, motions, value, next_motion, known_to)
            next_motion = yield from _next(at, values, motions, value)  # from close by
            if next_motion is None or not next_motion.stable:
                contact = yield from _contact(at(values[-1]), motions[-1], at(value))
                kind = _kind(motions[-1], next_motion or beyond, contact)
                return Branch(np.array(values), motions, value, kind, width, contact)
        values.append(value)
        motions.append(next_motion)
    return Branch(np.array(values), motions, None, None, 0.0)


def _contact(last: Strides, motion: PeriodicMotion, beyond: Strides) -> OverRuns[ContactChange | None]:
    try:
        return (yield from contact_at_end(last, motion.state, beyond))
    except Diverged:  # the walk beyond ends
        return None


def _enclose(
    at: Callable[[float], Strides],
    values: list[float],
    motions: list[PeriodicMotion],
    bad: float,
    beyond: PeriodicMotion | None,
    known_to: float,
) -> OverRuns[tuple[float, PeriodicMotion | None, float]]:
    """Where stability is lost between the last of `values` and `bad`; stable motions on the way join the branch."""
    weight = 1.0  # of the bad end, halved while it stays (Illinois)
    while values[-1] - bad > known_to:
        width, inside = values[-1] - bad, 1.0 - motions[-1].modulus
        share = 0.5
        if beyond is not None:
            outside = weight * (beyond.modulus - 1.0)
            share = min(max(inside / (inside + outside), 0.05), 0.95)
        value = values[-1] - share * width
        motion = yield from _next(at, values, motions, value)
        if motion is None or not motion.stable:
            bad, beyond, weight = value, motion, 1.0
        else:
            values.append(value)
            motions.append(motion)
            weight *= 0.5
    return bad, beyond, values[-1] - bad


def _next(
    at: Callable[[float], Strides], values: list[float], motions: list[PeriodicMotion], value: float
) -> OverRuns[PeriodicMotion | None]:
    """The motion at `value` nearest to the last of `motions`, a stable one if possible; None if none is near."""
    last = motions[-1].state
    guesses = [last]
    if len(values) > 1:
        slope = (last - motions[-2].state) / (values[-1] - values[-2])
        guesses.insert(0, last + (value - values[-1]) * slope)
    strides = at(value)
    unstable = None
    for guess in guesses:
        candidate = yield from shoot(strides, guess, _FOUND)
        if candidate is not None and distance(candidate.state - last) < _NEIGHBOURS:
            if candidate.stable:
                return candidate
            unstable = unstable or candidate
    return (yield from _walked(strides, last)) or unstable


def _walked(strides: Strides, last: Floats) -> OverRuns[PeriodicMotion | None]:
    """The stable motion to which a walk from the state `last` comes without leaving its neighbourhood.

    Where Newton's method finds none or an unstable one: near a contact that just touches, cycles differ by more than
    `_FOUND` from rounding, and an unstable motion lies close by.
    """
    state = last
    for cycle in range(_CYCLES + _TRIALS):
        try:
            state = (yield from strides(state)).x[-1]
        except Diverged:
            return None
        if not distance(state - last) < _NEIGHBOURS:
            return None
        candidate = (yield from shoot(strides, state, FOUND)) if cycle >= _CYCLES else None
        if candidate is not None and candidate.stable and distance(candidate.state - last) < _NEIGHBOURS:
            return candidate
    return None


def _kind(last: PeriodicMotion, beyond: PeriodicMotion | None, contact: ContactChange | None) -> Loss:
    leading = [m.multipliers[0] for m in (last, beyond) if m is not None]
    crossing = [m for m in leading if abs(abs(m) - 1.0) < _CROSSING]
    if not crossing:
        return "contact" if contact is not None else "unknown"
    if abs(crossing[0].imag) > 1e-6:
        return "torus"
    return "flip" if crossing[0].real < 0.0 else "fold"
