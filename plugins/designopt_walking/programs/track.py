"""A walk that follows a recorded one, with its ground forces, by muscles and contact."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from designopt_recordings.errors import RecordingError
from designopt_recordings.signals.filters import lowpass
from designopt_recordings.table import TimeTable

from designopt.arrays import Floats
from designopt.collocation import (
    Constraint,
    Ends,
    Guess,
    Integral,
    Phase,
    Signal,
    Symbols,
    TrajectoryProblem,
    sampled,
)
from designopt.dynamics.system import System, Variable
from designopt.lazy import casadi as ca
from designopt.lazy import scipy
from designopt_walking.programs.gait import (
    GaitRanges,
    bounds_and_scales,
    check_contact,
    check_mirror,
    excitations,
    mirror_constraints,
    powered,
)
from designopt_walking.system import FASTEST, side_of, walking_system
from designopt_walking.walker import Walker

#: Degree of the splines through a recording, and samples between its rows at which their cubics are formed.
DEGREE, DENSER = 5, 8
#: Activation in the guess.
ACTIVATION = 0.5


@dataclass(frozen=True, eq=False)
class RecordedWalk:
    """A recorded part of a walk: `values` (n,) by coordinate, ``<coordinate>_speed`` and, if recorded,
    ``ground_x_<side>``, ``ground_y_<side>`` (N) and so on, at `time` (n,) s, which begins with 0."""

    time: Floats
    values: Mapping[str, Floats]

    @property
    def duration(self) -> float:
        """In s."""
        return float(self.time[-1])

    @property
    def forces(self) -> list[str]:
        """Names of the recorded ground forces."""
        return [name for name in self.values if name.startswith("ground_")]


@dataclass(frozen=True)
class TrackingWeights:
    """Of squared excitations and drives, squared distances of coordinates and speeds (rad, m, s), and squared distances
    of ground forces (N) by body weight."""

    effort: float = 10.0
    states: float = 1.0
    forces: float = 1.0


@dataclass(frozen=True, eq=False)
class WalkTables:
    """What was recorded: `motion` with coordinates (and speeds), `ground` with forces, whose columns begin, by side,
    with `columns`; `window` (s) of the part, all of the motion if None; `cutoff` (Hz) of a low-pass filter for the
    coordinates, whose recorded speeds are then not used; `axes` of the ground forces; `unrecorded` coordinates, which
    the motion need not have."""

    motion: TimeTable
    ground: TimeTable | None = None
    columns: Mapping[str, str] = field(default_factory=lambda: {"r": "ground_force_r_v", "l": "ground_force_l_v"})
    window: tuple[float, float] | None = None
    cutoff: float | None = None
    axes: str = "xy"
    unrecorded: Collection[str] = ()

    def walk(self, walker: Walker) -> RecordedWalk:
        """The recording for the coordinates and feet of `walker`, by quintic splines.

        Raises `RecordingError` for columns that are not there, gaps, and tables that are shorter than the window.
        """
        coordinates = [name for name in walker.coordinates if name not in self.unrecorded]
        motion = self.motion.radians([name for name in walker.angles if name in coordinates])
        if self.cutoff is not None:
            motion = _filtered(motion, [motion.label(name, "value") for name in coordinates], self.cutoff)
        begin, end = self.window or (float(motion.time[0]), float(motion.time[-1]))
        if not begin < end:
            raise RecordingError(f"the window from {begin:g} to {end:g} s is empty")
        rows = int(np.count_nonzero((motion.time >= begin) & (motion.time <= end)))
        time = np.linspace(begin, end, DENSER * max(rows - 1, DEGREE) + 1)
        values: dict[str, Floats] = {}
        for name in coordinates:
            spline = _spline(motion, motion.label(name, "value"), begin, end)
            values[name] = np.asarray(spline(time), dtype=np.float64)
            recorded = [label for label in motion.names if label.split("/")[-2:] == [name, "speed"]]
            rate = _spline(motion, recorded[0], begin, end) if recorded else spline.derivative()
            values[f"{name}_speed"] = np.asarray(rate(time), dtype=np.float64)
        if self.ground is not None:
            for side in dict.fromkeys(map(side_of, walker.ground_forces)):
                if side not in self.columns:
                    raise RecordingError(f"no column of the ground forces is named for the foot '{side}'")
                for axis in self.axes:
                    spline = _spline(self.ground, f"{self.columns[side]}{axis}", begin, end)
                    values[f"ground_{axis}_{side}"] = np.asarray(spline(time), dtype=np.float64)
        return RecordedWalk(time - begin, values)


def _filtered(motion: TimeTable, labels: list[str], cutoff: float) -> TimeTable:
    """The columns `labels` of `motion`, filtered."""
    steps = np.diff(motion.time)
    if np.ptp(steps) > 1e-3 * steps.mean():
        raise RecordingError("a filter needs equal steps of time; resample the motion, or leave the cut-off out")
    columns = np.column_stack([motion.column(label) for label in labels])
    return TimeTable(motion.time, tuple(labels), lowpass(columns, 1.0 / float(steps.mean()), cutoff))


def _spline(table: TimeTable, label: str, begin: float, end: float) -> Any:
    """The spline of a column that covers a window."""
    values = table.column(label)
    if not np.isfinite(values).all():
        raise RecordingError(f"column '{label}' has gaps; fill them")
    slack = 1e-6 * (end - begin)
    if table.time[0] > begin + slack or table.time[-1] < end - slack:
        recorded = f"{table.time[0]:g} to {table.time[-1]:g} s"
        raise RecordingError(f"column '{label}' is recorded from {recorded}, not from {begin:g} to {end:g} s")
    if len(table.time) <= DEGREE:
        raise RecordingError(f"column '{label}' has {len(table.time)} rows; a spline needs at least {DEGREE + 1}")
    return scipy.interpolate.make_interp_spline(table.time, values, k=DEGREE)


@dataclass(frozen=True, eq=False)
class FollowedRecording:
    """What a program needs to follow a recorded `walk` with a `walker`: data of the system, integrals, and the cost

    J = w_e int sum u^2 + w_s int sum w (x - x_ref)^2 + w_f int sum |F - F_ref|^2 / (m g), with the `weights` w_e, w_s,
    w_f, and `state_weights` w of single coordinates and ``<coordinate>_speed`` (1 for others).
    """

    walker: Walker
    walk: RecordedWalk
    weights: TrackingWeights
    state_weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def states(self) -> list[str]:
        """Names of the recorded coordinates and speeds."""
        return [name for name in self.walk.values if name not in self.walk.forces]

    def system(self, axes: str = "xy") -> System:
        """The equations of the walker with the recording as data, and ground forces along `axes`."""
        units = {**dict.fromkeys(self.states, ""), **dict.fromkeys(self.walk.forces, "N")}
        references = [(Variable(f"recorded_{n}", units[n]), ca.SX.sym(f"recorded_{n}")) for n in self.walk.values]
        return walking_system(self.walker, data=references, axes=axes)

    @property
    def data(self) -> dict[str, Signal]:
        """The recording, for a phase."""
        return {f"recorded_{name}": Signal(self.walk.time, values) for name, values in self.walk.values.items()}

    @property
    def integrals(self) -> dict[str, Integral]:
        """The terms of the cost without their weights, for a phase."""
        controls, weight = [*excitations(self.walker), *self.walker.drives], self.walker.weight
        return {
            "effort": Integral(lambda v: powered([v[n] for n in controls], 2)),
            "states": Integral(lambda v: self._squares(v, self.states)),
            "contact": Integral(lambda v: self._squares(v, self.walk.forces) / weight),
        }

    def problem(self, phase: Phase, constraints: Mapping[str, Constraint]) -> TrajectoryProblem:
        """With the cost of a phase that has these data and integrals. Figures: `objective` and its terms `effort`,
        `states`, `contact`."""
        w = self.weights
        parts: dict[str, Callable[[Ends], Any]] = {
            "effort": lambda e: w.effort * e.integral["effort"],
            "states": lambda e: w.states * e.integral["states"],
            "contact": lambda e: w.forces * e.integral["contact"],
        }

        def cost(e: Ends) -> Any:
            return sum(part(e) for part in parts.values())

        return TrajectoryProblem([phase], cost=cost, constraints=constraints, figures={"objective": cost, **parts})

    def _squares(self, v: Symbols, names: list[str]) -> Any:
        return sum((self.state_weights.get(n, 1.0) * (v[n] - v[f"recorded_{n}"]) ** 2 for n in names), ca.SX(0))


def tracked_walk(
    walker: Walker, gait: GaitRanges, walk: RecordedWalk, weights: TrackingWeights | None = None
) -> TrajectoryProblem:
    """The half cycle nearest to a recorded one, of the same duration, with the least effort: see `FollowedRecording`.

    Raises `GaitError` for a walker without contact or symmetry.
    """
    check_contact(walker)
    check_mirror(walker)
    followed = FollowedRecording(walker, walk, weights or TrackingWeights())
    bounds, scales = bounds_and_scales(walker, replace(gait, drive=None))
    speeds = {f"{c}_speed": gait.speeds.get(c, (-FASTEST, FASTEST)) for c in walker.coordinates}
    phase = Phase(
        followed.system(),
        tf=walk.duration,
        bounds={**bounds, **speeds},
        scales=scales,
        integrals=followed.integrals,
        data=followed.data,
    )
    return followed.problem(phase, mirror_constraints(walker))


def recorded_guess(walker: Walker, walk: RecordedWalk) -> Guess:
    """The recorded motion, with all muscles half active."""
    values = {name: column for name, column in walk.values.items() if name not in walk.forces}
    half = np.full(len(walk.time), ACTIVATION)
    for name in walker.muscles.names:
        values[f"activation_{name}"] = values[f"excitation_{name}"] = half
    return Guess({"motion": sampled(walk.time, values)})
