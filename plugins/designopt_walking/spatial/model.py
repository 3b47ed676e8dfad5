"""The model ``walk_track_3d``: a recorded walk in space in, what moves the joints and the ground forces out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field
from functools import cached_property
from typing import Annotated, Any, Literal, cast

from designopt_mechanics.robot_files.xml import ModelError
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.read import read_model
from numpy.typing import NDArray

from designopt.collocation import solve
from designopt.plugin import Diverged, InputFile, InvalidDesign, InvalidSetting, model
from designopt.plugin import Quantity as Q
from designopt_walking.programs.gait import GaitError, check_contact, program_options
from designopt_walking.programs.recording import FORCE_COLUMNS, RecordedWalk, RecordingReader, WalkRecording
from designopt_walking.programs.track import TrackingWeights
from designopt_walking.results.physics import refuse_implausible
from designopt_walking.spatial.program import FollowedWindow, first_motion, followed_window, path_ranges
from designopt_walking.spatial.results import SPATIAL_ARRAYS, FollowedWalk, SpatialOutputs
from designopt_walking.spatial.walker import (
    DrivenJoints,
    Feet,
    JointSpring,
    MuscleSettings,
    Sphere,
    floating,
    muscle_driven,
    torque_driven,
)
from designopt_walking.walker import Friction, Walker


@model("walk_track_3d", version=2, arrays=SPATIAL_ARRAYS)
class WalkTrack3D:
    """Follows a recorded walk in space with drives or muscles and smooth contact, after example3DWalking of OpenSim
    Moco.

    The least weighted sum of squared drives and excitations, of squared distances of coordinates and speeds from the
    recording, and of squared distances of the ground forces by body weight, over a window of time. Nothing but the
    ground force acts on the pelvis. Drives turn all joints; with `muscles`, those that no muscle crosses.

    Spheres of the feet are those of the model file and of `spheres`. Tendons are rigid. Walks that sink in by more than
    the diameter of the smallest sphere, or press a foot with more than 4 body weights, have no result
    (``implausible``).
    """

    model: Annotated[InputFile, Q("", "OpenSim model (.osim)")]
    spheres: Annotated[list[Sphere], Q("", "contact spheres beside those of the model")] = field(default_factory=list)
    muscles: Annotated[MuscleSettings | None, Q("", "muscles of the model move the joints; none: drives alone")] = None
    torque: Annotated[
        float, Q("N m", "optimal torque of drives of joints that neither the model file drives nor muscles cross", ge=0)
    ] = 500.0
    torques: Annotated[
        dict[str, float],
        Q("N m", "optimal torque by coordinate, with or without the side, instead of those; 0: no drive", ge=0),
    ] = field(default_factory=dict)
    springs: Annotated[dict[str, JointSpring], Q("", "springs and dampers by coordinate, with or without the side")] = (
        field(default_factory=dict)
    )
    unrecorded: Annotated[list[str], Q("", "coordinates that the motion does not contain, as of the toes")] = field(
        default_factory=list
    )
    window: Annotated[tuple[float, float] | None, Q("s", "that is followed; the whole recording by default")] = None
    cutoff: Annotated[float | None, Q("Hz", "of a low-pass filter for the coordinates; default: none", gt=0)] = None
    force_columns: Annotated[
        dict[str, str], Q("", "beginnings of the columns of ground forces by side, before x, y and z")
    ] = field(default_factory=FORCE_COLUMNS.copy)
    effort_weight: Annotated[float, Q("", "of squared drives and excitations", gt=0)] = 0.1
    state_weight: Annotated[float, Q("", "of squared distances of coordinates and speeds", ge=0)] = 0.05
    force_weight: Annotated[float, Q("", "of squared distances of ground forces by body weight", ge=0)] = 5e-3
    state_weights: Annotated[
        dict[str, float], Q("", "of single coordinates and COORDINATE_speed among the states; 1 for others", ge=0)
    ] = field(default_factory=dict)
    start_distance: Annotated[
        float, Q("", "largest distance of a coordinate from the recording at the start, rad or m", gt=0)
    ] = 0.05
    start_speed_distance: Annotated[float, Q("", "the same of a speed, rad/s or m/s", gt=0)] = 0.1
    cycle: Annotated[bool, Q("", "the motion repeats after the window: its end is its beginning, a way on")] = False
    friction: Friction = "smooth"
    ranges: Annotated[
        dict[str, tuple[float, float]],
        Q("", "of coordinates in rad or m, by name with or without the side, instead of those of the model"),
    ] = field(default_factory=dict)
    intervals: Annotated[int, Q("", "of the mesh", ge=4, le=400)] = 50
    scheme: Annotated[Literal["radau", "hermite_simpson"], Q("", "of the discretisation; radau has degree 3")] = "radau"
    tolerance: Annotated[float, Q("", "of the solver", gt=0, lt=1e-2)] = 1e-6
    max_iterations: Annotated[int, Q("", "of the solver", ge=1, le=100_000)] = 1000

    def check(self) -> None:
        """Raises `InvalidSetting` for an unusable model, spheres, torques, springs and ranges."""
        walker = self._walker
        if self.muscles is not None and not self._osim.muscles:
            raise InvalidSetting("muscles", f"{self.model.name} has no muscle")
        try:
            check_contact(walker)
        except GaitError as error:
            raise InvalidSetting(error.field, f"{error.message}; state spheres") from None
        for name in self.unrecorded:
            if name not in walker.coordinates:
                raise InvalidSetting("unrecorded", f"'{name}' is no coordinate ({', '.join(walker.coordinates)})")
        if not set(walker.angles) - {*self.unrecorded}:
            raise InvalidSetting("unrecorded", "names all angles, so that there is no walk to follow: leave some out")

    def check_scenario(self, conditions: Mapping[str, Any]) -> None:
        """Raises `InvalidSetting` for recordings that do not suit the model."""
        recording = self._reader.checked(self._walker, conditions)
        try:
            if recording is not None:
                followed_window(self._walker, recording, self._window)
        except GaitError as error:
            raise InvalidSetting(error.field, error.message) from None

    def remarks(self, conditions: Mapping[str, Any]) -> list[str]:
        """Sentences on what the readers of model and recording replaced or assumed, and on parts of the model that are
        not used."""
        walker, osim = self._walker, self._osim
        resting = len(osim.muscles) if self.muscles is None else 0
        notes = [f"{resting} muscles of the model take no part (setting muscles)"] if resting else []
        in_space = [a.name for a in osim.actuators if a.coordinate in floating(osim)]
        notes += [f"drives of the pelvis take no part: {', '.join(in_space)}"] if in_space else []
        return [*notes, *self._reader.notes(walker, conditions)]

    def evaluate(
        self, design: dict[str, float], scenario: WalkRecording, arrays: Set[str] = frozenset()
    ) -> tuple[SpatialOutputs, dict[str, NDArray[Any]]]:
        """Solve for the walk. Raises `Diverged` without one, and for an implausible one."""
        recording = self._reader.of_files(self._walker, scenario)
        walker = self._moving_walker(recording)
        degree = {"degree": 3} if self.scheme == "radau" else {}
        options = program_options(
            self.intervals,
            self.tolerance,
            check=True,
            max_iterations=self.max_iterations,
            scheme=self.scheme,
            **degree,
        )
        problem = followed_window(walker, recording, self._window)
        solution = solve(problem, options, first_motion(walker, recording))
        if not solution.success:
            raise Diverged(solution.message, reason=solution.status.name.lower())
        walk = FollowedWalk(walker, recording, solution)
        outputs = walk.outputs()
        every = walk.arrays() if arrays else {}
        kept_arrays = {name: every[name] for name in arrays}
        smallest = 2.0 * min(sphere.radius for sphere in walker.model.contacts)
        refuse_implausible(outputs, kept_arrays, deepest=smallest)  # deeper a sphere is all below the ground
        return cast(SpatialOutputs, outputs), kept_arrays

    # ---------------------------------------------------------------------------------------------------------- parts

    @cached_property
    def _osim(self) -> OsimModel:
        return read_model(self.model.content)

    @property
    def _window(self) -> FollowedWindow:
        return FollowedWindow(
            TrackingWeights(self.effort_weight, self.state_weight, self.force_weight),
            self.state_weights,
            (self.start_distance, self.start_speed_distance),
            self.cycle,
        )

    @property
    def _feet(self) -> Feet:
        return Feet(self.spheres, self.friction)

    @property
    def _joints(self) -> DrivenJoints:
        return DrivenJoints(self.torque, self.torques, self.springs)

    def _moving_walker(self, recorded_walk: RecordedWalk) -> Walker:
        """The walker that follows a recording: its muscles' paths are fitted near that. Raises `InvalidDesign`."""
        if self.muscles is None:
            return self._walker
        ranges = path_ranges(self._walker, recorded_walk)
        try:
            return muscle_driven(self._osim, self._feet, self._joints, ranges, self.muscles)
        except GaitError as error:
            raise InvalidDesign(str(error)) from None

    @cached_property
    def _walker(self) -> Walker:
        try:
            return torque_driven(self._osim, self._feet, self._joints, self.ranges)
        except GaitError as error:
            raise InvalidSetting(error.field, error.message) from None
        except (ModelError, ValueError) as error:
            raise InvalidSetting("model", f"{self.model.name}: {error}") from None

    @property
    def _reader(self) -> RecordingReader:
        return RecordingReader(self.force_columns, self.window, self.cutoff, "xyz", self.unrecorded)
