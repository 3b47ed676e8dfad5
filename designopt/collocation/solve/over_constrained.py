"""A check for more equations than variables before a solve, with a report of possible causes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.statement.problem import TrajectoryProblem, is_added
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.transcription import Transcription

#: Tolerance of the limits of a row without free variables.
ROUNDING = 1e-10


def over_constrained(problem: TrajectoryProblem, bounds: ProgramBounds) -> str:
    """A report if there are more equations than free variables; else ""."""
    free, rows = bounds.free_count, bounds.equality_count
    if rows <= free:
        return ""
    suspects = []
    for phase in problem.phases:
        for side, ranges in (("initial", phase.initial_ranges), ("final", phase.final_ranges)):
            fixed = [name for name, (low, high) in ranges.items() if low == high]
            if fixed:
                suspects.append(f"{side} values of {', '.join(fixed)} of {phase.name}")
        equalities = [name for name, c in phase.path.items() if c.low == c.high]
        if equalities:
            suspects.append(f"path constraints {', '.join(equalities)} of {phase.name}")
    equalities = [name for name, c in problem.constraints.items() if c.low == c.high and not is_added(c)]
    if equalities:
        suspects.append(f"constraints {', '.join(equalities)}")
    text = f"{rows} equations for {free} free variables, {rows - free} too many."
    return f"{text} Suspect: {'; '.join(suspects)}." if suspects else text


def without_idle_rows(transcription: Transcription, bounds: ProgramBounds, rows: Floats) -> ProgramBounds:
    """`bounds` without limits of rows that hold for all values of the free variables, such as those of fixed controls.

    `rows` (m,) are the scaled constraints at variables within their limits.
    """
    entry_rows, columns = np.array(transcription.jacobian.sparsity_out(1).get_triplet(), np.int64)
    free = bounds.low < bounds.high
    has_free_entry = np.bincount(entry_rows[free[columns]], minlength=len(rows)) > 0
    holds = (
        np.maximum(bounds.row_low / transcription.row_scale - rows, rows - bounds.row_high / transcription.row_scale)
        <= ROUNDING
    )
    idle = ~has_free_entry & holds
    return replace(
        bounds,
        row_low=np.where(idle, -np.inf, bounds.row_low),
        row_high=np.where(idle, np.inf, bounds.row_high),
    )
