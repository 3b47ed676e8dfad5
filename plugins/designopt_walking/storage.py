"""Trajectories of OpenSim (.sto) as a guess, and solved walks as such files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.write import storage_text
from designopt_recordings.table import TimeTable

from designopt.collocation import PhaseSolution, SampledTrajectory, sampled
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


def opensim_table(walker: Walker, phase: PhaseSolution) -> TimeTable:
    """States and controls of a solved phase at the points of its mesh, under the names of OpenSim."""
    columns = dict(_columns(walker))
    return TimeTable(phase.times, tuple(columns), np.column_stack([phase.values[name] for name in columns.values()]))


def opensim_storage(walker: Walker, phase: PhaseSolution) -> str:
    """The text of an STO file that OpenSim Moco reads as a trajectory (``MocoTrajectory``)."""
    table = opensim_table(walker, phase)
    elastic = len(walker.muscles.compliant)
    states = 2 * len(walker.coordinates) + len(walker.muscles.names) + elastic
    counts = {
        "num_controls": len(table.names) - states - elastic,
        "num_derivatives": elastic,
        "num_input_controls": 0,
        "num_multipliers": 0,
        "num_parameters": 0,
        "num_slacks": 0,
        "num_states": states,
    }
    head = "".join(f"{name}={count}\n" for name, count in counts.items())
    return head + storage_text(table)


def _columns(walker: Walker) -> Iterator[tuple[str, str]]:
    """Labels of OpenSim and names of the program."""
    joints = {c.name: c.joint for c in walker.model.coordinates}
    for kind, ending in (("value", ""), ("speed", "_speed")):
        for name in walker.coordinates:
            yield f"/jointset/{joints[name]}/{name}/{kind}", f"{name}{ending}"
    for name in walker.muscles.names:
        yield f"/{name}/activation", f"activation_{name}"
    for name in walker.muscles.compliant:
        yield f"/{name}/normalized_tendon_force", f"tendon_force_{name}"
    for name in walker.drives:
        yield f"/{name}", name
    for name in walker.muscles.names:
        yield f"/{name}", f"excitation_{name}"
    for name in walker.muscles.compliant:
        yield f"/{name}/implicitderiv_normalized_tendon_force", f"force_rate_{name}"


def _optional(table: TimeTable, name: str, kind: str) -> np.ndarray | None:
    labels = [label for label in table.names if label.split("/")[-2:] == [name, kind]]
    return table.column(labels[0]) if len(labels) == 1 else None


def _path(table: TimeTable, name: str) -> np.ndarray | None:
    """The column of a control, whose path ends with its name."""
    labels = [label for label in table.names if label.split("/")[-1] == name]
    return table.column(labels[0]) if len(labels) == 1 else None
