"""Report part `importance`: importance of parameters, from all recorded designs."""

from __future__ import annotations

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.labels import number, parameter_label, plain
from designopt.report.section import Figure, Section, Table
from designopt.store.result import Result

#: Sum of shares beyond 1 that is remarked.
TOGETHER = 0.1


@report_part("importance", version=1)
def importance(result: Result) -> Section | None:
    """The share of the variation of each objective that each parameter explains."""
    shares = result.importance()
    problem = result.problem
    free = problem.space.free
    if len(free) < 2 or not len(shares) or np.isnan(shares).all():
        return None
    names = [parameter_label(p) for p in free]
    findings = []
    for o, line in zip(problem.objectives, shares, strict=True):
        if np.isfinite(line).any():
            best = int(np.nanargmax(line))
            findings.append(
                f"{free[best].name} explains {number(100.0 * line[best], 3)} % of the variance of {o.name}."
            )
        if (total := float(np.nansum(line))) > 1.0 + TOGETHER:
            findings.append(
                f"The shares of {o.name} add to {number(total, 3)}: parameters that the search varied together"
                " explain the same."
            )
    bars = [
        {"type": "bar", "name": plain(o.name), "x": names, "y": line, "marker": {"color": category(i)}}
        for i, (o, line) in enumerate(zip(problem.objectives, shares, strict=True))
    ]
    rows = tuple(
        (name, *("–" if np.isnan(v) else round(100.0 * float(v), 1) for v in shares[:, j]))
        for j, name in enumerate(names)
    )
    return Section(
        "Importance of the parameters",
        introduction="The share of an objective's variance explained by one parameter alone, over all designs "
        "with a result: the correlation ratio of the ranks, adjusted for chance. It applies to the "
        "region that the search visited; for the whole space add a stage with sobol_indices or "
        "morris.",
        findings=tuple(findings),
        figures=(
            Figure(
                "Share of the variance explained by a parameter",
                {"data": bars, "layout": layout(barmode="group", xaxis=axis(""), yaxis=axis("share", range=[0, 1]))},
                height=340,
            ),
        ),
        tables=(Table("Shares [%]", ("parameter", *(o.name for o in problem.objectives)), rows),),
    )
