"""Report part `influence`: importance of parameters, from the sensitivity stages of a study."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.counts import percent, plural
from designopt.plugin import report_part
from designopt.report.colours import CELL_TEXT, ORDERED, axis, bare_layout, colour_bar, layout
from designopt.report.labels import listed, number, plain, with_unit
from designopt.report.section import Figure, Section, Table
from designopt.report.traces import Trace, selected, trace
from designopt.store.result import Result

if TYPE_CHECKING:
    from designopt.problem import Outcomes
    from designopt.solvers.sensitivity import Indices, Influence
    from designopt.study.study import Stage

#: Total index below which a parameter has no influence.
NEGLIGIBLE = 0.01
#: Maximum number of parameters named in a sentence.
NAMED = 3
#: Maximum number of outputs with a sentence; the table has all.
SAID = 6


@report_part("influence", version=1)
def influence(result: Result) -> Section | None:
    """Sensitivity indices with confidence intervals, for every sensitivity stage."""
    findings: list[str] = []
    figures: list[Figure] = []
    tables: list[Table] = []
    notes: list[str] = []
    words: list[str] = []
    try:
        analyses = list(_analyses(result))
    except ImportError as error:  # the store comes from a machine with SALib
        package = str(error.name or error).partition(".")[0]
        how = f"The indices need {package}; install it with: pip install 'designopt[sensitivity]', then make the report"
        return Section("Influence of the parameters", introduction=f"{how} again. The evaluations are kept.")
    for stage, indices, rows in analyses:
        title = f" ({stage.name})" if len(analyses) > 1 else ""
        words.append(_SOBOL if indices.method == "sobol" else _MORRIS)
        findings += [_sentence(indices, i) for i in indices.influences[:SAID]]
        if len(indices.influences) > SAID:
            notes.append(
                f"The first {SAID} of {len(indices.influences)} outputs are described; the table contains all."
            )
        figures += _figures(indices, title)
        tables.append(_table(indices, title))
        notes += _notes(stage, indices, rows)
    if not analyses:
        return None
    return Section(
        "Influence of the parameters",
        introduction="\n\n".join(dict.fromkeys(words)),
        findings=tuple(findings),
        figures=tuple(figures),
        tables=tuple(t for t in tables if t.rows),
        notes=tuple(notes),
    )


_SOBOL = (
    "Sobol' indices: the share of an output's variance caused by a parameter alone (first "
    "order), and including interactions (total), for independent uniform parameters. A parameter "
    "whose total "
    "is near 0 may be fixed anywhere. A total well above the first order indicates interaction. "
    "Whiskers are confidence intervals; estimates may lie slightly outside 0 … 1."
)
_MORRIS = (
    "Morris' elementary effects: the change of an output when one parameter moves through its "
    "range. μ* is the mean magnitude of the change, μ the mean with its sign, and σ its standard "
    "deviation over the space: large if the effect is nonlinear or depends on other parameters. "
    "Effects rank parameters; they are not shares of variance."
)


def influence_sentences(result: Result) -> list[str]:
    """A sentence on each output of the sensitivity stages, at most 6 of a stage; none where the package for them is
    missing."""
    try:
        analyses = list(_analyses(result))
    except ImportError:
        return []
    return [_sentence(indices, i) for _, indices, _ in analyses for i in indices.influences[:SAID]]


def in_ask_order(result: Result, stage: str) -> tuple[Outcomes, NDArray[np.intp]]:
    """Outcomes of all requests of `stage`, with repeats, and their rows; incomplete designs count as failed."""
    rows = np.asarray(result.designs_of(stage), dtype=np.intp)
    outcomes = result.outcomes.take(np.maximum(rows, 0)) if len(result.outcomes) else result.outcomes
    if not len(outcomes):
        return outcomes, rows[:0]
    missing = rows < 0
    figures = {name: np.where(missing[:, None], np.nan, values) for name, values in outcomes.figures.items()}
    return replace(outcomes, failed=outcomes.failed | missing, figures=figures), rows


def _analyses(result: Result) -> Iterator[tuple[Stage, Indices, NDArray[np.intp]]]:
    """Sensitivity stages that have begun, their indices and requested rows."""
    for stage in result.study.stages:
        if not stage.solver.plugin.has("indices"):
            continue
        outcomes, rows = in_ask_order(result, stage.name)
        if len(rows):
            yield stage, stage.solver.build().indices(result.problem, outcomes), rows


def _main(indices: Indices) -> str:
    """The measure for the order of parameters."""
    return "total" if indices.method == "sobol" else "mu_star"


def _sentence(indices: Indices, i: Influence) -> str:
    if i.undefined_reason:
        return f"{i.output}: {i.undefined_reason[0].lower()}{i.undefined_reason[1:]}"
    main = i.measures[_main(indices)]
    order = np.argsort(-main, kind="stable")[:NAMED]
    if indices.method == "morris":
        effects = [f"{indices.parameters[j]} ({number(float(main[j]), 3)} {i.unit}".rstrip() + ")" for j in order]
        return f"{i.output} changes most with {listed(effects)}, over their whole ranges."
    effects = [f"{indices.parameters[j]} ({percent(main[j])})" for j in order if main[j] >= NEGLIGIBLE]
    effects = [effects[0].replace(")", " of its variance)"), *effects[1:]] if effects else []
    idle = [
        name
        for name, total, width in zip(indices.parameters, main, i.measures["total_confidence"], strict=True)
        if total + width < NEGLIGIBLE
    ]
    interactions = 1.0 - float(i.measures["first"].sum())
    text = (
        f"{i.output} is governed by {listed(effects)}" if effects else f"{i.output} is governed by no single parameter"
    )
    if interactions > 0.1:
        text += f"; {percent(interactions)} come from interactions"
    if idle:
        names = idle if len(idle) <= 2 * NAMED else [*idle[: 2 * NAMED], f"{len(idle) - 2 * NAMED} others"]
        text += f"; {listed(names)} {'has' if len(idle) == 1 else 'have'} no influence (total below 1 %)"
    return text + "."


def _figures(indices: Indices, title: str) -> list[Figure]:
    influences = [i for i in indices.influences if not i.undefined_reason]
    if not influences:
        return []
    figures = [_bars(indices, influences, title)]
    if indices.method == "morris":
        figures.append(_scatter(indices, influences, title))
    elif "second" in influences[0].measures and len(indices.parameters) > 1:
        figures.append(_pairs(indices, influences, title))
    return figures


def _outputs(influences: list[Influence]) -> dict[str, list[str]]:
    """The options of the selector."""
    return {"Output": [i.output for i in influences]}


def _bars(indices: Indices, influences: list[Influence], title: str) -> Figure:
    """Horizontal bars with whiskers, the largest on top."""
    sobol = indices.method == "sobol"
    names = [("total", "with others (total)", "@accent"), ("first", "alone (first order)", "@mark")] if sobol else []
    names = names or [("mu_star", "mean magnitude of the effect (μ*)", "@accent")]

    def draw(k: int) -> list[Trace]:
        measures = influences[k].measures
        order = np.argsort(measures[_main(indices)], kind="stable")
        whiskers = {"type": "data", "color": "@ink", "thickness": 1.2, "width": 3}
        return [
            {"type": "bar", "orientation": "h", "name": label, "marker": {"color": colour},
             "x": measures[name][order], "y": [plain(_short(indices.parameters[j])) for j in order],
             "error_x": {**whiskers, "array": measures[f"{name}_confidence"][order]},
             "hovertemplate": "%{y}: <b>%{x:.3~g}</b> ± %{error_x.array:.2~g}<extra>" + label + "</extra>"}
            for name, label, colour in names
        ]  # fmt: skip

    axes = {
        "xaxis": axis("", rangemode="tozero", zeroline=True),
        "yaxis": axis("", type="category", tickmode="linear", dtick=1, showgrid=False),
    }
    return selected(
        f"{'Sobol’ indices' if sobol else 'Mean effects'}{title}",
        _outputs(influences),
        draw,
        layout(**axes, barmode="group", bargap=0.3, legend=_ABOVE),
        view=lambda k: {"xaxis": {"title": {"text": _scale_title(indices, influences[k])}}},
        note=f"Whiskers: {percent(indices.confidence)} confidence, by bootstrap.",
        height=(30 if sobol else 22) * len(indices.parameters) + 150,
    )


_ABOVE = {"orientation": "h", "yanchor": "bottom", "y": 1.0, "xanchor": "left", "x": 0, "traceorder": "normal"}


def _scale_title(indices: Indices, i: Influence) -> str:
    if indices.method == "sobol":
        return f"share of the variance of {plain(i.output)}"
    return f"change of {plain(with_unit(i.output, i.unit))}"


def _short(name: str) -> str:
    return name if len(name) <= 28 else name[:27] + "…"


def _scatter(indices: Indices, influences: list[Influence], title: str) -> Figure:
    """Morris' diagram: standard deviation over mean effect."""
    labels = [plain(_short(n)) for n in indices.parameters]
    traces = [
        trace(i.measures["mu_star"], i.measures["sigma"], mode="markers+text", text=labels, textposition="top center",
              textfont={"size": 11}, cliponaxis=False, marker={"size": 9, "color": "@accent"},
              hover="<b>%{text}</b><br>μ* %{x:.4~g}<br>σ %{y:.4~g}")
        for i in influences
    ]  # fmt: skip
    titles = [f"μ* of {plain(with_unit(i.output, i.unit))}" for i in influences]
    return selected(
        f"Standard deviation of the effects over their magnitude{title}",
        _outputs(influences),
        lambda k: [traces[k]],
        bare_layout(xaxis=axis("", rangemode="tozero"), yaxis=axis("σ", rangemode="tozero")),
        view=lambda k: {"xaxis": {"title": {"text": titles[k]}}},
        note="Right: strong. Top: nonlinear, or dependent on other parameters.",
        height=400,
    )


