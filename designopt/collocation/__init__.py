"""Direct collocation: trajectories and design parameters in one sparse program, solved with IPOPT."""

from designopt.collocation.design import solve_design
from designopt.collocation.explain import Explanation, Violation
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
from designopt.collocation.scheme import Scheme, hermite_simpson, radau, trapezoidal
from designopt.collocation.solution import PhaseSolution, Round, Solution, StartRecord
from designopt.collocation.solve import checked, solve
from designopt.collocation.status import Status
from designopt.collocation.warm import Difference, solve_chain, solve_near, verify

__all__ = [
    "Constraint",
    "Course",
    "Difference",
    "Ends",
    "Explanation",
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
    "Round",
    "Sampled",
    "Scheme",
    "Signal",
    "Solution",
    "StartRecord",
    "Status",
    "Symbols",
    "TrajectoryProblem",
    "Violation",
    "checked",
    "hermite_simpson",
    "periodic",
    "radau",
    "resimulate",
    "rollout",
    "sampled",
    "solve",
    "solve_chain",
    "solve_design",
    "solve_near",
    "trapezoidal",
    "verify",
]
