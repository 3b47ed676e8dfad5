"""A result as text, as HTML and as a Plotly figure."""

from __future__ import annotations

import html as markup
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from designopt.counts import plural
from designopt.plugin import Use, closest, find
from designopt.printable import printable
from designopt.store.views import table

if TYPE_CHECKING:
    import plotly.graph_objects

    from designopt.store.result import Result


def text(result: Result) -> str:
    """The chosen designs as a table, their number, the recommended one, and the command for all designs."""
    chosen = result.chosen()
    nothing = ": ".join(filter(None, ["no design has a result within all limits", result.never_finite()]))
    chosen_text = table.as_text(_columns(result), chosen) if chosen else nothing
    act, first = result.recommended(), result.first_choice()
    if act is not None and first is not None:
        why = "" if act == first else f", because {first[0]} violates limits within its tolerances"
        chosen_text += f"\nrecommended: {act[0]}{why}"
    lines = [
        f"{_title(result)}: {_numbers(result)}",
        *(f"warning: {changed}" for changed in result.code_differences),
        chosen_text,
        f"full report: designopt report {result.path}",
    ]
    return printable("\n".join(lines))


def html(result: Result) -> str:
    """The chosen designs as a table with their number above it."""
    chosen = result.chosen()
    head = f"<b>{markup.escape(_title(result))}</b>: {_numbers(result)}"
    return head + (table.as_html(_columns(result), chosen) if chosen else "")


def figure(
    result: Result, part: str, number: int, dark: bool, settings: Mapping[str, Any]
) -> plotly.graph_objects.Figure:
    """Figure `number` of a report part: see `Result.plot`."""
    part = part or ("front" if len(result.problem.objectives) > 1 else "convergence")
    plugin = find("report", part)
    for name in settings.keys() - plugin.settings.keys():
        near = closest(name, plugin.settings)
        setting_names = ", ".join(plugin.settings) or "none"
        hint = f"did you mean '{near}'?" if near else f"it has: {setting_names}"
        raise TypeError(f"plot(): the part '{part}' has no setting '{name}'; {hint}")
    section = Use(plugin, settings).build()(result.in_stated_units)
    figures = section.figures if section is not None else ()
    if not figures:
        reason = f": {section.introduction}" if section is not None and section.introduction else ""
        raise ValueError(f"the part '{part}' has no figure for this result{reason}")
    if not 0 <= number < len(figures):
        raise ValueError(f"the part '{part}' has {len(figures)} figures here, numbered from 0; there is no {number}")
    return figures[number].plotly(dark=dark)


def _title(result: Result) -> str:
    return result.study.title or result.study.name


def _numbers(result: Result) -> str:
    counts = result.counts
    designs = plural(counts["designs"], "design")
    return f"{designs}, {counts['feasible']} feasible, {len(result.front())} on the front"


def _columns(result: Result) -> list[table.Column]:
    """The free parameters and the objectives, in the units of the study."""
    stated = result.in_stated_units
    free = stated.problem.space.names
    return [c for c in stated.columns() if c.role == "objective" or (c.role == "parameter" and c.of in free)]
