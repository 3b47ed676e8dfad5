"""External loads of a trial: which body a recorded force acts on, read from OpenSim's ``ExternalLoads`` files."""

from __future__ import annotations

import numpy as np
from designopt_mechanics.robot_files.xml import Element, parse
from designopt_recordings.signals.even_steps import linear_values
from designopt_recordings.table import TimeTable

from designopt.arrays import Floats
from designopt_muscle.geometry.kinematics import Kinematics, turned
from designopt_muscle.osim.model import GROUND, OsimModel
from designopt_muscle.osim.poses import last_name, only, without_effect

_FORCE = {
    "isDisabled", "appliesForce", "applied_to_body", "force_expressed_in_body", "point_expressed_in_body",
    "force_identifier", "point_identifier", "torque_identifier", "data_source_name",
}  # fmt: skip
_SET = {"objects", "defaults", "groups", "datafile", "external_loads_model_kinematics_file",
        "lowpass_cutoff_frequency_for_load_kinematics"}  # fmt: skip


def external_loads(content: bytes, table: TimeTable, motion: Kinematics, time: Floats) -> dict[str, Floats]:
    """Force (N) and moment (N m) about the origin of the ground (n, 6) on each body at `time` (n,) s.

    `content` is the XML file, `table` contains the recorded forces, points and torques that it names, each in the axes
    of the body that the file gives (`force_expressed_in_body` also holds for torques), with the pose from `motion` at
    `time`. A force without a point acts at the origin of its body. Records are interpolated linearly, NaN outside their
    times and in gaps. What a force does not state is that of the file's <defaults>. Raises `ModelError` for unknown
    elements, bodies or columns.
    """
    root = parse(content)
    loads = root.find("ExternalLoads") if root.tag == "OpenSimDocument" else None
    if loads is None:
        raise root.error("is not a file of external loads: <ExternalLoads> within <OpenSimDocument> is expected")
    only(loads, _SET)
    default = loads.find("defaults", "ExternalForce") or root.find("defaults", "ExternalForce")
    if default is not None:
        only(default, _FORCE)
    loads_by_body: dict[str, Floats] = {}
    for element in loads.need("objects").children:
        if element.tag != "ExternalForce":
            raise element.error("is not supported in external loads")
        only(element, _FORCE)
        element = element.with_defaults(default)
        if element.flag("isDisabled", False) or not element.flag("appliesForce", True):
            continue
        body = _body(element, "applied_to_body", motion.model)
        axes = motion.rotation[_body(element, "force_expressed_in_body", motion.model, GROUND)]
        force, point, torque = (
            _recorded(element, f"{what}_identifier", table, time) for what in ("force", "point", "torque")
        )
        nothing = np.zeros((len(time), 3))
        pull, turn = (nothing if part is None else turned(axes, part) for part in (force, torque))
        if point is None:
            at = motion.origin[body]
        else:
            at = motion.position(_body(element, "point_expressed_in_body", motion.model, GROUND), point)
        load = np.concatenate([pull, np.cross(at, pull) + turn], axis=1)
        loads_by_body[body] = loads_by_body[body] + load if body in loads_by_body else load
    return loads_by_body


def loads_without_effect(content: bytes) -> list[str]:
    """Elements of the XML file that `external_loads` does not follow: loads are neither filtered nor placed by another
    motion than that of the trial, and all columns come from one table."""
    loads = parse(content).need("ExternalLoads")
    cutoff = "lowpass_cutoff_frequency_for_load_kinematics"
    tags = {"objects", "defaults", "groups", "datafile", *([cutoff] if loads.word(cutoff).startswith("-") else [])}
    parts = loads.need("objects").children
    sources = [name for part in parts for name in without_effect(part, _FORCE - {"data_source_name"}, "ExternalForce/")]
    return list(dict.fromkeys([*without_effect(loads, tags), *sources]))


def _body(element: Element, tag: str, model: OsimModel, default: str = "") -> str:
    """The body that a child names; the ground only where it is the default."""
    name = last_name(element.word(tag, default)) or default
    if name in {body.name for body in model.bodies} or name == default == GROUND:
        return name
    reference = element.find(tag) or element
    raise reference.error(f"{tag} is '{name}', which is not a body of the model '{model.name}'")


def _recorded(element: Element, tag: str, table: TimeTable, time: Floats) -> Floats | None:
    """(n, 3) of the three columns that a child names by their prefix; None without a name."""
    prefix = element.word(tag)
    if not prefix:
        return None
    names = [f"{prefix}{axis}" for axis in "xyz"]
    if missing := [name for name in names if name not in table.names]:
        raise element.need(tag).error(f"names the column '{missing[0]}', which the table does not have")
    return np.column_stack([linear_values(table.time, table.column(name), time) for name in names])
