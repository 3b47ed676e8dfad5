"""Solver `evaluate`: designs that the user gives, or the model as it is."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, ClassVar

import numpy as np

from designopt.arrays import Matrix
from designopt.plugin import InputFile, Quantity, SolverPlugin, Use, solver
from designopt.problem import Evaluate, Outcomes, Problem
from designopt.space import Space


@solver("evaluate", version=1)
class EvaluateGiven:
    """Evaluate given designs in every scenario, in the order in which they are given, or the model as it is.

    `designs` is a list of ``{name: ..., parameter: value, ...}``, `table` a CSV file with a column for each parameter;
    a study whose parameters are all fixed, or that has none, needs neither. It asks for no objectives: such a study
    simulates or analyses.
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
        """Ask for all designs at once; `rng` is not used."""
        evaluate(self.rows(problem.space))

    def rows(self, space: Space) -> Matrix:
        """The designs (n, d) as rows of the space, in whose units they are; without any the only one that it has."""
        rows = [[_entry(design, p) for p in space.free] for design in self.designs or [{}]]
        return space.impute(np.array(rows, float).reshape(len(rows), len(space.free)))


def given_names(use: Use[SolverPlugin]) -> tuple[str, ...]:
    """The names of the designs that the solver `use` is given, in their order, "" for one without; of others none."""
    if use.plugin.name != "evaluate":
        return ()
    return tuple(str(design.get("name", "")) for design in use.settings.get("designs", ()))


def _entry(design: dict[str, Any], p: Any) -> float:
    """The value of a parameter as an entry of a row; any for one that the design leaves out, as it is inactive."""
    value = design.get(p.name, p.values[0] if p.kind == "choice" else p.low)
    if p.kind == "choice":
        alike = [isinstance(known, bool) == isinstance(value, bool) and known == value for known in p.values]
        return float(alike.index(True))
    return float(value)
