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

if TYPE_CHECKING:
    import plotly.graph_objects

    from designopt.problem import Problem
    from designopt.store.result import Result


def plot(
    result: Result, part: str = "", number: int = 0, *, dark: bool = False, **settings: Any
) -> plotly.graph_objects.Figure:
    """`Result.plot` of `result`."""
    return result.plot(part, number, dark=dark, **settings)


def study_table(problem: Problem, title: str) -> str:
    """Parameters with their ranges, objectives and limits, with units, as HTML."""
    rows = [("parameter", p.name, range_text(p), p.unit) for p in problem.space.parameters]
    rows += [(o.direction, o.name, o.expression.text, o.unit) for o in problem.objectives]
    rows += [("limit", c.name, limit_text(c), c.unit) for c in stated_constraints(problem)]
    cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    head = "".join(f"<th>{name}</th>" for name in ("", "name", "what", "unit"))
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<b>{html.escape(title)}</b><table><tr>{head}</tr>{body}</table>"
