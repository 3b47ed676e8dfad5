"""Report part `loop_sensitivity`: the sensitivities and the Nyquist plot of the chosen designs, recomputed.

Stability is checked first. The curves of an unstable loop look like those of a stable one, and its distance from -1 has
no meaning: a sentence replaces its plot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.plugin import InvalidDesign, Quantity, report_part
from designopt.report.colours import axis, category, layout
from designopt.report.labels import figure_designs, number, plain
from designopt.report.section import Figure, Section, Table, with_a_value
from designopt.report.traces import Trace, selected, trace
from designopt.store.result import Result
from designopt_regulator.controllers.pid import PID, pid
from designopt_regulator.frequency.margins import Margins
from designopt_regulator.frequency.sampled_loop import LoopMeasures, frequency_response, measures
from designopt_regulator.frequency.structured_loop import StructuredLoop
from designopt_regulator.linear_loop.assembly import loop_of
from designopt_regulator.linear_loop.continuous import Loop
from designopt_regulator.linear_loop.figures import continuous_loop
from designopt_regulator.linear_loop.model import LinearLoop
from designopt_regulator.report.responses import (
    DRAWN,
    Regulated,
    design_words,
    foreign,
    regulated,
    reservations,
    scenario_choice,
)
from designopt_regulator.vehicle import equations
from designopt_regulator.vehicle.cascade import cascade_measures
from designopt_regulator.vehicle.model import TrackedVehicle

Response = Callable[[Floats], NDArray[np.complex128]]
#: K of the controller from the measurement, and G of the plant.
Parts = Callable[[Floats], tuple[NDArray[np.complex128], NDArray[np.complex128]]]

_POINTS = 800  # of a curve: the delay turns it little from point to point
_CROSSOVER_FACTOR = 30.0  # by which the curves extend below and above the crossovers
_PEAK_FACTOR = 5.0  # by which they extend below and above the peaks of |S|
_CIRCLE = np.linspace(0.0, 2.0 * np.pi, 181)
_LARGEST_GAIN = 30.0  # |L| beyond which the Nyquist plot has no points: integrators start at infinity
_WINDOW = ([-3.2, 1.2], [-2.4, 1.6])  # of the Nyquist plot


@dataclass(frozen=True)
class AnalysedLoop:
    """One loop of a design in a scenario. Without `margins` it is unstable or absent; `words` explain.

    `spectral_radius` and `noise_gain` are NaN for a continuous controller, which has no `sample_time` (s).
    """

    words: str
    margins: Margins | None = None
    response: Response | None = None
    limits: tuple[float, float] = (0.01, 100.0)  # rad/s between which the response is of interest
    spectral_radius: float = np.nan
    noise_gain: float = np.nan
    parts: Parts | None = None
    sample_time: float | None = None


#: A loop that the design does not close.
_ABSENT = AnalysedLoop("none")


def loops_of(model: Regulated, design: Mapping[str, Any], scenario: Mapping[str, Any]) -> dict[str, AnalysedLoop]:
    """The linear loops that the design closes, by name; the only loop of a linear plant is ``loop``."""
    try:
        return (
            _vehicle_loops(model, design, scenario)
            if isinstance(model, TrackedVehicle)
            else _plant_loops(model, design, scenario)
        )
    except InvalidDesign as error:
        return dict.fromkeys(names_of(model), AnalysedLoop(f"refused: {error}"))


def loops_by_scenario(
    result: Result, model: Regulated, designs: Mapping[str, int]
) -> dict[tuple[str, int], dict[str, AnalysedLoop]]:
    """`loops_of` each of the `designs`, rows by label, by the label and the number of the scenario."""
    design = result.problem.space.design
    design_values = {label: design(result.outcomes.X[row].tolist()) for label, row in designs.items()}
    return {
        (label, s): loops_of(model, values, scenario.values)
        for label, values in design_values.items()
        for s, scenario in enumerate(result.problem.scenarios)
    }


def names_of(model: Regulated) -> tuple[str, ...]:
    if isinstance(model, TrackedVehicle):
        return model.tuned_loops
    return ("loop",) if model.inner_plant is None else ("loop", "inner", "outer")


def _vehicle_loops(
    model: TrackedVehicle, design: Mapping[str, Any], scenario: Mapping[str, Any]
) -> dict[str, AnalysedLoop]:
    scene, settings = model.scene_in(scenario), model.settings_of(design)
    if isinstance(scene, InvalidDesign):
        raise scene
    p = equations.plant(**{name: [value] for name, value in scene.plant.items()})
    delay = scene.delay_steps / model.substeps
    loop_of: dict[str, AnalysedLoop] = {}
    for loop in model.tuned_loops:
        controller, inner = model.pid_of([settings[loop]]), 0.0
        if loop == "speed":
            plant = equations.speed_loop(p, np.array([scene.target_speed]))
        else:
            plant = equations.course_loop(p, np.array([scene.speed]))
            if model.gain_schedule is not None:
                factor = model.gain_schedule.factor(np.array([scene.speed]))
                controller = replace(controller, kp=controller.kp * factor)
            if inner := settings[loop]["rate_gain"]:
                controller = replace(controller, kp=controller.kp * inner * settings[loop]["max_rate"])
        loop_of[loop] = _sampled(*plant, delay, controller, inner)
    return loop_of


def _plant_loops(model: LinearLoop, design: Mapping[str, Any], scenario: Mapping[str, Any]) -> dict[str, AnalysedLoop]:
    plants = model.plants_in(scenario)
    parts, plant, T = model.parts_of(plants.plant, design), plants.plant, model.sample_time
    if T is None:
        return {"loop": _continuous(continuous_loop(plant, parts))}
    if parts.is_pid and plant.D == 0.0:
        controller = pid(**parts.outer, sample_time=T)
        sampled_loop = _sampled(plant.A[None], plant.B[None], plant.C[None], float(plant.delay) / T, controller)
        return {"loop": sampled_loop, **dict.fromkeys(names_of(model)[1:], _ABSENT)}
    loop = loop_of(plants, parts, model.plant_in({}), T)
    measures = loop.measures()
    closed_loops = {"loop": _structured(loop, measures, measures, loop.response, loop.parts)}
    if parts.name != "cascade":
        return {**closed_loops, **dict.fromkeys(names_of(model)[1:], _ABSENT)}
    inner = loop.inner()
    inner_measures = inner.measures()
    inner_loop = _structured(inner, inner_measures, inner_measures, inner.response, inner.parts)
    outer = loop.outer_margins() if measures.stable[0] else None
    outer_loop = _structured(loop, measures, outer, loop.outer_response, loop.outer_parts)
    outer_loop = replace(outer_loop, noise_gain=np.nan)  # that of the plant's command is of the whole loop
    return {**closed_loops, "inner": inner_loop, "outer": outer_loop}


def _continuous(loop: Loop) -> AnalysedLoop:
    margins_of_loop = loop.margins()
    if margins_of_loop is None:
        return AnalysedLoop("unstable")
    grid = loop.grid()
    return AnalysedLoop("", margins_of_loop, loop.response, (float(grid[0]), float(grid[-1])), parts=loop.parts)


def _structured(
    loop: StructuredLoop,
    measures: LoopMeasures,
    loop_margins: Margins | LoopMeasures | None,
    L: Response,
    parts: Parts | None,
) -> AnalysedLoop:
    """A loop of more parts than a PID; `loop_margins` are its margins, `measures` those of the closed loop."""
    radius = float(measures.spectral_radius[0])
    if not measures.stable[0] or loop_margins is None:
        return AnalysedLoop(f"unstable: spectral radius {number(radius, 6)}", spectral_radius=radius)
    highest = np.pi / loop.sample_time
    margins, noise = _margins(loop_margins), float(measures.noise_gain[0])
    return AnalysedLoop("", margins, L, (min(0.01, 1e-4 * highest), highest), radius, noise, parts, loop.sample_time)


def _margins(loop_margins: Margins | LoopMeasures) -> Margins:
    return Margins(*(getattr(loop_margins, f.name) for f in fields(Margins)))


def _sampled(A: Floats, B: Floats, C: Floats, delay: float, controller: PID, inner: float = 0.0) -> AnalysedLoop:
    """The sampled loop, broken at the command; `inner` is the gain (s) of an inner loop of the output's rate, or 0."""
    T = controller.sample_time
    if inner:
        loop_values = cascade_measures(A, B, C, np.array([delay]), controller, np.array([inner]))
    else:
        loop_values = measures(A, B, C, delay, controller)
    rate, gain = (C[:, None, :] @ A)[:, 0], pid(kp=inner, sample_time=T)

    def response(w: Floats) -> NDArray[np.complex128]:
        L = frequency_response(A, B, C, delay, controller, w)[0]
        return np.asarray(L + frequency_response(A, B, rate, delay, gain, w)[0]) if inner else L

    def parts(w: Floats) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        G = frequency_response(A, B, C, delay, pid(kp=1.0, sample_time=T), w)[0]
        return np.asarray(frequency_response(A, B, C, delay, controller, w)[0] / G), G

    radius = float(loop_values.spectral_radius[0])
    if not loop_values.stable[0]:
        return AnalysedLoop(f"unstable: spectral radius {number(radius, 6)}", spectral_radius=radius)
    highest = np.pi / T
    return AnalysedLoop(
        "",
        _margins(loop_values),
        response,
        (min(0.01, 1e-4 * highest), highest),
        radius,
        float(loop_values.noise_gain[0]),
        parts,
        T,
    )


