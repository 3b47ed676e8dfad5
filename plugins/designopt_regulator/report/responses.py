"""Report part `step_responses`, and functions that the report parts for studies of controllers share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import report_part
from designopt.report.colours import axis, caption, category, layout, upright_line
from designopt.report.labels import displayed_figures, figure_designs, listed, number, plain, values_in_words, with_unit
from designopt.report.section import Figure, Section, Table
from designopt.report.traces import Trace, scenario_names, selected, trace
from designopt.store.result import Result
from designopt_regulator.linear_loop.declarations import LinearConditions, LinearDesign
from designopt_regulator.linear_loop.model import LinearLoop
from designopt_regulator.report.identification import FitSection, fit_section
from designopt_regulator.vehicle.model import TrackedVehicle

Regulated = TrackedVehicle | LinearLoop

#: Scenarios beyond the first ones are not drawn.
DRAWN = 12
#: Ratio to the shortest run beyond which the end of a run is initially outside of the figure.
_LONGER = 4.0
#: Settling times of the slowest design after which a figure of the step of the set-point alone ends.
_SETTLING_TIMES = 2.0
#: Domains of the panels of the value and of the command; between them stand the names of events.
_ABOVE, _BELOW = (0.4, 1.0), (0.0, 0.34)
#: A legend names a design by at most this many parameters.
NAMED = 4
#: Overshoot of a response that has none, in floating-point numbers.
_ROUNDING = 1e-12
#: Figures of a response, where the model has them.
_FIGURES = ("iae", "iae_setpoint", "iae_load", "overshoot", "settling", "not_settled", "load_peak", "tv",
            "sat_fraction", "speed_iae", "speed_overshoot", "speed_tv")  # fmt: skip


@dataclass(frozen=True)
class DrawnSignal:
    """A controlled signal: arrays of its value, command and reference (none: a step), and the display of values."""

    name: str
    value: str
    command: str
    reference: str | None
    unit: str = ""
    factor: float = 1.0
    command_unit: str = ""


_COURSE = DrawnSignal("course", "course", "course_command", "course_reference", "deg", float(np.degrees(1.0)))
_SPEED = DrawnSignal("speed", "speed", "speed_command", "speed_reference", "m/s")


def regulated(result: Result) -> Regulated | None:
    """The model of a study of controllers; None for any other."""
    model = result.problem.model.build()
    return model if isinstance(model, (TrackedVehicle, LinearLoop)) else None


def foreign(title: str, result: Result) -> Section:
    """A section that names the models for which this part is meant."""
    return Section(
        title,
        introduction=f"This part is for the models tracked_carrier_10t and linear_loop; it knows no controller in the "
        f"model {result.problem.model.plugin.name}.",
    )


def design_words(result: Result, row: int) -> str:
    """The varying parameters as a legend."""
    return values_in_words(result, row, limit=NAMED, digits=3)


def scenario_choice(result: Result, scenario_numbers: Sequence[int] | None = None) -> dict[str, list[str]]:
    """The scenarios `scenario_numbers`, in this order (none: the first ones), for a selector."""
    names = scenario_names(result)
    return {"Scenario": names[:DRAWN] if scenario_numbers is None else [names[s] for s in scenario_numbers]}


def reservations(result: Result, model: Regulated) -> tuple[str, ...]:
    """Notes on the origin of the numbers, for every reader of these outputs."""
    left_out = len(result.problem.scenarios) - DRAWN
    notes = [f"The first {DRAWN} scenarios are shown, {left_out} are not."] if left_out > 0 else []
    if isinstance(model, LinearLoop):
        if (share := model.plant.explained_variance) is not None:
            notes.append(
                f"The plant is a model fitted to measured data; it explains {share:.2%} of the output's variance."
            )
        return tuple(notes)
    v = model.vehicle
    notes.append(
        f"Assumptions of the design, not measurements: drive lag {number(v.lag)} s, delay {number(v.delay)} s, factor "
        f"of rotating masses {number(v.rotating_mass_factor)}, maximum force {number(v.max_force / 1e3)} kN and "
        f"power {number(v.power / 1e3)} kW of one track, where a scenario does not say otherwise."
    )
    notes.append("Rolling and turning resistance of the terrains are representative handbook values.")
    return tuple(notes)


@report_part("step_responses", version=1)
def step_responses(result: Result) -> Section | None:
    """Heading, speed or output of the chosen designs over time with its reference, and the command below.

    Of a plant that was fitted to measured data, the data with the model and its residual come first. Responses of
    linear loops that the store does not hold are simulated anew.
    """
    title = "Step responses"
    model = regulated(result)
    if model is None:
        return foreign(title, result)
    designs = figure_designs(result)
    fit = fit_section(model) if isinstance(model, LinearLoop) else None
    if not designs:
        return None if fit is None else _plant_responses(title, fit)
    signals, scenario_numbers = _signals(result, model), range(min(len(result.problem.scenarios), DRAWN))
    array_names = sorted({"time", *(n for s in signals for n in (s.value, s.command, s.reference) if n is not None)})
    arrays_of = {
        (row, s): arrays
        for row in designs.values()
        for s in scenario_numbers
        if set(array_names) <= (arrays := _stored_or_simulated(result, model, row, s, array_names)).keys()
    }
    table = _quality(result, designs)
    if not arrays_of:
        return Section(
            title,
            introduction="The store contains no arrays for this part. Run the study with execution: {arrays: "
            f"[{', '.join(array_names)}]}}, which keeps those of the chosen designs.",
            findings=fit.findings if fit else (),
            figures=(fit.figure,) if fit else (),
            tables=(*(fit.tables if fit else ()), table),
            notes=reservations(result, model),
        )
    figures = [fit.figure] if fit else []
    until = _until_settled(result, model, designs)
    for signal in signals:
        figures += [_by_scenario(result, model, signal, designs, arrays_of, until)] if until else []
        figures.append(_by_scenario(result, model, signal, designs, arrays_of))
        if len(scenario_numbers) > 1:
            figures.append(_by_design(result, model, signal, designs, arrays_of))
    return Section(
        title,
        introduction=_introduction(model, signals[0]),
        findings=(*(fit.findings if fit else ()), *_findings(result, designs, arrays_of, scenario_numbers)),
        figures=tuple(figures),
        tables=(*(fit.tables if fit else ()), table),
        notes=reservations(result, model),
    )


def _plant_responses(title: str, fit: FitSection) -> Section:
    """The plant alone, where no design is chosen."""
    return Section(title, findings=fit.findings, figures=(fit.figure,), tables=fit.tables)


Kept = Mapping[tuple[int, int], Mapping[str, Floats]]


def _stored_or_simulated(
    result: Result, model: Regulated, row: int, scenario: int, names: Sequence[str]
) -> Mapping[str, Floats]:
    """The arrays `names` of a design; of a linear loop simulated if they are not stored. Empty without a response."""
    arrays = result.arrays(row, scenario)
    if set(names) <= arrays.keys() or not isinstance(model, LinearLoop) or result.status[row, scenario] != "ok":
        return arrays
    space, problem_scenario = result.problem.space, result.problem.scenarios[scenario]
    (x,) = space.shifted(result.outcomes.X[[row]], problem_scenario.shift).tolist()
    design, conditions = cast(LinearDesign, space.design(x)), cast(LinearConditions, problem_scenario.values)
    return model.evaluate(design, conditions, set(names))[1]


def units(result: Result, model: LinearLoop) -> tuple[str, str]:
    """Those of command and output, of the plant's record if it has one."""
    if model.plant.type == "data":
        return model.plant.data().units
    command, output = (result.problem.model.plugin.arrays[name].unit for name in ("command", "output"))
    return command, output


