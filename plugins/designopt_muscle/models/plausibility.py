"""What a person sees at a glance in the files of a trial and its model: ranges, moments, forces of the ground."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from designopt_recordings.plausibility import (
    LEAST_LOAD,
    UsualRange,
    jump_notes,
    noise_notes,
    range_notes,
    side_unit_notes,
    time_notes,
)
from designopt_recordings.table import TimeTable

from designopt.arrays import Floats
from designopt_muscle.geometry.geometry import muscle_geometry
from designopt_muscle.geometry.loads import BodyLoad
from designopt_muscle.osim.model import OsimModel

#: m, a moment arm that no muscle exceeds.
_LONG_ARM = 0.1
#: Share of the strength that the opposite sign needs, of that of the sign as written, below which the sign is doubted.
_EASIER = 0.5
#: m, from the origin of a body, beyond which no force acts on it, and beyond which it may act on another one.
_FAR, _BESIDE = 1.0, 0.25
#: Hz, sampling rate below which a filter with the usual cut-off leaves too little to tell noise from the motion.
_FILTERED_RATE = 30.0
#: Loaded frames that a doubt about the point of a force needs.
_LEAST_FRAMES = 3


def weight_of(model: OsimModel) -> float:
    """N, of all bodies."""
    return 9.81 * sum(body.mass for body in model.bodies)


def acceleration_notes(table: TimeTable, model: OsimModel) -> list[str]:
    """A note on noise in the coordinates of a motion in rad and m that is differentiated without a filter."""
    curves = {name: table.column(name) for name in model.free if _has_column(table, name)}
    turning = {c.name for c in model.coordinates if c.rotational}
    rate = 1.0 / float(np.median(np.diff(table.time))) if len(table.time) > 1 else np.inf
    remedy = "Set a cutoff, such as 6 Hz for walking"
    if rate < _FILTERED_RATE:
        remedy = f"{rate:.3g} rows per second may be too few for the motion; if they are not, set a lower cutoff"
    return noise_notes(curves, table.time, turning, remedy)


def pose_notes(table: TimeTable, model: OsimModel) -> list[str]:
    """Notes on the coordinates of a motion in rad and m: times, ranges of the model, sides and jumps."""
    ranges = {c.name: UsualRange(c.low, c.high, c.rotational) for c in model.coordinates if c.high > c.low}
    curves = {name: table.column(name) for name in model.free if name in ranges and _has_column(table, name)}
    angles = {name: curve for name, curve in curves.items() if ranges[name].rotational}
    return [
        *time_notes(table.time),
        *range_notes(curves, ranges),
        *side_unit_notes(angles),
        *jump_notes(curves, table.time),
    ]


def _has_column(table: TimeTable, name: str) -> bool:
    return any(label == name or label.split("/")[-2:] == [name, "value"] for label in table.names)


def strength_notes(moments: Mapping[str, Floats], values: Mapping[str, Floats], model: OsimModel) -> list[str]:
    """Notes on net `moments` (n,) N m about rotations at the postures `values` (n,): larger than all muscles together
    could be, or of a sign that they cannot produce, while they could produce the opposite one."""
    turning = {c.name for c in model.coordinates if c.rotational}
    largest = {n: float(np.max(np.abs(m[np.isfinite(m)]), initial=0.0)) for n, m in moments.items() if n in turning}
    capacity = _LONG_ARM * sum(muscle.force for muscle in model.muscles)
    if not largest or capacity <= 0.0:
        return []
    name = max(largest, key=lambda n: largest[n])
    if largest[name] > capacity:
        return [
            f"the moment about {name} reaches {largest[name]:.3g} N m, and all muscles of '{model.name}' together could"
            f" not produce {capacity:.3g} N m: are the moments in N mm? Divide them by 1000"
        ]
    geometry = muscle_geometry(model, {n: np.where(np.isfinite(v), v, 0.0) for n, v in values.items()})
    force = np.array([muscle.force for muscle in model.muscles])
    notes = []
    for name in largest:
        arms, moment = geometry.arms[:, geometry.coordinates.index(name)], moments[name]
        up, down = np.maximum(arms, 0.0) @ force, np.maximum(-arms, 0.0) @ force
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = [float(np.nanmax(np.where(m > 0.0, m / up, -m / down), initial=0.0)) for m in (moment, -moment)]
        if 1.0 < shares[0] < np.inf and shares[1] < _EASIER * shares[0]:
            notes.append(
                f"the moment about {name} takes up to {shares[0]:.0%} of the strength of the muscles that could produce"
                f" it, and {shares[1]:.0%} with the opposite sign: is the sign of the column reversed?"
            )
    return notes


def point_notes(loads: Sequence[BodyLoad], origins: Mapping[str, Floats], weight: float) -> list[str]:
    """Notes on `loads` that act far from the origin (n, 3) m of their body, or nearer to another loaded one, while they
    carry a part of the `weight` (N)."""
    notes = []
    for load in loads:
        carries = np.isfinite(load.point).all(axis=1) & (load.force[:, 1] > LEAST_LOAD * weight)
        if carries.sum() < _LEAST_FRAMES:
            continue
        distances = {
            body: float(np.median(np.linalg.norm(load.point[carries] - origins[body][carries], axis=1)))
            for body in {load.body: None, **{other_load.body: None for other_load in loads}}
        }
        nearest, distance = min(distances, key=lambda body: distances[body]), distances[load.body]
        subject = f"the force on {load.body} acts {distance:.3g} m from its origin"
        if distance > _FAR:
            notes.append(f"{subject}: check the unit of its points (m) and their axes")
        elif distance > max(_BESIDE, 2.0 * distances[nearest]):
            notes.append(
                f"{subject}, and {distances[nearest]:.2g} m from that of {nearest}: are the bodies of the loads"
                " exchanged, or the sides of the motion?"
            )
    return notes
