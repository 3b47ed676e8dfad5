"""A generic model fitted to a subject: scaled, and its markers placed where they were recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from designopt_mechanics.robot_files.xml import ModelError, document, parse
from designopt_recordings.recording import Recording

from designopt.arrays import Floats
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.markers.fit import MotionFit, fit_motion
from designopt_muscle.markers.status import MarkerError
from designopt_muscle.osim.markers import OsimMarker, read_markers, with_markers
from designopt_muscle.osim.model import GROUND, OsimModel
from designopt_muscle.osim.read import read_model
from designopt_muscle.scaling.apply import scale_model
from designopt_muscle.scaling.factors import body_factors, mean_pose
from designopt_muscle.scaling.setup import ScaleSetup


@dataclass(frozen=True, eq=False)
class ScaledModel:
    """The model of a subject: the ``.osim`` file `content`, the `factors` (3,) of the bodies along their axes, the
    `markers` on it, and the `static` pose in which they were placed (None if they were not). `notes` are
    remarks for the reader.
    """

    content: bytes
    factors: Mapping[str, Floats]
    markers: tuple[OsimMarker, ...]
    static: MotionFit | None
    notes: tuple[str, ...]

    @cached_property
    def model(self) -> OsimModel:
        """The contents of the file as values."""
        return read_model(self.content)


def scale_subject(
    generic: bytes, static_recording: Recording, setup: ScaleSetup, markers: tuple[OsimMarker, ...] | None = None
) -> ScaledModel:
    """The ``.osim`` file `generic` scaled to the subject of a `static_recording` pose, with its markers placed.

    `markers` are those of a marker set; they join those of the file and replace those of the same name. Factors and
    masses follow `setup` (see `body_factors` and `scale_model`). Then, with `setup.placing`, the static pose (means
    over its window) is found by inverse kinematics, markers that were not recorded are removed, and all that are not
    fixed are moved to where they were recorded. Scaling and placing are those of OpenSim's ScaleTool.

    Raises `ModelError` for unusable files, and `MarkerError` for markers, bodies and windows that do not fit.
    """
    root = parse(generic)
    has_markers = root.find("Model", "MarkerSet", "objects") is not None
    by_name = {marker.name: marker for marker in (read_markers(generic) if has_markers else ())}
    by_name |= {marker.name: marker for marker in markers or ()}
    model = read_model(generic)
    bodies = {GROUND, *(body.name for body in model.bodies)}
    for marker in by_name.values():
        if marker.body not in bodies:
            raise MarkerError(f"the marker '{marker.name}' is fixed to '{marker.body}', which is not a body")
    with_markers(root, by_name.values())
    if setup.name:
        root.need("Model").attributes["name"] = setup.name
    factors, notes = body_factors(model, tuple(by_name.values()), static_recording, setup)
    try:
        content = scale_model(document(root), factors, setup.mass, preserve_mass=setup.preserve_mass)
    except ModelError:
        raise
    except ValueError as error:
        raise MarkerError(str(error)) from None
    scaled_markers = read_markers(content)
    if setup.placing is None:
        return ScaledModel(content, factors, scaled_markers, None, tuple(notes))
    scaled_markers = tuple(marker for marker in scaled_markers if marker.name in static_recording.marker_names)
    pose = mean_pose(static_recording, setup.placing.window or setup.window)
    skeleton = read_model(content)
    fit = fit_motion(skeleton, scaled_markers, pose, replace(setup.placing, window=None))
    scaled_markers = place_markers(
        skeleton, scaled_markers, pose, dict(zip(fit.coordinates, fit.values.T, strict=True))
    )
    root = parse(content)
    with_markers(root, scaled_markers)
    return ScaledModel(document(root), factors, scaled_markers, fit, (*notes, *fit.notes))


def place_markers(
    model: OsimModel, markers: tuple[OsimMarker, ...], static_recording: Recording, pose: Mapping[str, Floats]
) -> tuple[OsimMarker, ...]:
    """Markers that are not fixed, moved on their bodies to where the first frame of `static_recording` has them.

    `pose` are the coordinates (1,) rad or m of the model in that frame.
    """
    bodies = kinematics(model, dict(pose))
    new_markers = []
    for marker in markers:
        position = static_recording.marker(marker.name)[0]
        if not marker.fixed and np.isfinite(position).all():
            location = bodies.rotation[marker.body][0].T @ (position - bodies.origin[marker.body][0])
            marker = replace(marker, location=location)
        new_markers.append(marker)
    return tuple(new_markers)
