"""Trajectories of OpenSim (.sto) as a guess."""

from __future__ import annotations

import numpy as np
from designopt_recordings.errors import RecordingError
from designopt_recordings.table import TimeTable

from designopt.collocation import SampledTrajectory, sampled
from designopt_walking.walker import Walker


def guess_from_table(walker: Walker, table: TimeTable) -> SampledTrajectory:
    """Trajectories of a walker from states and controls as OpenSim writes them: ``.../knee_angle_r/value``,
    ``/speed``, ``/soleus_r/activation``, ``/soleus_r`` (excitation), ``/lumbarAct``.

    Coordinates must be there; speeds are the slopes of their splines, activations and excitations 0.1 where there are
    none, and forces of compliant tendons (``/soleus_r/normalized_tendon_force``) those of rigid ones. Raises
    `RecordingError` for a table without a coordinate, with gaps, or with fewer than four rows.
    """
    if len(table.time) < 4:
        raise RecordingError(f"{len(table.time)} rows are no trajectory; at least four are needed")
    table = table.radians(walker.angles)
    values = {name: table.column(table.label(name, "value")) for name in walker.coordinates}
    for name in walker.coordinates:
        speed = _optional(table, name, "speed")
        values[f"{name}_speed"] = np.gradient(values[name], table.time) if speed is None else speed
    for name in walker.muscles.names:
        activation, excitation = _optional(table, name, "activation"), _path(table, name)
        values[f"activation_{name}"] = np.full(len(table.time), 0.1) if activation is None else activation
        values[f"excitation_{name}"] = values[f"activation_{name}"] if excitation is None else excitation
    for name in walker.muscles.compliant:
        force = _optional(table, name, "normalized_tendon_force")
        values |= {} if force is None else {f"tendon_force_{name}": force}
    for name in walker.drives:
        drive = _path(table, name)
        values[name] = np.zeros(len(table.time)) if drive is None else drive
    for name, column in values.items():
        if not np.isfinite(column).all():
            raise RecordingError(f"the trajectory of '{name}' has missing values; fill the gaps")
    return sampled(table.time, values)


def _optional(table: TimeTable, name: str, kind: str) -> np.ndarray | None:
    labels = [label for label in table.names if label.split("/")[-2:] == [name, kind]]
    return table.column(labels[0]) if len(labels) == 1 else None


def _path(table: TimeTable, name: str) -> np.ndarray | None:
    """The column of a control, whose path ends with its name."""
    labels = [label for label in table.names if label.split("/")[-1] == name]
    return table.column(labels[0]) if len(labels) == 1 else None
