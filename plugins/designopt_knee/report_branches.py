"""Report parts `branches` and `best_dampers`: motions of period T over the damper's stiffness, followed or scanned."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import report
from designopt.report.colours import axis, category, layout
from designopt.report.labels import number, with_unit
from designopt.report.section import Choice, Figure, Section, Table
from designopt.store.result import Result
from designopt_knee.branch import LOSSES, interval
from designopt_knee.report import ratio_names, reservations, scan, stiffness_of

Vector = NDArray[np.float64]

#: At most this many branches are drawn, evenly spread over the designs.
BRANCHES = 12
#: Loss of rho that the interval of a scan allows.
MARGIN = 0.01

#: What is drawn over stiffness: array, title, label of the axis, lines drawn across.
_CURVES = (
    ("branch_multiplier", "Leading multiplier of Floquet", "largest multiplier, real part", (-1.0, 1.0)),
    ("branch_rho", "Correlation with the recorded knee angle", "rho", ()),
    ("branch_peak", "Largest knee angle", "largest knee angle [deg]", ()),
    ("branch_clearance", "Toe clearance in swing", "lowest toe in swing [m]", (0.0,)),
)

_LOST = {
    "flip": "the period doubles",
    "fold": "meets an unstable motion and vanishes",
    "torus": "a pair of multipliers leaves the unit circle",
    "contact": "a contact begins or ceases",
    None: "not lost in the range",
}


@report("branches", version=1)
def branches(result: Result) -> Section | None:
    """Multiplier, correlation, peak and clearance of the stable motions over stiffness, one curve for each damping."""
    title = "Motions of period T over stiffness"
    figures = result.outcomes.figures
    if "critical_stiffness" not in figures:
        return Section(title, introduction="This part is for studies of the model four_bar_knee_branch.")
    rows = np.flatnonzero(~result.outcomes.failed)
    taken = (
        rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), BRANCHES)).round().astype(int))]
        if len(rows)
        else rows
    )
    scenarios = result.problem.scenarios
    drawn = []
    for name, heading, label, across in _CURVES:
        variants: dict[tuple[int, ...], Any] = {
            (s,): {"data": _curves(result, taken, s, name)} for s in range(len(scenarios))
        }
        if not variants[(0,)]["data"]:
            continue
        shapes = [
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": y,
                "y1": y,
                "line": {"color": "@mark", "dash": "dot"},
            }
            for y in across
        ]
        axes = {"xaxis": axis("stiffness [N/m]"), "yaxis": axis(label)}
        drawn.append(
            Figure(
                heading,
                {"data": variants[(0,)]["data"], "layout": layout(**axes, shapes=shapes)},
                height=400,
                choices=(Choice("Scenario", tuple(s.name for s in scenarios)),) if len(scenarios) > 1 else (),
                variants=variants if len(scenarios) > 1 else {},
            )
        )
    notes = reservations(result)
    if not drawn:
        wanted = ", ".join(f"{name}: all" for name in ("branch_stiffness", *(curve[0] for curve in _CURVES)))
        notes = (f"The curves need execution: {{arrays: {{{wanted}}}}}.", *notes)
    return Section(
        title,
        introduction="The motion that repeats every gait cycle is followed from the highest stiffness down to where "
        "it loses its stability. A disturbance shrinks by the multiplier in every cycle; at -1 the period doubles. A "
        "curve that ends inside the unit circle ends because a contact of foot or stop begins or ceases there: the "
        "motion jumps.",
        figures=tuple(drawn),
        tables=(_critical(result, rows),),
        notes=notes,
    )


def _curves(result: Result, rows: NDArray[np.intp], scenario: int, name: str) -> list[dict[str, Any]]:
    """A trace for each design whose arrays are kept."""
    traces = []
    for k, row in enumerate(rows.tolist()):
        arrays = result.arrays(row, scenario)
        if {"branch_stiffness", name} <= arrays.keys():
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": _words(result, row),
                    "x": arrays["branch_stiffness"],
                    "y": arrays[name],
                    "line": {"color": category(k), "width": 1.6},
                    "hovertemplate": "k %{x:.5~g}: <b>%{y:.4~g}</b><extra></extra>",
                }
            )
    return traces


def _words(result: Result, row: int) -> str:
    """The free parameters of a design."""
    space = result.problem.space
    values = space.values(result.outcomes.X[row].tolist())
    symbols = {"damping_ratio": "c/k", "damping": "c"}
    words = [f"{symbols.get(p.name, p.name)} {number(values[p.name])} {p.unit}".strip() for p in space.free]
    return ", ".join(words) or "the design"


def _critical(result: Result, rows: NDArray[np.intp]) -> Table:
    figures, scenarios = result.outcomes.figures, result.problem.scenarios
    several = len(scenarios) > 1
    table = []
    for row in rows.tolist():
        for s, scenario in enumerate(scenarios):
            lost = LOSSES[int(figures["loss"][row, s])] if np.isfinite(figures["loss"][row, s]) else None
            table.append(
                (
                    *((scenario.name,) if several else ()),
                    _words(result, row),
                    figures["critical_stiffness"][row, s] if lost else "",
                    figures["critical_multiplier"][row, s],
                    _LOST[lost],
                )
            )
    return Table(
        "Critical stiffness",
        (*(("scenario",) if several else ()), "design", "critical stiffness [N/m]", "multiplier before it", "how"),
        tuple(table),
        shown=60,
    )


@report("best_dampers", version=1)
def best_dampers(result: Result) -> Section | None:
    """Largest correlation and its stiffness for each damping ratio, with the interval of stiffness that keeps it."""
    title = "Best damper for each damping"
    rows = _followed(result) if "best_rho" in result.outcomes.figures else _scanned(result)
    if rows is None:
        return Section(
            title,
            introduction="This part needs a scan over stiffness and damping_ratio with the model four_bar_knee, or a "
            "study of four_bar_knee_branch.",
        )
    several = len(result.problem.scenarios) > 1
    head = (
        *(("scenario",) if several else ()),
        "damping",
        "largest rho",
        "at stiffness [N/m]",
        with_unit("peak flexion", "deg"),
        with_unit("toe clearance", "m"),
        "from [N/m]",
        "to [N/m]",
        "width [N/m]",
    )
    return Section(
        title,
        introduction="Among motions that repeat every gait cycle: the largest correlation with the recorded knee "
        f"angle, and the interval of stiffness around it in which it falls by no more than {number(_margin(result))}.",
        tables=(Table("Best rho and stiffness", head, tuple(rows), shown=60),),
        notes=(
            "rho does not see a wrong amplitude: read it together with the peak (68.6 deg in the bundled gait).",
            *reservations(result),
        ),
    )


def _margin(result: Result) -> float:
    return float(result.problem.model.settings.get("rho_margin", MARGIN))


def _followed(result: Result) -> list[tuple[Any, ...]]:
    figures, scenarios = result.outcomes.figures, result.problem.scenarios
    names = ("best_rho", "best_stiffness", "best_peak", "best_clearance", "robust_low", "robust_high", "robust_width")
    return [
        (*((scenario.name,) if len(scenarios) > 1 else ()), _words(result, row), *(figures[n][row, s] for n in names))
        for row in np.flatnonzero(~result.outcomes.failed).tolist()
        for s, scenario in enumerate(scenarios)
    ]


def _scanned(result: Result) -> list[tuple[Any, ...]] | None:
    grid, figures, scenarios = scan(result), result.outcomes.figures, result.problem.scenarios
    if grid is None or not {"rho", "period_n", "peak_flexion", "toe_clearance"} <= figures.keys():
        return None
    rows: list[tuple[Any, ...]] = []
    stiffness = grid.x * stiffness_of(result).factor
    for s, scenario in enumerate(scenarios):
        taken = {name: grid.take(figures[name][:, s]) for name in ("rho", "period_n", "peak_flexion", "toe_clearance")}
        for q, ratio in enumerate(ratio_names(result, grid)):
            # Outside of period T no stiffness belongs to the interval; the largest stiffness comes first.
            rho = np.where(taken["period_n"][q] == 1.0, taken["rho"][q], -np.inf)[::-1]
            if not np.isfinite(rho).any():
                continue
            best = int(np.argmax(rho))
            low, high = interval(stiffness[::-1], np.where(np.isfinite(rho), rho, -1.0), _margin(result))
            at = len(rho) - 1 - best
            rows.append(
                (
                    *((scenario.name,) if len(scenarios) > 1 else ()),
                    ratio,
                    rho[best],
                    stiffness[at],
                    taken["peak_flexion"][q, at],
                    taken["toe_clearance"][q, at],
                    low,
                    high,
                    high - low,
                )
            )
    return rows
