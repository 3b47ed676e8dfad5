"""Centre of pressure and free moment of a plate: the point where the force passes through the surface, and the
remaining moment.
"""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats, Mask
from designopt_recordings.errors import RecordingError
from designopt_recordings.plate import ForcePlate


def normal_force(plate: ForcePlate) -> Floats:
    """(k,) N, the force on the subject across the surface, positive while it is pushed away from the plate."""
    return np.asarray(plate.force @ plate.normal)


def centre_of_pressure(plate: ForcePlate, is_loaded: Mask) -> tuple[Floats, Floats]:
    """Centre of pressure (k, 3) m and free moment (k,) N·m about the upward normal of the surface.

    The wrench is the force through this point of the surface and this moment. Where not `is_loaded` (k,) the point is
    the centre of the surface and the moment zero, so that neither carries noise or NaN on.
    """
    normal, centre = plate.normal, plate.centre
    across = normal_force(plate)
    if not (across[is_loaded] > 0.0).all():
        raise RecordingError(f"plate '{plate.name}' counts as loaded where its normal force is not positive")
    about = plate.moment[is_loaded] - np.cross(centre, plate.force[is_loaded])
    arm = np.cross(normal, about) / across[is_loaded, None]
    points = np.tile(centre, (len(is_loaded), 1))
    points[is_loaded] = centre + arm
    free = np.zeros(len(is_loaded))
    free[is_loaded] = (about - np.cross(arm, plate.force[is_loaded])) @ normal
    return points, free
