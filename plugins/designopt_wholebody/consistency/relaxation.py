"""Lengths of the last steps of a search, by Aitken's relaxation (Irons & Tuck 1969)."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats, Mask

#: Below this norm of the step the relaxation sets the length, instead of a merit: near the end merits differ by
#: round-off alone, and a step halved by round-off would make a frame depend on the last digits.
NEAR = 1e-2
_SHORTEST, _LONGEST = 0.1, 4.0


def relaxation(step: Floats, last: Floats, lengths: Floats, is_finite: Mask) -> Floats:
    """(f,) lengths of steps (f, n) after steps `last` (f, n) of `lengths` (f,); 1 where `is_finite` (f,) is false.

    The length of the last step that would have minimised this one.
    """
    turn = step - last
    square = (turn**2).sum(axis=1)
    step_lengths = -lengths * (last * turn).sum(axis=1) / np.where(square > 0.0, square, 1.0)
    return np.asarray(np.where(is_finite & (square > 0.0), np.clip(step_lengths, _SHORTEST, _LONGEST), 1.0))
