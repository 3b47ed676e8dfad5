"""Report part `knee_angle`, and functions that the report parts for studies of the four-bar knee share.

The parts use the names of the model's outputs and arrays and of the study's parameters ``stiffness`` and
``damping_ratio``; if one is missing, they name it and say how to record it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Quantity, report_part
from designopt.report.colours import axis, category, layout
from designopt.report.designs import missing
from designopt.report.grid import Grid, grid_over, scan_over
from designopt.report.labels import (
    drawn_designs,
    figure_unit,
    listed,
    number,
    parameter_label,
    parameter_text,
    plain,
    thinned,
    values_in_words,
    with_unit,
)
from designopt.report.parts.designs.map import scale_of
from designopt.report.section import Section, Table
from designopt.report.traces import Trace, scenario_names, selected, trace
from designopt.store.result import Result
from designopt.study.study import DesignVariable, StudyDefinition

#: Maximum number of damping ratios in a selector.
RATIOS = 24
#: The label of this selector.
SWEEP = "Sweep at damping_ratio"
#: Toe clearance in swing (m) below which a result is warned of.
SCUFFS = 5e-3
#: A legend names a design by at most this many parameters.
NAMED = 4


def reservations(result: Result) -> tuple[str, ...]:
    """Notes on the origin of the numbers, for every reader of these outputs."""
    parameters = result.problem.model.settings.get("parameter_set", "substitute_v1")
    return (
        *_scuffing(result),
        f"Linkage geometry, masses and the damper's lever are a substitute set ({parameters}): plausible values chosen "
        "because the tables of Lü et al. (2020) were not available. Agreement with that paper is in pattern, not in "
        "numbers.",
        "Ground forces are not predictions: the hip follows a recorded path, so nothing makes the leg carry the body. "
        "Nor are the moment of the hip and the force of the stop.",
    )


def _scuffing(result: Result) -> tuple[str, ...]:
    """A warning for chosen designs whose toe touches the ground in swing."""
    clearance = result.outcomes.figures.get("toe_clearance")
    if clearance is None:
        return ()
    names = [label for label, row in drawn_designs(result).items() if (clearance[row] < SCUFFS).any()]
    if not names:
        return ()
    return (
        f"Warning: the toe comes closer to the ground than {1e3 * SCUFFS:.0f} mm in swing, or scuffs: {listed(names)}. "
        "Nobody could walk like this; limit toe_clearance, or use the parameter set substitute_v2.",
    )


def design_words(result: Result, row: int) -> str:
    """The varying parameters as a legend: stiffness and damping ratio first, by their symbols."""
    return values_in_words(result, row, symbols={"stiffness": "k", "damping_ratio": "c/k", "damping": "c"}, limit=NAMED)


def scan(result: Result) -> Grid | None:
    """The designs scanned over stiffness (x) for each damping ratio (y), from the stage that has most; None if none."""
    names = result.problem.space.names
    if "stiffness" not in names:
        return None
    k = names.index("stiffness")
    return grid_over(result, k, names.index("damping_ratio")) if "damping_ratio" in names else scan_over(result, k)


def ratio_names(result: Result, grid: Grid) -> tuple[str, ...]:
    """Labels of the damping ratios of a scan."""
    p = next((p for p in result.problem.space.parameters if p.name == "damping_ratio"), None)
    if p is None:
        return ("all",)
    if p.kind == "fixed":
        return (f"{number(p.values[0])} {p.unit}".strip(),)
    return tuple(f"{number(y)} {p.unit}".strip() for y in grid.y.tolist())


def stiffness_of(result: Result) -> DesignVariable:
    return next(p for p in result.problem.space.parameters if p.name == "stiffness")


def stiffness_axis(result: Result, **settings: Any) -> dict[str, Any]:
    p = stiffness_of(result)
    return axis(plain(parameter_label(p)), **{**scale_of(p), **settings})


def no_scan(title: str) -> Section:
    return Section(
        title,
        introduction="This part needs a scan: a stage that takes several values of stiffness for each damping_ratio, "
        "for example {use: full_factorial, levels: {stiffness: 41, damping_ratio: 11}}, with everything else fixed.",
    )


def lacks_scan(study: StudyDefinition) -> str:
    """The lack of a study for parts that draw a scan, in a clause; "" if it has all."""
    if any(stage.solver.plugin.name in ("full_factorial", "evaluate") for stage in study.stages):
        return ""
    return "it needs a scan of stiffness and damping_ratio, a stage of full_factorial"


def scan_choices(result: Result, grid: Grid) -> tuple[dict[str, list[str]], list[int]]:
    """The selectors of a scan (damping ratio and scenario), and the rows of the grid for each choice: first the damping
    ratio that is nearest to that of the recommended design."""
    ratios = list(ratio_names(result, grid))
    rows_shown = thinned(np.arange(len(ratios)), RATIOS).tolist()
    recommendation = result.recommended()
    p = next((p for p in result.problem.space.free if p.name == "damping_ratio"), None)
    if recommendation is not None and p is not None:
        value = float(result.problem.space.values(result.outcomes.X[recommendation[1]].tolist())[p.name])
        nearest = min(rows_shown, key=lambda q: abs(float(grid.y[q]) - value))
        rows_shown = [nearest, *(q for q in rows_shown if q != nearest)]
        text = f"{parameter_text(result, p.name, value)} {p.unit}".rstrip()
        ratios[nearest] += " (recommended)" if text == ratios[nearest] else f" (recommended: {text})"
    return {SWEEP: [ratios[q] for q in rows_shown], "Scenario": scenario_names(result)}, rows_shown


def scenario_table(
    result: Result, title: str, columns: Sequence[str], rows: Iterable[tuple[int, tuple[Any, ...]]]
) -> Table:
    """A table of `rows` (number of the scenario, cells); with several scenarios their names are the first column."""
    names = scenario_names(result)
    several = len(names) > 1
    table_rows = tuple((names[s], *cells) if several else cells for s, cells in rows)
    return Table(title, (*(("scenario",) if several else ()), *columns), table_rows, visible_rows=60)


#: Arrays of `knee_angle`.
_ANGLES = ("phase", "knee_angle", "knee_angle_recorded")


@report_part("knee_angle", version=1, arrays=_ANGLES, beside_answer=True)
def knee_angle(
    result: Result, *, band: Annotated[float, Quantity("deg", "half the width of the healthy band", gt=0)] = 5.0
) -> Section | None:
    """Knee angle of the chosen designs over the gait cycle against the recorded one with a band around it."""
    title = "Knee angle over the gait cycle"
    designs = drawn_designs(result)
    if not designs:
        return None
    traces_of = [(name, _angles(result, designs, s, band)) for s, name in enumerate(scenario_names(result))]
    nonempty = {name: traces for name, traces in traces_of if traces}
    if not nonempty:
        return missing(title, *_ANGLES)
    plots = list(nonempty.values())
    axes = {
        "xaxis": axis("gait cycle [%], heel strike to heel strike", range=[0, 100], dtick=20),
        "yaxis": axis("knee angle, flexion positive [deg]"),
    }
    return Section(
        title,
        introduction=(
            f"Each design's last cycles, drawn one over the other: a response that repeats every cycle is one line. "
            f"The band is ±{number(band)} deg around the recorded angle. It is a chosen width (the setting “band” of "
            "this part), not a measured spread: the gait data are one averaged cycle, so the scatter between steps or "
            "between people is not known from them."
        ),
        figures=(
            selected(
                "Chosen designs and the recorded knee", {"Scenario": list(nonempty)}, lambda s: plots[s],
                layout(**axes),
                height=500,
            ),
        ),
        tables=(_agreement(result, designs),),
        notes=(
            "rho, the correlation, is 1 for every positive affine relation: it does not see a wrong amplitude. Read it "
            "together with the errors.",
            *reservations(result),
        ),
    )  # fmt: skip


def _angles(result: Result, designs: Mapping[str, int], scenario: int, band: float) -> list[Trace]:
    """Traces: band, every design, recorded angle; empty when a design's arrays are not kept."""
    traces: list[Trace] = []
    for k, (label, row) in enumerate(designs.items()):
        arrays = result.arrays(row, scenario)
        if not {"phase", "knee_angle", "knee_angle_recorded"} <= arrays.keys():
            return []
        phase = arrays["phase"] - np.floor(arrays["phase"][0] + 1e-9)
        if not traces:
            first_cycle = phase <= phase[0] + 1.0 + 1e-9
            x, y = 100.0 * phase[first_cycle], arrays["knee_angle_recorded"][first_cycle]
            around = np.concatenate([x, x[::-1]]), np.concatenate([y + band, (y - band)[::-1]])
            about = f"recorded ± {number(band)} deg"
            traces.append(trace(*around, about, fill="toself", fillcolor="@band", line={"width": 0}))
            hover = "recorded, %{x:.0f} %: <b>%{y:.1f} deg</b>"
            recorded_trace = trace(x, y, "recorded", colour="@good", width=2, dash="dash", hover=hover)
        name = plain(f"{label}: {design_words(result, row)}")
        hover = f"{name}<br>%{{x:.0f}} %: <b>%{{y:.1f}} deg</b>"
        x, y = overlaid(phase, arrays["knee_angle"])
        traces.append(trace(x, y, name, colour=line_colour(k), width=1.6, hover=hover))
    return [*traces, recorded_trace]


