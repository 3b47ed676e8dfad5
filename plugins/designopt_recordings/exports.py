"""Export formats of motion: kept arrays over time as tables (STO, MOT, CSV) and as markers (TRC)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designopt import exporter
from designopt.exports import ExportError
from designopt.plugin import Array
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.write import csv_text, motion_text, storage_text, trc_text
from designopt_recordings.recording import Recording
from designopt_recordings.table import TimeTable

if TYPE_CHECKING:
    from designopt.store.result import Result

_SECONDS = {"s": 1.0, "ms": 1e-3}
_METRES = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}
_RADIANS = {"deg": np.pi / 180.0, "degree": np.pi / 180.0}
_EVENLY = 1e-3  # relative difference of steps that a file with one rate bears


@dataclass(frozen=True)
class _Trajectory:
    """One evaluation: `arrays` beside the `time` (n,) s along `axis`, as `declarations`; `stem` of files, `title`."""

    stem: str
    title: str
    time: NDArray[np.float64]
    axis: str
    arrays: Mapping[str, NDArray[Any]]
    declarations: Mapping[str, Array]

    def over_time(self) -> Iterator[tuple[str, Array, NDArray[np.float64]]]:
        """Arrays of numbers whose first axis is the time: name, declaration, values."""
        for name, array in self.arrays.items():
            declaration = self.declarations[name]
            if (
                declaration.axes[:1] == (self.axis,)
                and array.dtype.kind in "fiub"
                and array.ndim == len(declaration.axes)
                and array.size
            ):
                yield name, declaration, np.asarray(array, dtype=float)

    def texts(self, axis: str) -> list[str]:
        """The texts that the model keeps along an axis; none where it keeps none."""
        along = (array for name, array in self.arrays.items() if self.declarations[name].axes == (axis,))
        return next(([str(text) for text in array] for array in along if array.dtype.kind in "UT"), [])

    def labels(self, name: str, axes: tuple[str, ...], sizes: tuple[int, ...]) -> list[str]:
        """A label for each column: texts along the axes, x y z or numbers; after the array's name without texts."""
        texts_of_axes = [self.texts(axis) for axis in axes]
        numbers = [["x", "y", "z"] if size == 3 else [str(i) for i in range(1, size + 1)] for size in sizes]
        parts = [texts or numbers_of_axis for texts, numbers_of_axis in zip(texts_of_axes, numbers, strict=True)]
        return [
            "_".join(parts_of_label) for parts_of_label in product(*([] if any(texts_of_axes) else [[name]]), *parts)
        ]


@exporter("sto", version=1)
def write_sto(result: Result, folder: Path, prefix: str) -> list[Path]:
    """Arrays over time as STO files of OpenSim: one for each array of several columns, one for all single ones."""
    return _write_tables(result, folder, f"{prefix}%s.sto", lambda table, units: storage_text(table))


@exporter("mot", version=1)
def write_mot(result: Result, folder: Path, prefix: str) -> list[Path]:
    """Arrays over time as MOT files of OpenSim, rotations in radians."""
    return _write_tables(result, folder, f"{prefix}%s.mot", lambda table, units: motion_text(table))


@exporter("csv_time", version=1)
def write_csv(result: Result, folder: Path, prefix: str) -> list[Path]:
    """Arrays over time as CSV files, as for STO, with units in the heads; angles in radians."""
    return _write_tables(result, folder, f"{prefix}%s.csv", csv_text)


@exporter("trc", version=1)
def write_trc(result: Result, folder: Path, prefix: str) -> list[Path]:
    """Arrays of points over time, (time, point, 3), as markers in TRC files. Raises `ExportError` without any."""
    files = []
    for trajectory in _trajectories(result):
        for name, declaration, values in trajectory.over_time():
            if values.ndim == 3 and values.shape[2] == 3 and declaration.unit in _METRES:
                with _as_export_errors(trajectory):
                    text = trc_text(_recording(trajectory, name, declaration, values))
                files.append(_file(folder / f"{prefix}{trajectory.stem}.{name}.trc", text))
    if not files:
        raise ExportError(
            f"{result.path}: the study keeps no array of points over time, (time, point, 3) with a unit of length"
        )
    return files