@report_part("loop_sensitivity", version=1)
def loop_sensitivity(
    result: Result,
    *,
    circle: Annotated[
        float | None, Quantity("", "Ms of the circle; the study's limit, else the largest, if none", gt=1)
    ] = None,
) -> Section | None:
    """Sensitivities |S| and |T| over frequency and the Nyquist plot of chosen designs, with the circle of an Ms."""
    title = "Robustness of the loop"
    model = regulated(result)
    if model is None:
        return foreign(title, result)
    designs = figure_designs(result)
    if not designs:
        return None
    loops_of_designs = loops_by_scenario(result, model, designs)
    figures: list[Figure] = []
    for loop in names_of(model):
        limit = circle or _limit(result, "ms" if loop == names_of(model)[0] else f"{loop}_ms")
        table = {at: loops[loop] for at, loops in loops_of_designs.items()}
        figures += _loop_figures(result, loop, designs, table, limit, "" if circle else ", limit")
    return Section(
        title,
        introduction=_introduction(model),
        findings=_findings(result, loops_of_designs),
        figures=tuple(figures),
        tables=(_table(result, loops_of_designs),),
        notes=reservations(result, model),
    )


LoopTable = Mapping[tuple[str, int], AnalysedLoop]


def _limit(result: Result, name: str) -> float | None:
    """The study's limit on Ms, if it has one; ``min(ms, 10)``, bounded for the search, counts too."""
    ms_pattern = re.compile(rf"{name}|min\({name}, [0-9.e+]+\)|min\([0-9.e+]+, {name}\)")
    limits = [c.maximum for c in result.problem.constraints if ms_pattern.fullmatch(str(c.expression))]
    return min((limit for limit in limits if limit is not None), default=None)


