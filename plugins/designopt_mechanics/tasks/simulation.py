"""The task `simulation`: the motion from an initial state under drives, springs, dampers, stops, friction, contacts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics import SimulationStatus, Simulator
from designopt.plugin import Declaration, Diverged, InvalidSetting
from designopt_mechanics.mechanism.equations import mechanism_system
from designopt_mechanics.mechanism.forces import LoopForces, MotionRows, RedundantLoop
from designopt_mechanics.mechanism.loops import CannotClose, LoopSolver
from designopt_mechanics.mechanism.scene import scene_of
from designopt_mechanics.mechanism.sensitivities import closed_slopes, sensitive_system
from designopt_mechanics.mechanism.signals import MotionSignals
from designopt_mechanics.tasks.drives import check_drives, check_initial, with_drives
from designopt_mechanics.tasks.limits import value_notes, with_limits
from designopt_mechanics.tasks.results import MotionResults
from designopt_mechanics.tasks.task import TaskSettings, by_name, refuse_obstacles, refuse_redundant

#: Relative and absolute tolerance of the integration.
_RTOL, _ATOL = 1e-8, 1e-10


class SimulationTask:
    """`duration` seconds from the `initial` state: values and speeds of independent coordinates, the rest follows."""

    def __init__(self, settings: TaskSettings) -> None:
        self.settings = settings
        self._simulators: dict[tuple[str, ...], Simulator] = {}

    def check(self) -> Iterator[InvalidSetting]:
        """Mistakes in drives, initial state and requested outputs."""
        mistakes = [
            *check_drives(self.settings.mechanism, self.settings.drives),
            *check_initial(self.settings.mechanism, self.settings.initial),
        ]
        yield from mistakes
        if mistakes:
            return
        yield from self.results.check()
        yield from refuse_redundant(self.settings)

    @cached_property
    def loops(self) -> LoopSolver:
        """The loops of the mechanism with the study's drives."""
        if not self.settings.drives:
            return self.settings.loops
        return LoopSolver(with_drives(self.settings.mechanism, self.settings.drives))

    @cached_property
    def results(self) -> MotionResults:
        """MotionSignals, outputs and arrays."""
        forces = LoopForces(self.loops, (), self.settings.redundant)
        return MotionResults(MotionSignals(forces), self.settings.outputs, self.settings.targets)

    @cached_property
    def simulator(self) -> Simulator:
        """Integrates the motion, with the accelerations as outputs."""
        tree, state = self.loops.mechanism.tree, self.loops.state
        outputs = {f"{c.name}_second": (f"{c.unit}/s^2", state.ddz[i]) for i, c in enumerate(tree.coordinates)}
        return Simulator(mechanism_system(self.loops, outputs=outputs), rtol=_RTOL, atol=_ATOL, max_steps=1_000_000)

    def gradient(
        self, numbers: Mapping[str, float], scenario: Mapping[str, Any], names: Sequence[str]
    ) -> dict[str, dict[str, float]]:
        """Derivatives of all outputs by parameters (variational equations); none of least-squares forces."""
        signals = self.results.signals
        loops, p = self.loops, self.loops.mechanism.column(numbers)
        if not names or (signals.forces.redundant == "least_squares" and signals.forces.is_redundant):
            return {}
        x0 = self._start(p, scenario)
        m, k = len(loops.mechanism.tree.names), len(names)
        columns = [q.name for q in loops.mechanism.parameters]
        scales = {name: abs(loops.mechanism.values[name]) or 1.0 for name in names}
        slopes0 = closed_slopes(loops, x0, p)[:, [columns.index(name) for name in names]]
        start = np.concatenate([x0, (slopes0 * np.array(list(scales.values()))).T.ravel()])
        time = np.linspace(0.0, self.settings.duration, self.settings.samples)
        run = self._sensitivity_simulator(scales).run(start, time, p=p)
        if run.status is not SimulationStatus.DONE:
            raise Diverged(run.message, reason=run.status.name.lower())
        motion = MotionRows(time, run.x[:, :m], run.x[:, m : 2 * m], run.y[:, :m])
        parts = np.concatenate([run.x[:, 2 * m :].reshape(-1, k, 2 * m), run.y[:, m:].reshape(-1, k, m)], axis=2)
        free = np.concatenate([block * m + loops.independent for block in range(3)])
        coordinate_slopes = np.zeros((len(time), len(free), len(p)))
        for i, (name, scale) in enumerate(scales.items()):
            coordinate_slopes[:, :, columns.index(name)] = parts[:, i, free] / scale
        joint_forces = signals.forces.solve(motion, p)
        slopes, _ = signals.slopes(motion, joint_forces, p, coordinate_slopes)
        derivatives = self.results.gradient(time, signals.rows(motion, joint_forces, p), slopes)
        return by_name(derivatives, loops.mechanism, names)

    def _sensitivity_simulator(self, scales: dict[str, float]) -> Simulator:
        """Integrates the motion with its derivatives by the parameters in `scales`."""
        names = tuple(scales)
        if names not in self._simulators:
            system = sensitive_system(self.simulator.system, scales)
            self._simulators[names] = Simulator(system, rtol=_RTOL, atol=_ATOL, max_steps=1_000_000)
        return self._simulators[names]

    def _start(self, p: Sequence[float], scenario: Mapping[str, Any]) -> Floats:
        try:
            return initial_state(self.loops, self.settings, p, str(scenario.get("branch", self.settings.branch)))
        except CannotClose as error:
            raise Diverged(str(error), reason="cannot_close") from None

    def notes(self, numbers: Mapping[str, float]) -> Iterator[str]:
        """Notes where the initial state passes limits of the file."""
        yield from value_notes(self.settings.mechanism, "initial", self.settings.initial)

    def declares(self) -> Declaration:
        """Outputs and arrays."""
        return with_limits(self.results.declares(), self.settings.mechanism)

    def evaluate(
        self, numbers: Mapping[str, float], scenario: Mapping[str, Any], arrays: Set[str]
    ) -> tuple[dict[str, float], dict[str, Floats]]:
        """Integrate the motion. Raises `Diverged` if the loops do not close or the integration ends early."""
        loops, p = self.loops, self.loops.mechanism.column(numbers)
        time = np.linspace(0.0, self.settings.duration, self.settings.samples)
        x0 = self._start(p, scenario)
        run = self.simulator.run(x0, time, p=p)
        if run.status is not SimulationStatus.DONE:
            raise Diverged(run.message, reason=run.status.name.lower())
        m = len(loops.mechanism.tree.names)
        motion = MotionRows(time, run.x[:, :m], run.x[:, m:], run.y)
        refuse_obstacles(loops, motion.z, p)
        signals = self.results.signals
        try:
            values = signals.rows(motion, signals.forces.solve(motion, p), p)
        except RedundantLoop as error:
            raise Diverged(str(error), reason="redundant") from None
        every: dict[str, Floats] = self.results.arrays(time, values)
        if "scene" in arrays:
            every["scene"] = scene_of(loops.mechanism, motion.z, p)
        return self.results.outputs(time, values), {name: every[name] for name in arrays}


def initial_state(loops: LoopSolver, settings: TaskSettings, p: Sequence[float], branch: str) -> Floats:
    """(2 m,) coordinates and rates that close the loops, with the `initial` values of independent coordinates.

    Values of dependent coordinates say where the loops' solution starts. Raises `CannotClose`.
    """
    names, initial = loops.mechanism.tree.names, settings.initial
    start = loops.start(p, branch)
    near = start.copy()
    for i, name in enumerate(names):
        near[i] = initial.get(name, near[i])
    free = loops.independent
    if any(names[i] in initial for i in loops.dependent):
        z = loops.start(p, "", near)
    else:
        row = loops.follow(start, near[free][None], p)
        if not row.is_closed[0]:
            meaning = loops.obstacle(row.z, p)[1] or "the loops do not close"
            raise CannotClose(f"in the initial state {meaning}: a gap of {row.gap[0]:.3g} stays", row.gap[0])
        z = row.z[0]
    speeds = np.array([[initial.get(f"{names[i]}_speed", 0.0) for i in free]])
    return np.concatenate([z, loops.rates(z[None], speeds, p)[0]])
