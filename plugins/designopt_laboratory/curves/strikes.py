"""Foot strikes: from plates, from the motion of feet and pelvis, from events of the recording, or as stated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from designopt_muscle.geometry.kinematics import Kinematics
from designopt_muscle.models.errors import TrialError
from designopt_muscle.osim.model import GROUND, OsimModel
from designopt_recordings.recording import MarkedEvent
from designopt_recordings.signals.cycles import Cycle, cycles_between

from designopt.arrays import Floats
from designopt_laboratory.trial.feet import SIDES

Source = Literal["auto", "plates", "feet", "events"]
#: Shortest and longest duration (s) of a cycle of walking or running.
SHORTEST, LONGEST = 0.35, 2.5

Strikes = Mapping[str, tuple[float, ...]]


def strikes_of(
    source: Source, plates: Strikes, feet: Strikes, events: Strikes
) -> tuple[dict[str, tuple[float, ...]], tuple[str, ...]]:
    """Times (s) of strikes by side, and notes on where they come from.

    With ``auto``, those of the recording's events, else of the plates, else of the feet: for each side the first that
    gives a cycle.
    """
    order = {"events": events, "plates": plates, "feet": feet}
    strikes, notes = {}, []
    for side in SIDES:
        for name, times in order.items():
            if source in ("auto", name) and cycles_between(times.get(side, ()), SHORTEST, LONGEST):
                strikes[side] = tuple(times[side])
                words = {
                    "events": "events of the recording",
                    "plates": "force plates",
                    "feet": "the motion of the feet",
                }
                notes.append(f"cycles of the {side} side: foot strikes by {words[name]}")
                break
        else:
            strikes[side] = ()
    return strikes, tuple(notes)


def strikes_of_feet(motion: Kinematics, time: Floats, feet: Mapping[str, str]) -> dict[str, tuple[float, ...]]:
    """Strikes by side from kinematics: when a foot is farthest ahead of the pelvis (Zeni, Richards & Higginson, Gait
    Posture 27 (2008) 710).

    Ahead is the horizontal x axis of the body that carries both feet and moves on the ground, as in OpenSim's models.
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
        swing = float(np.ptp(distance))
        if swing < 0.1:  # m: nobody walks
            strikes[side] = ()
            continue
        peaks, _ = find_peaks(distance, prominence=0.4 * swing, distance=max(int(SHORTEST / step), 1))
        strikes[side] = tuple(float(time[i]) for i in peaks)
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
