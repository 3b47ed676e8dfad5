"""What follows from the state of a walker: forces, moments, energies and places, over the instants of a walk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from designopt_mechanics.tree import Point

from designopt.arrays import Floats
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt_walking.metabolics import metabolic_rates
from designopt_walking.system import foot_centres, foot_forces, side_of, stack_values
from designopt_walking.walker import Walker

#: Origins of generalised forces, in the order of `Observables.moments`.
ORIGINS = ("muscles", "devices", "contacts", "drives")


@dataclass(frozen=True, eq=False)
class Observables:
    """Over n instants, for k muscles and m coordinates; feet are right and left, axes x and y.

    `ground_force` (n, 2, 2) N and `pressure_centre` (n, 2) m along x; `heel` (n, 2) m along x of each foot's
    rear sphere; `indentation` (n,) m of the deepest sphere.
    `force` (n, k) N along the tendons, `fibre_length` (n, k) in optimal lengths, `fibre_speed` (n, k) in maximum speeds
    of shortening, `metabolic_rate` (n, k) W. `tendon_strain` (n, k), `tendon_power` (n, k) W at which tendons store
    energy and `tendon_energy` (n, k) J in them are 0 for rigid ones. `moments` (n, 4, m) in N m or N, by `ORIGINS`.
    `energy` (n, 2) J, kinetic and potential. `skeleton` and `left_leg` (n, v, 2) m are lines, separated by NaN.
    """

    ground_force: Floats
    pressure_centre: Floats
    heel: Floats
    indentation: Floats
    force: Floats
    fibre_length: Floats
    fibre_speed: Floats
    metabolic_rate: Floats
    tendon_strain: Floats
    tendon_power: Floats
    tendon_energy: Floats
    moments: Floats
    energy: Floats
    skeleton: Floats
    left_leg: Floats


def observables(walker: Walker, values: Mapping[str, Floats], parameters: Mapping[str, float]) -> Observables:
    """The observables of a walker whose variables have these `values` (n,) by name, and its devices these
    `parameters`."""
    rows, controls, names = _rows(walker)
    muscles, coordinates = walker.muscles, walker.coordinates
    results = rows(
        stack_values(values, coordinates),
        stack_values(values, coordinates, "{}_speed"),
        stack_values(values, muscles.names, "activation_{}"),
        stack_values(values, muscles.names, "excitation_{}"),
        stack_values(values, muscles.compliant, "tendon_force_{}"),
        stack_values(values, muscles.compliant, "force_rate_{}"),
        stack_values(values, controls),
        np.array([parameters[name] for name in names]),
    )
    n, k, m = len(results[0]), len(muscles.names), len(coordinates)
    shapes = {
        "ground_force": (n, 2, 2), "moments": (n, len(ORIGINS), m), "energy": (n, 2), "skeleton": (n, -1, 2),
        "left_leg": (n, -1, 2), "pressure_centre": (n, 2), "heel": (n, 2),
        "indentation": (n,),
    }  # fmt: skip
    observable_arrays = {
        field.name: array.reshape(shapes.get(field.name, (n, k)))
        for field, array in zip(fields(Observables), results, strict=True)
    }
    return Observables(**observable_arrays)


@lru_cache(maxsize=8)
def _rows(walker: Walker) -> tuple[Rows, tuple[str, ...], tuple[str, ...]]:
    """The function of a walker over rows, the names of its controls besides excitations, and of its parameters."""
    muscles, state = walker.muscles, walker.state
    controls = [*walker.drives.items(), *((v.name, s) for device in walker.devices for v, s in device.controls)]
    parameters = [(v.name, s) for device in walker.devices for v, s in device.parameters]
    forces, centres = foot_forces(walker), foot_centres(walker)
    none = ca.SX.zeros(state.z.shape)
    right, left = _lines(walker)
    results = [
        ca.vertcat(*(forces[side][:2] for side in "rl")),
        ca.vertcat(*(centres[side][0] for side in "rl")),
        ca.vertcat(*(_heel(walker, side) for side in "rl")),
        reduce(ca.fmax, walker.indentation.values()),
        muscles.force,
        muscles.fibre_length,
        muscles.fibre_speed,
        metabolic_rates(muscles),
        muscles.tendon_strain,
        muscles.force * muscles.tendon_speed,
        muscles.tendon_energy,
        ca.vertcat(*(walker.moments.get(origin, none) for origin in ORIGINS)),
        ca.vertcat(*walker.energy),
        right,
        left,
    ]
    arguments = [
        state.z, state.dz, muscles.activation, muscles.excitation, muscles.tendon_force, muscles.force_rate,
        ca.vertcat(ca.SX(0, 1), *(s for _, s in controls)), ca.vertcat(ca.SX(0, 1), *(s for _, s in parameters)),
    ]  # fmt: skip
    function = ca.Function("walk", arguments, [ca.vec(ca.SX(result)) for result in results])
    return Rows(function, compiled=False), tuple(n for n, _ in controls), tuple(n for n, _ in parameters)


def _heel(walker: Walker, side: str) -> Any:
    """Forward position of the rear sphere on the upper body of a foot."""
    heel = next(b.name for b in walker.model.bodies if b.name in walker.ground_forces and side_of(b.name) == side)
    spheres = [contact.centre for contact in walker.model.contacts if contact.centre.frame == heel]
    return walker.state.position(min(spheres, key=lambda centre: float(centre.position[0])))[0]


def _lines(walker: Walker) -> tuple[Any, Any]:
    """Two columns of places x, y: bones of trunk and right leg, and of the left leg.

    Bones go from joint to joint; the last one to twice the distance of its mass centre. Below the foot a line joins the
    spheres.
    """
    state, model = walker.state, walker.model

    def planar(body: str, position: Any = (0.0, 0.0, 0.0)) -> Any:
        return state.position(Point(body, tuple(position)))[:2]

    gap = ca.SX([np.nan, np.nan])
    parts: dict[bool, list[Any]] = {True: [], False: []}
    parents = {joint.parent for joint in model.joints}
    for joint in model.joints:
        side = joint.child.endswith("_l")
        if any(joint.parent == body.name for body in model.bodies):
            parts[side] += [planar(joint.parent), planar(joint.child), gap]
    for body in model.bodies:
        if body.name not in parents and body.mass > 0.0:
            tip = tuple((2.0 * np.asarray(body.centre)).tolist())
            parts[body.name.endswith("_l")] += [planar(body.name), planar(body.name, tip), gap]
    for foot in walker.ground_forces:
        soles = [planar(contact.centre.frame, contact.centre.position) for contact in model.contacts
                 if contact.centre.frame == foot]  # fmt: skip
        parts[foot.endswith("_l")] += [*soles, gap]
    right, left = (ca.vertcat(*(lines or [gap])) for lines in (parts[False], parts[True]))
    return right, left
