"""Contacts: points of frames that press on planes of other frames, with friction; smooth in all they depend on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.lazy import casadi as ca
from designopt_mechanics.body import is_number
from designopt_mechanics.loads import Load, force_on, load_at
from designopt_mechanics.motions import unit
from designopt_mechanics.springs import positive
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import GROUND, Point

#: Part of the compliance's force below which the damping factor goes smoothly to zero when a point leaves quickly.
_RELEASE = 1e-2


class ContactError(ValueError):
    """An impossible contact; `field` names the wrong value."""

    def __init__(self, name: str, field: str, message: str) -> None:
        super().__init__(f"contact '{name}', {field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True, eq=False)
class Plane:
    """A plane fixed in `frame` through `place` (3) m; its unit `normal` (3) points to the free side."""

    frame: str = GROUND
    position: Any = (0.0, 0.0, 0.0)
    normal: tuple[float, float, float] = (0.0, 1.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "normal", unit(self.normal))


@dataclass(frozen=True, eq=False)
class Contact:
    """`point` in contact with `plane`, with friction.

    Normal force k p(s) (1 + a ds/dt), not negative: s (m) is the penetration of the point, p(s) = (s + sqrt(s^2 + e^2))
    / 2, k the `stiffness` (N/m), a the `dissipation` (s/m), e the `softness` (m) (Hunt and Crossley 1975, with exponent
    1). Friction is `friction` times the normal force, against the velocity v in the plane, times v / sqrt(v^2 + w^2): w
    is the `slip_speed` (m/s) below which the contact sticks like a damper. The plane's frame carries the opposite
    force.

    Numbers are checked, expressions are not. Raises `ContactError`.
    """

    name: str
    point: Point
    plane: Plane = Plane()
    stiffness: Any = 1e5
    dissipation: Any = 0.0
    friction: Any = 0.0
    slip_speed: float = 0.05
    softness: float = 1e-4

    def __post_init__(self) -> None:
        if self.point.frame == self.plane.frame:
            raise ContactError(self.name, "point", f"lies on '{self.plane.frame}' like the plane")
        for field in ("stiffness", "dissipation", "friction"):
            value = getattr(self, field)
            if is_number(value) and not 0.0 <= float(value) < np.inf:
                raise ContactError(self.name, field, f"{float(value):g} is not finite and at least 0")
        for field in ("slip_speed", "softness"):
            value = float(getattr(self, field))
            if not 0.0 < value < np.inf:
                raise ContactError(self.name, field, f"{value:g} is not finite and positive")


def gaps(state: TreeState, contacts: Sequence[Contact]) -> Any:
    """(k, 1) m between points and planes, negative where they press."""
    return ca.vertcat(ca.SX(0, 1), *(_gap(state, contact)[0] for contact in contacts))


def contact_forces(state: TreeState, contacts: Sequence[Contact]) -> Any:
    """(3, k) N on the points, in the axes of the ground. Raises `ValueError` for a state without rates."""
    return ca.horzcat(ca.SX(3, 0), *(_force(state, contact) for contact in contacts))


def contact_loads(state: TreeState, contacts: Sequence[Contact]) -> list[Load]:
    """The forces of contacts on the frames of their points and, opposite, of their planes."""
    loads = []
    for contact in contacts:
        force = _force(state, contact)
        loads.append(force_on(state, contact.point, force))
        loads.append(load_at(contact.plane.frame, state.position(contact.point), -force))
    return loads


def _gap(state: TreeState, contact: Contact) -> tuple[Any, Any]:
    """Distance of the point along the normal, and the normal (3, 1) in the axes of the ground."""
    plane = contact.plane
    normal = state.axes(plane.frame) @ ca.SX(list(plane.normal))
    return ca.dot(normal, state.position(contact.point) - state.position(Point(plane.frame, plane.position))), normal


def _force(state: TreeState, contact: Contact) -> Any:
    gap, normal = _gap(state, contact)
    frame = contact.plane.frame
    location, origin = state.position(contact.point), Point(frame)
    carried = state.velocity(origin) + ca.cross(state.angular_velocity(frame), location - state.position(origin))
    relative = state.velocity(contact.point) - carried
    apart = ca.dot(normal, relative)
    release = positive(1.0 - contact.dissipation * apart, _RELEASE) / positive(ca.SX(1.0), _RELEASE)
    pressed = contact.stiffness * positive(-gap, contact.softness) * release
    slip = relative - apart * normal
    return pressed * (normal - contact.friction * slip / ca.sqrt(ca.sumsqr(slip) + contact.slip_speed**2))
