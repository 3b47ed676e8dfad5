"""One trial of a model: geometry, muscles and net moments in every frame, from files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Literal

import numpy as np
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.sharing.muscles import Muscles
from designopt_recordings.errors import RecordingError, errors_about
from designopt_recordings.files.read import read_table
from designopt_recordings.signals.derivatives import derivatives
from designopt_recordings.signals.even_steps import (
    check_steps,
    for_filter,
    gap_notes,
    in_gaps,
    spline_values,
    step_notes,
)
from designopt_recordings.signals.filters import lowpass
from designopt_recordings.table import TimeTable

from designopt.arrays import Floats, Integers, Mask
from designopt.plugin import InputFile
from designopt_muscle.geometry.geometry import muscle_geometry
from designopt_muscle.geometry.jumps import in_words, jumps
from designopt_muscle.geometry.kinematics import Kinematics, kinematics
from designopt_muscle.models.columns import moment_notes, motion_notes, present_coordinates
from designopt_muscle.models.dynamics import Dynamics, read_loads
from designopt_muscle.models.errors import TrialError
from designopt_muscle.models.plausibility import acceleration_notes, pose_notes, strength_notes
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.read import read_model
from designopt_muscle.strength import Fibres, strengths

#: Order of the zero-phase low-pass filter of coordinates.
_ORDER = 3
#: Frames at which net moments are compared with the strength of the muscles, and points of forces with their bodies.
_LOOKED_AT = 50


@dataclass(frozen=True)
class ExternalLoads:
    """External loads on bodies: OpenSim's file of `assignments` (XML) and the table of `forces` that it assigns."""

    assignments: InputFile
    forces: InputFile


@dataclass(frozen=True)
class TrialDynamics:
    """The moving model with its `external` loads; with `gives_moments` net moments follow from masses and motion."""

    external: ExternalLoads | None = None
    gives_moments: bool = False


@dataclass(frozen=True, eq=False)
class TrialFrames:
    """The frames of a trial: those of the recording between two times `window` (s), or at `times` (n,) s in it on the
    quintic spline; the coordinates filtered at `cutoff` (Hz)."""

    window: tuple[float, float] | None = None
    times: Floats | None = None
    cutoff: float | None = None


@dataclass(frozen=True)
class Contraction:
    """How fibres and tendons produce forces: the arguments of `strengths`."""

    tendon: Literal["rigid", "equilibrium"] = "rigid"
    passive: bool = False
    curves: Literal["opensim", "publication"] = "opensim"


@dataclass(frozen=True, eq=False)
class MovedCoordinates:
    """Free coordinates `names` at `time` (n,) s: `values`, `rates`, `accelerations` (n, m) in rad or m and seconds."""

    time: Floats
    names: tuple[str, ...]
    values: Floats
    rates: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    accelerations: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def is_finite(self) -> Mask:
        """(n,) frames in which values and rates are finite."""
        return np.asarray(np.isfinite(self.values).all(axis=1) & np.isfinite(self.rates).all(axis=1))

    @property
    def states(self) -> dict[str, tuple[Floats, Floats, Floats]]:
        """Value, rate and acceleration, (n,) each, of the coordinates by name."""
        return {
            name: (self.values[:, i], self.rates[:, i], self.accelerations[:, i]) for i, name in enumerate(self.names)
        }

    def take(self, frames: Integers) -> MovedCoordinates:
        """Some of the frames."""
        return MovedCoordinates(
            self.time[frames], self.names, self.values[frames], self.rates[frames], self.accelerations[frames]
        )


@dataclass(frozen=True, eq=False)
class NetMoments:
    """Net generalised forces `values` (n, m), N m or N, about the coordinates `rows`."""

    rows: tuple[str, ...]
    values: Floats


@dataclass(frozen=True, eq=False)
class MusclePaths:
    """`lengths` (n, k) m of muscles with their tendons, and the `speeds` (n, k) m/s at which they lengthen."""

    lengths: Floats
    speeds: Floats


@dataclass(frozen=True, eq=False)
class Trial:
    """Frames of a motion. `balance` contains the net moments as read; `muscles` the capacities at full strength.
    `values` and `rates` (n,) are the coordinates by name, in rad or m, and per second; `notes` are remarks for the
    reader. `dynamics` is the moving model with its loads, if requested; `paths` are those of the muscles.
    """

    model: OsimModel
    balance: MomentBalance
    muscles: Muscles
    fibres: Fibres
    values: dict[str, Floats]
    rates: dict[str, Floats]
    notes: tuple[str, ...]
    dynamics: Dynamics | None = None
    paths: MusclePaths | None = None

    @property
    def finite_values(self) -> dict[str, Floats]:
        """The coordinates with 0 in place of numbers that are missing."""
        return {name: np.where(np.isfinite(v), v, 0.0) for name, v in self.values.items()}


