"""Report part `trajectories`: the motions found by programs, with their active limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Quantity, report_part
from designopt.report.colours import axis, bare_layout, caption, category, upright_line
from designopt.report.labels import number, per, plain, with_unit
from designopt.report.parts.motion.plane_path import ENDS, SAMPLES, Obstacle, path_names, plane
from designopt.report.parts.motion.time_unit import in_time_unit, time_unit
from designopt.report.section import Figure, Section, Selector, Table, with_a_value
from designopt.report.traces import above, constant_axis, trace
from designopt.store.result import Result

if TYPE_CHECKING:
    from designopt.collocation.solution.solution import PhaseSolution, Solution
    from designopt.problem import Problem
    from designopt.store.views.programs import ProgramRecord
    from designopt.study.study import Objective

#: Size below which the residual of an equation is that of the solver.
RESIDUAL = 1e-8
#: Significant digits of a constant on its axis.
CONSTANT_DIGITS = 5
#: States beside the answer.
IN_SHORT = 3
#: Share of the largest effect of a costate below which a change of one is an error of the solver.
COSTATE_ERROR = 1e-5
#: Share of the largest value of all curves up to which a curve is zero.
_ZERO = 1e-12
#: Share of the largest value of a costate up to which one at an end is 0.
NO_COSTATE = 1e-6
#: Maximum number of drawn programs.
DRAWN = 12


@report_part("trajectories", version=2)
def trajectories(
    result: Result,
    *,
    path: Annotated[
        list[str] | None, Quantity("", "two variables that are drawn against each other; default: x and y")
    ] = None,
    obstacles: Annotated[list[Obstacle] | None, Quantity("", "circles and polygons beside the path")] = None,
) -> Section | None:
    """States, controls and algebraic variables of each program over time, with bounds, multipliers and costates; the
    path of a point in the plane."""
    programs = drawn_programs(result)
    if not programs:
        return None
    choices = program_choice(programs)
    label = "" if choices and programs[0].record.ok else label_of_motion(result, programs[0])  # the choices say it
    figures = []
    if names := path_names(programs[0].solution, path):
        plots = [plane(p.solution, names, obstacles or []) for p in programs]
        figures.append(choosable(f"Path of {names[0]} and {names[1]}", plots, choices, 460, ENDS))
    unit, size = time_unit(phase for program in programs for phase in program.solution.phases.values())
    for group in _timelines(programs[0].solution):
        phases = [[program.solution.phases[name] for name in group] for program in programs]
        only = len(programs[0].solution.phases) == len(group)
        figures += [
            in_time_unit(figure, unit, size)
            for figure in _figures_over_time(phases, choices, only, result.problem.objectives[0])
        ]
    return Section(
        "Trajectories",
        introduction="Optimal motions of the programs, evaluated with the polynomials of their schemes. Limits "
        "are dashed.",
        figures=tuple(replace(figure, title=f"{figure.title}{label}") for figure in figures),
        tables=(*_activity(programs), *_end_costates(programs, result.problem.objectives[0])),
        findings=tuple(
            f"Program {program.number} has no result ({program.record.status}): its last iterate is drawn."
            for program in programs
            if not program.record.ok
        ),
        notes=(f"Of {len(result.programs())} programs {len(programs)} are drawn, the best ones first.",)
        if len(programs) < len(result.programs())
        else (),
    )


def in_short(result: Result, height: int) -> tuple[Figure, ...]:
    """The first states of the best program over time, for the beginning of a page; none without programs."""
    programs = drawn_programs(result)
    if not programs or not programs[0].record.ok:
        return ()
    phases = [programs[0].solution.phases[name] for name in _timelines(programs[0].solution)[0]]
    names = list(dict.fromkeys(name for phase in phases for name in phase.of_kind("state")))[:IN_SHORT]
    title = f"Trajectories: first states{label_of_motion(result, programs[0])}"
    figure = Figure(title, _values_to_draw(phases, names), height=height)
    return (in_time_unit(figure, *time_unit(phases)),) if names else ()


def label_of_motion(result: Result, program: DrawnProgram) -> str:
    """The end of the title of a figure whose first motion, of `program`, is not that of the answer's number: the last
    iterate of a failed program, or a better motion than that of the model's evaluation; else ""."""
    if not program.record.ok:
        return ", last iterate of a program that is not solved"
    value = program.record.figures.get("program(objective)")
    if value not in result.better_motions.values():
        return ""
    objective = result.problem.objectives[0]
    return f", motion of the program ({objective.name} {number(value, 6)} {objective.unit}".rstrip() + ")"


