"""Report part `validation`: the chosen designs in scenarios not used in the search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from designopt.arrays import Floats, Mask
from designopt.counts import plural
from designopt.plugin import report_part
from designopt.report.colours import axis, bare_layout, category, scale_for
from designopt.report.labels import listed, number, objective_labels, objective_values, plain
from designopt.report.parts.answer.problem import scenario_table
from designopt.report.section import Figure, Section, Table
from designopt.report.traces import Trace, selected, trace
from designopt.store.result import Result
from designopt.store.views.tolerances import ENOUGH

#: Distance of outliers from all boxes, in their range, beyond which they are initially outside of the figure.
FAR = 1.0
#: Most validation scenarios that stand one by one with the recommended design.
ONE_BY_ONE = 8
#: Maximum number of drawn scenarios per design; quantiles use all.
DRAWN = 2000


@report_part("validation", version=1)
def validation(result: Result) -> Section | None:
    """The chosen designs in the validation scenarios: quantiles, share within the limits, and the worst scenario."""
    study = result.study
    if study.validate is None:
        return None
    total = len(study.validate.scenarios)
    introduction = (
        f"The chosen designs in {plural(total, 'scenario')} not used in the search"
        if total
        else "The chosen designs in the validation scenarios"
    )
    validation_results = result.validation()
    if validation_results is None or not len(validation_results.rows):
        why = (
            "They are evaluated after the last stage."
            if result.ended != "done"
            else "There are no designs to validate."
        )
        return Section("Validation", introduction=f"{introduction}. {why}")
    levels = study.validate.quantiles
    limits = bool(result.problem.constraints)
    failed = (validation_results.statuses != "ok") & (validation_results.statuses != "")
    quantiles = _quantiles(result, validation_results, levels)
    return Section(
        "Validation",
        introduction=introduction + ": do the results of the search hold there?",
        findings=tuple(_findings(result, validation_results, levels, failed)),
        figures=(_boxes(result, validation_results),),
        tables=(
            quantiles,
            *_worst_scenarios(result, quantiles),
            *((_limits(validation_results, failed),) if limits or failed.any() else ()),
        ),
        notes=(
            "Boxes: quartiles and median over the scenarios; whiskers extend to the last value within "
            "1.5 box lengths. Diamonds: the value in the study's own "
            "scenarios. A scenario without a result has no value here and counts as a violation of the limits.",
        ),
    )


def _findings(result: Result, validation_results: Any, levels: tuple[float, ...], failed: Mask) -> list[str]:
    sentences = []
    problem = result.problem
    for i, label in enumerate(validation_results.labels):
        parts = []
        for j, o in enumerate(problem.objectives):
            q = validation_results.quantiles[i, j]
            # The unfavourable end: the largest quantile of a minimised objective, the smallest of a maximised one.
            k = int(np.argmax(levels)) if o.sign > 0 else int(np.argmin(levels))
            share = levels[k] if o.sign > 0 else 1.0 - levels[k]
            if np.isfinite(q[k]):
                side = "at most" if o.sign > 0 else "at least"
                parts.append(f"{o.name} {side} {number(float(q[k]))} {o.unit}".rstrip() + f" in {_percent(share)}")
        text = f"{_capital(label)}: {listed(parts)} of the scenarios" if parts else f"{_capital(label)}: no result"
        if problem.constraints:
            low, high = wilson(
                float(validation_results.feasible_share[i]), int((validation_results.statuses[i] != "").sum())
            )
            text += (
                f"; all limits hold in {_percent(float(validation_results.feasible_share[i]))} "
                f"(95 % interval {number(100.0 * low, 3)} to {number(100.0 * high, 3)} %)"
            )
        if failed[i].any():
            text += f"; no result in {plural(int(failed[i].sum()), 'scenario')}"
        sentences.append(text + ".")
    return sentences


def feasible_shares(result: Result) -> dict[str, Callable[[int], str]]:
    """Columns of the chosen designs by their heads, as functions of a row of the result: the share of its neighbours
    within the tolerances, and that of the validation scenarios, in which it satisfies the limits. A column without
    evaluations is left out."""
    near, validation_results = result.tolerated(), result.validation()
    columns: dict[str, Callable[[int], str]] = {}
    if near is not None:
        columns["neighbours feasible"] = near.words
    if validation_results is not None and result.problem.constraints:
        shares = dict(
            zip(
                validation_results.rows.tolist(), map(_percent, validation_results.feasible_share.tolist()), strict=True
            )
        )
        columns["validation feasible"] = lambda row: shares.get(row, "–")
    return columns


def recommended_by_scenario(result: Result) -> tuple[Table, ...]:
    """The objectives of the recommended design in the study and in each validation scenario; none of more than
    `ONE_BY_ONE`."""
    recommendation, validation_results, validate = result.recommended(), result.validation(), result.study.validate
    if recommendation is None or validation_results is None or validate is None:
        return ()
    indices = np.flatnonzero(validation_results.rows == recommendation[1])
    if not len(indices) or len(validate.scenarios) > ONE_BY_ONE:
        return ()
    values = np.c_[objective_values(result)[recommendation[1]], validation_results.objectives[indices[0]]]
    head = ("", "in the study", *(scenario.name for scenario in validate.scenarios))
    rows = tuple((name, *line) for name, line in zip(objective_labels(result.problem), values.tolist(), strict=True))
    return (Table("Recommended design in the validation scenarios", head, rows),)


def rarely_valid(result: Result) -> list[str]:
    """A clause if the recommended design satisfies the limits in fewer than `ENOUGH` of the validation scenarios, with
    the limit that most of them violate; else none."""
    recommendation, validation_results = result.recommended(), result.validation()
    if recommendation is None or validation_results is None or not result.problem.constraints:
        return []
    indices = np.flatnonzero(validation_results.rows == recommendation[1])
    if not len(indices) or not validation_results.feasible_share[indices[0]] < ENOUGH:
        return []
    i = int(indices[0])
    total = plural(int((validation_results.statuses[i] != "").sum()), "validation scenario")
    shares = {name: float(share[i]) for name, share in validation_results.violated.items()}
    worst = max(shares, key=shares.__getitem__)
    worst_limit = f"; {worst} is violated in {_percent(shares[worst])}" if shares[worst] > 0.0 else ""
    share = _percent(float(validation_results.feasible_share[i]))
    return [f"{recommendation[0]} satisfies all limits in only {share} of {total}{worst_limit}"]


def _capital(label: str) -> str:
    return label[:1].upper() + label[1:]


def _percent(share: float) -> str:
    """Three digits, and 100 only if exact."""
    return "more than 99.9 %" if 0.9995 <= share < 1.0 else f"{number(100.0 * share, 3)} %"


def wilson(share: float, n: int) -> tuple[float, float]:
    """The 95 % interval of a share observed in `n` random trials (Wilson, J. Am. Stat. Assoc. 22, 1927, 209)."""
    if n == 0:
        return np.nan, np.nan
    square = 1.959963984540054**2 / n
    middle = share + square / 2.0
    half = float(np.sqrt(square * (share * (1.0 - share) + square / 4.0)))
    return max(0.0, (middle - half) / (1.0 + square)), min(1.0, (middle + half) / (1.0 + square))


def _boxes(result: Result, validation_results: Any) -> Figure:
    """One box for each design; the selector sets the objective."""
    feasible = result.outcomes.feasible[np.asarray(validation_results.rows)]
    in_frame = feasible if feasible.any() else ~feasible
    labels = [plain(t if len(t) <= 40 else t[:39] + "…") for t in validation_results.labels]
    labels_of = objective_labels(result.problem)
    study_values = objective_values(result)[np.asarray(validation_results.rows)]
    step = max(1, -(-validation_results.objectives.shape[2] // DRAWN))
    diamond = {"symbol": "diamond", "size": 10, "color": "@ink", "line": {"color": "@surface", "width": 1}}
    in_study = "in the study's scenarios"

    def draw(j: int) -> list[Trace]:
        finite_values = [x[np.isfinite(x)] for x in validation_results.objectives[:, j, ::step]]
        return [
            *(
                {"type": "box", "orientation": "h", "name": label, "x": x, "y": [label] * len(x), "hoverinfo": "x",
                 "boxpoints": "outliers", "marker": {"color": category(i), "size": 3}, "line": {"width": 1.5}}
                for i, (label, x) in enumerate(zip(labels, finite_values, strict=True))
            ),
            trace(study_values[:, j], labels, in_study, mode="markers", marker=diamond,
                  hover=in_study + ": <b>%{x:.5~g}</b>"),
        ]  # fmt: skip

    return selected(
        "Distribution over the validation scenarios",
        {"Objective": labels_of},
        draw,
        bare_layout(yaxis=axis("", type="category", autorange="reversed"), boxgap=0.35),
        view=lambda j: {
            "xaxis": axis(
                plain(labels_of[j]), **_scale(validation_results.objectives[:, j], study_values[:, j], in_frame)
            )
        },
        height=52 * len(labels) + 130,
        note=f"Every {step}th scenario is drawn." if step > 1 else "",
        hint="A double click shows what is far away.",
    )


def _scale(values: Floats, study_values: Floats, in_frame: Mask) -> dict[str, Any]:
    """The axis of `values` (designs, scenarios), without those far from the boxes of `in_frame` designs."""
    scale = scale_for(values)
    finite_values = [x[np.isfinite(x)] for x in values]
    if scale or not any(len(x) for x in finite_values):
        return {"type": "linear", **scale}
    boxes = [x for x, is_framed in zip(finite_values, in_frame, strict=True) if is_framed and len(x)]
    if not boxes:
        return {"type": "linear"}
    quartiles = np.array([np.percentile(x, (25, 75)) for x in boxes])
    length = np.ptp(quartiles, axis=1)
    reaches = [
        *(quartiles[:, 0] - 3 * length),
        *(quartiles[:, 1] + 3 * length),
        *study_values[in_frame & np.isfinite(study_values)],
    ]
    ends = np.array([min(reaches), max(reaches)])
    smallest, largest = (
        float(end(x)) for end, x in ((np.min, np.hstack(finite_values)), (np.max, np.hstack(finite_values)))
    )
    room = FAR * float(np.ptp(ends)) or np.inf
    if smallest >= ends[0] - room and largest <= ends[1] + room:
        return {"type": "linear"}
    limits = np.clip([smallest, largest], *ends)
    return {"type": "linear", "range": [float(v) for v in limits + 0.04 * np.ptp(limits) * np.array([-1.0, 1.0])]}


def _quantiles(result: Result, validation_results: Any, levels: tuple[float, ...]) -> Table:
    scenarios = result.study.validate.scenarios  # type: ignore[union-attr]
    study_values = objective_values(result)
    rows = []
    for i, label in enumerate(validation_results.labels):
        for j, (title, o) in enumerate(zip(objective_labels(result.problem), result.problem.objectives, strict=True)):
            values = o.sign * validation_results.objectives[i, j]
            worst = int(np.nanargmax(values)) if np.isfinite(values).any() else None
            rows.append(
                (
                    label,
                    title,
                    float(study_values[validation_results.rows[i], j]),
                    *(float(q) for q in validation_results.quantiles[i, j]),
                    "–" if worst is None else float(validation_results.objectives[i, j, worst]),
                    "–" if worst is None else scenarios[worst].name,
                )
            )
    head = ("design", "objective", "in the study", *(f"{number(100 * q)} %" for q in levels), "worst", "worst scenario")
    return Table("Quantiles over the validation scenarios", head, tuple(rows), visible_rows=60)


def _worst_scenarios(result: Result, quantiles: Table) -> tuple[Table, ...]:
    """The values of the worst scenarios, each once: the name of a sampled one is not informative."""
    names = {row[-1] for row in quantiles.rows}
    worst = [s for s in result.study.validate.scenarios if s.name in names and s.values]  # type: ignore[union-attr]
    return (scenario_table(result, "The worst scenarios", worst),) if worst else ()


def _limits(validation_results: Any, failed: Mask) -> Table:
    rows = []
    for i, (label, share, lost) in enumerate(
        zip(validation_results.labels, validation_results.feasible_share, failed, strict=True)
    ):
        ends = wilson(float(share), int((validation_results.statuses[i] != "").sum()))
        interval = " to ".join(number(100.0 * end, 3) for end in ends) + " %"
        rows.append((label, _percent(float(share)), interval, str(int(lost.sum()))))
    return Table(
        "Limits in the validation scenarios",
        ("design", "all limits hold in", "95 % interval", "scenarios without result"),
        tuple(rows),
        note="Wilson interval of the share, for a random sample of scenarios; that of a Sobol' sample is narrower.",
    )
