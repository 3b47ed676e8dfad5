"""The model ``walk_predict``: a device and a speed in, the walk that a person then chooses out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, TypedDict, cast

from designopt_mechanics.robot_files.xml import ModelError
from designopt_muscle.geometry.fits import PolynomialPaths, polynomial_paths
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.read import read_model
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_table
from designopt_recordings.table import TimeTable
from numpy.typing import NDArray

from designopt.collocation import Solution, TrajectoryProblem
from designopt.plugin import Declaration, Diverged, Fidelity, InputFile, InvalidSetting, filled, model
from designopt.plugin import Quantity as Q
from designopt_walking.bundled import planar_walker
from designopt_walking.devices import DEVICES, with_device_mass
from designopt_walking.programs.gait import (
    FORWARD,
    PULL_STEP,
    GaitError,
    GaitRanges,
    StatedRanges,
    check_speed,
    check_stance,
    forward_range,
    nearer_zero,
    outside_ranges,
    ranged_tree,
)
from designopt_walking.programs.predict import Effort
from designopt_walking.programs.predictor import PredictionMesh, WalkPredictor, agreeing, spread_of_costs
from designopt_walking.programs.tendons import (
    TENDON_SETTINGS,
    RigidTendons,
    TendonKind,
    Tendons,
    TendonStrains,
)
from designopt_walking.results.arrays import WALK_ARRAYS, chosen_bounds, duration_bounds, walk_arrays
from designopt_walking.results.cycle import SolvedWalk
from designopt_walking.results.outputs import (
    CONFIRM,
    MESH_OUTPUTS,
    TENDON_OUTPUTS,
    WalkOutputs,
    mesh_outputs,
    walk_outputs,
)
from designopt_walking.results.physics import refuse_implausible
from designopt_walking.results.recording import recorded_cycle
from designopt_walking.storage import guess_from_table
from designopt_walking.walker import Friction, Walker, idle_forces, on_slope, walker_of, with_mass, with_pull


class Walking(TypedDict, total=False):
    """Conditions of the walk."""

    speed: Annotated[float, Q("m/s", "of walking", gt=0, le=2.5, default=1.2)]


class WalkingOnSlope(Walking, total=False):
    """Conditions of the walk, the ground's slope and a pull among them."""

    slope: Annotated[float, Q("", "of the ground, rise over run, uphill positive", ge=-0.3, le=0.3, default=0.0)]
    pull: Annotated[
        float,
        Q("N", "on the pelvis along the ground, as of a belt, forward positive", ge=-100.0, le=100.0, default=0.0),
    ]


class PredictedOutputs(WalkOutputs):
    """Outputs besides those of any walk."""

    warm: Annotated[
        float, Q("", "1 where the walk was solved with the multipliers of one without device or nearer to 1.2 m/s")
    ]
    agreeing_starts: Annotated[float, Q("", "number of starts that end within 0.1 % of the least objective")]
    start_spread: Annotated[float, Q("", "of the objectives of all starts, relative to the least")]
    bounds_active: Annotated[
        float,
        Q("", "coordinates, duration, chosen parameters at an end of their range", notable=True, listed_by="bounds"),
    ]
    path_error: Annotated[float, Q("m", "largest, of polynomials for the lengths of muscle paths")]


