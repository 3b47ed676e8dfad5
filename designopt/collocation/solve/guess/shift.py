"""Receding horizon: the solution of one step, shifted by the step, is the start of the next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from designopt.arrays import Integers
from designopt.collocation.solution.solution import Iterate, Solution
from designopt.collocation.solve.program import Program


def shifted(program: Program, previous: Solution, intervals: int = 1) -> Solution:
    """A `previous` solution of `program` with its iterate shifted by `intervals` mesh intervals; the last one is
    repeated.

    For `Program.solve(problem, warm="full", previous=...)`, or warm primal; `previous.phases` do not change. Raises
    `ValueError` for meshes that are not uniform and for a shift beyond them.
    """
    transcription, iterate = program.transcription, previous.iterate
    x, bound_multipliers = iterate.x.copy(), iterate.bound_multipliers.copy()
    row_multipliers = iterate.constraint_multipliers.copy()
    for i, layout in enumerate(transcription.layout.phases):
        mesh = layout.mesh
        if len(mesh.groups) != 1 or not np.allclose(mesh.widths, mesh.widths[0], rtol=1e-9, atol=0.0):
            raise ValueError("a receding horizon needs equal intervals and one scheme: leave out refinement")
        if not 0 <= intervals < len(mesh):
            raise ValueError(f"a shift by {intervals} intervals is not possible: the mesh has {len(mesh)}")
        slots = intervals * mesh.schemes[0].steps
        for table in (layout.states, layout.point):
            later = table[_later(len(table), slots)]
            x[table], bound_multipliers[table] = iterate.x[later], iterate.bound_multipliers[later]
        for block in transcription.blocks:
            if block.phase == i and block.kind != "sample" and len(block.slots) > 1:
                by = round(slots * len(block.slots) / (mesh.slots - 1))  # some have one row for each interval
                row_multipliers[block.rows] = iterate.constraint_multipliers[block.rows[_later(len(block.slots), by)]]
    return replace(previous, iterate=Iterate(x, row_multipliers, bound_multipliers))


def _later(count: int, by: int) -> Integers:
    """Later numbers (count,), the last repeated."""
    return np.minimum(np.arange(count) + by, count - 1)
