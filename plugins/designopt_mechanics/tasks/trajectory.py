"""The task `trajectory`: a motion from posture to posture by optimal control, with limits on efforts and clearances."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, Literal, TypedDict

import numpy as np

from designopt.arrays import Floats
from designopt.collocation import (
    Constraint,
    Integral,
    Options,
    Phase,
    Refinement,
    Sensitivities,
    Solution,
    TrajectoryProblem,
    sensitivities,
    solve_design,
)
from designopt.collocation.statement.expressions import nodes, operation
from designopt.collocation.statement.symbols import Symbols
from designopt.dynamics.system import System, Variable
from designopt.lazy import casadi as ca
from designopt.plugin import Declaration, Diverged, InvalidSetting
from designopt.plugin import Quantity as Q
from designopt.study.language.findings import nearest_or_all
from designopt_mechanics.dynamics.recursion import inverse_dynamics
from designopt_mechanics.mechanism.forces import LoopForces, MotionRows, RedundantLoop
from designopt_mechanics.mechanism.loops import CannotClose, LoopSolver
from designopt_mechanics.mechanism.measures import measures
from designopt_mechanics.mechanism.scene import scene_of
from designopt_mechanics.mechanism.signals import MotionSignals
from designopt_mechanics.model_file.nodes import TURN
from designopt_mechanics.tasks.limits import with_limits
from designopt_mechanics.tasks.results import MotionResults
from designopt_mechanics.tasks.task import TaskSettings, by_name, refuse_obstacles, refuse_redundant, refuse_structure
from designopt_mechanics.tree import TreeError
from designopt_mechanics.wires import lengths

#: The size of a power is rounded below so many watts.
_ROUNDED = 0.1
#: Distance (m, or rad) that wires keep from where they have no way, as it is less between points of the mesh; not where
#: start or end are nearer.
_MARGIN = 1e-4
#: Usual errors of a motion, with what to do where they are larger, or a limit is passed between points of the mesh.
_ACCURATE, _FINER = (
    (0.0, 0.01),
    "the mesh is too coarse; raise program.intervals of the model, or state program.refine_to",
)
#: Part of a limit by which a motion may pass it between points of the mesh, which keep it.
_BETWEEN_POINTS = 0.01
#: Ratio of the longest to the shortest duration beyond which the guess is their geometric mean.
_WIDE = 10.0
#: Distance (rad, m) from a range at which a posture still counts as within it: round-off of the loops.
_WITHIN = 1e-9


class ProgramSection(TypedDict, total=False):
    """The motion of the task `trajectory`, from rest to rest."""

    start: Annotated[
        dict[str, float],
        Q("", "coordinates at the start, in rad (or 90 deg) and m (without unit); others follow or are at reference"),
    ]
    end: Annotated[
        dict[str, float],
        Q("", "coordinates at the end, in rad (or 90 deg) and m (without unit); others follow or are at reference"),
    ]
    drives: Annotated[list[str], Q("", "coordinates with drives, or fewer; by default the independent ones")]
    shortest: Annotated[float, Q("s", "least duration", gt=0, default=1.0)]
    longest: Annotated[float, Q("s", "largest duration; by default the least one", gt=0)]
    minimize: Annotated[
        Literal["effort", "work", "duration"],
        Q("", "integral of squared efforts, of the size of the power, or the duration", default="effort"),
    ]
    intervals: Annotated[int, Q("", "of the mesh", ge=2, le=1000, default=50)]
    refine_to: Annotated[float, Q("", "error estimate to which the mesh is refined; default: no refinement", gt=0)]


class TrajectoryTask:
    """The motion from one posture to another that needs least effort, work or time.

    The largest efforts, speeds and ranges of the coordinates are limits, as are the file's clearances, which stay
    positive. The dependent coordinates are algebraic variables, so that the loops close at every collocation point.
    """

    def __init__(self, settings: TaskSettings) -> None:
        self.settings = settings
        self.mechanism = settings.mechanism
        self.program = settings.program

    def check(self) -> Iterable[InvalidSetting]:
        """Mistakes in `program`."""
        names = self.mechanism.tree.names
        if structure := list(refuse_structure("program", self._loops)):
            yield from structure
            return
        if not self.program.get("end"):
            yield InvalidSetting("program", "needs end: {coordinate: value}, and start where it is not the reference")
            return
        for key in ("start", "end", "drives"):
            for name in self.program.get(key, ()):
                if name not in names:
                    yield InvalidSetting("program", f"{key}: no coordinate '{name}'{nearest_or_all(name, names)}")
                    return
        if not self._shortest <= self._longest:
            yield InvalidSetting("program", f"longest: {self._longest:g} s is below the shortest {self._shortest:g} s")
            return
        try:
            yield from self._results.check()
            yield from refuse_redundant(self.settings)
            for side in ("start", "end"):
                self._posture(side, np.array(self.mechanism.column()), self.settings.branch)
        except (TreeError, CannotClose, ValueError) as error:
            yield InvalidSetting("program", str(error))

    def notes(self, numbers: Mapping[str, float]) -> Iterable[str]:
        """None: a start or an end beyond limits of the file is a mistake."""
        return ()

    def declares(self) -> Declaration:
        """The outputs of a motion, and those of the program."""
        declaration = self._results.declares()
        effort_units = {False: "N^2 m^2 s", True: "N^2 s"}
        units = {self._unit(name) == "m" for name in self._driven_coordinates}
        outputs = {
            "duration": Q("s", "of the motion"),
            "effort": Q(effort_units[units.pop()] if len(units) == 1 else "", "integral of the sum of squared efforts"),
            "work": Q("J", "integral of the size of the drives' power, rounded below 0.1 W"),
            "error_estimate": Q("", "of the discretisation, relative to the states", usual=_ACCURATE, remedy=_FINER),
            "resimulation_error": Q(
                "", "of a simulation with the same efforts, relative to the states", usual=_ACCURATE, remedy=_FINER
            ),
        }
        declaration = replace(declaration, outputs={**outputs, **declaration.outputs})
        return with_limits(declaration, self.mechanism, _BETWEEN_POINTS, _FINER)

    def evaluate(
        self, numbers: Mapping[str, float], scenario: Mapping[str, Any], arrays: Set[str]
    ) -> tuple[dict[str, float], dict[str, Floats]]:
        """Solve the program. Raises `Diverged` where there is no such motion."""
        p = self.mechanism.column(numbers)
        branch = str(scenario.get("branch", self.settings.branch))
        problem = self.trajectory_problem({**numbers, "branch": branch})
        solution = solve_design(problem, numbers, self._options)
        motion = self._motion(solution, branch)
        try:
            refuse_obstacles(self._loops, motion.z, p)
        except Diverged as error:
            text = f"{error}, between points of the mesh: take more intervals, or state refine_to"
            raise Diverged(text, reason="cannot_close") from None
        try:
            joint_forces = self._forces.solve(motion, p)
        except RedundantLoop as error:
            raise Diverged(str(error), reason="redundant") from None
        values = self._results.signals.rows(motion, joint_forces, p)
        outputs = {
            "duration": solution.phase.tf,
            "effort": solution.figures["effort"],
            "work": solution.figures["work"],
            "error_estimate": solution.error_estimate,
            "resimulation_error": solution.phase.resimulation_error,
        }
        everywhere = self._results.arrays(motion.time, values)
        if "scene" in arrays:
            everywhere["scene"] = scene_of(self.mechanism, motion.z, p)
        outputs |= self._results.outputs(motion.time, values)
        return outputs, {name: everywhere[name] for name in arrays}

    def gradient(
        self, numbers: Mapping[str, float], scenario: Mapping[str, Any], names: Sequence[str]
    ) -> dict[str, dict[str, float]]:
        """Derivatives of the optimum by the parameters `names` (post-optimal sensitivities); none where the optimum is
        not a differentiable function of them, of least-squares forces, and of the estimates of errors."""
        if not names or (self._forces.redundant == "least_squares" and self._forces.is_redundant):
            return {}
        if self._shortest < self._longest and ca.depends_on(self._forces.generalised_forces, self._forces.time):
            return {}  # loads follow a clock that the duration stretches
        p = self.mechanism.column(numbers)
        branch = str(scenario.get("branch", self.settings.branch))
        problem = self.trajectory_problem({**numbers, "branch": branch})
        of_optimum = sensitivities(problem, solve_design(problem, numbers, self._options), names, self._options)
        if not of_optimum.regular:
            return {}
        solution, signals = of_optimum.solution, self._results.signals
        motion = self._motion(solution, branch)
        joint_forces = self._forces.solve(motion, p)
        columns = [q.name for q in self.mechanism.parameters]
        coordinate_slopes = np.zeros((len(motion.time), 3 * len(self._loops.independent), len(p)))
        of_duration = np.zeros(len(p))
        for k, name in enumerate(names):
            of_duration[columns.index(name)] = of_optimum.phases["motion"].times[-1, k]
            coordinate_slopes[:, :, columns.index(name)] = self._motion_slopes(of_optimum, k)
        slopes, _ = signals.slopes(motion, joint_forces, p, coordinate_slopes)
        values = signals.rows(motion, joint_forces, p)
        derivatives = self._results.gradient(motion.time, values, slopes)
        for name, integral in self._results.outputs(motion.time, values).items():
            if name.endswith("_integral"):
                derivatives[name] = derivatives[name] + integral * of_duration / solution.phase.tf
        results = by_name({"duration": of_duration, **derivatives}, self.mechanism, names)
        return results | {name: of_optimum.derivatives_of(name) for name in ("effort", "work")}

    def _motion_slopes(self, sensitivities: Sensitivities, k: int) -> Floats:
        """(n, 3 f) derivatives by the number `k` of the independent coordinates, their rates and accelerations, at
        equal fractions of the motion."""
        phase, slopes = sensitivities.solution.phase, sensitivities.phases["motion"]
        value_slopes = {name: column[:, k] for name, column in slopes.values.items()}
        names = [self.mechanism.tree.names[i] for i in self._loops.independent]
        next_rate = {n: f"{n}_speed" for n in names} | {f"{n}_speed": f"{n}_acceleration" for n in names}
        stretch = slopes.times[-1, k] / phase.tf
        rates = {name: value_slopes[next_rate[name]] + stretch * phase.rates[name] for name in phase.rates}
        values = replace(phase, values=value_slopes, rates=rates).at(np.linspace(0.0, 1.0, self.settings.samples))
        return np.column_stack([values[f"{n}{end}"] for end in ("", "_speed", "_acceleration") for n in names])

    def trajectory_problem(self, scenario: Mapping[str, Any]) -> TrajectoryProblem:
        """The motion as a program; `scenario` may have numbers of parameters, and a branch.

        Raises `Diverged` for postures that do not close, or are outside of the ranges of coordinates.
        """
        numbers = self.mechanism.values | {n: v for n, v in scenario.items() if n in self.mechanism.values}
        p = np.array(self.mechanism.column(numbers))
        try:
            branch = str(scenario.get("branch", self.settings.branch))
            start, end = (self._posture(side, p, branch) for side in ("start", "end"))
        except CannotClose as error:
            raise Diverged(str(error), reason="cannot_close") from None
        except ValueError as error:
            raise Diverged(str(error), reason="out_of_range") from None
        names = self.mechanism.tree.names
        speeds = [f"{names[i]}_speed" for i in self._loops.independent]
        zero_speeds = dict.fromkeys(speeds, 0.0)
        gaps = self._loops.wire_gaps_at(np.stack([start, end]), p).max(axis=0)
        phase = Phase(
            self._system,
            tf=self._shortest if self._shortest == self._longest else (self._shortest, self._longest),
            name="motion",
            initial={**self._side_coordinates("start", start), **zero_speeds},
            final={**self._side_coordinates("end", end), **zero_speeds},
            path={
                **{name: Constraint(_output(name), 0.0, unit="m") for name in self._clearances},
                **{
                    name: Constraint(_output(name), high=-_MARGIN if gap < -2.0 * _MARGIN else 0.0)
                    for name, gap in zip(self._gaps, gaps, strict=True)
                },
            },
            integrals={
                "effort": Integral(lambda v: sum(v[f"effort_{name}"] ** 2 for name in self._driven_coordinates)),
                "work": Integral(self._power, unit="J"),
            },
            guess={name: (float(a), float(b)) for name, a, b in zip(names, start, end, strict=True)},
            guess_duration=self._first_duration,
            kink_sources=self._kink_sources,
        )
        kind = self.program.get("minimize", "effort")
        return TrajectoryProblem(
            [phase],
            cost=(lambda e: e.duration) if kind == "duration" else (lambda e: e.integral[kind]),
            parameters=numbers,
            guess=numbers,
            figures={
                "duration": lambda e: e.duration,
                "effort": lambda e: e.integral["effort"],
                "work": lambda e: e.integral["work"],
            },
        )

    # ------------------------------------------------------------------------------------------------------ statement

    @property
    def _loops(self) -> LoopSolver:
        return self.settings.loops

    @property
    def _shortest(self) -> float:
        return float(self.program.get("shortest", 1.0))

    @property
    def _longest(self) -> float:
        return float(self.program.get("longest", self._shortest))

    @cached_property
    def _kink_sources(self) -> list[str]:
        """Springs along one axis: their length is the size of one difference, with a kink where their ends meet."""
        return [
            f"the length of spring '{spring.wire.name}', whose ends lie on one line (smooth unless they meet)"
            for spring in self.mechanism.springs
            if not any(spring.wire.overs)
            and any(operation(node) == "fabs" for node in nodes(lengths(self._loops.state, [spring.wire])))
        ]

    @property
    def _first_duration(self) -> float | None:
        """s, the geometric mean of a wide range: its middle is a motion far too slow for least time."""
        is_wide = self._longest > _WIDE * self._shortest
        return math.sqrt(self._shortest * self._longest) if is_wide else None

    @property
    def _options(self) -> Options:
        refine = Refinement(tolerance=self.program["refine_to"]) if "refine_to" in self.program else None
        return Options(intervals=int(self.program.get("intervals", 50)), refine=refine)

    @cached_property
    def _forces(self) -> LoopForces:
        """The forces of the loops. With fewer drives than freedoms all independent coordinates count as driven: those
        without drives need none.

        Raises `ValueError` for such drives that are not independent coordinates.
        """
        drives, free = self.program.get("drives") or None, len(self._loops.independent)
        if drives is not None and len(drives) < free:
            leading = [self.mechanism.tree.names[i] for i in self._loops.independent]
            if not set(drives) <= set(leading):
                raise ValueError(f"drives: fewer than the {free} freedoms must be among {', '.join(leading)}")
            drives = None
        return LoopForces(self._loops, drives, self.settings.redundant)

    @cached_property
    def _results(self) -> MotionResults:
        return MotionResults(MotionSignals(self._forces), self.settings.outputs, self.settings.targets)

    @property
    def _driven_coordinates(self) -> tuple[str, ...]:
        return tuple(self.program.get("drives") or self._forces.driven)

    @property
    def _clearances(self) -> list[str]:
        return [f"clearance_{name}" for name in self.mechanism.clearances]

    @property
    def _gaps(self) -> dict[str, Any]:
        """Gaps of wires over surfaces, by names of outputs."""
        return {f"wire_gap_{i}": gap for i, gap in enumerate(self._loops.wire_gaps.values())}

    def _unit(self, name: str) -> str:
        return self.mechanism.tree.coordinates[self.mechanism.tree.names.index(name)].unit

    def _power(self, v: Symbols) -> Any:
        powers = [v[f"effort_{name}"] * v[f"{name}_speed"] for name in self._driven_coordinates]
        return sum(ca.sqrt(power**2 + _ROUNDED**2) - _ROUNDED for power in powers)

    def _posture(self, side: str, p: Floats, branch: str) -> Floats:
        """(m,) the closed posture at the start or the end. Raises `CannotClose` and `ValueError`."""
        coordinates: Mapping[str, float] = self.program.get(side, {})
        try:
            posture = self._loops.posture(coordinates, p, branch)
        except CannotClose as error:
            raise CannotClose(f"{side}: {error}", error.gap) from None
        except ValueError as error:
            raise ValueError(f"{side}: {error}") from None
        for c, value in zip(self.mechanism.tree.coordinates, posture, strict=True):
            if not c.low - _WITHIN <= value <= c.high + _WITHIN:
                is_degrees = c.unit == "rad" and c.low <= math.radians(value) <= c.high and abs(value) > TURN
                hint = f"; is it in degrees? Write {value:.6g} deg" if is_degrees else ""
                unit = "" if c.unit == "1" else f" {c.unit}"
                raise ValueError(
                    f"{side}: {c.name} = {value:.6g}{unit} is outside its range {c.low:g} to {c.high:g}{unit}{hint}"
                )
        return posture

    def _side_coordinates(self, side: str, posture: Floats) -> dict[str, float]:
        """The coordinates that the program fixes at a side: those that it states, or the independent ones."""
        names = self.mechanism.tree.names
        leading = [names[i] for i in self._loops.independent]
        coordinates = self.program.get(side, {})
        coordinate_names = leading if set(coordinates) <= set(leading) else list(coordinates)
        return {name: float(posture[names.index(name)]) for name in coordinate_names}

    @cached_property
    def _system(self) -> System:
        """Independent coordinates and their speeds are states; the dependent ones are algebraic; accelerations and the
        multipliers of the loops are unknowns."""
        mechanism, loops = self.mechanism, self._loops
        state, tree = loops.state, mechanism.tree
        free, bound = [int(i) for i in loops.independent], [int(i) for i in loops.dependent]
        columns = [tree.names.index(name) for name in self._driven_coordinates]
        effort = ca.SX.sym("effort", len(columns))
        multipliers = ca.SX.sym("multiplier", len(bound))
        passive = mechanism.passive(state) + _without(mechanism.driven(state), columns)
        generalised_forces = inverse_dynamics(state, mechanism.gravity, mechanism.forces_on(state)) - passive
        motion = ca.SX.eye(len(tree.names))[:, columns] @ effort
        slopes = loops.jacobian if bound else ca.SX(0, len(tree.names))
        residual = ca.cse(ca.densify(generalised_forces - motion - slopes.T @ multipliers))
        gap, curvature = loops.equations() if bound else (ca.SX(0, 1), ca.SX(0, 1))
        rates, second = slopes @ state.dz, slopes @ state.ddz + curvature
        laws = mechanism.laws
        speeds = {name: laws[name].largest_speed if name in laws else math.inf for name in tree.names}

        def coordinate(i: int) -> Variable:
            c = tree.coordinates[i]
            return Variable(c.name, "" if c.unit == "1" else c.unit, c.low, c.high)

        def speed(i: int) -> Variable:
            c = tree.coordinates[i]
            return Variable(f"{c.name}_speed", f"{c.unit}/s", -speeds[c.name], speeds[c.name])

        accelerations = [
            (Variable(f"{c.name}_acceleration", f"{c.unit}/s^2"), state.ddz[i], residual[i])
            for i, c in enumerate(tree.coordinates)
        ]
        return System.from_expressions(
            "mechanism",
            states=[
                *((coordinate(i), state.z[i], state.dz[i]) for i in free),
                *((speed(i), state.dz[i], state.ddz[i]) for i in free),
            ],
            algebraic=[
                *((coordinate(i), state.z[i], gap[k]) for k, i in enumerate(bound)),
                *((speed(i), state.dz[i], rates[k]) for k, i in enumerate(bound)),
            ],
            unknowns=[
                *accelerations,
                *((Variable(f"multiplier_{k}", ""), multipliers[k], second[k]) for k in range(len(bound))),
            ],
            controls=[(self._control(name), effort[i]) for i, name in enumerate(self._driven_coordinates)],
            parameters=[(Variable(q.name, q.unit, q.low, q.high), q.symbol) for q in mechanism.parameters],
            outputs=[
                (Variable(n, m.unit), m.expression)
                for n, m in measures(mechanism, state).items()
                if n in self._clearances
            ]
            + [(Variable(name, ""), gap) for name, gap in self._gaps.items()],
            time=mechanism.time,
        )

    def _control(self, name: str) -> Variable:
        law = self.mechanism.laws.get(name)
        largest = math.inf if law is None else float(law.largest_effort)
        return Variable(f"effort_{name}", "N" if self._unit(name) == "m" else "N m", -largest, largest)

    def _motion(self, solution: Solution, branch: str) -> MotionRows:
        """The motion at equal time steps, with the loops closed again."""
        loops, names = self._loops, self.mechanism.tree.names
        p = np.array([solution.parameters[q.name] for q in self.mechanism.parameters])
        time = np.linspace(solution.phase.t0, solution.phase.tf, self.settings.samples)
        values = solution.phase.interpolate(time)
        leading = [names[i] for i in loops.independent]
        z = loops.follow(self._posture("start", p, branch), np.column_stack([values[n] for n in leading]), p).z
        dz = loops.rates(z, np.column_stack([values[f"{n}_speed"] for n in leading]), p)
        ddz = loops.accelerations(z, dz, np.column_stack([values[f"{n}_acceleration"] for n in leading]), p)
        return MotionRows(time, z, dz, ddz)


def _output(name: str) -> Callable[[Symbols], Any]:
    return lambda v: v[name]


def _without(column: Any, rows: Iterable[int]) -> Any:
    """A column with zeros in some rows."""
    zero_rows = set(rows)
    return ca.vertcat(ca.SX(0, 1), *(0.0 if i in zero_rows else column[i] for i in range(column.numel())))
