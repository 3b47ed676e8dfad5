"""Figures of a result for notebooks.

>>> from designopt.report.notebook import plot
>>> plot(result)                         # doctest: +SKIP
>>> plot(result, "convergence").show()   # doctest: +SKIP
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from designopt import plugin
from designopt.report.colours import THEMED

if TYPE_CHECKING:
    import plotly.graph_objects

    from designopt.report.section import Figure
    from designopt.store.result import Result


def plot(
    result: Result, part: str = "front", number: int = 0, *, dark: bool = False, **settings: Any
) -> plotly.graph_objects.Figure:
    """Figure `number` of a part of the report as a Plotly figure, which a notebook shows; the first of its selections.

    `settings` are those of the part. Raises `ValueError` when the part has nothing to show here or fewer figures, and
    `PluginError` for an unknown part.
    """
    import plotly.graph_objects as go

    section = plugin.Use(plugin.find("report", part), settings).build()(result)
    figures = section.figures if section is not None else ()
    if not figures:
        said = f": {section.introduction}" if section is not None and section.introduction else ""
        raise ValueError(f"the part '{part}' has no figure for this result{said}")
    if not 0 <= number < len(figures):
        raise ValueError(f"the part '{part}' has {len(figures)} figures here, numbered from 0; there is no {number}")
    figure = figures[number]
    drawn = go.Figure(_coloured(_first(figure), int(dark)))
    drawn.update_layout(
        title=figure.title, template="plotly_dark" if dark else "plotly_white", height=figure.height, margin={"t": 90}
    )
    return drawn


def _first(figure: Figure) -> Any:
    """The plot with what its selectors choose at the beginning, as the page shows it."""
    if not isinstance(figure.plot, Mapping):
        return figure.plot
    variant = figure.variants.get((0,) * len(figure.choices))
    if variant is None:
        return figure.plot
    if isinstance(variant.get("data"), list):
        return variant
    shown = copy.deepcopy(dict(figure.plot))
    for traces, change in variant.get("data", {}).items():
        for i in range(len(shown["data"])) if traces == "*" else map(int, str(traces).split(",")):
            _merge(shown["data"][i], change)
    _merge(shown.setdefault("layout", {}), variant.get("layout", {}))
    return shown


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
