"""Common functions of report parts that draw motions: drawn designs, and figures with a selector for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.report.labels import RECOMMENDED, drawn_designs, listed, values_in_words
from designopt.report.section import Figure, Section, Selector
from designopt.store.result import Result

Arrays = Mapping[str, NDArray[Any]]
Plot = dict[str, Any]

#: Maximum number of designs in a selector.
OFFERED = 16
#: Number of poses of a stick figure.
POSES = 9


def design_label(result: Result, row: int) -> str:
    """The label of a design: its name in the study, or the values of its free parameters."""
    for name, named_row in result.named.items():
        if named_row == row:
            return name
    return values_in_words(result, row)


def short_label(result: Result, row: int) -> str:
    """The label of a design in a table: its name in the study, the rules that choose it, or its number."""
    names = [label for label, design in {**result.named, **result.chosen()}.items() if design == row]
    return ", ".join(names) or f"design {row}"


def stored_arrays(result: Result, *names: str) -> dict[tuple[str, str], Arrays]:
    """The arrays of designs that have all of `names` in every scenario, by design and scenario, the recommended first.

    The label of a design is its name in the study, or its values; the recommended one is marked as such.
    """
    arrays_of: dict[tuple[str, str], Arrays] = {}
    scenarios = result.problem.scenarios
    recommended_row = (result.recommended() or ("", None))[1]
    first = [] if recommended_row is None or result.rows_in_figures else [recommended_row]
    several = len(result.outcomes.X) > 1
    designs = 0
    for row in dict.fromkeys([*first, *drawn_designs(result).values(), *range(len(result.outcomes.X))]):
        name = design_label(result, row) + (RECOMMENDED if several and row == recommended_row else "")
        design_arrays = {}
        for s, scenario in enumerate(scenarios):
            arrays = result.arrays(row, s)
            if set(names) <= arrays.keys():
                design_arrays[name, scenario.name] = arrays
        if len(design_arrays) == len(scenarios):
            arrays_of |= design_arrays
            designs += 1
        if designs == OFFERED:
            break
    return arrays_of


def missing(title: str, *names: str) -> Section:
    """A section that names the missing arrays and explains how to store them."""
    return Section(title, introduction=f"The store contains no arrays for this part. {_store(names)}", needs=names)


def all_missing(parts: Sequence[Section]) -> Section:
    """One section for several parts without arrays."""
    names = dict.fromkeys(name for part in parts for name in part.needs)
    titles = listed([part.title for part in parts])
    return Section(
        "Parts without arrays", introduction=f"The store contains no arrays for these parts: {titles}. {_store(names)}"
    )


def _store(names: Iterable[str]) -> str:
    entries = ", ".join(f"{name}: all" for name in names)
    return (
        f"Run the study with execution: {{arrays: {{{entries}}}}} "
        "(or front instead of all: those of the front and of the chosen designs, stored when the run ends). "
        "Without a run, designopt show STORE/DESIGN --evaluate --arrays FILE.npz computes those of a design."
    )


def selectable(
    title: str, motions: Mapping[tuple[str, str], Arrays], plot: Callable[[Arrays], Plot], **figure_fields: Any
) -> Figure:
    """The figure of `plot` for arrays, with selectors of design and scenario if there are several."""
    designs, scenarios = (list(dict.fromkeys(key[i] for key in motions)) for i in (0, 1))
    choices = [Selector(label, tuple(names)) for label, names in (("Design", designs), ("Scenario", scenarios))]
    several = [len(choice.options) > 1 for choice in choices]
    plots = {}
    for (design, scenario), arrays in motions.items():
        options = (designs.index(design), scenarios.index(scenario))
        plots[tuple(n for n, is_selectable in zip(options, several, strict=True) if is_selectable)] = plot(arrays)
    return Figure(
        title,
        next(iter(plots.values())),
        choices=tuple(choice for choice, is_selectable in zip(choices, several, strict=True) if is_selectable),
        variants=plots if len(plots) > 1 else {},
        **figure_fields,
    )


def motion_section(
    result: Result,
    title: str,
    arrays: Sequence[str],
    *plots: tuple[str, Callable[[Arrays], Plot], Mapping[str, Any]],
    **section_fields: Any,
) -> Section | None:
    """A section with figures of the `arrays` of designs, `plots` by titles, plots and further arguments of
    `selectable`.

    None without designs; without stored arrays it explains how to store them.
    """
    motions = stored_arrays(result, *arrays)
    if not motions:
        return missing(title, *arrays) if len(result.outcomes.X) else None
    figures = tuple(selectable(name, motions, plot, **options) for name, plot, options in plots)
    return Section(title, figures=figures, **section_fields)


def poses(count: int) -> NDArray[np.intp]:
    """Indices of the samples, out of `count`, at which a stick figure is drawn."""
    return np.linspace(0, count - 1, POSES).round().astype(np.intp)


def line(x: Any, y: Any, name: str = "", **attributes: Any) -> dict[str, Any]:
    """A Plotly line; without a `name` it is not in the legend."""
    legend = {"name": name} if name else {"showlegend": False, "hoverinfo": "skip"}
    return {"type": "scatter", "mode": "lines", "x": np.round(x, 5), "y": np.round(y, 5), **legend, **attributes}
