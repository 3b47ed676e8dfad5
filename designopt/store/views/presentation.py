"""A result as text, as HTML and as a Plotly figure."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from designopt.counts import plural
from designopt.plugin import Use, closest, find
from designopt.printable import printable
from designopt.store.views import table
from designopt.study.study import Objective

if TYPE_CHECKING:
    import plotly.graph_objects

    from designopt.problem import Problem


@dataclass(frozen=True)
class Summary:
    """The chosen designs of a result: their rows by label in the table `columns`, and its `counts` (`Result.counts`),
    of which `front` designs are on the front."""

    title: str
    counts: Mapping[str, int]
    front: int
    columns: Sequence[table.Column]
    rows_by_label: Mapping[str, int]

    def text(
        self,
        path: Path,
        recommendation: tuple[str, int] | None,
        first_choice: tuple[str, int] | None,
        code_differences: Sequence[str],
        never_finite: str,
        notes: Sequence[str],
    ) -> str:
        """The chosen designs as a table, their number, the recommended one, `notes`, and the command for all
        designs."""
        nothing = ": ".join(filter(None, ["no design has a result within all limits", never_finite]))
        lines = [
            f"{self.title}: {self._numbers}",
            *(f"warning: {difference}" for difference in code_differences),
            table.as_text(self.columns, self.rows_by_label) if self.rows_by_label else nothing,
        ]
        if recommendation is not None and first_choice is not None:
            is_first = recommendation == first_choice
            why = "" if is_first else f", because {first_choice[0]} violates limits within its tolerances"
            lines.append(f"recommended: {recommendation[0]}{why}")
        return printable("\n".join([*lines, *notes, f"full report: designopt report {path}"]))

    def html(self) -> str:
        """The chosen designs as a table with their number above it."""
        head = f"<b>{html.escape(self.title)}</b>: {self._numbers}"
        return head + (table.as_html(self.columns, self.rows_by_label) if self.rows_by_label else "")

    @property
    def _numbers(self) -> str:
        designs = plural(self.counts["designs"], "design")
        return f"{designs}, {self.counts['feasible']} feasible, {self.front} on the front"


def better_motion_notes(
    objectives: Sequence[Objective], rows_by_label: Mapping[str, int], better_motions: Mapping[int, float]
) -> list[str]:
    """A sentence for each chosen design for which a program found a motion with a better first objective."""
    return [
        f"{label}: its program found a better motion, with {objectives[0].name} {better_motions[row]:.6g}"
        f" {objectives[0].unit}".rstrip()
        for label, row in rows_by_label.items()
        if row in better_motions
    ]


def figure(
    result: HasChoice, part: str, number: int, dark: bool, settings: Mapping[str, Any]
) -> plotly.graph_objects.Figure:
    """Figure `number` of a report part of a `Result`: see `Result.plot`."""
    figures = figures_of_part(result, part, settings)
    if not 0 <= number < len(figures):
        raise ValueError(f"the part '{part}' has {len(figures)} figures here, numbered from 0; there is no {number}")
    return figures[number].plotly(dark=dark)


class HasChoice(Protocol):
    """What a part without a figure needs of a `Result` to say why."""

    @property
    def problem(self) -> Problem: ...
    def chosen(self) -> dict[str, int]: ...


def _without_designs(result: HasChoice) -> str:
    """Why no design of `result` is chosen, for parts that draw chosen designs; "" if there are chosen ones."""
    if result.chosen():
        return ""
    if not result.problem.objectives:
        return "it draws chosen designs, and a study without objectives has none"
    return "no design satisfies all limits"


def figures_of_part(result: HasChoice, part: str, settings: Mapping[str, Any]) -> Sequence[Any]:
    """The figures of a report part of a `Result`, at least one; raises what `Result.plot` does."""
    plugin = find("report", part)
    for name in settings.keys() - plugin.settings.keys():
        near = closest(name, plugin.settings)
        setting_names = ", ".join(plugin.settings) or "none"
        hint = f"did you mean '{near}'?" if near else f"it has: {setting_names}"
        raise TypeError(f"plot(): the part '{part}' has no setting '{name}'; {hint}")
    section = Use(plugin, settings).build()(result)
    figures: Sequence[Any] = section.figures if section is not None else ()
    if not figures:
        reason = section.introduction if section is not None else _without_designs(result)
        raise ValueError(f"the part '{part}' has no figure for this result{f': {reason}' if reason else ''}")
    return figures
