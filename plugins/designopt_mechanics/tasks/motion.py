"""The prescribed motion of independent coordinates: formulas of time, or a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from designopt_recordings.errors import RecordingError, errors_about
from designopt_recordings.files.read import read_table as read_recorded
from designopt_recordings.plausibility import time_notes
from designopt_recordings.signals.even_steps import check_steps, step_notes

from designopt.arrays import Floats
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt.lazy import scipy
from designopt.plugin import InputFile, InvalidSetting, closest
from designopt.study.language import units
from designopt.study.language.tables import TableError, read_table
from designopt_mechanics.functions.formula import Formula, FormulaError
from designopt_mechanics.mechanism.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class MotionFormulas:
    """Coordinates as formulas of ``time`` (s) and of the mechanism's parameters."""

    mechanism: Mechanism
    formulas: Mapping[str, str | float]
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The coordinates that it moves."""
        return tuple(self.formulas)

    def rows(self, time: Floats, p: Sequence[float]) -> tuple[Floats, Floats, Floats]:
        """Values, rates and accelerations (n, f)."""
        parts = self._rows(time, p)[0].reshape(len(time), -1)
        values, rates, accelerations = np.split(parts, 3, axis=1)
        return values, rates, accelerations

    def slopes(self, time: Floats, p: Sequence[float]) -> Floats:
        """(n, 3 f, np) their derivatives by the parameters."""
        return self._slopes(time, p)[0].reshape(len(time), 3 * len(self.formulas), len(p))

    @cached_property
    def _expressions(self) -> Any:
        time = self.mechanism.time
        scope = {p.name: p.symbol for p in self.mechanism.parameters} | {"time": time}
        values = ca.vertcat(*(ca.SX(Formula(str(text))(scope)) for text in self.formulas.values()))
        rates = ca.jacobian(values, time)
        return ca.vertcat(values, rates, ca.jacobian(rates, time))

    @cached_property
    def _rows(self) -> Rows:
        arguments = [self.mechanism.time, self.mechanism.p]
        return Rows(ca.Function("motion", arguments, [ca.densify(self._expressions)]), compiled=False)

    @cached_property
    def _slopes(self) -> Rows:
        arguments = [self.mechanism.time, self.mechanism.p]
        slopes = ca.densify(ca.jacobian(self._expressions, self.mechanism.p))
        return Rows(ca.Function("motion_slopes", arguments, [slopes]), compiled=False)


@dataclass(frozen=True, eq=False)
class MotionTable:
    """Coordinates from a table: quintic splines through its rows, so that accelerations are smooth.

    `notes` are remarks on the file.
    """

    names: tuple[str, ...]
    time: Floats
    values: Floats
    notes: tuple[str, ...] = ()

    @cached_property
    def _spline(self) -> Any:
        return scipy.interpolate.make_interp_spline(self.time, self.values, k=min(5, len(self.time) - 1))

    def rows(self, time: Floats, p: Sequence[float]) -> tuple[Floats, Floats, Floats]:
        """Values, rates and accelerations (n, f)."""
        values, rates, accelerations = (np.asarray(self._spline(time, nu), dtype=np.float64) for nu in (0, 1, 2))
        return values, rates, accelerations

    def slopes(self, time: Floats, p: Sequence[float]) -> Floats:
        """(n, 3 f, np) zeros: a table does not depend on the parameters."""
        return np.zeros((len(time), 3 * len(self.names), len(p)))


PrescribedMotion = MotionFormulas | MotionTable


def check_formulas(mechanism: Mechanism, formulas: Mapping[str, str | float]) -> list[InvalidSetting]:
    """Mistakes in formulas of time by coordinate, the setting ``motion``."""
    mistakes = []
    scope = {"time", *(p.name for p in mechanism.parameters)}
    for name, text in formulas.items():
        if name not in mechanism.tree.names:
            near = closest(name, mechanism.tree.names)
            hint = f"; did you mean '{near}'?" if near else f"; there are {', '.join(mechanism.tree.names)}"
            mistakes.append(InvalidSetting(f"motion.{name}", f"the mechanism has no coordinate '{name}'{hint}"))
            continue
        try:
            unknown = [n for n in Formula(str(text)).coordinates if n not in scope]
        except FormulaError as error:
            mistakes.append(InvalidSetting(f"motion.{name}", error.message))
            continue
        if unknown:
            message = f"'{unknown[0]}' is neither time nor a parameter of the file"
            mistakes.append(InvalidSetting(f"motion.{name}", message))
    return mistakes


def read_motion(file: InputFile, mechanism: Mechanism, independent: Sequence[str]) -> MotionTable:
    """The motion in a table with the column ``time`` (s) and one for each coordinate that moves.

    In a CSV file a heading such as ``crank [deg]`` states a unit. STO and MOT files, and CSV files that begin with a
    comment (#), are recordings: see `designopt_recordings`; of their coordinates the `independent` ones move, if all
    have a column. Raises `ValueError` with the position in the file.
    """
    is_plain = file.name.lower().endswith(".csv") and not file.content.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"#")
    motion = _coordinate_table(file, mechanism) if is_plain else _recording(file, mechanism, independent)
    if len(motion.time) < 4:
        raise ValueError(f"{file.name}: a motion needs at least 4 rows, not {len(motion.time)}")
    try:
        with errors_about(file.name):
            check_steps(motion.time)
    except RecordingError as error:
        raise ValueError(str(error)) from None
    return replace(motion, notes=(*motion.notes, *(f"{file.name}: {note}" for note in step_notes(motion.time))))


def _recording(file: InputFile, mechanism: Mechanism, independent: Sequence[str]) -> MotionTable:
    """The coordinates of a recording."""
    try:
        with errors_about(file.name):
            table = read_recorded(file)
            columns = {name: name.removesuffix("/value").split("/")[-1] for name in table.names}
            present = [c for c in mechanism.tree.coordinates if c.name in columns.values()]
            extra_columns = [name for name, end in columns.items() if end not in mechanism.tree.names]
            missing = [name for name in mechanism.tree.names if name not in columns.values()]
            for name in extra_columns:
                if near := closest(columns[name], missing):
                    raise RecordingError(f"column '{name}': no coordinate of this name; did you mean '{near}'?")
            if not present:
                raise RecordingError(f"no column is a coordinate; there are {', '.join(mechanism.tree.names)}")
            if set(independent) <= {c.name for c in present}:
                present = [c for c in present if c.name in independent]
            table = table.radians(c.name for c in present if c.unit == "rad")
            values = np.column_stack([table.column(c.name) for c in present])
    except RecordingError as error:
        raise ValueError(str(error)) from None
    empty = np.argwhere(~np.isfinite(values))
    if len(empty):
        row, column = empty[0]
        raise ValueError(
            f"{file.name}, row {row + 1} ({table.time[row]:.6g} s): column '{present[column].name}' has no number; "
            "fill the gap, or cut the table there"
        )
    names = tuple(c.name for c in present)
    not_moved = [name for name, end in columns.items() if end not in names]
    notes = [
        *table.notes,
        *time_notes(table.time),
        *([f"columns that move nothing: {', '.join(not_moved)}"] if not_moved else []),
    ]
    return MotionTable(names, table.time, values, tuple(f"{file.name}: {note}" for note in notes))


def _coordinate_table(file: InputFile, mechanism: Mechanism) -> MotionTable:
    """The coordinates of a CSV table."""
    try:
        table = read_table(file)
    except TableError as error:
        raise ValueError(str(error)) from None
    unit_of = {"time": "s"} | {c.name: c.unit for c in mechanism.tree.coordinates}
    columns: dict[str, list[float]] = {}
    for heading in table.columns:
        if heading.name not in unit_of:
            near = closest(heading.name, unit_of)
            hint = f"; did you mean '{near}'?" if near else f"; there are {', '.join(unit_of)}"
            raise ValueError(f"{table.position(heading.cell)}: no coordinate '{heading.name}'{hint}")
        columns[heading.name] = []
    if "time" not in columns or len(columns) < 2:
        raise ValueError(f"{file.name}: needs a column 'time' and one of a coordinate")
    for row in table.rows:
        cells = table.values(row)
        for name, entries in columns.items():
            if name not in cells:
                raise ValueError(f"{table.position(row[0])}: no value for '{name}' in this row")
            value, cell = cells[name]
            entries.append(_number(value, unit_of[name], table.position(cell)))
    time = np.array(columns.pop("time"))
    if not (np.diff(time) > 0.0).all():
        raise ValueError(f"{file.name}: time must increase (row {int(np.argmin(np.diff(time) > 0.0)) + 2})")
    notes = tuple(f"{file.name}: {note}" for note in time_notes(time))
    return MotionTable(tuple(columns), time, np.column_stack(list(columns.values())), notes)


def _number(value: Any, unit: str, position: str) -> float:
    try:
        amount = units.parse_amount(value) if isinstance(value, str) else units.Amount(float(value))
        number = amount.value_in(unit)
    except (units.UnitError, TypeError, ValueError) as error:
        raise ValueError(f"{position}: {error}") from None
    if not np.isfinite(number):
        raise ValueError(f"{position}: is {number}, not a finite number")
    return float(number)
