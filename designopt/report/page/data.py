"""Figures and tables as data of the page: JSON for a script element, CSV for a link."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import numpy as np

from designopt.report.labels import number
from designopt.report.section import Figure, Table

#: A table of more columns is wide.
MOST_COLUMNS = 10


def figure_data(figure: Figure, name: str) -> dict[str, Any]:
    """The data for the page's script."""
    data = {
        "plot": as_plain(figure.plot),
        "variants": {",".join(str(k) for k in key): as_plain(v) for key, v in figure.variants.items()},
        "loop": figure.loop,
        "name": name,
        "designs": {str(k): as_plain(v) for k, v in figure.designs.items()},
    }
    return data if figure.brushed is None else {**data, "brushed": _brush_table(without_empty_columns(figure.brushed))}


def _brush_table(table: Table) -> dict[str, Any]:
    """The table below parallel coordinates as columns; the page shows the rows within the brushes."""
    columns: list[Any] = []
    for k in range(len(table.columns)):
        cells = [row[k] for row in table.rows]
        columns.append(np.array(cells) if all(is_number(c) for c in cells) else [number(c) for c in cells])
    return {
        "title": table.title,
        "columns": list(table.columns),
        "values": [as_plain(c) for c in columns],
        "designs": list(table.designs),
        "shown": table.visible_rows,
    }


def csv_link(table: Table) -> str:
    """All rows as a data URL: RFC 4180, numbers in their shortest exact form, an empty cell for a missing number."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow(["" if isinstance(v, float) and math.isnan(v) else v for v in row])
    return "data:text/csv;charset=utf-8," + quote(out.getvalue(), safe=",:/ ()*+=@")


def is_number(value: Any) -> bool:
    """Whether a cell of a table is a number; true and false are not."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def without_empty_columns(table: Table) -> Table:
    """A wide table without the columns that have no value in any row."""
    if len(table.columns) <= MOST_COLUMNS or not table.rows:
        return table
    indices = [k for k in range(len(table.columns)) if any(number(row[k]) not in ("", "–") for row in table.rows)]
    rows = tuple(tuple(row[k] for k in indices) for row in table.rows)
    return replace(table, columns=tuple(table.columns[k] for k in indices), rows=rows)


def as_plain(value: Any) -> Any:
    """`value` as JSON data for Plotly: number arrays as base64, no NaN or infinity, a Plotly figure as a mapping."""
    if hasattr(value, "to_plotly_json"):
        return as_plain(value.to_plotly_json())
    if isinstance(value, Mapping):
        return {str(k): as_plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, (list, tuple)):
        return [as_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _array(a: np.ndarray[Any, Any]) -> Any:
    """Plotly's typed array; single precision if a plot cannot show the difference (seven digits)."""
    if a.dtype.kind not in "fiu" or a.ndim not in (1, 2) or not a.size:
        return as_plain(a.tolist())
    kind = "i4" if a.dtype.kind in "iu" else "f8"
    if kind == "f8":
        with np.errstate(over="ignore"):
            single = a.astype("<f4")
        finite = np.isfinite(a)
        if np.allclose(single[finite], a[finite], rtol=1e-6, atol=0.0):
            kind = "f4"
    typed_array = {
        "dtype": kind,
        "bdata": base64.b64encode(np.ascontiguousarray(a, dtype=f"<{kind}").tobytes()).decode(),
    }
    return typed_array | ({"shape": f"{a.shape[0]}, {a.shape[1]}"} if a.ndim == 2 else {})


def script_json(data: Any) -> str:
    """JSON for a script element: without ``<``, so that nothing in it can end the element."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
