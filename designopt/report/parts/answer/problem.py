"""Report part `problem`: parameters, objectives, limits, stages and scenarios of a study, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from designopt.counts import plural
from designopt.plugin import InputFile, Plugin, Use, report_part
from designopt.report.labels import duration, number, stage_label, with_unit
from designopt.report.parts.answer.limits import sentence
from designopt.report.section import Section, Table, with_a_value
from designopt.store.provenance import recorded_remarks
from designopt.store.result import Result
from designopt.store.views.table import stated_constraints

if TYPE_CHECKING:
    from designopt.study.study import DesignVariable, Objective, Scenario, Stage, StudyConstraint

#: Maximum number of shown elements of a list in a setting.
LISTED = 30
#: Maximum number of values of a parameter shown for a list of designs.
LISTED_VALUES = 8
#: More conditions than these make a row too long.
_MANY_CONDITIONS = 8


@report_part("problem", version=1)
def problem(result: Result) -> Section:
    """Parameters, objectives, conditions and solvers of the study."""
    study, outcomes = result.study, result.outcomes
    repetitions = result.counts["points"] - len(outcomes)
    # A running batch is requested before it is complete; only then are there fewer designs without repetitions.
    repetition_note = (
        f"{repetitions} of {result.counts['points']} designs were proposed again and not recomputed."
        if repetitions > 0 and result.ended == "done"
        else ""
    )
    return Section(
        "The problem",
        on_request=True,
        tables=(
            *_parameters(result),
            *_aims(result),
            _stages(result, repetition_note),
            *_scenarios(result),
        ),
        details=(
            (
                "All settings of the solvers",
                "\n".join(f"{s.name}: {use_text(s.solver, full=True)}" for s in study.stages),
            ),
        ),
        notes=tuple(sentence(remark.removesuffix(".")) for remark in recorded_remarks(result.path)),
    )


def _stages(result: Result, repetition_note: str) -> Table:
    """The stages with the settings of their solvers that differ from the defaults."""
    rows = [
        (
            stage_label(s, result.problem),
            use_text(s.solver),
            _start(s),
            _budget(s),
            len(result.designs_of(s.name)),
            int(np.sum(result.stage == s.name)),
        )
        for s in result.study.stages
    ]
    columns, lines = with_a_value(("stage", "solver", "starts from", "budget", "asked for", "new designs"), rows)
    first = "A design proposed by several stages counts for the first one." if len(rows) > 1 else ""
    return Table("Stages", columns, lines, note=" ".join(filter(None, (first, repetition_note))))


def _parameters(result: Result) -> tuple[Table, ...]:
    """The space, if any."""
    space = result.problem.space
    if not space.parameters:
        return ()
    conditional = any(p.when for p in space.parameters)
    head = ("parameter", "range or value", "unit", "scale", *(("active when",) if conditional else ()))
    lists_designs = result.study.lists_designs
    rows = tuple(
        (
            p.name,
            (_listed_values(result, p) if lists_designs else "") or range_text(p),
            p.unit,
            _scale(p),
            *((_when(p),) if conditional else ()),
        )
        for p in space.parameters
    )
    note = "Relations: " + "; ".join(r.text for r in space.relations) if space.relations else ""
    return (Table("Parameters", *with_a_value(head, rows), visible_rows=60, note=note),)


def _aims(result: Result) -> tuple[Table, ...]:
    """Objectives and limits, if any."""
    problem = result.problem
    statements: list[tuple[Objective | StudyConstraint, str]]
    statements = [(o, f"{o.direction} {o.expression.text}") for o in problem.objectives]
    statements += [(c, limit_text(c)) for c in stated_constraints(problem)]
    in_scenarios = len(problem.scenarios) > 1
    rows = [(item.name, text, item.unit, *([use_text(item.over)] if in_scenarios else [])) for item, text in statements]
    head = ("name", "what", "unit", *(["over scenarios"] if in_scenarios else []))
    share = (
        f"When at most {number(100 * problem.missing)} % of the scenarios have no result, the others score a design."
    )
    note = share if problem.missing else ""
    return (Table("Objectives and limits", *with_a_value(head, rows), note=note),) if rows else ()


def _listed_values(result: Result, p: DesignVariable) -> str:
    """The values of a parameter in a list of designs; "" for more than `LISTED_VALUES`."""
    if p.kind not in ("real", "int"):
        return ""
    column = [free.name for free in result.problem.space.free].index(p.name)
    values = np.unique(result.outcomes.X[:, column])
    return ", ".join(number(float(v)) for v in values) if 0 < len(values) <= LISTED_VALUES else ""


def range_text(p: DesignVariable) -> str:
    if p.kind == "fixed":
        return f"{number(p.values[0])} (fixed)"
    if p.kind == "choice":
        return ", ".join(number(v) for v in p.values)
    return f"{number(p.low)} … {number(p.high)}"


def _scale(p: DesignVariable) -> str:
    return p.scale if p.kind == "real" else {"int": "integer", "choice": "choice", "fixed": ""}[p.kind]


def _when(p: DesignVariable) -> str:
    return " and ".join(f"{name} is {' or '.join(map(number, values))}" for name, values in p.when.items())


def limit_text(c: StudyConstraint) -> str:
    return _limit_text(c, "")


def limit_with_unit(c: StudyConstraint) -> str:
    """``stress ≤ 160 MPa``."""
    return _limit_text(c, f" {c.unit}" if c.unit else "")


def _limit_text(c: StudyConstraint, unit: str) -> str:
    if c.equals is not None:
        return f"{c.expression.text} = {number(c.equals)}{unit}"
    low = f"{number(c.minimum)}{unit} ≤ " if c.minimum is not None else ""
    high = f" ≤ {number(c.maximum)}{unit}" if c.maximum is not None else ""
    return f"{low}{c.expression.text}{high}"


def use_text(use: Use[Plugin], *, full: bool = False) -> str:
    """A plugin with those of its settings that are not at their defaults, or with all."""
    values = {k: v for k, v in use.settings.items() if _differs(use.plugin, k, v) or (full and v is not None)}
    settings = ", ".join(f"{k}: {value_text(v) if full else short_text(v)}" for k, v in values.items())
    return f"{use.plugin.name} ({settings})" if settings else use.plugin.name


def _differs(plugin: Plugin, name: str, value: Any) -> bool:
    field = plugin.settings.get(name)
    return field is None or value_text(field.default) != value_text(value)


def short_text(value: Any) -> str:
    """`value_text`, of a list of designs or other mappings their number."""
    if isinstance(value, (list, tuple)) and len(value) > 2 and all(isinstance(entry, Mapping) for entry in value):
        return f"[{len(value)} entries]"
    return value_text(value)


def value_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, InputFile):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        value = {f.name: entry for f in fields(value) if (entry := getattr(value, f.name)) is not None}
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {value_text(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, (list, tuple)) and len(value) > LISTED:
        return f"[{', '.join(value_text(v) for v in value[:LISTED])}, ... {len(value) - LISTED} more]"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(value_text(v) for v in value) + "]"
    return number(value)


def _start(stage: Stage) -> str:
    start = stage.start_from
    if start is None:
        return ""
    source = start.stage if start.stage is not None else f"store {start.store}"
    return f"{source}, {start.select} {'all' if start.count is None else start.count}"


def _budget(stage: Stage) -> str:
    limits = []
    if stage.budget.evaluations is not None:
        limits.append(plural(stage.budget.evaluations, "design"))
    if stage.budget.wall is not None:
        limits.append(duration(stage.budget.wall))
    gain = stage.budget.hypervolume
    if gain is not None:
        over = plural(gain.over_generations, "generation")
        limits.append(f"until the hypervolume grows by less than {number(gain.gain_below)} over {over}")
    return ", ".join(limits) or "as many as the solver proposes"


def _scenarios(result: Result) -> tuple[Table, ...]:
    scenarios = result.problem.scenarios
    return (scenario_table(result, "Scenarios", scenarios),) if len(scenarios) > 1 else ()


def scenario_table(result: Result, title: str, scenarios: Sequence[Scenario]) -> Table:
    """The values of scenarios, a row each; a column each where they are fewer than their many conditions."""
    names = sorted({name for s in scenarios for name in s.values})
    fields = result.problem.model.plugin.conditions or {}
    units = {n: f.quantity.unit for n, f in fields.items() if f.quantity is not None}
    cells = [["scenario", *(with_unit(n, units.get(n, "")) for n in names)]]
    cells += [[s.name, *(value_text(s.values.get(n, "")) for n in names)] for s in scenarios]
    if len(scenarios) < len(names) > _MANY_CONDITIONS:
        cells = [list(column) for column in zip(*cells, strict=True)]
    head, *rows = cells
    return Table(title, tuple(head), tuple(tuple(row) for row in rows))
