"""The report as one HTML file without network access: escaped texts, figures as data, compressed plotly.js."""

from __future__ import annotations

import functools
import logging
import math
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from designopt.counts import plural
from designopt.plugin import find
from designopt.plugin.calling import value_text
from designopt.plugin.error_location import error_line
from designopt.report.colours import CATEGORIES, THEMED
from designopt.report.designs import all_missing
from designopt.report.labels import ONLY_DESIGN, hover_columns, number
from designopt.report.page.beside_answer import figures_beside_answer
from designopt.report.page.data import as_plain, csv_link, figure_data, is_number, script_json, without_empty_columns
from designopt.report.page.packing import Packing, packed
from designopt.report.page.selectors import page_selectors
from designopt.report.parts import failures, record
from designopt.report.parts.answer import best, decision, limits, overview, problem, tolerances, validation
from designopt.report.parts.designs import (
    analysis,
    convergence,
    front,
    importance,
    influence,
    map,
    parallel,
    scenarios,
    surrogate,
)
from designopt.report.parts.motion import estimation, frames, programs, solving, trajectories
from designopt.report.section import Figure, Section, Table
from designopt.report.terminal import unfinished
from designopt.store.safe_files import replacing

if TYPE_CHECKING:
    from designopt.store.result import Result

logger = logging.getLogger(__name__)

Part = Callable[..., Section | None]

#: Parts at the beginning and the end of every report.
FIRST: Mapping[str, Part] = {
    "overview": overview.overview,
    "analysis": analysis.analysis,
    "best": best.best,
    "tolerances": tolerances.tolerances,
}
LAST: Mapping[str, Part] = {
    "problem": problem.problem,
    "estimation": estimation.estimation,
    "programs": programs.programs,
    "trajectories": trajectories.trajectories,
    "influence": influence.influence,
    "importance": importance.importance,
    "scenarios": scenarios.scenarios,
    "validation": validation.validation,
    "limits": limits.limits,
    "solving": solving.solving,
    "failures": failures.failures,
    "record": record.record,
}
#: Parts between them if the study names no plots.
GENERIC: Mapping[str, Part] = {
    "front": front.front,
    "decision": decision.decision,
    "estimation": estimation.estimation,
    "programs": programs.programs,
    "trajectories": trajectories.trajectories,
    "frames": frames.over_time,
    "influence": influence.influence,
    "map": map.map_figures,
    "parallel": parallel.parallel,
    "convergence": convergence.convergence,
    "surrogate": surrogate.surrogate,
}

#: Parts that belong to no subject.
_GENERAL = {"ranking", *FIRST, *GENERIC, *LAST} - {"trajectories", "frames"}

# No external resources, except the plotting library from a server; the browser enforces it for all plots.
_POLICY = (
    "default-src 'none'; script-src {scripts}'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; worker-src blob:"
)


def write_report(result: Result, path: Path | str, refresh: float | None = None) -> Path:
    """Write the report of `result` to `path` (HTML, self-contained) and return the path.

    The parts are those of the study's ``report: {plots: [...]}``, by default the generic ones. The answer is first;
    best designs and tolerances precede them, scenarios, validation, limits, failures, record follow if not named.
    If a part raises, a section with the error replaces it. With `refresh` (s) the page of an active run reloads itself.
    The file is replaced as a whole, never partly written. Raises `OSError` if it cannot be written.
    """
    return write_page(render(result, sections(result), refresh), path)


def write_page(text: str, path: Path | str) -> Path:
    """Replace the file `path` by `text` as a whole. Raises `OSError`."""
    target = Path(path)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.part")  # a run and a viewer may both write it
    with replacing(target, temporary) as stream:
        stream.write(text.encode())
    return target


def part_names(result: Result) -> list[str]:
    """The parts of the report of `result`, in order."""
    return [name for name, _ in _parts(result)]


def sections(result: Result, only: Collection[str] | None = None) -> list[Section]:
    """The sections of the report of `result`, in order, of the parts named `only` if given; empty parts are omitted.

    A note that several parts have is in the first of them, several parts without arrays are one. An answer without a
    front has the first figure of the subject beside it, one with a front that of a part that stands beside answers.
    """
    result, notes = result.in_stated_units, set[str]()
    parts: list[tuple[str, Section]] = []
    for name, part in _parts(result):
        section = _section(name, part, result) if only is None or name in only else None
        if section is not None:
            new_notes = tuple(note for note in section.notes if note not in notes)
            tables = tuple(_of_one_design(table) for table in section.tables)
            parts.append((name, replace(section, notes=new_notes, tables=tables)))
            notes.update(section.notes)
    empty = [section for _, section in parts if section.needs]
    if len(empty) > 1:
        first = next(k for k, (_, section) in enumerate(parts) if section.needs)
        parts[first] = ("", all_missing(empty))
    return [
        replace(section, figures=_beside_answer(result, section.figures, parts))
        if name == "overview" and section.tables
        else section
        for name, section in parts
        if len(empty) < 2 or not section.needs
    ]


