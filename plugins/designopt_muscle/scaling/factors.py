"""Scale factors of bodies from markers of a static pose: by distances of pairs, or by least squares on all markers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from designopt_recordings.recording import Recording

from designopt.arrays import Floats, Integers, Mask
from designopt.study.language.findings import nearest_or_all
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.markers.fit import first_pose
from designopt_muscle.markers.minimise import minimise
from designopt_muscle.markers.problem import MotionProblem, motion_problem
from designopt_muscle.markers.status import MarkerError
from designopt_muscle.markers.tasks import IkTasks
from designopt_muscle.osim.functions import Polynomial, ScaledFunction
from designopt_muscle.osim.markers import OsimMarker
from designopt_muscle.osim.model import GROUND, Axis, OsimModel
from designopt_muscle.scaling.setup import Measurement, ScaleSetup

_IDENTITY = Polynomial((1.0, 0.0))
#: A measured factor beyond this, or below its inverse, is a mistake.
_IMPLAUSIBLE = 5.0
_SMALLEST = 1.0 / _IMPLAUSIBLE
#: Change of the factors at which least squares end, and their most rounds.
_CHANGE, _ROUNDS = 1e-7, 50
#: m by which half of the markers of a static pose may move.
_LARGEST_WAY = 0.1
#: Weight of the factors' distance from 1, in m^2 of mean squared marker error: what no marker measures stays as it is.
_PRIOR = 1e-6


def body_factors(
    model: OsimModel, markers: tuple[OsimMarker, ...], static_recording: Recording, setup: ScaleSetup
) -> tuple[dict[str, Floats], list[str]]:
    """Factors (3,) of all bodies by the methods of the set-up in its order, and notes on measurements left out.

    Raises `MarkerError` for bodies that the model does not have, and for a window without frames.
    """
    bodies = [GROUND, *(body.name for body in model.bodies)]
    factors = {body: np.ones(3) for body in bodies}
    notes: list[str] = []
    for part in (setup.manual, *(m.bodies for m in setup.measurements)):
        unknown = [body for body in part if body not in factors]
        if unknown and (part is setup.manual or len(unknown) == len(part)):
            raise MarkerError(
                f"the scaling names '{unknown[0]}', which is not a body{nearest_or_all(unknown[0], bodies)}"
            )
        if unknown:
            notes.append(f"the scaling names bodies that the model does not have: {', '.join(unknown)}")
    for method in setup.order:
        if method == "manualScale":
            factors |= {body: np.array(values, dtype=float) for body, values in setup.manual.items()}
        elif method == "measurements":
            for measurement in setup.measurements:
                factor = _mean_ratio(model, markers, static_recording, measurement, setup, notes)
                for body, axes in measurement.bodies.items() if factor else ():
                    if body in factors:
                        factors[body] = _scaled_along(factors[body], axes, factor)
        else:
            factors |= least_squares_factors(model, markers, static_recording, setup)
    return factors, notes


def _scaled_along(factors: Floats, axes: str, factor: float) -> Floats:
    new = factors.copy()
    new[["XYZ".index(axis) for axis in axes]] = factor
    return new


def window_of(static_recording: Recording, window: tuple[float, float] | None) -> Integers:
    """The frames of the static pose within a window of times (s). Raises `MarkerError` without any."""
    first, last = window or (-np.inf, np.inf)
    frames = np.flatnonzero((static_recording.time >= first - 1e-9) & (static_recording.time <= last + 1e-9))
    if not len(frames):
        raise MarkerError(
            f"no frame of the static pose lies between {first:g} and {last:g} s; it runs from"
            f" {static_recording.time[0]:g} to {static_recording.time[-1]:g} s"
        )
    return frames


def _mean_ratio(
    model: OsimModel,
    markers: tuple[OsimMarker, ...],
    static_recording: Recording,
    measurement: Measurement,
    setup: ScaleSetup,
    notes: list[str],
) -> float:
    """The mean of recorded / model distance over the pairs; 0 with a note if a marker is missing."""
    location = {marker.name: marker for marker in markers}
    default_pose = kinematics(model, {})
    frames = window_of(static_recording, setup.window)
    ratios = []
    for pair in measurement.pairs:
        for name in pair:
            sources = [
                w
                for w, names in (("model", location), ("static pose", static_recording.marker_names))
                if name not in names
            ]
            if sources:
                notes.append(f"the measurement '{measurement.name}' is not used: '{name}' is not in the {sources[0]}")
                return 0.0
        first, second = (default_pose.position(location[name].body, location[name].location)[0] for name in pair)
        distance = float(np.linalg.norm(first - second))
        distances = np.linalg.norm(
            static_recording.marker(pair[0])[frames] - static_recording.marker(pair[1])[frames], axis=1
        )
        if distance == 0.0 or not np.isfinite(distances).any():
            failure = "apart on the model" if distance == 0.0 else "recorded together in a frame of the window"
            notes.append(f"the measurement '{measurement.name}' is not used: {' and '.join(pair)} are not {failure}")
            return 0.0
        ratios.append(float(np.nanmean(distances)) / distance)
    factor = float(np.mean(ratios))
    if not _SMALLEST < factor < _IMPLAUSIBLE:
        raise MarkerError(
            f"the measurement '{measurement.name}' gives the factor {factor:.3g}: check the unit of the static pose and"
            f" the names of the markers {', '.join(name for pair in measurement.pairs for name in pair)}"
        )
    return factor


def scaled_skeleton(model: OsimModel, factors: Mapping[str, Floats]) -> OsimModel:
    """The joints of a model with its bodies scaled by `factors` (3,); masses, muscles and surfaces as they were."""
    joints = []
    for joint in model.joints:
        parent, child = factors.get(joint.parent, np.ones(3)), factors.get(joint.child, np.ones(3))
        in_parent, in_child = joint.in_parent.copy(), joint.in_child.copy()
        in_parent[:3, 3] *= parent
        in_child[:3, 3] *= child
        translations = tuple(_scaled_step(step, parent) for step in joint.translations)
        joints.append(replace(joint, in_parent=in_parent, in_child=in_child, translations=translations))
    return replace(model, joints=tuple(joints))


def _scaled_step(step: Axis, factor: Floats) -> Axis:
    if step.coordinate and step.function == _IDENTITY:
        return step
    return replace(step, function=ScaledFunction(step.function, float(np.abs(step.axis) @ factor)))


def mean_pose(static_recording: Recording, window: tuple[float, float] | None) -> Recording:
    """A recording of one frame: the mean position of every marker over the frames that have it within the window.

    Raises `MarkerError` where half of the markers move by more than 0.1 m in it: that is no static pose.
    """
    frames = window_of(static_recording, window)
    present: Mask = np.asarray(np.isfinite(static_recording.markers[frames]).all(axis=2))
    is_present = present.any(axis=0)
    high, low = (
        np.where(present[:, :, None], sign * static_recording.markers[frames], -np.inf).max(axis=0)[is_present]
        for sign in (1.0, -1.0)
    )
    way = float(np.median(np.linalg.norm(high + low, axis=1))) if is_present.any() else 0.0
    if way > _LARGEST_WAY:
        raise MarkerError(
            f"the static pose moves: half of the markers by more than {way:.2g} m; name the recording of a static pose,"
            " or its still part by the time range of the set-up"
        )
    total = np.where(present[:, :, None], static_recording.markers[frames], 0.0).sum(axis=0)
    count = present.sum(axis=0)[:, None]
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return Recording(
        static_recording.rate, static_recording.time[frames][:1], static_recording.marker_names, mean[None]
    )


def moved_markers(markers: tuple[OsimMarker, ...], factors: Mapping[str, Floats]) -> tuple[OsimMarker, ...]:
    """The markers on scaled bodies."""
    return tuple(replace(m, location=m.location * factors.get(m.body, 1.0)) for m in markers)


def least_squares_factors(
    model: OsimModel, markers: tuple[OsimMarker, ...], static_recording: Recording, setup: ScaleSetup
) -> dict[str, Floats]:
    """Factors of groups of bodies that, with the pose, bring all markers of the static pose closest to the recorded.

    The groups are the bodies and axes of `setup.measurements`, unless these give factors themselves; otherwise each
    body with its counterpart on the other side (names that end in _r and _l), alike along all axes. Markers count with
    the weights of `setup.placing`. A weak pull towards 1 keeps what no marker measures.

    Gauss-Newton steps for the factors, with the pose at its minimum for them (variable projection, Golub and Pereyra
    1973); the markers' positions are linear in the factors.
    """
    tasks = replace(setup.placing or IkTasks(), window=None)
    static_pose = mean_pose(static_recording, setup.window)
    measurements = () if "measurements" in setup.order else setup.measurements
    groups = [dict(m.bodies) for m in measurements] or _sides(model)
    values = np.ones(len(groups))
    q = None
    for _ in range(_ROUNDS):
        problem = _problem_at(model, markers, static_pose, tasks, _body_factors(groups, values))
        q = first_pose(problem) if q is None else minimise(problem.objective, q, problem.low, problem.high).q
        layout = problem.objective.layout
        start = layout.positions(layout.motion(q))[0]
        columns = []
        for unit in np.eye(len(groups)):
            changed_layout = _problem_at(
                model, markers, static_pose, tasks, _body_factors(groups, values + unit)
            ).objective.layout
            columns.append((changed_layout.positions(changed_layout.motion(q))[0] - start).ravel())
        step = _step(problem, q, np.array(columns).T, values)
        values = np.clip(values + step, _SMALLEST, _IMPLAUSIBLE)
        if np.abs(step).max(initial=0.0) < _CHANGE:
            break
    if values.min() <= _SMALLEST or values.max() >= _IMPLAUSIBLE:
        extreme = values.min() if values.min() <= _SMALLEST else values.max()
        bodies = ", ".join(groups[int(np.flatnonzero(values == extreme)[0])])
        raise MarkerError(
            f"least squares give {bodies} the factor {extreme:.3g} or beyond: check the unit of the static pose and the"
            " names of its markers"
        )
    return _body_factors(groups, values)


def _step(problem: MotionProblem, q: Floats, slopes: Floats, values: Floats) -> Floats:
    """The change of the factors `values` (g,) by their `slopes` (3 k, g) of the positions, the pose following."""
    objective = problem.objective
    m, h = q.shape[1], 1e-6
    around = objective.layout.positions(objective.layout.motion(np.concatenate([q + h * np.eye(m), q - h * np.eye(m)])))
    poses = (around[:m] - around[m:]).reshape(m, -1).T / (2.0 * h)
    inside = (q[0] > problem.low) & (q[0] < problem.high)
    root = np.sqrt(np.repeat(objective.share[0], 3))
    error = root * np.nan_to_num(objective.positions(q)[0] - objective.observations[0]).ravel()
    pull = np.sqrt(objective.pull)[inside]
    left = np.vstack([root[:, None] * poses[:, inside], np.diag(pull)])
    right = np.concatenate([error, pull * (q - objective.targets)[0, inside]])
    effect = np.vstack([root[:, None] * slopes, np.zeros((len(pull), len(values)))])
    basis = np.linalg.svd(left, full_matrices=False)
    across = basis.U[:, basis.S / basis.S.max(initial=1e-300) > 1e-9]
    effect, right = effect - across @ (across.T @ effect), right - across @ (across.T @ right)
    prior = np.sqrt(_PRIOR)
    full = np.vstack([effect, prior * np.eye(len(values))])
    return np.asarray(-np.linalg.lstsq(full, np.concatenate([right, prior * (values - 1.0)]), rcond=None)[0])


def _problem_at(
    model: OsimModel,
    markers: tuple[OsimMarker, ...],
    static_recording: Recording,
    tasks: IkTasks,
    factors: Mapping[str, Floats],
) -> MotionProblem:
    return motion_problem(
        scaled_skeleton(model, factors), moved_markers(markers, factors), static_recording, tasks, "clamped"
    )


def _sides(model: OsimModel) -> list[dict[str, str]]:
    """Bodies along all axes; those whose names differ in the end _r or _l alone together."""
    groups: dict[str, dict[str, str]] = {}
    for body in model.bodies:
        groups.setdefault(body.name.removesuffix("_r").removesuffix("_l"), {})[body.name] = "XYZ"
    return list(groups.values())


def _body_factors(groups: list[dict[str, str]], values: Floats) -> dict[str, Floats]:
    factors: dict[str, Floats] = {}
    for group, value in zip(groups, values, strict=True):
        for body, axes in group.items():
            factors[body] = _scaled_along(factors.get(body, np.ones(3)), axes, float(value))
    return factors