def _signals(result: Result, model: Regulated) -> tuple[DrawnSignal, ...]:
    if isinstance(model, LinearLoop):
        command_unit, output_unit = units(result, model)
        return (DrawnSignal("output", "output", "command", None, unit=output_unit, command_unit=command_unit),)
    return {"course": (_COURSE,), "speed": (_SPEED,), "both": (_COURSE, _SPEED)}[model.loop]


def _introduction(model: Regulated, signal: DrawnSignal) -> str:
    if isinstance(model, LinearLoop):
        sizes = (model.setpoint_step, signal.unit), (model.load_step, signal.command_unit)
        steps = [f" by {number(size)} {unit}".rstrip() for size, unit in sizes]
        text = f"A step of the set-point{steps[0]} at 0, then one of the load{steps[1]} at the plant's input. "
        load_text = " Each design's load comes when it has settled." if model.sample_time is None else ""
    else:
        text, load_text = "The reference steps, then the disturbance comes and stays. ", ""
    return f"{text}The command of the controller is below, in the colour of its design.{load_text}"


def _findings(
    result: Result, designs: Mapping[str, int], arrays_of: Kept, scenario_numbers: Sequence[int]
) -> tuple[str, ...]:
    sentences, names = [], [s.name for s in result.problem.scenarios]
    for label, row in designs.items():
        if absent := [names[s] for s in scenario_numbers if (row, s) not in arrays_of]:
            why = {str(result.status[row, s]) for s in scenario_numbers if (row, s) not in arrays_of} - {"ok"}
            reason = f"it ended as {listed(sorted(why))}" if why else "its arrays are not kept"
            sentences.append(f"{label} is not drawn in {listed(absent)}: {reason}.")
        if "sharp_turn" in result.outcomes.figures:
            share = result.outcomes.figures["sharp_turn"][row]
            if sharp := [names[s] for s in range(len(names)) if share[s] > 0.0]:
                sentences.append(
                    f"{label} turns about a point between the tracks in {listed(sharp)} (up to "
                    f"{np.nanmax(share):.1%} of the time): there the law of the turning resistance is an extrapolation."
                )
    return tuple(sentences)


