"""Direct collocation: trajectories and design parameters in one sparse program, solved by an interior point method."""

from designopt.collocation.design import solve_design
from designopt.collocation.estimation.fitting import with_measurements
from designopt.collocation.estimation.inference import FitError, estimate, inference
from designopt.collocation.estimation.measurements import Measurements, NoColumn, read_measurements
from designopt.collocation.estimation.result import ConfidenceInterval, Estimate, Fit
from designopt.collocation.postoptimal.sensitivities import PhaseSensitivities, Sensitivities, sensitivities
from designopt.collocation.postoptimal.spread import Spread, spread
from designopt.collocation.solution.explain import Explanation, Violation, explain
from designopt.collocation.solution.reading import peak_values
from designopt.collocation.solution.saving import load_solution, save_solution
from designopt.collocation.solution.solution import PhaseSolution, Round, Solution, StartRecord, Status
from designopt.collocation.solution.sparsity import Pattern, Sparsity
from designopt.collocation.solution.verification.resimulate import Resimulation, resimulate
from designopt.collocation.solve.guess.rollout import rollout
from designopt.collocation.solve.guess.warm import Difference, shifted, solve_chain, solve_near, verify
from designopt.collocation.solve.program import Program
from designopt.collocation.solve.solve import checked, solve
from designopt.collocation.statement.added.peaks import with_peaks
from designopt.collocation.statement.added.rates import Rate, with_rates
from designopt.collocation.statement.guess import Guess, PhaseGuess, SampledTrajectory, sampled
from designopt.collocation.statement.mesh import Mesh, Scheme, hermite_simpson, radau, trapezoidal
from designopt.collocation.statement.options import Options, Refinement
from designopt.collocation.statement.problem import Phase, TrajectoryProblem, linked, periodic
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.statement.symbols import Ends, Symbols
from designopt.collocation.statement.terms import Constraint, Integral, Peak, Samples
from designopt.dynamics.signals import Signal, SignalTable

__all__ = [
    "ConfidenceInterval",
    "Constraint",
    "Difference",
    "Ends",
    "Estimate",
    "Explanation",
    "Fit",
    "FitError",
    "Guess",
    "Integral",
    "Measurements",
    "Mesh",
    "NoColumn",
    "Options",
    "Pattern",
    "Peak",
    "Phase",
    "PhaseGuess",
    "PhaseSensitivities",
    "PhaseSolution",
    "ProblemError",
    "Program",
    "Rate",
    "Refinement",
    "Resimulation",
    "Round",
    "SampledTrajectory",
    "Samples",
    "Scheme",
    "Sensitivities",
    "Signal",
    "SignalTable",
    "Solution",
    "Sparsity",
    "Spread",
    "StartRecord",
    "Status",
    "Symbols",
    "TrajectoryProblem",
    "Violation",
    "checked",
    "estimate",
    "explain",
    "hermite_simpson",
    "inference",
    "linked",
    "load_solution",
    "peak_values",
    "periodic",
    "radau",
    "read_measurements",
    "resimulate",
    "rollout",
    "sampled",
    "save_solution",
    "sensitivities",
    "shifted",
    "solve",
    "solve_chain",
    "solve_design",
    "solve_near",
    "spread",
    "trapezoidal",
    "verify",
    "with_measurements",
    "with_peaks",
    "with_rates",
]
