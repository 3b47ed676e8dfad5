"""The peaks of a solved motion."""

from __future__ import annotations

import math

from designopt.collocation.solution.solution import Solution
from designopt.collocation.statement.added.peaks import path_rows
from designopt.collocation.statement.problem import TrajectoryProblem


def peak_values(problem: TrajectoryProblem, solution: Solution) -> dict[str, float]:
    """The peaks of `problem` in its `solution`, by name."""
    peak_of, phases, rows = {}, [phase.name for phase in problem.phases], solution.constraints
    for name, peak in problem.peaks.items():
        room, own_rows = math.inf, path_rows(peak)
        for block in rows.blocks if peak.state else ():
            if block.kind in ("path", "sample") and phases[block.phase] == peak.phase:
                columns = [j for j, label in enumerate(block.names) if label in own_rows]
                room = min(room, float(rows.values[block.rows[:, columns]].min(initial=math.inf)))
        if room < math.inf:
            level = float(solution.phases[peak.phase].values[peak.state][0])
            peak_of[name] = level + room if peak.extremum == "smallest" else level - room
    return peak_of
