"""A force plate: the wrench that it exerts on the subject, in the laboratory's frame, and its centre of pressure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Mask
from designopt_recordings.arrays import checked_array
from designopt_recordings.errors import RecordingError

_WALL = 0.1  # sine of the angle to the vertical within which a surface is a wall


@dataclass(frozen=True, eq=False)
class ForcePlate:
    """`force` (k, 3) N and `moment` (k, 3) N·m of a plate on the subject, laboratory frame, Y up.

    The moment is about the laboratory's origin: unlike a centre of pressure it stays finite while the plate is
    unloaded. `corners` (4, 3) m are those of the working surface, in order around it; without corners the surface is
    the horizontal plane through `level` m. Samples are at `rate` Hz from `start` s on.
    """

    name: str
    rate: float
    force: Floats
    moment: Floats
    corners: Floats | None = None
    level: float = 0.0
    start: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "force", checked_array(f"force of plate '{self.name}'", self.force, (None, 3)))
        object.__setattr__(
            self, "moment", checked_array(f"moment of plate '{self.name}'", self.moment, (len(self.force), 3))
        )
        if self.corners is not None:
            object.__setattr__(self, "corners", checked_array(f"corners of plate '{self.name}'", self.corners, (4, 3)))
        if not (np.isfinite(self.rate) and self.rate > 0.0):
            raise RecordingError(f"the rate of plate '{self.name}' is {self.rate:g} Hz; it must be positive")

    @property
    def time(self) -> Floats:
        """(k,) times of the samples, s."""
        return self.start + np.arange(len(self.force)) / self.rate

    @property
    def centre(self) -> Floats:
        """(3,) a point of the surface, m: its centre, or the point below the origin where no corners are known."""
        if self.corners is None:
            return np.array([0.0, self.level, 0.0])
        return np.asarray(self.corners.mean(axis=0))

    @property
    def normal(self) -> Floats:
        """(3,) unit normal of the surface, away from it: upwards.

        Of a wall it is that of the corners' order in C3D files: seen by who pushes against it, they go clockwise.
        """
        if self.corners is None:
            return np.array([0.0, 1.0, 0.0])
        across = np.cross(self.corners[3] - self.corners[1], self.corners[2] - self.corners[0])
        length = float(np.linalg.norm(across))
        if not length > 0.0:
            raise RecordingError(f"the corners of plate '{self.name}' span no surface")
        return np.asarray(across / (length if across[1] > -_WALL * length else -length))

    @property
    def normal_force(self) -> Floats:
        """(k,) N, the force on the subject across the surface, positive while it is pushed away from the plate."""
        return np.asarray(self.force @ self.normal)

    def centre_of_pressure(self, is_loaded: Mask) -> tuple[Floats, Floats]:
        """Centre of pressure (k, 3) m and free moment (k,) N·m about the upward normal of the surface.

        The wrench is the force through this point of the surface and this moment. Where not `is_loaded` (k,) the point
        is the centre of the surface and the moment zero, so that neither carries noise or NaN on.
        """
        normal, centre, across = self.normal, self.centre, self.normal_force
        if not (across[is_loaded] > 0.0).all():
            raise RecordingError(f"plate '{self.name}' counts as loaded where its normal force is not positive")
        about = self.moment[is_loaded] - np.cross(centre, self.force[is_loaded])
        arm = np.cross(normal, about) / across[is_loaded, None]
        points = np.tile(centre, (len(is_loaded), 1))
        points[is_loaded] = centre + arm
        free = np.zeros(len(is_loaded))
        free[is_loaded] = (about - np.cross(arm, self.force[is_loaded])) @ normal
        return points, free
