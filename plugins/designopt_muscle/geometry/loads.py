"""External loads of a trial: which body a recorded force acts on, read from OpenSim's ``ExternalLoads`` files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from designopt_mechanics.robot_files.xml import Element, parse
from designopt_recordings.loads.tables import idle_as_zero
from designopt_recordings.signals.even_steps import linear_values
from designopt_recordings.table import TimeTable

from designopt.arrays import Floats
from designopt_muscle.geometry.kinematics import Kinematics, rotate
from designopt_muscle.osim.model import GROUND, OsimModel
from designopt_muscle.osim.poses import last_name, refuse_other_children, without_effect

_FORCE = {
    "isDisabled", "appliesForce", "applied_to_body", "force_expressed_in_body", "point_expressed_in_body",
    "force_identifier", "point_identifier", "torque_identifier", "data_source_name",
}  # fmt: skip
_SET = {"objects", "defaults", "groups", "datafile", "external_loads_model_kinematics_file",
        "lowpass_cutoff_frequency_for_load_kinematics"}  # fmt: skip


@dataclass(frozen=True, eq=False)
class BodyLoad:
    """A recorded load on a `body` in n frames: `force` (n, 3) N at `point` (n, 3) m, and `torque` (n, 3) N m, in the
    axes of the ground; `in_ground` says that they were recorded in these, not in those of a moving body."""

    body: str
    force: Floats
    point: Floats
    torque: Floats
    in_ground: bool = True

    @property
    def wrench(self) -> Floats:
        """(n, 6) force, and moment about the origin of the ground; a point without a force has no effect."""
        acting = (self.force != 0.0).any(axis=1)
        arm = np.where(acting[:, None], self.point, 0.0)
        return np.concatenate([self.force, np.cross(arm, self.force) + self.torque], axis=1)

    @property
    def centre(self) -> Floats:
        """(n, 3) m centre of pressure: on the horizontal plane through the point, where no horizontal torque is left;
        NaN without an upward force."""
        up = np.where(self.force[:, 1] > 0.0, self.force[:, 1], np.nan)
        shift = np.stack([self.torque[:, 2] / up, 0.0 * up, -self.torque[:, 0] / up], axis=1)
        return np.asarray(self.point + shift)


def sum_by_body(loads: Iterable[BodyLoad]) -> dict[str, Floats]:
    """(n, 6) by body: the sum of the forces (N) and moments (N m) about the origin of the ground on it."""
    by_body: dict[str, Floats] = {}
    for load in loads:
        by_body[load.body] = by_body[load.body] + load.wrench if load.body in by_body else load.wrench
    return by_body


def body_loads(content: bytes, table: TimeTable, motion: Kinematics, time: Floats) -> tuple[BodyLoad, ...]:
    """The loads of an ExternalLoads file at `time` (n,) s, one for each force that is not disabled.

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
    refuse_other_children(loads, _SET)
    default = loads.find("defaults", "ExternalForce") or root.find("defaults", "ExternalForce")
    if default is not None:
        refuse_other_children(default, _FORCE)
    load_list = []
    for element in loads.need("objects").children:
        if element.tag != "ExternalForce":
            raise element.error("is not supported in external loads")
        refuse_other_children(element, _FORCE)
        element = element.with_defaults(default)
        if element.flag("isDisabled", False) or not element.flag("appliesForce", True):
            continue
        body = _body(element, "applied_to_body", motion.model)
        axes = motion.rotation[_body(element, "force_expressed_in_body", motion.model, GROUND)]
        columns = [_vectors(element, f"{quantity}_identifier", table) for quantity in ("force", "point", "torque")]
        force, point, torque = (_record_at(table.time, part, time) for part in _without_idle(*columns))
        nothing = np.zeros((len(time), 3))
        pull, turn = (nothing if part is None else rotate(axes, part) for part in (force, torque))
        if point is None:
            at = motion.origin[body]
        else:
            at = motion.position(_body(element, "point_expressed_in_body", motion.model, GROUND), point)
        moves = {
            _body(element, f"{quantity}_expressed_in_body", motion.model, GROUND) for quantity in ("force", "point")
        }
        in_ground = point is not None and moves == {GROUND}
        load_list.append(BodyLoad(body, pull, at, turn, in_ground))
    return tuple(load_list)


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


def _without_idle(
    force: Floats | None, point: Floats | None, torque: Floats | None
) -> tuple[Floats | None, Floats | None, Floats | None]:
    """The records of a load, none where an unloaded plate has no point."""
    if force is None or point is None:
        return force, point, torque
    without = idle_as_zero(force, point, np.zeros_like(force) if torque is None else torque)
    return without[0], without[1], None if torque is None else without[2]


def _record_at(times: Floats, record: Floats | None, time: Floats) -> Floats | None:
    """(n, 3) of a record (k, 3) at `time`."""
    return None if record is None else np.column_stack([linear_values(times, column, time) for column in record.T])


def _vectors(element: Element, tag: str, table: TimeTable) -> Floats | None:
    """(k, 3) of the three columns that a child names by their prefix; None without a name."""
    prefix = element.word(tag)
    if not prefix:
        return None
    names = [f"{prefix}{axis}" for axis in "xyz"]
    if missing := [name for name in names if name not in table.names]:
        raise element.need(tag).error(f"names the column '{missing[0]}', which the table does not have")
    return np.column_stack([table.column(name) for name in names])