def _timelines(solution: Solution) -> list[list[str]]:
    """Names of the phases, those that follow each other in time together."""
    groups: list[list[str]] = []
    end = math.nan
    for name, phase in solution.phases.items():
        if groups and abs(phase.t0 - end) <= 1e-9 * max(1.0, abs(end)):
            groups[-1].append(name)
        else:
            groups.append([name])
        end = phase.tf
    return groups


def _figures_over_time(
    phases: Sequence[Sequence[PhaseSolution]], choices: tuple[Selector, ...], only: bool, objective: Objective
) -> list[Figure]:
    """The figures of one timeline, whose phases are given for each program; `only` if there is no other."""
    first = phases[0]
    title = "" if only else f" of {first[0].name}" if len(first) == 1 else f" from {first[0].name} to {first[-1].name}"
    figures = []
    for kinds, words in ((("state",), "States"), (("control", "algebraic", "unknown"), "Controls")):
        names = list(dict.fromkeys(n for phase in first for kind in kinds for n in phase.of_kind(kind)))  # type: ignore[arg-type]
        if names:
            shown_names, zero_note = _without_zeros(names, [phase.values for several in phases for phase in several])
            plots = [_values_to_draw(several, shown_names) for several in phases]
            note = f"{_note(first)}{zero_note}"
            figures.append(choosable(f"{words}{title}", plots, choices, 150 * len(shown_names) + 60, note))
    names = list(dict.fromkeys(n for phase in first for n in phase.path))
    satisfied_names = [name for name in names if all(_holds(phase, name) for several in phases for phase in several)]
    if path_names := [name for name in names if name not in satisfied_names]:
        shown_names, zero_note = _without_zeros(path_names, [phase.path for several in phases for phase in several])
        plots = [_path(several, shown_names) for several in phases]
        note = (
            f"Equations that hold within {RESIDUAL:g} are not drawn: {', '.join(satisfied_names)}."
            if satisfied_names
            else ""
        )
        note = f"{note}{zero_note}".strip()
        figures.append(choosable(f"Path constraints{title}", plots, choices, 150 * len(shown_names) + 60, note))
    if names := [n for n in dict.fromkeys(n for phase in first for n in phase.costates) if _is_finite(first, n)]:
        shown_names, zero_note = _without_zeros(names, [phase.costates for several in phases for phase in several])
        plots = [_costates(several, shown_names, objective.unit) for several in phases]
        note = (
            _COSTATES.format("objective" if objective.sign > 0.0 else "minimised cost, minus the objective,")
            + zero_note
        )
        figures.append(choosable(f"Costates{title}", plots, choices, 150 * len(shown_names) + 60, note))
    return figures


def _without_zeros(names: Sequence[str], values: Sequence[Mapping[str, Floats]]) -> tuple[list[str], str]:
    """The names of curves that are not zero in all of `values`, and a sentence on the others; all names where all are.

    Zero is what rounding makes of it beside the largest of all curves.
    """
    sizes = {name: max(float(np.nanmax(np.abs(v[name]), initial=0.0)) for v in values if name in v) for name in names}
    zero_names = [name for name, size in sizes.items() if size <= _ZERO * max(sizes.values())]
    if not zero_names or len(zero_names) == len(names):
        return list(names), ""
    return [name for name in names if name not in zero_names], f" Zero throughout: {', '.join(zero_names)}."


