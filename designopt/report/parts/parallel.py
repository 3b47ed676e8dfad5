"""Report part `parallel`: parallel coordinates of the designs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import report
from designopt.report.colours import ORDERED_LINES, colour_bar
from designopt.report.labels import (
    count,
    design_values,
    objective_labels,
    objective_values,
    parameter_label,
    plain,
    plural,
    thinned,
    titled,
    wrapped,
)
from designopt.report.section import Figure, Section, Table
from designopt.store.result import Result

#: At most this many designs are drawn, those of the front first.
DRAWN = 2000
#: So many letters have room above all axes of a page of 1000 pixels together; an axis has at least so many pixels.
LETTERS, AXIS = 100, 72


@report("parallel", version=1)
def parallel(result: Result) -> Section | None:
    """Parallel coordinates: one line per feasible design through its parameters and objectives."""
    outcomes, space = result.outcomes, result.problem.space
    feasible = np.flatnonzero(outcomes.feasible)
    if len(feasible) < 2 or not result.problem.objectives:
        return None
    front = np.asarray(result.front(), dtype=np.intp)
    kept = thinned(front, DRAWN // 2)
    rest = thinned(np.setdiff1d(feasible, front), DRAWN - len(kept))
    rows = np.concatenate([rest, kept])
    values, labels = objective_values(result), objective_labels(result.problem)
    on_front = np.isin(rows, front)
    axes = len(space.free) + len(labels) + 1
    width = max(1000, AXIS * axes)
    room = LETTERS * width // 1000 // axes
    dimensions: list[dict[str, Any]] = []
    for j, p in enumerate(space.free):
        log = p.kind == "real" and p.scale == "log"
        x = outcomes.X[rows, j]
        dimension: dict[str, Any] = {
            "label": wrapped(parameter_label(p), room),
            "values": np.log10(x) if log else x,
            "tickformat": ".5~g",
        }
        if p.kind == "choice":
            dimension |= {"tickvals": list(range(len(p.values))), "ticktext": [plain(str(v)) for v in p.values]}
        if p.kind in ("real", "int"):
            dimension["range"] = [np.log10(p.low), np.log10(p.high)] if log else [p.low, p.high]
        if log:
            ticks = np.linspace(np.log10(p.low), np.log10(p.high), 5)
            dimension |= {"tickvals": ticks, "ticktext": [f"{10**t:.3g}" for t in ticks]}
        dimensions.append(dimension)
    dimensions += [
        {"label": wrapped(label, room), "values": values[rows, j], "tickformat": ".5~g"}
        for j, label in enumerate(labels)
    ]
    if len(labels) > 1:
        yes_no = {"tickvals": [0, 1], "ticktext": ["no", "yes"], "range": [0, 1]}
        brush = {"constraintrange": [0.5, 1.0]} if len(kept) > 1 else {}
        dimensions.append({"label": "on the front", "values": on_front.astype(float), **yes_no, **brush})
    for k, dimension in enumerate(dimensions):
        dimension["name"] = str(k)  # the reader may move axes, and two labels may be cut to the same
    trace = {
        "type": "parcoords",
        "dimensions": dimensions,
        "line": {
            "color": values[rows, 0],
            "colorscale": ORDERED_LINES,
            "showscale": True,
            "colorbar": colour_bar(titled(labels[0], 36)),
        },
        "unselected": {"line": {"opacity": 0.06}},
        "labelside": "top",
        "rangefont": {"size": 1, "color": "rgba(0,0,0,0)"},
    }
    note = (
        "Drag along an axis to keep only the designs within, click on it to keep all; drag its name to move the axis. "
        "The table below has the designs that are kept, and the other figures set them off."
    )
    thin = (
        f"{count(len(rows))} of {plural(len(feasible), 'feasible design')} are drawn, evenly taken over the order in "
        "which they were evaluated."
    )
    return Section(
        "Parallel coordinates",
        introduction="Every line is one feasible design, coloured by the first objective."
        + (" At first the designs of the front are selected." if len(labels) > 1 and len(kept) > 1 else ""),
        figures=(
            Figure(
                "Parameters and objectives",
                {"data": [trace], "layout": {"margin": {"l": 80, "r": 70, "t": 64, "b": 28}}},
                note=note,
                height=440,
                brushed=_table(result, rows),
                width=width if width > 1000 else 0,
            ),
        ),
        notes=(thin,) if len(rows) < len(feasible) else (),
    )


def _table(result: Result, rows: NDArray[np.intp]) -> Table:
    """The designs that are drawn; the page shows those within the brushes."""
    values = objective_values(result)
    head = ("design", *(parameter_label(p) for p in result.problem.space.free), *objective_labels(result.problem))
    lines = tuple((i, *design_values(result, i), *(float(v) for v in values[i])) for i in rows.tolist())
    return Table("Designs within the brushes", head, lines, shown=10, designs=tuple(rows.tolist()))
