"""Outputs and arrays of a walk in space that follows a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, TypedDict

import numpy as np
from designopt_muscle.geometry.drawing import SCENE_AXES, drawing
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.collocation import PhaseSolution, Solution
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt.plugin import Array
from designopt.plugin import Quantity as Q
from designopt_walking.programs.track import RecordedWalk
from designopt_walking.spatial.walker import floating
from designopt_walking.system import foot_forces
from designopt_walking.walker import Walker

#: Instants of the arrays, both ends included.
SAMPLES = 201
#: Vertical force (N) below which a foot has no centre of pressure.
_LIFTED = 10.0
_AXES, _SIDES = "xyz", "rl"


class SpatialOutputs(TypedDict):
    """Outputs of a followed walk."""

    objective: Annotated[float, Q("", "the minimised cost")]
    effort: Annotated[float, Q("", "the cost's term of squared drives")]
    states: Annotated[float, Q("", "the cost's term of coordinates and speeds")]
    contact: Annotated[float, Q("", "the cost's term of ground forces")]
    angle_error: Annotated[float, Q("rad", "root mean square distance of the recorded angles")]
    largest_angle_error: Annotated[float, Q("rad", "the same of the angle that differs most")]
    position_error: Annotated[float, Q("m", "root mean square distance of the place of the pelvis")]
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


class FollowedForces(SpatialOutputs, total=False):
    """With those of recorded ground forces where there are any."""

    forward_force_error: Annotated[float, Q("N", "root mean square distance of the forward ground forces of the feet")]
    vertical_force_error: Annotated[float, Q("N", "of the vertical ground forces")]
    lateral_force_error: Annotated[float, Q("N", "of the lateral ground forces")]


_FORCE_ERRORS = {"x": "forward_force_error", "y": "vertical_force_error", "z": "lateral_force_error"}

#: Declaration of the arrays; feet are right and left, axes forward, up and to the right.
SPATIAL_ARRAYS: Mapping[str, Array] = {
    "time": Array(("time",), "s", "as in the recording"),
    "percent": Array(("time",), "", "of the window"),
    "coordinates": Array(("coordinate",), "", "names", dtype="str"),
    "positions": Array(("time", "coordinate"), "", "coordinates, in rad or m"),
    "speeds": Array(("time", "coordinate"), "", "their rates, in rad/s or m/s"),
    "recorded_positions": Array(("time", "coordinate", "part"), "", "the recording and NaN, which it has no deviation"),
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
    """At n instants: `residual` (n, m) of the equations of motion without accelerations of `moments`, N m or N;
    `ground_force` and `pressure_centre` (n, 2, 3) N and m; `indentation` (n,) m; `momentum` (n, 3) kg m/s; `moments`
    (n, 3, m) of drives, devices and contacts."""

    residual: Floats
    ground_force: Floats
    pressure_centre: Floats
    indentation: Floats
    momentum: Floats
    moments: Floats


@dataclass(frozen=True, eq=False)
class FollowedWalk:
    """The `solution` of `designopt_walking.spatial.program.followed_window` for a `walker` and what was `recorded`,
    which begins at the time `begin` (s) of its table."""

    walker: Walker
    recorded: RecordedWalk
    solution: Solution
    begin: float

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
        units = [c.unit for c in coordinates]
        base = {unit: [i for i, c in enumerate(coordinates) if c.name in in_space and c.unit == unit] for unit in units}
        duration = phase.tf - phase.t0
        weights = duration * phase.mesh.weights
        impulse = np.tensordot(weights, points.ground_force.sum(axis=1), axes=1)
        impulse += duration * walker.mass * walker.model.gravity
        change = points.momentum[-1] - points.momentum[0]
        balanced = points.residual[weights > 0.0]  # at the points where the equations of motion are imposed
        errors = self._errors
        angles = [errors[c.name] for c in coordinates if c.unit == "rad" and c.name in errors]
        places = [errors[c.name] for c in coordinates if c.unit == "m" and c.name in errors]
        drives = np.stack([phase.values[name] for name in walker.drives])
        force = np.linalg.norm(points.ground_force, axis=2)
        return {
            "objective": solution.objective,
            **{name: solution.figures[name] for name in ("effort", "states", "contact")},
            "angle_error": _root_mean_square(angles),
            "largest_angle_error": float(max(angles)),
            "position_error": _root_mean_square(places),
            **{output: errors[axis] for axis, output in _FORCE_ERRORS.items() if axis in errors},
            "largest_drive": float(np.abs(drives).max()),
            "peak_foot_force": float(force.max() / walker.weight),
            "penetration": float(points.indentation.max()),
            "pelvis_force": float(np.abs(balanced[:, base.get("m", [])]).max(initial=0.0)),
            "pelvis_moment": float(np.abs(balanced[:, base.get("rad", [])]).max(initial=0.0)),
            "impulse_error": float(np.linalg.norm(impulse - change) / (walker.weight * duration)),
            "constraint_violation": solution.violation,
            "error_estimate": solution.error_estimate,
            "resimulation_error": float(np.max(phase.segment_errors, initial=0.0)),
            "iterations": float(solution.iterations),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of `SPATIAL_ARRAYS`."""
        phase, walker = self.phase, self.walker
        fractions = np.linspace(0.0, 1.0, SAMPLES)
        values = phase.at(fractions)
        points = self._points(values)
        names, time = walker.coordinates, fractions * (phase.tf - phase.t0)
        recorded = {name: np.interp(time, self.recorded.time, column) for name, column in self.recorded.values.items()}
        missing = np.full(SAMPLES, np.nan)
        positions = np.stack([values[name] for name in names], axis=1)
        locked = {c.name: np.full(SAMPLES, c.default) for c in walker.model.coordinates if c.name not in names}
        free = {name: values[name] for name in names}
        skeleton, _ = drawing(walker.model, {**{n: v for n, v in locked.items() if n in walker.model.free}, **free})
        loaded = points.ground_force[:, :, 1:2] > _LIFTED
        arrows = np.stack([np.where(loaded, points.pressure_centre, np.nan), points.ground_force], axis=2)
        errors = self._errors
        return {
            "time": self.begin + time,
            "percent": 100.0 * fractions,
            "coordinates": np.array(names, dtype=str),
            "positions": positions,
            "speeds": np.stack([values[f"{name}_speed"] for name in names], axis=1),
            "recorded_positions": np.stack(
                [np.stack([recorded.get(name, missing), missing], axis=1) for name in names], axis=1
            ),
            "drive_moments": points.moments[:, 0],
            "device_moments": points.moments[:, 1],
            "contact_moments": points.moments[:, 2],
            "ground_force": points.ground_force,
            "recorded_force": np.stack(
                [np.stack([recorded.get(f"ground_{a}_{s}", missing) for a in _AXES], axis=1) for s in _SIDES], axis=1
            ),
            "angle_errors": np.array([errors.get(name, np.nan) for name in names]),
            "skeleton": skeleton,
            "ground_arrows": np.stack([arrows[..., 0], -arrows[..., 2], arrows[..., 1]], axis=3),
        }

    @cached_property
    def _errors(self) -> dict[str, float]:
        """Root mean square distances from the recording, at its times: of coordinates by name, and of the forces of
        the feet by axis (N)."""
        values = self.phase.interpolate(np.minimum(self.recorded.time, self.phase.tf))
        distances = {name: values[name] - column for name, column in self.recorded.values.items()}
        errors = {name: _root_mean_square(distances[name]) for name in self.walker.coordinates if name in distances}
        for axis in _AXES:
            of_feet = [distances[name] for name in self.recorded.forces if name.startswith(f"ground_{axis}_")]
            if of_feet:
                errors[axis] = _root_mean_square(np.concatenate(of_feet))
        return errors

    @cached_property
    def _rows(self) -> Rows:
        walker, state = self.walker, self.walker.state
        feet = foot_forces(walker)
        none = ca.SX.zeros(state.z.shape)
        centres = []
        for side in _SIDES:
            bodies = [body for body in walker.ground_forces if body.endswith(f"_{side}")]
            normal = [walker.ground_forces[body][1] for body in bodies]
            centre = sum((n * walker.pressure_centres[b] for n, b in zip(normal, bodies, strict=True)), ca.SX.zeros(3))
            centres.append(centre / sum(normal))
        depth = list(walker.indentation.values())
        deepest = depth[0]
        for value in depth[1:]:
            deepest = ca.fmax(deepest, value)
        results = [
            walker.residual,
            ca.vertcat(*(feet[side] for side in _SIDES)),
            ca.vertcat(*centres),
            deepest,
            walker.mass * (ca.jacobian(walker.centre_of_mass(), state.z) @ state.dz),
            ca.vertcat(*(walker.moments.get(origin, none) for origin in ("drives", "devices", "contacts"))),
        ]
        arguments = [state.z, state.dz, state.ddz, ca.vertcat(*walker.drives.values())]
        return Rows(ca.Function("followed_walk", arguments, [ca.densify(r) for r in results]), compiled=False)

    def _points(self, values: Mapping[str, Floats]) -> WindowPoints:
        """What follows from `values` (n,) by variable."""
        names = self.walker.coordinates
        groups = [list(names), *([f"{n}_{kind}" for n in names] for kind in ("speed", "acceleration"))]
        columns = [np.stack([values[n] for n in group], axis=1) for group in (*groups, list(self.walker.drives))]
        residual, force, centre, depth, momentum, moments = self._rows(*columns)
        n, m = residual.shape
        return WindowPoints(
            residual, force.reshape(n, 2, 3), centre.reshape(n, 2, 3), depth.reshape(n), momentum,
            moments.reshape(n, 3, m),
        )  # fmt: skip


def _root_mean_square(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