def bundled_file(name: str) -> InputFile:
    """A file of the package: ``planar_leg.osim`` or ``walking_leg.csv``."""
    return InputFile(name, (files("designopt_muscle") / "bundled" / name).read_bytes())


def read_trial(
    model: InputFile,
    motion: InputFile,
    moments: InputFile | None = None,
    *,
    frames: TrialFrames | None = None,
    contraction: Contraction | None = None,
    dynamics: TrialDynamics | None = None,
) -> Trial:
    """The trial of a `motion` of a `model`; by default all its frames, without its `dynamics`.

    Net moments are columns ``COORDINATE_moment`` (``COORDINATE_force`` for translations) of `moments`, by default of
    `motion`; a cubic spline interpolates them to the frames of the motion if their times differ. Moments about
    coordinates that a coupler drives are added to those of its driver. Rows are the free coordinates that have a net
    moment. Coordinates that the motion lacks stay at their defaults.

    If the `dynamics` give the moments, they do so for all free coordinates that are not locked. The filter of the
    coordinates is a zero-phase Butterworth filter of order 3; a motion whose times are not even is resampled before it
    (`for_filter`), and its frames are those of the even times. Frames with missing numbers stay, with a status; frames
    closer than five samples to an end of the recording are marked.

    Raises `TrialError` and `ModelError` for files that do not fit.
    """
    skeleton = read_model(model.content)
    part = frames or TrialFrames()
    cutoff, times, window = part.cutoff, part.times, part.window
    is_computed = dynamics is not None and dynamics.gives_moments
    remarks = trial_notes(skeleton, motion, moments, computes_moments=is_computed, cutoff=cutoff)
    coordinates, table = moved_coordinates(skeleton, motion, cutoff, times)
    moving = None
    if dynamics is not None:
        moving = Dynamics.from_model(skeleton, coordinates.states, _loads(dynamics.external, skeleton, coordinates))
    if moving is not None and is_computed:
        net = computed_moments(skeleton, moving)
    else:
        source = read_trial_table(moments) if moments else table
        column_of = {c.name: np.full(len(coordinates.time), c.default) for c in skeleton.coordinates}
        column_of |= {name: coordinates.values[:, i] for i, name in enumerate(coordinates.names)}
        net = _moments(source, moments or motion, skeleton, coordinates.time, column_of)
    if window is not None:
        inside = np.flatnonzero((coordinates.time >= window[0] - 1e-9) & (coordinates.time <= window[1] + 1e-9))
        if not len(inside):
            raise TrialError(
                f"{motion.name}: no frame lies between {window[0]:g} and {window[1]:g} s; it runs from"
                f" {table.time[0]:g} to {table.time[-1]:g} s"
            )
        coordinates, net = coordinates.take(inside), NetMoments(net.rows, net.values[inside])
        moving = None if moving is None else moving.take(inside)
    trial = trial_of(skeleton, coordinates, net, moving, inner=inner_times(table.time), contraction=contraction)
    return replace(trial, notes=tuple(dict.fromkeys([*skeleton.notes, *remarks, *trial.notes])))


def inner_times(time: Floats) -> tuple[float, float]:
    """The times (s) of a recording between which frames are at least five samples from both ends."""
    return float(time[:6][-1]), float(time[-6:][0])


def trial_of(
    model: OsimModel,
    coordinates: MovedCoordinates,
    net: NetMoments,
    dynamics: Dynamics | None = None,
    *,
    inner: tuple[float, float] = (-np.inf, np.inf),
    contraction: Contraction | None = None,
) -> Trial:
    """The trial of moved coordinates with their net moments; `dynamics` has the same frames.

    Frames with numbers that are not finite stay, with a status; those outside of the times `inner` (s) are marked as
    near an end.
    """
    time, is_finite = coordinates.time, coordinates.is_finite
    values = {name: coordinates.values[:, i] for i, name in enumerate(coordinates.names)}
    geometry = muscle_geometry(model, {name: np.where(is_finite, v, 0.0) for name, v in values.items()})
    speeds = np.zeros((len(time), len(geometry.coordinates)))
    for i, name in enumerate(coordinates.names):
        speeds[:, geometry.coordinates.index(name)] = np.where(is_finite, coordinates.rates[:, i], 0.0)
    paths = MusclePaths(geometry.lengths, geometry.speeds(speeds))
    how = contraction or Contraction()
    muscles, fibres = strengths(
        model.muscles, paths.lengths, paths.speeds, tendon=how.tendon, passive=how.passive, curves=how.curves
    )
    status = np.where(is_finite & np.isfinite(net.values).all(axis=1), 0, 120)
    near = (time < inner[0] - 1e-9) | (time > inner[1] + 1e-9)
    status[near & (status == 0)] = 10
    balance = MomentBalance(
        time=time,
        rows=net.rows,
        columns=geometry.muscles,
        arms=geometry.arms[:, [geometry.coordinates.index(row) for row in net.rows]],
        moments=net.values,
        row_units=_units(model, net.rows),
        status=status.astype(np.int64),
    )
    jump_notes = in_words(jumps(geometry, time, values)) if is_finite.all() else []
    by_name = {name: coordinates.rates[:, i] for i, name in enumerate(coordinates.names)}
    return Trial(model, balance, muscles, fibres, values, by_name, (*fibres.outside(), *jump_notes), dynamics, paths)


