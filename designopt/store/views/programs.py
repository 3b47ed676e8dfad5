"""The programs of a store: what a solver such as `collocation` had solved, with its solutions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designopt.problem import Problem
from designopt.store.disk.arrays import read_arrays
from designopt.store.journal import recorded
from designopt.store.journal.reader import JournalReader
from designopt.study.study import StudyDefinition

if TYPE_CHECKING:
    from designopt.collocation import Estimate, Solution, Sparsity

#: The name under which the value of a released parameter at the optimum is recorded, in the study's unit.
OPTIMUM = "optimum({})"


@dataclass(frozen=True)
class ProgramRecord:
    """One program: the `stage` whose solver asked for it, and the design at which it began (`start`, by name in the
    study's units; what a sweep holds has its value there).

    `status` is how it ended: the solver's own word (`solved`, `locally_infeasible`), or the failure class of one that
    ended otherwise (`timeout`, `crashed`); `message` says more. `figures` are numbers by name, of a failed program
    those of its last iterate; among them ``optimum(p)`` of each released parameter p.
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
        """The kept arrays; empty when there are none. Raises `StoreError` when they are missing or damaged."""
        return read_arrays(self.store, self.reference) if self.reference else {}

    @cached_property
    def solution(self) -> Solution | None:
        """The trajectories and all that is known of the solve, of a failed one its last iterate; None where there is
        nothing. Read from the store when it is asked for."""
        arrays = self.arrays
        if not arrays:
            return None
        from designopt.collocation.solution.saving import from_arrays

        return from_arrays(arrays)

    @cached_property
    def estimate(self) -> Estimate | None:
        """What measurements say of the solution, where it was fitted to some: intervals, residuals, what is not
        determined."""
        return _estimate(self)

    @cached_property
    def sparsity(self) -> Sparsity | None:
        """Where the derivatives of the program are not zero; of the first program of a chain only."""
        return _sparsity(self)


def _sparsity(record: ProgramRecord) -> Sparsity | None:
    from designopt.collocation.solution.sparsity import sparsity_from

    return sparsity_from(record.arrays)


def _estimate(record: ProgramRecord) -> Estimate | None:
    from designopt.collocation.estimation.saving import estimate_from

    return estimate_from(record.arrays, record.solution) if record.solution is not None else None


def read_programs(
    journal: JournalReader, problem: Problem, study: StudyDefinition, path: Path
) -> tuple[ProgramRecord, ...]:
    """The programs in the journal of `problem`, in the order in which they were solved."""
    rows = list(journal.evaluations("number, design, status, reason, message, outputs, wall, arrays", "program"))
    if not rows:
        return ()
    X, _ = recorded.designs(journal, problem)
    found = []
    for stage, design, status, reason, message, outputs, wall, arrays in rows:
        names, values = recorded.outputs([outputs], (), problem)
        figures = {name: float(v) for name, v in zip(names, values[0], strict=True) if np.isfinite(v)}
        own = status in ("ok", "diverged") and reason
        found.append(
            ProgramRecord(
                stage=study.stages[stage].name if stage < len(study.stages) else "",
                start=problem.space.values(X[design].tolist()),
                ok=status == "ok",
                status=own or status,
                message=message or "",
                figures=figures,
                wall=wall or 0.0,
                store=path,
                reference=arrays,
            )
        )
    return tuple(found)
