"""The dynamic reference case: 18 muscles over half a gait cycle, from the tables of data/opensim/reference."""

import csv
from pathlib import Path

import numpy as np
from designopt_mechanics.moment_balance import MomentBalance
from designopt_muscle.dynamic_sharing.muscles import DynamicMuscles
from designopt_muscle.dynamic_sharing.terms import DynamicReserves
from opensim_cases import table

#: Names of the columns of parameters.
COLUMNS = {
    "force": "max_isometric_force_N",
    "optimal": "optimal_fiber_length_m",
    "slack": "tendon_slack_length_m",
    "pennation": "pennation_at_optimal_rad",
    "fastest": "max_contraction_velocity_lopt_per_s",
    "tendon_strain": "tendon_strain_at_one_norm_force",
    "width": "active_force_width_scale",
    "damping": "fiber_damping",
    "rise": "activation_time_constant_s",
    "fall": "deactivation_time_constant_s",
    "min_activation": "min_activation",
}


def walk_armless(folder: Path) -> tuple[MomentBalance, DynamicMuscles, DynamicReserves]:
    """Balance, muscles and reserves at the 45 mesh points and midpoints."""
    reference = folder / "reference"

    def table_of(name: str) -> tuple[list[str], np.ndarray]:
        return table(reference / f"walk_armless_dynamic_{name}.csv")

    with (reference / "walk_armless_dynamic_parameters.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = tuple(row["muscle"] for row in rows)
    parameters = {key: np.array([float(row[column]) for row in rows]) for key, column in COLUMNS.items()}
    (labels, lengths), (speed_labels, speeds) = table_of("lengths"), table_of("lengthening_speeds")
    assert tuple(labels[1:]) == tuple(speed_labels[1:]) == names
    labels, net = table_of("net_moments")
    coordinates = labels[1:]
    labels, columns = table_of("moment_arms")
    arms = np.zeros((len(net), len(coordinates), len(names)))
    for label, column in zip(labels[1:], columns.T[1:], strict=True):
        muscle, coordinate = label.split("@")
        arms[:, coordinates.index(coordinate), names.index(muscle)] = column
    with (reference / "walk_armless_dynamic_actuators.csv").open() as file:
        optimal = {row["coordinate"]: float(row["optimal_force"]) for row in csv.DictReader(file)}
    units = ["N" if c[-3:] in ("_tx", "_ty", "_tz") else "N m" for c in coordinates]
    balance = MomentBalance(net[:, 0], tuple(coordinates), names, arms, net[:, 1:], tuple(units))
    muscles = DynamicMuscles(
        names,
        lengths[:, 1:],
        speeds[:, 1:],
        rigid=np.array([float(row["rigid_tendon"]) > 0 for row in rows]),
        passive_strain=np.full(len(rows), np.inf),  # all of them ignore the passive force
        **parameters,
    )
    return balance, muscles, DynamicReserves(np.array([optimal.get(c, 0.0) for c in coordinates]))
