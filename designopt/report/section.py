"""Elements of a report part: a section with text, facts, figures and tables, as immutable values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: First rows of a long table of figures that are not folded.
UNFOLDED = 10
#: First notes below a section that are not folded.
SHOWN_NOTES = 6


@dataclass(frozen=True)
class Selector:
    """A selector above a figure: `label` and options; the first one is initially shown.

    On a page where figures have it in common, the option number `dotted` is initially drawn dotted over it.
    """

    label: str
    options: tuple[str, ...]
    dotted: int | None = None


@dataclass(frozen=True)
class Figure:
    """One drawing.

    `plot` is a Plotly figure: a mapping with ``data``, ``layout`` and optionally ``frames`` (NumPy arrays are allowed),
    or a `plotly.graph_objects.Figure`. Colours may be names of `designopt.report.colours.THEMED` (``"@ink"``), which
    follow the light or dark theme of the page.

    With `choices`, the page shows a selector for each; `variants` gives for each combination of option numbers the
    changes of the plot: ``{"data": {"0,1": {...}}, "layout": {...}, "frames": [...]}``, where the keys of ``data`` are
    trace numbers (several with commas, ``"*"`` for all) and mappings are merged recursively. A variant whose ``data``
    is a list is a complete plot. `height` is in CSS pixels; a figure is as wide as the page, or at least `width`, with
    scrolling. With `loop`, an animation restarts at its end. `hint` says what the pointer does in it: not on paper.

    `designs` gives, by trace number, the design (row of the result) of each point. `brushed` belongs to a plot whose
    first trace is ``parcoords``: a table with a row for each line. The page shows those within the brushes below the
    plot, and highlights their points in every figure, and their rows in every table, with `designs`.
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
    hint: str = ""

    def plotly(self, *, dark: bool = False) -> Any:
        """The figure as Plotly's own (`designopt.report.plotly_figure`)."""
        from designopt.report.plotly_figure import as_plotly

        return as_plotly(self, dark=dark)


@dataclass(frozen=True)
class Table:
    """A table, with a download of all its rows as CSV in full precision.

    The page shows the first `visible_rows` rows, those from number `folded_from` on when the reader asks for them, and
    numbers with `digits` significant digits, the first rows with `row_digits`. Rows whose number is in `marked` are
    highlighted. `designs` are the result rows of the table rows.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""
    visible_rows: int = 25
    marked: frozenset[int] = frozenset()
    designs: tuple[int, ...] = ()
    digits: int = 4
    row_digits: tuple[int, ...] = ()
    folded_from: int | None = None

    def digits_of(self, row: int) -> int:
        """Significant digits of the numbers in a row."""
        return self.row_digits[row] if row < len(self.row_digits) else self.digits


def with_a_value(
    columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """The columns and rows of a table without the columns that are empty in every row."""
    indices = [k for k in range(len(columns)) if any(row[k] == row[k] and row[k] != "" for row in rows)]
    return tuple(columns[k] for k in indices), tuple(tuple(row[k] for k in indices) for row in rows)


@dataclass(frozen=True)
class Section:
    """One part of the report, in display order.

    `introduction` is plain text, paragraphs separated by an empty line; `facts` are (name, value) pairs in large type;
    `findings` are sentences in a list; `notes` are in small type at the end; `details` are (summary, text) pairs,
    folded. `needs` are the arrays without which the part shows nothing. One that is `on_request` is printed only if the
    reader asks for all parts. All strings are plain text: the page escapes them.
    """

    title: str
    introduction: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    findings: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    details: tuple[tuple[str, str], ...] = ()
    needs: tuple[str, ...] = ()
    on_request: bool = False


def with_folded_rest(section: Section, notes: Sequence[str]) -> Section:
    """The section with the first `SHOWN_NOTES` of the `notes` shown, and the others folded."""
    remainder = notes[SHOWN_NOTES:]
    details = ((f"{len(remainder)} more notes", "\n".join(remainder)),) if remainder else ()
    return replace(section, notes=(*section.notes, *notes[:SHOWN_NOTES]), details=(*section.details, *details))