def _pairs(indices: Indices, influences: list[Influence], title: str) -> Figure:
    """Second-order indices as a heat map below the diagonal."""
    labels = [plain(_short(n)) for n in indices.parameters]
    heat_map: Trace = {
        "type": "heatmap", "x": labels[:-1], "y": labels[1:], "colorscale": ORDERED, "hoverongaps": False,
        "colorbar": colour_bar("share of the variance"),
        "hovertemplate": "%{x} with %{y}: <b>%{z:.3~g}</b><extra></extra>",
    }  # fmt: skip
    across, up = (
        axis("", type="category", showgrid=False, **attributes) for attributes in ({}, {"autorange": "reversed"})
    )
    return selected(
        f"Interactions of pairs (second order){title}",
        _outputs(influences),
        lambda k: [heat_map | _cells(influences[k].measures["second"].T[1:, :-1])],
        bare_layout(xaxis=across, yaxis=up),
        height=max(300, 26 * len(labels) + 160),
    )


def _cells(z: Floats) -> dict[str, Any]:
    """Colours from 0, because negative values are noise; numbers if there is room."""
    top = max(float(np.nanmax(z)), 1e-3)
    heat_map = {"z": z, "zmin": 0.0, "zmax": top}
    if len(z) > 9:
        return heat_map
    text = [["" if np.isnan(v) else f"{v:.3f}" for v in line] for line in z.tolist()]
    return {**heat_map, "text": text, "texttemplate": "%{text}", "textfont": CELL_TEXT}


