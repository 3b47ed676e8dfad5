"""Report part `analysis`: results of given designs, or of the model with fixed parameters, in every scenario."""

from __future__ import annotations

from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.counts import plural
from designopt.plugin import report_part
from designopt.report.labels import (
    EQUAL,
    design_names,
    design_values,
    displayed_figures,
    figure_meaning,
    parameter_label,
    with_unit,
)
from designopt.report.section import UNFOLDED, Section, Table, with_a_value
from designopt.solvers.listed_designs import listed_names
from designopt.store.result import Result

#: Maximum rows of the table on the page; the CSV file has all.
SHOWN = 40
#: Columns beyond which at most so many rows become columns.
WIDE, FEW = 12, 6


@report_part("analysis", version=1)
def analysis(result: Result) -> Section | None:
    """The figures of every design in every scenario, and the spread of many: for studies without objectives, and for
    named designs."""
    problem, outcomes = result.problem, result.outcomes
    stage = result.study.baseline
    solver_names = set() if stage is None else set(listed_names(stage.solver))  # the chosen designs show these
    named_rows = sorted({row for name, row in result.named.items() if name not in solver_names})
    if (problem.objectives and not named_rows) or not len(outcomes):
        return None
    if problem.objectives and len(problem.scenarios) == 1 and {*named_rows} <= {*result.chosen().values()}:
        return None  # the chosen designs have the same table
    rows = named_rows if problem.objectives else list(range(len(outcomes)))
    names = design_names(result)
    several = len(problem.scenarios) > 1
    figures = {name: (unit, values[rows]) for name, (unit, values) in displayed_figures(result).items()}
    head = ["design", *(parameter_label(p) for p in problem.space.free), *(["scenario"] if several else []), "status"]
    head += [with_unit(name, unit) for name, (unit, _) in figures.items()]
    lines = tuple(
        (
            names[i],
            *design_values(result, i),
            *((scenario.name,) if several else ()),
            str(result.status[i, s]),
            *(float(values[k, s]) for _, values in figures.values()),
        )
        for k, i in enumerate(rows)
        for s, scenario in enumerate(problem.scenarios)
    )
    ok = result.status[rows] == "ok"
    facts = (("evaluations with a result", f"{int(ok.sum())} of {ok.size}"),)
    title = "Figures of every design" + (" in every scenario" if several else "")
    upright = len(head) > WIDE and len(lines) <= FEW  # columns beside each other would not fit on paper
    tables = [
        _upright(result, title, head, lines)
        if upright
        else Table(title, tuple(head), lines, visible_rows=SHOWN, folded_from=UNFOLDED)
    ]
    if ok.size > 1 and not upright:
        tables.append(_spread(result, figures))
    return Section(
        "Analysis",
        introduction=f"Results of {plural(len(rows), 'design')}"
        + (f" in {plural(len(problem.scenarios), 'scenario')}." if several else "."),
        facts=facts,
        tables=tuple(tables),
    )


def _upright(result: Result, title: str, head: list[str], lines: tuple[tuple[Any, ...], ...]) -> Table:
    """The table with a row for each of its columns that has a value, and a column for each of its few rows."""
    labels = [name for name in ("design", "scenario") if name in head]
    telling = [name for name in labels if len({line[head.index(name)] for line in lines}) > 1] or labels[:1]
    columns = [", ".join(str(line[head.index(name)]) for name in telling) for line in lines]
    columns = ["value"] if len(lines) == 1 and not result.named else columns
    rows = []
    for k, name in enumerate(head):
        values, figure = [line[k] for line in lines], name.partition(" [")[0]
        if name not in labels and any(value == value for value in values):
            meaning = figure_meaning(result.problem, figure) if k > head.index("status") else ""
            rows.append((name, *values, meaning))
    shown_columns, shown_rows = with_a_value(("", *columns, "meaning"), rows)
    return Table(title, shown_columns, shown_rows, visible_rows=200, folded_from=UNFOLDED)


def _spread(result: Result, figures: dict[str, tuple[str, Floats]]) -> Table:
    """Smallest, mean and largest value of each figure over designs and scenarios with a result."""
    rows = []
    for name, (unit, values) in figures.items():
        finite = values[np.isfinite(values)]
        if len(finite):
            deviation = float(finite.std())
            deviation = deviation if deviation > EQUAL * float(np.abs(finite).max()) else 0.0
            ends_and_mean = (float(finite.min()), float(finite.mean()), float(finite.max()))
            rows.append((name, unit, *ends_and_mean, deviation, figure_meaning(result.problem, name)))
    head = ("figure", "unit", "smallest", "mean", "largest", "standard deviation", "meaning")
    return Table("Spread of the figures", head, tuple(rows), visible_rows=100, folded_from=UNFOLDED)
