"""Programs of solvers, solved where designs are evaluated."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.problem import Problem, Programs, ProgramSolution
from designopt.study.study import StudyDefinition
from designopt.workers.evaluation.evaluate import DIVERGED, ERROR, OK, location, matrix, name_of, text_of, traceback_of
from designopt.workers.executor import Break, Chunk, ChunkResult


class ProgramWorker:
    """Solves chunks of programs on `problem`; `solvers` are those of the stages. Each prepares its data once."""

    def __init__(self, problem: Problem, solvers: Sequence[Callable[[], Any]]) -> None:
        self._problem = problem
        self._solvers = solvers
        self._built: dict[int, Programs] = {}

    @classmethod
    def for_study(cls, study: StudyDefinition) -> ProgramWorker:
        """The worker for the stages of `study`."""
        return cls(Problem.from_study(study), [stage.solver.build for stage in study.stages])

    def __call__(self, chunk: Chunk, begin: Callable[[int], None]) -> ChunkResult:
        """Solve a chain of programs in its order. A failed one is skipped: the next starts from the last solved one.
        All results are returned, also of failed ones."""
        n = len(chunk)
        status, wall, cpu = np.empty(n, np.uint8), np.empty(n), np.empty(n)
        rows: list[Mapping[str, float]] = []
        messages: dict[int, tuple[str, str, str]] = {}
        arrays: dict[int, Mapping[str, NDArray[Any]]] = {}
        state = None
        for i, (x, stage, seed) in enumerate(zip(chunk.X, chunk.scenarios.tolist(), chunk.seeds, strict=True)):
            begin(i)
            wall[i], cpu[i] = time.perf_counter(), time.process_time()
            try:
                program = self._programs(stage).solve(x, seed, state)
                status[i] = OK if program.ok else DIVERGED
                messages[i] = (program.reason, text_of(program.message), "")
            except Break:
                raise
            except BaseException as error:  # as in evaluations: the code of a model must not end the run
                status[i], program = ERROR, ProgramSolution(False, {})
                messages[i] = (name_of(error), traceback_of(error), location(error))
            wall[i], cpu[i] = time.perf_counter() - wall[i], time.process_time() - cpu[i]
            rows.append(program.figures)
            if program.arrays:
                arrays[i] = program.arrays
            state = program.state if program.ok else state
        names = tuple(dict.fromkeys(name for row in rows for name in row))
        return ChunkResult(status, names, matrix(rows, names), wall, cpu, messages, arrays)

    def _programs(self, stage: int) -> Programs:
        if stage not in self._built:
            self._built[stage] = self._solvers[stage]().program(self._problem)
        return self._built[stage]


def has_programs(study: StudyDefinition) -> bool:
    """Whether a solver of the study solves programs."""
    return any(stage.solver.plugin.has("program") for stage in study.stages)
