"""The program of a recorded walk in space: drives and ground forces that follow it over a window of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from designopt.collocation import (
    Guess,
    Phase,
    TrajectoryProblem,
    periodic,
    sampled,
)
from designopt.study.language.findings import nearest_or_all
from designopt_walking.programs.gait import (
    GaitError,
    check_contact,
    excitations,
    motion_scales,
    periodic_names,
)
from designopt_walking.programs.recording import RecordedWalk
from designopt_walking.programs.track import FollowedRecording, TrackingWeights
from designopt_walking.spatial.walker import floating
from designopt_walking.walker import Walker

#: Distance (m) from its recorded way that the pelvis may have, and that (rad) from the recorded range of a joint that
#: muscles cross: their paths are fitted there.
ROOM, ROOM_OF_PATHS = 0.5, 0.2
#: Activations and excitations in the first motion.
ACTIVATION = 0.05


@dataclass(frozen=True)
class FollowedWindow:
    """How a recording is followed: `weights` of the terms, and `state_weights` of single coordinates and
    ``<coordinate>_speed`` among the states (1 for others); largest distances at the start of coordinates (rad or m) and
    of speeds (rad/s or m/s), `start`; whether the motion repeats after the window, `cycle`."""

    weights: TrackingWeights
    state_weights: Mapping[str, float] = field(default_factory=dict)
    start: tuple[float, float] = (0.05, 0.1)
    cycle: bool = False


def followed_window(walker: Walker, walk: RecordedWalk, window: FollowedWindow) -> TrajectoryProblem:
    """The motion of `walker` over the duration of the recorded `walk` nearest to it, with the least squared drives and
    excitations.

    The cost is that of `FollowedRecording`, after example3DWalking of OpenSim Moco. Nothing but the ground force acts
    on the pelvis. Raises `GaitError` for a walker without contact, weights of unknown states, and a recording outside
    the ranges of the coordinates.
    """
    check_contact(walker)
    tracking = FollowedRecording(walker, walk, window.weights, window.state_weights)
    for name in window.state_weights:
        if name not in walk.motion:
            raise GaitError("state_weights", f"'{name}' is not recorded{nearest_or_all(name, walk.motion)}")
    distances = dict(zip(("", "_speed"), window.start, strict=True))
    start = {
        f"{c}{kind}": (float(walk.motion[f"{c}{kind}"][0]) - distance, float(walk.motion[f"{c}{kind}"][0]) + distance)
        for c in walker.coordinates
        for kind, distance in distances.items()
        if c in walk.motion
    }
    bounds = coordinate_bounds(walker, walk)
    phase = Phase(
        tracking.system("xyz"),
        tf=walk.duration,
        bounds=bounds,
        initial={name: _intersection(box, bounds.get(name)) for name, box in start.items()},
        scales={**dict.fromkeys(walker.coordinates, 1.0), **motion_scales(walker)},
        integrals=tracking.integrals,
        data=tracking.data,
    )
    cycle = {"cycle": periodic([*periodic_names(walker), *excitations(walker)])} if window.cycle else {}
    return tracking.problem(phase, cycle)


def coordinate_bounds(walker: Walker, walk: RecordedWalk) -> dict[str, tuple[float, float]]:
    """Ranges of the coordinates; the pelvis stays within `ROOM` of its way. Raises `GaitError` for a recording outside
    of them."""
    in_space = floating(walker.model)
    bounds = {}
    for c in walker.state.tree.coordinates:
        low, high = c.low, c.high
        if c.name in walk.motion:
            lower, upper = float(walk.motion[c.name].min()), float(walk.motion[c.name].max())
            if lower < low or upper > high:
                raise GaitError(
                    "ranges",
                    f"'{c.name}' is recorded from {lower:.4g} to {upper:.4g} {c.unit}, beyond its range from {low:.4g}"
                    f" to {high:.4g} {c.unit}: state a wider one",
                )
            if c.name in in_space and c.unit == "m":
                low, high = max(low, lower - ROOM), min(high, upper + ROOM)
        bounds[c.name] = (low, high)
    return bounds


def path_ranges(walker: Walker, walk: RecordedWalk) -> dict[str, tuple[float, float]]:
    """Ranges in which the paths of muscles are fitted: of recorded joint angles near the recording."""
    in_space = floating(walker.model)
    ranges = {}
    for c in walker.state.tree.coordinates:
        ranges[c.name] = (c.low, c.high)
        if c.name in walk.motion and c.unit == "rad" and c.name not in in_space:
            angle = walk.motion[c.name]
            near = (float(angle.min()) - ROOM_OF_PATHS, float(angle.max()) + ROOM_OF_PATHS)
            ranges[c.name] = _intersection(near, ranges[c.name])
    return ranges


def _intersection(box: tuple[float, float], bounds: tuple[float, float] | None) -> tuple[float, float]:
    """The part of a range inside of bounds."""
    return box if bounds is None else (max(box[0], bounds[0]), min(box[1], bounds[1]))


def first_motion(walker: Walker, walk: RecordedWalk) -> Guess:
    """The recorded motion with its accelerations, other coordinates at rest, muscles hardly active, drives without
    torque."""
    zeros = np.zeros(len(walk.time))
    values = dict.fromkeys(walker.drives, zeros)
    for name in walker.muscles.names:
        values[f"activation_{name}"] = values[f"excitation_{name}"] = zeros + ACTIVATION
    for c in walker.state.tree.coordinates:
        has_recording = c.name in walk.motion
        values[c.name] = walk.motion[c.name] if has_recording else zeros + c.reference
        values[f"{c.name}_speed"] = walk.motion[f"{c.name}_speed"] if has_recording else zeros
        values[f"{c.name}_acceleration"] = np.gradient(values[f"{c.name}_speed"], walk.time)
    return Guess({"motion": sampled(walk.time, values)})
