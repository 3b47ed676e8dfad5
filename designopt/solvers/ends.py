"""Ends of several searches of one stage: how far apart their best designs are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from designopt.arrays import Floats
from designopt.problem import Problem

#: Words of the end of a stage whose searches found different optima; a report looks for them.
FAR_APART = "their best designs lie far apart"
#: Difference of the ends up to which they are one optimum: as a share of the largest of them, and of the difference
#: between the median of all designs and the best.
_SAME, _CONVERGED = 0.01, 1e-3


def apart_note(problem: Problem, values: Floats, begins: Sequence[int], objective: int = 0) -> str:
    """``; their best designs lie far apart: mass 1.2 to 3 kg`` for searches that ended at different values, else "".

    `values` (n,) are those of that objective, minimised and infinite for infeasible designs, in the order of
    evaluation; `begins` are the numbers of designs before each search.
    """
    parts = [values[a:b] for a, b in zip(begins, [*begins[1:], len(values)], strict=True)]
    ends = np.array([part.min(initial=np.inf) for part in parts])
    ends, finite = ends[np.isfinite(ends)], values[np.isfinite(values)]
    if len(ends) < 2:
        return ""
    improvement = float(np.median(finite) - finite.min())
    if np.ptp(ends) <= max(_SAME * np.abs(ends).max(), _CONVERGED * improvement):
        return ""
    o = problem.objectives[objective]
    best, worst = o.sign * float(ends.min()), o.sign * float(ends.max())
    return f"; {FAR_APART}: {o.name} {best:.4g} to {worst:.4g} {o.unit}".rstrip()
