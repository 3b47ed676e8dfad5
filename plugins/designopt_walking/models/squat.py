"""The model ``squat_to_stand``: a spring at the knee in, the easiest way to stand up out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, TypedDict, cast

import numpy as np
from designopt_mechanics.robot_files.xml import ModelError
from designopt_muscle.geometry.fits import PolynomialPaths
from designopt_muscle.osim.read import read_model
from numpy.typing import NDArray

from designopt.collocation import Solution, TrajectoryProblem, solve_design
from designopt.plugin import Array, Declaration, InputFile, InvalidSetting, model
from designopt.plugin import Quantity as Q
from designopt_walking.bundled import squat_leg
from designopt_walking.programs.gait import GaitError, program_options
from designopt_walking.programs.squat import STIFFEST, Squat, rigid_start, squat_to_stand, squat_walker
from designopt_walking.programs.tendons import (
    TENDON_SETTINGS,
    RigidTendons,
    TendonKind,
    Tendons,
    TendonStrains,
)
from designopt_walking.results.fibres import FibresAlong, fibres_along
from designopt_walking.results.outputs import TENDON_OUTPUTS, tendon_peaks
from designopt_walking.system import stack_values
from designopt_walking.walker import Walker, idle_forces


class SquatDesign(TypedDict, total=False):
    """Values of a design."""

    knee_stiffness: Annotated[
        float, Q("N m/rad", "of a spring at the knee, relaxed when straight", ge=0, le=STIFFEST, default=0.0)
    ]


class SquatOutputs(TypedDict):
    """Outputs of standing up."""

    effort: Annotated[
        float, Q("s", "integral of squared controls; with muscles, of squared activations and excitations")
    ]
    peak_control: Annotated[float, Q("", "largest size of any control")]
    device_work: Annotated[float, Q("J", "of the spring")]
    path_error: Annotated[float, Q("m", "largest, of polynomials for the lengths of muscle paths that wrap")]
    arm_error: Annotated[float, Q("m", "root mean square, of their moment arms, of the worst muscle")]
    error_estimate: Annotated[float, Q("", "of the discretisation, relative to the states")]
    resimulation_error: Annotated[float, Q("", "of a simulation with the same controls, relative to the states")]
    iterations: Annotated[float, Q("", "of the solver")]


ARRAYS = {
    "time": Array(("time",), "s", "of the motion"),
    "coordinates": Array(("coordinate",), "", "names", dtype="str"),
    "controls": Array(("control",), "", "names of drives or muscles", dtype="str"),
    "angles": Array(("time", "coordinate"), "rad", "of the joints"),
    "speeds": Array(("time", "coordinate"), "rad/s", "of the joints"),
    "excitations": Array(("time", "control"), "", "controls of drives, or excitations of muscles"),
    "activations": Array(("time", "muscle"), "", "of muscles"),
    "fibre_lengths": Array(("time", "muscle"), "", "of muscles, in optimal lengths"),
    "tendon_strains": Array(("time", "muscle"), "", "lengthening by slack length; 0 of rigid tendons"),
}
_TENDON_OUTPUTS = {name: TENDON_OUTPUTS[name] for name in ("peak_tendon_strain", "peak_tendon_energy")}
_SAMPLES = 101


@model("squat_to_stand", version=2, arrays=ARRAYS)
class SquatToStand:
    """Standing up from a squat within a second, with least squared torques or least muscle activity.

    After the example of OpenSim Moco (Dembia et al. 2020): a leg that stands for two, whose foot stays on the ground.
    The spring at the knee is an input; with the solver ``collocation`` it is an unknown of the program. With muscles
    the cost is the integral of squared activations and a tenth of the squared excitations: with excitations alone, the
    activations at the start would be free of charge on ever finer meshes. Compliant `tendons` are at rest at the start.
    """

    own_options = True
    later_settings: ClassVar[tuple[str, ...]] = TENDON_SETTINGS

    model: Annotated[
        InputFile | None, Q("", "OpenSim model (.osim) of a leg with one hip, knee and ankle; the bundled one if none")
    ] = None
    drive: Annotated[Literal["torques", "muscles"], Q("", "what moves the joints")] = "torques"
    duration: Annotated[float, Q("s", "of the motion", gt=0.1, le=10)] = 1.0
    excitation_weight: Annotated[float, Q("", "of squared excitations beside squared activations", gt=0)] = 0.1
    strength: Annotated[float, Q("", "factor on the muscles' forces; one leg stands for two", gt=0)] = 2.0
    tendons: TendonKind = "rigid"
    rigid_tendons: RigidTendons = None
    tendon_strains: TendonStrains = field(default_factory=dict)
    intervals: Annotated[int, Q("", "of the mesh", ge=4, le=1000)] = 50
    tolerance: Annotated[float, Q("", "of the solver", gt=0, lt=1e-2)] = 1e-6

    def check(self) -> None:
        """Raises `InvalidSetting` for a file that is no such leg, and for unusable tendons."""
        if self.tendons == "compliant" and self.drive == "torques":
            raise InvalidSetting("tendons", "torques have no tendons; set 'drive: muscles'")
        _ = self._leg

    def remarks(self, conditions: Mapping[str, Any]) -> list[str]:
        """Sentences on parts of the model that are not used."""
        return [] if self.model is None else [f"{self.model.name}: {note}" for note in idle_forces(self._leg[0].model)]

    def declares(self) -> Declaration:
        """The energy in compliant tendons is an output."""
        return Declaration(outputs=_TENDON_OUTPUTS if self.tendons == "compliant" else {})

    def evaluate(
        self, design: SquatDesign, scenario: dict[str, Any], arrays: Set[str] = frozenset()
    ) -> tuple[SquatOutputs, dict[str, NDArray[Any]]]:
        """The motion with this spring. Raises `Diverged` without one."""
        values = {"knee_stiffness": 0.0, **cast(Mapping[str, float], design)}
        options = program_options(self.intervals, self.tolerance, check=True)
        solution = solve_design(self._problem, values, options)
        walker, fits = self._leg
        outputs = SquatOutputs(
            effort=solution.figures["effort"],
            peak_control=float(max(np.abs(solution.phase.values[n]).max() for n in solution.phase.of_kind("control"))),
            device_work=_spring_work(walker, solution),
            path_error=max((fit.length_error for fit in fits.fits), default=0.0),
            arm_error=max((fit.arm_error for fit in fits.fits), default=0.0),
            error_estimate=solution.error_estimate,
            resimulation_error=float(np.max(solution.phase.segment_errors, initial=0.0)),
            iterations=float(solution.iterations),
        )
        samples, along = _sample(walker, solution)
        peaks = tendon_peaks(along.tendon_strain, along.tendon_energy) if walker.muscles.compliant else {}
        return cast(SquatOutputs, {**outputs, **peaks}), {name: samples[name] for name in arrays}

    def trajectory_problem(self, scenario: Mapping[str, Any]) -> TrajectoryProblem:
        """The motion as a program in which the spring is an unknown."""
        return self._problem

    @cached_property
    def _leg(self) -> tuple[Walker, PolynomialPaths]:
        file = self.model if self.model is not None else squat_leg()
        try:
            return squat_walker(read_model(file.content), self._squat)
        except (ModelError, GaitError, ValueError) as error:
            message = error.message if isinstance(error, GaitError) else str(error)
            if isinstance(error, GaitError) and error.field in TENDON_SETTINGS:
                raise InvalidSetting(error.field, message) from None
            raise InvalidSetting("model", f"{file.name}: {message}") from None

    @property
    def _squat(self) -> Squat:
        tendons = Tendons(self.tendons, self.rigid_tendons, self.tendon_strains)
        return Squat(self.duration, self.drive, self.excitation_weight, self.strength, tendons=tendons)

    @cached_property
    def _problem(self) -> TrajectoryProblem:
        file = self.model if self.model is not None else squat_leg()
        start = rigid_start(read_model(file.content), self._squat, self.intervals)
        return squat_to_stand(self._leg[0], self._squat, start)


def _spring_work(walker: Walker, solution: Solution) -> float:
    """The energy (J) that the spring gives: what it holds at the start less that at the end."""
    (name,) = (n for device in walker.devices for n in device.moments)
    first, last = (float(solution.phase.values[name][i]) for i in (0, -1))
    return 0.5 * solution.parameters["knee_stiffness"] * (first**2 - last**2)


def _sample(walker: Walker, solution: Solution) -> tuple[dict[str, NDArray[Any]], FibresAlong]:
    """All of `ARRAYS`, at equal distances of time, and fibres and tendons then."""
    phase, muscles = solution.phase, walker.muscles.names
    time = np.linspace(phase.t0, phase.tf, _SAMPLES)
    values = phase.interpolate(time)
    controls = tuple(walker.drives) or muscles
    along = fibres_along(walker, values)
    arrays = {
        "time": time,
        "coordinates": np.array(walker.coordinates, dtype=str),
        "controls": np.array(controls, dtype=str),
        "angles": stack_values(values, walker.coordinates),
        "speeds": stack_values(values, walker.coordinates, "{}_speed"),
        "excitations": stack_values(values, controls, "{}" if walker.drives else "excitation_{}"),
        "activations": stack_values(values, muscles, "activation_{}"),
        "fibre_lengths": along.fibre_length,
        "tendon_strains": along.tendon_strain,
    }
    return arrays, along
