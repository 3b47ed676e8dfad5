"""Loaded feet of a recorded motion: on the ground or a treadmill they do not slide, unless columns are exchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from designopt.arrays import Floats
from designopt_muscle.geometry.kinematics import Kinematics, kinematics
from designopt_muscle.geometry.loads import BodyLoad
from designopt_muscle.osim.model import OsimModel

#: Share of the weight from which a body stands on the ground, and least number of frames in which one does.
_STANDS, _FRAMES = 0.3, 10
#: m/s, RMS, from which loaded bodies slide, up to which they stand (public walks: 0.06 to 0.14), and the share of the
#: recorded sliding up to which a change of columns explains it.
_SLIDES, _STILL, _EXPLAINED = 0.4, 0.25, 0.5

Curves = Mapping[str, Floats]


def sliding(motion: Kinematics, time: Floats, loads: Sequence[BodyLoad], weight: float) -> float:
    """RMS speed (m/s) of loaded bodies at their centres of pressure, relative to the median of each body over `time`
    (n,) s, which is that of its belt on a treadmill; NaN in a record with few loaded frames.

    A body is loaded where the force on it is more than 0.3 of the `weight` (N).
    """
    velocities: dict[str, list[Floats]] = {}
    for load in loads:
        centre = load.centre
        stands = np.isfinite(centre).all(axis=1) & (load.force[:, 1] > _STANDS * weight)
        stands[[0, -1]] = False
        frames = np.flatnonzero(stands)
        rotation, origin = motion.rotation[load.body], motion.origin[load.body]
        point = np.einsum("nji,nj->ni", rotation[frames], centre[frames] - origin[frames])
        before, after = (
            origin[frames + shift] + np.einsum("nij,nj->ni", rotation[frames + shift], point) for shift in (-1, 1)
        )
        velocity = (after - before) / (time[frames + 1] - time[frames - 1])[:, None]
        velocities.setdefault(load.body, []).append(velocity[np.isfinite(velocity).all(axis=1)])
    by_body = [velocity for parts in velocities.values() if len(velocity := np.concatenate(parts))]
    if sum(map(len, by_body)) < _FRAMES:
        return float("nan")
    slips = np.concatenate([velocity - np.median(velocity, axis=0) for velocity in by_body])
    return float(np.sqrt(np.mean((slips**2).sum(axis=1))))


def standing_notes(
    model: OsimModel, curves: Curves, time: Floats, loads: Sequence[BodyLoad], weight: float
) -> list[str]:
    """A note where bodies slide while they are loaded, with the change of columns without which they stand.

    `curves` (n,) rad or m are the free coordinates at `time` (n,) s, without noise; `loads` have the same frames.
    """
    speed = sliding(kinematics(model, dict(curves)), time, loads, weight)
    if not speed > _SLIDES:  # NaN is no speed
        return []
    bodies = ", ".join(dict.fromkeys(load.body for load in loads))
    subject = f"bodies on the ground ({bodies}) slide by {speed:.2g} m/s (RMS) while they carry weight"
    speeds = {
        words: sliding(kinematics(model, changed_curves), time, loads, weight)
        for words, changed_curves in _changes(model, curves)
    }
    cause = min(speeds, key=lambda words: np.nan_to_num(speeds[words], nan=np.inf), default="")
    if cause and speeds[cause] < min(_STILL, _EXPLAINED * speed):
        return [f"{subject}, and by {speeds[cause]:.2g} m/s with {cause}: correct the columns"]
    return [
        f"{subject}; on the ground or a treadmill they stand: are columns exchanged or of the opposite sign, is the"
        " motion another trial, or are the forces of another time?"
    ]


def _changes(model: OsimModel, curves: Curves) -> Iterator[tuple[str, dict[str, Floats]]]:
    """Mistakes in the columns in words, each with the curves without it: exchanged rotations of one side or both,
    exchanged sides, opposite signs."""
    turning = {c.name for c in model.coordinates if c.rotational}
    sides = {side: {_stem(n): n for n in curves if n.endswith(side)} for side in ("_r", "_l")}
    middle = {name: name for name in curves if _stem(name) == name}
    groups = [*sides.values(), middle]
    if both_sides := [(right, sides["_l"][stem]) for stem, right in sides["_r"].items() if stem in sides["_l"]]:
        yield "left and right exchanged", _exchanged(curves, both_sides)
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for group in groups:
        stems = [stem for stem, name in group.items() if name in turning]
        for i, first in enumerate(stems):
            for second in stems[i + 1 :]:
                pairs.setdefault((first, second), []).append((group[first], group[second]))
    for exchange in pairs.values():
        for subset in [[pair] for pair in exchange] + ([exchange] if len(exchange) > 1 else []):
            yield ", ".join(f"{a} and {b} exchanged" for a, b in subset), _exchanged(curves, subset)
    for stem in dict.fromkeys(stem for group in groups for stem in group):
        names = [group[stem] for group in groups if stem in group]
        for reversed_names in [[name] for name in names] + ([names] if len(names) > 1 else []):
            yield (
                f"the opposite sign of {' and '.join(reversed_names)}",
                {**curves, **{name: -curves[name] for name in reversed_names}},
            )


def _stem(name: str) -> str:
    return name[:-2] if name.endswith(("_r", "_l")) else name


def _exchanged(curves: Curves, pairs: Sequence[tuple[str, str]]) -> dict[str, Floats]:
    exchanged_curves = dict(curves)
    for first, second in pairs:
        exchanged_curves[first], exchanged_curves[second] = curves[second], curves[first]
    return exchanged_curves
