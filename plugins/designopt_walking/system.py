"""A walker as a system for collocation: residual form, accelerations are unknowns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from designopt_muscle.curves import TENDON_FORCES

from designopt.arrays import Floats
from designopt.dynamics.system import System, Variable
from designopt_walking.walker import Walker

#: Speeds without a range of their own: rad/s or m/s.
FASTEST = 50.0


def side_of(body: str) -> str:
    """The part of an output's name that says which foot: the ending of a body's name, or all of it."""
    match = re.search(r"_([rl])$", body)
    return match.group(1) if match else body


Entries = Sequence[tuple[Variable, Any]]


def walking_system(walker: Walker, outputs: Entries = (), data: Entries = (), axes: str = "xy") -> System:
    """The equations of motion, of the activations and of compliant tendons.

    States: the coordinates, ``<coordinate>_speed``, ``activation_<muscle>``, of compliant tendons
    ``tendon_force_<muscle>``. Controls: ``excitation_<muscle>``, the drives by name, those of devices. Unknowns:
    ``<coordinate>_acceleration``, and as algebraic variables, because fibres do not depend on them linearly, the rates
    ``force_rate_<muscle>`` for which tendons and fibres are in equilibrium. Parameters: those of devices. Outputs:
    the ground forces along `axes`, ``ground_x_<side>`` and so on, and further ones; `data` as stated.
    """
    state, muscles = walker.state, walker.muscles
    coordinates = state.tree.coordinates
    residual = walker.residual
    states: list[tuple[Variable, Any, Any]] = []
    unknowns: list[tuple[Variable, Any, Any]] = []
    for i, c in enumerate(coordinates):
        states.append((Variable(c.name, c.unit, c.low, c.high), state.z[i], state.dz[i]))
        unknowns.append((Variable(f"{c.name}_acceleration", f"{c.unit}/s^2"), state.ddz[i], residual[i]))
    for i, c in enumerate(coordinates):
        states.append((Variable(f"{c.name}_speed", f"{c.unit}/s", -FASTEST, FASTEST), state.dz[i], state.ddz[i]))
    controls: list[tuple[Variable, Any]] = []
    for j, muscle in enumerate(muscles.muscles):
        low, high = muscle.min_control, muscle.max_control
        activation = Variable(f"activation_{muscle.name}", "", low, high)
        states.append((activation, muscles.activation[j], muscles.activation_rate[j]))
        controls.append((Variable(f"excitation_{muscle.name}", "", low, high), muscles.excitation[j]))
    algebraic: list[tuple[Variable, Any, Any]] = []
    for j, name in enumerate(muscles.compliant):
        force, rate = Variable(f"tendon_force_{name}", "", *TENDON_FORCES), Variable(f"force_rate_{name}", "1/s")
        states.append((force, muscles.tendon_force[j], muscles.force_rate[j]))
        algebraic.append((rate, muscles.force_rate[j], muscles.equilibrium[j]))
    for actuator in walker.model.actuators:
        controls.append((Variable(actuator.name, "", actuator.low, actuator.high), walker.drives[actuator.name]))
    for device in walker.devices:
        controls += device.controls
    return System.from_expressions(
        "walker",
        states=states,
        unknowns=unknowns,
        controls=controls,
        algebraic=algebraic,
        parameters=[entry for device in walker.devices for entry in device.parameters],
        data=data,
        outputs=[*ground_outputs(walker, axes), *outputs],
    )


def stack_values(values: Mapping[str, Floats], names: Sequence[str], pattern: str = "{}") -> Floats:
    """(n, k) `values` (n,) of k variables of `walking_system`, named by a `pattern` with the names of coordinates,
    muscles or drives: ``{}_speed``, ``activation_{}``."""
    columns = [values[pattern.format(name)] for name in names]
    return np.stack(columns, axis=1) if columns else np.zeros((len(next(iter(values.values()))), 0))


def ground_outputs(walker: Walker, axes: str = "xy") -> Iterator[tuple[Variable, Any]]:
    """The ground force of each foot (N) along the `axes`: x forward, y upward, z to the right."""
    for side, force in foot_forces(walker).items():
        for axis in axes:
            yield Variable(f"ground_{axis}_{side}", "N"), force["xyz".index(axis)]


def foot_forces(walker: Walker) -> dict[str, Any]:
    """(3, 1) N of the ground on each foot, by its side: on all of its bodies."""
    forces: dict[str, Any] = {}
    for body, force in walker.ground_forces.items():
        side = side_of(body)
        forces[side] = forces[side] + force if side in forces else force
    return forces


def foot_centres(walker: Walker) -> dict[str, Any]:
    """(3, 1) m of the point on the floor at which the ground acts on each foot, by its side, weighted by the normal
    forces on its bodies."""
    moments: dict[str, Any] = {}
    for body, force in walker.ground_forces.items():
        moment, side = force[1] * walker.pressure_centres[body], side_of(body)
        moments[side] = moments[side] + moment if side in moments else moment
    return {side: moments[side] / force[1] for side, force in foot_forces(walker).items()}
