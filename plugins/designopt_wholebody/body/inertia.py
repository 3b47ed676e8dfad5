"""Mass, centre of mass and inertia tensor of a segment (Dumas, Cheze & Verriest 2007; Nunes 2017, table 5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.model.schema import Inertia


@dataclass(frozen=True, eq=False)
class MassProperties:
    """`mass` kg, `centre` (3,) m in the segment's frame, `tensor` (3, 3) kg m^2 about the centre in local axes."""

    mass: float
    centre: Floats
    tensor: Floats


def mass_of(inertia: Inertia, body_mass: float) -> float:
    """Mass of a segment, kg, of a body of `body_mass` kg."""
    if inertia.mass is not None:
        return inertia.mass
    assert inertia.mass_percent is not None
    return 0.01 * inertia.mass_percent * body_mass - inertia.mass_less


def mass_properties(
    inertia: Inertia, body_mass: float, landmarks: Mapping[str, Floats], origin: Floats, axes: Floats, *, mirrored: bool
) -> MassProperties:
    """The mass properties of a segment with its frame (`origin`, `axes` as columns) in a static posture.

    On the left side (`mirrored`) the z coordinate of the centre and the entries xz and yz of a tensor change sign.
    """
    mass = mass_of(inertia, body_mass)
    side = -1.0 if mirrored else 1.0
    if inertia.length is not None:
        assert inertia.centre is not None
        assert inertia.radii is not None
        first, second = inertia.length
        length = inertia.length_factor * float(np.linalg.norm(landmarks[second] - landmarks[first]))
        centre = 0.01 * length * np.array(inertia.centre) * np.array([1.0, 1.0, side])
        moments = mass * (0.01 * length * np.array(inertia.radii)) ** 2
        products = np.array(inertia.products)
        products = np.sign(products) * mass * (0.01 * length * products) ** 2
    else:
        assert inertia.tensor is not None
        centre = axes.T @ (np.mean([landmarks[name] for name in inertia.centre_at], axis=0) - origin)
        moments, products = np.array(inertia.tensor[:3]), np.array(inertia.tensor[3:])
    xy, xz, yz = products * np.array([1.0, side, side])
    tensor = np.diag(moments) + np.array([[0.0, xy, xz], [xy, 0.0, yz], [xz, yz, 0.0]])
    return MassProperties(mass, centre, tensor)


def is_possible(properties: MassProperties) -> bool:
    """Whether a distribution of mass can have this tensor: Π = ½ tr(J) I - J is positive semidefinite."""
    lowest = float(np.linalg.eigvalsh(0.5 * np.trace(properties.tensor) * np.eye(3) - properties.tensor)[0])
    return properties.mass > 0.0 and lowest >= -1e-12 * float(np.trace(properties.tensor))
