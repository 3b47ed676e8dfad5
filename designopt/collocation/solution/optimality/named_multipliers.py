"""Costates and multipliers of the limits of a solution, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designopt.arrays import Floats
from designopt.collocation.solution.optimality.multipliers import Multipliers, costates, multipliers, path_blocks
from designopt.collocation.solution.optimality.sensitivity import data_sensitivity
from designopt.collocation.solution.solution import Iterate, PhaseValues
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.transcription import Transcription


@dataclass(frozen=True, eq=False)
class NamedMultipliers:
    """Sensitivities of a solution of `problem` from its multipliers.

    `iterate` are the solver's numbers, `x` (n,) its unscaled variables, `values` those of the phases there.
    """

    problem: TrajectoryProblem
    transcription: Transcription
    bounds: ProgramBounds
    x: Floats
    iterate: Iterate
    values: Sequence[PhaseValues]

    @cached_property
    def multipliers(self) -> Multipliers:
        """The unscaled multipliers of the program."""
        return multipliers(
            self.transcription,
            self.bounds,
            self.iterate.x,
            self.iterate.constraint_multipliers,
            self.iterate.bound_multipliers,
        )

    def data_multipliers(self) -> dict[str, float]:
        """d objective / d numeric data and fixed times."""
        return data_sensitivity(self.problem, self.transcription, self.bounds, self.multipliers, self.x, self.values)

    def parameter_multipliers(self) -> dict[str, float]:
        """d objective / d bound of parameters, or d parameter of fixed ones."""
        return {
            name: float(-self.multipliers.bound_multipliers[k])
            for name, k in self.transcription.layout.parameters.items()
        }

    def limit_multipliers(self) -> dict[str, float]:
        """d objective / d limit of constraints between ends, integrals and free times."""
        multipliers: dict[str, float] = {}
        for block in self.transcription.blocks:
            if block.kind == "ends":
                multipliers.update(
                    zip(block.names, (-self.multipliers.constraint_multipliers[block.rows[0]]).tolist(), strict=True)
                )
        shadow = -self.multipliers.bound_multipliers
        for (i, j), k in self.transcription.layout.integrals.items():
            phase = self.problem.phases[i]
            multipliers[f"{phase.name}.{list(phase.integrals)[j]}"] = float(shadow[k])
        for phase, phase_layout in zip(self.problem.phases, self.transcription.layout.phases, strict=True):
            for name, k in phase_layout.times.items():
                if not (name == "t0" and phase.t0 is None):
                    multipliers[f"{phase.name}.{name}"] = float(shadow[k])
        return multipliers

    def state_multipliers(self, i: int) -> dict[str, Floats]:
        """Costates (slots,) of phase i."""
        costate_values = costates(self.transcription, i, self.multipliers, self.x, self.values[i])
        return {v.name: costate_values[:, j] for j, v in enumerate(self.problem.phases[i].system.states)}

    def end_multipliers(self, i: int) -> dict[str, tuple[float, float]]:
        """d objective / d limit of the states at both ends of phase i."""
        states = self.transcription.layout.phases[i].states
        first, last = -self.multipliers.bound_multipliers[states[0]], -self.multipliers.bound_multipliers[states[-1]]
        names = [v.name for v in self.problem.phases[i].system.states]
        return {name: (float(a), float(b)) for name, a, b in zip(names, first, last, strict=True)}

    def bound_multipliers(self, i: int) -> dict[str, Floats]:
        """d objective / d bound (slots,) along the phase, per second."""
        layout, point = self.transcription.layout.phases[i], self.transcription.problem_functions.points[i]
        shadow, per_second = -self.multipliers.bound_multipliers, self._per_second(i)
        multipliers = {}
        for j, name in enumerate(point.names):
            if j < point.nx:
                inner = shadow[layout.states[1:-1, j]] / per_second[1:-1]
                multipliers[name] = np.concatenate([[0.0], inner, [0.0]])
            else:
                by_point = shadow[layout.point[:, j]] / per_second[layout.mesh.first :]
                multipliers[name] = np.concatenate([by_point[: layout.mesh.first], by_point])
        return multipliers

    def path_multipliers(self, i: int) -> dict[str, Floats]:
        """d objective / d limit of the path constraints (points,), per second."""
        weights = self._per_second(i)[self.transcription.layout.phases[i].mesh.first :]
        multipliers: dict[str, Floats] = {}
        for block in path_blocks(self.transcription, i):
            multipliers.update(
                zip(
                    block.names,
                    (-self.multipliers.constraint_multipliers[block.rows] / weights[:, None]).T,
                    strict=True,
                )
            )
        return multipliers

    def _per_second(self, i: int) -> Floats:
        """Seconds (slots,) that each point represents in the quadrature; infinite without a weight."""
        weights = self.transcription.layout.phases[i].mesh.weights
        return np.where(weights == 0.0, np.inf, weights * self.values[i].duration)
