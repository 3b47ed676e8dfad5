"""Reference cases of muscle-force sharing, from the tables of the folder data/opensim/reference."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.sharing.muscles import Muscles
from designopt_mechanics.sharing.statement.criteria import Reserves


@cache
def table(path: Path) -> tuple[list[str], np.ndarray]:
    """Column names and numbers of a CSV file."""
    with path.open() as file:
        names, *rows = csv.reader(file)
    return names, np.array(rows, dtype=float)


@dataclass(frozen=True)
class Case:
    """One reference case: moments to balance, muscles, reserves."""

    name: str
    folder: Path
    balance: MomentBalance
    muscles: Muscles
    reserves: Reserves

    def solution(self, p: int) -> dict[str, np.ndarray]:
        """Columns of the reference minimiser for the exponent `p`."""
        names, values = table(self.folder / f"{self.name}_sharing_p{p}_solution.csv")
        return dict(zip(names, values.T, strict=True))


@cache
def case(folder: Path, name: str) -> Case:
    """The case `name` of the OpenSim data: arm26, gait10dof18musc, gait2392 or walk_scaled_80musc."""
    reference = folder / "reference"
    problem = json.loads((reference / f"{name}_problem.json").read_text())
    rows = problem["coordinates"]
    labels, strength = table(reference / f"{name}_max_active_force.csv")
    names = tuple(labels[1:])
    labels, arms = table(reference / f"{name}_moment_arms.csv")
    every = np.zeros((len(arms), len(rows), len(names)))
    for label, column in zip(labels[1:], arms.T[1:], strict=True):
        muscle, coordinate = label.split("@")
        if coordinate in rows:
            every[:, rows.index(coordinate), names.index(muscle)] = column
    labels, net = table(reference / f"{name}_inverse_dynamics.csv")
    net_moments = dict(zip(labels, net.T, strict=True))
    moments = np.column_stack([net_moments[f"{row}_moment"] for row in rows])
    balance = MomentBalance(arms[:, 0], tuple(rows), names, every, moments, ("N m",) * len(rows))
    k = len(names)
    parameters = _parameters(reference / f"{name}_muscle_parameters.csv", names)
    muscles = Muscles(names, strength[:, 1:], lower=np.full(k, problem["activation_lower_bound"]), **parameters)
    return Case(name, reference, balance, muscles, Reserves(np.array(problem["reserve_optimal_force_Nm"])))


def _parameters(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    if not path.exists():
        return {}
    with path.open() as file:
        rows = {row["muscle"]: row for row in csv.DictReader(file)}
    columns = {"isometric": "max_isometric_force_N", "fibre": "optimal_fiber_length_m"}
    return {key: np.array([float(rows[n][column]) for n in names]) for key, column in columns.items()}
