"""Report part `convergence`: history of the best designs over the evaluations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.plugin import report_part
from designopt.report.colours import axis, bare_layout, caption, category, scale_for, upright_line
from designopt.report.labels import objective_amounts, plain, stage_label, with_unit
from designopt.report.section import Figure, Section
from designopt.report.traces import above, constant_axis, trace
from designopt.store.result import Result

#: Room for a letter of a stage's name, as a share of the axis on a narrow screen.
LETTER = 0.02
#: Maximum number of objectives for the hypervolume.
OBJECTIVES = 5


@report_part("convergence", version=1)
def convergence(result: Result) -> Section | None:
    """The best value of each objective, and the hypervolume with a fixed reference point, over the evaluations."""
    outcomes, problem = result.outcomes, result.problem
    if not outcomes.feasible.any() or not problem.objectives or len(outcomes) < 2:
        return None
    figures, notes = [], []
    m = len(problem.objectives)
    history = hypervolume_history(result) if 1 < m <= OBJECTIVES and len(result.front()) > 1 else None
    if history is not None:
        _, design_counts, volume = history
        figures.append(_volume(result, design_counts, volume))
        notes.append(f"Reference point of the hypervolume: {reference_words(result)}.")
    figures.append(_best(result))
    return Section(
        "Convergence",
        introduction="Progress over the number of designs, in the order in which they were proposed. Dashed lines "
        "mark the start of a stage.",
        figures=tuple(figures),
        notes=tuple(notes),
    )


def hypervolume_history(result: Result) -> tuple[Floats, NDArray[np.int64], Floats] | None:
    """Reference point (m,), numbers of designs (k,), and the hypervolume at these as a share of the final one (k,).

    The reference is fixed, see `Result.reference`. None if no design dominates it.
    """
    reference = result.reference()
    design_counts, volume = result.hypervolume_history()
    if reference is None or not len(volume) or not volume[-1] > 0.0:
        return None
    return reference, design_counts, volume / volume[-1]


def reference_words(result: Result) -> str:
    """The reference point of the hypervolume with its origin, as a clause; "" when there is none."""
    reference, problem = result.reference(), result.problem
    if reference is None:
        return ""
    at = objective_amounts(problem.objectives, reference)
    is_stated = len(result.study.reference) == len(problem.objectives) or any(
        stage.budget.hypervolume is not None for stage in result.study.stages
    )
    return f"{at} ({'given by the study' if is_stated else 'a tenth of the front’s range beyond its worst'})"


def _volume(result: Result, design_counts: NDArray[np.intp], volume: Floats) -> Figure:
    hover = "after %{x} designs: <b>%{y:.2%}</b>"
    curve = trace(
        design_counts, volume, mode="lines+markers", colour="@accent", width=2, marker={"size": 4}, hover=hover
    )
    axes = {"xaxis": axis("designs asked for"), "yaxis": axis("share of the final value", tickformat=".0%")}
    return Figure(
        "Hypervolume of the front",
        {"data": [curve], "layout": bare_layout(**axes, **_stages(result))},
        height=320,
    )


def _best(result: Result) -> Figure:
    """Best feasible value of each objective so far, as steps, one plot above the other."""
    outcomes, objectives = result.outcomes, result.problem.objectives
    m = len(objectives)
    domains = above(m, 0.06)
    data: list[dict[str, Any]] = []
    titles: list[dict[str, Any]] = []
    axes: dict[str, Any] = {"xaxis": axis("designs asked for", anchor=f"y{m}" if m > 1 else "y")}
    for j, objective in enumerate(objectives):
        values = np.where(outcomes.feasible, outcomes.objectives[:, j], np.inf)
        running = np.minimum.accumulate(values)
        steps = np.flatnonzero(
            np.diff(np.where(np.isfinite(running), running, np.finfo(float).max), prepend=np.inf) < 0
        )
        steps = steps[np.isfinite(running[steps])]
        suffix = "" if j == 0 else str(j + 1)
        axes[f"yaxis{suffix}"] = axis("", domain=domains[j], **_ticks(objective.sign * running[steps]))
        best = objective.sign * np.append(running[steps], running[-1])
        stair = {"shape": "hv", "color": category(j), "width": 2}
        data.append(
            trace(np.append(steps + 1, len(outcomes)), best, plain(objective.name), mode="lines+markers", line=stair,
                  marker={"size": 4}, hover="after %{x} designs: <b>%{y:.5~g}</b>", yaxis=f"y{suffix}")
        )  # fmt: skip
        rises = objective.direction == "maximize"  # the name stands where the curve is not
        titles.append(
            caption(f"<b>{plain(with_unit(objective.name, objective.unit))}</b>", 1, domains[j][0 if rises else 1],
                    xanchor="right", yanchor="bottom" if rises else "top", bgcolor="@veil", font={"color": category(j)})
        )  # fmt: skip
    stages = _stages(result)
    titles += stages.pop("annotations", [])
    return Figure(
        "Best of each objective so far",
        {"data": data, "layout": bare_layout(**axes, **stages, annotations=titles)},
        height=130 * m + 100,
    )


def _ticks(values: Floats) -> dict[str, Any]:
    """A few ticks; for a constant value that value only, because Plotly would zoom into its rounding errors."""
    return constant_axis(values) or scale_for(values) or {"nticks": 5}


def _stages(result: Result) -> dict[str, Any]:
    """Dashed lines at the start of each stage, with its name, or with those of stages that are near."""
    names = result.stage
    if not len(names):
        return {}
    labels = {stage.name: stage_label(stage, result.problem) for stage in result.study.stages}
    starts = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
    if len(starts) < 2 or len(starts) > 12:
        return {}
    shapes = [upright_line(float(s) + 0.5, "@faint", "dash") for s in starts[1:]]
    texts: dict[int, str] = {}
    for s in starts.tolist():
        text = labels.get(str(names[s]), str(names[s]))
        before = max(texts, default=-1)
        if before >= 0 and s - before < LETTER * len(names) * len(texts[before]):
            texts[before] += f", {text}"
        else:
            texts[s] = text
    annotations = [
        caption(plain(text), float(s) + 0.5, 1, xref="x", font={"size": 11, "color": "@muted"})
        for s, text in texts.items()
    ]
    return {"shapes": shapes, "annotations": annotations}
