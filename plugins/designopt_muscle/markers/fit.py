"""Inverse kinematics: the coordinates of a model that bring its markers closest to the recorded ones."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from designopt_recordings.recording import Recording
from designopt_recordings.table import TimeTable

from designopt.arrays import Floats, Integers, Mask
from designopt.counts import first_of
from designopt.study.language.findings import nearest_or_all
from designopt_muscle.geometry.kinematics import all_coordinates
from designopt_muscle.markers.minimise import Minimum, minimise, unobservable
from designopt_muscle.markers.mislabelled import label_doubts
from designopt_muscle.markers.problem import Limits, MotionProblem, motion_problem
from designopt_muscle.markers.residuals import MarkerResiduals
from designopt_muscle.markers.status import MarkerError, MotionStatus
from designopt_muscle.markers.tasks import IkTasks
from designopt_muscle.osim.markers import OsimMarker
from designopt_muscle.osim.model import OsimModel

#: Every so many frames one is solved first; those between start from them.
_STRIDE = 6
#: Steps that place the model in the laboratory, and then towards a pose from which others start.
_PLACED, _ROUGH = 2, 5
#: RMS error (m) of the first pose from the model's default beyond which other directions are tried.
_FAR = 0.05
#: A frame with this many times the objective of a neighbour starts anew from it.
_WORSE = 4.0
#: Markers or coordinates in a sentence.
_NAMED = 5
#: A coordinate that changes by more than this (rad, m) between two frames jumps.
_JUMP = 0.5


@dataclass(frozen=True, eq=False)
class MotionFit:
    """The motion of a model that follows the markers of n frames.

    `values` (n, c) rad or m of all `coordinates`, those that couplers drive too; `errors` (n, k) m of the `markers`,
    NaN where one is missing; `cost` (n,) m^2, the objective of `MarkerResiduals`. `status` (n,) are numbers of
    `MotionStatus`; `at_limit` and `unobservable` (n, c) name the coordinates. Frames without a marker have NaN.
    `notes` are sentences for people: markers that do not take part or were probably swapped, coordinates at limits;
    `doubts` are those that make poses doubtful.
    """

    time: Floats
    coordinates: tuple[str, ...]
    values: Floats
    markers: tuple[str, ...]
    errors: Floats
    cost: Floats
    status: Integers
    at_limit: Mask
    unobservable: Mask
    notes: tuple[str, ...]
    doubts: tuple[str, ...] = ()

    def column(self, name: str) -> Floats:
        """(n,) values of one coordinate. Raises `MarkerError` for other names."""
        if name not in self.coordinates:
            raise MarkerError(f"'{name}' is not a coordinate{nearest_or_all(name, self.coordinates)}")
        return self.values[:, self.coordinates.index(name)]

    def table(self) -> TimeTable:
        """The coordinates over time, in rad and m."""
        return TimeTable(self.time, self.coordinates, self.values, title="Coordinates")

    @property
    def rms(self) -> Floats:
        """(n,) m root of the mean squared error of the markers that a frame has."""
        present = np.isfinite(self.errors)
        total = np.where(present, self.errors, 0.0) ** 2
        return np.asarray(np.sqrt(total.sum(axis=1) / np.maximum(present.sum(axis=1), 1)))


def fit_motion(
    model: OsimModel,
    markers: tuple[OsimMarker, ...],
    recording: Recording,
    tasks: IkTasks | None = None,
    *,
    limits: Limits = "clamped",
) -> MotionFit:
    """The coordinates in every frame of `recording` at which the `markers` of a model are closest to the recorded ones.

    The objective is OpenSim's (`MarkerResiduals`), minimised to rounding with exact derivatives, all frames together.
    `limits` are the ranges of the coordinates that the model clamps ("clamped", as OpenSim), all ranges ("hard"), all
    as a penalty ("penalty"), or "none". Coordinates of couplers follow their drivers, locked ones keep their defaults.
    Frames that lack a marker use the others.

    Raises `MarkerError` for tasks of coordinates that the model does not have, without a shared marker, for a window
    without frames, and for a model that cannot move.
    """
    tasks = tasks or IkTasks()
    problem = motion_problem(model, markers, recording, tasks, limits)
    objective, layout = problem.objective, problem.objective.layout
    visible = np.flatnonzero((objective.share > 0.0).any(axis=1))
    fit = _solve(problem, visible)
    marks = _Marks.of_fit(problem, visible, fit, tasks.large)
    q, cost = np.full(marks.at_limit.shape, np.nan), np.full(len(problem.frames), np.nan)
    q[visible], cost[visible] = fit.q, fit.cost
    values = all_coordinates(model, dict(zip(layout.coordinates, q.T, strict=True)), len(problem.frames))
    columns = np.column_stack([values[name] for name in model.names])
    columns[marks.status == MotionStatus.NO_MARKER] = np.nan
    position = {name: i for i, name in enumerate(layout.coordinates)}
    order = [position.get(name, len(position)) for name in model.names]
    at_limit, lost = (np.pad(mask, ((0, 0), (0, 1)))[:, order] for mask in (marks.at_limit, marks.lost))
    doubts = label_doubts(objective.take(visible), fit, problem.low, problem.high, tasks.large)
    doubts += marks.doubts(objective)
    notes = (*problem.notes, *marks.notes(objective), *doubts)
    names = tuple(marker.name for marker in layout.markers)
    time = recording.time[problem.frames]
    return MotionFit(
        time, model.names, columns, names, marks.errors, cost, marks.status, at_limit, lost, notes, tuple(doubts)
    )


@dataclass(frozen=True, eq=False)
class _Marks:
    """Remarks on n frames: the `errors` (n, k) m of markers, those `missing` and those `far` (n, k), coordinates
    `at_limit` and `lost` (n, m), and the `status` (n,) that follows."""

    errors: Floats
    missing: Mask
    far: Mask
    at_limit: Mask
    lost: Mask
    status: Integers

    @classmethod
    def of_fit(cls, problem: MotionProblem, visible: Integers, minimum: Minimum, large: float) -> _Marks:
        objective = problem.objective
        n, m = len(problem.frames), len(objective.layout.coordinates)
        errors = np.full(objective.share.shape, np.nan)
        at_limit, lost = np.zeros((n, m), dtype=bool), np.zeros((n, m), dtype=bool)
        errors[visible] = objective.take(visible).errors(minimum.q)
        at_limit[visible] = (minimum.q <= problem.ranges[0]) | (minimum.q >= problem.ranges[1])
        lost[visible] = unobservable(minimum.matrix)
        missing = (objective.share == 0.0) & (objective.weights > 0.0)
        far = np.nan_to_num(errors) > large
        status = np.full(n, MotionStatus.NO_MARKER, dtype=np.int64)
        status[visible] = MotionStatus.OPTIMAL
        for mark, mask in (
            (MotionStatus.MISSING_MARKER, missing),
            (MotionStatus.AT_LIMIT, at_limit),
            (MotionStatus.LARGE_ERROR, far),
            (MotionStatus.UNOBSERVABLE, lost),
        ):
            status[mask.any(axis=1) & (status < MotionStatus.NOT_CONVERGED)] = mark
        status[visible[~minimum.converged]] = MotionStatus.NOT_CONVERGED
        return cls(errors, missing, far, at_limit, lost, status)

    def notes(self, residuals: MarkerResiduals) -> list[str]:
        """A sentence for each missing marker and each coordinate at an end, with the number of frames."""
        names, coordinates = _marker_names(residuals), residuals.layout.coordinates
        never = self.lost & self.lost.all(axis=0)
        return [
            *_count_sentences("the marker '{}' is missing in", names, self.missing),
            *_count_sentences("the coordinate '{}' is at an end of its range in", coordinates, self.at_limit),
            *_count_sentences("the markers do not determine the coordinate '{}' in", coordinates, never),
        ]

    def doubts(self, residuals: MarkerResiduals) -> list[str]:
        """Sentences on markers that are far from the model's, on coordinates that they determine in some frames."""
        lost = self.lost & ~self.lost.all(axis=0)
        return [
            *_list_sentences("markers are far from the model's", _marker_names(residuals), self.far),
            *_list_sentences("the markers do not determine coordinates", residuals.layout.coordinates, lost),
        ]