def _holds(phase: PhaseSolution, name: str) -> bool:
    """Whether a path constraint is an equation of a phase whose residual is that of the solver."""
    low, high = phase.path_limits.get(name, (-np.inf, np.inf))
    return name not in phase.path or (low == high and bool(np.abs(phase.path[name] - low).max() < RESIDUAL))


def _is_finite(phases: Sequence[PhaseSolution], name: str) -> bool:
    return any(bool(np.isfinite(phase.costates[name]).any()) for phase in phases if name in phase.costates)


def _note(phases: Sequence[PhaseSolution]) -> str:
    """The note of a figure over time."""
    if len(phases) == 1:
        return _COURSES
    unit, size = time_unit(phases)
    spans = ", ".join(f"{phase.name} from {number(phase.t0 / size)} {unit}" for phase in phases)
    return f"{_COURSES} Dotted lines separate the phases: {spans}."


_COURSES = "Dots are the nodes of the mesh."
_COSTATES = "Derivatives of the {} by the states at each time: multipliers of the defects over the quadrature weights."


@dataclass(frozen=True)
class DrawnProgram:
    """A drawn program: its number among all, from 1, its record, its solution and its text for a selector."""

    number: int
    record: ProgramRecord
    solution: Solution
    words: str


def drawn_programs(result: Result) -> list[DrawnProgram]:
    """The drawn programs: the best of each point of a sweep, then the others, failed ones last.

    All have the phases of the first, which is the best of all.
    """
    records = list(enumerate(result.programs(), start=1))
    best = best_of_each(result)
    records.sort(key=lambda item: (not item[1].ok, item[0] - 1 not in best, best.get(item[0] - 1, 0)))
    programs: list[DrawnProgram] = []
    for n, record in records:
        if len(programs) == DRAWN:
            break
        solution = record.solution
        if solution is not None and (not programs or set(solution.phases) == set(programs[0].solution.phases)):
            programs.append(DrawnProgram(n, record, solution, program_words(result.problem, record, n)))
    return programs


def best_of_each(result: Result) -> dict[int, int]:
    """The rank of the best of all programs with the same fixed values, by its index in `result.programs()`."""
    if not result.programs():
        return {}
    sign = result.problem.objectives[0].sign
    best: dict[tuple[Any, ...], tuple[float, int]] = {}
    for i, record in enumerate(result.programs()):
        value = sign * record.figures.get("program(objective)", np.nan)
        point = tuple(sorted((name, str(v)) for name, v in fixed(record).items()))
        if record.ok and (point not in best or value < best[point][0]):
            best[point] = (value, i)
    return {i: rank for rank, (_, i) in enumerate(sorted(best.values()))}


def program_choice(programs: Sequence[DrawnProgram]) -> tuple[Selector, ...]:
    """A selector of the programs; none for a single one."""
    return (Selector("Program", tuple(program.words for program in programs)),) if len(programs) > 1 else ()


def fixed(record: ProgramRecord) -> dict[str, Any]:
    """The parameters that a program fixed at a value: those not released."""
    return {name: value for name, value in record.start.items() if f"optimum({name})" not in record.figures}


def program_words(problem: Problem, record: ProgramRecord, n: int) -> str:
    """A program in words: its number, fixed values, status and objective."""
    units = {p.name: p.unit for p in problem.space.parameters}
    at = ", ".join(f"{name} {number(value)} {units.get(name, '')}".rstrip() for name, value in fixed(record).items())
    value = f", {number(record.figures['program(objective)'], 6)} {problem.objectives[0].unit}" if record.ok else ""
    value = value.rstrip()
    return f"{n}{f': {at}' if at else ''} ({record.status}{value})"


def choosable(
    title: str, plots: Sequence[Mapping[str, Any]], choices: tuple[Selector, ...], height: int, note: str
) -> Figure:
    """A figure with one plot for each program."""
    variants: dict[tuple[int, ...], Mapping[str, Any]] = {(i,): p for i, p in enumerate(plots)} if choices else {}
    return Figure(title, plots[0], height=height, choices=choices, variants=variants, note=note)


