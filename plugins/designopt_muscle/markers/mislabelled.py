"""Markers whose recorded names do not fit the model: swapped with each other, or on the wrong spot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from designopt.arrays import Floats
from designopt_muscle.markers.minimise import Minimum, minimise
from designopt_muscle.markers.residuals import MarkerResiduals

#: Frames that are looked at, spread evenly.
_FRAMES = 12
#: Error (m) at which the weight of a marker has dropped to a quarter, rounds of weighing and steps in each.
_SCALE, _ROUNDS, _STEPS = 0.03, 3, 2
#: A marker may be swapped if a median frame has it farther than this (m) from the model's, fitted without it.
_DISTANCE = 0.05
#: A recorded marker this much nearer to a marker of the model than its own suggests a wrong label.
_NEARER = 0.8
#: Distance (m) of markers that are in no frame.
_NEVER = 1e3


def mislabelled(objective: MarkerResiduals, fit: Minimum, low: Floats, high: Floats, large: float) -> list[str]:
    """Sentences that name the markers which were probably swapped, and those `large` (m) away; `fit` is the minimum.

    A few frames are fitted anew with weights that fall with the error of a marker (Geman and McClure 1985), so that
    wrong markers cannot pull the model. Then a permutation of the labels that brings markers much closer is a swap.
    """
    from scipy.optimize import linear_sum_assignment

    frames = np.unique(np.linspace(0, len(fit.q) - 1, min(_FRAMES, len(fit.q))).astype(int))
    part, start = objective.take(frames), fit.q[frames]
    distance = _distances(part, start)
    away = np.diag(distance)
    nearer = (distance < _NEARER * away[:, None]) & (away[:, None] > _DISTANCE)
    if not nearer.any() and not ((away > large) & (away < _NEVER)).any():
        return []
    share = objective.weights
    for _ in range(_ROUNDS):
        weights = share / (1.0 + (np.where(away < _NEVER, away, 0.0) / _SCALE) ** 2) ** 2
        start = minimise(replace(part, weights=weights), start, low, high, steps=_STEPS).q
        distance = _distances(part, start)
        away = np.diag(distance)
    names = [m.name for m in objective.layout.markers]
    suspects = np.flatnonzero((away > _DISTANCE) & (away < _NEVER))
    notes = []
    rows, columns = linear_sum_assignment(distance[np.ix_(suspects, suspects)] ** 2)
    partner = dict(zip(suspects[rows], suspects[columns], strict=True))
    swapped = {i for i, j in partner.items() if i != j and distance[i, j] < 0.5 * away[i]}
    for i in sorted(swapped):
        j = partner[i]
        mutual = partner.get(j) == i and j in swapped
        if mutual and i < j:
            notes.append(
                f"the markers '{names[i]}' and '{names[j]}' are probably swapped: {1e3 * away[i]:.0f} and"
                f" {1e3 * away[j]:.0f} mm from the model, {1e3 * distance[i, j]:.0f} and"
                f" {1e3 * distance[j, i]:.0f} mm with exchanged names"
            )
        elif not mutual:
            notes.append(f"what is recorded as '{names[j]}' is probably the marker '{names[i]}'")
    for i in suspects:
        if i not in swapped and away[i] > large:
            notes.append(
                f"the marker '{names[i]}' is {1e3 * away[i]:.0f} mm from the model when it does not pull: look at its"
                " name, its spot on the body and its location on the model"
            )
    return notes


def _distances(part: MarkerResiduals, q: Floats) -> Floats:
    """(k, k) m between the markers of the model and the recorded ones, in a median frame."""
    apart = np.linalg.norm(part.positions(q)[:, :, None] - part.recorded[:, None], axis=3)
    return np.nan_to_num(_medians(apart), nan=_NEVER)


def _medians(values: Floats) -> Floats:
    """The lower median of each column over the first axis, without NaN; NaN for columns of NaN alone."""
    middle = np.maximum(np.isfinite(values).sum(axis=0) - 1, 0) // 2
    return np.asarray(np.take_along_axis(np.sort(values, axis=0), middle[None], axis=0)[0])
