"""One design of a result as rows of texts: values, results, evaluations, arrays.

The first row of each table is its head. Parameters have all digits, other numbers six; exported tables have all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from designopt.counts import with_subject
from designopt.problem import unequal
from designopt.report.labels import displayed_figures, failure_class, number
from designopt.report.notable import sentences
from designopt.store.errors import StoreError
from designopt.store.views.table import stated_constraints

if TYPE_CHECKING:
    from designopt.store.result import Result
    from designopt.study.study import StudyConstraint


def labels(result: Result, row: int) -> list[str]:
    """The labels of the design: chosen by a rule, named, recommended, on the front, infeasible or failed."""
    names = [label for label, design in {**result.chosen(), **result.named}.items() if design == row]
    if (recommendation := result.recommended()) is not None and recommendation[1] == row:
        names.append("recommended")
    if row in result.front():
        names.append("on the front")
    outcomes = result.outcomes
    if not outcomes.feasible[row]:
        names.append("invalid" if outcomes.invalid[row] else "failed" if outcomes.failed[row] else "not feasible")
    return names


def parameter_rows(result: Result, row: int) -> list[list[str]]:
    """Every parameter with its value and unit."""
    result = result.in_stated_units
    values = result.problem.space.values(result.outcomes.X[row].tolist())
    rows = [["parameter", "value", "unit", ""]]
    for p in result.problem.space.parameters:
        note = "fixed" if p.kind == "fixed" else ""
        if p.name in values:
            value = values[p.name]
            rows.append([p.name, repr(float(value)) if isinstance(value, float) else _number(value), p.unit, note])
        else:
            rows.append([p.name, "", p.unit, "not active here"])
    return rows


def rating_rows(result: Result, row: int) -> list[list[str]]:
    """Objectives with their directions, then limits with their margins."""
    rows = [["objective or limit", "value", "unit", "", ""]]
    for j, o in enumerate(result.problem.objectives):
        value = o.sign * float(result.outcomes.objectives[row, j])
        rows.append([o.name, _number(value) if np.isfinite(value) else "no value", o.unit, o.direction, ""])
    return rows + [_limit_row(result, row, c) for c in stated_constraints(result.problem)]


def _limit_row(result: Result, row: int, c: StudyConstraint) -> list[str]:
    """A limit with its value and margin, or its violation."""
    figures = {name: values[row : row + 1] for name, values in result.outcomes.figures.items()}
    low, high = (float(side[0]) for side in result.problem.limited(c, figures, 1))
    if not (np.isfinite(low) and np.isfinite(high)):
        return [c.name, "no value", c.unit, _limit(c), ""]
    sides = (
        [low] if c.maximum is None and c.equals is None else [high] if c.minimum is None and c.equals is None else []
    )
    value = " ... ".join(dict.fromkeys(_number(side) for side in sides or [low, high]))
    if c.equals is not None:
        off = float(unequal(np.array(low), np.array(high), c.equals))
        return [c.name, value, c.unit, _limit(c), "kept" if off == 0.0 else f"violated by {off:.4g}"]
    room = min(
        np.inf if c.maximum is None else c.maximum - high,
        np.inf if c.minimum is None else low - c.minimum,
    )
    return [c.name, value, c.unit, _limit(c), f"margin {room:.4g}" if room >= 0.0 else f"violated by {-room:.4g}"]


def _limit(c: StudyConstraint) -> str:
    if c.equals is not None:
        return f"= {c.equals:g}"
    limits = [f">= {c.minimum:g}"] if c.minimum is not None else []
    return ", ".join([*limits, *([f"<= {c.maximum:g}"] if c.maximum is not None else [])])


def output_rows(result: Result, row: int) -> list[list[str]]:
    """Every recorded figure that some design has, scenario by scenario, with its unit."""
    scenarios = result.problem.scenarios
    rows = [["figure", *(s.name if len(scenarios) > 1 else "value" for s in scenarios), "unit"]]
    for name, (unit, values) in displayed_figures(result).items():
        cells = ["no value" if np.isnan(v) else _number(float(v)) for v in values[row]]
        if np.isfinite(values).any():
            rows.append([name, *cells, unit])
    return rows


def evaluation_rows(result: Result, row: int) -> list[list[str]]:
    """The status of the evaluation in each scenario, with its key."""
    keys = [key.hex() for key in result.keys([row])[0]]
    rows = [["evaluation", "status", "took", "key"]]
    for k, scenario in enumerate(result.problem.scenarios):
        status, reason = str(result.status[row, k]), str(result.reason[row, k])
        wall = float(result.wall[row, k])
        rows.append([scenario.name, failure_class(result, status, reason), f"{wall:.3g} s" if wall else "", keys[k]])
    return rows


def origin(result: Result, row: int) -> str:
    """The stage that requested the design, and its index there; "" if no stage did."""
    stage = str(result.stage[row])
    return f"asked by stage {stage}, ask {int(np.argmax(result.designs_of(stage) == row))}" if stage else ""


def messages(result: Result, row: int) -> list[str]:
    """Messages of failed evaluations, their printed output, and what notable outputs count."""
    messages = []
    for k, scenario in enumerate(result.problem.scenarios):
        message = result.message(row, k).strip()
        if message:
            messages.append(with_subject(scenario.name, message))
        if output := result.printed(row, k).strip():
            messages.append(f"{scenario.name} printed:\n{output}")
    return [*messages, *filter(None, ["\n".join(sentences(result, row))])]


def array_rows(result: Result, row: int) -> tuple[list[list[str]], list[str]]:
    """The stored arrays of a design, and messages about unreadable ones."""
    declarations = result.problem.model.plugin.arrays
    rows, errors = [["kept array", "scenario", "size", "axes", "unit"]], []
    for k, scenario in enumerate(result.problem.scenarios):
        try:
            arrays = result.arrays(row, k)
        except StoreError as error:
            errors.append(f"{scenario.name}: {error}")
            continue
        for name, array in arrays.items():
            description = declarations.get(name)
            axes = ", ".join(description.axes) if description else ""
            size = " x ".join(str(n) for n in array.shape) or "1"
            rows.append([name, scenario.name, size, axes, description.unit if description else ""])
    return rows, errors


def _number(value: Any) -> str:
    return number(value, digits=6)