def _marker_names(residuals: MarkerResiduals) -> list[str]:
    return [marker.name for marker in residuals.layout.markers]


def _count_sentences(sentence: str, names: Sequence[str], mask: Mask) -> list[str]:
    """The `sentence` for each of `names` that is marked in some of the frames `mask` (n, k)."""
    return [
        f"{sentence.format(name)} {count} of {len(mask)} frames"
        for name, count in zip(names, mask.sum(axis=0), strict=True)
        if count
    ]


def _list_sentences(sentence: str, names: Sequence[str], mask: Mask) -> list[str]:
    """The `sentence` with those of `names` that are marked in most of the frames `mask` (n, k); none without any."""
    counts = mask.sum(axis=0)
    order = [int(i) for i in np.argsort(-counts, kind="stable") if counts[i]]
    if not order:
        return []
    text = first_of([f"'{names[i]}' in {counts[i]}" for i in order], _NAMED)
    return [f"{sentence}: {text} of {len(mask)} frames"]


def first_pose(problem: MotionProblem) -> Floats:
    """(1, m) the pose in the frame with most markers; far from the markers from other directions too."""
    objective = problem.objective
    best = int(np.argmax((objective.share > 0.0).sum(axis=1)))
    low, high, root = problem.low, problem.high, objective.layout.placing

    def descend(starts: Floats) -> Minimum:
        copies = objective.take(np.full(len(starts), best))
        return minimise(copies, minimise(copies, starts, low, high, root, steps=2 * _ROUGH).q, low, high)

    fit = descend(problem.defaults[None])
    errors = objective.take(np.array([best])).errors(fit.q)
    if np.sqrt(np.nanmean(errors**2)) > _FAR:
        turns = np.flatnonzero(root & objective.layout.turning)
        quarters = np.array(list(itertools.product((0.0, 0.5 * np.pi, np.pi, -0.5 * np.pi), repeat=len(turns))))
        starts = np.tile(problem.defaults, (len(quarters), 1))
        starts[:, turns] += quarters
        fit = descend(starts)
        near = fit.cost <= fit.cost.min() * 1.01 + 1e-12
        off = np.where(near, np.abs(fit.q - problem.defaults)[:, root].sum(axis=1), np.inf)
        return fit.q[[int(np.argmin(off))]]
    return fit.q


