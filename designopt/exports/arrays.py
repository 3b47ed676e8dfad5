"""The stored arrays of a result as one NetCDF-4 file with named axes.

Every array is a variable over ``design``, ``scenario`` and its own axes, with one chunk per evaluation. An axis is as
long as the longest array along it; shorter ones are padded (NaN, or an empty text), and ``<axis>_length`` gives their
lengths. Arrays of one evaluation that differ along an axis of the same name get separate axes. An array named like its
only axis is that axis's coordinate if it is equal in all evaluations; else the axis is named ``<axis>_index``. Integers
stay integers without padding; a complex array becomes ``<name>_real`` and ``<name>_imag``. Declared categories are CF
flags (``flag_values``, ``flag_meanings``). Numbers are compressed (zlib, bytes shuffled).

Memory does not grow with the number of evaluations: one is in memory at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designopt.exports.errors import ExportError
from designopt.store.disk.arrays import read_arrays
from designopt.store.journal.reader import JournalReader
from designopt.store.views.table import Column

if TYPE_CHECKING:
    from designopt.store.result import Result


#: Compression of numbers. Measured with motions of 20 000 x 80 doubles: 81 % of their size in 0.18 s at level 1, 79 %
#: in 0.22 s at level 6; flags become 250 times smaller.
SMALLER = {"compression": "gzip", "compression_opts": 1, "shuffle": True}


@dataclass(frozen=True)
class StoredArrays:
    """The arrays of one evaluation: the design's row, the scenario's index, and the file in the store."""

    row: int
    scenario: int
    reference: str


def stored_arrays(result: Result) -> list[StoredArrays]:
    """All evaluations of `result` with stored arrays, by design and scenario."""
    journal = JournalReader.read(result.path, result.recorded_problem)
    try:
        references = {key: reference for key, reference in journal.evaluations("key, arrays") if reference}
    finally:
        journal.close()
    if not references:
        return []
    return [
        StoredArrays(row, scenario, references[key])
        for row, keys in enumerate(result.keys())
        for scenario, key in enumerate(keys)
        if key in references
    ]


@dataclass
class _Layout:
    """Common properties of one array in all evaluations: count, type, length along each axis."""

    count: int = 0
    dtype: Any = None
    shapes: set[tuple[int, ...]] = field(default_factory=set)
    first: NDArray[Any] | None = None
    is_constant: bool = True
    text: bool = False
    numbers: bool = False

    @property
    def fault(self) -> str:
        """Why this cannot be one variable, as a clause; "" if it can."""
        axes = sorted({len(shape) for shape in self.shapes})
        if len(axes) > 1:
            return f"has {axes[0]} axes in one evaluation and {axes[-1]} in another"
        return "is text in one evaluation and numbers in another" if self.text and self.numbers else ""

    def add(self, array: NDArray[Any]) -> None:
        self.count += 1
        self.text |= array.dtype.kind in "US"
        self.numbers |= array.dtype.kind not in "US"
        self.dtype = array.dtype if self.dtype is None else np.promote_types(self.dtype, array.dtype)
        self.shapes.add(array.shape)
        if self.first is None:
            self.first = array
        elif self.is_constant:
            self.is_constant = bool(np.array_equal(self.first, array))


def write_arrays(result: Result, evaluations: list[StoredArrays], file: Path, facts: Mapping[str, Any]) -> None:
    """Write the arrays of the `evaluations`, which are read twice, one evaluation at a time in memory."""
    from h5netcdf import File

    text = import_module("h5py").string_dtype()  # the library that h5netcdf uses

    layouts, clashing = _survey(result, evaluations)
    plan = _Plan(result, evaluations, layouts, clashing)
    with File(file, "w") as nc:
        for name, value in facts.items():
            nc.attrs[name] = json.dumps(value) if isinstance(value, dict) else value
        for name, size in plan.sizes.items():
            nc.dimensions[name] = size
        designs = nc.create_variable("design", ("design",), np.int64, data=plan.rows)
        designs.attrs["long_name"] = "row in the table of designs"
        names = np.array([s.name for s in result.problem.scenarios], dtype=object)
        nc.create_variable("scenario", ("scenario",), text, data=names)
        for column in result.in_stated_units.columns():
            if column.role in ("parameter", "objective", "feasible"):
                _describe_design(nc, column, plan, text)
        for name in plan.layouts:
            _create(nc, name, plan, text)
        for axis in plan.ragged_axes:
            length = nc.create_variable(plan.length_of(axis), ("design", "scenario"), np.int64, fillvalue=0)
            length.attrs["long_name"] = f"values along {axis}; the rest is padding"
        for item, arrays in _stored_values(result, evaluations):
            _fill(nc, plan, plan.index_of[item.row], item.scenario, arrays)


def _stored_values(
    result: Result, arrays: list[StoredArrays]
) -> Iterator[tuple[StoredArrays, dict[str, NDArray[Any]]]]:
    for item in arrays:
        yield item, read_arrays(result.path, item.reference)


def _survey(result: Result, evaluations: list[StoredArrays]) -> tuple[dict[str, _Layout], set[str]]:
    """The layout of each array, and the axes along which arrays of one evaluation differ."""
    layouts: dict[str, _Layout] = {}
    clashing: set[str] = set()
    for _, arrays in _stored_values(result, evaluations):
        along: dict[str, int] = {}
        for name, array in arrays.items():
            layouts.setdefault(name, _Layout()).add(array)
            for axis, length in zip(_axis_names(result, name, array.ndim), array.shape, strict=True):
                if along.setdefault(axis, length) != length:
                    clashing.add(axis)
    for name, layout in layouts.items():
        if layout.fault:
            raise ExportError(f"{result.path}: the array '{name}' {layout.fault}, so it is no variable of NetCDF")
    return layouts, clashing


def _axis_names(result: Result, name: str, count: int) -> tuple[str, ...]:
    """The declared axes of an array; numbered ones without a declaration or for another number of axes."""
    declaration = result.problem.model.plugin.arrays.get(name)
    if declaration is None or len(declaration.axes) != count:
        return tuple(f"{name}_{k}" for k in range(count))
    axes = list(declaration.axes)
    return tuple(axis if axes.count(axis) == 1 else f"{axis}_{k}" for k, axis in enumerate(axes))


class _Plan:
    """Names and sizes of all axes, determined before writing."""

    def __init__(
        self, result: Result, arrays: list[StoredArrays], layouts: dict[str, _Layout], clashing: set[str]
    ) -> None:
        self.layouts = layouts
        self.arrays = result.problem.model.plugin.arrays
        self.rows = np.unique([item.row for item in arrays])
        self.index_of = {row: k for k, row in enumerate(self.rows.tolist())}
        self.total = len(arrays)
        complete = len(self.rows) * len(result.problem.scenarios)
        self.sizes = {"design": len(self.rows), "scenario": len(result.problem.scenarios)}
        self.axes: dict[str, tuple[str, ...]] = {}
        self.coordinates: set[str] = set()
        lengths: dict[str, set[int]] = {}
        for name, layout in layouts.items():
            count = len(next(iter(layout.shapes)))
            axes = tuple(f"{name}_{axis}" if axis in clashing else axis for axis in _axis_names(result, name, count))
            if axes == (name,) and layout.is_constant and layout.count == self.total:
                self.coordinates.add(name)
            self.axes[name] = axes
        for name, layout in layouts.items():
            self.axes[name] = tuple(self._dimension_name(axis) for axis in self.axes[name])
            for shape in layout.shapes:
                for axis, length in zip(self.axes[name], shape, strict=True):
                    lengths.setdefault(axis, set()).add(length)
        self.sizes |= {axis: max(axis_lengths) for axis, axis_lengths in lengths.items()}
        self.ragged_axes = {axis for axis, axis_lengths in lengths.items() if len(axis_lengths) > 1}
        self.full = {
            name
            for name, layout in layouts.items()
            if layout.count == complete and not self.ragged_axes.intersection(self.axes[name])
        }

    def _dimension_name(self, axis: str) -> str:
        is_used = axis in ("design", "scenario") or (axis in self.layouts and axis not in self.coordinates)
        return f"{axis}_index" if is_used else axis

    def length_of(self, axis: str) -> str:
        """The variable with the length of each array along a ragged axis."""
        name = f"{axis}_length"
        while name in self.layouts or name in self.sizes:
            name += "_"
        return name


def _create(nc: Any, name: str, plan: _Plan, text: Any) -> None:
    axes, layout = plan.axes[name], plan.layouts[name]
    if name in plan.coordinates:
        assert layout.first is not None
        dtype = text if layout.text else layout.first.dtype
        variable = nc.create_variable(name, axes, dtype, data=_pieces(layout.first, layout.dtype)[0])
        _label(variable, plan, name)
        return
    for part in _parts(name, layout.dtype):
        dtype, fill = _storage_type(layout.dtype, name in plan.full)
        chunks = (1, 1, *(max(1, plan.sizes[a]) for a in axes))
        kind: dict[str, Any] = {"dtype": text} if dtype is None else {"dtype": dtype, "fillvalue": fill, **SMALLER}
        variable = nc.create_variable(part, ("design", "scenario", *axes), chunks=chunks, **kind)
        _label(variable, plan, name)


def _label(variable: Any, plan: _Plan, name: str) -> None:
    declaration = plan.arrays.get(name)
    if declaration is not None and declaration.unit:
        variable.attrs["units"] = declaration.unit
    if declaration is not None and declaration.description:
        variable.attrs["long_name"] = declaration.description
    if declaration is not None and declaration.categories:  # CF conventions: no blanks in a meaning
        variable.attrs["flag_values"] = np.arange(len(declaration.categories), dtype=variable.dtype)
        variable.attrs["flag_meanings"] = " ".join("_".join(c.split()) for c in declaration.categories)


def _parts(name: str, dtype: Any) -> tuple[str, ...]:
    return (f"{name}_real", f"{name}_imag") if dtype.kind == "c" else (name,)


def _storage_type(dtype: Any, full: bool) -> tuple[Any, Any]:
    """Type and fill value in the file; None for text."""
    if dtype.kind == "c":
        return np.dtype("f4") if dtype.itemsize == 8 else np.dtype("f8"), np.nan
    if dtype.kind == "f":
        return dtype if dtype.itemsize in (4, 8) else np.dtype("f8"), np.nan
    if dtype.kind == "b":
        return (np.dtype("u1"), None) if full else (np.dtype("f8"), np.nan)
    if dtype.kind in "iu":
        return (dtype, None) if full else (np.dtype("f8"), np.nan)
    return None, None


def _fill(nc: Any, plan: _Plan, row: int, scenario: int, arrays: Mapping[str, NDArray[Any]]) -> None:
    for name, array in arrays.items():
        for axis, length in zip(plan.axes[name], array.shape, strict=True):
            if axis in plan.ragged_axes:
                nc.variables[plan.length_of(axis)][row, scenario] = length
        if name in plan.coordinates:
            continue
        index = (row, scenario, *(slice(0, length) for length in array.shape))
        for part, values in zip(
            _parts(name, plan.layouts[name].dtype), _pieces(array, plan.layouts[name].dtype), strict=True
        ):
            nc.variables[part][index] = values


def _pieces(array: NDArray[Any], dtype: Any) -> tuple[Any, ...]:
    if dtype.kind == "c":
        return array.real, array.imag
    if dtype.kind == "b":
        return (array.astype("u1"),)
    return (array.astype(str).astype(object) if dtype.kind in "US" else array,)


def _describe_design(nc: Any, column: Column, plan: _Plan, text: Any) -> None:
    """A parameter or objective of the designs with arrays, as a variable."""
    name = column.name
    while name in nc.variables or name in nc.dimensions or name in plan.layouts:
        name += "_"
    values = [column.values(slice(row, row + 1))[0] for row in plan.rows.tolist()]
    if column.kind == "string":
        data, dtype = np.array(["" if v is None else v for v in values], dtype=object), text
    elif column.kind == "boolean" and None not in values:
        data, dtype = np.array(values, np.uint8), np.uint8
    else:
        data, dtype = np.array([np.nan if v is None else v for v in values], float), np.float64
    variable = nc.create_variable(name, ("design",), dtype, data=data)
    variable.attrs["role"] = column.role
    if column.unit:
        variable.attrs["units"] = column.unit
