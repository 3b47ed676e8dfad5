"""The CSV table of `designopt ask` and `designopt tell`: what its columns are, and what each row says."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from designopt.cli.exit import WRONG_INPUT, fail
from designopt.decimal_marks import DecimalMarks

if TYPE_CHECKING:
    from designopt.api import Study
    from designopt.run.ask_tell import PendingEvaluation
    from designopt.study.study import DesignVariable

#: Columns that identify an evaluation, and the one for the reason why it has no result.
IDENTITY = ("design", "scenario", "kind")
FAILED = "failed"
#: Significant digits of a value to set, if these are within this share of its range; more otherwise.
DIGITS, FINE = 6, 1e-4
#: Maximum rounding of a value in a result's row that is still the requested one, relative to it.
ROUNDING = 0.05
#: Design, scenario and kind of an evaluation.
Identity = tuple[int, str, str]


def identity(evaluation: PendingEvaluation) -> Identity:
    """The identity of an evaluation in the table; neighbours of one design are numbered."""
    kind = f"{evaluation.kind} {evaluation.scenario_index}" if evaluation.kind == "neighbour" else evaluation.kind
    return evaluation.number, evaluation.scenario, kind


@dataclass(frozen=True)
class ResultColumns:
    """The columns of a study: `outputs` with their unit and whether a result needs them, `inputs` (parameters and
    conditions) with their unit, and the parameters of the space by name."""

    outputs: Mapping[str, tuple[str, bool]]
    inputs: Mapping[str, str]
    parameter_of: Mapping[str, DesignVariable]

    @classmethod
    def of_study(cls, study: Study) -> ResultColumns:
        """Parameters in the units of the study, conditions and outputs in those of the model; of undeclared outputs
        those that are scored."""
        problem = study.problem
        plugin = problem.model.plugin
        inputs = {p.name: p.stated or p.unit for p in problem.space.parameters}
        for name, condition in (plugin.conditions or {}).items():
            inputs.setdefault(name, condition.quantity.unit if condition.quantity else "")
        outputs = {n: (f.quantity.unit if f.quantity else "", f.required) for n, f in plugin.outputs.items()}
        if not outputs:
            names = set[str]().union(*problem.expression_names) - problem.figures.keys()
            outputs = dict.fromkeys(sorted(names), ("", True))
        return cls(outputs, inputs, {p.name: p for p in problem.space.parameters})

    def table(self, evaluations: Sequence[PendingEvaluation]) -> str:
        """The CSV of `evaluations`, with empty columns for their outputs."""
        conditions = (name for evaluation in evaluations for name in evaluation.conditions)
        names = list(dict.fromkeys([*self.parameter_of, *conditions]))
        heads = [_head(name, self.inputs.get(name, "")) for name in names]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        outputs = [_head(name, unit) for name, (unit, _) in self.outputs.items()]
        writer.writerow([*IDENTITY, *heads, *outputs, FAILED])
        for evaluation in evaluations:
            values = self.values(evaluation)
            cells = [_value_text(values[name], self.parameter_of.get(name)) if name in values else "" for name in names]
            writer.writerow([*identity(evaluation), *cells, *[""] * (len(outputs) + 1)])
        return text.getvalue()

    def values(self, evaluation: PendingEvaluation) -> dict[str, Any]:
        """Conditions and parameters of an evaluation by name, in the units of the table."""
        from designopt.study.stated_units import stated_value

        return {
            **evaluation.conditions,
            **{n: stated_value(self.parameter_of[n], v) for n, v in evaluation.values.items()},
        }


def _head(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name


def _value_text(value: Any, p: DesignVariable | None) -> str:
    """A value to set, with as many digits as its range needs."""
    if not isinstance(value, float) or p is None or p.kind != "real":
        return str(value)
    texts = (f"{value:.{digits}g}" for digits in range(DIGITS, 17))
    return next((text for text in texts if abs(float(text) - value) <= FINE * _span(p)), repr(value))


def _span(p: DesignVariable) -> float:
    """The range of a real parameter in the study's unit."""
    from designopt.study.stated_units import stated_value

    return abs(float(stated_value(p, p.high)) - float(stated_value(p, p.low)))


