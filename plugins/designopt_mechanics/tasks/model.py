"""The model ``mechanism``: a mechanism in a YAML, URDF or MJCF file, and what a study asks of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from designopt.arrays import Floats
from designopt.collocation import ProblemError, TrajectoryProblem
from designopt.lazy import casadi as ca
from designopt.plugin import Declaration, InputFile, InvalidDesign, InvalidSetting, Quantity, closest, model
from designopt.study.language.errors import StudyError
from designopt_mechanics.body import Body, BodyError, inertia_tensor, is_number
from designopt_mechanics.functions.formula import Formula
from designopt_mechanics.mechanism.loops import CannotClose, LoopSolver
from designopt_mechanics.mechanism.mechanism import Mechanism, MechanismParameter
from designopt_mechanics.mechanism.plausibility import plausibility_notes
from designopt_mechanics.model_file.reading import read
from designopt_mechanics.robot_files.reading import is_robot_file, read_robot
from designopt_mechanics.robot_files.xml import ModelError
from designopt_mechanics.tasks.equilibrium import EquilibriumTask
from designopt_mechanics.tasks.inverse_dynamics import InverseDynamicsTask
from designopt_mechanics.tasks.kinematics import GridSection, KinematicsTask
from designopt_mechanics.tasks.simulation import SimulationTask
from designopt_mechanics.tasks.task import MechanismTask, TaskSettings
from designopt_mechanics.tasks.tensions import SharingSection
from designopt_mechanics.tasks.trajectory import ProgramSection, TrajectoryTask
from designopt_mechanics.tree import TreeError

if TYPE_CHECKING:
    from designopt.study.study import DesignVariable

TASKS: Mapping[str, Any] = {
    "inverse_dynamics": InverseDynamicsTask,
    "simulation": SimulationTask,
    "equilibrium": EquilibriumTask,
    "trajectory": TrajectoryTask,
    "kinematics": KinematicsTask,
}
#: Tasks that read a setting; all read those that are not listed.
_READERS: Mapping[str, tuple[str, ...]] = {
    "motion": ("inverse_dynamics",),
    "motion_file": ("inverse_dynamics",),
    "carried_by": ("inverse_dynamics",),
    "sharing": ("inverse_dynamics",),
    "initial": ("simulation", "equilibrium"),
    "drives": ("simulation", "equilibrium"),
    "buckling": ("equilibrium",),
    "targets": ("inverse_dynamics", "simulation", "trajectory"),
    "grid": ("kinematics",),
    "program": ("trajectory",),
}
Point3 = list[float]


@model("mechanism", version=3)
class MechanismModel:
    """A mechanism of rigid bodies with closed loops, from a file, in one of five tasks.

    `inverse_dynamics`: efforts and joint forces of a motion. `simulation`: motion from an initial state under drives,
    springs, dampers and contacts. `equilibrium`: posture at rest, its stiffness, buckling load. `trajectory`: optimal
    motion between postures. `kinematics`: a grid of postures. The parameters of the file are design inputs; `set` adds
    any other number of the file by its path, such as ``frames.rod.body.mass``.
    """

    own_options = True

    file: Annotated[InputFile, Quantity("", "mechanism file (YAML), or a robot file (URDF, MJCF)")]
    task: Annotated[
        Literal["inverse_dynamics", "simulation", "equilibrium", "trajectory", "kinematics"],
        Quantity("", "the question"),
    ]
    set: Annotated[dict[str, str], Quantity("", "further design inputs by name: the path of a number of the file")] = (
        field(default_factory=dict)
    )
    conditions: Annotated[list[str], Quantity("", "parameters that scenarios set instead of designs")] = field(
        default_factory=list
    )
    branch: Annotated[str, Quantity("", "branch of the file in which the loops are assembled; default: reference")] = ""
    motion: Annotated[
        dict[str, str | float], Quantity("", "formulas of time (s) or numbers by coordinate, for inverse_dynamics")
    ] = field(default_factory=dict)
    motion_file: Annotated[
        InputFile | None, Quantity("", "table of the motion (CSV, MOT, STO): time and coordinates")
    ] = None
    duration: Annotated[float, Quantity("s", "of the motion", gt=0)] = 1.0
    samples: Annotated[int, Quantity("", "of the motion", ge=2, le=100_001)] = 201
    initial: Annotated[
        dict[str, float], Quantity("", "initial coordinates and <coordinate>_speed, SI, for simulation and equilibrium")
    ] = field(default_factory=dict)
    drives: Annotated[
        dict[str, str | float],
        Quantity("", "efforts by coordinate: numbers, or formulas of time, coordinates and <coordinate>_speed"),
    ] = field(default_factory=dict)
    targets: Annotated[
        dict[str, list[Point3]], Quantity("", "points (m) that the path of a point of the file should meet")
    ] = field(default_factory=dict)
    outputs: Annotated[list[str], Quantity("", "outputs that are reported; default: all")] = field(default_factory=list)
    redundant: Annotated[
        Literal["refuse", "least_squares"], Quantity("", "forces of loops that rigid bodies leave undetermined")
    ] = "refuse"
    buckling: Annotated[
        list[str], Quantity("", "loads of the file whose critical factor is sought, in equilibrium")
    ] = field(default_factory=list)
    carried_by: Annotated[
        list[str], Quantity("", "wires that carry the motion in place of drives, with the least squares of tensions")
    ] = field(default_factory=list)
    sharing: Annotated[SharingSection, Quantity("", "what the wires of carried_by minimise instead")] = field(
        default_factory=SharingSection
    )
    grid: Annotated[GridSection, Quantity("", "the postures of kinematics")] = field(default_factory=GridSection)
    program: Annotated[ProgramSection, Quantity("", "the program of trajectory")] = field(
        default_factory=ProgramSection
    )
    later_settings: ClassVar[tuple[str, ...]] = ("sharing",)

    # -------------------------------------------------------------------------------------------------------- settings

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism in the file. Raises `InvalidSetting`."""
        try:
            if is_robot_file(self.file.content):
                return read_robot(self.file.content, self.file.name, self.set).mechanism
            return read(self.file.content, self.file.name, self.set)
        except ModelError as error:
            at = f"{self.file.name}:{error.line}:{error.column}: {error.path}"
            raise InvalidSetting("file", f"{at}: {error.message}") from None
        except StudyError as error:
            messages = [
                f"{i.file}:{i.line}:{i.column}: {f'{i.path}: ' if i.path else ''}{i.message}" for i in error.issues[:5]
            ]
            raise InvalidSetting("file", "; ".join(messages)) from None
        except ValueError as error:
            raise InvalidSetting("set", str(error)) from None

    @cached_property
    def _task(self) -> MechanismTask:
        names = [f.name for f in fields(TaskSettings) if f.name not in ("mechanism", "loops")]
        settings = TaskSettings(self.mechanism, LoopSolver(self.mechanism), **{n: getattr(self, n) for n in names})
        task: MechanismTask = TASKS[self.task](settings)
        return task

    def remarks(self, conditions: Mapping[str, Any]) -> list[str]:
        """Sentences on what the robot file has and the mechanism lacks, on improbable numbers, on the motion and its
        table."""
        is_robot = is_robot_file(self.file.content)
        omissions = read_robot(self.file.content, self.file.name).omissions if is_robot else ()
        numbers = self._numbers({}, conditions)
        notes = self._task.notes(numbers)
        of_file = [*omissions, *plausibility_notes(self.mechanism, numbers)]
        return [*(f"{self.file.name}: {note}" for note in of_file), *notes]

    def check(self) -> Iterator[InvalidSetting]:
        """Read the file and check the settings of the task."""
        try:
            mechanism = self.mechanism
        except InvalidSetting as mistake:
            yield mistake
            return
        names = [p.name for p in mechanism.parameters]
        for name in self.conditions:
            if name not in names:
                near = closest(name, names)
                hint = f"; did you mean '{near}'?" if near else f"; there are {', '.join(names) or 'none'}"
                yield InvalidSetting("conditions", f"the file has no parameter '{name}'{hint}")
        if self.branch and self.branch not in mechanism.branches:
            names_of_branches = ", ".join(mechanism.branches) or "none"
            yield InvalidSetting("branch", f"there is no branch '{self.branch}' (in the file: {names_of_branches})")
            return
        yield from self._ineffective_settings()
        try:
            yield from self._task.check()
        except (TreeError, CannotClose) as error:
            yield InvalidSetting("file", str(error))

    def _ineffective_settings(self) -> Iterator[InvalidSetting]:
        """Settings of other tasks, which would have no effect."""
        defaults = MechanismModel(file=self.file, task=self.task)  # type: ignore[call-arg]
        for name, readers in _READERS.items():
            if self.task not in readers and getattr(self, name) != getattr(defaults, name):
                yield InvalidSetting(name, f"has no effect in the task {self.task}: it is for {' and '.join(readers)}")

    def check_space(self, parameters: Mapping[str, DesignVariable]) -> Iterator[InvalidSetting]:
        """Parameters that a study varies and that neither the file nor a formula of the settings uses."""
        formulas = (Formula(str(text)) for text in (*self.motion.values(), *self.drives.values()))
        names_in_formulas = {name for formula in formulas for name in formula.coordinates}
        for name, parameter in parameters.items():
            if name in {*self.mechanism.unused_parameters} - names_in_formulas and parameter.kind != "fixed":
                text = f"no number and no formula of {self.file.name} or of the model's settings uses it"
                yield InvalidSetting(name, f"{text}, so it would change nothing")

    def declares(self) -> Declaration:
        """The parameters of the file as inputs and conditions, and the outputs and arrays of the task."""
        declaration = self._task.declares()
        parameters = {p.name: _quantity(p) for p in self.mechanism.parameters}
        conditions = {n: q for n, q in parameters.items() if n in self.conditions}
        inputs = {n: q for n, q in parameters.items() if n not in self.conditions}
        texts = frozenset[str]()
        if self.mechanism.branches:
            conditions["branch"] = Quantity("", "branch in which the loops are assembled")
            texts = frozenset({"branch"})
        return replace(
            declaration,
            inputs={**inputs, **declaration.inputs},
            conditions={**conditions, **declaration.conditions},
            optional=declaration.optional | frozenset(inputs) | frozenset(conditions),
            texts=declaration.texts | texts,
        )

    # ------------------------------------------------------------------------------------------------------ evaluation

    def evaluate(
        self, design: Mapping[str, Any], scenario: Mapping[str, Any], arrays: Set[str]
    ) -> tuple[dict[str, float], dict[str, Floats]]:
        """The outputs of the task. Raises `Diverged` and `InvalidDesign`."""
        return self._task.evaluate(self._numbers(design, scenario), scenario, arrays)

    def gradient(self, design: Mapping[str, Any], scenario: Mapping[str, Any]) -> dict[str, dict[str, float]]:
        """Derivatives by the design inputs, of the outputs that have them. Raises as `evaluate`."""
        names = [n for n in design if n in self.mechanism.values]
        return self._task.gradient(self._numbers(design, scenario), scenario, names)

    def trajectory_problem(self, scenario: Mapping[str, Any]) -> TrajectoryProblem:
        """The program of the task `trajectory`. Raises `ProblemError` for another task."""
        if not isinstance(self._task, TrajectoryTask):
            raise ProblemError("bad_bounds", "task", f"the task is {self.task}; a program needs task: trajectory")
        return self._task.trajectory_problem(scenario)

    def _numbers(self, design: Mapping[str, Any], scenario: Mapping[str, Any]) -> dict[str, float]:
        """All parameters by name: of the design, the scenario, or the file. Raises `InvalidDesign`."""
        values = self.mechanism.values
        values |= {n: float(v) for source in (scenario, design) for n, v in source.items() if n in values}
        try:
            self._check_bodies(self.mechanism.column(values))
        except BodyError as error:
            raise InvalidDesign(str(error)) from None
        return values

    def _check_bodies(self, p: Sequence[float]) -> None:
        """Raises `BodyError` for a body that parameters make one that cannot exist, as a file of such numbers."""
        for (name, body), numbers in zip(
            self._variable_bodies.items(), self._masses_and_inertias.call([p]), strict=True
        ):
            mass, *moments = np.asarray(numbers, dtype=np.float64).ravel()
            try:
                Body(mass, inertia=np.reshape(moments, (3, 3)), triangle=body.triangle)
            except BodyError as error:
                raise BodyError(f"the body of '{name}', {error.field}", error.message) from None

    @cached_property
    def _variable_bodies(self) -> dict[str, Body]:
        """The bodies whose mass or inertia depends on parameters, by frame."""
        bodies = {f.name: f.body for f in self.mechanism.tree.frames if f.body is not None}
        return {name: body for name, body in bodies.items() if not (is_number(body.mass) and is_number(body.inertia))}

    @cached_property
    def _masses_and_inertias(self) -> Any:
        """A function of the parameters: (10,) mass and inertia of each of these bodies."""
        columns = [ca.vertcat(body.mass, ca.vec(inertia_tensor(body))) for body in self._variable_bodies.values()]
        return ca.Function("bodies", [self.mechanism.p], [ca.densify(column) for column in columns])


def _quantity(parameter: MechanismParameter) -> Quantity:
    """The quantity of a parameter, within its range of the file."""
    low, high = (end if math.isfinite(end) else None for end in (parameter.low, parameter.high))
    meaning = parameter.why or "parameter of the mechanism file"
    return Quantity(parameter.unit, meaning, ge=low, le=high, default=parameter.value, why=parameter.why)
