"""Rows of named values in a list or a table: designs and scenarios."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from designopt.plugin import InputFile
from designopt.study.language.findings import Path
from designopt.study.language.tables import DataTable, TableError, read_table
from designopt.study.sections.context import Context


@dataclass(frozen=True)
class Row:
    """Values by name as given. `path` leads to the row, or to its table.

    In a table `cells` are the positions of the values, `heads` those of the names of the columns, and `table_position`
    is that of the line.
    """

    values: Mapping[str, Any]
    path: Path
    table_position: str = ""
    cells: Mapping[str, str] = field(default_factory=dict)
    heads: Mapping[str, str] = field(default_factory=dict)

    @contextlib.contextmanager
    def findings(self, ctx: Context) -> Iterator[None]:
        """Context in which findings belong to the row; for a table the position of the cell is prepended, or of the
        column's head if that is invalid (once for all rows)."""
        before = len(ctx.findings)
        yield
        if self.table_position:
            ctx.findings[before:] = [
                replace(
                    f, path=self.path, key=None, part=None, at=None, message=f"{self._cell(f.path, f.key)}: {f.message}"
                )
                for f in ctx.findings[before:]
            ]

    def _cell(self, path: Path, key: str | None) -> str:
        step = str(path[len(self.path)]) if len(path) > len(self.path) else str(key)
        return (self.cells if key is None else self.heads).get(step, self.table_position)


def list_row(mappings: Sequence[Mapping[str, Any]], path: Path) -> list[Row]:
    """The rows of a list at `path`."""
    return [Row(dict(values), (*path, position)) for position, values in enumerate(mappings)]


def table_row(ctx: Context, file: InputFile, path: Path) -> list[Row]:
    """The rows of the table `file` named by the value at `path`; none if it cannot be read."""
    try:
        table = read_table(file)
    except TableError as error:
        ctx.add(path, str(error))
        return []
    ctx.tables.append(file)
    if not table.rows:
        ctx.add(path, f"{table.name} has no rows below its header")
    return [_row(table, position, path) for position in range(len(table.rows))]


def _row(table: DataTable, position: int, path: Path) -> Row:
    cells = table.values(table.rows[position])
    heads = {column.name: table.position(column.cell) for column in table.columns}
    positions = {name: table.position(cell) for name, (_, cell) in cells.items()}
    line = table.rows[position][0].line
    return Row({name: value for name, (value, _) in cells.items()}, path, f"{table.name}:{line}", positions, heads)