def moved_coordinates(
    model: OsimModel, motion: InputFile, cutoff: float | None, times: Floats | None = None
) -> tuple[MovedCoordinates, TimeTable]:
    """The free coordinates of a motion with their derivatives, filtered at `cutoff` (Hz), at its times or at `times`
    (n,) s; and its table in rad and m. Raises `TrialError` for a file that has none."""
    table, free = _motion_table(model, motion, cutoff)
    values = np.column_stack([table.column(name) for name in free])
    with _as_trial_errors(motion):
        if cutoff is not None:
            values = lowpass(values, 1.0 / float(np.median(np.diff(table.time))), cutoff, _ORDER)
        check_steps(table.time)
        if times is None:
            return MovedCoordinates(table.time, tuple(free), values, *derivatives(table.time, values)), table
        return _at_times(motion, MovedCoordinates(table.time, tuple(free), values), times), table


def _motion_table(model: OsimModel, motion: InputFile, cutoff: float | None) -> tuple[TimeTable, list[str]]:
    """The motion in rad and m, at even times if it is to be filtered, and its free coordinates."""
    with _as_trial_errors(motion):
        table = read_table(motion)
        if cutoff is not None:
            table = for_filter(table, cutoff)
        moving = present_coordinates(table, model.names)
        free = [name for name in model.free if name in moving]
        turns = {c.name for c in model.coordinates if c.rotational}
        return table.radians([name for name in free if name in turns]), free


def trial_notes(
    model: OsimModel, motion: InputFile, moments: InputFile | None, *, computes_moments: bool, cutoff: float | None
) -> list[str]:
    """Notes on the tables of a trial: of their readers, and on columns and coordinates without each other.

    Net moments are computed (`computes_moments`) or in `moments`, by default in `motion`; the motion is filtered at
    `cutoff` (Hz). Raises `TrialError` for unusable tables and for misspelt columns.
    """
    table, _ = _motion_table(model, motion, cutoff)
    if not present_coordinates(table, model.free):
        raise TrialError(f"{motion.name}: none of its columns is a coordinate of the model '{model.name}'")
    notes = [*(f"{motion.name}: {note}" for note in table.notes)]
    notes += motion_notes(table, motion.name, model, moments=moments is None and not computes_moments)
    notes += [f"{motion.name}: {note}" for note in pose_notes(table, model)]
    if cutoff is None:
        notes += [f"{motion.name}: {note}" for note in step_notes(table.time)]
    if computes_moments and cutoff is None:
        notes += [f"{motion.name}: {note}" for note in acceleration_notes(table, model)]
    if not computes_moments:
        source = table if moments is None else read_trial_table(moments)
        file = moments or motion
        if moments is not None:
            notes += [f"{file.name}: {note}" for note in (*source.notes, *gap_notes(source.time))]
        notes += moment_notes(source, file.name, model, present_coordinates(table, model.names), motion=moments is None)
        notes += [f"{file.name}: {note}" for note in _strength_notes(source, file, model, table)]
    return notes


def _strength_notes(source: TimeTable, file: InputFile, model: OsimModel, motion: TimeTable) -> list[str]:
    """`strength_notes` on net moments in `source` at some frames of a `motion` in rad and m."""
    rows = np.unique(np.linspace(0, len(motion.time) - 1, _LOOKED_AT).round().astype(np.int64))
    names = present_coordinates(motion, model.free)
    values = {
        c.name: motion.column(c.name)[rows] if c.name in names else np.full(len(rows), c.default)
        for c in model.coordinates
        if c.name in model.free
    }
    net = _moments(source, file, model, motion.time[rows], values)
    return strength_notes(dict(zip(net.rows, net.values.T, strict=True)), values, model)


def _at_times(file: InputFile, coordinates: MovedCoordinates, at: Floats) -> MovedCoordinates:
    """The coordinates, with rates and accelerations, at times `at` within the recording."""
    from scipy.interpolate import make_interp_spline

    time, values = coordinates.time, coordinates.values
    if at[0] < time[0] - 1e-9 or at[-1] > time[-1] + 1e-9:
        raise TrialError(f"{file.name}: it runs from {time[0]:g} to {time[-1]:g} s, not from {at[0]:g} to {at[-1]:g} s")
    if not np.isfinite(values).all() or len(time) < 6:
        raise TrialError(f"{file.name}: resampling needs a motion of at least 6 frames without gaps")
    at = np.clip(at, time[0], time[-1])
    spline = make_interp_spline(time, values, k=5)
    first, second = (np.asarray(spline.derivative(order)(at)) for order in (1, 2))
    return MovedCoordinates(at, coordinates.names, np.asarray(spline(at)), first, second)