def _introduction(model: Regulated) -> str:
    kind = (
        "the continuous loop with its exact delay"
        if isinstance(model, LinearLoop) and model.sample_time is None
        else "the sampled loop: the held plant with its exact delay, and the difference equations of the controller"
    )
    return (
        f"S = 1/(1 + L) and T = L/(1 + L) of {kind}, linear, recomputed from the design. Ms and Mt are their peaks. "
        "A curve L that stays outside of the circle about -1 with radius 1/Ms has no larger peak of S. Clips of "
        "command, power and traction are not in these figures. The plots open on the scenario with the largest Ms."
    )


def _findings(
    result: Result, loops_of_designs: Mapping[tuple[str, int], Mapping[str, AnalysedLoop]]
) -> tuple[str, ...]:
    """A sentence for each loop that has no margins."""
    names = [s.name for s in result.problem.scenarios]
    return tuple(
        f"{label} in {names[s]}{f', {loop} loop' if len(loops) > 1 and loop != 'loop' else ''}: {analysis.words}. "
        "It has no margins and is not drawn."
        for (label, s), loops in loops_of_designs.items()
        for loop, analysis in loops.items()
        if analysis.margins is None and analysis is not _ABSENT
    )


def _loop_figures(
    result: Result, loop: str, designs: Mapping[str, int], loops_of_designs: LoopTable, limit: float | None, kind: str
) -> list[Figure]:
    """Both figures of one loop; none if it is unstable in all scenarios. `kind` is the limit's label in the legend."""
    scenario_numbers = worst_first(loops_of_designs, len(result.problem.scenarios))
    if not any(loops_of_designs[label, s].margins is not None for label in designs for s in scenario_numbers):
        return []
    names = {label: plain(f"{label}: {design_words(result, row)}") for label, row in designs.items()}
    of_loop = "" if loop == "loop" else f" of the {loop} loop"
    plots = [
        _curves({names[label]: loops_of_designs[label, s] for label in designs}, limit, kind) for s in scenario_numbers
    ]
    peaks = [
        float(v[0])
        for analysis in loops_of_designs.values()
        if analysis.margins
        for v in (analysis.margins.ms, analysis.margins.mt)
    ]
    return [
        selected(f"{title}{of_loop}", scenario_choice(result, scenario_numbers), [p[k] for p in plots].__getitem__,
                 shape, height=height)
        for k, (title, shape, height) in enumerate((
            ("Sensitivities", _sensitivity_layout(max([*peaks, limit or 1.0])), 460),
            ("Nyquist plot", _nyquist_layout(), 620),
        ))
    ]  # fmt: skip


