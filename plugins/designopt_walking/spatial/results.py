"""Outputs and arrays of a walk in space that follows a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Annotated, Any, NotRequired, TypedDict

import numpy as np
from designopt_muscle.geometry.drawing import SCENE_AXES, drawing
from designopt_muscle.geometry.geometry import muscle_geometry
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.collocation import PhaseSolution, Solution
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt.plugin import Array
from designopt.plugin import Quantity as Q
from designopt_walking.programs.recording import RecordedWalk, root_mean_square
from designopt_walking.results.observables import ORIGINS
from designopt_walking.results.outputs import solver_outputs
from designopt_walking.results.physics import fibres_outside
from designopt_walking.spatial.walker import floating
from designopt_walking.system import foot_centres, foot_forces, stack_values
from designopt_walking.walker import Walker

#: Instants of the arrays, both ends included.
SAMPLES = 201
#: Vertical force (N) below which a foot has no centre of pressure.
_LIFTED = 10.0
_AXES, _SIDES = "xyz", "rl"


class SpatialOutputs(TypedDict):
    """Outputs of a followed walk; those of the pelvis' place and of ground forces where they are recorded, those of
    muscles where these move it."""

    objective: Annotated[float, Q("", "the minimised cost")]
    effort: Annotated[float, Q("", "the cost's term of squared drives and excitations")]
    states: Annotated[float, Q("", "the cost's term of coordinates and speeds")]
    contact: Annotated[float, Q("", "the cost's term of ground forces")]
    angle_error: Annotated[float, Q("rad", "root mean square distance of the recorded angles")]
    largest_angle_error: Annotated[float, Q("rad", "the same of the angle that differs most")]
    position_error: NotRequired[Annotated[float, Q("m", "root mean square distance of the place of the pelvis")]]
    largest_drive: Annotated[float, Q("", "largest size of a drive's control; 1 is its optimal torque")]
    peak_foot_force: Annotated[float, Q("", "largest force on a foot, body weights")]
    penetration: Annotated[float, Q("m", "largest, of a sphere into the ground")]
    pelvis_force: Annotated[float, Q("N", "largest force on the pelvis beside those of joints; 0 but for round-off")]
    pelvis_moment: Annotated[float, Q("N m", "largest moment on the pelvis, likewise")]
    impulse_error: Annotated[
        float, Q("", "of ground force and weight against the change of momentum, by weight times duration")
    ]
    constraint_violation: Annotated[float, Q("", "largest, relative to the scales of the program")]
    error_estimate: Annotated[float, Q("", "of the discretisation, relative to the states")]
    resimulation_error: Annotated[float, Q("", "of simulations of single intervals, relative to the states")]
    iterations: Annotated[float, Q("", "of the solver")]

    forward_force_error: NotRequired[
        Annotated[float, Q("N", "root mean square distance of the forward ground forces of the feet")]
    ]
    vertical_force_error: NotRequired[Annotated[float, Q("N", "of the vertical ground forces")]]
    lateral_force_error: NotRequired[Annotated[float, Q("N", "of the lateral ground forces")]]
    peak_activation: NotRequired[Annotated[float, Q("", "largest of any muscle")]]
    mean_activation: NotRequired[Annotated[float, Q("", "over time and all muscles")]]
    fibres_outside: NotRequired[Annotated[float, Q("", "muscles whose fibres leave the range of their curves")]]
    path_error: NotRequired[
        Annotated[float, Q("m", "largest, of the polynomials for the lengths of paths along the motion")]
    ]
    arm_error: NotRequired[
        Annotated[float, Q("m", "root mean square along the motion of the moment arm that differs most")]
    ]


_FORCE_ERRORS = {"x": "forward_force_error", "y": "vertical_force_error", "z": "lateral_force_error"}

#: Declaration of the arrays; feet are right and left, axes forward, up and to the right.
SPATIAL_ARRAYS: Mapping[str, Array] = {
    "time": Array(("time",), "s", "as in the recording"),
    "percent": Array(("time",), "%", "of the window"),
    "coordinates": Array(("coordinate",), "", "names", dtype="str"),
    "positions": Array(("time", "coordinate"), "", "coordinates, in rad or m"),
    "speeds": Array(("time", "coordinate"), "", "their rates, in rad/s or m/s"),
    "recorded_positions": Array(("time", "coordinate", "part"), "", "the recording and NaN, which it has no deviation"),
    "muscles": Array(("muscle",), "", "names; none where drives alone move the joints", dtype="str"),
    "activations": Array(("time", "muscle"), "", "from 0 to 1"),
    "excitations": Array(("time", "muscle"), "", "from 0 to 1"),
    "forces": Array(("time", "muscle"), "N", "along the tendons"),
    "muscle_moments": Array(("time", "coordinate"), "", "of the muscles, in N m"),
    "drive_moments": Array(("time", "coordinate"), "", "of the drives, in N m"),
    "device_moments": Array(("time", "coordinate"), "", "of springs and dampers, in N m"),
    "contact_moments": Array(("time", "coordinate"), "", "of the ground, in N m or N"),
    "ground_force": Array(("time", "foot", "axis"), "N", "on each foot, forward, up and to the right"),
    "recorded_force": Array(("time", "foot", "axis"), "N", "the recording; NaN without one"),
    "angle_errors": Array(("coordinate",), "", "root mean square distance of each coordinate, in rad or m"),
    "skeleton": Array(("time", "vertex", "space"), "m", "drawing of the bones: x, -z, y", components=SCENE_AXES),
    "ground_arrows": Array(("time", "foot", "end", "space"), "", "point of action (m) and force (N): x, -z, y"),
}


@dataclass(frozen=True, eq=False)
class WindowPoints:
    """Values at n instants, for m coordinates and k muscles: `residual` (n, m) of the equations of motion, N m or N;
    `ground_force` and `pressure_centre` (n, 2, 3) N and m; `indentation` (n,) m; `momentum` (n, 3) kg m/s; `moments`
    (n, 4, m) by `ORIGINS`; `forces` (n, k) N, `fibre_lengths` and `fibre_speeds` (n, k), `lengths` (n, k) and moment
    arms `arms` (n, m, k) of the paths in m."""

    residual: Floats
    ground_force: Floats
    pressure_centre: Floats
    indentation: Floats
    momentum: Floats
    moments: Floats
    forces: Floats
    fibre_lengths: Floats
    fibre_speeds: Floats
    lengths: Floats
    arms: Floats


@dataclass(frozen=True, eq=False)
class FollowedWalk:
    """The `solution` of `designopt_walking.spatial.program.followed_window` for a `walker` and its `recording`."""

    walker: Walker
    recording: RecordedWalk
    solution: Solution

    @property
    def phase(self) -> PhaseSolution:
        """The only phase."""
        return self.solution.phase

    def outputs(self) -> dict[str, float]:
        """All outputs."""
        solution, phase, walker = self.solution, self.phase, self.walker
        points = self._points(phase.values)
        coordinates = walker.state.tree.coordinates
        in_space = floating(walker.model)
        pelvis = {
            unit: [i for i, c in enumerate(coordinates) if c.name in in_space and c.unit == unit]
            for unit in ("m", "rad")
        }
        duration = phase.tf - phase.t0
        weights = duration * phase.mesh.weights
        impulse = np.tensordot(weights, points.ground_force.sum(axis=1), axes=1)
        impulse += duration * walker.mass * walker.model.gravity
        change = points.momentum[-1] - points.momentum[0]
        has_equations = weights > 0.0  # where the equations of motion hold; controls before them are extrapolated
        residual = points.residual[has_equations]
        errors = self._errors
        angles = [errors[c.name] for c in coordinates if c.unit == "rad" and c.name in errors]
        position_errors = [errors[c.name] for c in coordinates if c.unit == "m" and c.name in errors]
        drives = [np.abs(phase.values[name][has_equations]).max() for name in walker.drives]
        force = np.linalg.norm(points.ground_force, axis=2)
        return {
            "objective": solution.objective,
            **{name: solution.figures[name] for name in ("effort", "states", "contact")},
            "angle_error": root_mean_square(angles),
            "largest_angle_error": float(max(angles)),
            **({"position_error": root_mean_square(position_errors)} if position_errors else {}),
            **{output: errors[axis] for axis, output in _FORCE_ERRORS.items() if axis in errors},
            "largest_drive": float(max(drives, default=0.0)),
            "peak_foot_force": float(force.max() / walker.weight),
            "penetration": float(points.indentation.max()),
            "pelvis_force": float(np.abs(residual[:, pelvis["m"]]).max(initial=0.0)),
            "pelvis_moment": float(np.abs(residual[:, pelvis["rad"]]).max(initial=0.0)),
            "impulse_error": float(np.linalg.norm(impulse - change) / (walker.weight * duration)),
            **solver_outputs(solution),
            **self._of_muscles(points, weights / duration),
        }

    def _of_muscles(self, points: WindowPoints, shares: Floats) -> dict[str, float]:
        """Outputs of muscles, if there are any; `shares` (n,) of the points in a mean over time."""
        names = self.walker.muscles.names
        if not names:
            return {}
        values = self.phase.values
        activations = stack_values(values, names, "activation_{}")
        geometry = muscle_geometry(self.walker.model, {name: values[name] for name in self.walker.coordinates})
        rows = [geometry.coordinates.index(name) for name in self.walker.coordinates]
        arms = points.arms - geometry.arms[:, rows]
        return {
            "peak_activation": float(activations.max()),
            "mean_activation": float(shares @ activations.mean(axis=1)),
            "fibres_outside": fibres_outside(points.fibre_lengths, points.fibre_speeds),
            "path_error": float(np.abs(points.lengths - geometry.lengths).max()),
            "arm_error": float(np.sqrt(np.mean(arms**2, axis=0)).max()),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of `SPATIAL_ARRAYS`."""
        phase, walker = self.phase, self.walker
        fractions = np.linspace(0.0, 1.0, SAMPLES)
        values = phase.at(fractions)
        points = self._points(values)
        names, time = walker.coordinates, fractions * (phase.tf - phase.t0)
        recorded_values = {
            name: np.interp(time, self.recording.time, column) for name, column in self.recording.values.items()
        }
        missing = np.full(SAMPLES, np.nan)
        skeleton, _ = drawing(replace(walker.model, muscles=()), {name: values[name] for name in names})
        is_loaded = points.ground_force[:, :, 1:2] > _LIFTED
        arrows = np.stack([np.where(is_loaded, points.pressure_centre, np.nan), points.ground_force], axis=2)
        errors = self._errors
        return {
            "time": self.recording.begin + time,
            "percent": 100.0 * fractions,
            "coordinates": np.array(names, dtype=str),
            "positions": stack_values(values, names),
            "speeds": stack_values(values, names, "{}_speed"),
            "recorded_positions": np.stack(
                [np.stack([recorded_values.get(name, missing), missing], axis=1) for name in names], axis=1
            ),
            "muscles": np.array(walker.muscles.names, dtype=str),
            "activations": stack_values(values, walker.muscles.names, "activation_{}"),
            "excitations": stack_values(values, walker.muscles.names, "excitation_{}"),
            "forces": points.forces,
            **{f"{origin[:-1]}_moments": points.moments[:, i] for i, origin in enumerate(ORIGINS)},
            "ground_force": points.ground_force,
            "recorded_force": np.stack(
                [np.stack([recorded_values.get(f"ground_{a}_{s}", missing) for a in _AXES], axis=1) for s in _SIDES],
                axis=1,
            ),
            "angle_errors": np.array([errors.get(name, np.nan) for name in names]),
            "skeleton": skeleton,
            "ground_arrows": np.stack([arrows[..., 0], -arrows[..., 2], arrows[..., 1]], axis=3),
        }

    @cached_property
    def _errors(self) -> dict[str, float]:
        """Root mean square distances from the recording, at its times: of coordinates by name, and of the forces of
        the feet by axis (N)."""
        distances = self.recording.distances(self.phase)
        errors = {name: root_mean_square(distances[name]) for name in self.walker.coordinates if name in distances}
        for axis in _AXES:
            of_feet = [distances[name] for side in _SIDES if (name := f"ground_{axis}_{side}") in distances]
            if of_feet:
                errors[axis] = root_mean_square(of_feet)
        return errors

    @cached_property
    def _rows(self) -> Rows:
        walker, state = self.walker, self.walker.state
        feet, centres = foot_forces(walker), foot_centres(walker)
        none = ca.SX.zeros(state.z.shape)
        results = [
            walker.residual,
            ca.vertcat(*(feet[side] for side in _SIDES)),
            ca.vertcat(*(centres[side] for side in _SIDES)),
            reduce(ca.fmax, walker.indentation.values()),
            walker.mass * (ca.jacobian(walker.centre_of_mass(), state.z) @ state.dz),
            ca.vertcat(*(walker.moments.get(origin, none) for origin in ORIGINS)),
            walker.muscles.force,
            walker.muscles.fibre_length,
            walker.muscles.fibre_speed,
            walker.muscles.length,
            ca.vec(walker.muscles.arms.T),
        ]
        drives = ca.vertcat(ca.SX(0, 1), *walker.drives.values())
        arguments = [state.z, state.dz, state.ddz, drives, walker.muscles.activation]
        return Rows(ca.Function("followed_walk", arguments, [ca.densify(r) for r in results]), compiled=False)

    def _points(self, values: Mapping[str, Floats]) -> WindowPoints:
        """The quantities that follow from `values` (n,) by variable."""
        walker = self.walker
        residual, force, centre, depth, momentum, moments, *of_muscles = self._rows(
            stack_values(values, walker.coordinates),
            stack_values(values, walker.coordinates, "{}_speed"),
            stack_values(values, walker.coordinates, "{}_acceleration"),
            stack_values(values, tuple(walker.drives)),
            stack_values(values, walker.muscles.names, "activation_{}"),
        )
        n, m = residual.shape
        k = len(walker.muscles.names)
        forces, fibre_lengths, fibre_speeds, lengths = (column.reshape(n, k) for column in of_muscles[:-1])
        return WindowPoints(
            residual, force.reshape(n, 2, 3), centre.reshape(n, 2, 3), depth.reshape(n), momentum,
            moments.reshape(n, len(ORIGINS), m), forces, fibre_lengths, fibre_speeds, lengths,
            of_muscles[-1].reshape(n, m, k),
        )  # fmt: skip