def recorded_times(motion: InputFile) -> Floats:
    """(n,) s of the frames of a motion. Raises `TrialError` for a file that is no table."""
    return read_trial_table(motion).time


def recorded_poses(model: OsimModel, motion: InputFile) -> tuple[Floats, Kinematics]:
    """Some frames of a motion that have all their numbers, spread over it: their times (n,) s and poses.

    Raises `TrialError` for a file that is no table, and without such a frame.
    """
    table, free = _motion_table(model, motion, None)
    columns = np.column_stack([table.column(name) for name in free])
    frames = np.flatnonzero(np.isfinite(columns).all(axis=1))
    if not len(frames):
        raise TrialError(f"{motion.name}: no row has a number for every coordinate")
    frames = frames[np.unique(np.linspace(0, len(frames) - 1, _LOOKED_AT).round().astype(np.int64))]
    return table.time[frames], kinematics(model, {name: columns[frames, i] for i, name in enumerate(free)})


def read_trial_table(file: InputFile) -> TimeTable:
    """The table in a file. Raises `TrialError` for a file that is none."""
    with _as_trial_errors(file):
        return read_table(file)


@contextmanager
def _as_trial_errors(file: InputFile) -> Iterator[None]:
    """Turn errors of a table into a `TrialError` about its file."""
    try:
        with errors_about(file.name):
            yield
    except RecordingError as error:
        raise TrialError(str(error)) from None


def _moments(
    table: TimeTable, file: InputFile, model: OsimModel, time: Floats, values: dict[str, Floats]
) -> NetMoments:
    """Net moments at `time`; `values` (n,) are the free coordinates."""
    columns = _moment_columns(table, file, model)
    if len(table.time) != len(time) or np.abs(table.time - time).max() > 1e-9:
        columns = {name: _interpolate(table.time, column, time) for name, column in columns.items()}
    for coupler in model.couplers:
        if coupler.dependent in columns:
            rate = coupler.function.slope(values[coupler.independent])
            columns[coupler.independent] = columns.get(coupler.independent, 0.0) + columns[coupler.dependent] * rate
    rows = tuple(name for name in model.free if name in columns)
    return NetMoments(rows, np.column_stack([columns[name] for name in rows]))


def _moment_columns(table: TimeTable, file: InputFile, model: OsimModel) -> dict[str, Floats]:
    """Net moments (n,) by coordinate. Raises `TrialError` without any."""
    columns = {
        name: table.column(f"{name}{suffix}")
        for name in model.names
        for suffix in ("_moment", "_force")
        if f"{name}{suffix}" in table.names
    }
    if not columns:
        raise TrialError(
            f"{file.name}: no column contains a net moment; its name is that of a coordinate, as "
            f"'{model.free[0]}_moment'"
        )
    return columns


def _loads(external: ExternalLoads | None, model: OsimModel, coordinates: MovedCoordinates) -> dict[str, Floats]:
    """(n, 6) on each body that is loaded."""
    if external is None:
        return {}
    body_motion = kinematics(
        model, {name: np.nan_to_num(coordinates.values[:, i]) for i, name in enumerate(coordinates.names)}
    )
    return read_loads(external.assignments, read_trial_table(external.forces), body_motion, coordinates.time)


def computed_moments(model: OsimModel, dynamics: Dynamics) -> NetMoments:
    """Net moments by inverse dynamics; locked coordinates need no muscles."""
    locked_names = {c.name for c in model.coordinates if c.locked}
    rows = [i for i, name in enumerate(dynamics.coordinates) if name not in locked_names]
    return NetMoments(tuple(dynamics.coordinates[i] for i in rows), dynamics.moments()[:, rows])


def _units(model: OsimModel, rows: tuple[str, ...]) -> tuple[str, ...]:
    turning = {c.name: c.rotational for c in model.coordinates}
    return tuple("N m" if turning[name] else "N" for name in rows)


def _interpolate(at: Floats, values: Floats, time: Floats) -> Floats:
    """(n,) values at `time` by a cubic spline through the valid ones; NaN outside their times and in gaps."""
    valid = np.isfinite(values)
    if valid.sum() < 4:
        return np.full(len(time), np.nan)
    interpolation = spline_values(at[valid], values[valid][:, None], time, degree=3)[:, 0]
    return np.where(in_gaps(at[valid], time), np.nan, interpolation)
