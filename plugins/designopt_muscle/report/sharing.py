"""Report part of muscle-force sharing: activations, moments by muscle, reserves, fibres, frames beyond the muscles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from designopt.plugin import report_part
from designopt.report.colours import axis, layout
from designopt.report.designs import Arrays, Plot, line, missing, selectable, stored_arrays
from designopt.report.section import Figure, Section, with_folded_rest
from designopt.store.result import Result
from designopt_muscle.curves import OPENSIM
from designopt_muscle.report.balances import balance_figures
from designopt_muscle.report.frames import frame_table, short_frames
from designopt_muscle.report.joint_reactions import reaction_parts
from designopt_muscle.report.named_muscles import drawn_muscles, key_of_lines, named_muscles, signals_of

_NAMES = (
    "time", "muscles", "coordinates", "activations", "muscle_moments", "net_moments", "reserves", "shortfall",
    "strength_factor", "status",
)  # fmt: skip


@report_part("muscle_sharing", version=2, arrays=_NAMES)
def muscle_sharing(result: Result) -> Section | None:
    """Activations (with measured ones), balances stacked by muscle, reserves, fibre ranges, frames and their shortfall.

    Measured activity, margins, forces in joints and fibres are drawn if the arrays `signals`, `margin`, `reactions`
    with `joints`, and `fibre_lengths` are recorded.
    """
    title = "Muscles"
    motions = stored_arrays(result, *_NAMES)
    if not motions:
        return missing(title, *_NAMES) if len(result.outcomes.X) else None
    motions = {key: arrays for key, arrays in motions.items() if len(arrays["muscles"])}
    if not motions:  # the chain ended before the muscles
        return None
    short = short_frames(motions)
    reactions = reaction_parts(motions) if all(len(arrays.get("joints", ())) for arrays in motions.values()) else None
    highlights = named_muscles(motions, "activations")
    note = key_of_lines(motions, "Dotted: measured activity, scaled.", "The most active muscles are named.")
    sentence = "In all designs shown, every frame is balanced by the muscles." if short is None else ""
    figures = [
        selectable("Activations", motions, partial(_activations, highlights=highlights), height=420, note=note),
        *balance_figures(motions),
        *([margin_figure(motions)] if all("margin" in arrays for arrays in motions.values()) else []),
        *(reactions.figures if reactions is not None else ()),
        *([fibre_ranges(motions)] if all("fibre_lengths" in arrays for arrays in motions.values()) else []),
        *([short] if short is not None else []),
    ]
    section = Section(
        title,
        introduction=f"The lines skip frames without a solution. {sentence}".strip(),
        figures=tuple(figures),
        tables=(*(reactions.tables if reactions is not None else ()), frame_table(motions)),
        findings=reactions.findings if reactions is not None else (),
    )
    return with_folded_rest(section, _notes(motions))


def _notes(motions: Mapping[tuple[str, str], Arrays]) -> tuple[str, ...]:
    """Remarks on the trials: assumed units, replaced curves, jumps of paths, fibres out of range."""
    notes: dict[str, None] = {}
    several = len({scenario for _, scenario in motions}) > 1
    for (_, scenario), arrays in motions.items():
        for note in arrays.get("notes", ()):
            notes[f"{scenario}: {note}" if several else str(note)] = None
    return tuple(notes)


def _activations(arrays: Arrays, *, highlights: Sequence[str]) -> Plot:
    time, a, signals = arrays["time"], np.asarray(arrays["activations"], dtype=float), signals_of(arrays)
    data: list[dict[str, Any]] = []
    for j, name, style in drawn_muscles(arrays, highlights):
        group: dict[str, Any] = {"legendgroup": name} if name else {}
        data.append(line(time, a[:, j], name, line=style, **group))
        if name and np.isfinite(signals[:, j]).any():
            data.append(line(time, signals[:, j], line={**style, "dash": "dot"}, **group))
    highest = max(float(np.nanmax(part, initial=0.0)) for part in (a, signals))
    top = 1.05 if 0.5 < highest <= 1.0 else 1.1 * max(highest, 0.01)
    return {"data": data, "layout": layout(xaxis=axis("time [s]"), yaxis=axis("activation", range=[0.0, top]))}


#: Frames that lack more than ten times the strength are drawn at this.
_LOWEST = -10.0


def margin_figure(motions: Mapping[tuple[str, str], Arrays]) -> Figure:
    """The margin of strength in every frame; below 0 the deficit."""
    return selectable(
        "Feasibility margin", motions, _margin, height=320,
        note="The share of their strength that all muscles could lose and still balance the frame without reserves."
        " Frames below 0 are beyond them; those that no strength balances are drawn at the lower edge.",
    )  # fmt: skip


def _margin(arrays: Arrays) -> Plot:
    time, margin = np.asarray(arrays["time"]), np.asarray(arrays["margin"], dtype=float)
    finite = margin[np.isfinite(margin)]
    values = np.maximum(margin, max(_LOWEST, float(finite.min(initial=-1.0 if np.isinf(margin).any() else 0.0))))
    data = [line(time, values, "margin", line={"color": "@accent", "width": 1.8}, showlegend=False)]
    short = margin < 0.0
    if short.any():
        data.append(
            {"type": "scatter", "mode": "markers", "x": np.round(time[short], 5), "y": np.round(values[short], 5),
             "name": "beyond the muscles", "marker": {"color": "@mark", "size": 5},
             "hovertemplate": "%{x:.4g} s: %{y:.1%}<extra>beyond the muscles</extra>"}
        )  # fmt: skip
    edge = {"color": "@ink", "width": 1.2, "dash": "dash"}
    data.append(line(time[[0, -1]], np.zeros(2), "edge", line=edge, showlegend=False))
    lowest = min(float(np.nanmin(values, initial=0.0)) * 1.08, -0.05)
    return {
        "data": data,
        "layout": layout(xaxis=axis("time [s]"), yaxis=axis("strength left", range=[lowest, 1.02], tickformat=".0%")),
    }


def fibre_ranges(motions: Mapping[tuple[str, str], Arrays]) -> Figure:
    """Range and median of each muscle's fibre length over the trial, below the curve of active force."""
    count = max(len(arrays["muscles"]) for arrays in motions.values())
    return selectable(
        "Fibre lengths", motions, _fibres, height=int(np.clip(140 + 16 * count, 300, 1600)),
        note="Lines are ranges over the trial, points medians, in optimal lengths; the area is the active force.",
    )  # fmt: skip


