"""What a part of a report is made of: a section with words, facts, figures and tables. Plain immutable values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Selector:
    """A selector above a figure: `label`, and the options it offers; the first one is shown at the beginning."""

    label: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """One drawing.

    `plot` is a Plotly figure: a mapping with ``data``, ``layout`` and optionally ``frames`` (NumPy arrays are welcome),
    or a `plotly.graph_objects.Figure`. Colours may be names of `designopt.report.colours.THEMED` (``"@ink"``): they
    follow the page from light to dark.

    With `choices`, the page shows a selector for each; `variants` tells for each combination of option numbers what
    changes in the plot: ``{"data": {"0,1": {...}}, "layout": {...}, "frames": [...]}``, where the keys of ``data`` are
    trace numbers (several with commas, ``"*"`` for all) and mappings are merged in depth. A variant whose ``data`` is a
    list is a plot of its own.
    `height` is in CSS pixels; a figure is as wide as the page, or at least `width`: then the reader scrolls. With
    `loop`, an animation that comes to its end starts again.

    `designs` gives, by trace number, the design (row of the result) of each point. `brushed` belongs to a plot whose
    first trace is ``parcoords``: a table with a row for each line. The page shows those within the brushes below the
    plot, and sets off their points in every figure, and their rows in every table, that say which designs they have.
    """

    title: str
    plot: Any
    note: str = ""
    height: int = 460
    choices: tuple[Selector, ...] = ()
    variants: Mapping[tuple[int, ...], Mapping[str, Any]] = field(default_factory=dict)
    loop: bool = False
    width: int = 0
    designs: Mapping[int, NDArray[np.intp]] = field(default_factory=dict)
    brushed: Table | None = None

    def plotly(self, *, dark: bool = False) -> Any:
        """The figure as Plotly's own (`designopt.report.plotly_figure`)."""
        from designopt.report.plotly_figure import drawn

        return drawn(self, dark=dark)


@dataclass(frozen=True)
class Table:
    """A table, with a download of all its rows as CSV in full precision.

    The page shows the first `shown` rows. Rows whose number is in `marked` are set off from the others. `designs` are
    the rows of the result that the rows of the table tell of.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""
    shown: int = 25
    marked: frozenset[int] = frozenset()
    designs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Section:
    """One part of the report, in the order in which it is shown.

    `introduction` is plain text, paragraphs separated by an empty line; `facts` are (name, value) pairs shown large;
    `findings` are sentences shown as a list; `notes` are shown small at the end; `details` are (summary, text) pairs,
    folded away. All strings are plain text: the page escapes them.
    """

    title: str
    introduction: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    findings: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    details: tuple[tuple[str, str], ...] = ()
