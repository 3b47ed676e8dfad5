"""More equations than variables: counted before a program is solved, and reported with what may be too much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from designopt.arrays import Vector
from designopt.collocation.statement.given import ends
from designopt.collocation.statement.problem import TrajectoryProblem, is_added
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.transcription import Transcription

#: What a row without free variables may miss its limits by.
ROUNDED = 1e-10


def free_variables(given: ProgramBounds) -> int:
    """How many variables are not fixed."""
    return int((given.low < given.high).sum())


def equations(given: ProgramBounds) -> int:
    """How many rows have one value alone."""
    return int((given.row_low == given.row_high).sum())


def over_constrained(problem: TrajectoryProblem, given: ProgramBounds) -> str:
    """What there is too much of, if there are more equations than free variables; else empty."""
    free, rows = free_variables(given), equations(given)
    if rows <= free:
        return ""
    suspects = []
    for phase in problem.phases:
        for side, stated in (("initial", phase.initial), ("final", phase.final)):
            fixed = [name for name, box in stated.items() if len(set(ends(box))) == 1]
            if fixed:
                suspects.append(f"{side} values of {', '.join(fixed)} of {phase.name}")
        equal = [name for name, c in phase.path.items() if c.low == c.high]
        if equal:
            suspects.append(f"path constraints {', '.join(equal)} of {phase.name}")
    equal = [name for name, c in problem.constraints.items() if c.low == c.high and not is_added(c)]
    if equal:
        suspects.append(f"constraints {', '.join(equal)}")
    text = f"{rows} equations for {free} free variables, {rows - free} too many."
    return f"{text} Suspect: {'; '.join(suspects)}." if suspects else text


def without_idle_rows(made: Transcription, given: ProgramBounds, x: Vector, rows: Vector) -> ProgramBounds:
    """`given` without limits of rows that hold whatever the free variables are, as those of controls that are fixed.

    `rows` (m,) are the scaled constraints at the scaled variables `x`.
    """
    sparsity = made.jacobian.sparsity_out(1)
    of_entries, columns = np.array(sparsity.row(), np.int64), np.array(sparsity.get_col(), np.int64)
    free = given.low < given.high
    touched = np.bincount(of_entries[free[columns]], minlength=len(rows)) > 0
    kept = np.maximum(given.row_low / made.row_scale - rows, rows - given.row_high / made.row_scale) <= ROUNDED
    idle = ~touched & kept
    return replace(
        given,
        row_low=np.where(idle, -np.inf, given.row_low),
        row_high=np.where(idle, np.inf, given.row_high),
    )
