"""Report part of muscle-force sharing: activations, moments by muscle, frames beyond the muscles."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from designopt.plugin import report
from designopt.report.colours import axis, category, layout
from designopt.report.designs import Arrays, Plot, kept, line, missing, selectable
from designopt.report.section import Section
from designopt.store.result import Result

#: Muscles that are named in a stack of moments; the others are summed.
_NAMED = 8


@report("muscle_sharing", version=1)
def muscle_sharing(result: Result) -> Section | None:
    """Activations over time, the balance of each coordinate stacked by muscle, and what is missing where."""
    title = "Muscles"
    names = (
        "time", "muscles", "coordinates", "activations", "muscle_moments", "net_moments", "reserves", "shortfall",
        "strength_factor", "status",
    )  # fmt: skip
    found = kept(result, *names)
    if not found:
        return missing(title, *names) if len(result.outcomes.X) else None
    first = next(iter(found.values()))
    rows = [str(name) for name in first["coordinates"]]
    balances = tuple(
        selectable(
            f"Balance about {row}",
            found,
            partial(_balance, row=i),
            height=360,
            note="Moments of the muscles stacked, the largest named; dashed the moment that is needed.",
        )
        for i, row in enumerate(rows[:6])
    )
    return Section(
        title,
        introduction="Frames without an answer are left out of the lines.",
        figures=(
            selectable("Activations", found, _activations, height=420),
            *balances,
            selectable("Frames beyond the muscles", found, _infeasible, height=320,
                       note="What is missing of each moment, and the factor on the strength that would be enough."),
        ),
    )  # fmt: skip


def _activations(arrays: Arrays) -> Plot:
    time = arrays["time"]
    data = [
        line(time, arrays["activations"][:, j], str(name), line={"color": category(j), "width": 1.5})
        for j, name in enumerate(arrays["muscles"])
    ]
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("activation", range=[0.0, 1.05]))}


def _balance(arrays: Arrays, *, row: int) -> Plot:
    time, moments = arrays["time"], np.asarray(arrays["muscle_moments"], dtype=float)[:, row]
    size = np.abs(np.nan_to_num(moments)).max(axis=0)
    order = [int(j) for j in np.argsort(-size, kind="stable") if size[j] > 1e-9]
    data: list[dict[str, Any]] = []

    def stacked(values: Any, name: str, colour: str) -> None:
        for sign, part in ((1, np.maximum(values, 0.0)), (-1, np.minimum(values, 0.0))):
            if np.nanmax(np.abs(part), initial=0.0) > 0.0:
                shown = not any(trace.get("legendgroup") == name for trace in data)
                data.append(line(time, part, name, line={"color": colour, "width": 0.5}, stackgroup=str(sign),
                                 legendgroup=name, showlegend=shown))  # fmt: skip

    for n, j in enumerate(order[:_NAMED]):
        stacked(moments[:, j], str(arrays["muscles"][j]), category(n))
    if len(order) > _NAMED:
        stacked(moments[:, order[_NAMED:]].sum(axis=1), "other muscles", "@faint")
    if np.nanmax(np.abs(arrays["reserves"][:, row]), initial=0.0) > 1e-9:
        stacked(arrays["reserves"][:, row], "reserve", "@mark")
    needed = {"color": "@ink", "width": 2, "dash": "dash"}
    data.append(line(time, arrays["net_moments"][:, row], "needed", line=needed))
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("moment [N m]"))}


def _infeasible(arrays: Arrays) -> Plot:
    time = arrays["time"]
    data = [
        line(time, arrays["shortfall"][:, i], f"missing about {name}", line={"color": category(i)})
        for i, name in enumerate(arrays["coordinates"])
    ]
    factor = np.asarray(arrays["strength_factor"], dtype=float)
    factor = np.where(np.isfinite(factor), factor, np.nan)
    data.append(line(time, factor, "strength that is enough", line={"color": "@ink", "dash": "dot"}, yaxis="y2"))
    right = axis("factor", overlaying="y", side="right", showgrid=False)
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("moment [N m]"), yaxis2=right)}
