"""Dynamic sharing as a trajectory problem: the trials are phases that share the parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation import Constraint, Integral, Mesh, Phase, Signal, TrajectoryProblem
from designopt.collocation.statement.mesh import SCHEMES, SchemeName
from designopt.collocation.statement.stated_values import Box
from designopt.lazy import casadi as ca
from designopt_muscle.dynamic_sharing.equations import DynamicTrial

#: Degree of radau.
_DEGREE = 3
#: First values of activations, excitations and tendon forces.
FIRST = 0.1


def mesh(scheme: SchemeName, intervals: int) -> Mesh:
    """A mesh of this number of equal `intervals`; radau has the degree 3."""
    return Mesh.uniform(SCHEMES[scheme](_DEGREE, False), intervals)


def mesh_of(scheme: SchemeName, time: Floats) -> Mesh:
    """The mesh whose points are at `time` (n,) s. Raises `ValueError` where they are no points of equal intervals."""
    n, steps = len(time), mesh(scheme, 1).schemes[0].steps
    intervals = (n - 1) // steps
    if intervals >= 1 and intervals * steps == n - 1:
        candidate = mesh(scheme, intervals)
        span = float(time[-1] - time[0])
        if np.abs(time - time[0] - candidate.fractions * span).max() <= 1e-6 * span / intervals:
            return candidate
    word = {1: "at equal intervals of time", 2: "an odd number, at least 3, at equal intervals"}
    condition = word.get(steps, f"the points of intervals of {steps} steps each")
    raise ValueError(f"{n} frames: collocation by {scheme} needs {condition}")


def phase(trial: DynamicTrial, name: str = "motion") -> Phase:
    """The equations of a trial with their bounds. Between the frames its data are cubic splines."""
    system, time = trial.system, trial.balance.time
    rows = {f"balance_{row}": Constraint(_symbol(f"balance_{row}"), 0.0, 0.0) for row in trial.rows}
    of_fibres = [trial.names[j] for j in trial.compliant]
    rows |= {f"equilibrium_{n}": Constraint(_symbol(f"equilibrium_{n}"), 0.0, 0.0) for n in of_fibres}
    if trial.commands:
        for j, n in enumerate(trial.names):
            rows[f"excitation_{n}"] = Constraint(
                _symbol(f"excitation_{n}"), float(trial.muscles.min_activation[j]), 1.0
            )
    if trial.band is not None:
        for n in (trial.names[j] for j in trial.signal_muscles):
            rows[f"lower_band_{n}"] = Constraint(_above(f"excitation_{n}", f"least_{n}"), 0.0)
            rows[f"upper_band_{n}"] = Constraint(_above(f"most_{n}", f"excitation_{n}"), 0.0)
    first = max(FIRST, float(trial.muscles.min_activation.max()))
    guess = {v.name: (first, first) for v in system.states}
    guess |= {f"excitation_{n}": (first, first) for n in trial.names if not trial.commands}
    guess |= {f"command_{s + 1}": (first, first) for s in range(trial.commands)}
    return Phase(
        system,
        t0=float(time[0]),
        tf=float(time[-1]),
        name=name,
        path=rows,
        integrals={key: Integral(_symbol(f"{key}_rate")) for key in trial.weights},
        data={key: Signal(time, column) for key, column in trial.data.items()},
        guess=guess,
    )


def problem(trials: Sequence[DynamicTrial], parameters: Mapping[str, Box] | None = None) -> TrajectoryProblem:
    """The cost of all `trials` over what balances them; `parameters` have numbers or ranges, those that are left out
    are neutral: no device, factors of 1. Raises `ValueError` for an unknown parameter."""
    phases = [phase(trial, "motion" if len(trials) == 1 else f"trial_{i + 1}") for i, trial in enumerate(trials)]
    parameter_of = {v.name: v for p in phases for v in p.system.parameters}
    if unknown := [name for name in parameters or {} if name not in parameter_of]:
        raise ValueError(f"there is no parameter '{unknown[0]}'; known: {', '.join(parameter_of)}")
    boxes: dict[str, Box] = {name: neutral(name) for name in parameter_of}
    boxes |= parameters or {}
    constraints = {}
    names = [p.name for p in phases]
    for trial, name in zip(trials, names, strict=True):
        if trial.terms.start_from_rest:
            constraints[f"rest_at_the_beginning_of_{name}"] = Constraint(_initial_difference(trial, name), 0.0, 0.0)

    def integral(key: str) -> Callable[[Any], Any]:
        return lambda e: sum(e.phase[name].integral[key] for name in names)

    def cost(e: Any) -> Any:
        return sum(
            weight * e.phase[name].integral[key]
            for name, trial in zip(names, trials, strict=True)
            for key, weight in trial.weights.items()
            if weight
        )

    figures = {"objective": cost, "effort": integral("effort")}
    if any(trial.terms.tracking is not None for trial in trials):
        figures["tracking_error"] = integral("tracking")
    if any(trial.terms.fibres is not None for trial in trials):
        figures["fibre_error"] = integral("fibres")
    first = {name: 1.0 for name, box in boxes.items() if isinstance(box, tuple) and box[0] < 1.0 < box[1]}
    return TrajectoryProblem(phases, cost, constraints=constraints, parameters=boxes, guess=first, figures=figures)


def first_values(trajectory_problem: TrajectoryProblem) -> dict[str, float]:
    """The parameters with which the search begins: their guesses, else the middles of their ranges."""
    return {
        name: trajectory_problem.guess.get(name, 0.5 * (low + high))
        for name, (low, high) in trajectory_problem.parameter_ranges.items()
    }


def neutral(name: str) -> float:
    """The value of a parameter that changes nothing."""
    return 0.0 if name in ("stiffness", "rest", "assistance") else 1.0


def _symbol(name: str) -> Callable[[Any], Any]:
    return lambda v: v[name]


def _above(lower_name: str, upper_name: str) -> Callable[[Any], Any]:
    return lambda v: v[lower_name] - v[upper_name]


def _initial_difference(trial: DynamicTrial, name: str) -> Callable[[Any], Any]:
    """Excitations less activations at the beginning."""

    def value(e: Any) -> Any:
        at = e.phase[name].initial
        activations = ca.vertcat(*(at[f"activation_{n}"] for n in trial.names))
        if trial.terms.synergies is not None:
            commands = ca.vertcat(*(at[f"command_{s + 1}"] for s in range(trial.commands)))
            return ca.DM(trial.terms.synergies) @ commands - activations
        return ca.vertcat(*(at[f"excitation_{n}"] for n in trial.names)) - activations

    return value
