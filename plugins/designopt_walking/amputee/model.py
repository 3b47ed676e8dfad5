"""The model ``amputee_walk``: a prosthetic knee and ankle in, the walk that a transfemoral amputee then chooses out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, TypedDict, cast, get_args, get_type_hints

import numpy as np
from designopt_mechanics.robot_files.xml import ModelError
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.read import read_model
from designopt_recordings.errors import RecordingError
from designopt_recordings.table import TimeTable
from numpy.typing import NDArray

from designopt.collocation import TrajectoryProblem
from designopt.plugin import Declaration, Fidelity, InputFile, InvalidDesign, InvalidSetting, filled, model
from designopt.plugin import Quantity as Q
from designopt_walking.amputee.problem import DURATION, AmputeeCost, KneeLimits, Prosthesis, amputee_walker
from designopt_walking.amputee.programs import AmputeePrograms, SolveSettings
from designopt_walking.amputee.shared_walks import SharedWalks
from designopt_walking.amputee.start import AmputeeStart, symmetric_walk
from designopt_walking.amputee.walks import AmputeeWalks, Prediction
from designopt_walking.bundled import planar_walker
from designopt_walking.devices.four_bar import FourBar
from designopt_walking.devices.joint_springs import stop_torque
from designopt_walking.models.predict import WalkingOnSlope
from designopt_walking.programs.gait import FORWARD, PULL_STEP, GaitError, check_contact, nearer_zero
from designopt_walking.results.arrays import WALK_ARRAYS, chosen_bounds, walk_arrays
from designopt_walking.results.cycle import SolvedWalk
from designopt_walking.results.outputs import CONFIRM, MESH_OUTPUTS, WalkOutputs, mesh_outputs, walk_outputs
from designopt_walking.results.physics import refuse_implausible
from designopt_walking.results.recording import recorded_cycle
from designopt_walking.walker import idle_forces, on_slope, with_pull

#: Steps in which walks are taken to steeper ground, rise over run.
SLOPE_STEP = 0.05
#: Intervals below which a mesh is too coarse for forces.
COARSE = 40


class AmputeeDesign(TypedDict, total=False):
    """Values of a design: the knee (single axis: about its axis; four-bar: along its damper) and the ankle."""

    knee_stiffness: Annotated[float, Q("N m/rad", "spring of the single-axis knee", ge=0, le=60, default=15.0)]
    knee_damping: Annotated[float, Q("N m s/rad", "damper of the single-axis knee", ge=0, le=20, default=2.0)]
    damper_stiffness: Annotated[float, Q("N/m", "spring along the four-bar's damper", ge=0, le=1.5e5, default=2e4)]
    damper_damping: Annotated[float, Q("N s/m", "damper of the four-bar knee", ge=0, le=5e4, default=2.5e3)]
    ankle_stiffness: Annotated[float, Q("N m/rad", "spring of the ankle", ge=50, le=1000, default=400.0)]


class AmputeeOutputs(WalkOutputs):
    """Outputs besides those of any walk."""

    peak_stop_torque: Annotated[float, Q("N m", "largest, of the extension stop of the knee")]
    warm: Annotated[float, Q("", "1 where the walk was solved from a neighbouring one with its multipliers")]
    attempts: Annotated[float, Q("", "number of solves from waypoints and starts, failed ones among them")]
    agreeing_starts: Annotated[float, Q("", "number of starts that end in the least objective")]
    start_spread: Annotated[float, Q("", "of the objectives of all starts, relative to the least")]


@model("amputee_walk", version=7, arrays=WALK_ARRAYS, fidelity=Fidelity({"intervals": 40}, 0.75))
class AmputeeWalk:
    """Predicted walk of a transfemoral amputee with a prosthetic knee and an elastic ankle.

    Skeleton, muscles, ground contact and device are one program: J = (10/d) times the integral of the squared
    excitations, plus `asymmetry_weight` times the squared asymmetry of the vertical impulses, at least over a full
    cycle at the speed of the scenario. On the amputated side the muscles of knee and ankle are missing, and the mass
    below the knee is 0.65 of the healthy one.

    Every design is continued, in small steps of slope, pull, speed and device, from one walk with a middle device,
    which takes a few minutes: a symmetric walk, then one with help torques, then without. Workers of a machine and
    later runs share these walks through files of the cache. The single axis has a soft and a stiff middle device, whose
    gaits differ; the cheaper of both walks is the result. It is a local optimum. Walks that sink into the ground by
    more than 30 mm, or press a foot with more than 4 body weights, have no result (``implausible``).
    """

    own_options = True

    model: Annotated[InputFile | None, Q("", "OpenSim model of a planar walker; the bundled one if none")] = None
    side: Annotated[Literal["r", "l"], Q("", "amputated: right or left")] = "r"
    knee: Annotated[Literal["single_axis", "four_bar"], Q("", "of the prosthesis")] = "single_axis"
    linkage: Annotated[
        Literal["substitute_v1", "substitute_v2"], Q("", "parameter set of the four-bar knee, as in four_bar_knee")
    ] = "substitute_v2"
    linkage_rise: Annotated[float, Q("m", "of the linkage's upper front joint above the healthy knee's axis")] = 0.0
    myodesis: Annotated[bool, Q("", "hamstrings and rectus femoris stay, fixed to the femur")] = False
    asymmetry_weight: Annotated[float, Q("", "of the squared asymmetry of the vertical impulses", ge=0)] = 1.0
    max_swing_flexion: Annotated[float, Q("rad", "of the prosthetic knee", gt=0.2, le=2.0)] = float(np.radians(80.0))
    max_stop_torque: Annotated[float | None, Q("N m", "of the extension stop; default: no limit", ge=1)] = None
    choose: Annotated[list[str], Q("", "device parameters that the program chooses, instead of the design")] = field(
        default_factory=list
    )
    recording: Annotated[
        InputFile | None, Q("", "means and deviations of a recorded cycle, drawn beside the walk (STO, MOT or CSV)")
    ] = None
    intervals: Annotated[int, Q("", "of the mesh of a cycle: 50 to search, 100 to report", ge=8)] = 50
    confirm: Annotated[bool, Q("", CONFIRM)] = False
    tolerance: Annotated[float, Q("", "of the solver", gt=0, lt=1e-2)] = 1e-6
    max_iterations: Annotated[int, Q("", "of the solver, for one solve", ge=1)] = 600

    def check(self) -> None:
        """Raises `InvalidSetting` for unusable files and for names of parameters that this knee lacks."""
        try:
            _ = self._recording
        except RecordingError as error:
            raise InvalidSetting("recording", str(error)) from None
        for name in self.choose:
            if name not in self._prosthesis.parameters:
                parameter_names = ", ".join(self._prosthesis.parameters)
                raise InvalidSetting("choose", f"'{name}' is no parameter of this device; known: {parameter_names}")
        try:
            check_contact(amputee_walker(self._model, self._prosthesis, self._limits))
        except GaitError as error:
            raise InvalidSetting("model", f"{self._file.name}: {error.message}") from None
        except (ModelError, ValueError) as error:
            raise InvalidSetting("model", f"{self._file.name}: {error}") from None
        except InvalidDesign as error:
            raise InvalidSetting("linkage", str(error)) from None

    def remarks(self, conditions: Mapping[str, Any]) -> list[str]:
        """Sentences on parts of the model that are not used, and on the effect of a coarse mesh on the forces."""
        notes = [f"{self._file.name}: {note}" for note in idle_forces(self._model)]
        if self.intervals >= COARSE:
            return notes
        return [
            *notes,
            f"on {self.intervals} intervals of a cycle the ground forces may alternate from interval to interval,"
            f" although all checks hold: {COARSE} or more for results, 60 to report",
        ]

    def declares(self) -> Declaration:
        """Parameters of this knee are inputs, those that the program chooses outputs, like the change with the mesh, if
        it is to be confirmed. A page shows the walk, and the map of the device."""
        hints = get_type_hints(AmputeeDesign, include_extras=True)
        quantities: dict[str, Q] = {name: get_args(hint)[1] for name, hint in hints.items() if name in self.choose}
        device_quantities = {f"chosen_{name}": Q(q.unit, f"chosen, {q.description}") for name, q in quantities.items()}
        if device_quantities:
            device_quantities["chosen_at_bounds"] = Q(
                "", "chosen parameters at an end of their range", notable=True, listed_by="bounds"
            )
        inputs = {name for name in self._prosthesis.parameters if name not in self.choose}
        return Declaration(
            outputs={**device_quantities, **(MESH_OUTPUTS if self.confirm else {})},
            without=frozenset(hints.keys() - inputs),
            plots=("walking_figure", "device_map"),
        )

    def evaluate(
        self, design: AmputeeDesign, scenario: WalkingOnSlope, arrays: Set[str] = frozenset()
    ) -> tuple[AmputeeOutputs, dict[str, NDArray[Any]]]:
        """The walk with this device. Raises `InvalidDesign` for values of another knee, `Diverged` without a walk."""
        ground = filled(WalkingOnSlope, scenario)
        values, speed, walks = self._values(design), ground["speed"], self._walks(ground["slope"], ground["pull"])
        prediction = walks.best_device(speed, values) if self.choose else walks.walk(speed, values)
        confirmation: dict[str, float] = {}
        if self.confirm:
            coarse, prediction = prediction, walks.confirmed(speed, values, prediction)
            confirmation = mesh_outputs(coarse.solution, prediction.solution, walks.programs.walker.angles)
        walk = SolvedWalk(walks.programs.walker, prediction.solution, False, DURATION, tuple(self.choose))
        outputs = cast(AmputeeOutputs, {**self._outputs(walk, prediction), **confirmation})
        every = walk_arrays(walk, self._recording)
        every["notes"] = np.array([*prediction.failures, *every["notes"]], dtype=str)
        kept_arrays = {name: every[name] for name in arrays}
        refuse_implausible(outputs, kept_arrays)
        return outputs, kept_arrays

    def trajectory_problem(self, scenario: Mapping[str, Any]) -> TrajectoryProblem:
        """The walk as a program in which all parameters of the device are unknowns; it starts from the middle device.

        Raises `InvalidSetting` for an unusable model.
        """
        self.check()
        ground = filled(WalkingOnSlope, scenario)
        return self._walks(ground["slope"], ground["pull"]).free_problem(ground["speed"])

    # ---------------------------------------------------------------------------------------------------------- parts

    @property
    def _file(self) -> InputFile:
        return self.model if self.model is not None else planar_walker()

    @property
    def _model(self) -> OsimModel:
        return read_model(self._file.content)

    @property
    def _prosthesis(self) -> Prosthesis:
        linkage = FourBar(self.linkage, self.linkage_rise) if self.knee == "four_bar" else None
        return Prosthesis(self.side, linkage, self.myodesis)

    @property
    def _recording(self) -> TimeTable | None:
        return None if self.recording is None else recorded_cycle(self.recording)

    @property
    def _limits(self) -> KneeLimits:
        return KneeLimits(self.max_swing_flexion, self.max_stop_torque)

    @cached_property
    def _by_ground(self) -> dict[tuple[float, float], AmputeeWalks]:
        return {}

    def _walks(self, slope: float, pull: float = 0.0) -> AmputeeWalks:
        """Walks on a slope with a pull (N), which continue those with a pull smaller by a `PULL_STEP`, without one
        those on ground a `SLOPE_STEP` nearer to level."""
        if (slope, pull) not in self._by_ground:
            settings, cost = (
                SolveSettings(self.tolerance, self.max_iterations),
                AmputeeCost(self.asymmetry_weight),
            )
            start = _start(self._file, self._prosthesis, self._limits, cost, settings, slope, pull)
            nearer = None
            if pull:
                nearer = self._walks(slope, nearer_zero(pull, PULL_STEP))
            elif slope:
                nearer = self._walks(nearer_zero(slope, SLOPE_STEP))
            self._by_ground[slope, pull] = AmputeeWalks(start, self.intervals, nearer)
        return self._by_ground[slope, pull]

    def _values(self, design: Mapping[str, Any]) -> dict[str, float]:
        """Values of the device's parameters that the design fixes."""
        names, usual = self._prosthesis.parameters, cast(Mapping[str, float], filled(AmputeeDesign, {}))
        for name in design:
            if name not in names:
                raise InvalidDesign(f"{name}: the knee is {self.knee}, which has {', '.join(names)}")
            if name in self.choose:
                raise InvalidDesign(f"{name}: the program chooses it (setting 'choose'): leave it out of the space")
        return {name: float(design.get(name, usual[name])) for name in names if name not in self.choose}

    def _outputs(self, walk: SolvedWalk, prediction: Prediction) -> AmputeeOutputs:
        parameters = prediction.solution.parameters
        outputs = {
            **walk_outputs(walk),
            **{f"chosen_{name}": parameters[name] for name in self.choose},
            **({"chosen_at_bounds": float(len(chosen_bounds(walk)))} if self.choose else {}),
            "peak_stop_torque": -float(stop_torque(float(walk.points.values[f"knee_angle_{self.side}"].max()))),
            "warm": float(prediction.way == "warm"),
            "attempts": float(prediction.attempts),
            "agreeing_starts": float(prediction.agreeing),
            "start_spread": prediction.spread,
        }
        return cast(AmputeeOutputs, outputs)


@lru_cache(maxsize=8)
def _start(
    file: InputFile,
    prosthesis: Prosthesis,
    limits: KneeLimits,
    cost: AmputeeCost,
    settings: SolveSettings,
    slope: float,
    pull: float,
) -> AmputeeStart:
    """The start of walks on a slope with a pull, which is common to all meshes."""
    osim = on_slope(read_model(file.content), slope)
    walker = with_pull(amputee_walker(osim, prosthesis, limits), FORWARD, pull)
    programs = AmputeePrograms(walker, prosthesis, cost, settings)
    shared = SharedWalks(repr((file.digest, prosthesis, limits, cost, settings, slope, pull)))
    return AmputeeStart(programs, lambda speed: symmetric_walk(osim, speed, settings.tolerance), shared)
