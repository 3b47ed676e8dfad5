"""Status of a solve; the value is the sentence for the user."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """Outcome of a solve, with its meaning and a hint. `success` for the first group only."""

    SOLVED = "Solved to the tolerance."
    ACCEPTABLE = "Solved to the looser, acceptable tolerance only."
    REFINEMENT_STALLED = (
        "Solved, but refining the mesh makes no progress in some intervals: a switching control or a singular arc is"
        " likely there; bound or smooth the control, or add a phase."
    )
    MESH_UNRESOLVED = "Solved, but the error estimate is above its tolerance: refine the mesh or allow more rounds."
    LOCALLY_INFEASIBLE = (
        "No feasible trajectory near the guess: the search ended where the constraints cannot be violated less."
    )
    ITERATION_LIMIT = "The limit of iterations was reached: raise max_iterations."
    TIME_LIMIT = "The time limit was reached: raise time_limit."
    RESTORATION_FAILED = "No step back to feasible points was found: look at the worst constraints, scales and bounds."
    STALLED = "The steps became too small to go on: look at the worst constraints, scales and kinks of the model."
    DIVERGING = "The objective or a variable grows without limit: bound the variables that grow."
    INVALID_NUMBER = "A function of the model is not finite (NaN or infinite)."
    OVER_CONSTRAINED = "There are more equations than variables: free a boundary condition or drop a constraint."
    CANCELLED = "Stopped on request; the last iterate is kept."
    FAILED = "The solver failed with an internal error."

    @property
    def success(self) -> bool:
        """Whether the result may be used."""
        return self in (Status.SOLVED, Status.ACCEPTABLE, Status.REFINEMENT_STALLED, Status.MESH_UNRESOLVED)


#: By IPOPT's return status.
OF_SOLVER = {
    "Solve_Succeeded": Status.SOLVED,
    "Solved_To_Acceptable_Level": Status.ACCEPTABLE,
    "Feasible_Point_Found": Status.SOLVED,
    "Infeasible_Problem_Detected": Status.LOCALLY_INFEASIBLE,
    "Search_Direction_Becomes_Too_Small": Status.STALLED,
    "Diverging_Iterates": Status.DIVERGING,
    "User_Requested_Stop": Status.CANCELLED,
    "Maximum_Iterations_Exceeded": Status.ITERATION_LIMIT,
    "Maximum_CpuTime_Exceeded": Status.TIME_LIMIT,
    "Maximum_WallTime_Exceeded": Status.TIME_LIMIT,
    "Restoration_Failed": Status.RESTORATION_FAILED,
    "Error_In_Step_Computation": Status.STALLED,
    "Invalid_Number_Detected": Status.INVALID_NUMBER,
    "Not_Enough_Degrees_Of_Freedom": Status.OVER_CONSTRAINED,
}
