"""The model ``exoskeleton_gait``: stiffness of links and gains of drives in, how the gait is followed out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, TypedDict, cast

import numpy as np

from designopt.arrays import Floats
from designopt.collocation import Constraint, Integral, Options, Phase, TrajectoryProblem, solve_design
from designopt.dynamics.signals import SignalTable
from designopt.dynamics.simulation.simulator import Simulator
from designopt.dynamics.simulation.trajectory import SimulationStatus, Trajectory
from designopt.lazy import casadi as ca
from designopt.plugin import Array, Diverged, InvalidDesign, filled, model
from designopt.plugin import Quantity as Q
from designopt_mechanics.exoskeleton.anthropometry import Size, build
from designopt_mechanics.exoskeleton.walker import CONDITIONS, reference, single_support, system
from designopt_mechanics.rods.basis import objects
from designopt_mechanics.rods.dynamics import inverse_dynamics
from designopt_mechanics.rods.outputs import places

_SAMPLES = 401


class Links(TypedDict):
    """Values of a design: the elastic links and the gains of the drives."""

    stiffness: Annotated[float, Q("N/m", "of every link along its length", gt=0)]
    link_damping: Annotated[float, Q("", "damping ratio of a link with the mass that it carries", ge=0)]
    frequency: Annotated[float, Q("rad/s", "natural frequency with which the drives follow", gt=0)]
    drive_damping: Annotated[float, Q("", "damping ratio with which the drives follow", ge=0)]


class Operator(TypedDict, total=False):
    """Who walks, and how."""

    mass: Annotated[float, Q("kg", "of the operator", gt=0, default=80.0)]
    height: Annotated[float, Q("m", "of the operator", gt=0, default=1.80)]
    speed: Annotated[float, Q("", "of the recorded one, by time", gt=0, default=1.0)]
    cycle_time: Annotated[float, Q("s", "of the recorded gait", gt=0, default=1.2)]
    sway: Annotated[float, Q("rad", "lateral lean of the trunk at the frequency of the cycle", default=0.0)]


class GaitOutputs(TypedDict):
    """Figures of one single support."""

    tracking_error: Annotated[float, Q("m", "root mean square distance of hip, stance knee and swing ankle")]
    penalised_error: Annotated[float, Q("m", "the same with the penalty on deviations, which the program minimises")]
    peak_moment: Annotated[float, Q("N m", "largest magnitude of a drive's moment")]
    energy: Annotated[float, Q("J", "positive mechanical work of the drives")]
    compression: Annotated[float, Q("", "largest shortening of a link by its length")]
    tension: Annotated[float, Q("N", "largest axial force that lengthens a link; its pre-load must exceed it")]
    saturation_share: Annotated[float, Q("", "of the time in which a drive is at its largest moment")]
    effort: Annotated[float, Q("N^2 m^2 s", "integral of the squared moments of all drives")]


ARRAYS = {
    "time": Array(("time",), "s", "of the single support"),
    "scene": Array(("time", "vertex", "axis"), "m", "drawing of the rods; lines end where a place is not a number"),
    "moments": Array(("time", "drive"), "N m", "azimuth then elevation of each drive, rods in order"),
    "stretch": Array(("time", "link"), "", "lengthening of the links by their length"),
    "distance": Array(("time",), "m", "root mean square over the watched points"),
}


@model("exoskeleton_gait", version=3, arrays=ARRAYS)
class ExoskeletonGait:
    """Exoskeleton with elastic links in the single support of recorded gait: five rods (legs and upper body) or eleven.

    Rods after Borisov (2015), whose paper prints no data; anthropometry of Dempster, Winter, Drillis and Contini, and a
    recorded gait are substitutes of the same model class. Gravity points along -y: upright rods have an azimuth of 90
    degrees in the sagittal plane and no elevation. The anchor is the ankle of the stance leg (5 rods) or its toe joint
    (11, the sole on springs). Drives at the joints of the legs follow the recorded angles by computed torque, with a
    model that has only the lengths at rest.

    As an optimal-control problem, gains and stiffness are parameters and deviations of the followed azimuths are
    controls; their squares are penalised, moments and compressions are bounded, and the end deviates from the recorded
    motion as the start does. With `feed_forward` an evaluation solves this problem for its design and simulates the
    result.
    """

    own_options = True

    later_settings = ("max_compression", "feed_forward", "intervals")

    rods: Annotated[Literal[5, 11], Q("", "of the model")] = 5
    limit: Annotated[float, Q("N m", "largest moment of a drive", gt=0)] = 200.0
    rtol: Annotated[float, Q("", "relative tolerance of the simulation", gt=0, le=1e-3)] = 1e-7
    max_compression: Annotated[float, Q("", "of a link in the program, by its length", gt=0, lt=1)] = 0.02
    feed_forward: Annotated[
        bool, Q("", "the drives follow the motion that the program finds, not the recorded one")
    ] = False
    intervals: Annotated[int, Q("", "of the mesh, with feed_forward", ge=4)] = 20
    deviation_weight: Annotated[float, Q("m^2", "of a squared deviation (rad) in the program", gt=0)] = 1e-2

    @cached_property
    def _simulator(self) -> Simulator:
        return _simulators(self.rods, self.limit, self.rtol, feed_forward=self.feed_forward)

    def prepare(self) -> None:
        """Derive and compile the equations."""
        _ = self._simulator

    def evaluate(
        self, design: Links, scenario: Operator, arrays: Set[str] = frozenset()
    ) -> tuple[GaitOutputs, dict[str, Floats]]:
        """Simulate the single support. Raises `Diverged` if the integration fails."""
        conditions = _conditions(scenario)
        design_values = cast(Mapping[str, float], design)
        duration = float(single_support(self.rods, conditions))
        deviation = 0.0
        if self.feed_forward:
            run, deviation = self._planned_run(design_values, conditions)
        else:
            run = self._tracking_run(design_values, conditions)
        if run.status is not SimulationStatus.DONE:
            raise Diverged(run.message, reason=run.status.name.lower())
        output_of = {v.name: run.y[:, i] for i, v in enumerate(self._simulator.system.outputs)}
        exoskeleton = _build_model(self.rods, design_values, conditions)
        moments = np.column_stack([output_of[n] for n in output_of if n.startswith("Mp")])
        stretch = np.column_stack([output_of[n] for n in output_of if n.startswith("stretch_")])
        tensions = (
            stretch
            * np.array([exoskeleton.tree.rods[i].rest_length for i in exoskeleton.legs])
            * design_values["stiffness"]
        )
        is_saturated = (np.abs(moments) >= self.limit * (1.0 - 1e-12)).any(axis=1)
        distance = float(np.trapezoid(output_of["squared_error"], run.t))
        outputs = GaitOutputs(
            tracking_error=float(np.sqrt(distance / duration)),
            penalised_error=float(np.sqrt((distance + self.deviation_weight * deviation) / duration)),
            peak_moment=float(np.abs(moments).max()),
            energy=float(np.trapezoid(output_of["drive_power"], run.t) if self.feed_forward else run.x[-1, -1]),
            compression=float(max(0.0, -stretch.min())),
            tension=float(max(0.0, tensions.max())),
            saturation_share=float(is_saturated.mean()),
            effort=float(np.trapezoid((moments**2).sum(axis=1), run.t)),
        )
        all_arrays = {
            "time": run.t,
            "moments": moments,
            "stretch": stretch,
            "distance": np.sqrt(output_of["squared_error"]),
        }
        if "scene" in arrays:
            all_arrays["scene"] = drawing(self.rods, design_values, conditions, run.x)
        return outputs, {name: all_arrays[name] for name in arrays}

    def _tracking_run(self, design: Mapping[str, float], conditions: Mapping[str, float]) -> Trajectory:
        """The drives follow the recorded motion."""
        times = np.linspace(0.0, float(single_support(self.rods, conditions)), _SAMPLES)
        return self._simulator.run(start(self.rods, design, conditions), times, p=design, q=conditions)

    def _planned_run(self, design: Mapping[str, float], conditions: Mapping[str, float]) -> tuple[Trajectory, float]:
        """The drives follow the motion that the program finds, simulated from where it begins; and its deviation."""
        problem = self.trajectory_problem(conditions)
        solution = solve_design(problem, design, Options(scheme="radau", intervals=self.intervals))
        phase, system = solution.phase, self._simulator.system
        names = tuple(v.name for v in system.controls)
        values = np.column_stack([phase.values[n] for n in names])
        values[0] = values[1]  # the scheme has no control at the very beginning
        first = {v.name: float(phase.values[v.name][0]) for v in system.states}
        times = np.linspace(phase.t0, phase.tf, _SAMPLES)
        deviations = SignalTable(phase.times, values, names)
        run = self._simulator.run(first, times, p=design, q=conditions, signals=deviations)
        return run, phase.integrals["deviation"]

    def trajectory_problem(self, scenario: Mapping[str, Any]) -> TrajectoryProblem:
        """The single support as a program."""
        conditions = _conditions(scenario)
        walker_system = system(self.rods, limit=self.limit, feed_forward=True)
        duration = float(single_support(self.rods, conditions))
        controls = [v.name for v in walker_system.controls]
        moments = [v.name for v in walker_system.outputs if v.name.startswith("Mp")]
        middle = {"stiffness": 5e4, "link_damping": 0.3, "frequency": 15.0, "drive_damping": 1.0}
        ends = [start(self.rods, middle, conditions, at)[:-1] for at in (0.0, duration)]
        names, n = [v.name for v in walker_system.states], self.rods
        stretch_names = [v.name for v in walker_system.outputs if v.name.startswith("stretch_")]
        phase = Phase(
            walker_system,
            tf=duration,
            name="single_support",
            bounds=dict.fromkeys(controls, (-0.3, 0.3)),
            path={
                **{n: Constraint(_value_of(n), -self.limit, self.limit, "N m") for n in moments},
                **{n: Constraint(_value_of(n), -self.max_compression, math.inf, "") for n in stretch_names},
            },
            integrals={
                "distance": Integral(lambda v: v["squared_error"], unit="m^2 s"),
                "deviation": Integral(lambda v: sum(v[n] ** 2 for n in controls), unit="rad^2 s"),
                "effort": Integral(lambda v: sum(v[n] ** 2 for n in moments), unit="N^2 m^2 s"),
            },
            data=conditions,
            guess={n: (float(a), float(b)) for n, a, b in zip(names, *ends, strict=True)},
        )
        # A step begins with the deviations from the recorded motion with which the one before it ended: of angles, of
        # lengths from those at rest under the load, and of the rates of both.
        (first, rates, load, _), (last, later, end_load, _) = (
            [np.asarray(r, dtype=np.float64).ravel() for r in _recording(n)(at, _row(conditions))]
            for at in (0.0, duration)
        )
        angle_zeros, steady = np.zeros(2 * n), np.zeros(n)
        change = np.concatenate([last - first, steady, later - rates, steady])
        shortening = np.concatenate([angle_zeros, load - end_load, angle_zeros, steady])

        def periodic_gap(e: Any) -> Any:
            changes = [e.final[name] - e.initial[name] for name in names]
            return ca.vertcat(*changes) - change - shortening / e["stiffness"]

        periodicity = {"same_deviations": Constraint(periodic_gap, 0.0, 0.0)}

        def total_cost(e: Any) -> Any:
            return e.integral["distance"] + self.deviation_weight * e.integral["deviation"]

        return TrajectoryProblem(
            [phase],
            cost=total_cost,
            constraints=periodicity,
            guess=middle,
            figures={
                "tracking_error": lambda e: (e.integral["distance"] / duration + 1e-12) ** 0.5,
                "penalised_error": lambda e: (total_cost(e) / duration + 1e-12) ** 0.5,
                "effort": lambda e: e.integral["effort"],
            },
        )


def start(size: Size, design: Mapping[str, float], conditions: Mapping[str, float], at: float = 0.0) -> Floats:
    """(6 n + 1,) recorded state at a time (s), links compressed as at rest, no work done.

    Raises `InvalidDesign` if a link collapses under the weight.
    """
    angles, rates, axial, rest_lengths = (
        np.asarray(r, dtype=np.float64).ravel() for r in _recording(size)(at, _row(conditions))
    )
    lengths = rest_lengths - axial / design["stiffness"]
    if not (lengths > 0.2 * rest_lengths).all():
        raise InvalidDesign(f"stiffness: at {design['stiffness']:g} N/m a link collapses under the weight")
    return np.concatenate([angles, lengths, rates, np.zeros(len(rest_lengths)), [0.0]])


def drawing(size: Size, design: Mapping[str, float], conditions: Mapping[str, float], states: Floats) -> Floats:
    """(n, vertices, 3) m of the rods in `states` (n, ...)."""
    tree = _build_model(size, design, conditions).tree
    ends, _ = places(tree, states[:, : 3 * tree.n])
    gap = np.full((len(ends), 3), np.nan)
    vertices = []
    for k, parent in enumerate(tree.parents):
        vertices += [np.zeros_like(gap) if parent < 0 else ends[:, parent], ends[:, k], gap]
    vertices_of_frames = np.stack(vertices[:-1], axis=1)
    return vertices_of_frames[:, :, [0, 2, 1]] * [1.0, -1.0, 1.0]  # upright in a drawing whose z points up


def _value_of(name: str) -> Any:
    return lambda v: v[name]


def _build_model(size: Size, design: Mapping[str, float], conditions: Mapping[str, float]) -> Any:
    return build(size, conditions["mass"], conditions["height"], design["stiffness"], design["link_damping"])


def _conditions(scenario: Mapping[str, Any]) -> dict[str, float]:
    return cast(dict[str, float], filled(Operator, scenario))


def _row(conditions: Mapping[str, float]) -> Sequence[float]:
    return [conditions[name] for name in CONDITIONS]


@lru_cache(maxsize=8)
def _simulators(size: Size, limit: float, rtol: float, *, feed_forward: bool) -> Simulator:
    walker_system = system(size, limit=limit, feed_forward=feed_forward)
    return Simulator(walker_system, rtol=rtol, atol=1e-2 * rtol, signals=[v.name for v in walker_system.controls])


@lru_cache(maxsize=2)
def _recording(size: Size) -> Any:
    """(time, conditions) -> recorded angles, their rates, the axial forces of the rigid model, lengths at rest."""
    time, row = ca.SX.sym("t"), ca.SX.sym("conditions", len(CONDITIONS))
    conditions = {name: row[i] for i, name in enumerate(CONDITIONS)}
    exoskeleton = build(size, conditions["mass"], conditions["height"], ca.SX(1.0), ca.SX(0.0))
    recorded_motion, n = reference(exoskeleton, time, conditions), exoskeleton.tree.n
    rest_lengths, none = exoskeleton.tree.column("rest_length"), objects(ca.SX.zeros(n))
    forces = inverse_dynamics(
        exoskeleton.tree,
        np.concatenate([recorded_motion.phi, recorded_motion.psi, rest_lengths]),
        np.concatenate([recorded_motion.dphi, recorded_motion.dpsi, none]),
        np.concatenate([recorded_motion.d2phi, recorded_motion.d2psi, none]),
    )
    angles, rates = (
        ca.vertcat(*recorded_motion.phi, *recorded_motion.psi),
        ca.vertcat(*recorded_motion.dphi, *recorded_motion.dpsi),
    )
    results = [angles, rates, ca.vertcat(*forces[2 * n :]), ca.vertcat(*rest_lengths)]
    return ca.Function("recorded", [time, row], results)
