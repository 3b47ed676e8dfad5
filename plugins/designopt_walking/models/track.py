"""The model ``walk_track``: a recorded half cycle in, the muscles and ground forces that follow it out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field
from functools import cached_property
from typing import Annotated, Any, ClassVar, NotRequired, cast

from designopt_mechanics.robot_files.xml import ModelError
from designopt_muscle.geometry.fits import polynomial_paths
from designopt_muscle.osim.read import read_model
from numpy.typing import NDArray

from designopt.collocation import Guess, Solution, solve
from designopt.evaluation_progress import step
from designopt.plugin import Declaration, Diverged, InputFile, InvalidSetting, model
from designopt.plugin import Quantity as Q
from designopt_walking.bundled import planar_walker
from designopt_walking.programs.gait import (
    GaitError,
    GaitRanges,
    StatedRanges,
    check_contact,
    check_mirror,
    program_options,
    ranged_tree,
)
from designopt_walking.programs.recording import (
    FORCE_COLUMNS,
    RecordedWalk,
    RecordingReader,
    WalkRecording,
    root_mean_square,
)
from designopt_walking.programs.tendons import (
    TENDON_SETTINGS,
    RigidTendons,
    TendonKind,
    Tendons,
    TendonStrains,
    with_tendon_forces,
)
from designopt_walking.programs.track import TrackingWeights, recorded_guess, tracked_walk
from designopt_walking.results.arrays import WALK_ARRAYS, walk_arrays
from designopt_walking.results.cycle import SolvedWalk
from designopt_walking.results.outputs import TENDON_OUTPUTS, WalkOutputs, walk_outputs
from designopt_walking.results.physics import refuse_implausible
from designopt_walking.walker import Friction, Walker, idle_forces, walker_of


class TrackedOutputs(WalkOutputs):
    """Outputs besides those of any walk; that of ground forces where they are recorded."""

    states: Annotated[float, Q("", "the cost's term of coordinates and speeds")]
    contact: Annotated[float, Q("", "the cost's term of ground forces")]
    angle_error: Annotated[float, Q("rad", "root mean square distance of the joint angles from the recording")]
    force_error: NotRequired[Annotated[float, Q("", "root mean square distance of the ground forces, body weights")]]


@model("walk_track", version=4, arrays=WALK_ARRAYS)
class WalkTrack:
    """Follows a recorded half gait cycle with muscles and smooth contact, after example2DWalking of OpenSim Moco.

    The least weighted sum of squared excitations, of squared distances of coordinates and speeds from the recording,
    and of squared distances of the ground forces by body weight, over a half cycle that its mirror image continues.

    The feet are rigid, the model is planar, tendons are rigid or compliant. Walks that sink into the ground by more
    than 30 mm, or press a foot with more than 4 body weights, have no result (``implausible``). The bundled model is
    not for research or clinical use.
    """

    later_settings: ClassVar[tuple[str, ...]] = TENDON_SETTINGS

    model: Annotated[InputFile | None, Q("", "OpenSim model (.osim) of a walker; the bundled planar one if none")] = (
        None
    )
    window: Annotated[tuple[float, float] | None, Q("s", "of the half cycle; the whole recording by default")] = None
    cutoff: Annotated[float | None, Q("Hz", "of a low-pass filter for the coordinates; default: none", gt=0)] = None
    force_columns: Annotated[
        dict[str, str], Q("", "beginnings of the columns of ground forces by side, before x and y")
    ] = field(default_factory=FORCE_COLUMNS.copy)
    effort_weight: Annotated[float, Q("", "of squared excitations", gt=0)] = 10.0
    state_weight: Annotated[float, Q("", "of squared distances of coordinates and speeds", ge=0)] = 1.0
    force_weight: Annotated[float, Q("", "of squared distances of ground forces by body weight", ge=0)] = 1.0
    friction: Friction = "smooth"
    ranges: StatedRanges = field(default_factory=dict)
    tendons: TendonKind = "rigid"
    rigid_tendons: RigidTendons = None
    tendon_strains: TendonStrains = field(default_factory=dict)
    intervals: Annotated[int, Q("", "of the mesh of the half cycle", ge=4, le=400)] = 24
    tolerance: Annotated[float, Q("", "of the solver", gt=0, lt=1e-2)] = 1e-5

    def check(self) -> None:
        """Raises `InvalidSetting` for an unusable model and ranges."""
        walker = self._walker
        try:
            check_contact(walker)
            check_mirror(walker)
        except GaitError as error:
            raise InvalidSetting("model", str(error)) from None

    def check_scenario(self, conditions: Mapping[str, Any]) -> None:
        """Raises `InvalidSetting` for recordings that do not suit the model."""
        self._reader.checked(self._walker, conditions)

    def remarks(self, conditions: Mapping[str, Any]) -> list[str]:
        """Sentences on what the readers of model and recording replaced or assumed."""
        osim = self._walker.model
        notes = [note for note in osim.notes if "sharing" not in note]
        return [*notes, *idle_forces(osim), *self._reader.notes(self._walker, conditions)]

    def declares(self) -> Declaration:
        """The energy in compliant tendons is an output; a page shows the walk."""
        return Declaration(outputs=TENDON_OUTPUTS if self.tendons == "compliant" else {}, plots=("walking_figure",))

    def evaluate(
        self, design: dict[str, float], scenario: WalkRecording, arrays: Set[str] = frozenset()
    ) -> tuple[TrackedOutputs, dict[str, NDArray[Any]]]:
        """Solve for the walk. Raises `Diverged` without one, and for an implausible one."""
        walker = self._walker
        recording = self._reader.of_files(walker, scenario)
        solution = self._solve(walker, recording)
        if not solution.success:
            raise Diverged(solution.message, reason=solution.status.name.lower())
        walk = SolvedWalk(walker, solution, half=True)
        outputs = {
            **walk_outputs(walk),
            "states": solution.figures["states"],
            "contact": solution.figures["contact"],
            **_errors(walker, recording, solution),
        }
        every = walk_arrays(walk)
        kept_arrays = {name: every[name] for name in arrays}
        refuse_implausible(outputs, kept_arrays)
        return cast(TrackedOutputs, outputs), kept_arrays

    # ---------------------------------------------------------------------------------------------------------- parts

    def _solve(self, walker: Walker, recorded_walk: RecordedWalk, *, check: bool = True) -> Solution:
        """The walk of a walker; one with compliant tendons starts from the walk on rigid ones."""
        guess = recorded_guess(walker, recorded_walk)
        if walker.muscles.compliant:
            with step("walk on rigid tendons, to start from"):
                on_rigid = self._solve(self._walker_on(Tendons()), recorded_walk, check=False)
            guess = Guess({"motion": with_tendon_forces(walker, on_rigid.phase)})
        weights = TrackingWeights(self.effort_weight, self.state_weight, self.force_weight)
        problem = tracked_walk(walker, GaitRanges(ranges=self.ranges), recorded_walk, weights)
        options = program_options(self.intervals, self.tolerance, check=check, max_iterations=800)
        return solve(problem, options, guess)

    @cached_property
    def _walker(self) -> Walker:
        return self._walker_on(Tendons(self.tendons, self.rigid_tendons, self.tendon_strains))

    def _walker_on(self, tendons: Tendons) -> Walker:
        file = self.model if self.model is not None else planar_walker()
        try:
            osim, compliant = tendons.applied_to(read_model(file.content))
            tree = ranged_tree(osim, GaitRanges(ranges=self.ranges))
            ranges = {c.name: (c.low, c.high) for c in tree.coordinates}
            fits = polynomial_paths(osim, ranges)
            return walker_of(osim, tree=tree, ranges=ranges, friction=self.friction, lengths=fits, compliant=compliant)
        except GaitError as error:
            raise InvalidSetting(error.field, error.message) from None
        except (ModelError, ValueError) as error:
            raise InvalidSetting("model", f"{file.name}: {error}") from None

    @property
    def _reader(self) -> RecordingReader:
        return RecordingReader(self.force_columns, self.window, self.cutoff)


def _errors(walker: Walker, recorded_walk: RecordedWalk, solution: Solution) -> dict[str, float]:
    """Root mean square distances from the recording, at its times."""
    distances = recorded_walk.distances(solution.phase)
    errors = {"angle_error": root_mean_square([distances[name] for name in walker.angles])}
    if recorded_walk.forces:
        errors["force_error"] = root_mean_square([distances[name] for name in recorded_walk.forces]) / walker.weight
    return errors