def line_colour(k: int) -> str:
    """Colours of designs; the green of the recorded angle is left out."""
    return category(k if k < 2 else k + 1)


def overlaid(phase: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Percent of the cycle and values, with a gap (NaN) between cycles; `phase` (n,) in cycles from a whole one on."""
    cycle = np.floor(phase + 1e-9)
    x = 100.0 * (phase - cycle)
    starts = np.flatnonzero(np.diff(cycle)) + 1
    # The end of a cycle is the beginning of the next one: draw it at both places.
    x = np.insert(x, np.repeat(starts, 2), np.tile([100.0, np.nan], len(starts)))
    y = np.insert(values, np.repeat(starts, 2), np.stack([values[starts], np.full(len(starts), np.nan)], 1).ravel())
    return x, y


def _agreement(result: Result, designs: Mapping[str, int]) -> Table:
    figures = result.outcomes.figures
    names = [n for n in ("rho", "peak_flexion", "peak_error", "rms_error", "period_n") if n in figures]
    several = len(result.problem.scenarios) > 1
    rows = tuple(
        (label, design_words(result, row), *((name,) if several else ()), *(float(figures[n][row, s]) for n in names))
        for label, row in designs.items()
        for s, name in enumerate(scenario_names(result))
    )
    units = (figure_unit(result.problem, n) for n in names)
    head = ("", "design", *(("scenario",) if several else ()), *map(with_unit, names, units))
    return Table("Agreement with the recorded knee", head, rows, visible_rows=60)
