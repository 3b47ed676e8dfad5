"""A walker in space that drives or muscles move: contact spheres, drives and springs of joints as settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from designopt_mechanics.contacts import SphereContact
from designopt_mechanics.tree import Point
from designopt_muscle.geometry.fits import PolynomialPaths, polynomial_paths
from designopt_muscle.osim.model import GROUND, CoordinateActuator, OsimModel, OsimMuscle

from designopt.plugin import Quantity as Q
from designopt.study.language.findings import nearest_or_all
from designopt_walking.programs.gait import GaitError, GaitRanges, plain, ranged_tree
from designopt_walking.walker import DeviceForces, Friction, Ranges, Walker, walker_of


@dataclass(frozen=True)
class Sphere:
    """Settings of a contact sphere on the ground y = 0."""

    body: Annotated[str, Q("", "that carries it; a name without its side, as calcn: on both, mirrored in z")]
    centre: Annotated[tuple[float, float, float], Q("m", "place in the axes of the body")]
    radius: Annotated[float, Q("m", "of the sphere", gt=0)]
    stiffness: Annotated[float, Q("N/m^2", "of the material", gt=0)] = 1e6
    dissipation: Annotated[float, Q("s/m", "of Hunt and Crossley", gt=0)] = 2.0
    friction: Annotated[float, Q("", "coefficient, static and dynamic; the viscous one is 0.5 s/m", ge=0)] = 0.8


@dataclass(frozen=True)
class JointSpring:
    """Settings of a spring and damper at a coordinate."""

    stiffness: Annotated[float, Q("N m/rad", "of the spring", ge=0)] = 0.0
    damping: Annotated[float, Q("N m s/rad", "of the damper", ge=0)] = 0.0
    rest: Annotated[float, Q("rad", "angle without torque")] = 0.0


@dataclass(frozen=True)
class MuscleSettings:
    """Settings of muscles with rigid tendons (De Groote et al. 2016)."""

    passive: Annotated[bool, Q("", "passive forces of the fibres")] = True
    active_width: Annotated[float, Q("", "factor on the width of the active force-length curve of the file", gt=0)] = (
        1.0
    )
    least_activation: Annotated[
        float, Q("", "of activations and excitations, instead of that of the file", ge=0, lt=1)
    ] = 0.01
    degree: Annotated[int, Q("", "of the polynomials for the lengths of the paths", ge=1, le=8)] = 4


@dataclass(frozen=True)
class DrivenJoints:
    """The drives and springs of the joints: optimal `torques` (N m) of drives by coordinate, with or without its side,
    where that of the model file does not suit, and `torque` (N m) where file and muscles have none; `springs` by
    coordinate."""

    torque: float
    torques: Mapping[str, float]
    springs: Mapping[str, JointSpring]


def sphere_contacts(model: OsimModel, spheres: Sequence[Sphere]) -> tuple[SphereContact, ...]:
    """The contacts of `spheres` after those of the model. Raises `GaitError` for unknown bodies."""
    bodies = [body.name for body in model.bodies]
    contacts = list(model.contacts)
    for number, sphere in enumerate(spheres, 1):
        x, y, z = sphere.centre
        right, left = (f"{sphere.body}_{side}" for side in "rl")
        if sphere.body in bodies:
            centres = {sphere.body: (x, y, z)}
        elif right in bodies and left in bodies:
            centres = {right: (x, y, z), left: (x, y, -z)}
        else:
            carriers = sorted({*bodies, *map(plain, bodies)})
            raise GaitError(
                "spheres", f"'{sphere.body}' is no body of the model{nearest_or_all(sphere.body, carriers)}"
            )
        for name, centre in centres.items():
            contacts.append(
                SphereContact(
                    f"{name}_sphere_{number}",
                    Point(name, centre),
                    sphere.radius,
                    stiffness=sphere.stiffness,
                    dissipation=sphere.dissipation,
                    static=sphere.friction,
                    dynamic=sphere.friction,
                )
            )
    return tuple(contacts)


def floating(model: OsimModel) -> list[str]:
    """The coordinates of joints with the ground, which nothing drives."""
    joints = {joint.name for joint in model.joints if joint.parent == GROUND}
    return [c.name for c in model.coordinates if c.joint in joints]


def joint_coordinates(model: OsimModel) -> list[str]:
    """The free coordinates of joints between bodies."""
    excluded_names = {*floating(model), *(c.name for c in model.coordinates if c.locked)}
    return [name for name in model.free if name not in excluded_names]


def joint_drives(
    model: OsimModel, joints: DrivenJoints, muscle_coordinates: Collection[str] = ()
) -> tuple[CoordinateActuator, ...]:
    """``<coordinate>_drive`` at each free coordinate but those of the pelvis in space: a stated one, that of the file,
    or one with the usual torque where no muscle crosses it (`muscle_coordinates`); none for a torque of 0."""
    of_file = {actuator.coordinate: actuator for actuator in model.actuators}
    drives = []
    for name in joint_coordinates(model):
        torque = joints.torques.get(name, joints.torques.get(plain(name)))
        if torque is None and name in of_file:
            drives.append(replace(of_file[name], name=f"{name}_drive"))
            continue
        usual = 0.0 if name in muscle_coordinates else joints.torque
        if optimal := usual if torque is None else torque:
            drives.append(CoordinateActuator(f"{name}_drive", name, optimal, -1.0, 1.0))
    return tuple(drives)


@dataclass(frozen=True)
class Feet:
    """The contact of the feet with the ground: `spheres` beside those of the model, and the form of their
    `friction`."""

    spheres: Sequence[Sphere]
    friction: Friction


def torque_driven(model: OsimModel, feet: Feet, joints: DrivenJoints, ranges: Ranges) -> Walker:
    """The walker of a model without its muscles, with drives at all joints.

    Raises `GaitError` for settings that name what the model does not have, and for a model with further forces.
    """
    return _driven_walker(replace(model, muscles=()), feet, joints, ranges)


def muscle_driven(
    model: OsimModel, feet: Feet, joints: DrivenJoints, ranges: Ranges, muscles: MuscleSettings
) -> Walker:
    """The walker of a model with its muscles, whose tendons are rigid and whose path lengths are polynomials within the
    `ranges` of all coordinates. Raises `GaitError` as `torque_driven`."""
    try:
        fits = polynomial_paths(model, ranges, every=True, degree=muscles.degree)
    except ValueError as error:
        raise GaitError("ranges", str(error)) from None
    model = replace(model, muscles=tuple(_with_settings(muscle, muscles) for muscle in model.muscles))
    return _driven_walker(model, feet, joints, ranges, fits)


def _with_settings(muscle: OsimMuscle, settings: MuscleSettings) -> OsimMuscle:
    """The muscle of a file with the `settings` of all."""
    width = settings.active_width * muscle.shape.get("active_force_width_scale", 1.0)
    shape = {**muscle.shape, "active_force_width_scale": width}
    if not settings.passive:
        shape["ignore_passive_fiber_force"] = 1.0
    return replace(muscle, min_control=settings.least_activation, shape=shape)


def _driven_walker(
    model: OsimModel, feet: Feet, joints: DrivenJoints, ranges: Ranges, fits: PolynomialPaths | None = None
) -> Walker:
    """The walker of a model with its muscles, whose path lengths are `fits`."""
    if model.passive:
        forces = ", ".join(force.name for force in model.passive)
        way = "take them out of the file, and state springs at their joints (springs)"
        raise GaitError("model", f"has forces that depend on the motion alone ({forces}): {way}")
    _check_joints(model, joints)
    contacts = sphere_contacts(model, feet.spheres)
    muscle_coordinates = {name for fit in fits.fits for name in fit.coordinates} if fits else set()
    driven = replace(model, contacts=contacts, actuators=joint_drives(model, joints, muscle_coordinates))
    tree = ranged_tree(driven, GaitRanges(ranges=ranges), usual={})
    walker = walker_of(driven, tree=tree, friction=feet.friction, lengths=fits)
    return walker.with_device(lambda w: _springs(w, joints.springs)) if joints.springs else walker


def _check_joints(model: OsimModel, joints: DrivenJoints) -> None:
    """Raise `GaitError` for torques and springs of unknown coordinates and of the joint with the ground."""
    in_space, names = floating(model), joint_coordinates(model)
    for setting, entries in (("torques", joints.torques), ("springs", joints.springs)):
        for name in entries:
            if name in in_space:
                raise GaitError(setting, f"'{name}' is of the joint with the ground, which only the ground force moves")
            if name not in {*names, *map(plain, names)}:
                raise GaitError(setting, f"'{name}' is no coordinate of a joint{nearest_or_all(name, names)}")


def _springs(walker: Walker, springs: Mapping[str, JointSpring]) -> DeviceForces:
    """The torques of springs and dampers."""
    angles, rates = walker.named(walker.state.z), walker.named(walker.state.dz)
    moments: dict[str, Any] = {}
    for name in walker.coordinates:
        spring = springs.get(name, springs.get(plain(name)))
        if spring is not None:
            moments[name] = -spring.stiffness * (angles[name] - spring.rest) - spring.damping * rates[name]
    return DeviceForces(moments)