def _beside_answer(
    result: Result, front: tuple[Figure, ...], parts: Sequence[tuple[str, Section]]
) -> tuple[Figure, ...]:
    """The `front`, if any, and a figure of the subject."""
    section_of = {name: section for name, section in parts if section.figures}
    plugins = [use.plugin for use in result.study.plots]
    plugins += [find("report", name) for name in result.problem.model.plugin.plots if name in section_of]
    sections_beside = [
        section_of[plugin.name] for plugin in plugins if plugin.beside_answer and plugin.name in section_of
    ]
    if front:
        return (*front, *figures_beside_answer(result, sections_beside, motion=False, recommended_alone=True))
    return figures_beside_answer(result, [*sections_beside, *_of_subject(parts)], motion="trajectories" in dict(parts))


def subject_sections(result: Result) -> list[Section]:
    """The parts of the report of `result` that belong to the subject of its study."""
    names = {name for name in part_names(result) if name not in _GENERAL}
    return [section for section in sections(result, names) if not section.needs]


def _of_subject(parts: Sequence[tuple[str, Section]]) -> list[Section]:
    """The parts that belong to the subject of a study; its trajectories have a figure of their own beside the
    answer."""
    return [section for name, section in parts if name not in _GENERAL and name != "trajectories"]


def _of_one_design(table: Table) -> Table:
    """The table without its column of designs, if the study has only one."""
    if table.columns[:1] != ("design",) or {row[0] for row in table.rows} != {ONLY_DESIGN}:
        return table
    return replace(table, columns=table.columns[1:], rows=tuple(row[1:] for row in table.rows))


def _parts(result: Result) -> list[tuple[str, Part]]:
    plots = [(use.plugin.name, use.build()) for use in result.study.plots]
    if not plots:
        plot_names = result.problem.model.plugin.plots
        plots = [*((name, functools.partial(_model_section, name)) for name in plot_names), *GENERIC.items()]
    if result.study.choose and "decision" not in {name for name, _ in plots}:
        plots.append(("decision", decision.decision))
    names = {name for name, _ in plots}
    first = [(name, part) for name, part in FIRST.items() if name not in names]
    last = [(name, part) for name, part in LAST.items() if name not in names]
    parts = [*first, *plots, *last]
    answer = "overview" if result.problem.objectives else "analysis"  # without a decision all parts are printed
    return sorted(parts, key=lambda named_part: named_part[0] != answer)


def _section(name: str, part: Part, result: Result) -> Section | None:
    """The section of a part, or one with its error."""
    try:
        section = part(result)
        if section is not None and not isinstance(section, Section):
            raise TypeError(f"it must return a Section or None, not {value_text(section)}")
        return section
    except Exception as error:
        logger.warning("warning: the part '%s' of the report failed: %s", name, error_line(error))
        return Section(
            title=name,
            introduction=f"This part of the report failed: {error_line(error)}",
            notes=("The other parts and the store are not affected.",),
        )


def _model_section(name: str, result: Result) -> Section | None:
    """The section of a part that the model proposes, if it has more than an introduction. Raises `PluginError` for an
    unknown one."""
    section: Section | None = find("report", name).build({})(result)
    if section is None or not (section.figures or section.tables or section.findings or section.needs):
        return None
    return section


def render(result: Result, parts: list[Section], refresh: float | None = None, *, plotly: str | None = None) -> str:
    """The whole page as text; see `write_report` and, for `plotly`, `page`."""
    result = result.in_stated_units
    study = result.study
    going = result.ended == "not ended"
    banners = [unfinished(result), *result.code_differences]
    if result.changes:
        banners.append(
            f"Re-scored with changes: {'; '.join(result.changes)}. The search had other goals, so a study "
            "with these may find better designs."
        )
    if refresh is not None and going:
        banners.append(f"This page reloads itself every {number(float(refresh))} s during the run.")
    head = PageHead(study.name, study.title or study.name, f"Store {result.path.name}", tuple(filter(None, banners)))
    return page(
        head,
        parts,
        refresh=refresh if going else None,
        designs=_designs(result, parts),
        plotly=plotly,
    )


