"""Markers that are known, hidden: how well they are rebuilt (Nunes 2017, section 3.2.3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from designopt_recordings.recording import Recording

from designopt_wholebody.trial.analysis import Analysis


class NotRebuilt(ValueError):
    """A hidden marker has no place: its segment has too few others."""


def hide_marker(recording: Recording, marker: str) -> Recording:
    """The recording with one marker missing in the middle half of its frames."""
    hidden = recording.marker(marker).copy()
    hidden[_middle(recording)] = np.nan
    markers = recording.markers.copy()
    markers[:, recording.marker_names.index(marker)] = hidden
    return replace(recording, markers=markers)


def _middle(recording: Recording) -> slice:
    frames = len(recording.time)
    return slice(frames // 4, frames - frames // 4)


def rebuilt_error(analysis: Analysis, recording: Recording, visible: Recording) -> float | None:
    """RMS distance m of landmarks that were hidden from where they were measured, None without; raises `NotRebuilt`."""
    squares = []
    for j, name in enumerate(recording.marker_names):
        hidden = np.isfinite(recording.markers[:, j, 0]) & ~np.isfinite(visible.markers[:, j, 0])
        if hidden.any() and name in analysis.landmarks.positions:
            away = analysis.landmarks.positions[name][hidden] - recording.markers[hidden, j]
            squares.append((away**2).sum(axis=1))
    if squares and not np.isfinite(np.concatenate(squares)).any():
        raise NotRebuilt(
            "the hidden marker cannot be rebuilt: its segment has fewer than three other landmarks off a line"
        )
    return float(np.sqrt(np.nanmean(np.concatenate(squares)))) if squares else None
