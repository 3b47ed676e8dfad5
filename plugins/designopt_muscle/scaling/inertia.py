"""Mass and inertia of a scaled body, as OpenSim computes them."""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats

#: Factors closer than this are equal (Simbody's significant digits of a double).
_EQUAL = 2e-14


def scaled_inertia(mass: float, inertia: Floats, factors: Floats, preserve_mass: bool) -> tuple[float, Floats]:
    """Mass and inertia (3, 3) after scaling by `factors` (3,) along the axes; the mass stays with `preserve_mass`.

    Equal factors s multiply the inertia by s^2 (and by the mass'). For unequal ones the body is a cylinder about the
    axis of its smallest moment, with the radius and length that its moments have, each scaled along its axes; products
    of inertia follow the two axes. These are the rules of OpenSim 4.6 (``Body::scaleInertialProperties``).
    """
    volume = 1.0 if preserve_mass else float(abs(np.prod(factors)))
    new_mass = mass * volume
    if new_mass <= np.finfo(float).eps:
        return new_mass, np.zeros((3, 3))
    if np.ptp(factors) <= _EQUAL * max(1.0, float(np.max(factors))):
        return new_mass, np.asarray(inertia * volume * factors[0] ** 2)
    axis = int(np.argmin(np.diag(inertia)))
    across = [i for i in range(3) if i != axis]
    radius2 = max(2.0 * inertia[axis, axis] / mass, 0.0)
    length2 = max(12.0 * (inertia[across[0], across[0]] / mass - 0.25 * radius2), 0.0)
    radius2 *= factors[across[0]] * factors[across[1]]
    length2 *= factors[axis] ** 2
    new_inertia = inertia * np.outer(factors, factors) * volume
    new_inertia[axis, axis] = 0.5 * new_mass * radius2
    for i in across:
        new_inertia[i, i] = new_mass * (length2 / 12.0 + 0.25 * radius2)
    return new_mass, np.asarray(new_inertia)