@dataclass(frozen=True)
class PageHead:
    """The head of a page: `name` is that of its files, `about` the line below the `title`, `banners` sentences."""

    name: str
    title: str
    about: str
    banners: tuple[str, ...] = ()


def page(
    head: PageHead,
    parts: list[Section],
    *,
    refresh: float | None = None,
    designs: Mapping[str, Any] | None = None,
    plotly: str | None = None,
) -> str:
    """A page of `parts`; `designs` are the hover data.

    It is self-contained, or loads only plotly.js from the address `plotly` of a server.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    resources = files("designopt.report.page")
    packing = Packing()
    packing.add(dict(designs or {}))  # number 0
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters |= {
        "number": number,
        "plural": plural,
        "csv": csv_link,
        "without_empty_columns": without_empty_columns,
        "in_two_lines": _in_two_lines,
        "whole_words": lambda text: Markup(_HYPHENATED.sub(r'<span class="word">\g<0></span>', str(escape(text)))),
        "kept": lambda figure, name: packing.add(figure_data(figure, name)),
        "json": lambda data: Markup(script_json(data)),  # it contains no "<"
        "paragraphs": lambda text: [p for p in re.split(r"\n\s*\n", text) if p.strip()],
    }
    environment.tests |= {"numeric": is_number, "any_number": lambda cells: any(is_number(cell) for cell in cells)}
    environment.tests["gappy"] = lambda rows: any(number(cell) in ("–", "-") for row in rows for cell in row)
    template = environment.from_string((resources / "page.html.jinja").read_text(encoding="utf-8"))
    return template.render(
        head=head,
        made=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S %Z"),
        refresh=None if refresh is None else max(1, math.ceil(refresh)),
        parts=[*zip(_anchors([s.title for s in parts]), parts, strict=True)],
        common=page_selectors(parts),
        data=packing.text,
        policy=_POLICY.format(scripts="'self' " if plotly else ""),
        colours={"THEMED": dict(THEMED), "CATEGORIES": list(CATEGORIES)},
        style=(resources / "page.css").read_text(encoding="utf-8"),
        script="".join((resources / name).read_text(encoding="utf-8") for name in ("fitting.js", "page.js")),
        library=plotly,
        packed=None if plotly else _packed_library(),
    )


#: Texts in plotly.js that only its street maps need: the program of their workers, and their style sheet.
_OF_MAPS = (
    re.compile(r"(\.exports=)'(?:[^'\\]|\\.){100000,}'(?=\}\))", re.DOTALL),
    re.compile(r"(\.textContent=)'\.maplibregl-(?:[^'\\]|\\.)*'", re.DOTALL),
)


#: A word with hyphens, which a title does not break there.
_HYPHENATED = re.compile(r"\w+(?:-\w+)+")


@functools.cache
def _packed_library() -> tuple[str, str]:
    """The head of plotly.js, with its licence, and its compressed rest without maps: 1.6 MB of text, not 4.8."""
    from plotly.offline import get_plotlyjs

    library = get_plotlyjs()
    head = library[: library.index("*/") + 2]
    for text in _OF_MAPS:
        library = text.sub(r"\1''", library)
    return head, packed(library.encode())


def _in_two_lines(name: str) -> int:
    """Letters of the longer line when a `name` is broken into two, as evenly as its words and units permit."""
    words = re.split(r" (?![^\[(]*[\])])", name)
    halves = ((" ".join(words[:k]), " ".join(words[k:])) for k in range(len(words)))
    return min(max(len(first), len(second)) for first, second in halves)


def _designs(result: Result, parts: list[Section]) -> dict[str, Any]:
    """Values of all designs in figures, once for the page."""
    rows_of_figures = [
        np.asarray(rows) for part in parts for figure in part.figures for rows in figure.designs.values()
    ]
    if not rows_of_figures:
        return {}
    rows = np.unique(np.concatenate(rows_of_figures)).astype(np.intp)
    columns = [as_plain(values if len(rows) else []) for _, values in hover_columns(result, rows)]
    return {"rows": as_plain(rows), "columns": columns}


def _anchors(titles: list[str]) -> list[str]:
    """An identifier for each title, made of its letters; a number makes equal ones unique."""
    return [f"{re.sub('[^a-z0-9]+', '-', t.lower()).strip('-')}-{i}" for i, t in enumerate(titles, start=1)]