def worst_first(loops_of_designs: LoopTable, count: int) -> list[int]:
    """The scenarios that are drawn: of those with a stable loop the worst first, then the others in their order.

    The worst is that with the largest Ms; an unstable loop is worse than any.
    """
    peaks: dict[int, list[float]] = {s: [] for s in range(count)}
    for (_, s), loop in loops_of_designs.items():
        peaks[s].append(np.inf if loop.margins is None else float(loop.margins.ms[0]))
    worst = max(peaks, key=lambda s: (min(peaks[s]) < np.inf, max(peaks[s])))
    return [worst, *(s for s in range(count) if s != worst)][:DRAWN]


def _sensitivity_layout(largest: float) -> dict[str, Any]:
    return layout(
        xaxis=axis("frequency [rad/s]", type="log"),
        yaxis=axis(
            "|S| (line), |T| (dashes)",
            type="log",
            tickvals=[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100],
            range=[-2.0, float(np.log10(max(2.5, 1.25 * largest)))],
        ),
    )


def _nyquist_layout() -> dict[str, Any]:
    x, y = _WINDOW
    return layout(
        xaxis=axis("Re L", range=x, zeroline=True),
        yaxis=axis("Im L", range=y, scaleanchor="x", scaleratio=1, zeroline=True),
    )


