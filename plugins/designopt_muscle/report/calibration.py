"""Report part of a calibration: the factors that were found, and how well the trials determine them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.labels import number
from designopt.report.section import Figure, Section, Table
from designopt.report.traces import scenario_names
from designopt.store.result import Result
from designopt_muscle.dynamic_sharing.information import Identifiability, identifiability

#: Rise of the objective of all trials together, by which widths are measured, and the share of the range that is wide.
_RISE, _WIDE = 0.01, 0.5
#: Smallest part of the weakest combination that is reported.
_PART = 0.1


@report_part("muscle_calibration", version=1, arrays=("factors", "information"))
def muscle_calibration(result: Result) -> Section | None:
    """Factors on muscle parameters with their ranges, and the information of the trials on each: alone and with the
    others.
    """
    title = "Calibrated factors"
    if not len(result.outcomes.X):
        return None
    row = next(iter(result.chosen().values()), None)
    if row is None:
        return Section(title, introduction="No design has a solution in every scenario.")
    scenarios = scenario_names(result)
    arrays_of_scenarios = [result.arrays(row, s) for s in range(len(scenarios))]
    if any(not {"factors", "information"} <= arrays.keys() for arrays in arrays_of_scenarios):
        text = "The store contains no arrays for this part. Run the study with execution: {arrays: {factors: front,"
        return Section(title, introduction=f"{text} information: front}}}}.")
    names = [str(name) for name in arrays_of_scenarios[0]["factors"]]
    space = result.problem.space
    values = space.values(result.outcomes.X[row].tolist())
    indices = [i for i, name in enumerate(names) if name in values]
    if not indices:
        return None
    names = [names[i] for i in indices]
    informations = [
        np.asarray(arrays["information"], dtype=float)[np.ix_(indices, indices)] for arrays in arrays_of_scenarios
    ]
    objective = float(np.sum(result.outcomes.figures["objective"][row]))
    analysis = identifiability(names, informations, _RISE * objective)
    parameters = {p.name: p for p in space.parameters}
    limits = [(float(parameters[n].low), float(parameters[n].high)) for n in names]
    factor_values = [float(values[n]) for n in names]
    return Section(
        title,
        introduction=(
            f"A width is the change of a factor that raises the objective of all trials by {_RISE:.0%}, with the other"
            " factors re-optimised, or fixed; from second derivatives of the minimum objective with "
            "re-optimised motions."
        ),
        facts=(("Trials", str(len(scenarios))), ("Objective", f"{number(objective)} s")),
        findings=tuple(_findings(analysis, factor_values, limits)),
        figures=(_figure(names, factor_values, analysis, limits),),
        tables=(_table(names, factor_values, analysis, limits, scenarios, informations),),
    )


def _findings(analysis: Identifiability, values: Sequence[float], limits: Sequence[tuple[float, float]]) -> list[str]:
    findings = []
    for name, value, width, (low, high) in zip(analysis.names, values, analysis.widths, limits, strict=True):
        if not width < _WIDE * (high - low):
            findings.append(
                f"{name} is not identified: its width is {number(width)} in a range of {number(high - low)}."
            )
        elif min(value - low, high - value) <= 1e-4 * (high - low):
            findings.append(f"{name} is at the end of its range.")
    if len(analysis.names) > 1:
        parts = sorted(zip(analysis.weakest, analysis.names, strict=True), key=lambda part: -abs(part[0]))
        words = " ".join(f"{part:+.2f} {name}" for part, name in parts if abs(part) >= _PART)
        findings.append(
            f"The trials determine the combination {words} least; the best determined one is known"
            f" {number(float(np.sqrt(analysis.condition)))} times more accurately."
        )
    return findings


def _figure(
    names: Sequence[str], values: Sequence[float], analysis: Identifiability, limits: Sequence[tuple[float, float]]
) -> Figure:
    rows = np.arange(len(names))
    ends = np.array([[low, high, np.nan] for low, high in limits]).ravel()
    data: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines", "x": ends, "y": np.repeat(rows, 3), "name": "range",
         "line": {"color": "@faint", "width": 6}, "hoverinfo": "skip"},
        {"type": "scatter", "mode": "markers", "x": np.round(values, 6), "y": rows, "text": list(names),
         "name": "value and width", "marker": {"color": category(0), "size": 9},
         "error_x": {"type": "data", "array": np.where(np.isfinite(analysis.widths), analysis.widths, 0.0),
                     "color": category(0), "thickness": 1.5, "width": 4},
         "hovertemplate": "%{text}: %{x:.4g} ± %{error_x.array:.2~g}<extra></extra>"},
    ]  # fmt: skip
    ticks = {"tickmode": "array", "tickvals": rows, "ticktext": list(names), "automargin": True}
    plot = {
        "data": data,
        "layout": layout(
            xaxis=axis("factor"),
            yaxis=axis("", range=[len(names) - 0.5, -0.5], showgrid=False, zeroline=False, **ticks),
        ),
    }
    return Figure("Factors", plot, height=140 + 40 * len(names), note="Widths with the other factors re-optimised.")


def _table(
    names: Sequence[str], values: Sequence[float], analysis: Identifiability, limits: Sequence[tuple[float, float]],
    scenarios: Sequence[str], informations: Sequence[Any],
) -> Table:  # fmt: skip
    shares = np.stack([np.maximum(np.diag(i), 0.0) for i in informations])
    shares = shares / np.maximum(shares.sum(axis=0), 1e-300)
    rows = tuple(
        (
            name,
            values[i],
            *limits[i],
            float(analysis.widths[i]),
            float(analysis.alone[i]),
            *(float(s) for s in shares[:, i]),
        )
        for i, name in enumerate(names)
    )
    columns = ("factor", "value", "low", "high", "width", "width, others fixed", *(f"from {s}" for s in scenarios))
    return Table("Factors", columns, rows, note="The last columns are shares of the information on a factor alone.")
