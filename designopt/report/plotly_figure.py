"""A figure of a section as a Plotly figure, for notebooks."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from designopt.report.colours import THEMED

if TYPE_CHECKING:
    import plotly.graph_objects


class Drawable(Protocol):
    """The drawable fields of `designopt.report.section.Figure`."""

    @property
    def title(self) -> str: ...
    @property
    def plot(self) -> Any: ...
    @property
    def height(self) -> int: ...
    @property
    def choices(self) -> tuple[Any, ...]: ...
    @property
    def variants(self) -> Mapping[tuple[int, ...], Mapping[str, Any]]: ...


def as_plotly(figure: Drawable, *, dark: bool = False) -> plotly.graph_objects.Figure:
    """`figure` as the page shows it first: its first selection, in the colours of the light or `dark` theme."""
    from designopt.report.notebook_figure import NotebookFigure

    shown_plot = plot_of(figure, (0,) * len(figure.choices))
    plotly_figure = NotebookFigure(_coloured(shown_plot, int(dark)))
    plotly_figure.update_layout(
        title=figure.title, template="plotly_dark" if dark else "plotly_white", height=figure.height, margin={"t": 90}
    )
    return plotly_figure


def plot_of(figure: Drawable, options: tuple[int, ...]) -> Any:
    """The plot with the selected `options`, numbers of those of its choices, as on the page."""
    if not isinstance(figure.plot, Mapping):
        return figure.plot
    variant = figure.variants.get(options)
    if variant is None:
        return figure.plot
    if isinstance(variant.get("data"), list):
        return variant
    plot = copy.deepcopy(dict(figure.plot))
    for traces, change in variant.get("data", {}).items():
        for i in range(len(plot["data"])) if traces == "*" else map(int, str(traces).split(",")):
            _merge(plot["data"][i], change)
    _merge(plot.setdefault("layout", {}), variant.get("layout", {}))
    return plot


def _merge(target: dict[str, Any], change: Mapping[str, Any]) -> None:
    for key, value in change.items():
        if isinstance(value, Mapping) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = copy.deepcopy(value)


def _coloured(value: Any, theme: int) -> Any:
    """`value` with colours in place of their themed names."""
    if isinstance(value, str):
        return THEMED[value][theme] if value in THEMED else value
    if isinstance(value, Mapping):
        return {k: _coloured(v, theme) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_coloured(v, theme) for v in value]
    return value
