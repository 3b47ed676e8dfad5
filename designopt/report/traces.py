"""Traces of Plotly figures, and figures with selectors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from designopt.report.colours import axis
from designopt.report.labels import number
from designopt.report.page.data import as_plain
from designopt.report.section import Figure, Selector

if TYPE_CHECKING:
    from designopt.store.result import Result

Trace = dict[str, Any]

_NO_BOX = "<extra></extra>"


def trace(
    x: Any, y: Any, name: str = "", *, mode: str = "lines", colour: str = "", width: float = 0.0, dash: str = "",
    hover: str = "", **attributes: Any,
) -> Trace:  # fmt: skip
    """A Plotly trace of points; without a `name` it is not in the legend, without `hover` the pointer shows nothing.

    `colour`, `width` and `dash` are those of its line; `hover` is the text of a ``hovertemplate``, with an optional
    second box (``<extra>``).
    """
    line = {key: value for key, value in (("color", colour), ("width", width), ("dash", dash)) if value}
    return {
        "type": "scatter",
        "mode": mode,
        "x": x,
        "y": y,
        **({"name": name} if name else {"showlegend": False}),
        **({"line": line} if line else {}),
        **({"hovertemplate": f"{hover}{'' if '<extra>' in hover else _NO_BOX}"} if hover else {"hoverinfo": "skip"}),
        **attributes,
    }


def selected(
    title: str,
    choices: Mapping[str, Sequence[str]],
    draw: Callable[..., Sequence[Trace]],
    layout: Trace,
    *,
    view: Callable[..., Trace] | None = None,
    **figure_fields: Any,
) -> Figure:
    """A figure of the traces ``draw(*options)``, with a selector for each of the `choices` with several options.

    `options` are the numbers of the selected ones, initially the first. `view` of these returns changes of the
    `layout`. Common parts of all options are stored once.
    """
    labels = [label for label, names in choices.items() if len(names) > 1]
    every = list(itertools.product(*(range(len(names)) for names in choices.values())))
    traces_of = {options: list(draw(*options)) for options in every}
    views = {options: view(*options) if view else {} for options in every}
    changing = _changing(list(traces_of.values()))
    variants = {}
    for options, traces in traces_of.items():
        key = tuple(k for k, label in zip(options, choices, strict=True) if label in labels)
        if changing is None:
            variants[key] = {"data": traces, "layout": _merged(layout, views[options])}
        else:
            changes = {str(i): {name: traces[i][name] for name in names} for i, names in enumerate(changing) if names}
            variants[key] = {"data": changes, "layout": views[options]}
    return Figure(
        title,
        {"data": traces_of[every[0]], "layout": _merged(layout, views[every[0]])},
        choices=tuple(Selector(label, tuple(choices[label])) for label in labels),
        variants=variants if labels else {},
        **figure_fields,
    )


def _changing(plots: Sequence[Sequence[Trace]]) -> list[list[str]] | None:
    """The differences between the plots by trace; None if their traces are not alike."""
    if len({len(plot) for plot in plots}) > 1:
        return None
    changed_names = []
    for traces in zip(*plots, strict=True):
        first = as_plain(traces[0])
        if any(trace.keys() != traces[0].keys() for trace in traces):
            return None
        changed_names.append(
            [name for name in first if any(as_plain(trace[name]) != first[name] for trace in traces[1:])]
        )
    return changed_names


def _merged(layout: Trace, changes: Trace) -> Trace:
    """The layout with changes of its axes."""
    return layout | {name: {**layout.get(name, {}), **change} for name, change in changes.items()}


def scenario_names(result: Result) -> list[str]:
    """Names of the scenarios, for a selector."""
    return [scenario.name for scenario in result.problem.scenarios]


def beside(count: int, gap: float) -> list[list[float]]:
    """Domains of `count` axes side by side, from the left, `gap` apart."""
    size = (1.0 - gap * (count - 1)) / count
    return [[k * (size + gap), k * (size + gap) + size] for k in range(count)]


def above(count: int, gap: float) -> list[list[float]]:
    """Domains of `count` axes above each other, from the top, `gap` apart."""
    return [[max(1.0 - right, 0.0), 1.0 - left] for left, right in beside(count, gap)]


def constant_axis(values: ArrayLike, digits: int = 4, least: float = 0.0) -> dict[str, Any]:
    """Attributes of an axis for `values` that differ by rounding errors or less than `least`, into which Plotly would
    zoom: a tick at their value; none for other values."""
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    if not finite.size or np.ptp(finite) > max(1e-6 * np.abs(finite).max(), least):
        return {}
    value = float(finite[-1]) if np.abs(finite).max() > least else 0.0
    room = abs(value) or least or 1.0
    return {
        "range": [value - room, value + room],
        "tickvals": [value],
        "ticktext": [number(value, digits).replace("-", "−")],
    }


#: Gap between axes one above the other, as a share of the height.
GAP = 0.06


def stacked_axes(rows: Sequence[tuple[str, Trace]]) -> tuple[list[str], dict[str, Trace]]:
    """Axes one above the other, the first on top, over one x axis: their names in traces, and their layout.

    `rows` are titles with further attributes of the axes; the x axis belongs to the last one (``anchor``).
    """
    suffixes = ["", *map(str, range(2, len(rows) + 1))]
    axes = {}
    for suffix, domain, (title, attributes) in zip(suffixes, above(len(rows), GAP), rows, strict=True):
        axes[f"yaxis{suffix}"] = axis(title, domain=domain, **attributes)
    return [f"y{suffix}" for suffix in suffixes], axes
