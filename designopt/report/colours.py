"""Colours and layout of figures, suitable for colour-blind readers: Okabe & Ito (2008) for categories."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

#: Colours in the light and the dark theme.
_NAMED: Mapping[str, tuple[str, str]] = {
    "@ink": ("#1b2430", "#e8ecf1"),
    "@muted": ("#5b6776", "#9aa7b5"),
    "@faint": ("#b9c2cc", "#4a5663"),
    "@dim": ("#8b98a6", "#76838f"),
    "@grid": ("#e4e8ed", "#2a323c"),
    "@surface": ("#ffffff", "#161b22"),
    "@accent": ("#0072b2", "#56b4e9"),
    "@mark": ("#d55e00", "#ff8c42"),
    "@good": ("#009e73", "#2fc79b"),
    "@band": ("rgba(0,158,115,0.18)", "rgba(47,199,155,0.20)"),
    "@low": ("#440154", "#7cc0ff"),
    "@middle": ("#2a788e", "#7fe3bd"),
    "@high": ("#5ab02f", "#f7f0a0"),
    "@veil": ("rgba(255,255,255,0.82)", "rgba(22,27,34,0.82)"),
    "@blue": ("#0072b2", "#4ba6e0"),
    "@vermilion": ("#d55e00", "#ff8c42"),
    "@green": ("#009e73", "#2fc79b"),
    "@purple": ("#cc79a7", "#e39cc4"),
    "@orange": ("#e69f00", "#f2bc3d"),
    "@sky": ("#56b4e9", "#9ad6f7"),
    "@grey": ("#7f7f7f", "#a3a9b0"),
    "@brown": ("#a6761d", "#cf9f4e"),
}

#: Names of the colours of categories, in the order of use.
CATEGORIES = ("@blue", "@vermilion", "@green", "@purple", "@orange", "@sky", "@grey", "@brown")

#: Number of steps of the colour scale of `STEPS`.
STEP_COUNT = 8


def _step(k: int, theme: int) -> str:
    """The colour in the middle of step `k` of the scale `ORDERED_LINES`."""
    ends = [_NAMED[name][theme] for name in ("@low", "@middle", "@high")]
    at = (k + 0.5) / STEP_COUNT
    channels = [np.interp(at, (0.0, 0.5, 1.0), [int(end[i : i + 2], 16) for end in ends]) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(float(value)):02x}" for value in channels)


#: Names of the colours of a scale in steps, each of which contrasts with the background of its theme.
STEPS = tuple(f"@step{k}" for k in range(STEP_COUNT))
#: Names that the page replaces by a colour of its light or dark theme: (light, dark).
THEMED: Mapping[str, tuple[str, str]] = {**_NAMED, **{name: (_step(k, 0), _step(k, 1)) for k, name in enumerate(STEPS)}}
#: Colour scale of ordered values: uniform in lightness, so that it also works in grey and for colour-blind readers.
ORDERED = "Viridis"
#: The same for lines: each colour contrasts with the background of its theme.
ORDERED_LINES = ((0.0, "@low"), (0.5, "@middle"), (1.0, "@high"))


#: Approximate number of ticks on a log axis.
_LOG_TICKS = 5

#: Ratio of the largest to the smallest positive value from which a log axis is used.
DECADES = 1e3


def category(i: int) -> str:
    """Name of the themed colour of category number `i`."""
    return CATEGORIES[i % len(CATEGORIES)]


def axis(title: str, **attributes: Any) -> dict[str, Any]:
    """A Plotly axis with `title`; further Plotly attributes by keyword.

    With many ticks, Plotly labels 1 to 9 of every decade of a log axis, and the labels overlap: here it has few ticks.
    One that overlies another has round numbers, not those beside the ticks of the other.
    """
    ticks: dict[str, Any] = {"nticks": _LOG_TICKS} if attributes.get("type") == "log" else {}
    if "overlaying" in attributes:
        ticks["tickmode"] = "auto"
    return {"title": {"text": title}, "automargin": True, **ticks, **attributes}


def over_decades(values: ArrayLike) -> bool:
    """Whether `values` (errors, for example) are positive and range over decades; values that are not finite are
    ignored."""
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    return bool(finite.size and finite.min() > 0.0 and finite.max() >= DECADES * finite.min())


def scale_for(values: ArrayLike) -> dict[str, Any]:
    """Attributes of an axis for `values`: a log axis for positive ones that range over decades."""
    return {"type": "log", "exponentformat": "power"} if over_decades(values) else {}


def log_ticks(low: float, high: float, limit: int) -> list[float]:
    """At most `limit` round values from `low` to `high` on a log axis, where Plotly would show one or two.

    They are 1, 2 and 5 of each decade, or 1 and 3, or powers of ten; over a short range they are evenly spaced.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    within = (low * (1.0 - 1e-9), high * (1.0 + 1e-9))
    for digits in ((1, 2, 5), (1, 3), (1,)):
        ticks = [float(f"{digit}e{power}") for power in powers for digit in digits]
        ticks = [tick for tick in ticks if within[0] <= tick <= within[1]]
        if 3 <= len(ticks) <= limit:
            return ticks
    if len(ticks) > limit:
        return ticks[:: -(-len(ticks) // limit)]
    step = 10.0 ** math.floor(math.log10((high - low) / limit))
    step *= next(f for f in (1, 2, 5, 10, 20) if (high - low) / (step * f) < limit)
    return [float(number) * step for number in range(math.ceil(low / step), math.floor(high / step) + 1) if number > 0]


def layout(**attributes: Any) -> dict[str, Any]:
    """A Plotly layout with the common margins and legend."""
    base: dict[str, Any] = {
        "margin": {"l": 64, "r": 24, "t": 60, "b": 56},
        "hovermode": "closest",
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "xanchor": "left", "x": 0},
    }
    return base | attributes


def bare_layout(**attributes: Any) -> dict[str, Any]:
    """The same without a legend."""
    return layout(**{"showlegend": False, "margin": {"l": 64, "r": 24, "t": 36, "b": 56}, **attributes})


def caption(text: str, x: float, y: float, **attributes: Any) -> dict[str, Any]:
    """A Plotly annotation without an arrow, by default above and to the right of a point in shares of the figure."""
    position = {"x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
    return {"text": text, "showarrow": False, **position, **attributes}


def level_line(y: float, **attributes: Any) -> dict[str, Any]:
    """A Plotly shape: a line at height `y` across the whole figure; `line` has its look."""
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, **attributes}


def upright_line(x: float, colour: str, dash: str, **attributes: Any) -> dict[str, Any]:
    """A Plotly shape: a line at `x` over the whole height of the figure."""
    line = {"color": colour, "width": 1, "dash": dash}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": line, **attributes}


#: Look of numbers in the cells of a map. Without a colour Plotly chooses a light or a dark one for each cell; an edge
#: around them would not be printed.
CELL_TEXT = {"weight": 600}


def colour_bar(title: str, **attributes: Any) -> dict[str, Any]:
    """A Plotly colour bar on the right with its title along it."""
    look = {"thickness": 14, "outlinewidth": 0, "len": 1.0, "exponentformat": "power", "minexponent": 5}
    return {"title": {"text": title, "side": "right"}, **look, **attributes}