def stacked(rows: Sequence[tuple[str, str, Sequence[dict[str, Any]]]], least: Sequence[float] = ()) -> dict[str, Any]:
    """Plots one above the other over time: (name, unit, traces) each. Changes below `least`, one per plot, are
    errors."""
    m = len(rows)
    domains = above(m, 0.25 / m)
    data: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    axes: dict[str, Any] = {"xaxis": axis("time [s]", anchor=f"y{m}" if m > 1 else "y")}
    for j, (name, unit, traces) in enumerate(rows):
        suffix = "" if j == 0 else str(j + 1)
        values = [np.asarray(curve["y"], dtype=float) for curve in traces]
        steady = constant_axis(np.concatenate(values), CONSTANT_DIGITS, least[j] if least else 0.0) if values else {}
        axes[f"yaxis{suffix}"] = axis("", domain=domains[j], **(steady or {"nticks": 5}))
        data += [{**curve, "yaxis": f"y{suffix}"} for curve in traces]
        notes.append(caption(f"<b>{plain(with_unit(name, unit))}</b>", 0, domains[j][1], font={"size": 12}))
    return {"data": data, "layout": bare_layout(**axes, annotations=notes)}


def line(x: Floats, y: Floats, colour: str, **attributes: Any) -> dict[str, Any]:
    """A curve."""
    return trace(x, y, colour=colour, width=2, hover="%{x:.4~g}: <b>%{y:.5~g}</b>", **attributes)


def _limits(times: Floats, low: float, high: float, all_values: Floats) -> list[dict[str, Any]]:
    """Dashed lines at the limits of a phase that are near the values of all phases."""
    span = float(np.ptp(all_values)) or abs(float(all_values[0])) or 1.0
    near = [
        limit
        for limit in (low, high)
        if np.isfinite(limit) and float(all_values.min()) - 2 * span <= limit <= float(all_values.max()) + 2 * span
    ]
    style = {"color": "@mark", "width": 1, "dash": "dash"}
    return [line(times[[0, -1]], np.array([limit, limit]), "@mark", line=style, hoverinfo="skip") for limit in near]


def _values_to_draw(phases: Sequence[PhaseSolution], names: Sequence[str]) -> dict[str, Any]:
    """Variables over the time of one or several phases."""
    rows: list[tuple[str, str, list[dict[str, Any]]]] = []
    fine = []
    for phase in phases:
        times = np.linspace(phase.t0, phase.tf, SAMPLES)
        fine.append((phase, times, phase.interpolate(times)))
    for j, name in enumerate(names):
        traces, unit = [], ""
        all_values = np.concatenate([values[name] for _, _, values in fine if name in values])
        for phase, times, values in fine:
            if name not in phase.values:
                continue
            unit, nodes = phase.units.get(name, ""), phase.mesh.bases
            marker = {"size": 3, "color": category(j)}
            dots = trace(phase.times[nodes], phase.values[name][nodes], mode="markers", marker=marker)
            limits = _limits(times, *phase.bounds[name], all_values)
            traces += [*limits, line(times, values[name], category(j)), dots]
        rows.append((name, unit, traces))
    return _with_changes(stacked(rows), phases)


def _with_changes(plot: dict[str, Any], phases: Sequence[PhaseSolution]) -> dict[str, Any]:
    """The plot with a dotted line at each change of phase."""
    lines = [upright_line(phase.t0, "@muted", "dot", xref="x") for phase in phases[1:]]
    return {**plot, "layout": {**plot["layout"], "shapes": lines}} if lines else plot


def _path(phases: Sequence[PhaseSolution], names: Sequence[str]) -> dict[str, Any]:
    rows = []
    for j, name in enumerate(names):
        traces = []
        all_values = np.concatenate([phase.path[name] for phase in phases if name in phase.path])
        for phase in phases:
            if name in phase.path:
                times, values = phase.times[phase.mesh.first :], phase.path[name]
                low, high = phase.path_limits.get(name, (-np.inf, np.inf))
                traces += [*_limits(times, low, high, all_values), line(times, values, category(j))]
        rows.append((name, "", traces))
    return _with_changes(stacked(rows), phases) if rows else {"data": [], "layout": {}}