def _by_scenario(
    result: Result,
    model: Regulated,
    signal: DrawnSignal,
    designs: Mapping[str, int],
    arrays_of: Kept,
    until: float | None = None,
) -> Figure:
    """All designs in one scenario, which the reader selects, `until` a time (s) if any."""
    names = {plain(f"{label}: {design_words(result, row)}"): row for label, row in designs.items()}
    plots = [
        _traces(model, signal, [(name, arrays_of.get((row, s))) for name, row in names.items()])
        for s in range(min(len(result.problem.scenarios), DRAWN))
    ]
    return _figure(f"Chosen designs: {signal.name}", model, signal, plots, scenario_choice(result), until)


def _by_design(
    result: Result, model: Regulated, signal: DrawnSignal, designs: Mapping[str, int], arrays_of: Kept
) -> Figure:
    """One design, which the reader selects, in all scenarios."""
    scenarios = [plain(name) for name in scenario_names(result)[:DRAWN]]
    plots = [
        _traces(model, signal, [(name, arrays_of.get((row, s))) for s, name in enumerate(scenarios)])
        for row in designs.values()
    ]
    return _figure(f"One design in all scenarios: {signal.name}", model, signal, plots, {"Design": list(designs)})


def _figure(
    title: str,
    model: Regulated,
    signal: DrawnSignal,
    plots: Sequence[list[Trace]],
    choices: Mapping[str, Sequence[str]],
    until: float | None = None,
) -> Figure:
    marks = [upright_line(t, "@faint", "dot", layer="below") for t, _ in _events(model)]
    look = {"xref": "x", "font": {"size": 11, "color": "@muted"}}
    texts = [caption(text, t, _BELOW[1], **look) for t, text in _events(model)]
    axes = {
        "xaxis": axis("time [s]", anchor="y2"),
        "yaxis": axis(with_unit(signal.name, plain(signal.unit)), domain=[*_ABOVE]),
        "yaxis2": axis(with_unit("command", plain(signal.command_unit)), domain=[*_BELOW]),
    }
    ends = [_beginning(traces) for traces in plots]
    last = max((total for end, total in ends if total > end), default=None)
    if until is not None:
        (load_at, _), horizon = _events(model)[0], max(total for _, total in ends)
        return selected(
            f"{title} until it has settled",
            choices,
            plots.__getitem__,
            layout(**axes),
            view=lambda k: {"xaxis": {"range": [0.0, until]}},
            note=f"Drawn until {number(until, 3)} s, {number(_SETTLING_TIMES)} times the longest settling time; the"
            f" load comes at {number(load_at, 3)} s, the horizon is {number(horizon, 3)} s (next figure).",
            height=560,
        )
    return selected(
        title,
        choices,
        plots.__getitem__,
        layout(**axes, shapes=marks, annotations=texts),
        view=lambda k: {"xaxis": {"range": [0.0, ends[k][0]]}},
        note="" if last is None else f"Slow runs last until {number(last, 3)} s.",
        hint="" if last is None else "A double click shows all of the slow runs.",
        height=560,
    )


