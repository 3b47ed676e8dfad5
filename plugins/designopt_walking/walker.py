"""A musculoskeletal model with contact as expressions of its coordinates, speeds and activations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from designopt_mechanics.contacts import indentations, sphere_forces, sphere_loads
from designopt_mechanics.dynamics.matrices import kinetic_energy, potential_energy
from designopt_mechanics.dynamics.recursion import inverse_dynamics
from designopt_mechanics.loads import generalised_force
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import Point, Tree
from designopt_muscle.geometry.symbolic import path_length
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.tree import tree_of

from designopt.dynamics.system import Variable
from designopt.lazy import casadi as ca
from designopt.plugin import Quantity as Q
from designopt_walking.muscles import MuscleStates, muscle_states

Ranges = Mapping[str, tuple[float, float]]
#: A setting of models.
Friction = Annotated[Literal["smooth", "opensim"], Q("", "of the feet; opensim has a kink at its transition speed")]


@dataclass(frozen=True, eq=False)
class DeviceForces:
    """The forces that a device adds to a walker: generalised forces `moments` (N m or N) by coordinate, as expressions.

    `parameters` are design variables with their symbols and ranges, `controls` further controls (help torques, motors).
    """

    moments: Mapping[str, Any]
    parameters: Sequence[tuple[Variable, Any]] = ()
    controls: Sequence[tuple[Variable, Any]] = ()


@dataclass(frozen=True, eq=False)
class Walker:
    """A `model` as expressions of a `state` (coordinates z, speeds dz, accelerations ddz) and of `muscles`.

    `drives` are the symbols of the controls of coordinate actuators by their names. `ground_forces` (3, 1) N on each
    foot, by the body that carries its spheres, in the axes of the ground, and `pressure_centres` (3, 1) m: points of
    action on the floor, weighted by the normal forces. `devices` act on coordinates. `moments` are generalised forces
    (m, 1) by their origin: muscles, contacts, drives, devices, pull. `pull` (N) acts along the ground at the origin of
    the pelvis.
    """

    model: OsimModel
    state: TreeState
    muscles: MuscleStates
    drives: Mapping[str, Any]
    ground_forces: Mapping[str, Any]
    pressure_centres: Mapping[str, Any]
    indentation: Mapping[str, Any]
    moments: Mapping[str, Any]
    devices: Sequence[DeviceForces] = field(default_factory=tuple)
    pull: float = 0.0

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the free coordinates, in the order of the state."""
        return self.state.tree.names

    @property
    def angles(self) -> list[str]:
        """The coordinates in rad."""
        return [c.name for c in self.state.tree.coordinates if c.unit == "rad"]

    @property
    def mass(self) -> float:
        """The mass (kg) of all bodies."""
        return float(sum(f.body.mass for f in self.state.tree.frames if f.body is not None))

    @property
    def weight(self) -> float:
        """Mass times gravity (N)."""
        return float(self.mass * sum(g**2 for g in self.model.gravity.tolist()) ** 0.5)

    @cached_property
    def residual(self) -> Any:
        """(m, 1) equations of motion, zero for the accelerations of the motion: M ddz + h - J' w - moments."""
        moments = sum((value for value in self.moments.values()), ca.SX.zeros(self.state.z.shape))
        gravity = tuple(self.model.gravity.tolist())
        return ca.cse(inverse_dynamics(self.state, gravity) - moments)

    @cached_property
    def energy(self) -> tuple[Any, Any]:
        """Kinetic and potential energy (J)."""
        gravity = tuple(self.model.gravity.tolist())
        return kinetic_energy(self.state), potential_energy(self.state, gravity)

    def centre_of_mass(self) -> Any:
        """(3, 1) m."""
        bodies = [f for f in self.state.tree.frames if f.body is not None]
        moment = sum(
            (f.body.mass * self.state.position(Point(f.name, f.body.centre)) for f in bodies if f.body is not None),
            ca.SX.zeros(3),
        )
        return moment / self.mass

    def named(self, column: Any) -> dict[str, Any]:
        """The entries of a column (m, 1) by coordinate."""
        return {name: column[i] for i, name in enumerate(self.coordinates)}

    def with_device(self, device: Device) -> Walker:
        """The walker with a further device. Raises `ValueError` for a moment of an unknown coordinate."""
        forces = device(self)
        column = ca.SX.zeros(self.state.z.shape)
        for name, value in forces.moments.items():
            if name not in self.coordinates:
                raise ValueError(f"the device acts on '{name}', which is no coordinate ({', '.join(self.coordinates)})")
            column[self.coordinates.index(name)] += value
        devices = self.moments.get("devices", ca.SX.zeros(self.state.z.shape)) + column
        return replace(self, moments={**self.moments, "devices": devices}, devices=(*self.devices, forces))