@model("walk_predict", version=6, arrays=WALK_ARRAYS, fidelity=Fidelity({"intervals": 15}, 0.6))
class WalkPredict:
    """Predicted walk of a musculoskeletal model with contact: the motion is the answer, not a recording.

    Half a cycle at the speed of the scenario, which its mirror image continues, with the least J = (10/d) times the
    integral of the excitations to a power (Ackermann and van den Bogert 2010). No data are needed: a synthetic walk is
    tracked first, and the prediction starts from there. With a `device`, its parameters are the inputs; those of
    `choose`, and all with the solver ``collocation``, are unknowns of the program. `choose` starts from the walk with
    the least parameters and from those with a soft and a stiff device, and takes the best.

    The feet are rigid, the model is planar, and a prediction is a local optimum: `starts` shows how many others agree.
    With compliant `tendons` the walk starts from that on rigid ones. Walks that sink into the ground by more than 30
    mm, or press a foot with more than 4 body weights, have no result (``implausible``). The bundled model is not for
    research or clinical use.
    """

    own_options = True
    later_settings: ClassVar[tuple[str, ...]] = (*TENDON_SETTINGS, "body_mass")

    model: Annotated[InputFile | None, Q("", "OpenSim model (.osim) of a walker; the bundled planar one if none")] = (
        None
    )
    body_mass: Annotated[
        float | None,
        Q(
            "kg",
            "of the person; masses and inertias of all bodies are scaled to it, muscles and feet are not",
            ge=20,
            le=250,
        ),
    ] = None
    device: Annotated[
        Literal["hip_springs", "ankle_springs"] | None, Q("", "springs on both sides; none by default")
    ] = None
    mass: Annotated[float, Q("kg", "of the device on each leg", ge=0)] = 0.0
    choose: Annotated[list[str], Q("", "parameters of the device that the program chooses")] = field(
        default_factory=list
    )
    exponent: Annotated[int, Q("", "of the excitations in the cost", ge=2, le=10)] = 3
    weights: Annotated[Literal["none", "volume"], Q("", "of the muscles in the cost")] = "none"
    torque_scale: Annotated[
        float, Q("N m", "size of the torque of drives in the cost; 1 as in the literature", gt=0)
    ] = 1.0
    metabolic_weight: Annotated[
        float, Q("kg m/J", "of the metabolic cost of transport beside the excitations in the cost", ge=0)
    ] = 0.0
    friction: Friction = "smooth"
    paths: Annotated[
        Literal["exact", "polynomial"], Q("", "of muscles; those that wrap are polynomials in any case")
    ] = "exact"
    tendons: TendonKind = "rigid"
    rigid_tendons: RigidTendons = None
    tendon_strains: TendonStrains = field(default_factory=dict)
    duration: Annotated[tuple[float, float], Q("s", "range of the duration of the half cycle")] = (0.4, 0.6)
    ranges: StatedRanges = field(default_factory=dict)
    speeds: Annotated[
        dict[str, tuple[float, float]], Q("", "ranges of the coordinates' speeds in rad/s or m/s, by name")
    ] = field(default_factory=dict)
    drive_limit: Annotated[float | None, Q("", "largest control of drives; null: that of the model", gt=0)] = 5.0
    guess: Annotated[
        InputFile | None, Q("", "trajectories (.sto) of OpenSim to start from; a synthetic walk if none")
    ] = None
    recording: Annotated[
        InputFile | None, Q("", "means and deviations of a recorded cycle, drawn beside the walk (STO, MOT or CSV)")
    ] = None
    starts: Annotated[int, Q("", "number of synthetic walks to start from; the best result counts", ge=1, le=100)] = 1
    intervals: Annotated[int, Q("", "of the mesh of the half cycle: 25 to search, 50 to report", ge=4, le=400)] = 25
    confirm: Annotated[bool, Q("", CONFIRM)] = False
    scheme: Annotated[Literal["hermite_simpson", "radau"], Q("", "of the transcription; radau has the degree 3")] = (
        "hermite_simpson"
    )
    tolerance: Annotated[float, Q("", "of the solver", gt=0, lt=1e-2)] = 1e-5

    def check(self) -> None:
        """Raises `InvalidSetting` for unusable files, ranges, and names of parameters that the device lacks."""
        try:
            _ = self._recording
        except RecordingError as error:
            raise InvalidSetting("recording", str(error)) from None
        predictor = self._predictor(0.0)[0]
        names = [v.name for device in predictor.walker.devices for v, _ in device.parameters]
        for name in self.choose:
            if name not in names:
                raise InvalidSetting("choose", f"'{name}' is no parameter of the device ({', '.join(names) or 'none'})")
        if self.mass and self.device is None:
            raise InvalidSetting("mass", "there is no device that could have a mass; name it with 'device'")

    def check_scenario(self, conditions: Mapping[str, Any]) -> None:
        """Raises `InvalidSetting` for a speed that is out of reach."""
        ground = filled(WalkingOnSlope, conditions)
        predictor = self._predictor(ground["slope"], ground["pull"])[0]
        try:
            check_speed(ground["speed"], predictor.gait, forward_range(predictor.walker))
        except GaitError as error:
            raise InvalidSetting(error.field, error.message) from None

    def remarks(self, conditions: Mapping[str, Any]) -> list[str]:
        """Sentences on what the reader of the model replaced, and on a guess that leaves the ranges."""
        ground = filled(WalkingOnSlope, conditions)
        predictor = self._predictor(ground["slope"], ground["pull"])[0]
        walker, first = predictor.walker, predictor.first
        of_file = (*walker.model.notes, *idle_forces(walker.model))
        notes = [f"{self._file.name}: {note}" for note in of_file if "sharing" not in note]
        return notes + ([] if first is None else outside_ranges(walker, first))

    def declares(self) -> Declaration:
        """Parameters of the device are inputs, those that the program chooses outputs, and the change with the mesh.
        A page shows the walk, and the map of a device."""
        extra_outputs = (MESH_OUTPUTS if self.confirm else {}) | (TENDON_OUTPUTS if self.tendons == "compliant" else {})
        if self.device is None:
            return Declaration(outputs=extra_outputs, plots=("walking_figure",))
        symbols = DEVICES[self.device](walker_of(self._model)).parameters
        quantities = {v.name: Q(v.unit, v.description, ge=v.low, le=v.high) for v, _ in symbols}
        inputs = {name: q for name, q in quantities.items() if name not in self.choose}
        device_outputs = {
            f"chosen_{n}": Q(q.unit, f"chosen {q.description}") for n, q in quantities.items() if n in self.choose
        }
        outputs = {**device_outputs, **extra_outputs}
        return Declaration(inputs=inputs, outputs=outputs, plots=("walking_figure", "device_map"))

    def evaluate(
        self, design: dict[str, float], scenario: WalkingOnSlope, arrays: Set[str] = frozenset()
    ) -> tuple[PredictedOutputs, dict[str, NDArray[Any]]]:
        """The walk with this device. Raises `Diverged` without one, and for an implausible one."""
        ground = filled(WalkingOnSlope, scenario)
        speed = ground["speed"]
        predictor, fits = self._predictor(ground["slope"], ground["pull"])
        try:
            solution = prediction = predictor.solve(speed, design, starts=self.starts)
        except GaitError as error:
            raise InvalidSetting(error.field, error.message) from None
        if not prediction.success:
            raise Diverged(prediction.message, reason=prediction.status.name.lower())
        confirmation: dict[str, float] = {}
        if self.confirm:
            solution = predictor.confirmed(speed, design, prediction, self.starts)
            confirmation = mesh_outputs(prediction, solution, predictor.walker.angles)
        solution = predictor.checked(speed, solution)
        walk = SolvedWalk(predictor.walker, solution, True, self.duration, tuple(self.choose))
        outputs = {
            **walk_outputs(walk),
            **{f"chosen_{name}": solution.parameters[name] for name in self.choose},
            "warm": float(prediction.warm_path == ("full",)),
            "agreeing_starts": float(agreeing(prediction)),
            "start_spread": spread_of_costs(prediction),
            "bounds_active": float(
                _at_bounds(predictor.walker, solution) + len(duration_bounds(walk)) + len(chosen_bounds(walk))
            ),
            "path_error": max((fit.length_error for fit in fits.fits), default=0.0),
            **confirmation,
        }
        every = walk_arrays(walk, self._recording)
        kept_arrays = {name: every[name] for name in arrays}
        refuse_implausible(outputs, kept_arrays)
        return cast(PredictedOutputs, outputs), kept_arrays

    def trajectory_problem(self, scenario: Mapping[str, Any]) -> TrajectoryProblem:
        """The walk as a program in which all parameters of the device are unknowns."""
        self.check_scenario(scenario)
        ground = filled(WalkingOnSlope, scenario)
        return self._predictor(ground["slope"], ground["pull"])[0].problem(ground["speed"])

    # ---------------------------------------------------------------------------------------------------------- parts

    @property
    def _file(self) -> InputFile:
        return self.model if self.model is not None else planar_walker()

    @property
    def _recording(self) -> TimeTable | None:
        return None if self.recording is None else recorded_cycle(self.recording)

    @property
    def _tendons(self) -> Tendons:
        return Tendons(self.tendons, self.rigid_tendons, self.tendon_strains)

    @property
    def _model(self) -> OsimModel:
        return read_model(self._file.content)

    @cached_property
    def _predictors(self) -> dict[tuple[float, float], tuple[WalkPredictor, PolynomialPaths]]:
        return {}

    def _predictor(self, slope: float, pull: float = 0.0) -> tuple[WalkPredictor, PolynomialPaths]:
        """The predictor on a slope with a pull (N), which keeps its starts, and fits of muscle paths. Raises
        `InvalidSetting`."""
        if (slope, pull) not in self._predictors:
            self._predictors[slope, pull] = self._predictor_and_problem(slope, pull)
        return self._predictors[slope, pull]

    def _predictor_and_problem(self, slope: float, pull: float) -> tuple[WalkPredictor, PolynomialPaths]:
        gait = GaitRanges(self.duration, self.ranges, self.speeds, self.drive_limit)
        try:
            osim = on_slope(self._model, slope)
            if self.body_mass is not None:
                osim = with_mass(osim, self.body_mass)
            if self.device is not None:
                osim = with_device_mass(osim, self.device, self.mass)
            osim, compliant = self._tendons.applied_to(osim)
            tree = ranged_tree(osim, gait)
            ranges = {c.name: (c.low, c.high) for c in tree.coordinates}
            fits = polynomial_paths(osim, ranges, every=self.paths == "polynomial")

            def on_tendons(elastic: tuple[str, ...]) -> Walker:
                walker = walker_of(
                    osim, tree=tree, ranges=ranges, friction=self.friction, lengths=fits, compliant=elastic
                )
                walker = with_pull(walker, FORWARD, pull)
                return walker if self.device is None else walker.with_device(DEVICES[self.device])

            walker = on_tendons(compliant)
            first = None if self.guess is None else guess_from_table(walker, read_table(self.guess))
            mesh = PredictionMesh(self.intervals, self.tolerance, self.scheme)
            gentler = self._predictor(slope, nearer_zero(pull, PULL_STEP))[0] if pull else None
            rigid = on_tendons(()) if compliant else None
            predictor = WalkPredictor(walker, gait, self._effort(osim), mesh, first, gentler, rigid)
            if first is not None:
                check_stance(walker, first)
            predictor.problem(1.0)
        except GaitError as error:
            field_name = error.field.split(".")[0]
            is_setting = field_name in (
                "model", "ranges", "speeds", "duration", "guess", "rigid_tendons", "tendon_strains"
            )  # fmt: skip
            setting, message = (error.field, error.message) if is_setting else ("model", str(error))
            raise InvalidSetting(setting, message) from None
        except (ModelError, ValueError) as error:
            if isinstance(error, RecordingError):
                raise InvalidSetting("guess", str(error)) from None
            raise InvalidSetting("model", f"{self._file.name}: {error}") from None
        return predictor, fits

    def _effort(self, osim: OsimModel) -> Effort:
        volumes = {m.name: m.force * m.fibre for m in osim.muscles}
        mean = sum(volumes.values()) / max(len(volumes), 1)
        weights = {n: v / mean for n, v in volumes.items()} if self.weights == "volume" else {}
        return Effort(self.exponent, weights, self.torque_scale, self.metabolic_weight)


def _at_bounds(walker: Walker, solution: Solution) -> int:
    """How many coordinates are at a bound for more than an instant."""
    shares = solution.phase.saturation
    return sum(max(shares.get(name, (0.0, 0.0))) > 0.0 for name in walker.coordinates)
