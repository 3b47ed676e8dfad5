"""Figures and tables for notebooks.

>>> from designopt.report.notebook import plot
>>> plot(result)                         # doctest: +SKIP
>>> plot(result, "convergence").show()   # doctest: +SKIP
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from designopt.report.parts.answer.problem import limit_text, range_text
from designopt.store.views.table import stated_constraints
from designopt.study.stated_units import in_stated_units

if TYPE_CHECKING:
    import plotly.graph_objects

    from designopt.store.result import Result
    from designopt.study.study import StudyDefinition


def plot(
    result: Result, part: str = "", number: int = 0, *, dark: bool = False, **settings: Any
) -> plotly.graph_objects.Figure:
    """`Result.plot` of `result`."""
    return result.plot(part, number, dark=dark, **settings)


def study_table(study: StudyDefinition) -> str:
    """Parameters with their ranges, objectives and limits, with units, as HTML."""
    rows = [("parameter", p.name, range_text(p), p.unit) for p in in_stated_units(study).space]
    rows += [(o.direction, o.name, o.expression.text, o.unit) for o in study.objectives]
    rows += [("limit", c.name, limit_text(c), c.unit) for c in stated_constraints(study)]
    cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    head = "".join(f"<th>{name}</th>" for name in ("", "name", "what", "unit"))
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<b>{html.escape(study.title or study.name)}</b><table><tr>{head}</tr>{body}</table>"
