"""A result as a table: columns, pandas, and what notebooks show."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

    from designopt.store.result import Result

Rows = Sequence[int] | NDArray[Any] | None


def columns(result: Result, rows: Rows = None) -> dict[str, Any]:
    """Columns by name: parameters, objectives (in their own direction), violation, stage, figures and status by
    scenario. A parameter that is inactive in a design has no value there."""
    index = indices(result, rows)
    some = result.outcomes.take(index)
    space = result.problem.space
    values = [space.values(x) for x in some.X.tolist()]
    none = {p.name: None if p.kind == "choice" else np.nan for p in space.parameters}
    table: dict[str, Any] = {p.name: [v.get(p.name, none[p.name]) for v in values] for p in space.parameters}
    for j, objective in enumerate(result.problem.objectives):
        table[objective.name] = np.where(some.failed, np.nan, objective.sign * some.objectives[:, j])
    table["violation"] = some.violation
    table["feasible"] = some.feasible
    table["stage"] = result.stage[index]
    scenarios = [s.name for s in result.problem.scenarios]
    for k, scenario in enumerate(scenarios):
        suffix = f"@{scenario}" if len(scenarios) > 1 else ""
        for name, figure in some.figures.items():
            table.setdefault(f"{name}{suffix}", figure[:, k])
        table[f"status{suffix}"] = result.status[index, k]
    return table


def to_pandas(result: Result, rows: Rows = None) -> pandas.DataFrame:
    """`columns` as a data frame."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_pandas needs pandas; install it with: pip install 'designopt[export]'") from error
    return pandas.DataFrame(columns(result, rows), index=pandas.Index(indices(result, rows), name="design"))


def indices(result: Result, rows: Rows) -> NDArray[np.int64]:
    """The rows that are meant: all for None."""
    return np.asarray(np.arange(len(result.outcomes)) if rows is None else rows, np.int64)


def as_html(result: Result) -> str:
    """The chosen designs as a table, for notebooks."""
    chosen = result.chosen()
    counts = result.counts
    head = f"<b>{html.escape(result.study.title or result.study.name)}</b>: {counts['designs']} designs, "
    head += f"{counts['feasible']} feasible, {len(result.front())} on the front"
    if not chosen:
        return head
    table = columns(result, list(chosen.values()))
    names = [*result.problem.space.names, *(o.name for o in result.problem.objectives)]
    rows = "".join(
        f"<tr><td>{html.escape(label)}</td>" + "".join(f"<td>{_shown(table[n][i])}</td>" for n in names) + "</tr>"
        for i, label in enumerate(chosen)
    )
    header = "".join(f"<th>{html.escape(n)}</th>" for n in ("", *names))
    return f"{head}<table><tr>{header}</tr>{rows}</table>"


def _shown(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else html.escape(str(value))
