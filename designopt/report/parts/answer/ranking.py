"""Report part `ranking`: all designs of a small study in the order of each objective."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.counts import plural
from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout, scale_for
from designopt.report.designs import design_label
from designopt.report.labels import number, objective_labels, objective_values, plain, titled
from designopt.report.section import Figure, Section, Table
from designopt.report.traces import beside
from designopt.store.result import Result

#: Maximum number of designs: more are shown by the front and the map.
MOST = 60
#: Height of a bar, and of the area around the bars, in pixels.
BAR, AROUND = 24, 110
#: Least width of the names and of a panel of three or more, in pixels: a narrow screen scrolls them.
NAMES, PANEL = 150, 150
#: Maximum letters of a design's name beside its bars.
LETTERS = 56

Rows = NDArray[np.intp]


@report_part("ranking", version=1)
def ranking(result: Result) -> Section | None:
    """Comparison of the designs of a small study: the smallest and the largest value of each objective, and all in the
    order of the first one. Of more than `MOST` designs it shows the first ones of this order and, in any case, the
    chosen designs and the baseline."""
    values = objective_values(result)
    rows = np.flatnonzero(np.isfinite(values).all(axis=1))
    if not values.shape[1] or len(rows) < 2:
        return None
    first, total = result.problem.objectives[0], len(rows)
    rows = rows[np.argsort(first.sign * values[rows, 0], kind="stable")]
    if total > MOST:
        is_chosen = np.isin(rows, list(result.chosen().values()))
        rows = rows[
            np.sort([*np.flatnonzero(is_chosen), *np.flatnonzero(~is_chosen)[: max(0, MOST - int(is_chosen.sum()))]])
        ]
    names = {int(row): design_label(result, int(row)) for row in rows}
    findings = []
    for j, objective in enumerate(result.problem.objectives):
        order = rows[np.argsort(objective.sign * values[rows, j], kind="stable")]
        best, worst = int(order[0]), int(order[-1])
        findings.append(
            f"{objective.name}: {number(float(values[best, j]))} {objective.unit}".rstrip()
            + f" with {names[best]} is the best, {number(float(values[worst, j]))} {objective.unit}".rstrip()
            + f" with {names[worst]} the worst."
        )
    cells = tuple((names[int(row)], *(float(v) for v in values[row])) for row in rows)
    return Section(
        "Designs compared",
        introduction=f"{plural(len(rows), 'design')} in the order of {first.name}."
        if len(rows) == total
        else f"{len(rows)} of {plural(total, 'design')} in the order of {first.name}: its best ones, the chosen "
        "designs and the baseline. The others do not fit here; an export of the store has them.",
        findings=tuple(findings),
        figures=(_bars(result, values, rows, list(names.values())),),
        tables=(Table("All designs", ("design", *objective_labels(result.problem)), cells, visible_rows=MOST,
                      designs=tuple(int(row) for row in rows)),),
    )  # fmt: skip


def _bars(result: Result, values: NDArray[np.float64], rows: Rows, names: list[str]) -> Figure:
    """Bars of every objective side by side, a line for each design; points if an objective ranges over decades."""
    m = values.shape[1]
    short = [plain(name if len(name) <= LETTERS else name[: LETTERS - 1] + "…") for name in names]
    data: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    domains = beside(m, 0.06 / m)
    for j, label in enumerate(objective_labels(result.problem)):
        suffix = "" if j == 0 else str(j + 1)
        scale = scale_for(values[rows, j])
        kind: dict[str, Any] = {"type": "bar", "orientation": "h", "marker": {"color": category(j)}}
        if scale:
            kind = {"type": "scatter", "mode": "markers", "marker": {"color": category(j), "size": 9}}
        data.append({**kind, "x": values[rows, j], "y": list(range(len(rows))), "xaxis": f"x{suffix}", "text": short,
                     "textposition": "none", "hovertemplate": "%{text}: <b>%{x:.4~g}</b><extra></extra>",
                     "name": plain(label)})  # fmt: skip
        axes[f"xaxis{suffix}"] = axis(titled(label, 90 // m), domain=domains[j], anchor="y", **scale)
    axes["yaxis"] = {"tickvals": list(range(len(rows))), "ticktext": short, "autorange": "reversed", "automargin": True}
    return Figure(
        "Objectives of every design",
        {"data": data, "layout": layout(**axes, showlegend=False, margin={"l": 64, "r": 24, "t": 20, "b": 60})},
        height=BAR * len(rows) + AROUND,
        width=NAMES + PANEL * m if m > 2 else 0,
        designs=dict.fromkeys(range(m), rows),
    )
