"""Direct collocation: trajectories and design parameters in one sparse program, solved with IPOPT."""

from designopt.collocation.design import solve_design
from designopt.collocation.guess import Course, Guess, Sampled, sampled
from designopt.collocation.mesh import Mesh
from designopt.collocation.options import Options, Refinement
from designopt.collocation.problem import (
    Constraint,
    Ends,
    Integral,
    Phase,
    ProblemError,
    Signal,
    Symbols,
    TrajectoryProblem,
    periodic,
)
from designopt.collocation.program import Program
from designopt.collocation.resimulate import Resimulation, resimulate
from designopt.collocation.rollout import rollout
from designopt.collocation.solution import PhaseSolution, Solution
from designopt.collocation.solve import checked, solve
from designopt.collocation.status import Status

__all__ = [
    "Constraint",
    "Course",
    "Ends",
    "Guess",
    "Integral",
    "Mesh",
    "Options",
    "Phase",
    "PhaseSolution",
    "ProblemError",
    "Program",
    "Refinement",
    "Resimulation",
    "Sampled",
    "Signal",
    "Solution",
    "Status",
    "Symbols",
    "TrajectoryProblem",
    "checked",
    "periodic",
    "resimulate",
    "rollout",
    "sampled",
    "solve",
    "solve_design",
]
