"""The figure of a study's subject that stands beside its answer: smaller, with short names."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from designopt.report.labels import RECOMMENDED, chosen_labels, marked_designs
from designopt.report.parts.answer import summary
from designopt.report.parts.motion import trajectories
from designopt.report.section import Figure, Section

if TYPE_CHECKING:
    from designopt.store.result import Result

#: Height of the highest figure that still shows its curves beside the answer.
BESIDE = 560
#: Most letters of a name in its legend.
LETTERS = 24


def figures_beside_answer(
    result: Result, parts: Sequence[Section], *, motion: bool, recommended_alone: bool = False
) -> tuple[Figure, ...]:
    """The first figure that fits beside the answer, of the `parts` of the subject or, with `motion`, the beginning of
    the trajectories; none if there is none.

    Legends name designs without their values, which stand beside them; long titles of axes are wrapped. With
    `recommended_alone` the other chosen designs are not drawn.
    """
    names = _names(result, recommended_alone=recommended_alone)
    for section in parts:
        for figure in section.figures:
            if figure.height <= BESIDE and not figure.width and "frames" not in figure.plot:
                return (
                    replace(
                        figure,
                        title=section.title if recommended_alone else f"{section.title}: {figure.title}",
                        note="",
                        height=min(figure.height, summary.HEIGHT),
                        plot=_small(figure.plot, names),
                        variants={key: _small(plot, names) for key, plot in figure.variants.items()},
                    ),
                )
    return trajectories.in_short(result, summary.HEIGHT)[:1] if motion else ()


@dataclass(frozen=True)
class _Names:
    """Names in a small legend: `short` of designs that several rules chose, that of the `recommendation`; the labels
    of `hidden` designs."""

    short: Mapping[str, str]
    recommendation: str
    hidden: frozenset[str]


def _names(result: Result, *, recommended_alone: bool) -> _Names:
    """The short name of a design is the label that is recommended, else its first."""
    recommendation, recommended_row = result.recommended() or ("", -1)
    short = {
        ", ".join(labels): recommendation if recommendation in labels else labels[0]
        for labels in chosen_labels(result).values()
        if len(labels) > 1
    }
    hidden = {label for label, row in marked_designs(result).items() if recommended_alone and row != recommended_row}
    return _Names(short, recommendation, frozenset(hidden))


def _small(plot: Mapping[str, Any], names: _Names) -> dict[str, Any]:
    """The upper panel of the plot with short names and wrapped titles of axes."""
    data = plot.get("data", ())
    if isinstance(data, Mapping):
        short = {**plot, "data": {traces: _short_name(change, names) for traces, change in data.items()}}
    else:
        short = {**plot, "data": [_short_name(trace, names) for trace in data]}
    upper = _upper(short)
    axes = {
        name: _wrapped(axis, summary.ROOM if name[0] == "x" else summary.UPRIGHT)
        for name, axis in upper.get("layout", {}).items()
        if name.startswith(("xaxis", "yaxis"))
    }
    return {**upper, "layout": {**upper.get("layout", {}), **axes}}


def _wrapped(axis: Mapping[str, Any], room: int) -> dict[str, Any]:
    """The axis with its title in lines of at most `room` letters."""
    title: Mapping[str, Any] = axis["title"] if isinstance(axis.get("title"), Mapping) else {}
    text = title.get("text", "")
    if len(text) <= room or "<" in text:
        return dict(axis)
    return {**axis, "title": {**title, "text": "<br>".join(textwrap.wrap(text, room))}}


def _upper(plot: Mapping[str, Any]) -> dict[str, Any]:
    """The plot with the upper one alone of two panels over one x axis."""
    layout = plot.get("layout", {})
    if "xaxis2" in layout or "yaxis3" in layout or "domain" not in layout.get("yaxis2", {}):
        return dict(plot)
    data = [{**trace, "visible": False} if trace.get("yaxis") == "y2" else trace for trace in plot["data"]]
    axes = {name: {**layout[name], "domain": [0.0, 1.0]} for name in ("yaxis", "yaxis2")}
    axes["yaxis2"] |= {"visible": False, "anchor": "x"}
    return {**plot, "data": data, "layout": {**layout, **axes, "xaxis": {**layout["xaxis"], "anchor": "y"}}}


def _short_name(trace: Mapping[str, Any], names: _Names) -> dict[str, Any]:
    """The trace with its short name; that of the recommended design lies over the others, a hidden one is not drawn."""
    if not isinstance(trace.get("name"), str):
        return dict(trace)
    name = trace["name"].partition(": ")[0]
    if name in names.hidden:
        return {**trace, "visible": False}
    label = name.removesuffix(RECOMMENDED)
    mark = name[len(label) :]
    name = names.short.get(label, label)
    over = {"zorder": 1} if name == names.recommendation and trace.get("type") == "scatter" else {}
    short = name if len(name) <= LETTERS else f"{name[: LETTERS - 1].rstrip(' ,')}…"
    return {**trace, **over, "name": short + mark}