def _curves(loops: Mapping[str, AnalysedLoop], limit: float | None, kind: str) -> tuple[list[Trace], list[Trace]]:
    """Traces of |S| and |T|, and of L, for designs in one scenario; the same ones, maybe empty, for every scenario."""
    w = frequencies([loop for loop in loops.values() if loop.margins is not None])
    worst = max((float(loop.margins.ms[0]) for loop in loops.values() if loop.margins is not None), default=None)
    ms = limit if limit is not None else worst
    words = "no loop is stable" if ms is None else f"Ms {number(ms, 3)}{kind if limit is not None else ', largest'}"
    ends = w[[0, -1]] if len(w) and ms is not None else np.empty(0)
    around = _CIRCLE if ms is not None else np.empty(0)
    radius = 1.0 / (ms or np.inf)
    line: Trace = {"colour": "@muted", "width": 1.2, "dash": "dot"}
    level = trace(ends, np.full(len(ends), np.nan if ms is None else ms), words, **line)
    circle_line = trace(-1.0 + radius * np.cos(around), radius * np.sin(around), words, **line)
    cross = {"symbol": "cross-thin", "size": 10, "line": {"color": "@ink", "width": 2}}
    point = trace(np.array([-1.0]), np.array([0.0]), "-1", mode="markers", marker=cross, showlegend=False)
    sensitivities, nyquist = [level], [circle_line, point]
    for k, (name, loop) in enumerate(loops.items()):
        stable = loop.response is not None
        at = w if stable else np.empty(0)
        L = loop.response(w) if loop.response is not None else np.empty(0, complex)
        title = name if stable else f"{name} ({loop.words})"
        colour, group = category(k), {"legendgroup": str(k)}
        hover = f"{name}<br>%{{x:.3~g}} rad/s: <b>%{{y:.4~g}}</b>"
        S, T = np.abs(1.0 / (1.0 + L)), np.abs(L / (1.0 + L))
        sensitivities += [
            trace(at, S, title, colour=colour, width=1.8, hover=f"{hover} |S|", **group),
            trace(at, T, title, colour=colour, width=1.1, dash="dash", hover=f"{hover} |T|", showlegend=False, **group),
        ]
        near = np.where(np.abs(L) <= _LARGEST_GAIN, L, np.nan)
        hover = f"{name}<br>L = <b>%{{x:.3~g}} %{{y:+.3~g}}j</b>"
        nyquist.append(trace(near.real, near.imag, title, colour=colour, width=1.8, hover=hover))
    return sensitivities, nyquist


def frequencies(loops: Sequence[AnalysedLoop]) -> Floats:
    """Frequencies about the crossovers and peaks of stable loops, up to half the sampling rate of sampled ones."""
    if not loops:
        return np.empty(0)
    low, high = min(loop.limits[0] for loop in loops), max(loop.limits[1] for loop in loops)
    crossovers = [float(loop.margins.crossover[0]) for loop in loops if loop.margins is not None]
    crossovers = [w for w in crossovers if w > 0.0]
    if crossovers:
        peaks = [_peak(loop, np.geomspace(low, high, _POINTS)) for loop in loops]
        low = max(low, min(min(crossovers) / _CROSSOVER_FACTOR, min(peaks) / _PEAK_FACTOR))
        high = min(high, max(_CROSSOVER_FACTOR * max(crossovers), _PEAK_FACTOR * max(peaks)))
    return np.geomspace(low, high, _POINTS)


def _peak(loop: AnalysedLoop, w: Floats) -> float:
    """Where |S| is largest: with an inner loop far beyond the crossover."""
    return float(w[np.argmin(np.abs(1.0 + loop.response(w)))]) if loop.response is not None else float(w[0])


_COLUMNS = ("Ms", "Mt", "gain margin up", "gain margin down", "phase margin [deg]", "delay margin [s]",
            "crossover [rad/s]", "spectral radius", "noise gain")  # fmt: skip


def _table(result: Result, loops_of_designs: Mapping[tuple[str, int], Mapping[str, AnalysedLoop]]) -> Table:
    names = [s.name for s in result.problem.scenarios]
    rows: list[tuple[Any, ...]] = [
        (label, names[s], loop, analysis.words or "stable", *_numbers(analysis))
        for (label, s), loops in loops_of_designs.items()
        for loop, analysis in loops.items()
        if analysis is not _ABSENT
    ]
    head = ("design", "scenario", "loop", "stability", *_COLUMNS)
    return Table("Margins", *with_a_value(head, rows), visible_rows=60)  # continuous loops have no spectral radius


def _numbers(loop: AnalysedLoop) -> tuple[float, ...]:
    m = loop.margins
    if m is None:
        return (*[np.nan] * 7, loop.spectral_radius, np.nan)
    margin_values = (m.ms, m.mt, m.gm, m.gm_down, np.degrees(m.pm), m.delay_margin, m.crossover)
    return (*(float(v[0]) for v in margin_values), loop.spectral_radius, loop.noise_gain)
