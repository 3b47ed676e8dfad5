"""Report parts `effort_shares` and `walking_asymmetry`: which muscles a walk costs, and how the sides differ."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, layout
from designopt.report.designs import Arrays, Plot, missing, selectable, short_label, stored_arrays
from designopt.report.labels import displayed_figures
from designopt.report.section import Section, Table
from designopt.store.result import Result
from designopt_walking.report.panels import by_quantity
from designopt_walking.report.sides import STYLES, side_names, which_leg

#: Outputs that compare the sides, with what they compare.
ASYMMETRIES = {
    "loading_asymmetry": "vertical impulse",
    "peak_force_asymmetry": "largest vertical force",
    "stance_asymmetry": "duration of stance",
    "step_length_asymmetry": "length of the steps",
    "step_time_asymmetry": "time between strikes",
    "swing_flexion_asymmetry": "knee flexion in swing",
}


_NAMES = ("muscles", "effort_shares", "peak_activations")


@report_part("effort_shares", version=1, arrays=_NAMES)
def effort_shares(result: Result) -> Section | None:
    """Share of each muscle in the integral of the squared excitations, right and left."""
    title = "Effort by muscle"
    motions = stored_arrays(result, *_NAMES)
    if not motions:
        return missing(title, *_NAMES) if len(result.outcomes.X) else None
    count = max(len(by_quantity([str(n) for n in arrays["muscles"]])) for arrays in motions.values())
    notes = {
        "note": "Share in the integral of the squared excitations of all muscles.",
        "hint": "The pointer shows peak activations.",
    }
    plot = partial(_shares, names=side_names(result))
    return Section(title, figures=(selectable(title, motions, plot, height=120 + 32 * count, **notes),))


def _shares(arrays: Arrays, *, names: Mapping[str, str]) -> Plot:
    shares, peaks = (100.0 * np.asarray(arrays[name], dtype=float) for name in ("effort_shares", "peak_activations"))
    columns = by_quantity([str(name) for name in arrays["muscles"]])
    order = sorted(columns, key=lambda name: sum(shares[k] for k in columns[name].values()))
    data: list[dict[str, Any]] = []
    for side, label in names.items():
        muscle_names = [name for name in order if side in columns[name]]
        rows = [columns[name][side] for name in muscle_names]
        if muscle_names:
            data.append(
                {"type": "bar", "orientation": "h", "name": label, "x": np.round(shares[rows], 2),
                 "y": [name.replace("_", " ") for name in muscle_names], "marker": {"color": STYLES[side]["color"]},
                 "customdata": np.round(peaks[rows], 1), "showlegend": bool(label),
                 "hovertemplate": "%{y}: %{x:.1f} %<br>peak activation %{customdata:.1f} %<extra></extra>"}
            )  # fmt: skip
    muscles = {"type": "category", "automargin": True}
    return {"data": data, "layout": layout(xaxis=axis("share [%]"), yaxis=axis("", **muscles), barmode="group")}


@report_part("walking_asymmetry", version=1)
def walking_asymmetry(result: Result) -> Section | None:
    """How the sides differ: (right - left) / (right + left) of forces, steps and flexion, for the chosen designs."""
    figures = displayed_figures(result)
    asymmetries = {name: words for name, words in ASYMMETRIES.items() if name in figures}
    rows = list(dict.fromkeys(result.chosen().values())) or list(range(min(len(result.outcomes.X), 16)))
    if not asymmetries or not rows:
        return None
    table = [
        (short_label(result, row), scenario.name, *(float(figures[name][1][row, s]) for name in asymmetries))
        for row in rows
        for s, scenario in enumerate(result.problem.scenarios)
    ]
    return Section(
        "Asymmetry",
        introduction=(
            "(right - left) / (right + left): 0 for equal sides, positive where the right side has more."
            f" {which_leg(result)}".rstrip()
        ),
        tables=(Table("Asymmetry of the walk", ("design", "scenario", *asymmetries.values()), tuple(table)),),
    )
