"""Contents of a recording in a few lines of text."""

from __future__ import annotations

import numpy as np

from designopt_recordings.loads.contacts import contacts
from designopt_recordings.plate import ForcePlate
from designopt_recordings.recording import Recording

_WORST = 6  # markers named


def summary(recording: Recording) -> tuple[str, ...]:
    """Lines about frames, markers and their gaps, plates and their contacts, channels, events, and what was noted."""
    frames, markers = recording.markers.shape[:2]
    seconds = recording.time[-1] - recording.time[0] if frames else 0.0
    lines = [f"{frames} frames at {recording.rate:g} Hz, {seconds:.3f} s", _markers(recording, markers)]
    lines += [_plate(plate) for plate in recording.plates]
    if recording.analog is not None:
        lines.append(f"{len(recording.analog.names)} channels at {recording.analog.rate:g} Hz")
    if recording.events:
        lines.append("events: " + ", ".join(f"{e.side} {e.label} {e.time:.3f} s".strip() for e in recording.events))
    if recording.results is not None:
        lines.append(f"{len(recording.results.names)} results stored by the laboratory's software")
    return (*lines, *(f"note: {note}" for note in recording.notes))


def _markers(recording: Recording, count: int) -> str:
    missing = recording.missing()
    if not missing.any():
        return f"{count} markers, complete"
    share = missing.mean(axis=0)
    worst = [j for j in np.argsort(-share, kind="stable") if share[j] > 0.0]
    worst_markers = ", ".join(f"{recording.marker_names[j]} {share[j]:.0%}" for j in worst[:_WORST])
    remainder = f" and {len(worst) - _WORST} more" if len(worst) > _WORST else ""
    return f"{count} markers, {missing.mean():.1%} of their positions missing: {worst_markers}{remainder}"


def _plate(plate: ForcePlate) -> str:
    plate_contacts = contacts(plate)
    if not plate_contacts:
        return f"{plate.name}: unloaded"
    times = ", ".join(f"{c.start:.3f}-{c.end:.3f} s{'' if c.is_complete else ' (cut off)'}" for c in plate_contacts)
    return f"{plate.name}: up to {np.nanmax(plate.normal_force):.0f} N, in contact {times}"
