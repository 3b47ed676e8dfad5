"""A recording turned and shifted as a whole: another origin, another direction of walking."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt_recordings.errors import RecordingError
from designopt_recordings.recording import Recording


def moved(recording: Recording, rotation: ArrayLike, shift: ArrayLike = (0.0, 0.0, 0.0)) -> Recording:
    """`recording` in axes where each point x (m) is at `rotation` (3, 3) x + `shift` (3,) m.

    Markers and plates move together; moments stay about the origin of the new axes. Surfaces of plates without corners
    stay horizontal planes. Results of the laboratory's software are unchanged. Raises `RecordingError` for a matrix
    that is not a rotation, or that tilts a plate without corners.
    """
    turn, to = np.asarray(rotation, dtype=float), np.asarray(shift, dtype=float)
    if turn.shape != (3, 3) or not np.allclose(turn @ turn.T, np.eye(3), atol=1e-9) or np.linalg.det(turn) < 0.0:
        raise RecordingError("the matrix is not a rotation: its columns are not orthonormal, or it mirrors")
    upright = np.allclose(turn[:, 1], [0.0, 1.0, 0.0], atol=1e-9)
    plates = []
    for plate in recording.plates:
        if plate.corners is None and not upright:
            raise RecordingError(
                f"plate '{plate.name}' has no corners; its surface can only be turned about the vertical"
            )
        force = plate.force @ turn.T
        moment = plate.moment @ turn.T + np.cross(to, force)
        corners = None if plate.corners is None else plate.corners @ turn.T + to
        plates.append(replace(plate, force=force, moment=moment, corners=corners, level=plate.level + float(to[1])))
    return replace(recording, markers=recording.markers @ turn.T + to, plates=tuple(plates))


def about_vertical(angle: float) -> Floats:
    """(3, 3) rotation by `angle` rad about Y, from Z towards X."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def heading(recording: Recording, marker: str) -> float:
    """Angle (rad) by which `about_vertical` turns the recording so that `marker` travels along X, from first to last
    frame where it is present.

    Raises `RecordingError` where it travels less than 0.1 m.
    """
    path = recording.marker(marker)
    path = path[np.isfinite(path).all(axis=1)]
    way = path[-1] - path[0] if len(path) else np.zeros(3)
    if np.hypot(way[0], way[2]) < 0.1:
        raise RecordingError(f"marker '{marker}' travels less than 0.1 m; it has no heading")
    return float(np.arctan2(way[2], way[0]))
