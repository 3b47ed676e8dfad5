"""Report part `parallel`: parallel coordinates of the designs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.counts import plural
from designopt.plugin import report_part
from designopt.report.colours import ORDERED_LINES, colour_bar, log_ticks, over_decades
from designopt.report.labels import (
    active_values,
    design_values,
    number,
    objective_labels,
    objective_values,
    parameter_label,
    plain,
    thinned,
    titled,
    wrapped,
)
from designopt.report.section import Figure, Section, Table
from designopt.store.result import Result
from designopt.study.study import DesignVariable

#: Maximum number of drawn designs, those of the front first.
DRAWN = 2000
#: Letters that fit above all axes of a page of 1000 pixels together, and minimum width of an axis in pixels.
LETTERS, AXIS = 100, 72
#: Pixels of a letter beside an axis, and maximum letters of a choice there.
TICK_LETTER, CHOICE = 6, 20
#: Format of the ticks that Plotly sets: without an exponent below 1e7.
TICK_FORMAT = ".7~g"
#: Ticks of an axis that Plotly does not set itself.
TICKS = 5


@report_part("parallel", version=1)
def parallel(result: Result) -> Section | None:
    """Parallel coordinates: one line per feasible design through its parameters and objectives."""
    outcomes, space = result.outcomes, result.problem.space
    feasible = np.flatnonzero(outcomes.feasible)
    if len(feasible) < 2 or not result.problem.objectives:
        return None
    front = np.asarray(result.front(), dtype=np.intp)
    front_lines = thinned(front, DRAWN // 2)
    other_lines = thinned(np.setdiff1d(feasible, front, assume_unique=True), DRAWN - len(front_lines))
    rows = np.concatenate([other_lines, front_lines])
    values, labels = objective_values(result), objective_labels(result.problem)
    on_front = np.isin(rows, front)
    axes = len(space.free) + len(labels) + 1
    width = max(1000, AXIS * axes)
    room = LETTERS * width // 1000 // axes
    dimensions = [
        {"label": wrapped(parameter_label(p), room), **_parameter(p, x)}
        for p, x in zip(space.free, active_values(result)[rows].T, strict=True)
    ]
    dimensions += [{"label": wrapped(label, room), **_objective(values[rows, j])} for j, label in enumerate(labels)]
    if len(labels) > 1:
        yes_no = {"tickvals": [0, 1], "ticktext": ["no", "yes"], "range": [0, 1]}
        brush = {"constraintrange": [0.5, 1.0]} if len(front_lines) > 1 else {}
        dimensions.append({"label": "on the front", "values": on_front.astype(float), **yes_no, **brush})
    for k, dimension in enumerate(dimensions):
        dimension["name"] = str(k)  # the reader may move axes, and two labels may be cut to the same text
    first = _objective(values[rows, 0])
    trace = {
        "type": "parcoords",
        "dimensions": dimensions,
        "line": {
            "color": first["values"],
            "colorscale": ORDERED_LINES,
            "showscale": True,
            "colorbar": colour_bar(
                titled(labels[0], 36), **{k: first[k] for k in ("tickvals", "ticktext") if k in first}
            ),
        },
        "unselected": {"line": {"opacity": 0.06}},
        "labelside": "top",
        "rangefont": {"size": 1, "color": "rgba(0,0,0,0)"},
    }
    first_words = dimensions[0].get("ticktext", ())  # left of the first axis
    left = max(80, TICK_LETTER * max(map(len, first_words), default=0) + 12)
    note = "The table below lists the selected designs, and the other figures highlight them."
    hint = "Drag along an axis to select a range, click on it to clear; drag its name to move the axis."
    thin = (
        f"{len(rows)} of {plural(len(feasible), 'feasible design')} are shown, evenly spaced "
        "in the order of evaluation."
    )
    return Section(
        "Parallel coordinates",
        introduction="Every line is one feasible design, coloured by the first objective."
        + (" Initially the designs of the front are selected." if len(labels) > 1 and len(front_lines) > 1 else ""),
        figures=(
            Figure(
                "Parameters and objectives",
                {"data": [trace], "layout": {"margin": {"l": left, "r": 70, "t": 64, "b": 28}}},
                note=note,
                hint=hint,
                height=440,
                brushed=_table(result, rows),
                width=width if width > 1000 else 0,
            ),
        ),
        notes=(thin,) if len(rows) < len(feasible) else (),
    )


def _parameter(p: DesignVariable, x: Floats) -> dict[str, Any]:
    """Values and ticks of a parameter; if it is inactive, NaN in `x`, lines pass below its range."""
    axis: dict[str, Any]
    if p.kind == "choice":
        low, high = 0.0, len(p.values) - 1.0
        texts = [number(v) for v in p.values]
        words = [plain(text if len(text) <= CHOICE else text[: CHOICE - 1] + "…") for text in texts]
        axis = {"values": x, "tickvals": [*range(len(p.values))], "ticktext": words}
    else:
        log = p.kind == "real" and p.scale == "log"
        low, high = (math.log10(p.low), math.log10(p.high)) if log else (float(p.low), float(p.high))
        axis = _exponents(x, low, high) if log else {"values": x, "tickformat": TICK_FORMAT}
        axis["range"] = [low, high]
    if np.isfinite(x).all():
        return axis
    below = low - 0.15 * (high - low or 1.0)
    ticks = np.linspace(low, high, TICKS)
    marks, words = axis.get("tickvals", ticks), axis.get("ticktext", [f"{t:.3g}" for t in ticks])
    return {
        "values": np.where(np.isfinite(x), axis["values"], below),
        "range": [below, high],
        "tickvals": [below, *marks],
        "ticktext": ["inactive", *words],
    }


def _objective(x: Floats) -> dict[str, Any]:
    """Values and ticks of an objective; one that ranges over decades has a log axis."""
    if not over_decades(x):
        return {"values": x, "tickformat": TICK_FORMAT}
    return _exponents(x, float(np.log10(x.min())), float(np.log10(x.max())))


def _exponents(x: Floats, low: float, high: float) -> dict[str, Any]:
    """An axis with the base-10 exponents of `x`, with ticks for the values from `low` to `high`."""
    ticks = log_ticks(float(10**low), float(10**high), 8) or [float(10**low), float(10**high)]
    return {"values": np.log10(x), "tickvals": np.log10(ticks), "ticktext": [f"{t:.4g}" for t in ticks]}


def _table(result: Result, rows: NDArray[np.intp]) -> Table:
    """The drawn designs; the page shows those within the brushes."""
    values = objective_values(result)
    head = ("design", *(parameter_label(p) for p in result.problem.space.free), *objective_labels(result.problem))
    lines = tuple((i, *design_values(result, i), *(float(v) for v in values[i])) for i in rows.tolist())
    return Table("Designs within the brushes", head, lines, visible_rows=10, designs=tuple(rows.tolist()))
