"""Exports of a laboratory's trials: tidy tables of all curves and of the subjects, and the subjects' models."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from designopt import exporter
from designopt.exports import ExportError
from designopt_laboratory.curves.pool import NEEDED

if TYPE_CHECKING:
    from designopt.store.result import Result

_COLUMNS = ("design", "subject", "group", "trial", "cycle", "side", "quantity", "variable", "unit", "percent", "value")
_SUBJECT_COLUMNS = ("design", "subject", "group", "trial", "quantity", "variable", "unit", "value")
#: Arrays of the subject of a trial.
SUBJECT_ARRAYS = ("labels", "bodies", "body_masses", "scale_factors", "static_markers", "static_errors")


def _tidy_table(columns: Sequence[str]) -> tuple[io.StringIO, Any]:
    """The text of a table with these `columns`, and the CSV writer of its rows."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    return text, writer


@exporter("cycles", version=1)
def write_cycles(result: Result, folder: Path, prefix: str) -> list[Path]:
    """All curves over all cycles as one tidy table, a row for each value: ``cycles.csv``.

    Columns are design, subject, group, trial, cycle (from 1), side, quantity, variable, unit, percent and value; cycles
    with a gap are left out. Raises `ExportError` where the arrays of the curves are not kept.
    """
    text, writer = _tidy_table(_COLUMNS)
    count = 0
    for row, scenario, arrays in _evaluations(result, NEEDED):
        subject, group, _ = (str(text_label) for text_label in arrays["labels"])
        values = np.asarray(arrays["curves"], dtype=float)
        percent = np.linspace(0.0, 100.0, values.shape[1]).tolist()
        for cycle, side in enumerate(arrays["cycle_sides"]):
            for column, name in enumerate(arrays["curve_names"]):
                curve = values[cycle, :, column]
                if np.isfinite(curve).all():
                    kind, unit = str(arrays["curve_kinds"][column]), str(arrays["curve_units"][column])
                    head = (row, subject, group, scenario, cycle + 1, str(side), kind, str(name), unit)
                    writer.writerows((*head, x, y) for x, y in zip(percent, curve.tolist(), strict=True))
                    count += 1
    if not count:
        raise ExportError(
            f"{result.path}: no complete cycle is kept; name the arrays in the study: execution: {{arrays:"
            f" [{', '.join(NEEDED)}]}}"
        )
    return [_file(folder / f"{prefix}cycles.csv", text.getvalue())]


@exporter("osim", version=1)
def write_osim(result: Result, folder: Path, prefix: str) -> list[Path]:
    """The model of each trial's subject, scaled if the study says so, as OpenSim opens it: ``designROW.SCENARIO.osim``.

    Equal models of a study are written once. Raises `ExportError` where the array `scaled_model` is not kept.
    """
    texts: dict[str, str] = {}
    for row, scenario, arrays in _evaluations(result, ("scaled_model",)):
        texts.setdefault("\n".join(arrays["scaled_model"].tolist()) + "\n", f"{prefix}design{row}.{scenario}.osim")
    if not texts:
        raise ExportError(f"{result.path}: the array scaled_model is not kept; name it in execution: {{arrays: [...]}}")
    return [_file(folder / name, text) for text, name in texts.items()]


@exporter("subjects", version=1)
def write_subjects(result: Result, folder: Path, prefix: str) -> list[Path]:
    """Scale factors, masses and the marker errors of the static pose as one tidy table: ``subjects.csv``.

    A row for each value, with design, subject, group, trial, quantity, variable, unit and value. Raises `ExportError`
    where the arrays are not kept.
    """
    text, writer = _tidy_table(_SUBJECT_COLUMNS)
    count = 0
    for row, scenario, arrays in _evaluations(result, SUBJECT_ARRAYS):
        subject, group, _ = (str(text_label) for text_label in arrays["labels"])
        values = [
            *(("scale factor", f"{body}_{axis}", "", value)
              for body, factors in zip(arrays["bodies"], arrays["scale_factors"], strict=True)
              for axis, value in zip("xyz", factors, strict=True)),
            *(("mass", body, "kg", value) for body, value in zip(arrays["bodies"], arrays["body_masses"], strict=True)),
            ("mass", "all_bodies", "kg", arrays["body_masses"].sum()),
            *(("static marker error", marker, "m", value)
              for marker, value in zip(arrays["static_markers"], arrays["static_errors"], strict=True)
              if np.isfinite(value)),
        ]  # fmt: skip
        for quantity, variable, unit, value in values:
            writer.writerow((row, subject, group, scenario, quantity, str(variable), unit, float(value)))
        count += len(values)
    if not count:
        raise ExportError(
            f"{result.path}: arrays of subjects are not kept; name them in the study: execution: {{arrays:"
            f" [{', '.join(SUBJECT_ARRAYS)}]}}"
        )
    return [_file(folder / f"{prefix}subjects.csv", text.getvalue())]


def _evaluations(result: Result, names: tuple[str, ...]) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Row, scenario and arrays of the evaluations that keep all of `names`."""
    from designopt.exports.arrays import stored_arrays

    for evaluation in stored_arrays(result):
        arrays = result.arrays(evaluation.row, evaluation.scenario)
        if set(names) <= arrays.keys():
            yield evaluation.row, result.problem.scenarios[evaluation.scenario].name, dict(arrays)


def _file(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file
