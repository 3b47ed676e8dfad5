"""Report part `loop_bode`: Bode plot, |K S| and |G S|, and the command under noise, of the chosen designs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import report_part
from designopt.report.colours import axis, category, layout
from designopt.report.labels import figure_designs, number, plain, with_unit
from designopt.report.section import Figure, Section
from designopt.report.traces import Trace, selected, trace
from designopt.store.result import Result
from designopt_regulator.linear_loop.model import LinearLoop
from designopt_regulator.report.loops import AnalysedLoop, frequencies, loops_by_scenario, names_of, worst_first
from designopt_regulator.report.responses import design_words, foreign, regulated, reservations, scenario_choice, units

Traces = list[Trace]

_DRAWN_SAMPLES = 200  # of the command under noise
_PERIOD = 4096  # samples after which the drawn noise repeats
_SEED = 1
#: Mantissas of ticks of a log axis, the densest first, and how many ticks half a figure has room for.
_MANTISSAS = ((1, 2, 5), (1, 3), (1,))
_MOST_TICKS = 6


@report_part("loop_bode", version=1)
def loop_bode(result: Result) -> Section | None:
    """Bode plot of the open loop of chosen designs, its responses to noise and load, and the command under noise."""
    title = "Frequency responses"
    model = regulated(result)
    if model is None:
        return foreign(title, result)
    designs = figure_designs(result)
    if not designs:
        return None
    names = {label: plain(f"{label}: {design_words(result, row)}") for label, row in designs.items()}
    command = with_unit("command", plain(units(result, model)[0])) if isinstance(model, LinearLoop) else "command"
    loops_of_designs = loops_by_scenario(result, model, designs)
    figures: list[Figure] = []
    for loop in names_of(model):
        table = {at: loops[loop] for at, loops in loops_of_designs.items()}
        of_loop = "" if loop == "loop" else f" of the {loop} loop"
        scenario_numbers = worst_first(table, len(result.problem.scenarios))
        plots = [{names[label]: table[label, s] for label in designs} for s in scenario_numbers]
        if not any(analysis.response is not None for loops in plots for analysis in loops.values()):
            continue
        for heading, draw, shape, note in _FIGURES:
            traces_of_plots = [draw(loops) for loops in plots]
            if any(len(trace["x"]) for traces in traces_of_plots for trace in traces):
                choices, name = scenario_choice(result, scenario_numbers), f"{heading}{of_loop}"
                figures.append(
                    selected(
                        name,
                        choices,
                        traces_of_plots.__getitem__,
                        shape(traces_of_plots, command),
                        note=note,
                        height=560,
                    )
                )
    return Section(
        title,
        introduction="Of the linear loop, recomputed from the design; unstable loops are not drawn. The plots open "
        "on the scenario with the largest Ms.",
        figures=tuple(figures),
        notes=reservations(result, model),
    )


def _pairs(
    loops: Mapping[str, AnalysedLoop],
    curves: Callable[[AnalysedLoop, Floats], tuple[Floats, Floats]],
    words: str,
    *,
    to_end: bool = False,
) -> Traces:
    """Two curves of each loop over frequency, the second on the axis below; with `to_end` over the whole known
    range.
    """
    stable = [loop for loop in loops.values() if loop.response is not None]
    w = frequencies(stable)
    if to_end and stable:
        w = np.geomspace(w[0], max(w[-1], *(loop.limits[1] for loop in stable)), 2 * len(w))
    traces: Traces = []
    for k, (name, loop) in enumerate(loops.items()):
        x = w if loop.response is not None else np.empty(0)
        curve_pair = curves(loop, w) if loop.response is not None else (np.empty(0), np.empty(0))
        label = name if loop.response is not None else f"{name} ({loop.words})"
        for axis_number, y in enumerate(curve_pair):
            hover = f"{name}<br>%{{x:.3~g}} rad/s: <b>%{{y:.4~g}}</b> {words.split(',')[axis_number]}"
            extra: Trace = {"yaxis": "y2", "showlegend": False} if axis_number else {}
            traces.append(trace(x, y, label, colour=category(k), width=1.8, hover=hover, legendgroup=str(k), **extra))
    return traces


def _bode(loops: Mapping[str, AnalysedLoop]) -> Traces:
    def curves(loop: AnalysedLoop, w: Floats) -> tuple[Floats, Floats]:
        assert loop.response is not None
        L = loop.response(w)
        phase = np.degrees(np.unwrap(np.angle(L)))
        return np.abs(L), phase - 360.0 * np.ceil((phase[0] - 90.0) / 360.0)

    return _pairs(loops, curves, "|L|,deg")


def _noise_and_load(loops: Mapping[str, AnalysedLoop]) -> Traces:
    def curves(loop: AnalysedLoop, w: Floats) -> tuple[Floats, Floats]:
        assert loop.response is not None
        assert loop.parts is not None
        (K, G), away = loop.parts(w), np.abs(1.0 + loop.response(w))
        return np.abs(K) / away, np.abs(G) / away

    return _pairs(loops, curves, "|KS|,|GS|", to_end=True)


def _noise(loops: Mapping[str, AnalysedLoop]) -> Traces:
    """The command of sampled loops for a measurement that is noise alone; its period is that of the Fourier series."""
    e = np.random.default_rng(_SEED).standard_normal(_PERIOD)
    traces: Traces = []
    for k, (name, loop) in enumerate(loops.items()):
        x, u = np.empty(0), np.empty(0)
        if loop.response is not None and loop.parts is not None and loop.sample_time is not None:
            w = np.asarray(2.0 * np.pi * np.arange(1, _PERIOD // 2 + 1) / (_PERIOD * loop.sample_time), np.float64)
            through = np.concatenate([[0.0], -loop.parts(w)[0] / (1.0 + loop.response(w))])
            u = np.asarray(np.fft.irfft(through * np.fft.rfft(e), _PERIOD), np.float64)[:_DRAWN_SAMPLES]
            x = np.asarray(loop.sample_time * np.arange(len(u)), np.float64)
            name = name if np.isnan(loop.noise_gain) else f"{name} (noise gain {number(loop.noise_gain, 3)})"
        hover = f"{name}<br>%{{x:.4~g}} s: <b>%{{y:.4~g}}</b>"
        traces.append(trace(x, u, name, hover=hover, line={"color": category(k), "width": 1.2, "shape": "hv"}))
    return traces


def _half(plots: Sequence[Traces], *, lower: bool) -> dict[str, Any]:
    """A log axis of half a figure's height for all `plots`."""
    magnitudes = [trace["y"] for traces in plots for trace in traces if ("yaxis" in trace) == lower and len(trace["y"])]
    sizes = np.concatenate(magnitudes)
    sizes = sizes[(sizes > 0.0) & np.isfinite(sizes)]
    low, high = float(sizes.min()), float(sizes.max())
    first, last = np.floor(np.log10(low)), np.ceil(np.log10(high))
    visible_ticks: list[float] = []
    for mantissas in _MANTISSAS:
        step = 1 if len(mantissas) > 1 else int((last - first) // _MOST_TICKS) + 1
        ticks = [float(m * 10.0**k) for k in np.arange(first, last + 1.0, step) for m in mantissas]
        visible_ticks = [tick for tick in ticks if 0.6 * low <= tick <= 1.7 * high]
        if len(visible_ticks) <= _MOST_TICKS:
            break
    return {"type": "log", "exponentformat": "power", "tickvals": visible_ticks}


def _bode_axes(upper: str, lower: str, of_upper: dict[str, Any], of_lower: dict[str, Any]) -> dict[str, Any]:
    return layout(
        xaxis=axis("frequency [rad/s]", type="log", anchor="y2"),
        yaxis=axis(upper, **of_upper, domain=[0.54, 1.0]),
        yaxis2=axis(lower, **of_lower, domain=[0.0, 0.46]),
    )


def _bode_layout(plots: Sequence[Traces]) -> dict[str, Any]:
    """The phase axis ends after four half turns: a further phase lag by delay is far above the crossovers."""
    phases = [trace["y"] for traces in plots for trace in traces if "yaxis" in trace and len(trace["y"])]
    low, high = min(float(y.min()) for y in phases), max(float(y.max()) for y in phases)
    low = max(low, min(high, 0.0) - 720.0)
    phase = {"dtick": 90 if high - low <= 450.0 else 180, "range": [low - 20.0, high + 20.0]}
    return _bode_axes("|L|", "phase of L [deg]", _half(plots, lower=False), phase)


_FIGURES: tuple[
    tuple[str, Callable[[Mapping[str, AnalysedLoop]], Traces], Callable[[Sequence[Traces], str], dict[str, Any]], str],
    ...,
] = (
    ("Bode plot", _bode, lambda plots, _: _bode_layout(plots), ""),
    (
        "From noise to command, from load to output",
        _noise_and_load,
        lambda plots, _: _bode_axes("|KS|", "|GS|", _half(plots, lower=False), _half(plots, lower=True)),
        "K is the controller from the measurement to the command, G the plant from the command to the output.",
    ),
    (
        "Command under measurement noise",
        _noise,
        lambda _, command: layout(xaxis=axis("time [s]"), yaxis=axis(command)),
        "White noise of standard deviation 1 alone, the same for all designs, without limits on the command.",
    ),
)
