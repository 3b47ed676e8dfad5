"""Report part `estimation`: estimates of parameters that programs fitted to measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from designopt.counts import percent
from designopt.plugin import report_part
from designopt.report.colours import category
from designopt.report.labels import number
from designopt.report.parts.motion.plane_path import SAMPLES
from designopt.report.parts.motion.trajectories import (
    DrawnProgram,
    choosable,
    drawn_programs,
    line,
    program_choice,
    stacked,
)
from designopt.report.section import Section, Table
from designopt.report.traces import trace
from designopt.store.result import Result

if TYPE_CHECKING:
    from designopt.collocation import Estimate, Fit, PhaseSolution

#: p-value of chi squared below which, or above one minus which, it is reported.
RARE = 0.01
#: Half-width of a band or an error bar in standard deviations.
BAND = 2.0
#: Magnitude from which correlations are reported.
CORRELATED = 0.95


class _EstimatedProgram(NamedTuple):
    program: DrawnProgram
    estimate: Estimate


@report_part("estimation", version=1)
def estimation(result: Result) -> Section | None:
    """Confidence intervals of the unknowns, the fit with its band and the measurements, residuals, and undetermined
    combinations."""
    fits = [
        _EstimatedProgram(p, e) for p in drawn_programs(result) if p.record.ok and (e := p.record.estimate) is not None
    ]
    if not fits:
        return None
    choices = program_choice([fit.program for fit in fits])
    best = fits[0].estimate
    figures = []
    for name in best.fits:
        title = "" if len(best.fits) == 1 else f" of {name}"
        parts = [(f.program.solution.phases[name], f.estimate.fits[name]) for f in fits]
        rows = len(best.fits[name].measured)
        curves, residuals = [_fit(*part) for part in parts], [_residuals(*part) for part in parts]
        figures.append(choosable(f"Fit{title}", curves, choices, 240 * rows + 60, _FIT))
        figures.append(choosable(f"Residuals{title}", residuals, choices, 150 * rows + 60, _RESIDUALS))
    return Section(
        "Estimation",
        introduction="Weighted least-squares fit to the measurements and its uncertainty, to first order, for "
        "independent errors with the given standard deviations.",
        facts=_facts(best),
        findings=tuple(_findings(best)),
        figures=tuple(figures),
        tables=(_unknowns(fits), *_correlations(fits[0])),
        notes=tuple(best.doubts),
    )


def undetermined_unknowns(result: Result) -> list[str]:
    """A clause if the measurements do not determine all unknowns of the best program, which readers of its values
    need."""
    best = result.best_program()
    if best is None or not best.figures.get("fit(rank)", 0.0) < best.figures.get("fit(dimension)", 0.0):
        return []
    rank, dimension = (int(best.figures[f"fit({name})"]) for name in ("rank", "dimension"))
    words = best.estimate.undetermined if best.estimate is not None else ()
    combinations = f": {'; '.join(words)}" if words else ""
    return [f"the measurements determine {rank} of {dimension} unknowns, but not{combinations or ' the others'}"]


_FIT = (
    "Points are measurements with bars of two standard deviations; the band is ± two standard "
    "deviations of the fitted trajectory due to measurement errors."
)
_RESIDUALS = "Fitted minus measured, in standard deviations: 95 % should lie between the dashed lines."


def _facts(estimate: Estimate) -> tuple[tuple[str, str], ...]:
    return (
        ("values", str(estimate.count)),
        ("unknowns determined", f"{estimate.rank} of {estimate.dimension}"),
        ("chi squared / degrees of freedom", f"{number(estimate.chi_squared)} / {estimate.degrees_of_freedom}"),
        ("chance of a larger one", "–" if math.isnan(estimate.p_value) else number(estimate.p_value)),
    )


def _findings(estimate: Estimate) -> Iterator[str]:
    for text in estimate.undetermined:
        yield f"Not determined by the measurements: {text}. This combined change affects no residual."
    if estimate.identifiable and estimate.weakest:
        ratio = number(estimate.condition)
        weakest = estimate.weakest
        yield f"Least determined combination: {weakest}, one standard deviation ({ratio} times that of the best)."
    if estimate.p_value < RARE:
        yield "The residuals exceed the stated standard deviations: the model is incomplete, or the errors are larger."
    elif estimate.p_value > 1.0 - RARE:
        yield "The residuals are below the stated standard deviations: the errors are smaller, or they are correlated."
    bound = [name for name, interval in estimate.unknowns.items() if interval.at_bound]
    if bound:
        yield f"At a bound, without an interval: {', '.join(bound)}."
    near = [
        f"{a} and {b} ({estimate.correlation[i, j]:+.3f})"
        for i, a in enumerate(estimate.names)
        for j, b in enumerate(estimate.names[:i])
        if abs(estimate.correlation[i, j]) > CORRELATED
    ]
    if near:
        yield f"Strongly correlated: {', '.join(near)}."


def _unknowns(fits: Sequence[_EstimatedProgram]) -> Table:
    rows = [
        (
            fit.program.number,
            name,
            interval.value,
            "not determined" if math.isinf(interval.deviation) else interval.deviation,
            "–" if math.isinf(interval.deviation) else interval.low,
            "–" if math.isinf(interval.deviation) else interval.high,
            interval.unit or "1",
        )
        for fit in fits
        for name, interval in fit.estimate.unknowns.items()
    ]
    level = fits[0].estimate.level
    columns = ("program", "unknown", "value", "standard deviation", f"{percent(level)} from", "to", "unit")
    return Table("Unknowns", columns, tuple(rows), note="In the model's units.")


def _correlations(fit: _EstimatedProgram) -> tuple[Table, ...]:
    names, correlation = fit.estimate.names, fit.estimate.correlation
    if len(names) < 2:
        return ()
    rows = tuple((name, *row) for name, row in zip(names, correlation.tolist(), strict=True))
    return (Table("Correlations", ("", *names), rows, note=f"Of program {fit.program.number}."),)


def _fit(phase: PhaseSolution, fit: Fit) -> dict[str, Any]:
    rows = []
    times = np.linspace(phase.t0, phase.tf, SAMPLES)
    fine = phase.interpolate(times)
    for j, name in enumerate(fit.measured):
        traces: list[dict[str, Any]] = []
        if name in fine:
            wide = BAND * np.interp(times, phase.times, fit.bands[name])
            for sign, fill in ((1.0, None), (-1.0, "tonexty")):
                edge = line(times, fine[name] + sign * wide, category(j), hoverinfo="skip")
                traces.append({**edge, "line": {"width": 0}, **({"fill": fill, "fillcolor": "@band"} if fill else {})})
            traces.append(line(times, fine[name], category(j)))
        else:
            order = np.argsort(fit.times, kind="stable")
            traces.append(line(fit.times[order], fit.fitted[name][order], category(j)))
        bars = {"array": BAND * fit.sigma[name], "color": "@dim", "thickness": 1, "width": 0}
        marker = {"size": 4, "color": "@ink"}
        traces.append(
            trace(fit.times, fit.measured[name], mode="markers", marker=marker, error_y=bars,
                  hover="%{x:.4~g} s: <b>%{y:.5~g}</b>")
        )  # fmt: skip
        rows.append((name, phase.units.get(name, ""), traces))
    return stacked(rows)


def _residuals(phase: PhaseSolution, fit: Fit) -> dict[str, Any]:
    rows = []
    ends = np.array([phase.t0, phase.tf])
    for j, (name, values) in enumerate(fit.residuals.items()):
        style = {"color": "@mark", "width": 1, "dash": "dash"}
        traces = [line(ends, np.full(2, y), "@mark", line=style, hoverinfo="skip") for y in (-1.96, 1.96)]
        marker = {"size": 4, "color": category(j)}
        traces.append(trace(fit.times, values, mode="markers", marker=marker, hover="%{x:.4~g} s: <b>%{y:.3~g}</b>"))
        rows.append((f"residual of {name}", "", traces))
    return stacked(rows)
