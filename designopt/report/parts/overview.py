"""Report parts `overview` (the question and what was spent) and `record` (what was recorded, by which versions)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from designopt.plugin import InputFile, Plugin, Use, report
from designopt.report.labels import count, figure_meaning, figure_unit, listed, number, plural, with_unit
from designopt.report.parts.failures import invalid_designs
from designopt.report.parts.limits import sentence
from designopt.report.parts.tolerances import fragile
from designopt.report.section import Section, Table
from designopt.store.result import Result

if TYPE_CHECKING:
    from designopt.study.study import Constraint, Parameter, Stage

#: More parameters than this are not named in the question.
TOLD = 8
#: Of a longer list in a setting the first elements are shown.
LISTED = 30


@report("overview", version=1)
def overview(result: Result) -> Section:
    """The question, the problem in tables, and what was spent on it."""
    study, problem = result.study, result.problem
    done = result.outcomes
    evaluated = int(np.sum(~done.invalid))
    invalid = invalid_designs(result)
    failed = int(np.sum(done.failed & ~invalid))
    front = result.front()
    best = "on the Pareto front" if len(problem.objectives) > 1 else "best designs"
    facts = [
        ("distinct designs", count(len(done))),
        ("evaluations", count(result.counts["evaluations"])),
        ("feasible designs", count(int(np.sum(done.feasible)))),
        *(((best, count(len(front))),) if problem.objectives else ()),
        ("failed designs", count(failed)),
        *_incomplete(result),
        *((("invalid designs", count(int(invalid.sum()))),) if invalid.any() else ()),
        ("computing time", duration(computing_time(result))),
    ]
    repeated = result.counts["points"] - len(done)
    # A running batch is asked for before it is done; only then are there fewer designs without any being repeated.
    saved = (
        f"{count(repeated)} of {count(result.counts['points'])} designs were asked for again and not computed again."
        if repeated > 0 and result.ended == "done"
        else ""
    )
    findings = []
    if not len(done):
        findings.append("Nothing has been evaluated yet.")
    elif not evaluated:
        findings.append("Every design that was asked for breaks a relation of the space; none was evaluated.")
    else:
        findings += [sentence(clause) for clause in fragile(result)]
    if evaluated and not done.feasible.any():
        findings.append("No feasible design was found." if problem.objectives else _nothing(result))
    return Section(
        title="Overview",
        introduction="\n\n".join(filter(None, [study.description, _question(result)])),
        facts=tuple(facts),
        findings=tuple(findings),
        tables=(
            *_parameters(result),
            *_aims(result),
            Table(
                "Stages",
                ("stage", "solver", "starts from", "budget", "asked for", "new designs"),
                tuple(
                    (s.name, _use(s.solver), _start(s), _budget(s), _asked(result, s.name), _count(result, s.name))
                    for s in study.stages
                ),
                note="A design that several stages asked for counts where it was asked for first."
                + (f" {saved}" if saved else ""),
            ),
            *_scenarios(result),
        ),
    )


def _incomplete(result: Result) -> tuple[tuple[str, str], ...]:
    """How many designs are scored without some of their scenarios, where the study allows that."""
    if not result.problem.missing:
        return ()
    some = int(np.sum((result.missing > 0) & ~result.outcomes.failed))
    return (("scored without some scenarios", count(some)),)


def _parameters(result: Result) -> tuple[Table, ...]:
    """The space, where there is one."""
    space = result.problem.space
    if not space.parameters:
        return ()
    conditional = any(p.when for p in space.parameters)
    head = ("parameter", "range or value", "unit", "scale", *(("active when",) if conditional else ()))
    rows = tuple(
        (p.name, range_text(p), p.unit, _scale(p), *((_when(p),) if conditional else ())) for p in space.parameters
    )
    note = "Relations: " + "; ".join(r.text for r in space.relations) if space.relations else ""
    return (Table("Parameters", head, rows, shown=60, note=note),)


def _aims(result: Result) -> tuple[Table, ...]:
    """Objectives and limits, where there are any."""
    problem = result.problem
    rows = [(o.name, f"{o.direction} {o.expression.text}", o.unit, _use(o.over)) for o in problem.objectives]
    rows += [(c.name, limit_text(c), c.unit, _use(c.over)) for c in problem.constraints]
    head = ("name", "what", "unit", "over scenarios")
    share = (
        f"When at most {number(100 * problem.missing)} % of the scenarios have no result, the others score a design."
    )
    return (Table("Objectives and limits", head, tuple(rows), note=share if problem.missing else ""),) if rows else ()


def _nothing(result: Result) -> str:
    """Why an analysis has no design with a result."""
    if result.outcomes.failed.all():
        return "No evaluation gave a result; the failures say why."
    return "No design keeps all limits."


@report("record", version=1)
def record(result: Result) -> Section:
    """What was recorded, by which model settings, sessions and versions, and the study file."""
    study, problem = result.study, result.problem
    settings = tuple((name, value_text(value)) for name, value in problem.model.settings.items())
    return Section(
        title="Record",
        introduction=f"Model {problem.model.plugin.name}, version {problem.model.plugin.version}; seed {study.seed}; "
        f"problem {problem.digest[:12]}.",
        tables=(
            Table(
                "Figures recorded for every evaluation",
                ("figure", "unit", "meaning"),
                tuple((n, figure_unit(problem, n), figure_meaning(problem, n)) for n in problem.output_names),
                shown=100,
            ),
            *((Table("Settings of the model", ("setting", "value"), settings, shown=100),) if settings else ()),
            *_sessions(result),
        ),
        details=(("The study file", study.text),) if study.text else (),
    )


def computing_time(result: Result) -> float:
    """Seconds that evaluations and programs took, added over the workers."""
    return float(np.nansum(result.wall)) + sum(program.wall for program in result.programs())


def duration(seconds: float) -> str:
    """A time span in the unit that suits it."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{number(seconds / size, 3)} {unit}"
    return f"{number(seconds, 3)} s"


