"""Report parts `branches` and `best_dampers`: motions of period T over the damper's stiffness, followed or scanned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout, level_line
from designopt.report.labels import number, plain, thinned
from designopt.report.section import Figure, Section, Table
from designopt.report.traces import Trace, scenario_names, selected, trace
from designopt.store.result import Result
from designopt_knee.branch import CONTACTS, LOSSES, interval
from designopt_knee.report.angle import design_words, ratio_names, reservations, scan, scenario_table, stiffness_of

#: Maximum number of drawn branches, evenly spread over the designs.
BRANCHES = 12
#: Loss of rho that the interval of a scan allows.
MARGIN = 0.01

#: Curves over stiffness: array, title, label of the axis, lines drawn across.
_CURVES = (
    ("branch_multiplier", "Leading Floquet multiplier", "largest multiplier, real part", (-1.0, 1.0)),
    ("branch_rho", "Correlation with the recorded knee angle", "rho", ()),
    ("branch_peak", "Largest knee angle", "largest knee angle [deg]", ()),
    ("branch_clearance", "Toe clearance in swing", "lowest toe in swing [m]", (0.0,)),
)

_ACROSS = {"color": "@mark", "dash": "dot"}

_LOST = {
    "flip": "the period doubles",
    "fold": "meets an unstable motion and vanishes",
    "torus": "a pair of multipliers leaves the unit circle",
    "contact": "a contact begins or ends",
    "unknown": "the motion is no longer found",
    None: "not lost in the range",
}


@report_part("branches", version=1)
def branches(result: Result) -> Section | None:
    """Multiplier, correlation, peak and clearance of the stable motions over stiffness, one curve for each damping."""
    title = "Motions of period T over stiffness"
    figures = result.outcomes.figures
    if "critical_stiffness" not in figures:
        return Section(title, introduction="This part is for studies of the model four_bar_knee_branch.")
    rows = np.flatnonzero(~result.outcomes.failed)
    thinned_rows, names = thinned(rows, BRANCHES), scenario_names(result)
    branch_figures = []
    for name, heading, label, across in _CURVES:
        curves = [_curves(result, thinned_rows, s, name) for s in range(len(names))]
        if curves[0]:
            lines = [level_line(y, line=_ACROSS) for y in across]
            shape = layout(xaxis=axis("stiffness [N/m]"), yaxis=axis(label), shapes=lines)
            branch_figures.append(selected(heading, {"Scenario": names}, curves.__getitem__, shape, height=400))
    notes = reservations(result)
    if not branch_figures:
        array_names = ", ".join(f"{name}: all" for name in ("branch_stiffness", *(curve[0] for curve in _CURVES)))
        notes = (f"The curves need execution: {{arrays: {{{array_names}}}}}.", *notes)
    return Section(
        title,
        introduction="The motion that repeats every gait cycle is followed from the highest stiffness down to where "
        "it loses its stability. A disturbance shrinks by the multiplier in every cycle; at -1 the period doubles. A "
        "curve that ends inside the unit circle ends where a contact of heel, toe or stop begins or ends: the motion "
        "jumps. The table shows the contact in which the walk just beyond the end differs from the last motion.",
        figures=tuple(branch_figures),
        tables=(_critical(result, rows),),
        notes=notes,
    )


def _curves(result: Result, rows: NDArray[np.intp], scenario: int, name: str) -> list[Trace]:
    """A trace for each design whose arrays are kept."""
    traces = []
    for k, row in enumerate(rows.tolist()):
        arrays = result.arrays(row, scenario)
        if {"branch_stiffness", name} <= arrays.keys():
            x, y = arrays["branch_stiffness"], arrays[name]
            hover = "k %{x:.5~g}: <b>%{y:.4~g}</b>"
            traces.append(trace(x, y, design_words(result, row), colour=category(k), width=1.6, hover=hover))
    return traces


def _critical(result: Result, rows: NDArray[np.intp]) -> Table:
    columns = ("design", "critical stiffness [N/m]", "multiplier before it", "how", "contact")
    cells = ((s, _end(result, row, s)) for row in rows.tolist() for s in range(len(result.problem.scenarios)))
    return scenario_table(result, "Critical stiffness", columns, cells)


def _end(result: Result, row: int, s: int) -> tuple[Any, ...]:
    """Where and how a branch ends in a scenario."""
    at = {name: float(values[row, s]) for name, values in result.outcomes.figures.items()}
    lost = LOSSES[int(at["loss"])] if np.isfinite(at["loss"]) else None
    critical = at["critical_stiffness"] if lost else ""
    contact = _contact(at["loss_contact"], at["loss_phase"])
    return (design_words(result, row), critical, at["critical_multiplier"], _LOST[lost], contact)


def _contact(body: float, phase: float) -> str:
    name = CONTACTS[int(body)] if np.isfinite(body) else None
    return f"{name} at {100.0 * phase:.1f} % of the cycle" if name else ""


@dataclass(frozen=True)
class _Best:
    """The best stiffness (N/m) of a damping `at` (its value, or words) in a scenario, and the interval around it."""

    scenario: int
    words: str
    at: float | str
    rho: float
    stiffness: float
    peak: float
    clearance: float
    low: float
    high: float


#: What the intervals of a scan are not.
_OF_A_SCAN = (
    " Stiffnesses and ends of intervals are points of the scan: between them the best one may be better, and an"
    " interval of width 0 is narrower than its step. A finer scan or a study of four_bar_knee_branch gives the true"
    " ones."
)


@report_part("best_dampers", version=1)
def best_dampers(result: Result) -> Section | None:
    """Largest correlation and its stiffness for each damping ratio, with the interval of stiffness that keeps it."""
    title = "Best damper for each damping"
    dampers = _followed(result) if "best_rho" in result.outcomes.figures else _scanned(result)
    if dampers is None:
        return Section(
            title,
            introduction="This part needs a scan over stiffness and damping_ratio with the model four_bar_knee, or a "
            "study of four_bar_knee_branch.",
        )
    columns = ("damping", "largest rho", "at stiffness [N/m]", "peak flexion [deg]", "toe clearance [m]",
               "from [N/m]", "to [N/m]", "width [N/m]")  # fmt: skip
    cells = (
        (b.scenario, (b.words, b.rho, b.stiffness, b.peak, b.clearance, b.low, b.high, b.high - b.low)) for b in dampers
    )
    return Section(
        title,
        introduction="Among motions that repeat every gait cycle: the largest correlation with the recorded knee "
        f"angle, and the interval of stiffness around it in which it falls by no more than {number(_margin(result))}."
        f"{'' if 'best_rho' in result.outcomes.figures else _OF_A_SCAN}",
        figures=(_intervals(result, dampers),) if dampers else (),
        tables=(scenario_table(result, "Best rho and stiffness", columns, cells),),
        notes=(
            "rho does not see a wrong amplitude: read it together with the peak, beside that of the recorded angle.",
            *reservations(result),
        ),
    )


def _intervals(result: Result, dampers: list[_Best]) -> Figure:
    """The best stiffness over damping with its interval as a bar, one colour for each scenario."""
    data = []
    names = scenario_names(result)
    for s, name in enumerate(names):
        in_scenario = [b for b in dampers if b.scenario == s]
        best, low, high = (np.array([getattr(b, name) for b in in_scenario]) for name in ("stiffness", "low", "high"))
        bars = {"type": "data", "symmetric": False, "array": high - best, "arrayminus": best - low}
        data.append(
            trace(np.array([b.at for b in in_scenario]), best, plain(name), mode="lines+markers", colour=category(s),
                  width=1.2, dash="dot", error_y=bars, marker={"size": 7, "color": category(s)},
                  showlegend=len(names) > 1,
                  customdata=np.array([b.rho for b in in_scenario]),
                  hover="%{x}: <b>%{y:.5~g} N/m</b>, rho %{customdata:.4f}")
        )  # fmt: skip
    words = any(isinstance(b.at, str) for b in dampers)
    axes = {
        "xaxis": axis("" if words else "damping ratio c/k [s]", **({"type": "category"} if words else {})),
        "yaxis": axis("stiffness [N/m]"),
    }
    return Figure(
        "Best stiffness and its robust interval",
        {"data": data, "layout": layout(**axes)},
        height=400,
        note=f"Bars: rho falls by no more than {number(_margin(result))}.",
    )


def _margin(result: Result) -> float:
    return float(result.problem.model.settings.get("rho_margin", MARGIN))


def _followed(result: Result) -> list[_Best]:
    figures, space = result.outcomes.figures, result.problem.space
    names = ("best_rho", "best_stiffness", "best_peak", "best_clearance", "robust_low", "robust_high")
    alone = [p.name for p in space.free] == ["damping_ratio"]
    return [
        _Best(
            s,
            words := design_words(result, row),
            float(result.outcomes.X[row, 0]) if alone else words,
            *(float(figures[n][row, s]) for n in names),
        )
        for row in np.flatnonzero(~result.outcomes.failed).tolist()
        for s in range(len(result.problem.scenarios))
    ]


def _scanned(result: Result) -> list[_Best] | None:
    grid, figures = scan(result), result.outcomes.figures
    names = ("rho", "period_n", "peak_flexion", "toe_clearance")
    if grid is None or not set(names) <= figures.keys():
        return None
    dampers = []
    stiffness = grid.x * stiffness_of(result).factor
    ratios = ratio_names(result, grid)
    for s in range(len(result.problem.scenarios)):
        rhos, periods, peaks, clearances = (grid.take(figures[name][:, s]) for name in names)
        for q, words in enumerate(ratios):
            # Outside of period T no stiffness belongs to the interval; the largest stiffness comes first.
            rho = np.where(periods[q] == 1.0, rhos[q], -np.inf)[::-1]
            if not np.isfinite(rho).any():
                continue
            low, high = interval(stiffness[::-1], rho, _margin(result))
            at = len(rho) - 1 - int(np.argmax(rho))
            numbers = (rhos[q, at], stiffness[at], peaks[q, at], clearances[q, at], low, high)
            dampers.append(_Best(s, words, float(grid.y[q]) if len(ratios) > 1 else words, *map(float, numbers)))
    return dampers
