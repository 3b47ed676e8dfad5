"""Report parts `walking_moments` and `walking_device`: who turns the joints, and what a device does."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, line, missing, selectable, stored_arrays
from designopt.report.section import Section
from designopt.store.result import Result
from designopt_walking.report.panels import by_quantity, panel_height, panels
from designopt_walking.report.sides import side_names

_PARTS = {
    "muscle_moments": "muscles", "device_moments": "device", "contact_moments": "ground", "drive_moments": "drives",
}  # fmt: skip
_PELVIS = "pelvis_"


_OF_MOMENTS = ("percent", "coordinates", "contact_moments")


@report_part("walking_moments", version=1, arrays=_OF_MOMENTS)
def walking_moments(result: Result) -> Section | None:
    """Moments about every joint over the cycle: of muscles, drives, the device and the ground force."""
    title = "Joint moments"
    motions = stored_arrays(result, *_OF_MOMENTS)
    if not motions:
        return missing(title, *_OF_MOMENTS) if len(result.outcomes.X) else None
    first = next(iter(motions.values()))
    names = [str(name) for name in first["coordinates"]]
    acting = {k for arrays in motions.values() for part in _PARTS for k in _acting(arrays, part)}
    sides = side_names(result)
    joints = {
        f"{quantity.replace('_', ' ')}{f', {sides[side]}' if side else ''}": k
        for quantity, columns in by_quantity(names).items()
        for side, k in columns.items()
        if k in acting and not names[k].startswith(_PELVIS)
    }
    note = "In N m, positive as the coordinates: hip flexion, toe up. The rest is weight and inertia."
    plot, height = partial(_moments, joints=joints), panel_height(len(joints))
    return Section(title, figures=(selectable(title, motions, plot, height=height, note=note),))


def _moments(arrays: Arrays, *, joints: Mapping[str, int]) -> Plot:
    columns = list(joints.values())

    def draw(i: int) -> list[dict[str, Any]]:
        return [
            line(arrays["percent"], arrays[part][:, columns[i]], label, line={"color": category(n), "width": 1.8})
            for n, (part, label) in enumerate(_PARTS.items())
            if columns[i] in _acting(arrays, part)
        ]

    return panels(list(joints), draw)


_DRIVES = "Positive: the device drives the joint."
_OF_DEVICE = ("percent", "coordinates", "positions", "speeds", "device_moments")


@report_part("walking_device", version=1, arrays=_OF_DEVICE)
def walking_device(result: Result) -> Section | None:
    """Torque of the device over the angle, and its power over the cycle, for every joint on which it acts."""
    title = "The device"
    motions = stored_arrays(result, *_OF_DEVICE)
    if not motions:
        return missing(title, *_OF_DEVICE) if len(result.outcomes.X) else None
    if not any(_acting(arrays, "device_moments") for arrays in motions.values()):
        return Section(title, introduction="No device acts on this walker.")
    sides = side_names(result)
    around = "A loop run through clockwise takes energy from the joint; a spring alone is a line."
    return Section(
        title,
        figures=(
            selectable("Torque over the angle", motions, partial(_over_angle, sides=sides), height=380, note=around),
            selectable("Power", motions, partial(_power, sides=sides), height=320, note=_DRIVES),
        ),
    )


def _acting(arrays: Arrays, part: str) -> list[int]:
    """Columns of the joints that a part turns at any time; none of a part that the model does not have."""
    if part not in arrays:
        return []
    size = np.abs(np.nan_to_num(np.asarray(arrays[part], dtype=float))).max(axis=0, initial=0.0)
    return [int(k) for k in np.flatnonzero(size > 1e-9)]


def _over_angle(arrays: Arrays, *, sides: Mapping[str, str]) -> Plot:
    angle, torque = (np.asarray(arrays[name], dtype=float) for name in ("positions", "device_moments"))
    data = [
        line(np.degrees(angle[:, k]), torque[:, k], _name(arrays, k, sides), line={"color": category(n), "width": 2})
        for n, k in enumerate(_acting(arrays, "device_moments"))
    ]
    return {"data": data, "layout": layout(xaxis=axis("angle [deg]"), yaxis=axis("torque [N m]"))}


def _power(arrays: Arrays, *, sides: Mapping[str, str]) -> Plot:
    rate, torque = (np.asarray(arrays[name], dtype=float) for name in ("speeds", "device_moments"))
    data = [
        line(
            arrays["percent"],
            rate[:, k] * torque[:, k],
            _name(arrays, k, sides),
            line={"color": category(n), "width": 2},
        )
        for n, k in enumerate(_acting(arrays, "device_moments"))
    ]
    return {"data": data, "layout": layout(xaxis=axis("cycle [%]", range=[0, 100]), yaxis=axis("power [W]"))}


def _name(arrays: Arrays, k: int, sides: Mapping[str, str]) -> str:
    ((quantity, columns),) = by_quantity([str(arrays["coordinates"][k])]).items()
    return ", ".join(filter(None, (quantity.replace("_", " "), *(sides[side] for side in columns))))
