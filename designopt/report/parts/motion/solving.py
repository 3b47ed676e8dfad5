"""Report part `solving`: mesh and error of the trajectory programs, the history of the solver, and their structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.labels import plain
from designopt.report.parts.motion.structure import structure
from designopt.report.parts.motion.time_unit import in_time_unit, time_unit
from designopt.report.parts.motion.trajectories import choosable, drawn_programs, program_choice
from designopt.report.section import Section
from designopt.report.traces import trace
from designopt.store.result import Result

if TYPE_CHECKING:
    from designopt.collocation.solution.solution import PhaseSolution, Solution


@report_part("solving", version=1)
def solving(result: Result) -> Section | None:
    """Error per interval of the mesh, progress of the solver and nonzeros of the derivatives."""
    programs = drawn_programs(result)
    figures = []
    if programs:
        choices = program_choice(programs)
        solutions = [program.solution for program in programs]
        unit, size = time_unit(phase for solution in solutions for phase in solution.phases.values())
        for title, plot, note in (
            ("Mesh and error by interval", _errors, _ERRORS),
            ("Progress of the solver", _history, _HISTORY),
        ):
            plots = [plot(solution) for solution in solutions]
            if any(p["data"] for p in plots):
                figure = choosable(title, plots, choices, 360, note)
                figures.append(in_time_unit(figure, unit, size) if plot is _errors else figure)
    figures += structure(result.programs()[:1])
    return Section("How the programs were solved", figures=tuple(figures)) if figures else None


_ERRORS = (
    "The estimate compares the polynomials of the solution with a quadrature of their own rates (Patterson, Hager, Rao "
    "2015); dots are the difference from a simulation of each interval."
)
_HISTORY = "Violation of the constraints, of the optimality conditions, and the barrier parameter, all scaled."


def _errors(solution: Solution) -> dict[str, Any]:
    data: list[dict[str, Any]] = []
    for j, (name, phase) in enumerate(solution.phases.items()):
        if not len(phase.error):
            continue
        widths = (phase.tf - phase.t0) * phase.mesh.widths
        middles = phase.t0 + (phase.tf - phase.t0) * (phase.mesh.nodes[:-1] + 0.5 * phase.mesh.widths)
        data.append({
            "type": "bar", "name": plain(f"{name}: estimate"), "x": middles, "y": np.maximum(phase.error, 1e-16),
            "width": widths, "opacity": 0.8,
            "marker": {"color": category(j), "line": {"width": 0.5, "color": "@surface"}},
            "customdata": _schemes(phase),
            "hovertemplate": "%{x:.4~g} s, %{customdata}: <b>%{y:.2e}</b><extra></extra>",
        })  # fmt: skip
        if len(phase.segment_errors) == len(middles):
            data.append(
                trace(middles, np.maximum(phase.segment_errors, 1e-16), plain(f"{name}: simulated"), mode="markers",
                      marker={"size": 5, "color": "@ink"}, hover="%{x:.4~g} s: <b>%{y:.2e}</b>")
            )  # fmt: skip
    axes = {"xaxis": axis("time [s]"), "yaxis": axis("relative error", type="log", exponentformat="power")}
    return {"data": data, "layout": layout(**axes, barmode="overlay")}


def _schemes(phase: PhaseSolution) -> list[str]:
    return [f"{s.name.replace('_', '-')}{f' {s.degree}' if s.degree else ''}" for s in phase.mesh.schemes]


def _history(solution: Solution) -> dict[str, Any]:
    data = []
    for j, (name, words) in enumerate((("primal", "constraints"), ("dual", "optimality"), ("barrier", "barrier"))):
        values = solution.history.get(name)
        if values is None or not len(values):
            continue
        data.append(
            trace(np.arange(len(values)), np.maximum(values, 1e-16), words, mode="lines+markers", marker={"size": 4},
                  colour=category(j), width=2, hover="iteration %{x}: <b>%{y:.2e}</b>")
        )  # fmt: skip
    axes = {"xaxis": axis("iteration"), "yaxis": axis("scaled violation", type="log", exponentformat="power")}
    return {"data": data, "layout": layout(**axes)}