def with_pull(walker: Walker, coordinate: str, force: float) -> Walker:
    """The walker with a constant `force` (N) in the direction of its forward `coordinate`."""
    if force == 0.0:
        return walker
    column = ca.SX.zeros(walker.state.z.shape)
    column[walker.coordinates.index(coordinate)] = force
    return replace(walker, moments={**walker.moments, "pull": column}, pull=force)


def idle_forces(model: OsimModel) -> list[str]:
    """A sentence on the forces of a model that `walker_of` leaves out: those that depend on the motion alone; none
    without any."""
    if not model.passive:
        return []
    names = ", ".join(force.name for force in model.passive)
    return [
        f"the forces of the file that depend on the motion alone take no part ({names}): joints end at the ranges of "
        "their coordinates; walk_track_3d has springs at joints (springs)"
    ]


def on_slope(model: OsimModel, slope: float) -> OsimModel:
    """The model on ground that rises by `slope` (rise over run): axes stay along and normal to the ground, and gravity
    turns."""
    if slope == 0.0:
        return model
    x, y, z = model.gravity.tolist()
    gravity = np.array([x + y * slope, y - x * slope, z * np.hypot(1.0, slope)]) / np.hypot(1.0, slope)
    return replace(model, gravity=gravity)


def with_mass(model: OsimModel, mass: float) -> OsimModel:
    """The model of a person of `mass` (kg): masses and inertias of all bodies times one factor. Lengths, muscles and
    contacts stay."""
    factor = mass / sum(body.mass for body in model.bodies)
    bodies = tuple(replace(b, mass=factor * b.mass, inertia=factor * b.inertia) for b in model.bodies)
    return replace(model, bodies=bodies)


#: A device: what it adds to a walker, from the walker's coordinates, speeds and muscles.
Device = Callable[[Walker], DeviceForces]


def walker_of(
    model: OsimModel,
    *,
    tree: Tree | None = None,
    ranges: Ranges | None = None,
    friction: Friction = "smooth",
    lengths: Callable[[TreeState], Mapping[str, Any]] | None = None,
    compliant: Collection[str] = (),
) -> Walker:
    """The walker of a `model`: its own tree or another one with the same body names; muscles have rigid tendons, those
    named `compliant` compliant ones.

    `ranges` of the coordinates decide which conditional points of paths need a switch. `lengths` gives expressions of
    the path lengths by muscle, such as `fits.PolynomialPaths`; others are straight between their points.
    """
    state = TreeState.symbols(tree or tree_of(model))
    fitted_lengths = lengths(state) if lengths is not None else {}
    paths = {
        m.name: fitted_lengths[m.name] if m.name in fitted_lengths else path_length(state, model, m, ranges)
        for m in model.muscles
    }
    muscles = muscle_states(state, model.muscles, paths, compliant)
    spheres = [replace(contact, friction=friction) for contact in model.contacts]
    forces, points = sphere_forces(state, spheres)
    feet = list(dict.fromkeys(sphere.centre.frame for sphere in spheres))
    forces_of_feet: dict[str, Any] = {}
    centres: dict[str, Any] = {}
    for foot in feet:
        indices = [i for i, sphere in enumerate(spheres) if sphere.centre.frame == foot]
        forces_of_feet[foot] = sum((forces[:, i] for i in indices), ca.SX.zeros(3))
        normal = [ca.dot(forces[:, i], ca.SX(list(spheres[i].plane.normal))) for i in indices]
        centres[foot] = sum((n * points[:, i] for n, i in zip(normal, indices, strict=True)), ca.SX.zeros(3)) / sum(
            normal
        )
    depth = indentations(state, spheres)
    drives = {actuator.name: ca.SX.sym(actuator.name) for actuator in model.actuators}
    driven = ca.SX.zeros(state.z.shape)
    for actuator in model.actuators:
        driven[state.tree.names.index(actuator.coordinate)] += actuator.optimal * drives[actuator.name]
    moments = {
        "muscles": ca.densify(muscles.arms @ muscles.force),
        "contacts": generalised_force(state, sphere_loads(state, spheres)),
        "drives": driven,
    }
    depths = {sphere.name: depth[i] for i, sphere in enumerate(spheres)}
    return Walker(model, state, muscles, drives, forces_of_feet, centres, depths, moments)
