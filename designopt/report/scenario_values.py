"""Objectives and limits of single scenarios, before they are aggregated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from designopt.arrays import Floats, Mask
from designopt.problem import unequal

if TYPE_CHECKING:
    from designopt.problem import Problem
    from designopt.study.study import Objective, StudyConstraint


def values(item: Objective | StudyConstraint, figures: Mapping[str, Floats], shape: tuple[int, int]) -> Floats:
    """The values (n, s) of `item` in each scenario, in its unit and with its own sign; NaN if not available."""
    with np.errstate(all="ignore"):
        evaluated = np.broadcast_to(np.asarray(item.expression.evaluate(figures), dtype=float), shape)
    return np.where(np.isfinite(evaluated), evaluated, np.nan)


def holding(problem: Problem, figures: Mapping[str, Floats], shape: tuple[int, int]) -> dict[str, Mask]:
    """By constraint, a mask (n, s) of the scenarios in which its limits are met; an unavailable value does not meet
    them."""
    masks = {}
    for c in problem.constraints:
        v = values(c, figures, shape)
        low = -np.inf if c.minimum is None else c.minimum
        high = np.inf if c.maximum is None else c.maximum
        with np.errstate(invalid="ignore"):
            masks[c.name] = unequal(v, v, c.equals) == 0.0 if c.equals is not None else (v >= low) & (v <= high)
    return masks
