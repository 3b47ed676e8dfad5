"""Direct collocation: trajectories and design parameters in one sparse program, solved with IPOPT."""

from designopt.collocation.solution.explain import Explanation, Violation
from designopt.collocation.solution.resimulate import Resimulation, resimulate
from designopt.collocation.solution.solution import PhaseSolution, Round, Solution, StartRecord
from designopt.collocation.solution.status import Status
from designopt.collocation.solve.design import solve_design
from designopt.collocation.solve.guess import Course, Guess, Sampled, sampled
from designopt.collocation.solve.program import Program
from designopt.collocation.solve.rollout import rollout
from designopt.collocation.solve.solve import checked, solve
from designopt.collocation.solve.warm import Difference, solve_chain, solve_near, verify
from designopt.collocation.statement.options import Options, Refinement
from designopt.collocation.statement.problem import (
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
from designopt.collocation.transcription.mesh import Mesh
from designopt.collocation.transcription.scheme import Scheme, hermite_simpson, radau, trapezoidal

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
