"""Motions of period T followed over one number of the design, down to the place where they lose their stability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from designopt_knee.periodic.shooting import PeriodicMotion, shoot
from designopt_knee.periodic.strides import Strides, distance

Vector = NDArray[np.float64]

#: How a stable motion is lost: a multiplier leaves the unit circle at -1 (period doubles), at +1 (the motion meets an
#: unstable one and both vanish) or as a pair in between, or the motion ends where a contact begins or ceases.
Loss = Literal["flip", "fold", "torus", "contact"]

#: Two motions of neighbouring values lie this close (deg); further apart they are not the same one.
_NEIGHBOURS = 3.0
#: Multipliers this far from the unit circle at the loss did not cross it: the motion itself jumped or ended.
_CROSSING = 0.1
#: Deg within which the motions of a branch repeat.
_FOUND = 1e-3


@dataclass(frozen=True, eq=False)
class Branch:
    """Stable motions of period T at falling `values` (n,), and where their stability is `lost`.

    `lost` is None while the last value is stable; `kind` says how it was lost, `known_to` within which distance the
    place is known.
    """

    values: Vector
    motions: list[PeriodicMotion]
    lost: float | None
    kind: Loss | None
    known_to: float


def follow(
    at: Callable[[float], Strides], motion: PeriodicMotion, start: float, stop: float, step: float, known_to: float
) -> Branch:
    """The branch of the stable `motion` at `start`, followed down to `stop` in steps of at most `step`.

    `at` gives the map of a cycle for a value. Every motion starts Newton's method at the next value, extrapolated from
    the last two (secant predictor). Where Newton fails, the motion jumps or a multiplier leaves the unit circle, the
    place is enclosed: by false position on the distance of the multiplier to the unit circle while both ends have a
    motion, else by halving, until both ends lie within `known_to`.
    """
    values, motions = [start], [motion]
    while values[-1] > stop:
        value = max(stop, values[-1] - step)
        found = _next(at, values, motions, value)
        if found is None or not found.stable:
            lost, beyond, width = _enclose(at, values, motions, value, found, known_to)
            return Branch(np.array(values), motions, lost, _kind(motions[-1], beyond), width)
        values.append(value)
        motions.append(found)
    return Branch(np.array(values), motions, None, None, 0.0)


def _enclose(
    at: Callable[[float], Strides],
    values: list[float],
    motions: list[PeriodicMotion],
    bad: float,
    beyond: PeriodicMotion | None,
    known_to: float,
) -> tuple[float, PeriodicMotion | None, float]:
    """Where stability is lost between the last of `values` and `bad`; stable motions on the way join the branch."""
    weight = 1.0  # of the bad end, halved while it stays (Illinois)
    while values[-1] - bad > known_to:
        width, inside = values[-1] - bad, 1.0 - motions[-1].modulus
        share = 0.5
        if beyond is not None:
            outside = weight * (beyond.modulus - 1.0)
            share = min(max(inside / (inside + outside), 0.05), 0.95)
        value = values[-1] - share * width
        found = _next(at, values, motions, value)
        if found is None or not found.stable:
            bad, beyond, weight = value, found, 1.0
        else:
            values.append(value)
            motions.append(found)
            weight *= 0.5
    return bad, beyond, values[-1] - bad


def _next(
    at: Callable[[float], Strides], values: list[float], motions: list[PeriodicMotion], value: float
) -> PeriodicMotion | None:
    """The motion at `value` next to the last of `motions`; None when there is none or it lies elsewhere."""
    last = motions[-1].state
    guesses = [last]
    if len(values) > 1:
        slope = (last - motions[-2].state) / (values[-1] - values[-2])
        guesses.insert(0, last + (value - values[-1]) * slope)
    strides = at(value)
    for guess in guesses:
        found = shoot(strides, guess, _FOUND)
        if found is not None and distance(found.state - last) < _NEIGHBOURS:
            return found
    return None


def _kind(last: PeriodicMotion, beyond: PeriodicMotion | None) -> Loss:
    leading = [m.multipliers[0] for m in (last, beyond) if m is not None]
    crossing = [m for m in leading if abs(abs(m) - 1.0) < _CROSSING]
    if not crossing:
        return "contact"
    if abs(crossing[0].imag) > 1e-6:
        return "torus"
    return "flip" if crossing[0].real < 0.0 else "fold"
