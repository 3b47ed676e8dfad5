"""The table of scores: one row for each run and number of evaluations."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path

from designopt.benchmarking.cells import RecordedScore
from designopt.study.language.tables import TableError

#: Columns of the table.
HEAD = ("problem", "solver", "seed", "evaluations", "score", "search_ms")


def read_records(path: Path) -> tuple[RecordedScore, ...]:
    """The rows of the CSV table `path`. Raises `TableError` with the line of a mistake, `OSError`."""
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    except (UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path.name}: is not a CSV table in UTF-8 ({error})") from None
    if not rows or tuple(rows[0]) != HEAD:
        raise TableError(f"{path.name}:1: the columns must be {','.join(HEAD)}")
    return tuple(_record(path, line, row) for line, row in enumerate(rows[1:], start=2) if row)


def _record(path: Path, line: int, row: list[str]) -> RecordedScore:
    if len(row) != len(HEAD):
        raise TableError(f"{path.name}:{line}: {len(row)} values instead of {len(HEAD)}")
    problem, solver, seed, evaluations, score, search_ms = row
    try:
        record = RecordedScore(
            problem, solver, int(seed), int(evaluations), float(score), float(search_ms) if search_ms else math.nan
        )
    except ValueError as error:
        raise TableError(f"{path.name}:{line}: {error}") from None
    if not math.isfinite(record.score):
        raise TableError(f"{path.name}:{line}: the score must be a finite number, not {score}")
    return record


def write_records(path: Path, records: Iterable[RecordedScore]) -> None:
    """Write the rows as a CSV table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        for r in records:
            spent = f"{r.search_ms:.1f}" if math.isfinite(r.search_ms) else ""
            writer.writerow((r.problem, r.solver, r.seed, r.evaluations, f"{r.score:.4f}", spent))
