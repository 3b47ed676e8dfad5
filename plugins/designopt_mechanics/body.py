"""A rigid body: mass, centre of mass and inertia, checked to be those of a body that can exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.lazy import casadi as ca

#: Parts of the largest moment of inertia by which the triangle inequality may fail: published tensors are rounded.
_ROUNDED = 1e-9
#: kg/m^3 that no material has: osmium has 22 590.
DENSEST = 23_000.0
#: kg m^2 of no body: published tensors of links without extent have such entries, of either sign.
NO_INERTIA = 1e-15


class PartError(ValueError):
    """A part that no mechanism has; `field` names the wrong value."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class BodyError(PartError):
    """A mass, centre or inertia that no body has."""


@dataclass(frozen=True, eq=False)
class Body:
    """`mass` (kg), `centre` of mass (3) m and `inertia` about it (kg m^2) in the axes of the frame that carries it.

    The inertia is three principal moments, a symmetric (3, 3) tensor, or for planar motion one number about z. Mass,
    centre and inertia may be CasADi expressions (of a parameter, say); only numbers are checked.

    Raises `BodyError` for negative masses, numbers that are not finite, and inertias of no mass distribution: one that
    is not symmetric or not positive semidefinite, or a principal moment larger than the sum of the other two. Some
    published tensors break the last rule (the clavicle of the MoBL-ARMS model, by 22 %); with ``triangle="ignored"``
    they are accepted: the mass matrix stays positive definite.
    """

    mass: Any
    centre: Any = (0.0, 0.0, 0.0)
    inertia: Any = (0.0, 0.0, 0.0)
    triangle: Literal["checked", "ignored"] = "checked"

    def __post_init__(self) -> None:
        if is_number(self.mass):
            mass = float(self.mass)
            if not np.isfinite(mass) or mass < 0.0:
                raise BodyError("mass", f"{mass:g} kg is not a mass; it must be finite and at least 0")
        if is_number(self.centre):
            vector("centre", self.centre, BodyError)
        if is_number(self.inertia):
            _check_inertia(tensor(self.inertia), triangle=self.triangle == "checked")


def is_number(value: Any) -> bool:
    """Whether a value is made of numbers, not of CasADi expressions."""
    if isinstance(value, (int, float, np.ndarray, np.generic)):
        return not (isinstance(value, np.ndarray) and value.dtype == object)
    return isinstance(value, Sequence) and not isinstance(value, str) and all(is_number(v) for v in value)


def is_not_zero(value: Any) -> bool:
    """Whether a value is an expression or a number other than 0."""
    return not is_number(value) or float(value) != 0.0


def vector(name: str, components: ArrayLike, error: type[ValueError] | Any = ValueError) -> Floats:
    """`components` as three finite numbers; raises `error`, which takes a field's name and a message."""
    array = np.asarray(components, dtype=np.float64)
    if array.shape != (3,):
        raise error(name, f"has shape {array.shape}, not (3,)")
    if not np.isfinite(array).all():
        raise error(name, f"{array.tolist()} is not finite")
    return array


def tensor(inertia: ArrayLike) -> Floats:
    """(3, 3) from principal moments, a tensor, or one number: that of a thin plate about its normal z.

    Raises `BodyError` for another shape.
    """
    array = np.asarray(inertia, dtype=np.float64)
    if array.shape == ():
        return np.diag([0.5, 0.5, 1.0]) * array
    if array.shape == (3,):
        return np.diag(array)
    if array.shape != (3, 3):
        raise BodyError("inertia", f"has shape {array.shape}, not (), (3,) or (3, 3)")
    return array


def inertia_tensor(body: Body) -> Any:
    """(3, 3) kg m^2 the inertia of a body as an expression, as `tensor` gives it from numbers."""
    inertia = body.inertia
    if is_number(inertia):
        return ca.SX(tensor(inertia))
    if isinstance(inertia, (tuple, list)):
        inertia = ca.vertcat(*(ca.horzcat(*row) if isinstance(row, (tuple, list)) else row for row in inertia))
    moments = ca.SX(inertia)
    if moments.is_scalar():
        moments = moments * ca.DM([0.5, 0.5, 1.0])
    return ca.diag(moments) if moments.shape == (3, 1) else moments


def _check_inertia(moments: Floats, *, triangle: bool) -> None:
    if not np.isfinite(moments).all():
        raise BodyError("inertia", "is not finite")
    scale = float(np.abs(moments).max())
    if np.abs(moments - moments.T).max() > _ROUNDED * scale:
        raise BodyError("inertia", "is not symmetric")
    a, b, c = (float(v) for v in np.linalg.eigvalsh(moments))
    if a < -max(_ROUNDED * scale, NO_INERTIA):
        raise BodyError("inertia", f"has the negative principal moment {a:g} kg m^2")
    if triangle and c > a + b + _ROUNDED * scale:
        raise BodyError(
            "inertia",
            f"no body has the principal moments {a:g}, {b:g}, {c:g} kg m^2: each must be at most the sum of the others",
        )