def _question(result: Result) -> str:
    problem = result.problem
    aims = [f"{o.direction} {o.name}" for o in problem.objectives]
    held = f", within {plural(len(problem.constraints), 'limit')}" if problem.constraints else ""
    where = f" in {plural(len(problem.scenarios), 'scenario')}" if len(problem.scenarios) > 1 else ""
    if not problem.objectives:
        given = f" for {plural(len(result.outcomes), 'design')}" if problem.space.free else ""
        return f"What does {problem.model.plugin.name} give{given}{where}{held}?"
    names = [p.name for p in problem.space.free]
    free = listed(names) if len(names) <= TOLD else f"{len(names)} parameters"
    return f"Which {free} of {problem.model.plugin.name} {listed(aims)}{held}{where}?"


def range_text(p: Parameter) -> str:
    if p.kind == "fixed":
        return f"{number(p.values[0])} (fixed)"
    if p.kind == "choice":
        return ", ".join(number(v) for v in p.values)
    return f"{number(p.low)} … {number(p.high)}"


def _scale(p: Parameter) -> str:
    return p.scale if p.kind == "real" else {"int": "whole numbers", "choice": "choice", "fixed": ""}[p.kind]


def _when(p: Parameter) -> str:
    return " and ".join(f"{name} is {' or '.join(map(number, values))}" for name, values in p.when.items())


def limit_text(c: Constraint) -> str:
    if c.equals is not None:
        return f"{c.expression.text} = {number(c.equals)}"
    low = f"{number(c.minimum)} ≤ " if c.minimum is not None else ""
    high = f" ≤ {number(c.maximum)}" if c.maximum is not None else ""
    return f"{low}{c.expression.text}{high}"


def _use(use: Use[Plugin]) -> str:
    settings = ", ".join(f"{k}: {value_text(v)}" for k, v in use.settings.items())
    return f"{use.plugin.name} ({settings})" if settings else use.plugin.name


def value_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, InputFile):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {value_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)) and len(value) > LISTED:
        return f"[{', '.join(value_text(v) for v in value[:LISTED])}, ... {len(value) - LISTED} more]"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(value_text(v) for v in value) + "]"
    return number(value)


def _start(stage: Stage) -> str:
    start = stage.start_from
    if start is None:
        return ""
    where = start.stage if start.stage is not None else f"store {start.store}"
    return f"{where}, {start.select} {'all' if start.count is None else start.count}"


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
    return ", ".join(limits) or "as many as the solver asks for"


def _asked(result: Result, stage: str) -> int:
    return len(result.asked(stage))


def _count(result: Result, stage: str) -> int:
    return int(np.sum(result.stage == stage))


def _scenarios(result: Result) -> tuple[Table, ...]:
    scenarios = result.problem.scenarios
    if len(scenarios) < 2:
        return ()
    names = sorted({name for s in scenarios for name in s.values})
    fields = result.problem.model.plugin.conditions or {}
    units = {n: f.quantity.unit for n, f in fields.items() if f.quantity is not None}
    rows = tuple((s.name, *(value_text(s.values.get(n, "")) for n in names)) for s in scenarios)
    return (Table("Scenarios", ("scenario", *(with_unit(n, units.get(n, "")) for n in names)), rows),)


def _sessions(result: Result) -> tuple[Table, ...]:
    """The processes that worked on the store, and the versions of the packages they used."""
    sessions = result.sessions
    if not sessions:
        return ()
    rows = []
    versions: dict[str, list[str]] = {}
    for k, session in enumerate(sessions):
        started, ended = session.get("started"), session.get("ended")
        revision = str(session.get("revision") or "")[:12] + (" with changes" if session.get("dirty") else "")
        rows.append(
            (
                datetime.fromtimestamp(started).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z") if started else "",
                duration(ended - started) if started and ended else "not ended",
                str(session.get("reason") or ""),
                str(session.get("host") or ""),
                f"{session.get('executor') or ''}, {plural(int(session.get('workers') or 1), 'worker')}",
                revision.strip(),
            )
        )
        for package, version in (session.get("versions") or {}).items():
            versions.setdefault(str(package), [""] * len(sessions))[k] = str(version)
    head = ("started", "took", "ended because", "host", "executor", "source revision")
    numbered = ("version",) if len(sessions) == 1 else tuple(f"session {k}" for k in range(1, len(sessions) + 1))
    return (
        Table("Sessions", head, tuple(rows)),
        Table("Versions", ("package", *numbered), tuple((name, *v) for name, v in sorted(versions.items()))),
    )
