"""Report part `programs`: status of the trajectory programs, their optima and parameters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from designopt.counts import plural
from designopt.plugin import report_part
from designopt.report.labels import number, with_unit
from designopt.report.notable import OF_MODEL, diagnosis, first_of_each_kind
from designopt.report.parts.motion.trajectories import (
    DrawnProgram,
    best_of_each,
    drawn_programs,
    fixed,
    program_words,
)
from designopt.report.section import Section, Table, with_a_value
from designopt.store.result import Result

if TYPE_CHECKING:
    from designopt.problem import Problem
    from designopt.store.views.programs import ProgramRecord

#: Significant digits of optima, as of published values.
DIGITS = 6
#: Maximum number of shown messages.
MESSAGES = 50
#: Relative difference below which objectives belong to the same optimum.
SAME = 1e-6
#: The same as a share of the error estimate of the best program.
SAME_ERROR = 0.01


@report_part("programs", version=1)
def programs(result: Result) -> Section | None:
    """Status, parameters and error of each program."""
    records = result.programs()
    if not records:
        return None
    shown_programs = drawn_programs(result)
    return Section(
        "Programs",
        introduction="Each program is one solve of the trajectories and the free parameters together, by direct "
        "collocation.",
        facts=_facts(records, result.best_program(), result.problem.objectives[0].unit),
        findings=(
            *_findings(records, result.best_program()),
            *(f"{text[0].upper()}{text[1:]}." for text in diagnosis(result)),
        ),
        tables=(
            *_optima(records, best_of_each(result), result.problem),
            _outcomes(records, best_of_each(result), result.problem),
            *_parameters(shown_programs, result.problem),
            *_deviations(shown_programs),
        ),
        details=(
            *((f"Program {program_words(result.problem, r, n)}", r.message) for n, r in _with_messages(records)),
            *_further_warnings(result.best_program()),
            *((("How the model is written", hints),) if (hints := _hints(result.best_program())) else ()),
        ),
    )


def _facts(records: Sequence[ProgramRecord], best: ProgramRecord | None, unit: str) -> tuple[tuple[str, str], ...]:
    ends = Counter(record.status for record in records)
    facts = [("programs", str(len(records))), *((status, str(count)) for status, count in ends.most_common())]
    if best is not None:
        facts += [("best objective", f"{number(_figure(best, 'objective'), DIGITS)} {unit}".rstrip())]
        facts += [("error estimate", number(_figure(best, "error_estimate")))]
    return tuple(facts)


def _figure(record: ProgramRecord, name: str) -> float:
    """A recorded number of a program, available without reading its trajectories; NaN without one."""
    return record.figures.get(f"program({name})", math.nan)


def _findings(records: Sequence[ProgramRecord], best: ProgramRecord | None) -> list[str]:
    sentences = []
    objectives = [_figure(r, "objective") for r in records if r.ok and not fixed(r)]
    if len(objectives) > 1:
        low, high = min(objectives), max(objectives)
        same = max(SAME, SAME_ERROR * _figure(best, "error_estimate")) if best is not None else SAME
        if high - low > same * max(abs(low), abs(high)):
            sentences.append(
                f"{plural(len(objectives), 'start')} ended in different local optima: objectives from "
                f"{number(low, DIGITS)} to {number(high, DIGITS)}."
            )
        else:
            sentences.append(f"{plural(len(objectives), 'start')} ended in the same optimum, {number(low, DIGITS)}.")
    if best is not None and best.solution is not None:
        sentences += [f"{text.rstrip('.')}." for text in first_of_each_kind(_warnings(best))[0]]
    failures = [r for r in records if not r.ok]
    if failures:
        sentences.append(
            f"{plural(len(failures), 'program')} of {len(records)} failed; the last lines give the reasons."
        )
    return sentences


def _warnings(best: ProgramRecord | None) -> list[str]:
    """The warnings that concern the result of the best program."""
    warnings = () if best is None or best.solution is None else best.solution.warnings
    return [text for text in warnings if not text.startswith(OF_MODEL)]


def _further_warnings(best: ProgramRecord | None) -> tuple[tuple[str, str], ...]:
    """The warnings after the first of their kind, folded."""
    further = first_of_each_kind(_warnings(best))[1]
    return ((f"{len(further)} more warnings", "\n".join(further)),) if further else ()


def _hints(best: ProgramRecord | None) -> str:
    """Hints for the author of the model, a line each."""
    warnings = () if best is None or best.solution is None else best.solution.warnings
    return "\n".join(text for text in warnings if text.startswith(OF_MODEL))


def _with_messages(records: Sequence[ProgramRecord]) -> list[tuple[int, ProgramRecord]]:
    """The programs whose messages are shown, with their numbers: those without a result, or the only one."""
    messages = [(n, record) for n, record in enumerate(records, start=1) if record.message]
    return [(n, record) for n, record in messages if not record.ok or len(records) == 1][:MESSAGES]


def _optima(records: Sequence[ProgramRecord], best: Mapping[int, int], problem: Problem) -> tuple[Table, ...]:
    """The results of a sweep: the best program of each of its points."""
    if len(best) < 2:
        return ()
    optima = [records[i] for i in sorted(best)]
    units = {p.name: p.unit for p in problem.space.parameters} | {"objective": problem.objectives[0].unit}
    names = [name for name in fixed(optima[0]) if len({str(fixed(record).get(name)) for record in optima}) > 1]
    free_names = [name for name in optima[0].start if name not in fixed(optima[0])]
    rows = [
        (
            *(fixed(records[i]).get(name, "–") for name in names),
            _figure(records[i], "objective"),
            *(records[i].figures.get(f"optimum({name})", math.nan) for name in free_names),
            i + 1,
        )
        for i in sorted(best)
    ]
    columns = [with_unit(name, units.get(name, "")) for name in (*names, "objective", *free_names)]
    return (Table("The best of each point", (*columns, "program"), tuple(rows), digits=DIGITS),)


def _outcomes(records: Sequence[ProgramRecord], best: Mapping[int, int], problem: Problem) -> Table:
    rows, units = [], {p.name: p.unit for p in problem.space.parameters}
    for i, record in enumerate(records):
        values = fixed(record).items()
        at = ", ".join(f"{name} {number(value)} {units.get(name, '')}".rstrip() for name, value in values)
        rows.append((
            i + 1, record.stage, at, record.status, _figure(record, "objective") if record.ok else math.nan,
            _figure(record, "iterations"), _rounded(_figure(record, "error_estimate")),
            _rounded(_figure(record, "resimulation_error")), _rounded(record.wall),
        ))  # fmt: skip
    objective = with_unit("objective", problem.objectives[0].unit)
    head = ("program", "stage", "fixed at", "status", objective, "iterations", "error estimate",
            "re-simulation error", "took [s]")  # fmt: skip
    note = (
        "Highlighted: the best of its point. Points solved from several starts or verified cold are listed repeatedly."
    )
    best_rows = frozenset(best) if len(best) < len(records) else frozenset()
    columns, lines = with_a_value(head, rows)
    return Table("Outcomes", columns, lines, note=note if best_rows else "", marked=best_rows, digits=DIGITS)


def _rounded(value: float) -> float:
    """An error or a time with the digits that it has."""
    return float(f"{value:.3e}")


def _parameters(programs: Sequence[DrawnProgram], problem: Problem) -> tuple[Table, ...]:
    """Values, bounds and multipliers in the units of the study; a multiplier whose effect is below `SAME` is 0."""
    rows, of_study = [], {p.name: p for p in problem.space.parameters}
    for program in programs:
        s = program.solution
        for name, value in s.parameters.items():
            low, high = s.parameter_bounds[name]
            if low == high:
                continue
            at = {"low": "lower bound", "high": "upper bound"}.get(s.at_bound[name], "")
            multiplier, p = s.parameter_multipliers[name], of_study.get(name)
            effect = abs(multiplier) * (high - low)
            multiplier = 0.0 if effect <= SAME * abs(_figure(program.record, "objective")) else _rounded(multiplier)
            unit = s.parameter_units.get(name, "")
            if p is not None:
                value, low, high = ((v - p.offset) / p.factor for v in (value, low, high))
                multiplier, unit = p.factor * multiplier, p.unit
            rows.append((program.number, with_unit(name, unit), value, low, high, at, multiplier))
    if not rows:
        return ()
    head = ("program", "parameter", "value", "lower bound", "upper bound", "at", "multiplier")
    columns, lines = with_a_value(head, rows)
    note = "For the drawn programs." if len(programs) > 1 else ""
    return (Table("Static parameters", columns, lines, note=note, digits=DIGITS),)


def _deviations(programs: Sequence[DrawnProgram]) -> tuple[Table, ...]:
    """Standard deviations of each optimum due to the study's uncertain numbers."""
    rows: list[tuple[Any, ...]] = []
    free_names: list[str] = []
    for program in programs:
        figures = program.record.figures
        free_names = free_names or [n for n in program.record.start if f"deviation(optimum({n}))" in figures]
        results = ["objective", *(f"optimum({name})" for name in free_names)]
        for key, deviation in figures.items():
            name = key.removeprefix("deviation(")[:-1]
            if key.startswith("deviation(") and name not in results:
                slopes = (figures.get(f"d({result})/d({name})", math.nan) for result in results)
                rows.append((program.number, name, deviation, *slopes))
        if "deviation(objective)" in figures:
            deviations = (figures.get(f"deviation({result})", math.nan) for result in results)
            rows.append((program.number, "standard deviation of the optimum", "–", *deviations))
    if not rows:
        return ()
    columns = ("program", "number", "its deviation", "d objective", *(f"d {name}" for name in free_names))
    note = (
        "Derivatives of the optimum by each number, in the model's unit, and the standard deviation "
        "of the optimum due to all of them, to first order. The program is optimised again for every "
        "value."
    )
    return (Table("Sensitivity of the optimum", columns, tuple(rows), note=note),)