def _solve(problem: MotionProblem, visible: Integers) -> Minimum:
    """The minimum in the frames `visible`: of one from the default pose, of some along the trial, then of all."""
    objective, low, high = problem.objective.take(visible), problem.low, problem.high
    pilots = np.unique([*range(0, len(visible), _STRIDE), len(visible) - 1])
    coarse = objective.take(pilots)
    start = np.repeat(first_pose(problem), len(pilots), axis=0)
    start = minimise(coarse, start, low, high, objective.layout.placing, steps=_PLACED).q
    rough = minimise(coarse, start, low, high, steps=_ROUGH)
    turns = np.flatnonzero(objective.layout.placing & objective.layout.turning & np.isinf(low) & np.isinf(high))
    rough.q[:, turns] = np.unwrap(rough.q[:, turns], axis=0)
    good = rough.cost <= _WORSE * np.median(rough.cost)
    frames = np.arange(len(visible))
    spread = _between(pilots[good], rough.q[good], frames)
    fit = minimise(objective, spread, low, high, near=True)
    for way in (1, -1):
        _spread_better(objective, fit, problem, way)
    return fit


def _spread_better(residuals: MarkerResiduals, minimum: Minimum, problem: MotionProblem, way: int) -> None:
    """Start frames anew from the one before (`way` 1) or after (-1), where the motion jumps or the fit is much worse;
    a frame that improves is the start of the next one."""
    n = len(minimum.q)
    frames = np.arange(n)
    before = np.clip(frames - way, 0, n - 1)
    jumps = np.abs(minimum.q - minimum.q[before]).max(axis=1) > _JUMP
    bad = np.flatnonzero(
        (jumps & (minimum.cost > minimum.cost[before])) | (minimum.cost > _WORSE * minimum.cost[before] + 1e-12)
    )
    while len(bad):
        retry = minimise(residuals.take(bad), minimum.q[before[bad]], problem.low, problem.high)
        better = retry.cost < minimum.cost[bad] * (1.0 - 1e-6) - 1e-15
        minimum.replace(bad[better], retry.take(better))
        bad = np.unique(bad[better] + way)
        bad = bad[(bad >= 0) & (bad < n)]


def _between(frames: Integers, q: Floats, at: Integers) -> Floats:
    """(k, m) coordinates at the frames `at` (k,) by a cubic spline through `q` (n, m), lines through less than four."""
    from scipy.interpolate import make_interp_spline

    degree = 3 if len(frames) > 3 else min(len(frames) - 1, 1)
    return np.asarray(make_interp_spline(frames, q, k=degree)(np.clip(at, frames[0], frames[-1])))
