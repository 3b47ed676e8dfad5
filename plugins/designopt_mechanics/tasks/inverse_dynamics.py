"""The task `inverse_dynamics`: the efforts and forces that a prescribed motion needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from designopt_recordings.plausibility import noise_notes

from designopt.arrays import Floats
from designopt.plugin import Declaration, Diverged, InvalidSetting
from designopt_mechanics.mechanism.forces import LoopForces, MotionRows, RedundantLoop, SolvedForces
from designopt_mechanics.mechanism.loops import CannotClose, ClosedRows, LoopSolver
from designopt_mechanics.mechanism.scene import scene_of
from designopt_mechanics.mechanism.signals import MotionSignals
from designopt_mechanics.tasks.limits import limit_notes, with_limits
from designopt_mechanics.tasks.motion import MotionFormulas, MotionTable, PrescribedMotion, check_formulas, read_motion
from designopt_mechanics.tasks.results import MotionResults
from designopt_mechanics.tasks.task import TaskSettings, by_name, refuse_redundant, refuse_structure
from designopt_mechanics.tasks.tensions import Carriers, NotCarried, carried_slopes, shared_tensions

#: Condition of the loops beyond which a posture is a dead centre.
_DEAD_CENTRE = 1e8


class InverseDynamicsTask:
    """A motion of the coordinates in `motion` (formulas of time) or `motion_file` (a table); the loops move the others.

    The moved coordinates have drives; their efforts and the forces of all joints and cuts follow.
    """

    def __init__(self, settings: TaskSettings) -> None:
        self.settings = settings

    def check(self) -> Iterator[InvalidSetting]:
        """Mistakes in the motion and the requested outputs."""
        settings, tree = self.settings, self.settings.mechanism.tree
        if structure := list(refuse_structure("motion", settings.loops)):
            yield from structure
            return
        if bool(settings.motion) == (settings.motion_file is not None):
            yield InvalidSetting(
                "motion", "state a motion: motion: {crank: 2*pi*time}, or motion_file: a table (CSV, MOT, STO)"
            )
            return
        mistakes = check_formulas(settings.mechanism, settings.motion)
        mistakes += self.carriers.check()
        yield from mistakes
        if mistakes:
            return
        try:
            motion_names = self.motion.names
        except ValueError as error:
            yield InvalidSetting("motion_file", str(error))
            return
        free = len(settings.loops.independent)
        if len(motion_names) != free:
            names = ", ".join(tree.names[i] for i in settings.loops.independent)
            yield InvalidSetting(
                "motion",
                f"moves {', '.join(motion_names)}; the mechanism has {free} degrees of freedom, such as {names}",
            )
            return
        yield from self.results.check()
        yield from refuse_redundant(settings)

    @cached_property
    def carriers(self) -> Carriers:
        """The wires that carry the motion, if any."""
        return Carriers(self.settings.mechanism, self.settings.carried_by, self.settings.sharing)

    @cached_property
    def motion(self) -> PrescribedMotion:
        """The prescribed motion."""
        if self.settings.motion_file is not None:
            settings, names = self.settings, self.settings.mechanism.tree.names
            independent = [names[i] for i in settings.loops.independent]
            return read_motion(self.settings.motion_file, settings.mechanism, independent)
        return MotionFormulas(self.settings.mechanism, self.settings.motion)

    @cached_property
    def loops(self) -> LoopSolver:
        """The loops, led by the moved coordinates."""
        settings = self.settings
        names = [settings.mechanism.tree.names[i] for i in settings.loops.independent]
        mechanism = self.carriers.with_pulls if settings.carried_by else settings.mechanism
        if set(names) != set(self.motion.names):
            mechanism = replace(mechanism, independent=self.motion.names)
        return settings.loops if mechanism is settings.mechanism else LoopSolver(mechanism)

    @cached_property
    def results(self) -> MotionResults:
        """MotionSignals, outputs and arrays."""
        forces = LoopForces(self.loops, redundant=self.settings.redundant)
        return MotionResults(MotionSignals(forces), self.settings.outputs, self.settings.targets)

    @cached_property
    def time(self) -> Floats:
        """(n,) s the samples."""
        if self.settings.motion_file is not None:
            table = self.motion
            first, last = (float(table.time[i]) for i in (0, -1))  # type: ignore[union-attr]
            return np.linspace(first, last, self.settings.samples)
        return np.linspace(0.0, self.settings.duration, self.settings.samples)

    def declares(self) -> Declaration:
        """Outputs and arrays."""
        return with_limits(self.results.declares(), self.settings.mechanism)

    def notes(self, numbers: Mapping[str, float]) -> Iterator[str]:
        """Notes on the table of the motion, and where the motion leaves limits of the file at these parameters."""
        yield from self.motion.notes
        yield from self._noise_notes()
        values, rates, _ = self.motion.rows(self.time, self.settings.mechanism.column(numbers))
        yield from limit_notes(self.settings.mechanism, self.motion.names, values, rates)

    def _noise_notes(self) -> list[str]:
        """A note on a table whose accelerations are noise."""
        motion, file = self.motion, self.settings.motion_file
        if not isinstance(motion, MotionTable) or file is None:
            return []
        turning = {c.name for c in self.settings.mechanism.tree.coordinates if c.unit == "rad"}
        remedy = "Filter the table first (lowpass of designopt_recordings.signals.filters)"
        curves = dict(zip(motion.names, motion.values.T, strict=True))
        return [f"{file.name}: {note}" for note in noise_notes(curves, motion.time, turning, remedy)]

    def evaluate(
        self, numbers: Mapping[str, float], scenario: Mapping[str, Any], arrays: Set[str]
    ) -> tuple[dict[str, float], dict[str, Floats]]:
        """Follow the motion. Raises `Diverged` where the loops do not close, or a redundant loop is refused."""
        p = self.loops.mechanism.column(numbers)
        motion, joint_forces, p = self._solution(p, scenario)
        values = self.results.signals.rows(motion, joint_forces, p)
        every_array: dict[str, Floats] = self.results.arrays(self.time, values)
        if "scene" in arrays:
            every_array["scene"] = scene_of(self.loops.mechanism, motion.z, p)
        return self.results.outputs(self.time, values), {name: every_array[name] for name in arrays}

    def gradient(
        self, numbers: Mapping[str, float], scenario: Mapping[str, Any], names: Sequence[str]
    ) -> dict[str, dict[str, float]]:
        """Derivatives of all outputs by the parameters `names`, by implicit differentiation of all equations.

        There are none of least-squares forces, nor where wires share by their largest tension or its sum.
        """
        signals, mechanism = self.results.signals, self.settings.mechanism
        if self.settings.carried_by and not self.carriers.differentiable:
            return {}
        if signals.forces.redundant == "least_squares" and signals.forces.is_redundant:
            return {}
        parameters = mechanism.column(numbers)
        motion, joint_forces, p = self._solution(self.loops.mechanism.column(numbers), scenario)
        coordinate_slopes = self._in_order(self.motion.slopes(self.time, parameters))
        if self.settings.carried_by:
            slopes = carried_slopes(self.carriers, signals, motion, p, coordinate_slopes)
        else:
            slopes, _ = signals.slopes(motion, joint_forces, p, coordinate_slopes)
        derivatives = self.results.gradient(self.time, signals.rows(motion, joint_forces, p), slopes)
        return by_name(derivatives, mechanism, names)

    def _in_order(self, slopes: Floats) -> Floats:
        """Slopes (n, 3 f, np) of the motion in the order of the independent coordinates."""
        order, f = self._order, len(self.motion.names)
        return slopes[:, [block * f + i for block in range(3) for i in order]]

    @property
    def _order(self) -> list[int]:
        names = self.loops.mechanism.tree.names
        return [self.motion.names.index(names[i]) for i in self.loops.independent]

    def _solution(self, p: Sequence[float], scenario: Mapping[str, Any]) -> tuple[MotionRows, SolvedForces, Any]:
        """The motion, its forces, and the parameters; with wires that carry it, rows of them with the tensions."""
        loops, time = self.loops, self.time
        count = len(self.settings.mechanism.parameters)  # tensions of wires come after these
        values, rates, accelerations = (part[:, self._order] for part in self.motion.rows(time, p[:count]))
        try:
            start = loops.start(p, str(scenario.get("branch", self.settings.branch)))
        except CannotClose as error:
            raise Diverged(str(error), reason="cannot_close") from None
        postures = loops.follow(start, values, p)
        if not postures.is_closed.all():
            meaning = loops.obstacle(postures.z, p)[1]
            raise Diverged(cannot_close(postures, time, meaning), reason="cannot_close")
        condition = loops.condition(postures.z, p)
        if not condition.max() < _DEAD_CENTRE:
            at = float(time[int(np.argmax(np.nan_to_num(condition, nan=np.inf)))])
            raise Diverged(f"a dead centre at {at:.6g} s: the moved coordinates do not determine the posture",
                           reason="dead_centre")  # fmt: skip
        dz = loops.rates(postures.z, rates, p)
        motion = MotionRows(time, postures.z, dz, loops.accelerations(postures.z, dz, accelerations, p))
        forces, wires = self.results.signals.forces, self.settings.carried_by
        rows: Any = np.array(p)
        try:
            if wires:
                tensions = shared_tensions(self.carriers, forces, motion, rows, forces.efforts(motion, p))
                rows = np.hstack([np.tile(rows[: -len(wires)], (len(time), 1)), tensions])
            return motion, forces.solve(motion, rows), rows
        except RedundantLoop as error:
            raise Diverged(str(error), reason="redundant") from None
        except NotCarried as error:
            raise Diverged(str(error), reason="not_carried") from None


def cannot_close(rows: ClosedRows, time: Floats, meaning: str) -> str:
    """Where a motion cannot close, with the gap, and what the largest gap of dyads and wires means."""
    open_rows = np.flatnonzero(~rows.is_closed)
    return (
        f"the mechanism cannot close from {time[open_rows[0]]:.6g} s on ({len(open_rows)} of {len(time)} samples): "
        f"the largest gap is {rows.gap.max():.3g} m (or rad){f' ({meaning})' if meaning else ''}"
    )
