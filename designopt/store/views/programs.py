"""The programs of a store, solved by solvers such as `collocation`, with their solutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designopt.problem import Outcomes, Problem
from designopt.store.disk.arrays import read_arrays
from designopt.store.journal import recorded_designs
from designopt.store.journal.reader import JournalReader
from designopt.study.stated_units import stated_value
from designopt.study.study import DesignVariable, StudyDefinition

if TYPE_CHECKING:
    from designopt.collocation import Estimate, Solution, Sparsity

#: Name of the recorded value of a released parameter at the optimum, in the study's unit.
OPTIMUM = "optimum({})"
#: Relative difference of objectives beyond which a motion is better than another.
BETTER = 1e-4


@dataclass(frozen=True)
class ProgramRecord:
    """One program: the `stage` of its solver, and its starting design (`start`, by name in the study's units; it
    contains the fixed values of a sweep).

    `status` is that of the solver (`solved`, `locally_infeasible`), or the failure class (`timeout`, `crashed`), with a
    `message`. `figures` are numbers by name, for a failed program those of its last iterate, including ``optimum(p)``
    for each released parameter p.
    """

    stage: str
    start: Mapping[str, Any]
    ok: bool
    status: str
    message: str
    figures: Mapping[str, float]
    wall: float
    store: Path
    reference: str | None

    @property
    def optimum(self) -> dict[str, Any]:
        """The design at the optimum: `start` with the optimal values of the released parameters."""
        return {name: self.figures.get(OPTIMUM.format(name), value) for name, value in self.start.items()}

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The stored arrays; empty without any. Raises `StoreError` if they are missing or damaged."""
        return read_arrays(self.store, self.reference) if self.reference else {}

    @cached_property
    def solution(self) -> Solution | None:
        """The solution, for a failed program its last iterate; None without one. Read from the store on demand."""
        arrays = self.arrays
        if not arrays:
            return None
        from designopt.collocation.solution.saving import from_arrays

        return from_arrays(arrays)

    @cached_property
    def estimate(self) -> Estimate | None:
        """Estimates from measurements, if it was a fit: intervals, residuals, undetermined combinations."""
        return _estimate(self)

    @cached_property
    def sparsity(self) -> Sparsity | None:
        """Sparsity of the derivatives of the program; only for the first program of a chain."""
        return _sparsity(self)


def stated_programs(programs: Sequence[ProgramRecord], space: Sequence[DesignVariable]) -> tuple[ProgramRecord, ...]:
    """`programs` with the starting designs in the units in which the study writes the ranges of `space`."""
    parameter_of = {p.name: p for p in space}
    starts = [{name: stated_value(parameter_of[name], v) for name, v in record.start.items()} for record in programs]
    return tuple(replace(record, start=start) for record, start in zip(programs, starts, strict=True))


def best_program(programs: Sequence[ProgramRecord], sign: float) -> ProgramRecord | None:
    """The program with the best objective, the first among ties; None without a solved one. `sign` is -1 for an
    objective that is maximised."""
    solutions = [p for p in programs if p.ok and "program(objective)" in p.figures]
    return min(solutions, key=lambda p: sign * p.figures["program(objective)"], default=None)


def better_motions(
    programs: Sequence[ProgramRecord], problem: Problem, outcomes: Outcomes, rows: Sequence[int]
) -> dict[int, float]:
    """The designs, of those in `rows`, for which a program found a better motion than the model's own evaluation has:
    the objective of that motion by row."""
    row_of = {_design_key(problem.space.values(outcomes.X[row].tolist())): row for row in rows}
    sign, better = problem.objectives[0].sign, dict[int, float]()
    for program in programs:
        row, value = row_of.get(_design_key(program.optimum)), program.figures.get("program(objective)")
        if not program.ok or row is None or value is None:
            continue
        objective = float(outcomes.objectives[row, 0])
        size = max(abs(value), abs(objective))
        least = sign * better[row] if row in better else np.inf
        if np.isfinite(objective) and sign * value < min(objective - BETTER * size, least):
            better[row] = value
    return better


def _design_key(design: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(design.items()))


def _sparsity(record: ProgramRecord) -> Sparsity | None:
    from designopt.collocation.solution.sparsity import sparsity_from

    return sparsity_from(record.arrays)


def _estimate(record: ProgramRecord) -> Estimate | None:
    from designopt.collocation.estimation.saving import estimate_from

    return estimate_from(record.arrays, record.solution) if record.solution is not None else None


def read_programs(
    journal: JournalReader, problem: Problem, study: StudyDefinition, path: Path
) -> tuple[ProgramRecord, ...]:
    """The programs in the journal of `problem`, in the order of their solution."""
    rows = list(journal.evaluations("number, design, status, reason, message, outputs, wall, arrays", "program"))
    if not rows:
        return ()
    X, _ = journal.designs()
    programs = []
    for stage, design, status, reason, message, outputs, wall, arrays in rows:
        names, values = recorded_designs.outputs([outputs], ())
        figures = {name: float(v) for name, v in zip(names, values[0], strict=True) if np.isfinite(v)}
        own_status = status in ("ok", "diverged") and reason
        programs.append(
            ProgramRecord(
                stage=study.stages[stage].name if stage < len(study.stages) else "",
                start=problem.space.values(X[design].tolist()),
                ok=status == "ok",
                status=own_status or status,
                message=message or "",
                figures=figures,
                wall=wall or 0.0,
                store=path,
                reference=arrays,
            )
        )
    return tuple(programs)