def _table(indices: Indices, title: str) -> Table:
    measures = {
        "first": "first order",
        "first_confidence": "±",
        "total": "total",
        "total_confidence": "± ",
        "mu_star": "μ*",
        "mu_star_confidence": "±",
        "mu": "μ",
        "sigma": "σ",
    }
    present_measures = [m for m in measures if any(m in i.measures for i in indices.influences)]
    rows = []
    for i in indices.influences:
        if i.undefined_reason:
            continue
        for j in np.argsort(-i.measures[_main(indices)], kind="stable").tolist():
            values = tuple(float(i.measures[m][j]) for m in present_measures)
            rows.append((with_unit(i.output, i.unit), indices.parameters[j], *values))
    return Table(
        f"Indices{title}",
        ("output", "parameter", *(measures[m] for m in present_measures)),
        tuple(rows),
        note=f"±: half-width of the {percent(indices.confidence)} confidence interval.",
        visible_rows=30,
    )


def _notes(stage: Stage, indices: Indices, rows: NDArray[np.intp]) -> list[str]:
    distinct = len(np.unique(rows[rows >= 0]))
    block = "trajectories" if indices.method == "morris" else "blocks"
    text = f"Stage {stage.name}: {plural(len(rows), 'design')} in {block} of {indices.block}"
    repetitions = int((rows >= 0).sum()) - distinct
    if repetitions:
        text += f", {distinct} of them distinct; the others were not recomputed"
    notes = [text + "."]
    losses = {
        i.blocks - i.complete_blocks: i
        for i in indices.influences
        if i.complete_blocks < i.blocks and not i.undefined_reason
    }
    for gone, i in losses.items():
        notes.append(
            f"{gone} of {i.blocks} {block} were dropped because one of their designs has no "
            "result: the indices describe the part of the space with results."
        )
    return notes
