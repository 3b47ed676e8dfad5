"""The problem of a study, and the interface between solvers and runner.

Designs are rows of a float matrix ``X`` (n, d): one column per free parameter, in the study's unit (an integer as its
value, a choice as the index of its value). All functions are vectorised over rows.
"""

from designopt.problem.evaluate import (
    AFTER_END,
    EndIgnored,
    Evaluate,
    Programs,
    ProgramSolution,
    SolvedPrograms,
    StageEnded,
)
from designopt.problem.gradients import derivative_name
from designopt.problem.keys import evaluation_seed
from designopt.problem.outcomes import ENDED_WITH_CAUSE, STATUSES, Outcomes
from designopt.problem.problem import Problem, figure_meaning, figure_unit
from designopt.problem.statement import EQUAL, Limit, unequal

__all__ = [
    "AFTER_END",
    "ENDED_WITH_CAUSE",
    "EQUAL",
    "STATUSES",
    "EndIgnored",
    "Evaluate",
    "Limit",
    "Outcomes",
    "Problem",
    "ProgramSolution",
    "Programs",
    "SolvedPrograms",
    "StageEnded",
    "derivative_name",
    "evaluation_seed",
    "figure_meaning",
    "figure_unit",
    "unequal",
]
