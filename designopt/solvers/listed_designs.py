"""Solver `evaluate`: given designs, or the model with fixed parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Any, ClassVar

import numpy as np

from designopt.arrays import Floats, Integers
from designopt.plugin import InputFile, Quantity, SolverPlugin, Use, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.space import Space


@solver("evaluate", version=1)
class EvaluateListed:
    """Evaluate given designs in every scenario, in the given order, or the model with its fixed parameters.

    `designs` is a list of ``{name: ..., parameter: value, ...}``, `table` a CSV file with a column for each parameter.
    A study without free parameters needs neither. Objectives are optional: a study without them simulates or analyses.
    """

    needs_objectives: ClassVar[bool] = False
    needs_parameters: ClassVar[bool] = False
    takes_designs: ClassVar[bool] = True
    uses_start: ClassVar[bool] = False

    designs: Annotated[list[dict[str, Any]], Quantity("", "designs: each a name and a value for every parameter")] = (
        field(default_factory=list)
    )
    table: Annotated[
        InputFile | None, Quantity("", "CSV file with a design in each row, instead of designs; columns are parameters")
    ] = None

    def solve(self, problem: Problem, evaluate: Evaluate, rng: np.random.Generator, start: Outcomes) -> None:
        """Evaluate all designs in one batch; `rng` is not used."""
        evaluate(self.rows(problem.space))

    def rows(self, space: Space) -> Floats:
        """The designs (n, d) as rows of the space, in its units; without any, the single row of fixed parameters."""
        rows = [[_entry(design, p) for p in space.free] for design in self.designs or [{}]]
        return space.impute(np.array(rows, float).reshape(len(rows), len(space.free)))


def listed_names(use: Use[SolverPlugin]) -> tuple[str, ...]:
    """The names of the designs of the solver `use`, in their order, "" for one without a name; () for other solvers."""
    if use.plugin.name != "evaluate":
        return ()
    return tuple(str(design.get("name", "")) for design in use.settings.get("designs", ()))


def rows_by_name(stages: Sequence[tuple[Use[SolverPlugin], Integers]]) -> dict[str, int]:
    """The row of each named design: stages with the rows of their designs, in their order, negative if incomplete."""
    row_of: dict[str, int] = {}
    for use, rows in stages:
        for name, row in zip(listed_names(use), rows.tolist(), strict=False):
            if name and row >= 0:
                row_of.setdefault(name, row)
    return row_of


def _entry(design: dict[str, Any], p: Any) -> float:
    """The column entry of a parameter; arbitrary if the design omits it because it is inactive."""
    value = design.get(p.name, p.values[0] if p.kind == "choice" else p.low)
    if p.kind == "choice":
        alike = [isinstance(choice, bool) == isinstance(value, bool) and choice == value for choice in p.values]
        return float(alike.index(True))
    return float(value)
