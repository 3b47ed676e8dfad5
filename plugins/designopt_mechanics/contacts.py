"""Contacts: points and spheres of frames that press on planes of other frames, with friction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
    """A plane fixed in `frame` through `position` (3) m; its unit `normal` (3) points to the free side."""

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


@dataclass(frozen=True, eq=False)
class SphereContact:
    """A sphere about `centre` with `radius` (m) on a half space below `plane`, smooth (Serrancoli et al. 2019).

    The force of Hertz with the `stiffness` (N/m^2) and of Hunt and Crossley with the `dissipation` (s/m), with friction
    after Stribeck: `static`, `dynamic` and `viscous` (s/m) coefficients, `transition_speed` (m/s). `constant_force`
    (m^2), `hertz_smoothing` (1/m) and `speed_smoothing` (s/m) round the onset of contact. The constants and the law are
    those of OpenSim's SmoothSphereHalfSpaceForce; the normal force is not clipped and is slightly negative where the
    sphere leaves quickly. `friction` "opensim" has a kink at the transition speed, "smooth" rounds it.

    Raises `ContactError` for impossible constants.
    """

    name: str
    centre: Point
    radius: float
    plane: Plane = Plane()
    stiffness: float = 3067776.0
    dissipation: float = 2.0
    static: float = 0.8
    dynamic: float = 0.8
    viscous: float = 0.5
    transition_speed: float = 0.2
    constant_force: float = 1e-5
    hertz_smoothing: float = 300.0
    speed_smoothing: float = 50.0
    friction: Literal["opensim", "smooth"] = "smooth"

    def __post_init__(self) -> None:
        if self.centre.frame == self.plane.frame:
            raise ContactError(self.name, "centre", f"lies on '{self.plane.frame}' like the plane")
        for field in ("static", "dynamic", "viscous"):
            if not 0.0 <= (value := float(getattr(self, field))) < np.inf:
                raise ContactError(self.name, field, f"{value:g} is not finite and at least 0")
        for field in (
            "radius", "stiffness", "dissipation", "transition_speed", "constant_force", "hertz_smoothing",
            "speed_smoothing",
        ):  # fmt: skip
            if not 0.0 < (value := float(getattr(self, field))) < np.inf:
                raise ContactError(self.name, field, f"{value:g} is not finite and positive")
        if self.friction not in ("opensim", "smooth"):
            raise ContactError(self.name, "friction", f"'{self.friction}' is neither opensim nor smooth")


def indentations(state: TreeState, spheres: Sequence[SphereContact]) -> Any:
    """(k, 1) m by which spheres reach into their half spaces, negative in the air."""
    return ca.vertcat(ca.SX(0, 1), *(s.radius - _plane_gap(state, s.centre, s.plane)[0] for s in spheres))


def sphere_forces(state: TreeState, spheres: Sequence[SphereContact]) -> tuple[Any, Any]:
    """Forces (3, k) N on the spheres and the points (3, k) m at which they act, in the axes of the ground.

    Raises `ValueError` for a state without rates.
    """
    forces, points = [ca.SX(3, 0)], [ca.SX(3, 0)]
    for sphere in spheres:
        force, at = _sphere_force(state, sphere)
        forces.append(force)
        points.append(at)
    return ca.horzcat(*forces), ca.horzcat(*points)


def sphere_loads(state: TreeState, spheres: Sequence[SphereContact]) -> list[Load]:
    """The forces of spheres on their frames and, opposite, on those of their planes."""
    forces, points = sphere_forces(state, spheres)
    loads = []
    for i, sphere in enumerate(spheres):
        loads.append(load_at(sphere.centre.frame, points[:, i], forces[:, i]))
        if sphere.plane.frame != GROUND:
            loads.append(load_at(sphere.plane.frame, points[:, i], -forces[:, i]))
    return loads


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
    return _plane_gap(state, contact.point, contact.plane)


def _plane_gap(state: TreeState, point: Point, plane: Plane) -> tuple[Any, Any]:
    """Distance of the point along the normal, and the normal (3, 1) in the axes of the ground."""
    normal = state.axes(plane.frame) @ ca.SX(list(plane.normal))
    return ca.dot(normal, state.position(point) - state.position(Point(plane.frame, plane.position))), normal


def _velocity_at(state: TreeState, frame: str, location: Any) -> Any:
    """(3, 1) m/s of the point of a frame that is at `location` (3, 1) now."""
    origin = Point(frame)
    return state.velocity(origin) + ca.cross(state.angular_velocity(frame), location - state.position(origin))


#: Width, in transition speeds, of the rounded corner of the smooth friction.
_CORNER = 0.05


def _sphere_force(state: TreeState, sphere: SphereContact) -> tuple[Any, Any]:
    gap, normal = _plane_gap(state, sphere.centre, sphere.plane)
    R, c, E = sphere.radius, sphere.dissipation, sphere.stiffness
    d = R - gap
    at = state.position(sphere.centre) - normal * (R - 0.5 * d)
    v = _velocity_at(state, sphere.centre.frame, at)
    if sphere.plane.frame != GROUND:
        v = v - _velocity_at(state, sphere.plane.frame, at)
    v_n = -ca.dot(normal, v)
    v_t = v + v_n * normal
    k = 0.5 * E ** (2.0 / 3.0)
    hertz = 4.0 / 3.0 * k * (R * k) ** 0.5 * ca.sqrt(d**2 + sphere.constant_force) ** 1.5
    hertz *= 0.5 + 0.5 * ca.tanh(sphere.hertz_smoothing * d)
    release = 0.5 + 0.5 * ca.tanh(sphere.speed_smoothing * (v_n + 2.0 / (3.0 * c)))
    f_n = hertz * (1.0 + 1.5 * c * v_n) * release
    s = ca.sqrt(ca.sumsqr(v_t) + sphere.constant_force)
    r = s / sphere.transition_speed
    if sphere.friction == "smooth":
        sliding = 0.5 * (r + 1.0 - ca.sqrt((r - 1.0) ** 2 + _CORNER**2))
    else:
        sliding = ca.fmin(r, 1.0)
    stribeck = sphere.dynamic + 2.0 * (sphere.static - sphere.dynamic) / (1.0 + r**2)
    return f_n * normal - f_n * (sliding * stribeck + sphere.viscous * s) * v_t / s, at


def _force(state: TreeState, contact: Contact) -> Any:
    gap, normal = _gap(state, contact)
    relative = state.velocity(contact.point) - _velocity_at(state, contact.plane.frame, state.position(contact.point))
    apart = ca.dot(normal, relative)
    release = positive(1.0 - contact.dissipation * apart, _RELEASE) / positive(ca.SX(1.0), _RELEASE)
    normal_force = contact.stiffness * positive(-gap, contact.softness) * release
    slip = relative - apart * normal
    return normal_force * (normal - contact.friction * slip / ca.sqrt(ca.sumsqr(slip) + contact.slip_speed**2))
