"""Share the moments of a motion with activation and tendon dynamics, over all its frames at once.

The search begins at static sharing with rigid tendons, which is also the fallback if it fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from designopt_mechanics.sharing.muscles import Muscles
from designopt_mechanics.sharing.statement.criteria import Power, Reserves
from designopt_mechanics.sharing.statement.formulation import Terms
from designopt_mechanics.sharing.static.share import share
from designopt_mechanics.sharing.static.sharing import Sharing

from designopt.collocation import Guess, Options, Program, SampledTrajectory, sampled
from designopt.collocation.statement.mesh import SchemeName
from designopt.collocation.statement.stated_values import Box
from designopt_muscle.dynamic_sharing.equations import FASTEST_RATE, DynamicTrial
from designopt_muscle.dynamic_sharing.problem import first_values, mesh_of, problem
from designopt_muscle.dynamic_sharing.sharing import DynamicSharing, read


def share_dynamic(
    trial: DynamicTrial,
    parameters: Mapping[str, Box] | None = None,
    *,
    scheme: SchemeName = "hermite_simpson",
    tolerance: float = 1e-8,
    iterations: int = 500,
) -> DynamicSharing:
    """Excitations, activations and tendon forces of minimum cost that balance the moments of `trial`.

    The frames of the trial are the points of a mesh of equal intervals: with `hermite_simpson` mesh points alternate
    with midpoints. `parameters` have values, or ranges within which they are optimised together with the motion; other
    parameters of the trial's device and factors are neutral. The search begins at the static solution, which is also
    the result if there is no dynamic one.

    The first activations are free: if the terms of the trial charge excitations alone, they depend on the mesh, and
    cost ever less as it refines.

    Raises `ValueError` for frames that are no such mesh and for unknown parameters.
    """
    return share_trials([trial], parameters, scheme=scheme, tolerance=tolerance, iterations=iterations)[0]


def share_trials(
    trials: Sequence[DynamicTrial],
    parameters: Mapping[str, Box] | None = None,
    *,
    scheme: SchemeName = "hermite_simpson",
    tolerance: float = 1e-8,
    iterations: int = 500,
) -> tuple[DynamicSharing, ...]:
    """`share_dynamic` for several trials in one program: they have the parameters in common, and their costs add up.

    With ranges for factors and signals to track this is a calibration. The objective of each result is its own part.
    """
    meshes = [mesh_of(scheme, trial.balance.time) for trial in trials]
    trajectory_problem = problem(trials, parameters)
    values = first_values(trajectory_problem)
    statics = [static_sharing(trial, values) for trial in trials]
    names = [phase.name for phase in trajectory_problem.phases]
    each = list(zip(names, trials, statics, strict=True))
    first = Guess({name: guess_of(trial, static, values) for name, trial, static in each})
    options = Options(scheme=scheme, tolerance=tolerance, max_iterations=iterations, check=False)
    program = Program(trajectory_problem, options, first, meshes=meshes)
    solution = program.solve(guess=first)
    return tuple(read(trial, program, solution, static, name) for name, trial, static in each)


def static_sharing(trial: DynamicTrial, parameters: Mapping[str, float]) -> Sharing:
    """The frames of a trial, each by itself: least squares of activations of muscles with rigid tendons.

    `parameters` by name; factors on lengths and strains count for the dynamic solution alone.
    """
    muscles, balance = trial.muscles, trial.balance
    active, resting = np.empty(muscles.lengths.shape), np.empty(muscles.lengths.shape)
    for j in range(len(muscles.names)):
        fibre = muscles.fibre(j, (muscles.slack[j], 0.0), (muscles.lengths[:, j], muscles.speeds[:, j]))
        taut = fibre.length * fibre.cosine > 0.0
        for strength, part in zip((active, resting), muscles.forces(j, fibre), strict=True):
            strength[:, j] = np.where(taut, np.maximum(part, 0.0), 0.0)
    force = trial.isometric(parameters)
    if trial.device is not None:
        row = balance.rows.index(trial.device.row)
        moments = np.array(balance.moments)
        moments[:, row] -= trial.device.moment(moments[:, row], parameters)
        balance = replace(balance, moments=moments)
    return share(
        balance,
        Muscles(muscles.names, active * force, resting * force, lower=muscles.min_activation),
        Terms(Power(2.0), trial.terms.weights),
        Reserves(trial.reserves.optimal, trial.reserves.weight),
    )


def guess_of(trial: DynamicTrial, sharing: Sharing, parameters: Mapping[str, float]) -> SampledTrajectory:
    """Its activations as those of the motion, excited by as much, and its forces as those of the tendons."""
    time, muscles = trial.balance.time, trial.muscles
    a = np.clip(np.nan_to_num(sharing.activations, nan=0.1), muscles.min_activation, 1.0)
    f = np.clip(np.nan_to_num(sharing.forces / trial.isometric(parameters), nan=0.1), 1e-3, 2.0)
    u = np.clip(np.gradient(f, time, axis=0), -FASTEST_RATE, FASTEST_RATE)
    values = {f"activation_{n}": a[:, j] for j, n in enumerate(trial.names)}
    if not trial.commands:
        values |= {f"excitation_{n}": a[:, j] for j, n in enumerate(trial.names)}
    for j in trial.compliant:
        values[f"tendon_force_{trial.names[j]}"], values[f"force_rate_{trial.names[j]}"] = f[:, j], u[:, j]
    for i in trial.reserve_rows:
        row = trial.balance.rows[i]
        if row in sharing.balance.rows:
            control = sharing.reserves[:, sharing.balance.rows.index(row)] / trial.reserves.optimal[i]
            limit = trial.reserves.limit
            values[f"reserve_{trial.rows[i]}"] = np.clip(np.nan_to_num(control), -limit, limit)
    return sampled(time, values)