@dataclass(frozen=True)
class ResultRow:
    """A row with a result: its line, evaluation, outputs in the model's units (None without a result) and reason, and
    the texts of its filled parameters and conditions by head."""

    line: int
    identity: Identity
    values: Mapping[str, float] | None
    why: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class _Column:
    """A column of an output or an input: its head, name, unit in the file, and unit of the values."""

    head: str
    name: str
    unit: str
    target_unit: str


class ResultTable:
    """A filled table in `file`, after `rows` with the lines of its rows without a result. Its methods end the command
    for what does not fit, with line and column."""

    def __init__(self, file: Path, columns: ResultColumns) -> None:
        self.file = file
        self.empty_lines: list[int] = []
        self._marks = DecimalMarks()
        self._result_columns = columns
        try:
            text = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            fail(f"error: {file}: cannot be read as UTF-8 text: {error}", WRONG_INPUT)
        first = next(iter(text.splitlines()), "")
        self._separator = next((c for c in ";\t" if c in first), ",")
        self._lines = csv.reader(io.StringIO(text), delimiter=self._separator)
        self._head = [cell.strip() for cell in next(self._lines, [])]
        outputs = {name: unit for name, (unit, _) in columns.outputs.items()}
        self._outputs, self._inputs = self._columns(outputs, columns.inputs)
        present = {column.name for column in self._outputs.values()}
        missing = [name for name in IDENTITY[:2] if name not in self._head]
        missing += [name for name, (_, is_required) in columns.outputs.items() if is_required and name not in present]
        if missing:
            self._fail(1, f"column '{missing[0]}' is missing; keep the head that `designopt ask` prints")

    def _columns(
        self, outputs: Mapping[str, str], inputs: Mapping[str, str]
    ) -> tuple[dict[int, _Column], dict[int, _Column]]:
        """The columns of outputs and those of inputs, with these units, by their position. Of two columns with the name
        of an input that is an output, too, the first is the input, as `ResultColumns.table` writes them."""
        positions_of: dict[str, list[int]] = {}
        for i, cell in enumerate(self._head):
            positions_of.setdefault(cell.partition("[")[0].strip(), []).append(i)
        columns: tuple[dict[int, _Column], dict[int, _Column]] = {}, {}
        for name, positions in positions_of.items():
            kinds = [kind for kind, units_of in enumerate((outputs, inputs)) if name in units_of]
            if len(positions) > max(len(kinds), 1) and (kinds or name in (*IDENTITY, FAILED)):
                numbers = ", ".join(str(i + 1) for i in positions)
                self._fail(1, f"'{name}' is the head of {len(positions)} columns ({numbers}); keep one of them")
            for i, kind in zip(reversed(positions), kinds, strict=False):
                target_unit = (outputs, inputs)[kind][name]
                _, bracket, unit = (part.strip(" ]") for part in self._head[i].partition("["))
                columns[kind][i] = _Column(self._head[i], name, unit if bracket else target_unit, target_unit)
                self._in_model_unit(1, columns[kind][i], 1.0)
        return columns

    def rows(self) -> list[ResultRow]:
        """The rows with a result or a reason why there is none, each evaluation once."""
        rows: dict[Identity, ResultRow] = {}
        for cells in self._lines:
            if any(cell.strip() for cell in cells) and (row := self._row(self._lines.line_num, cells)) is not None:
                if row.identity in rows:
                    lines = f"lines {rows[row.identity].line} and {row.line}"
                    self._fail(
                        row.line,
                        f"{place_of(row.identity)} is twice in this file ({lines}); keep one of them, of repeated"
                        " measurements one with their mean",
                    )
                rows[row.identity] = row
        return list(rows.values())

    def _row(self, line: int, cells: Sequence[str]) -> ResultRow | None:
        if len(cells) != len(self._head):
            self._fail(line, f"has {len(cells)} values, the head has {len(self._head)} columns")
        cells = [cell.strip() for cell in cells]
        row = dict(zip(self._head, cells, strict=True))
        if not row["design"].isdigit():
            self._fail(line, f"column 'design': '{row['design']}' is not the number of a design")
        evaluation = int(row["design"]), row["scenario"], row.get("kind") or "scenario"
        settings = {column.head: cells[i] for i, column in self._inputs.items() if cells[i]}
        columns = {column.name: i for i, column in self._outputs.items() if cells[i]}
        if why := row.get(FAILED):
            if columns:
                text = f"column '{self._head[next(iter(columns.values()))]}' has a result, and '{FAILED}' says '{why}'"
                self._fail(line, f"{text}: clear one of them")
            return ResultRow(line, evaluation, None, why, settings)
        if not columns:
            self.empty_lines.append(line)
            return None
        lacking = [
            name
            for name, (_, is_required) in self._result_columns.outputs.items()
            if is_required and name not in columns
        ]
        if lacking:
            self._fail(line, f"column '{lacking[0]}' is empty; without a result, say why in '{FAILED}'")
        values = {name: self._result(line, self._outputs[i], cells[i]) for name, i in columns.items()}
        return ResultRow(line, evaluation, values, "", settings)

    def _result(self, line: int, column: _Column, text: str) -> float:
        value = self._number(line, column, text)
        if contradiction := self._marks.contradiction(line, text):
            self._fail(line, f"column '{column.name}': {contradiction}")
        if not isfinite(value):
            self._fail(line, f"column '{column.name}': '{text}' is no result; leave it empty and say why in '{FAILED}'")
        return self._in_model_unit(line, column, value)

    def _number(self, line: int, column: _Column, text: str) -> float:
        try:
            return float(self._decimal(text))
        except ValueError:
            self._fail(line, f"column '{column.name}': '{text}' is not a number")

    def _decimal(self, text: str) -> str:
        return text.replace(",", ".") if self._separator != "," else text

    def _in_model_unit(self, line: int, column: _Column, value: float) -> float:
        from designopt.study.language import units

        try:
            return value if column.unit == column.target_unit else units.convert(value, column.unit, column.target_unit)
        except units.UnitError as error:
            self._fail(line, f"column '{column.head}': {error}")

    def check_settings(self, row: ResultRow, evaluation: PendingEvaluation) -> None:
        """Compare the filled parameters and conditions of a row with those that were asked for, within the digits that
        are written, and 5 % of the value: 0 is not 0.4."""
        request = self._result_columns.values(evaluation)
        for column in self._inputs.values():
            text = row.settings.get(column.head)
            if text is None or (column.name in request and self._agrees(row.line, column, text, request[column.name])):
                continue
            p = self._result_columns.parameter_of.get(column.name)
            setting = _value_text(request[column.name], p) if column.name in request else "no value"
            subject = f"column '{column.head}': {text}, but {place_of(row.identity)} was asked for with"
            self._fail(
                row.line,
                f"{subject} {_head(setting, column.target_unit)}; a result of another setting is none of this design: "
                "correct the cell, or repeat the experiment as asked",
            )

    def _agrees(self, line: int, column: _Column, text: str, setting: Any) -> bool:
        if isinstance(setting, (bool, str)):
            return text.casefold() == str(setting).casefold()
        if not isinstance(setting, (int, float)):
            return text == str(setting)
        value = self._number(line, column, text)
        if not isfinite(value):
            return False
        rounding = min(0.5 * 10.0 ** _last_place(self._decimal(text)), ROUNDING * abs(value))
        result = self._in_model_unit(line, column, value)
        slack = abs(self._in_model_unit(line, column, value + rounding) - result)
        p = self._result_columns.parameter_of.get(column.name)
        if p is not None and p.kind == "real":
            slack = max(slack, FINE * _span(p))
        return abs(result - setting) <= slack * (1.0 + 1e-9) + 1e-12 * abs(setting)

    def _fail(self, line: int, text: str) -> NoReturn:
        fail(f"error: {self.file}:{line}: {text}", WRONG_INPUT)


def _last_place(text: str) -> int:
    """The power of ten of the last digit of a number: -2 for 1.25."""
    try:
        exponent = Decimal(text).as_tuple().exponent
    except InvalidOperation:
        return -15
    return exponent if isinstance(exponent, int) else -15


def place_of(evaluation: Identity) -> str:
    """``design 3 in scenario 'wet'``."""
    design, scenario, kind = evaluation
    return f"design {design} in scenario '{scenario}'" + ("" if kind == "scenario" else f" ({kind})")