def _write_tables(
    result: Result, folder: Path, names: str, text: Callable[[TimeTable, Mapping[str, str]], str]
) -> list[Path]:
    files = []
    for trajectory in _trajectories(result):
        with _as_export_errors(trajectory):
            files += [_file(folder / (names % stem), text(table, units)) for stem, table, units in _tables(trajectory)]
    if not files:
        raise ExportError(f"{result.path}: besides the time, the study keeps no array of numbers over time")
    return files


def _trajectories(result: Result) -> Iterator[_Trajectory]:
    """The kept evaluations with a time, once for each axis along which one is kept: an array along one axis, in s or
    ms, preferably with the name of that axis."""
    from designopt.exports.arrays import stored_arrays

    declarations = result.problem.model.plugin.arrays
    times = [name for name, array in declarations.items() if len(array.axes) == 1 and array.unit in _SECONDS]
    times.sort(key=lambda name: declarations[name].axes != (name,))
    has_time = False
    for evaluation in stored_arrays(result):
        arrays = result.arrays(evaluation.row, evaluation.scenario)
        scenario = result.problem.scenarios[evaluation.scenario].name
        along: dict[str, str] = {}
        for name in times:
            if name in arrays:
                along.setdefault(declarations[name].axes[0], name)
        for axis, time in along.items():
            suffix = f".{axis}" if axis != next(iter(along)) else ""
            yield _Trajectory(
                f"design{evaluation.row}.{scenario}{suffix}",
                f"{result.study.name}, design {evaluation.row}, {scenario}",
                np.asarray(arrays[time], dtype=float) * _SECONDS[declarations[time].unit],
                axis,
                {name: array for name, array in arrays.items() if name != time and name in declarations},
                declarations,
            )
        has_time = has_time or bool(along)
    if not has_time:
        raise ExportError(
            f"{result.path}: the study keeps no array with the times (one axis, in s);"
            " name it in the study: execution: {arrays: [...]}"
        )


def _tables(trajectory: _Trajectory) -> Iterator[tuple[str, TimeTable, dict[str, str]]]:
    """Tables of one trajectory, each with the stem of its file and the units of its columns."""
    single: dict[str, NDArray[np.float64]] = {}
    units: dict[str, str] = {}
    for name, declaration, values in trajectory.over_time():
        unit = "rad" if declaration.unit in _RADIANS else declaration.unit
        values = values * _RADIANS.get(declaration.unit, 1.0)
        if values.ndim == 1:
            single[name], units[name] = values, unit
        else:
            columns = tuple(trajectory.labels(name, declaration.axes[1:], values.shape[1:]))
            table = TimeTable(
                trajectory.time, columns, values.reshape(len(values), -1), title=f"{trajectory.title}, {name}"
            )
            yield f"{trajectory.stem}.{name}", table, dict.fromkeys(columns, unit)
    if single:
        values = np.stack(list(single.values()), axis=1)
        yield trajectory.stem, TimeTable(trajectory.time, tuple(single), values, title=trajectory.title), units


def _recording(trajectory: _Trajectory, name: str, declaration: Array, values: NDArray[np.float64]) -> Recording:
    steps = np.diff(trajectory.time)
    if len(steps) and np.ptp(steps) > _EVENLY * np.median(steps):
        raise RecordingError(f"the times of '{name}' are not evenly spaced, as a TRC file needs them; export sto")
    rate = 1.0 / float(np.median(steps)) if len(steps) else 1.0
    names = tuple(trajectory.labels(name, declaration.axes[1:2], values.shape[1:2]))
    return Recording(rate, trajectory.time, names, values * _METRES[declaration.unit])


@contextmanager
def _as_export_errors(trajectory: _Trajectory) -> Iterator[None]:
    """Turn errors of writing into an `ExportError` about this evaluation."""
    try:
        yield
    except RecordingError as problem:
        raise ExportError(f"{trajectory.title}: {problem}") from None


def _file(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file
