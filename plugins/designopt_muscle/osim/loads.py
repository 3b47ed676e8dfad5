"""External loads of a trial: which body a recorded force acts on, read from OpenSim's ``ExternalLoads`` files."""

from __future__ import annotations

import numpy as np
from designopt_recordings.table import Table
from numpy.typing import NDArray

from designopt_muscle.osim.model import GROUND, OsimModel
from designopt_muscle.osim.places import last_name, only
from designopt_muscle.osim.xml import parse

Vector = NDArray[np.float64]

_FORCE = {
    "isDisabled", "appliesForce", "applied_to_body", "force_expressed_in_body", "point_expressed_in_body",
    "force_identifier", "point_identifier", "torque_identifier", "data_source_name",
}  # fmt: skip
_SET = {"objects", "groups", "datafile", "external_loads_model_kinematics_file",
        "lowpass_cutoff_frequency_for_load_kinematics"}  # fmt: skip


def external_loads(content: bytes, table: Table, model: OsimModel, time: Vector) -> dict[str, Vector]:
    """Force (N) and moment (N m) about the origin of the ground (n, 6) on each body at `time` (n,) s.

    `content` is the XML file, `table` the recorded forces, points and torques that it names, in the axes of the ground;
    they are interpolated linearly, NaN outside of the recorded times. Raises `ModelError` for what is not understood
    and for bodies or columns that are not there.
    """
    root = parse(content)
    loads = root.find("ExternalLoads") if root.tag == "OpenSimDocument" else None
    if loads is None:
        raise root.error("is no file of external loads: <ExternalLoads> within <OpenSimDocument> is")
    only(loads, _SET)
    found: dict[str, Vector] = {}
    bodies = {body.name for body in model.bodies}
    for element in loads.need("objects").children:
        if element.tag != "ExternalForce":
            raise element.error("is not understood among external loads")
        only(element, _FORCE)
        if element.flag("isDisabled", False) or not element.flag("appliesForce", True):
            continue
        body = last_name(element.word("applied_to_body"))
        if body not in bodies:
            raise element.error(f"acts on '{body}', which is no body of the model '{model.name}'")
        for tag in ("force_expressed_in_body", "point_expressed_in_body"):
            if last_name(element.word(tag, GROUND)) != GROUND:
                raise element.need(tag).error("is not the ground; forces and points are understood in its axes")
        parts = []
        for tag in ("force_identifier", "point_identifier", "torque_identifier"):
            prefix = element.word(tag)
            if not prefix:
                parts.append(np.zeros((len(time), 3)))
                continue
            names = [f"{prefix}{axis}" for axis in "xyz"]
            if missing := [name for name in names if name not in table.names]:
                raise element.need(tag).error(f"names the column '{missing[0]}', which the table does not have")
            parts.append(np.column_stack([_interpolated(table, name, time) for name in names]))
        force, point, torque = parts
        load = np.concatenate([force, np.cross(point, force) + torque], axis=1)
        found[body] = found[body] + load if body in found else load
    return found


def _interpolated(table: Table, name: str, time: Vector) -> Vector:
    return np.interp(time, table.time, table.column(name), left=np.nan, right=np.nan)