def _costates(phases: Sequence[PhaseSolution], names: Sequence[str], unit: str) -> dict[str, Any]:
    rows = []
    for j, name in enumerate(names):
        traces = []
        for phase in phases:
            values = phase.costates.get(name, np.empty(0))
            is_finite = np.isfinite(values)
            if is_finite.any():
                traces.append(line(phase.times[is_finite], values[is_finite], category(j)))
        by = next((phase.units.get(name, "") for phase in phases if name in phase.costates), "")
        rows.append((name, per(unit, by), traces))
    return _with_changes(stacked(rows, _costate_errors(phases, names)), phases)


def _costate_errors(phases: Sequence[PhaseSolution], names: Sequence[str]) -> list[float]:
    """The change of each costate that is an error of the solver: its effect over the range of its state is a share
    `COSTATE_ERROR` of the largest effect of a costate."""
    sizes, ranges = [], []
    for name in names:
        costates = np.concatenate([phase.costates[name] for phase in phases if name in phase.costates])
        states = np.concatenate([phase.values[name] for phase in phases if name in phase.costates])
        sizes.append(float(np.abs(costates[np.isfinite(costates)]).max(initial=0.0)))
        ranges.append(float(np.ptp(states)))
    largest = max(size * span for size, span in zip(sizes, ranges, strict=True))
    return [COSTATE_ERROR * largest / span if span > 0.0 else 0.0 for span in ranges]


def _activity(programs: Sequence[DrawnProgram]) -> tuple[Table, ...]:
    """The share of the time that each limited variable and path constraint spends at its limits."""
    rows = []
    for program in programs:
        for name, phase, low, high in activity(program.solution):
            rows.append((program.number, phase, name, round(100.0 * low, 1), round(100.0 * high, 1)))
    table = Table(
        "Activity of limits",
        ("program", "phase", "variable", "time at the lower limit [%]", "at the upper limit [%]"),
        tuple(rows),
        note="A variable is at a limit within 1e-4 of the range between its limits, or of its size.",
    )
    return (table,) if rows else ()


def _end_costates(programs: Sequence[DrawnProgram], objective: Objective) -> tuple[Table, ...]:
    """The costates at the first and the last time at which they are known, to compare with published ones."""
    rows: list[tuple[Any, ...]] = []
    for program in programs:
        phases = program.solution.phases
        for phase_name, phase in phases.items():
            for name, values in phase.costates.items():
                finite = values[np.isfinite(values)]
                if len(finite):
                    labels = (program.number if len(programs) > 1 else "", phase_name if len(phases) > 1 else "", name)
                    unit = per(objective.unit, phase.units.get(name, ""))
                    size = NO_COSTATE * float(np.abs(finite).max())
                    ends = (float(value) if abs(value) > size else 0.0 for value in finite[[0, -1]])
                    rows.append((*labels, *ends, unit))
    columns, lines = with_a_value(("program", "phase", "costate of", "at the start", "at the end", "unit"), rows)
    note = "" if objective.sign > 0.0 else "Of the minimised cost, minus the objective."
    return (Table("Costates at the ends", columns, lines, digits=6, note=note),) if rows else ()


def activity(solution: Solution) -> list[tuple[str, str, float, float]]:
    """(variable, phase, share of time at the lower, at the upper limit) for each one active in some phase, in each
    phase that limits it."""
    shares = [
        (name, phase_name, at_low, at_high)
        for phase_name, phase in solution.phases.items()
        for name, (at_low, at_high) in (*phase.saturation.items(), *phase.path_saturation.items())
    ]
    active_names = {name for name, _, at_low, at_high in shares if at_low > 0.0 or at_high > 0.0}
    return [row for row in shares if row[0] in active_names]
