"""InputSignals over time from a table of the study: a CSV file, or a MOT or STO file of a recording."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_table
from designopt_recordings.table import TimeTable
from numpy.typing import NDArray

from designopt.plugin import InputFile, InvalidSetting, closest
from designopt.study.language import units

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class InputSignals:
    """`values` (n, c) of the inputs `names` at `time` (n,) s, in the units of the model."""

    time: Floats
    names: tuple[str, ...]
    values: Floats

    def at(self, time: Floats) -> Floats:
        """(t, c) values at `time` (t,) s, linear between samples."""
        columns = [np.interp(time, self.time, column) for column in self.values.T]
        return np.column_stack(columns) if columns else np.zeros((len(time), 0))


@functools.lru_cache(maxsize=16)
def _table(file: InputFile) -> tuple[TimeTable, str]:
    head = next((line for line in file.text().splitlines() if line.strip() and not line.startswith("#")), "")
    return read_table(file), head


def read(file: InputFile, inputs: Mapping[str, str], columns: Mapping[str, str]) -> InputSignals:
    """The signals of a table for `inputs`, units by name: the columns of the same names, or those in `columns`.

    A column with a unit in brackets, ``force [kN]``, is converted to the unit of the input; other columns are in it
    already. Raises `ValueError` with the file and the way out.
    """
    try:
        table, head = _table(file)
        column_names = {name: columns.get(name, name) for name in inputs}
        column_names = {n: c for n, c in column_names.items() if n in columns or c in table.names}
        if not column_names:
            raise ValueError(_no_column(file.name, table.names, list(inputs)))
        values = []
        for name, column in column_names.items():
            signal = table.column(column)
            if np.isnan(signal).any():
                row = int(np.isnan(signal).argmax())
                raise ValueError(f"{file.name}: column '{column}' has no value at {table.time[row]:g} s")
            values.append(signal / _size(inputs[name]) if re.search(_with_unit(column), head) else signal)
    except RecordingError as error:
        raise ValueError(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file.name}: {error}") from None
    return InputSignals(table.time, tuple(column_names), np.column_stack(values))


def _no_column(file: str, columns: tuple[str, ...], inputs: list[str]) -> str:
    if not inputs:
        return f"{file}: the model has no inputs over time; remove the file"
    return (
        f"{file}: has no column of an input; it has {', '.join(columns[:8])}, inputs are {', '.join(inputs[:8])};"
        f" name a column: columns: {{{inputs[0]}: {columns[0] if columns else 'COLUMN'}}}"
    )


def _with_unit(column: str) -> str:
    return rf'(^|[,;\t])\s*"?{re.escape(column)}\s*\['


def _size(unit: str) -> float:
    """The size of a unit in SI units: the table's values are in these."""
    measure = units.measure(unit) if unit else None
    return 1.0 if measure is None else measure[0]


def check_columns(columns: Mapping[str, str], inputs: Mapping[str, str]) -> Iterator[InvalidSetting]:
    """The mistakes in the setting ``columns``."""
    for name in columns:
        if name not in inputs:
            near = closest(name, inputs)
            hint = f"did you mean '{near}'?" if near else f"inputs are {', '.join(list(inputs)[:8]) or 'none'}"
            yield InvalidSetting(f"columns.{name}", f"the model has no input '{name}' over time; {hint}")


def check(
    setting: str, file: InputFile, inputs: Mapping[str, str], columns: Mapping[str, str], start: float, stop: float
) -> Iterator[InvalidSetting]:
    """The mistakes in a table of signals from `start` to `stop` (s)."""
    try:
        signals = read(file, inputs, columns)
    except ValueError as error:
        yield InvalidSetting(setting, str(error))
        return
    slack = 1e-9 * max(1.0, abs(stop))
    if signals.time[0] > start + slack or signals.time[-1] < stop - slack:
        yield InvalidSetting(
            setting,
            f"{file.name}: has signals from {signals.time[0]:g} s to {signals.time[-1]:g} s; the simulation is from"
            f" {start:g} s to {stop:g} s",
        )
