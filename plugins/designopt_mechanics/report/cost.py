"""Report part `andrews_cost`: error and gap of the squeezing mechanism against the work, by formulation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Plot
from designopt.report.labels import number
from designopt.report.section import Figure, Section
from designopt.report.traces import trace
from designopt.store.result import Result

_MARKS = ("circle", "diamond", "square", "triangle-up", "x", "cross")


@report_part("andrews_cost", version=1)
def andrews_cost(result: Result) -> Section | None:
    """Errors and gaps over evaluations of the right-hand side, all axes logarithmic, a line for each formulation."""
    outcomes, names = result.outcomes, ("error", "drift", "evaluations")
    if not len(outcomes.X) or any(n not in outcomes.figures for n in names):
        return None
    error, drift, work = (outcomes.figures[n][:, 0] for n in names)
    groups = _groups(result)
    title = "Work and error"
    x = axis("evaluations of the right-hand side", type="log")
    return Section(
        title,
        introduction="Every design of the study: tighter tolerances to the right. Constraints are shown by the rate of "
        "their stabilisation.",
        figures=(
            Figure("Error of the angles at the end", _plot(groups, work, error, x, "relative error"), height=420),
            Figure("Largest gap of the loops", _plot(groups, work, drift, x, "gap [m]"), height=380,
                   note="Joint functions have none."),
        ),
    )  # fmt: skip


def _groups(result: Result) -> Mapping[str, list[int]]:
    """Rows of the results by their label in the legend."""
    space, groups = result.problem.space, dict[str, list[int]]()
    for row, x in enumerate(result.outcomes.X):
        values = space.values(x.tolist())
        name = str(values.get("formulation", "joint_functions")).replace("_", " ")
        if name == "constraints" and "stabilisation" in values:
            name += f", {number(values['stabilisation'])} 1/s"
        groups.setdefault(name, []).append(row)
    return groups


def _plot(groups: Mapping[str, list[int]], work: Floats, values: Floats, x: dict[str, Any], title: str) -> Plot:
    data = []
    for k, (name, rows) in enumerate(groups.items()):
        order = np.array(rows)[np.argsort(work[rows])]
        positive = order[np.isfinite(values[order]) & (values[order] > 0.0)]
        if not len(positive):
            continue
        marker = {"symbol": _MARKS[k % len(_MARKS)], "size": 8, "color": category(k)}
        y = [float(f"{v:.4g}") for v in values[positive]]
        hover = f"{name}<br>%{{x}} evaluations: <b>%{{y:.3~g}}</b>"
        data.append(
            trace(work[positive], y, name, mode="lines+markers", colour=category(k), marker=marker, hover=hover)
        )
    up = axis(title, type="log", exponentformat="power")
    return {"data": data, "layout": layout(xaxis=x, yaxis=up)}
