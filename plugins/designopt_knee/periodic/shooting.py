"""Motions that repeat in every gait cycle, by Newton's method on the map of one cycle (single shooting).

A motion of period T is a fixed point of the map P of the state at phase 0 over one cycle, and the multipliers of
Floquet are the eigenvalues of dP/dx there: it is stable while all lie within the unit circle, and doubles its period
(flip) where one leaves it at -1 (Guckenheimer & Holmes 1983, sections 1.5 and 3.5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.dynamics.simulation.side_by_side import OverRuns
from designopt.plugin import Diverged
from designopt_knee.periodic.strides import Stride, Strides, angles, distance

#: A state counts as one that repeats when Newton would move it by less than this (deg).
FOUND = 0.01
#: Newton's method has left its initial guess when it moves the state by more than this.
_REACH = 30.0
#: Multipliers of a size between these are computed again with the finer tolerance.
_DOUBTFUL = (0.5, 1.1)
#: Motions whose states lie this close (deg) have the same multipliers.
_ALIKE = 0.5
#: Gap in eta (rad) from which Newton's method begins between two states, and cycles spent on coming there.
_BRACKET, _HALVINGS = 1e-3, 8
#: Maximum number of Newton's iterations.
ITERATIONS = 6


@dataclass(frozen=True, eq=False)
class PeriodicMotion:
    """A motion of period T: its `stride`, and its Floquet multipliers in descending order of magnitude (complex, (4,)).

    `correction` (deg) is the size of Newton's next step of the state.
    """

    stride: Stride
    multipliers: NDArray[np.complex128]
    correction: float

    @property
    def state(self) -> Floats:
        """The state at phase 0 (4,)."""
        return np.asarray(self.stride.x[0])

    @property
    def modulus(self) -> float:
        """The largest magnitude of a multiplier: the motion is stable below 1."""
        return float(np.abs(self.multipliers[0]))

    @property
    def flip_margin(self) -> float:
        """Distance of the smallest real multiplier above -1, at most 1; below 0 the period has doubled."""
        return 1.0 + min(0.0, self.smallest_real)

    @property
    def smallest_real(self) -> float:
        """The smallest real multiplier; 0 if there is none."""
        real = self.multipliers[np.abs(self.multipliers.imag) <= 1e-9 * self.modulus].real
        return float(real.min(initial=0.0))

    @property
    def stable(self) -> bool:
        """Whether nearby walks converge to it."""
        return self.modulus < 1.0


def shoot(strides: Strides, guess: Floats, tolerance: float = FOUND) -> OverRuns[PeriodicMotion | None]:
    """The motion of period T near the state `guess` (4,); None if Newton's method finds none.

    The last computed cycle is the motion once Newton's step of its state is below `tolerance` deg; the multipliers are
    those of a cycle that begins within `_ALIKE` of it.
    """
    state, fine = guess, False
    for _ in range(ITERATIONS):
        try:
            stride = yield from strides.with_monodromy(state, fine=fine)
            monodromy = stride.monodromy
            assert monodromy is not None
            inverse = np.linalg.inv(np.eye(len(state)) - monodromy)
            correction = inverse @ stride.gap
            if tolerance <= distance(correction) < _ALIKE:
                stride = yield from strides(state + correction)
                correction = inverse @ stride.gap
        except (Diverged, np.linalg.LinAlgError):
            return None
        correction_size = distance(correction)
        if correction_size < tolerance:
            values = np.linalg.eigvals(monodromy).astype(np.complex128)
            motion = PeriodicMotion(stride, values[np.argsort(-np.abs(values), kind="stable")], correction_size)
            if fine or not _DOUBTFUL[0] < motion.modulus < _DOUBTFUL[1]:
                return motion
            fine = True
        elif not correction_size < _REACH:
            return None
        state = stride.x[0] + correction
    return None


def shoot_between(strides: Strides, a: Floats, b: Floats) -> OverRuns[PeriodicMotion | None]:
    """The motion of period T between two states (4,) whose cycles lead across it, as those of a doubled period do.

    After a cycle, states lie on a curve along which eta grows. On the line from `a` to `b` the gap in eta changes sign;
    its zero is located by false position (Illinois), and one cycle from there Newton's method begins.
    """
    try:
        shares, gaps = [0.0, 1.0], []
        for end in (a, b):
            stride = yield from strides(end)
            gaps.append(float(stride.gap[0]))
        if not gaps[0] * gaps[1] < 0.0:
            return None
        for _ in range(_HALVINGS):
            low, high = shares
            share = (low * gaps[1] - high * gaps[0]) / (gaps[1] - gaps[0])
            stride = yield from strides(a + share * (b - a))
            gap = float(stride.gap[0])
            if abs(gap) < _BRACKET:
                break
            side = int(gap * gaps[1] > 0.0)
            shares[side], gaps[side] = share, gap
            gaps[1 - side] *= 0.5
    except Diverged:
        return None
    return (yield from shoot(strides, stride.x[-1]))


def extrapolated(before: Floats, last: Floats) -> tuple[Floats, float]:
    """Where differences of states that shrink like `before`, `last` lead from the state after them, and their factor.

    Ground and stop leave one direction in which states differ after a cycle: successive differences are multiples of
    each other, and the factor is the multiplier (Aitken 1926).
    """
    a, b = angles(before), angles(last)
    factor = float(a @ b / (a @ a)) if a.any() else 0.0
    return np.asarray(last * (factor / (1.0 - factor)) if factor != 1.0 else last), factor
