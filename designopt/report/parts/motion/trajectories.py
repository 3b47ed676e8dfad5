"""Report part `trajectories`: the motions found by programs, with their active limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import report
from designopt.report.colours import axis, bare_layout, category
from designopt.report.labels import number, plain, with_unit
from designopt.report.section import Figure, Section, Selector, Table
from designopt.report.traces import above
from designopt.store.result import Result

if TYPE_CHECKING:
    from designopt.collocation.solution.solution import PhaseSolution, Solution
    from designopt.store.views.programs import ProgramRecord

#: Maximum number of drawn programs.
DRAWN = 12
#: Points of a curve.
SAMPLES = 401


@report("trajectories", version=1)
def trajectories(result: Result) -> Section | None:
    """States, controls and algebraic variables of each program over time, with bounds, multipliers and costates."""
    programs = drawn_programs(result)
    if not programs:
        return None
    choices = program_choice(programs)
    figures = []
    first = programs[0].solution
    for name, phase in first.phases.items():
        of_phase = [program.solution.phases[name] for program in programs]
        title = "" if len(first.phases) == 1 else f" of {name}"
        for kinds, words in ((("state",), "States"), (("control", "algebraic", "unknown"), "Controls")):
            names = [n for kind in kinds for n in phase.of_kind(kind)]  # type: ignore[arg-type]
            if not names:
                continue
            plots = [_values_to_draw(p, names) for p in of_phase]
            figures.append(choosable(f"{words}{title}", plots, choices, 150 * len(names) + 60, _COURSES))
        plots = [_path(p) for p in of_phase]
        if phase.path:
            figures.append(choosable(f"Path constraints{title}", plots, choices, 150 * len(phase.path) + 60, ""))
        if phase.costates and np.isfinite(next(iter(phase.costates.values()))).any():
            plots = [_costates(p) for p in of_phase]
            figures.append(choosable(f"Costates{title}", plots, choices, 150 * len(phase.costates) + 60, _COSTATES))
    return Section(
        "Trajectories",
        introduction="Optimal motions of the programs, evaluated with the polynomials of their schemes. Limits "
        "are dashed.",
        figures=tuple(figures),
        tables=_activity(programs),
        findings=tuple(
            f"Program {program.number} has no result ({program.record.status}): its last iterate is drawn."
            for program in programs
            if not program.record.ok
        ),
        notes=(f"Of {len(result.programs())} programs {len(programs)} are drawn, the best ones first.",)
        if len(programs) < len(result.programs())
        else (),
    )


_COURSES = "Dots are the nodes of the mesh."
_COSTATES = (
    "Derivatives of the objective by the states at each time: multipliers of the defects over the quadrature weights."
)


@dataclass(frozen=True)
class DrawnProgram:
    """A drawn program: its number among all, from 1, its record and its solution."""

    number: int
    record: ProgramRecord
    solution: Solution

    @property
    def words(self) -> str:
        """Text for a selector."""
        return program_words(self.record, self.number)


def drawn_programs(result: Result) -> list[DrawnProgram]:
    """The drawn programs: the best of each point of a sweep, then the others, failed ones last.

    All have the phases of the first, which is the best of all.
    """
    numbered = list(enumerate(result.programs(), start=1))
    best = best_of_each(result)
    numbered.sort(key=lambda item: (not item[1].ok, item[0] - 1 not in best, best.get(item[0] - 1, 0)))
    programs: list[DrawnProgram] = []
    for n, record in numbered:
        if len(programs) == DRAWN:
            break
        solution = record.solution
        if solution is not None and (not programs or set(solution.phases) == set(programs[0].solution.phases)):
            programs.append(DrawnProgram(n, record, solution))
    return programs


def best_of_each(result: Result) -> dict[int, int]:
    """By index in `result.programs()`, the rank of the best of all programs with the same fixed values."""
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


def program_words(record: ProgramRecord, n: int) -> str:
    """A program in words: its number, fixed values, and status."""
    at = ", ".join(f"{name} {number(value)}" for name, value in fixed(record).items())
    value = f", {number(record.figures['program(objective)'])}" if record.ok else ""
    return f"{n}{f': {at}' if at else ''} ({record.status}{value})"


def choosable(
    title: str, plots: Sequence[Mapping[str, Any]], choices: tuple[Selector, ...], height: int, note: str
) -> Figure:
    """A figure with one plot for each program."""
    variants: dict[tuple[int, ...], Mapping[str, Any]] = {(i,): p for i, p in enumerate(plots)} if choices else {}
    return Figure(title, plots[0], height=height, choices=choices, variants=variants, note=note)


def stacked(rows: Sequence[tuple[str, str, Sequence[dict[str, Any]]]], x_title: str) -> dict[str, Any]:
    """Plots one above the other over one axis: (name, unit, traces) each."""
    m = len(rows)
    domains = above(m, 0.25 / m)
    data: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    axes: dict[str, Any] = {"xaxis": axis(x_title, anchor=f"y{m}" if m > 1 else "y")}
    for j, (name, unit, traces) in enumerate(rows):
        suffix = "" if j == 0 else str(j + 1)
        axes[f"yaxis{suffix}"] = axis("", domain=domains[j], nticks=5)
        data += [{**trace, "yaxis": f"y{suffix}"} for trace in traces]
        notes.append({
            "text": f"<b>{plain(with_unit(name, unit))}</b>", "x": 0, "y": domains[j][1], "xref": "paper",
            "yref": "paper", "xanchor": "left", "yanchor": "bottom", "showarrow": False, "font": {"size": 12},
        })  # fmt: skip
    return {"data": data, "layout": bare_layout(**axes, annotations=notes)}


def line(x: Floats, y: Floats, colour: str, **more: Any) -> dict[str, Any]:
    """A curve."""
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "line": {"color": colour, "width": 2},
        "hovertemplate": "%{x:.4~g}: <b>%{y:.5~g}</b><extra></extra>", **more,
    }  # fmt: skip


def _limits(times: Floats, low: float, high: float, values: Floats) -> list[dict[str, Any]]:
    """Dashed lines at limits near the values."""
    span = float(np.ptp(values)) or abs(float(values[0])) or 1.0
    near = [
        limit
        for limit in (low, high)
        if np.isfinite(limit) and float(values.min()) - 2 * span <= limit <= float(values.max()) + 2 * span
    ]
    dashed = {"color": "@mark", "width": 1, "dash": "dash"}
    return [line(times[[0, -1]], np.array([limit, limit]), "@mark", line=dashed, hoverinfo="skip") for limit in near]


def _values_to_draw(phase: PhaseSolution, names: Sequence[str]) -> dict[str, Any]:
    times = np.linspace(phase.t0, phase.tf, SAMPLES)
    fine = phase.interpolate(times)
    nodes = phase.mesh.bases
    rows = []
    for j, name in enumerate(names):
        dots = {
            "type": "scatter", "mode": "markers", "x": phase.times[nodes], "y": phase.values[name][nodes],
            "marker": {"size": 3, "color": category(j)}, "hoverinfo": "skip",
        }  # fmt: skip
        traces = [*_limits(times, *phase.bounds[name], fine[name]), line(times, fine[name], category(j)), dots]
        rows.append((name, phase.units.get(name, ""), traces))
    return stacked(rows, "time [s]")


def _path(phase: PhaseSolution) -> dict[str, Any]:
    times = phase.times[phase.mesh.first :]
    rows = []
    for j, (name, values) in enumerate(phase.path.items()):
        low, high = phase.path_limits.get(name, (-np.inf, np.inf))
        rows.append((name, "", [*_limits(times, low, high, values), line(times, values, category(j))]))
    return stacked(rows, "time [s]") if rows else {"data": [], "layout": {}}


def _costates(phase: PhaseSolution) -> dict[str, Any]:
    rows = []
    for j, (name, values) in enumerate(phase.costates.items()):
        is_finite = np.isfinite(values)
        rows.append((f"costate of {name}", "", [line(phase.times[is_finite], values[is_finite], category(j))]))
    return stacked(rows, "time [s]")


def _activity(programs: Sequence[DrawnProgram]) -> tuple[Table, ...]:
    """The share of the time that each limited variable and path constraint spends at its limits."""
    rows = []
    for program in programs:
        for name, phase, low, high in activity(program.solution):
            rows.append((program.number, phase, name, f"{low:.1%}", f"{high:.1%}"))
    table = Table(
        "Activity of limits",
        ("program", "phase", "variable", "time at the lower limit", "time at the upper limit"),
        tuple(rows),
        note="A variable is at a limit within 1e-4 of the range between its limits, or of its size.",
    )
    return (table,) if rows else ()


def activity(solution: Solution) -> list[tuple[str, str, float, float]]:
    """(variable, phase, share of time at the lower, at the upper limit) for each active one."""
    return [
        (name, phase_name, at_low, at_high)
        for phase_name, phase in solution.phases.items()
        for name, (at_low, at_high) in (*phase.saturation.items(), *phase.path_saturation.items())
        if at_low > 0.0 or at_high > 0.0
    ]
