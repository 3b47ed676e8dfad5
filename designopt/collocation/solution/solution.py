"""The result of a solved trajectory problem: status, trajectories, values of the functions of its program."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats, Mask
from designopt.collocation.statement.mesh import Mesh
from designopt.collocation.statement.symbols import NamedEntries
from designopt.collocation.transcription.layout import Block


class Status(Enum):
    """Outcome of a solve, with its meaning and a hint. `success` for the first group only."""

    SOLVED = "Solved to the tolerance."
    ACCEPTABLE = "Solved to the looser, acceptable tolerance only."
    REFINEMENT_STALLED = (
        "Solved, but refining the mesh makes no progress in some intervals: a switching control or a singular arc is"
        " likely there; bound or smooth the control, or add a phase."
    )
    MESH_UNRESOLVED = (
        "Solved, but the error estimate is above its tolerance: refine the mesh or allow more rounds; give a guess of a"
        " control that jumps to and fro, or try other guesses (starts)."
    )
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


#: Status by the return status of IPOPT.
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


@dataclass(frozen=True, eq=False)
class PhaseValues:
    """Values of one phase at the variables of a program.

    `constants` (nc,) are its numeric data, then its fixed times; `signals` (points, ns) its sampled data. `rates`
    (points, nx) of the states, times the duration; `path` (points, np); `outputs` (points, no); `integrals` of the
    whole phase.
    """

    constants: Floats
    signals: Floats
    t0: float
    tf: float
    rates: Floats
    path: Floats
    outputs: Floats
    integrals: Floats

    @property
    def duration(self) -> float:
        """tf - t0 (s)."""
        return self.tf - self.t0


@dataclass(frozen=True, eq=False)
class ConstraintValues:
    """All constraints of a program at the last iterate, not scaled: `values` (m,) within `low` and `high` (m,).

    `blocks` describe the rows, `units` (one per block) are their units, `scale` (m,) the reference of violations.
    """

    blocks: tuple[Block, ...]
    units: tuple[str, ...]
    values: Floats
    low: Floats
    high: Floats
    scale: Floats

    @cached_property
    def relative(self) -> Floats:
        """The size of each violation (m,) relative to its scale; infinite for NaN."""
        return np.nan_to_num(np.abs(self.violations) / self.scale, nan=math.inf)

    @cached_property
    def violations(self) -> Floats:
        """Violations (m,) in their own units; negative below the lower limit."""
        below, above = np.minimum(self.values - self.low, 0.0), np.maximum(self.values - self.high, 0.0)
        return np.asarray(below + above)

    @property
    def violation(self) -> float:
        """The largest violation relative to the scales; NaN if one is NaN."""
        return float(np.abs(self.violations / self.scale).max(initial=0.0))


Kind = Literal["state", "unknown", "control", "algebraic", "output"]
#: Lower and upper share.
Limits = tuple[float, float]
#: Distance to a bound, as a share of the range, within which a variable is at the bound.
AT_BOUND = 1e-4


class Round(NamedTuple):
    """One solve of a refinement: intervals of all phases, the largest error estimate, iterations."""

    intervals: int
    error: float
    iterations: int


class Arc(NamedTuple):
    """A singular arc: from `begin` to `end` in s, the cost has no curvature in these `controls` of a `phase`."""

    phase: str
    controls: tuple[str, ...]
    begin: float
    end: float


class Attempt(NamedTuple):
    """One alternative way to a solution: its name, its status, iterations of its last solve."""

    way: str
    status: Status
    iterations: int


class StartRecord(NamedTuple):
    """One solve of a multi-start: its number (0 is the guess itself), status, objective, iterations."""

    start: int
    status: Status
    objective: float
    iterations: int


@dataclass(frozen=True, eq=False, repr=False)
class PhaseSolution:
    """The trajectories of all variables and outputs of a phase.

    `times` (slots,) in s of all points of `mesh`, nodes and interior ones; `values` (slots,) by name, in the units
    `units`; `kinds` gives the kind of each, `bounds` the limits of a variable along the phase. `rates` (slots,) are the
    time derivatives of the states. If the scheme has no collocation point at the left end, all but states are
    extrapolated there. `path` (points,) contains the path constraints at the collocation points with their
    `path_limits`, `integrals` the integrals by name. `ends` has the limits of the states at both ends.

    Every multiplier is the derivative of the objective with respect to the number it belongs to: `costates` (slots,) to
    the states, `end_multipliers` to the limits of the states at both ends, `bound_multipliers` (slots,) and
    `path_multipliers` (points,) to the limits along the phase, per second of their change.

    `error` (intervals,) is the estimate of the relative error, `segment_errors` (intervals,) the error of a
    re-simulation of each interval from its left end, `resimulation_error` that of the whole phase,
    `path_violation_between_points` the largest violation between the collocation points; they are empty or NaN if not
    checked.
    """

    name: str
    mesh: Mesh
    t0: float
    tf: float
    times: Floats
    values: Mapping[str, Floats]
    rates: Mapping[str, Floats]
    kinds: Mapping[str, Kind]
    units: Mapping[str, str]
    bounds: Mapping[str, tuple[float, float]]
    ends: Mapping[str, tuple[Limits, Limits]] = field(default_factory=dict)
    path: Mapping[str, Floats] = field(default_factory=dict)
    path_limits: Mapping[str, Limits] = field(default_factory=dict)
    integrals: Mapping[str, float] = field(default_factory=dict)
    costates: Mapping[str, Floats] = field(default_factory=dict)
    end_multipliers: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    bound_multipliers: Mapping[str, Floats] = field(default_factory=dict)
    path_multipliers: Mapping[str, Floats] = field(default_factory=dict)
    error: Floats = field(default_factory=lambda: np.empty(0))
    segment_errors: Floats = field(default_factory=lambda: np.empty(0))
    resimulation_error: float = math.nan
    path_violation_between_points: float = math.nan

    def __repr__(self) -> str:
        """Short text; the arrays would fill many screens."""
        variables = ", ".join(self.values)
        return f"PhaseSolution({self.name!r}, {self.t0:.6g} to {self.tf:.6g}, {len(self.mesh)} intervals: {variables})"

    def at(self, fractions: Floats) -> dict[str, Floats]:
        """Values (n,) by name at fractions 0..1 of the phase, by the polynomials of the scheme."""
        intervals, tau = self.mesh.interval_of(fractions)
        values_at = {name: np.empty(len(intervals)) for name in self.values}
        duration = self.tf - self.t0
        # the last iterate of a failed solve may have states whose rates are not finite
        trajectories = {
            n: r if np.isfinite(r).all() else np.gradient(self.values[n], self.times) for n, r in self.rates.items()
        }
        for scheme, scheme_intervals in self.mesh.groups:
            rows = np.flatnonzero(np.isin(intervals, scheme_intervals))
            if not len(rows):
                continue
            k = intervals[rows]
            slots = self.mesh.bases[k][:, None] + np.arange(scheme.steps + 1)
            of_values, of_rates = scheme.states_at(tau[rows])
            of_controls = scheme.controls_at(tau[rows])
            h = (duration * self.mesh.widths[k])[:, None]
            for name, values in self.values.items():
                if self.kinds[name] == "state":
                    rates = trajectories[name][slots]
                    values_at[name][rows] = (of_values * values[slots] + of_rates * h * rates).sum(axis=1)
                else:
                    values_at[name][rows] = (of_controls * values[slots]).sum(axis=1)
        return values_at

    def interpolate(self, times: ArrayLike) -> Mapping[str, Floats]:
        """Values by name at `times` (n,) in s within the phase. Raises `ValueError` for other times; a missing name
        raises a `KeyError` with the known ones."""
        t = np.atleast_1d(np.asarray(times, float))
        fractions = (t - self.t0) / (self.tf - self.t0)
        if not ((fractions >= -1e-9) & (fractions <= 1.0 + 1e-9)).all():
            raise ValueError(f"times must be between {self.t0:g} and {self.tf:g}")
        return NamedEntries(self.at(np.clip(fractions, 0.0, 1.0)), "variable")

    @cached_property
    def saturation(self) -> dict[str, tuple[float, float]]:
        """The share of time that each variable with bounds spends at its lower and at its upper bound."""
        return {
            name: _shares_at_limits(self.values[name], self.mesh.weights, limits)
            for name, limits in self.bounds.items()
            if _is_range(*limits)
        }

    @cached_property
    def path_saturation(self) -> dict[str, tuple[float, float]]:
        """The share of time that each path constraint, except equations, spends at its lower and upper limit."""
        return {
            name: _shares_at_limits(self.path[name], self.mesh.weights[self.mesh.first :], limits)
            for name, limits in self.path_limits.items()
            if _is_range(*limits)
        }

    def of_kind(self, kind: Kind) -> list[str]:
        """Names of the variables of one kind, in their order."""
        return [name for name, k in self.kinds.items() if k == kind]


@dataclass(frozen=True, eq=False)
class Iterate:
    """The solver's final numbers, scaled: variables, multipliers of rows and of bounds. For a warm start."""

    x: Floats
    constraint_multipliers: Floats
    bound_multipliers: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """The result of a solve; for a failed one the last iterate.

    `objective` and its named `terms`; `figures` of the problem; `parameters` by name with `parameter_bounds` and their
    `parameter_multipliers` (d objective / d value of the active bound, or of the parameter if it is fixed).
    `multipliers` are those of the constraints between ends by name, and of the limits of integrals and of free times by
    "phase.name": d objective / d limit. `data_sensitivity` is d objective / d numeric data and fixed times, by
    "phase.name". All are meaningful for a solved problem only.

    `violation` is the largest of all constraints, relative to their scales. `history` has arrays (iterations + 1,):
    objective, primal, dual, barrier, step. `timing` in s by task. `scales` by variable ("phase.name", and parameters);
    `scaling_range` is the smallest and the largest entry of the scaled Jacobian at the guess.

    `constraints` are all rows of the program at the end; `explain` describes violated ones.

    `optimisation_error` estimates the distance of the objective from the optimum of the discretised problem, relative
    to it; absolute where it was 0 in all iterations, 0 of a constant objective. `singular_arcs` are those where the
    states and costates at a time do not determine a control.

    `error_estimate` is the largest of all intervals; `rounds` of a refinement, `starts` of a multi-start with `seed`;
    `warm_path` lists the starts tried in turn: full, primal, cold; `attempts` the alternatives after a failure, the
    last of which gave the result, if any.
    """

    status: Status
    message: str
    objective: float
    terms: Mapping[str, float]
    figures: Mapping[str, float]
    phases: Mapping[str, PhaseSolution]
    parameters: Mapping[str, float]
    parameter_bounds: Mapping[str, tuple[float, float]]
    parameter_units: Mapping[str, str]
    parameter_multipliers: Mapping[str, float]
    violation: float
    iterations: int
    history: Mapping[str, Floats]
    timing: Mapping[str, float]
    iterate: Iterate
    constraints: ConstraintValues
    warnings: tuple[str, ...] = ()
    multipliers: Mapping[str, float] = field(default_factory=dict)
    data_sensitivity: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    scaling_range: tuple[float, float] = (math.nan, math.nan)
    versions: Mapping[str, str] = field(default_factory=dict)
    solver: str = ""
    seed: int = 0
    warm_path: tuple[str, ...] = ()
    optimisation_error: float = math.nan
    singular_arcs: tuple[Arc, ...] = ()
    error_estimate: float = math.nan
    rounds: tuple[Round, ...] = ()
    starts: tuple[StartRecord, ...] = ()
    attempts: tuple[Attempt, ...] = ()

    def __repr__(self) -> str:
        """Short text; the arrays would fill many screens."""
        parameters = "".join(f", {name}={value:.6g}" for name, value in self.parameters.items())
        phases = ", ".join(f"{name}: {len(phase.mesh)} intervals" for name, phase in self.phases.items())
        return (
            f"Solution({self.status.name}, objective={self.objective:.9g}{parameters}, iterations={self.iterations},"
            f" error_estimate={self.error_estimate:.1e}, {phases})"
        )

    @property
    def success(self) -> bool:
        """Whether the result may be used."""
        return self.status.success

    @property
    def phase(self) -> PhaseSolution:
        """The only phase. Raises `ValueError` if there are several."""
        if len(self.phases) != 1:
            raise ValueError(f"several phases: {', '.join(self.phases)}")
        return next(iter(self.phases.values()))

    @property
    def at_bound(self) -> dict[str, Literal["", "low", "high", "fixed"]]:
        """The bound at which each parameter ended, if any; a fixed parameter is at "fixed"."""
        bound_of: dict[str, Literal["", "low", "high", "fixed"]] = {}
        for name, value in self.parameters.items():
            low, high = self.parameter_bounds[name]
            near = AT_BOUND * (high - low if math.isfinite(high - low) else max(1.0, abs(value)))
            bound_of[name] = (
                "fixed" if low == high else "low" if value <= low + near else "high" if value >= high - near else ""
            )
        return bound_of

    @property
    def dJ_dq(self) -> Mapping[str, float]:
        """`data_sensitivity` under the name of the literature."""
        return self.data_sensitivity

    def interpolate(self, times: ArrayLike) -> Mapping[str, Floats]:
        """Values by name at `times` (n,) in s of the only phase. Raises `ValueError` for other times, or several
        phases."""
        return self.phase.interpolate(times)


def _is_range(low: float, high: float) -> bool:
    return low < high and (math.isfinite(low) or math.isfinite(high))


def at_limits(values: Floats, limits: Limits) -> tuple[Mask, Mask]:
    """Where `values` (n,) are at the lower and at the upper limit."""
    low, high = limits
    sizes = [abs(limit) for limit in limits if math.isfinite(limit)]
    near = AT_BOUND * (high - low if len(sizes) == 2 else max(1.0, *sizes))
    return values <= low + near, values >= high - near


def _shares_at_limits(values: Floats, weights: Floats, limits: Limits) -> tuple[float, float]:
    """Shares of time, points weighted by `weights` (n,), that `values` (n,) spend at the lower and the upper limit."""
    at_low, at_high = at_limits(values, limits)
    return float(weights @ at_low), float(weights @ at_high)


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """The versions of designopt, CasADi and NumPy; IPOPT and MUMPS come with CasADi."""
    from importlib.metadata import PackageNotFoundError, version

    version_of = {}
    for name in ("designopt", "casadi", "numpy"):
        try:
            version_of[name] = version(name)
        except PackageNotFoundError:
            version_of[name] = "unknown"
    return version_of