def _fibres(arrays: Arrays) -> Plot:
    lengths = np.asarray(arrays["fibre_lengths"], dtype=float)
    names = [str(name) for name in arrays["muscles"]]
    low, middle, high = (np.nanquantile(lengths, share, axis=0) for share in (0.0, 0.5, 1.0))
    ends = np.full((3, len(names)), np.nan)
    ends[0], ends[1] = low, high
    rows = np.repeat(np.arange(len(names)), 3)
    x = np.linspace(min(0.4, float(low.min())), max(1.6, float(high.max())), 200)
    data = [
        line(x, OPENSIM.active_length(x), line={"color": "@faint", "width": 0}, fill="tozeroy"),
        line(ends.T.ravel(), rows, line={"color": "@accent", "width": 3}, yaxis="y2"),
        {"type": "scatter", "mode": "markers", "x": np.round(middle, 5), "y": np.arange(len(names)), "text": names,
         "showlegend": False, "yaxis": "y2", "marker": {"color": "@accent", "size": 8},
         "hovertemplate": "%{text}: %{x:.3f}<extra></extra>"},
    ]  # fmt: skip
    ticks = {"tickmode": "array", "tickvals": np.arange(len(names)), "ticktext": names, "automargin": True}
    return {
        "data": data,
        "layout": layout(
            xaxis=axis("fibre length [optimal lengths]"),
            yaxis=axis("active force", side="right", range=[0.0, 1.05], dtick=0.5, showgrid=False),
            yaxis2=axis("", overlaying="y", side="left", range=[len(names) - 0.5, -0.5], showgrid=False, **ticks),
        ),
    }