def _until_settled(result: Result, model: Regulated, designs: Mapping[str, int]) -> float | None:
    """The time (s) until which to draw the step of the set-point alone, if it is at most half of that before the load
    of a sampled loop comes; else None."""
    settling = result.outcomes.figures.get("settling")
    if settling is None or not isinstance(model, LinearLoop) or not (events := _events(model)):
        return None
    until = _SETTLING_TIMES * float(settling[[*designs.values()], :DRAWN].max())
    return until if 0.0 < until <= 0.5 * events[0][0] else None


def _beginning(traces: Sequence[Trace]) -> tuple[float, float]:
    """Until when (s) to draw at first, so that no slow run presses all others against the axis; and when all end."""
    ends = [float(t["x"][-1]) for t in traces[1:] if len(t["x"])] or [1.0]
    return min(max(ends), _LONGER * min(ends)), max(ends)


def _events(model: Regulated) -> list[tuple[float, str]]:
    if isinstance(model, TrackedVehicle):
        return [(model.step_at, "step"), (model.disturbance.at, "disturbance")]
    if model.sample_time is None or model.horizon is None:
        return []
    return [(model.load_at or round(0.5 * model.horizon / model.sample_time) * model.sample_time, "load")]


def _traces(
    model: Regulated, signal: DrawnSignal, runs: Sequence[tuple[str, Mapping[str, Floats] | None]]
) -> list[Trace]:
    """Reference, then value and command of each run; one without arrays is empty."""
    is_sampled = isinstance(model, TrackedVehicle) or model.sample_time is not None
    setpoint = model.setpoint_step if isinstance(model, LinearLoop) else 1.0
    time, reference = _references(signal, [arrays for _, arrays in runs if arrays is not None], setpoint)
    hover = f"<br>%{{x:.2f}} s: <b>%{{y:.4~g}} {plain(signal.unit)}</b>"
    hover_below = f"<br>%{{x:.2f}} s: command <b>%{{y:.4~g}} {plain(signal.command_unit)}</b>"
    reference_line = {"color": "@ink", "width": 1.2, "dash": "dash", "shape": "hv"}
    traces = [trace(time, signal.factor * reference, "reference", line=reference_line, hover=f"reference{hover}")]
    for k, (name, arrays) in enumerate(runs):
        x, value, command = (
            np.empty(0) if arrays is None else arrays[key] for key in ("time", signal.value, signal.command)
        )
        line = {"color": category(k), "width": 1.7, "dash": "solid" if k < 8 else "dot"}
        below = {**line, "width": 1.2, "shape": "hv" if is_sampled else "linear"}
        traces += [
            trace(x, signal.factor * value, name, line=line, hover=f"{name}{hover}", legendgroup=str(k)),
            trace(x, command, name, line=below, hover=f"{name}{hover_below}", legendgroup=str(k), yaxis="y2",
                  showlegend=False),
        ]  # fmt: skip
    return traces


def _references(
    signal: DrawnSignal, arrays_of_designs: Sequence[Mapping[str, Floats]], setpoint: float
) -> tuple[Floats, Floats]:
    """Time and value of the references of runs, each once, with gaps (NaN) between different ones; `setpoint` is the
    value of one without an array."""
    if not arrays_of_designs:
        return np.empty(0), np.empty(0)
    if signal.reference is None:
        time = max((arrays["time"] for arrays in arrays_of_designs), key=lambda time: float(time[-1]))
        return time, np.full_like(time, setpoint)
    different = {arrays[signal.reference].tobytes(): arrays for arrays in arrays_of_designs}.values()
    time, value = (
        np.concatenate([np.append(arrays[name], np.nan) for arrays in different])[:-1]
        for name in ("time", signal.reference)
    )
    return time, value


def _quality(result: Result, designs: Mapping[str, int]) -> Table:
    """Outputs by design and scenario, in the units of the study; rounding errors are shown as 0."""
    figures = displayed_figures(result)
    names = [n for n in _FIGURES if n in figures and np.isfinite(figures[n][1]).any()]
    rows = tuple(
        (label, scenario.name, *(v if abs(v := float(figures[n][1][row, s])) > _ROUNDING else 0.0 for n in names))
        for label, row in designs.items()
        for s, scenario in enumerate(result.problem.scenarios)
    )
    head = ("design", "scenario", *(with_unit(n, figures[n][0]) for n in names))
    return Table("Quality of the responses", head, rows, visible_rows=60)
