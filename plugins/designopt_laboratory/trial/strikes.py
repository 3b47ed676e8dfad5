"""Foot strikes: from plates, from the motion of feet and pelvis, from events of the recording, or as stated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from designopt_muscle.geometry.kinematics import Kinematics
from designopt_muscle.models.errors import TrialError
from designopt_muscle.osim.model import GROUND, OsimModel
from designopt_recordings.recording import MarkedEvent
from designopt_recordings.signals.cycles import Cycle, cycles_between

from designopt.arrays import Floats, Mask
from designopt_laboratory.trial.feet import SIDES

Source = Literal["auto", "plates", "feet", "events"]
#: Shortest and longest duration (s) of a cycle of walking or running.
SHORTEST, LONGEST = 0.35, 2.5

Strikes = Mapping[str, tuple[float, ...]]

_WORDS = {"events": "events of the recording", "plates": "force plates", "feet": "the motion of the feet"}


@dataclass(frozen=True)
class TrialCycles:
    """`cycles` with their sides, right ones first, `notes` on where they come from, and on sides that are `lacking`
    cycles while the other one has some."""

    cycles: tuple[tuple[str, Cycle], ...]
    notes: tuple[str, ...]
    lacking: tuple[str, ...] = ()


def trial_cycles(
    source: Source, sources: Mapping[str, Strikes], window: tuple[float, float], name: str = "trial"
) -> TrialCycles:
    """The cycles within the `window` (s) of the trial `name`, by strikes of `sources`: events, plates, feet.

    With ``auto``, those of each side come from the first source that gives it a cycle. Raises `TrialError` where a
    ``source`` of its own gives none.
    """
    usable = {key: strikes for key, strikes in sources.items() if source in ("auto", key)}
    cycles: list[tuple[str, Cycle]] = []
    notes, lacking = [], []
    for side in SIDES:
        of_side = {key: cycles_of({side: strikes.get(side, ())}, window) for key, strikes in usable.items()}
        best = next((key for key, cycles_of_side in of_side.items() if cycles_of_side), None)
        if best is not None:
            cycles += of_side[best]
            notes.append(f"cycles of the {side} side: foot strikes by {_WORDS[best]}")
        else:
            lacking.append(f"no cycle of the {side} side: {_strikes_in_words(usable, side, window)}")
    if not cycles and source != "auto":
        raise TrialError(
            f"{name}: cycles: {source}: {'; '.join([*notes, *lacking])}. A cycle lies between two strikes of a side,"
            f" {SHORTEST:g} to {LONGEST:g} s apart, within {window[0]:.4g} to {window[1]:.4g} s; 'cycles: auto' also"
            " takes the other sources"
        )
    return TrialCycles(tuple(cycles), (*notes, *lacking), tuple(lacking) if cycles else ())


def _strikes_in_words(usable: Mapping[str, Strikes], side: str, window: tuple[float, float]) -> str:
    times = {
        _WORDS[key]: [f"{t:.3f}" for t in strikes.get(side, ()) if window[0] <= t <= window[1]]
        for key, strikes in usable.items()
    }
    parts = [f"{words} at {', '.join(instants)} s" for words, instants in times.items() if instants]
    return f"foot strikes by {' and by '.join(parts)}" if parts else f"no foot strike by {' or '.join(times)}"


def strikes_of_feet(
    motion: Kinematics, time: Floats, feet: Mapping[str, str], has_pose: Mask | None = None
) -> dict[str, tuple[float, ...]]:
    """Strikes by side from kinematics: when a foot is farthest ahead of the pelvis (Zeni, Richards & Higginson, Gait
    Posture 27 (2008) 710).

    Frames without `has_pose` (n,) have no strike. Ahead is the horizontal x axis of the body that carries both feet
    and moves on the ground, as in OpenSim's models.
    """
    from scipy.signal import find_peaks

    root = root_of(motion.model, next(iter(feet.values())))
    ahead = motion.rotation[root][:, :, 0] * [1.0, 0.0, 1.0]
    length = np.linalg.norm(ahead, axis=1, keepdims=True)
    ahead = ahead / np.where(length > 0.0, length, 1.0)
    step = float(np.median(np.diff(time)))
    strikes: dict[str, tuple[float, ...]] = {}
    for side, body in feet.items():
        distance = ((motion.origin[body] - motion.origin[root]) * ahead).sum(axis=1)
        if has_pose is not None and has_pose.any():
            distance = np.interp(time, time[has_pose], distance[has_pose])
        swing = float(np.ptp(distance))
        if swing < 0.1:  # m: nobody walks
            strikes[side] = ()
            continue
        peaks, _ = find_peaks(distance, prominence=0.4 * swing, distance=max(int(SHORTEST / step), 1))
        strikes[side] = tuple(float(time[i]) for i in peaks if has_pose is None or has_pose[i - 1 : i + 2].all())
    return strikes


def root_of(model: OsimModel, body: str) -> str:
    """The body nearest to the ground on the way from it to `body`."""
    parent = {joint.child: joint.parent for joint in model.joints}
    while parent.get(body, GROUND) != GROUND:
        body = parent[body]
    return body


def strikes_of_events(events: tuple[MarkedEvent, ...]) -> dict[str, tuple[float, ...]]:
    """Strikes by side among the events of a recording."""
    labels = ("foot strike", "heel strike", "initial contact", "foot contact")
    strikes = [e for e in events if e.label.lower() in labels]
    return {side: tuple(sorted(e.time for e in strikes if e.side.lower() == side)) for side in SIDES}


def cycles_of(strikes: Strikes, window: tuple[float, float] | None = None) -> list[tuple[str, Cycle]]:
    """Cycles with their sides, right ones first; only those within the `window` (s).

    Raises `TrialError` where the strikes of a side are not finite.
    """
    cycles = []
    for side in SIDES:
        times = strikes.get(side, ())
        if not np.isfinite(times).all():
            raise TrialError(f"a foot strike of the {side} side is not a number")
        cycles += [(side, cycle) for cycle in cycles_between(times, SHORTEST, LONGEST)]
    if window is not None:
        cycles = [(s, c) for s, c in cycles if c.start >= window[0] - 1e-9 and c.end <= window[1] + 1e-9]
    return cycles
