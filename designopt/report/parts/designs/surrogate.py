"""Report part `surrogate`: the Gaussian processes of the solver gp, and the expected gain of a next design."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.counts import plural
from designopt.plugin import SolverPlugin, Use, report_part
from designopt.problem import Problem
from designopt.report.colours import axis, layout, scale_for
from designopt.report.labels import listed, number, parameter_label, plain, with_unit
from designopt.report.section import Figure, Section, Table
from designopt.report.traces import Trace, selected
from designopt.solvers.auto import Auto
from designopt.solvers.surrogate.candidates import candidates
from designopt.solvers.surrogate.coordinates import Coordinates
from designopt.solvers.surrogate.model import Surrogate
from designopt.solvers.surrogate.observations import Observations
from designopt.solvers.surrogate.processes import Process, Processes
from designopt.store.result import Result

#: Number of designs from which fitting takes seconds; a search with the processes rarely has more.
DESIGNS = 500
#: Points along a slice, and candidates for the next design.
ALONG, CANDIDATES = 41, 2048
#: Subplots per row.
COLUMNS = 3
#: Error relative to the values' spread above which a process predicts poorly.
POOR = 0.5
#: Style of the lower end, the upper end and the mean: along a real parameter, and at the values of another.
_SAYS_VALUE = {"hovertemplate": "%{y:.5~g}<extra></extra>"}
_BETWEEN = (
    {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"},
    {"mode": "lines", "line": {"width": 0}, "fill": "tonexty", "fillcolor": "@band", "hoverinfo": "skip"},
    {"mode": "lines", "line": {"color": "@accent", "width": 2}, **_SAYS_VALUE},
)
_END = {"mode": "markers", "marker": {"color": "@accent", "size": 12, "symbol": "line-ew-open"}, **_SAYS_VALUE}
_AT_VALUES = (_END, _END, {"mode": "markers", "marker": {"color": "@accent", "size": 7}, **_SAYS_VALUE})
_CENTRE = {"mode": "markers", "marker": {"color": "@mark", "size": 8}, **_SAYS_VALUE}


@report_part("surrogate", version=1)
def surrogate(result: Result) -> Section | None:
    """Slices of the processes through the suggested design, their accuracy, and the expected gain."""
    fit = _fit(result)
    if fit is None:
        return None
    model, processes, cheap_count = fit
    centre, name = _centre(result, processes)
    table, poor = _accuracy(result, processes)
    findings = [_gain_sentence(model, processes)] if processes.boxes is not None else []
    if poor:
        findings.append(
            f"{listed(poor)}: prediction errors exceed half the standard deviation; predictions are unreliable."
        )
    return Section(
        "Surrogate model",
        introduction="Gaussian-process models of the solver gp, fitted to all designs: predictions along each "
        f"parameter through {name}, with the others fixed. Bands are ± two standard deviations."
        + (f" {plural(cheap_count, 'cheap evaluation')} included." if cheap_count else ""),
        findings=tuple(findings),
        figures=(_slices(result, model.coordinates, processes, centre),),
        tables=(table,),
    )


def expected_gain(result: Result) -> tuple[float, str] | None:
    """The share that the next design of the last search by gp is expected to gain, and of what; None without processes
    of feasible designs."""
    fit = _fit(result)
    if fit is None or fit[1].boxes is None:
        return None
    share = _gain(fit[0], fit[1])
    return None if share is None else (share, _gain_reference(fit[1]))


def _fit(result: Result) -> tuple[Surrogate, Processes, int] | None:
    """The processes of the last search by gp, fitted to all designs, and the number of cheap evaluations among them;
    None without such a search, and for too few or too many designs."""
    problem = result.problem
    searches = [search for stage in result.study.stages if (search := _gp(stage.solver, problem)) is not None]
    if not searches or not problem.objectives:
        return None
    slopes = problem.gradients and searches[-1].get("gradients") is not False and result.cheap is None
    observations = Observations.from_outcomes(problem, [result.outcomes], slopes) if len(result.outcomes) else None
    if observations is None or int((~observations.failed).sum()) < 4 or len(observations.X) > DESIGNS:
        return None
    model = Surrogate(problem, searches[-1].get("noise"))
    cheap = Observations.from_outcomes(problem, [result.cheap]) if result.cheap is not None else None
    processes = model.processes(observations, np.empty((0, observations.X.shape[1])), cheap)
    return model, processes, 0 if cheap is None else len(cheap.X)


def _gp(use: Use[SolverPlugin], problem: Problem) -> Mapping[str, Any] | None:
    """The settings of the solver gp, named by a stage or chosen by the solver `auto`; None for other solvers."""
    if use.plugin.target is Auto:
        choice = use.build().choice(problem)
        return choice.use.settings if choice.name == "gp" else None
    return use.settings if use.plugin.name == "gp" else None


def _centre(result: Result, processes: Processes) -> tuple[Floats, str]:
    row = result.compromise()
    if row is None:
        return processes.front[0], "the design with the smallest violation"
    name = "the compromise" if len(result.problem.objectives) > 1 else "the best design"
    return result.outcomes.X[row], name


def _gain(model: Surrogate, processes: Processes) -> float | None:
    """Expected gain of the best of many candidates, as a share of `_gain_reference`; None without candidates."""
    X = candidates(model.coordinates, processes.front, CANDIDATES, np.random.default_rng(0), None)
    if not len(X):
        return None
    return float(np.exp(processes.acquisition(model.coordinates.features(X)).max())) / processes.hypervolume


def _gain_reference(processes: Processes) -> str:
    return "the hypervolume" if len(processes.objectives) > 1 else "the standard deviation of the objective"


def _gain_sentence(model: Surrogate, processes: Processes) -> str:
    share = _gain(model, processes)
    if share is None:
        return "No design remains that satisfies the relations."
    return f"The next design is expected to gain {number(100.0 * share, 2)} % of {_gain_reference(processes)}."


def _outputs(result: Result, processes: Processes) -> list[tuple[str, str, Process]]:
    """Name, unit and process of each objective, then of each limit."""
    problem = result.problem
    labels = [(o.name, o.unit) for o in problem.objectives]
    for limit in problem.limits:
        side = "" if limit.equality else " (max)" if limit.sign > 0 else " (min)"
        labels.append((f"limit {limit.constraint.name}{side}", ""))
    figure_processes = (*processes.objectives, *processes.limits)
    return [(n, unit, process) for (n, unit), process in zip(labels, figure_processes, strict=False)]


def _accuracy(result: Result, processes: Processes) -> tuple[Table, list[str]]:
    """Leave-one-out prediction error of each output; names of poorly predicted ones."""
    rows, poor = [], []
    for name, _, process in _outputs(result, processes):
        mean, sd = process.leave_one_out()
        error = process.values - mean
        spread = float(process.values.std())
        ratio = float(np.sqrt(np.mean(error**2))) / spread if spread > 0.0 else 0.0
        inside = float(np.mean(np.abs(error) <= 1.96 * np.maximum(sd, 1e-12)))
        noise = float(np.sqrt(process.hyperparameters.noise * process.variance))
        rows.append((name, ratio, inside, noise / spread if spread > 0.0 else 0.0))
        if ratio > POOR:
            poor.append(name)
    columns = ("output", "error / spread", "within 95 % bands", "noise / spread")
    note = "Leave-one-out errors: 0 is perfect, 1 is no better than the mean."
    return Table("Accuracy of the surrogate", columns, tuple(rows), note=note), poor


def _slices(result: Result, coordinates: Coordinates, processes: Processes, centre: Floats) -> Figure:
    """One small plot for each parameter; a selector for the output."""
    free, outputs = result.problem.space.free, _outputs(result, processes)
    columns = min(COLUMNS, len(free))
    rows = -(-len(free) // columns)
    width, height = 1.0 / columns, 1.0 / rows
    axes: dict[str, Any] = {}
    plots: list[tuple[tuple[Trace, ...], Floats, str, list[tuple[Floats, Floats, Floats]]]] = []
    for j, p in enumerate(free):
        X, positions, ticks = _along(coordinates, centre, j)
        suffix = "" if j == 0 else str(j + 1)
        left, top = j % columns * width, 1.0 - j // columns * height
        across = {"domain": [left + 0.15 * width, left + 0.97 * width], "anchor": f"y{suffix}"}
        across |= {"type": "log"} if p.kind == "real" and p.scale == "log" else ticks
        axes[f"xaxis{suffix}"] = axis(plain(parameter_label(p)), **across)
        up = {"domain": [top - 0.72 * height, top - 0.04 * height], "anchor": f"x{suffix}", "nticks": 4}
        axes[f"yaxis{suffix}"] = axis("", **up)
        at = positions[np.argmin(np.abs(positions - centre[j]))] if p.kind != "choice" else centre[j]
        features = coordinates.features(np.vstack([X, centre[None]]))
        bands = [_band(result, processes, k, process, features) for k, (_, _, process) in enumerate(outputs)]
        plots.append((_BETWEEN if p.kind == "real" else _AT_VALUES, np.append(positions, at), suffix, bands))

    def draw(k: int) -> list[Trace]:
        data: list[Trace] = []
        for styles, x, suffix, bands in plots:
            low, middle, high = bands[k]
            each: Trace = {"type": "scatter", "showlegend": False, "xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
            for style, y in zip(styles, (low, high, middle), strict=True):
                data.append({**each, "x": x[:-1], "y": y[:-1], **style})
            data.append({**each, "x": x[-1:], "y": middle[-1:], **_CENTRE})
        return data

    def view(k: int) -> Trace:
        return {
            f"yaxis{suffix}": scale_for(np.concatenate(bands[k][::2])) or {"type": "linear"}
            for _, _, suffix, bands in plots
        }

    return selected(
        "Predictions along each parameter",
        {"Output": [with_unit(name, unit) for name, unit, _ in outputs]},
        draw,
        layout(**axes, margin={"l": 30, "r": 10, "t": 10, "b": 30}),
        view=view,
        height=220 * rows + 40,
        note="The dot is the common design of all slices. Limits are relative to their size: values above "
        "0 violate them.",
    )


def _band(
    result: Result, processes: Processes, k: int, process: Process, features: Floats
) -> tuple[Floats, Floats, Floats]:
    """Lower end, mean and upper end in the units of the study."""
    mean, sd = process.predict(features)
    ends = [mean - 2.0 * sd, mean, mean + 2.0 * sd]
    objectives = result.problem.objectives
    if k < len(objectives):
        sign = objectives[k].sign
        low, middle, high = (sign * processes.scales[k].values(end) for end in ends)
        return (low, middle, high) if sign > 0 else (high, middle, low)
    low, middle, high = (processes.limit_sizes[k - len(objectives)] * np.sinh(end / 3.0) * 3.0 for end in ends)
    return low, middle, high


def _along(coordinates: Coordinates, centre: Floats, j: int) -> tuple[Floats, Floats, dict[str, Any]]:
    """Designs along parameter `j`, their axis coordinates, and the axis settings."""
    p = coordinates.space.free[j]
    if p.kind == "choice":
        values = np.arange(len(p.values), dtype=float)
        ticks: dict[str, Any] = {"tickvals": list(range(len(p.values))), "ticktext": [plain(str(v)) for v in p.values]}
    elif p.kind == "int":
        values, ticks = np.unique(np.rint(np.linspace(p.low, p.high, ALONG))), {}
    else:
        U = np.repeat(coordinates.coordinates(centre[None]), ALONG, axis=0)
        U[:, j] = np.linspace(0.0, 1.0, ALONG)
        values, ticks = coordinates.designs(U)[:, j], {}
    X = np.repeat(centre[None], len(values), axis=0)
    X[:, j] = values
    return coordinates.space.impute(X), values, ticks
