"""Markers whose recorded names do not fit the model: swapped with each other, or on the wrong spot."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from designopt.arrays import Floats
from designopt.counts import first_of
from designopt_muscle.markers.minimise import Minimum, minimise
from designopt_muscle.markers.names import are_opposite
from designopt_muscle.markers.residuals import MarkerLayout, MarkerResiduals

#: Number of frames that are compared, spread evenly.
_FRAMES = 12
#: Error (m) at which the weight of a marker has dropped to a quarter, rounds of weighing and steps in each.
_SCALE, _ROUNDS, _STEPS = 0.03, 3, 2
#: A marker may be swapped if a median frame has it farther than this (m) from the model's, fitted without it.
_DISTANCE = 0.05
#: A recorded marker this much nearer to a marker of the model than its own suggests a wrong label.
_NEARER = 0.8
#: Frames in which exchanges of two markers are tried, and steps of each try.
_TRIED, _TRIES = 3, 8
#: Exchanges at most, and the share of the objective below which one is named.
_EXCHANGES, _CLOSER = 4, 0.5
#: RMS error (m) of an exchange that explains the recording.
_FITS = 0.05
#: Markers in a sentence.
_NAMED = 5
#: Distance (m) of markers that are in no frame.
_NEVER = 1e3


def label_doubts(residuals: MarkerResiduals, minimum: Minimum, low: Floats, high: Floats, large: float) -> list[str]:
    """Sentences that name the markers which were probably swapped, and those `large` (m) away from their `minimum`.

    Two markers of a body, of neighbours or of the two sides pull it out of place together: each exchange of two is
    fitted. Then a few frames are fitted anew with weights that fall with the error of a marker (Geman and McClure
    1985), so that wrong markers cannot pull the model, and a permutation of the labels that brings markers much closer
    is a swap.
    """
    from scipy.optimize import linear_sum_assignment

    frames = np.unique(np.linspace(0, len(minimum.q) - 1, min(_FRAMES, len(minimum.q))).astype(int))
    part, start = residuals.take(frames), minimum.q[frames]
    distance = _distances(part, start)
    away = np.diag(distance)
    nearer = (distance < _NEARER * away[:, None]) & (away[:, None] > _DISTANCE)
    if not nearer.any() and not ((away > large) & (away < _NEVER)).any():
        return []
    names = [m.name for m in residuals.layout.markers]
    part, start, notes = _exchanges(part, start, low, high)
    distance = _distances(part, start)
    away = np.diag(distance)
    share = residuals.weights
    for _ in range(_ROUNDS):
        weights = share / (1.0 + (np.where(away < _NEVER, away, 0.0) / _SCALE) ** 2) ** 2
        start = minimise(replace(part, weights=weights), start, low, high, steps=_STEPS).q
        distance = _distances(part, start)
        away = np.diag(distance)
    suspects = np.flatnonzero((away > _DISTANCE) & (away < _NEVER))
    rows, columns = linear_sum_assignment(distance[np.ix_(suspects, suspects)] ** 2)
    partner = dict(zip(suspects[rows], suspects[columns], strict=True))
    swaps = {i for i, j in partner.items() if i != j and distance[i, j] < 0.5 * away[i]}
    for i in sorted(swaps):
        j = partner[i]
        mutual = partner.get(j) == i and j in swaps
        if mutual and i < j:
            notes.append(
                f"the markers '{names[i]}' and '{names[j]}' are probably swapped: {1e3 * away[i]:.0f} and"
                f" {1e3 * away[j]:.0f} mm from the model, {1e3 * distance[i, j]:.0f} and"
                f" {1e3 * distance[j, i]:.0f} mm with exchanged names: correct their"
                " names in the recording"
            )
        elif not mutual:
            notes.append(f"what is recorded as '{names[j]}' is probably the marker '{names[i]}'")
    far = [i for i in suspects if i not in swaps and away[i] > large]
    if far:
        far.sort(key=lambda i: -away[i])
        distances = first_of([f"'{names[i]}' {1e3 * away[i]:.0f} mm" for i in far], _NAMED)
        notes.append(
            f"markers are far from the model when they do not pull: {distances}: look at their names, their spots on"
            " the body and their locations on the model"
        )
    return notes


def _exchanges(
    residuals: MarkerResiduals, start: Floats, low: Floats, high: Floats
) -> tuple[MarkerResiduals, Floats, list[str]]:
    """The objective with the recorded markers under their probable names, its minima, sentences on the exchanges."""
    notes: list[str] = []
    pairs = _neighbours(residuals.layout)
    frames = np.unique(np.linspace(0, len(start) - 1, min(_TRIED, len(start))).astype(int))
    names = [marker.name for marker in residuals.layout.markers]
    while pairs and len(notes) < _EXCHANGES:
        sample = residuals.take(frames)
        several = residuals.take(np.tile(frames, 1 + len(pairs)))
        observations = several.observations.reshape(1 + len(pairs), *sample.observations.shape).copy()
        for number, (i, j) in enumerate(pairs, 1):
            observations[number][:, [i, j]] = observations[number][:, [j, i]]
        several = replace(several, observations=observations.reshape(several.observations.shape))
        cost = _better_minimum(several, np.tile(start[frames], (1 + len(pairs), 1)), low, high)[1]
        first, *costs = np.median(cost.reshape(1 + len(pairs), -1), axis=1)
        best = int(np.argmin(costs))
        if costs[best] > min(_CLOSER * first, _FITS**2):
            break
        i, j = pairs.pop(best)
        notes.append(
            f"the markers '{names[i]}' and '{names[j]}' are probably swapped: {1e3 * np.sqrt(first):.0f} mm (RMS) from"
            f" the model, {1e3 * np.sqrt(costs[best]):.0f} mm with exchanged names: correct their"
            " names in the recording"
        )
        observations = residuals.observations.copy()
        observations[:, [i, j]] = observations[:, [j, i]]
        residuals = replace(residuals, observations=observations)
        start = _better_minimum(residuals, start, low, high)[0]
    return residuals, start, notes


def _better_minimum(residuals: MarkerResiduals, start: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The better minimum (n, m), and its objective (n,), of those from `start` and from the default pose there."""
    default = {c.name: c.default for c in residuals.layout.model.coordinates}
    root, defaults = residuals.layout.placing, np.array([default[name] for name in residuals.layout.coordinates])
    upright = np.where(root, start, np.clip(defaults, low, high))
    upright = minimise(residuals, upright, low, high, root, steps=_TRIES).q
    fits = [minimise(residuals, q, low, high, steps=_TRIES) for q in (start, upright)]
    better = fits[1].cost < fits[0].cost
    return np.where(better[:, None], fits[1].q, fits[0].q), np.where(better, fits[1].cost, fits[0].cost)


