"""What dynamic sharing gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from designopt_mechanics.sharing.static.sharing import Sharing

from designopt.arrays import Floats
from designopt.collocation import Program, Solution, explain
from designopt.dynamics.rows import outputs_over
from designopt_muscle.dynamic_sharing.equations import DynamicTrial

#: Parts of the objective.
PARTS = ("effort", "moving", "tracking", "fibres")


@dataclass(frozen=True, eq=False)
class DynamicSharing:
    """A solution at the n points of the mesh, or the last iterate if not `converged`.

    `activations`, `excitations` (n, k); `tendon_forces`, `tendon_rates` (n, c) of the compliant muscles, normalised;
    `reserves` (n, m) the controls of the rows' reserves, `commands` (n, s) of the synergies; `forces` (n, k) N along
    the tendons, `device` (n,) N m. `fibre_lengths` (n, k) in optimal lengths, `fibre_speeds` (n, k) in maximum speeds
    of shortening.

    `objective` with its parts `effort` (excitations and reserves), `moving`, `tracking` and `fibres` (not weighted):
    integrals of `rates` (n, 4) with the `weights` (4,) of the objective. `parameters` by name, with the derivatives
    `slopes` of the objective (of all trials of a program) by them. `largest_residual` is that of any equation relative
    to its scale, named by `worst`. `static` is the solution frame by frame at which the search began. `program` and
    `solution` are those of the collocation.
    """

    time: Floats
    converged: bool
    message: str
    activations: Floats
    excitations: Floats
    commands: Floats
    tendon_forces: Floats
    tendon_rates: Floats
    reserves: Floats
    forces: Floats
    device: Floats
    fibre_lengths: Floats
    fibre_speeds: Floats
    rates: Floats
    weights: Floats
    objective: float
    effort: float
    moving: float
    tracking: float
    fibres: float
    iterations: int
    parameters: Mapping[str, float]
    slopes: Mapping[str, float]
    largest_residual: float
    worst: str
    static: Sharing
    program: Program
    solution: Solution

    def cut(self, frames: slice, quadrature: Floats) -> DynamicSharing:
        """Some frames, with integrals by the weights `quadrature` (s) of them."""
        cut_arrays: dict[str, Any] = {
            f.name: getattr(self, f.name)[frames]
            for f in fields(self)
            if isinstance(getattr(self, f.name), np.ndarray) and f.name != "weights"
        }
        parts = quadrature @ self.rates[frames]
        cut_arrays |= {name: float(part) for name, part in zip(PARTS, parts, strict=True)}
        return replace(self, **cut_arrays, objective=float(self.weights @ parts))


def read(
    trial: DynamicTrial, program: Program, solution: Solution, static_sharing: Sharing, name: str
) -> DynamicSharing:
    """The results of the `trial` in the phase `name` of the `solution` of a `program`."""
    phase, system = solution.phases[name], trial.system
    n, elastic = len(trial.balance.time), [trial.names[j] for j in trial.compliant]

    def stack(prefix: str, parts: Sequence[str], trajectories: Mapping[str, Floats]) -> Floats:
        return np.stack([trajectories[f"{prefix}_{part}"] for part in parts], axis=1) if parts else np.zeros((n, 0))

    values = {
        **phase.values,
        **outputs_over(system, phase.values, solution.parameters, trial.data, phase.times),
    }
    reserves = np.zeros((n, len(trial.rows)))
    for i in trial.reserve_rows:
        reserves[:, i] = values[f"reserve_{trial.rows[i]}"]
    violations = explain(solution).groups
    worst = str(violations[0].worst) if violations else ""
    return DynamicSharing(
        time=trial.balance.time,
        converged=solution.success,
        message=solution.message if solution.success else f"{solution.message} Largest residual: {worst}.",
        activations=stack("activation", trial.names, values),
        excitations=stack("excitation", trial.names, values),
        commands=stack("command", [str(s + 1) for s in range(trial.commands)], values),
        tendon_forces=stack("tendon_force", elastic, values),
        tendon_rates=stack("force_rate", elastic, values),
        reserves=reserves,
        forces=stack("muscle_force", trial.names, values),
        device=values["device"] if trial.device is not None else np.zeros(n),
        fibre_lengths=stack("fibre_length", trial.names, values),
        fibre_speeds=stack("fibre_speed", trial.names, values),
        rates=np.stack([values[f"{part}_rate"] for part in PARTS], axis=1),
        weights=np.array([trial.weights[part] for part in PARTS]),
        objective=sum(weight * phase.integrals[part] for part, weight in trial.weights.items()),
        effort=phase.integrals["effort"],
        moving=phase.integrals["moving"],
        tracking=phase.integrals["tracking"],
        fibres=phase.integrals["fibres"],
        iterations=solution.iterations,
        parameters=dict(solution.parameters),
        slopes=dict(solution.parameter_multipliers),
        largest_residual=solution.violation,
        worst=worst,
        static=static_sharing,
        program=program,
        solution=solution,
    )
