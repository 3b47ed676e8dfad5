"""Report part `scenarios`: the chosen designs in each scenario, and the worst scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.arrays import Floats, Mask
from designopt.plugin import report_part
from designopt.problem import Problem, unequal
from designopt.report.colours import CELL_TEXT, ORDERED, axis, bare_layout, colour_bar
from designopt.report.labels import (
    chosen_once,
    displayed_figures,
    figure_meaning,
    number,
    objective_labels,
    plain,
    titled,
    with_unit,
)
from designopt.report.parts.designs.colouring import colouring
from designopt.report.section import UNFOLDED, Figure, Section, Table, with_a_value
from designopt.report.traces import Trace, selected
from designopt.store.result import Result
from designopt.store.views.table import stated_constraints
from designopt.study.study import Objective, StudyConstraint

#: Most columns of values in a table with a row for each figure.
COLUMNS = 6

#: Most figures in a table with a column for each: one of more does not fit the page.
MOST_FIGURES = 8

#: The table of values.
TITLE = "Chosen designs in every scenario"


@report_part("scenarios", version=1)
def scenarios(result: Result) -> Section | None:
    """The chosen designs in each scenario: objectives, limits and figures, and the worst scenario of each."""
    problem = result.problem
    names = [s.name for s in problem.scenarios]
    rows_by_label = chosen_once(result)
    if len(names) < 2 or not rows_by_label:
        return None
    rows = np.array(list(rows_by_label.values()))
    figures = {name: v[rows] for name, v in result.outcomes.figures.items()}
    shape = (len(rows), len(names))
    layers = {
        label: values_in_scenarios(o, figures, shape)
        for label, o in zip(objective_labels(problem), problem.objectives, strict=True)
    }
    bad = [o.sign for o in problem.objectives]
    expressions = {str(o.expression) for o in problem.objectives}
    raw = {with_unit(n, unit): v[rows] for n, (unit, v) in displayed_figures(result).items() if n not in expressions}
    expressions |= set(figures)
    limit_layers = {
        with_unit(c.name, c.unit): values_in_scenarios(c, figures, shape)
        for c in stated_constraints(problem)
        if str(c.expression) not in expressions
    }
    holding = _holding(problem, figures, shape)
    return Section(
        "Scenarios",
        introduction=(
            f"The chosen designs in each of the {len(names)} scenarios. An objective has a value in every "
            "scenario; the search used the aggregate `over` of them."
        )
        .replace("`", "“", 1)
        .replace("`", "”", 1),
        findings=tuple(_findings(result, rows_by_label, layers, holding)),
        figures=(_heat_map(names, list(rows_by_label), layers | limit_layers | raw, result.outcomes.feasible[rows]),),
        tables=(
            _worst(names, list(rows_by_label), layers, bad),
            _all(result.problem, list(rows_by_label), layers | limit_layers | raw, holding),
        ),
    )


def _findings(
    result: Result, rows_by_label: dict[str, int], layers: dict[str, Floats], holding: dict[str, Mask]
) -> list[str]:
    """The worst scenario, common to all chosen designs or for each; limits violated in a scenario."""
    names = [s.name for s in result.problem.scenarios]
    sentences = []
    for v, o in zip(layers.values(), result.problem.objectives, strict=True):
        has_value: Mask = np.asarray(np.isfinite(v).any(axis=1))
        if not has_value.any():
            continue
        worst = np.argmax(np.where(np.isfinite(v), o.sign * v, -np.inf), axis=1)
        worst_in = sorted({names[w] for w in worst[has_value].tolist()}, key=names.index)
        if np.nanmax(v) == np.nanmin(v):
            sentences.append(f"{o.name} is the same in every scenario.")
        elif len(worst_in) == 1:
            sentences.append(f"{o.name} is worst in scenario {worst_in[0]} for every chosen design.")
        else:
            parts = [
                f"{names[w]} for {design}" for design, w, k in zip(rows_by_label, worst, has_value, strict=True) if k
            ]
            suffix = "; the table has all" if len(parts) > 4 else ""
            sentences.append(f"{o.name} is worst in scenario {'; in '.join(parts[:4])}{suffix}.")
    for name, holds in holding.items():
        for design, line in zip(rows_by_label, holds, strict=True):
            if not line.all():
                scenario_names = [names[s] for s in np.flatnonzero(~line)]
                suffix = f" and {len(scenario_names) - 3} more" if len(scenario_names) > 3 else ""
                sentences.append(
                    f"The limit of {name} is violated by {design} in {', '.join(scenario_names[:3])}{suffix}."
                )
    return sentences


def _heat_map(names: list[str], designs: list[str], layers: dict[str, Floats], feasible: Mask) -> Figure:
    """Designs over scenarios, coloured by the selected value."""
    layers = {k: v for k, v in layers.items() if np.isfinite(v).any()}
    short = [plain(n if len(n) <= 24 else n[:23] + "…") for n in names]
    lines = [plain(d if len(d) <= 40 else d[:39] + "…") for d in designs]
    heat_map: Trace = {
        "type": "heatmap",
        "x": list(range(len(names))),
        "y": list(range(len(designs))),
        "colorscale": ORDERED,
        "xgap": 1,
        "ygap": 1,
        "textfont": CELL_TEXT,
        "hovertemplate": "%{customdata[0]}<br>%{customdata[1]}: <b>%{customdata[2]}</b><extra></extra>",
    }
    maps = []
    for label, v in layers.items():
        colours = colouring(v, np.repeat(feasible[:, None], len(names), axis=1))
        low, high = colours.limits
        bar = colour_bar(titled(label, 12 + 4 * len(designs)), **colours.ticks)
        cells = [[[plain(d), plain(n), f"{v[i, s]:.5g}"] for s, n in enumerate(names)] for i, d in enumerate(designs)]
        maps.append({**heat_map, "z": colours.numbers, "customdata": cells, "colorbar": bar, "zmin": low, "zmax": high})
        if len(names) <= 12:
            maps[-1] |= {"text": [[number(float(z), 3) for z in line] for line in v], "texttemplate": "%{text}"}
    tick_angle = {"tickangle": -40} if len(names) > 5 else {}
    axes = {
        "xaxis": axis("", tickvals=heat_map["x"], ticktext=short, showgrid=False, **tick_angle),
        "yaxis": axis("", tickvals=heat_map["y"], ticktext=lines, autorange="reversed", showgrid=False),
    }
    return selected(
        "Chosen designs in each scenario",
        {"Figure": list(layers)},
        lambda k: [maps[k]],
        bare_layout(**axes),
        height=44 * len(designs) + 200,
    )


def _worst(names: list[str], designs: list[str], layers: dict[str, Floats], signs: list[float]) -> Table:
    rows = []
    for i, design in enumerate(designs):
        for (label, v), sign in zip(layers.items(), signs, strict=True):
            line = sign * v[i]
            if not np.isfinite(line).any():
                continue
            best, worst = int(np.nanargmin(line)), int(np.nanargmax(line))
            rows.append((design, label, names[worst], float(v[i, worst]), names[best], float(v[i, best])))
    head = ("design", "objective", "worst scenario", "there", "best scenario", "there ")
    return Table("Worst and best scenario", head, tuple(rows), visible_rows=40)


def _all(problem: Problem, designs: list[str], layers: dict[str, Floats], holding: dict[str, Mask]) -> Table:
    """A row for each design and scenario; of many figures, a row for each figure, or for each figure and scenario."""
    names = [scenario.name for scenario in problem.scenarios]
    layers = {k: v for k, v in layers.items() if np.isfinite(v).any()}
    if len(designs) * len(names) <= COLUMNS < len(layers):
        return _by_figure(problem, designs, layers, holding)
    if len(layers) + len(holding) > MOST_FIGURES:
        return _by_figure_and_scenario(names, designs, layers, holding)
    head = ("design", "scenario", *layers, *(f"{name} holds" for name in holding))
    rows = tuple(
        (
            design,
            scenario,
            *(float(v[i, s]) for v in layers.values()),
            *("yes" if h[i, s] else "no" for h in holding.values()),
        )
        for i, design in enumerate(designs)
        for s, scenario in enumerate(names)
    )
    return Table(TITLE, head, rows, visible_rows=12)


def _by_figure(problem: Problem, designs: list[str], layers: dict[str, Floats], holding: dict[str, Mask]) -> Table:
    cells = [(i, s) for i in range(len(designs)) for s in range(len(problem.scenarios))]
    columns = [
        problem.scenarios[s].name if len(designs) == 1 else f"{designs[i]}, {problem.scenarios[s].name}"
        for i, s in cells
    ]
    rows: list[tuple[Any, ...]] = [
        (label, *(float(v[i, s]) for i, s in cells), figure_meaning(problem, label.partition(" [")[0]))
        for label, v in layers.items()
    ]
    rows += [(f"{name} holds", *("yes" if h[i, s] else "no" for i, s in cells), "") for name, h in holding.items()]
    head, kept_rows = with_a_value(("", *columns, "meaning"), rows)
    return Table(TITLE, head, kept_rows, visible_rows=200, folded_from=UNFOLDED)


def _by_figure_and_scenario(
    names: list[str], designs: list[str], layers: dict[str, Floats], holding: dict[str, Mask]
) -> Table:
    words = {f"{name} holds": np.where(h, "yes", "no") for name, h in holding.items()}
    rows = tuple(
        (label, name, *values[:, s].tolist())
        for label, values in {**layers, **words}.items()
        for s, name in enumerate(names)
    )
    return Table(TITLE, ("", "scenario", *designs), rows, visible_rows=400, folded_from=6 * len(names))


def values_in_scenarios(
    item: Objective | StudyConstraint, figures: Mapping[str, Floats], shape: tuple[int, int]
) -> Floats:
    """The values (n, s) of `item` in each scenario, in its unit and with its own sign; NaN if not available."""
    with np.errstate(all="ignore"):
        values = np.broadcast_to(np.asarray(item.expression.evaluate(figures), dtype=float), shape)
    return np.where(np.isfinite(values), values, np.nan)


def _holding(problem: Problem, figures: Mapping[str, Floats], shape: tuple[int, int]) -> dict[str, Mask]:
    """A mask (n, s) by constraint of the scenarios in which its limits are met; an unavailable value does not meet
    them."""
    masks = {}
    for c in problem.constraints:
        v = values_in_scenarios(c, figures, shape)
        low = -np.inf if c.minimum is None else c.minimum
        high = np.inf if c.maximum is None else c.maximum
        with np.errstate(invalid="ignore"):
            masks[c.name] = unequal(v, v, c.equals) == 0.0 if c.equals is not None else (v >= low) & (v <= high)
    return masks