def _neighbours(layout: MarkerLayout) -> list[tuple[int, int]]:
    """Pairs of markers on one body, on two that a joint connects, or of the two sides of the body."""
    parent = {joint.child: joint.parent for joint in layout.model.joints}
    bodies, names = zip(*((marker.body, marker.name) for marker in layout.markers), strict=True)
    return [
        (i, j)
        for i, j in combinations(range(len(bodies)), 2)
        if bodies[i] == bodies[j]
        or parent.get(bodies[i]) == bodies[j]
        or parent.get(bodies[j]) == bodies[i]
        or are_opposite(names[i], names[j])
    ]


def _distances(residuals: MarkerResiduals, q: Floats) -> Floats:
    """(k, k) m between the markers of the model and the recorded ones, in a median frame."""
    apart = np.linalg.norm(residuals.positions(q)[:, :, None] - residuals.observations[:, None], axis=3)
    return np.nan_to_num(_medians(apart), nan=_NEVER)


def _medians(values: Floats) -> Floats:
    """The lower median of each column over the first axis, without NaN; NaN for columns of NaN alone."""
    middle = np.maximum(np.isfinite(values).sum(axis=0) - 1, 0) // 2
    return np.asarray(np.take_along_axis(np.sort(values, axis=0), middle[None], axis=0)[0])
