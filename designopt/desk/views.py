"""Views of stores and studies, computed in separate processes, so that the desk always answers.

Opening a store runs no code of it; errors raise `Refusal` with a sentence for the reader.
"""

from __future__ import annotations

import io
import time
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from designopt import plugin
from designopt.api import open_store
from designopt.desk.folder import stamp_of
from designopt.problem import Problem
from designopt.report import one_design
from designopt.report.colours import axis, layout
from designopt.report.comparison.page import comparison
from designopt.report.comparison.study_edit import StudyEdit
from designopt.report.labels import with_unit
from designopt.report.page.page import PageHead, page, part_names, render, sections
from designopt.report.section import Figure, Section
from designopt.run.progress import event_text, line, snapshot
from designopt.store import safe_files
from designopt.store.errors import StoreError
from designopt.store.result import Result
from designopt.store.views.table import stated_constraints
from designopt.study.language.errors import StudyError, render_text
from designopt.study.load import study_from_text

#: Path of plotly.js on the desk.
PLOTLY = "/plotly.js"
#: Parts shown during a run, as far as the study has them: fast to compute.
LIVE = ("front", "convergence", "best", "decision", "failures", "overview")
#: Maximum number of open results.
KEPT = 4
#: Maximum number of lines for an array with several axes.
LINES = 12
#: Number of looks for the rate of a run, and maximum number of shown events.
LOOKS, EVENTS = 10, 8

#: Hint added to a message about a missing plugin, if the desk was given no plugin files.
PLUGIN_FILE = "pass a plugin in your own file when you start the desk: designopt desk --plugin FILE"

_plugin_files: dict[str, bytes] = {}
_data: dict[str, Path] = {}
_looks: dict[Path, deque[tuple[float, int]]] = {}
_open: OrderedDict[Path, tuple[str, Result]] = OrderedDict()


class Refusal(Exception):
    """The request cannot be answered; the text gives the reason."""


def prepare(plugin_files: Mapping[str, bytes], data: Mapping[str, str]) -> None:
    """Declare the plugins of `plugin_files`, contents by path, and set the data roots, once for each process."""
    for file, content in plugin_files.items():
        plugin.load_file(file, content)
    _plugin_files.update(plugin_files)
    _data.update({name: Path(folder) for name, folder in data.items()})


def _refuse_links(folder: Path) -> None:
    """Raise `Refusal` if a link leads to `folder` by now."""
    try:
        safe_files.check_folder(folder)
    except OSError as error:
        raise Refusal(f"{error.filename or folder}: {error.strerror}") from None


def _result(path: Path, changes: Sequence[str] = ()) -> Result:
    """The present result of the store at `path`. Raises `Refusal`."""
    _refuse_links(path)
    stamp, _ = stamp_of(path)
    entry = _open.pop(path, None)
    try:
        result = entry[1] if entry is not None and entry[0] == stamp else open_store(path, data=_data)
        _open[path] = (stamp, result)
        while len(_open) > KEPT:
            _open.popitem(last=False)
        return result.with_changes(changes) if changes else result
    except (StoreError, plugin.PluginError) as error:
        raise Refusal(_with_hint(str(error))) from None
    except StudyError as error:
        raise Refusal(_with_hint(render_text(error.issues))) from None


def report(path: Path, only: Sequence[str], changes: Sequence[str]) -> str:
    """The page of a store with the parts named `only`, ``live`` for those of an active run, all without any. Raises
    `Refusal`."""
    result = _result(path, changes)
    try:
        names = LIVE if "live" in only else only
        parts = [part for name in names for part in sections(result, (name,))] if names else sections(result)
        return render(result, parts, plotly=PLOTLY)
    except StoreError as error:
        raise Refusal(str(error)) from None


def question(path: Path) -> dict[str, Any]:
    """The editable items of a store: its objectives and limits, the aggregations, the parts of its report."""
    result = _result(path)
    problem = result.problem
    return {
        "objectives": [
            {"name": o.name, "direction": o.direction, "unit": o.unit, "over": o.over.plugin.name}
            for o in problem.objectives
        ],
        "constraints": [
            {"name": c.name, "unit": c.unit, "over": c.over.plugin.name}
            | {side: value for side, value in (("min", c.minimum), ("max", c.maximum)) if value is not None}
            for c in stated_constraints(problem)
        ],
        "aggregations": [aggregation.name for aggregation in plugin.installed_plugins("aggregation")],
        "scenarios": len(problem.scenarios),
        "parts": part_names(result),
        "stages": [stage.name for stage in result.study.stages],
    }


def designs(path: Path, changes: Sequence[str]) -> list[dict[str, Any]]:
    """The named designs, by rule of choice or by the study, and their rows."""
    result = _result(path, changes)
    return [{"name": name, "row": int(row)} for name, row in {**result.chosen(), **result.named}.items()]


def design(path: Path, row: int, changes: Sequence[str]) -> dict[str, Any]:
    """All records of one design, as tables of texts. Raises `Refusal`."""
    result = _result(path, changes)
    if not 0 <= row < len(result.outcomes):
        raise Refusal(f"there is no design {row}: {path.name} has {len(result.outcomes)}")
    arrays, errors = one_design.array_rows(result, row)
    tables = [
        one_design.parameter_rows(result, row),
        one_design.rating_rows(result, row),
        one_design.output_rows(result, row),
        one_design.evaluation_rows(result, row),
        arrays,
    ]
    return {
        "row": row,
        "labels": one_design.labels(result, row),
        "asked": one_design.origin(result, row),
        "tables": [table for table in tables if len(table) > 1],
        "messages": [*one_design.messages(result, row), *errors],
    }


def comparison_page(paths: Sequence[Path]) -> str:
    """The page that compares stores. Raises `Refusal`."""
    try:
        return comparison([_result(path) for path in paths], plotly=PLOTLY)
    except (ValueError, StoreError) as error:
        raise Refusal(str(error)) from None


def findings(path: Path, text: str) -> list[dict[str, Any]]:
    """The findings of ``designopt validate`` for `text` in place of the study file at `path`. Raises `Refusal`."""
    _refuse_links(path.parent)
    try:
        study_from_text(text, path.name, path.parent, problem_of=Problem.from_study, data=_data)
    except StudyError as error:
        return [asdict(issue) | {"message": _with_hint(issue.message)} for issue in error.issues]
    except plugin.PluginError as error:
        raise Refusal(_with_hint(str(error))) from None
    return []


def differing(path: Path, text: str, store: Path) -> dict[str, Any]:
    """How the study `text` of the file at `path` differs from that in `store`, and what can be done: options of a
    start with their consequences, and the folder of a run beside it. Raises `Refusal`."""
    edited_study = _edited_study(path, text, store)
    try:
        if not edited_study.differences:
            return {"differences": []}
        ways = [(option, consequence.replace(f"{store.parent}/", "")) for option, consequence in edited_study.ways()]
        return {"differences": edited_study.differences, "ways": ways, "beside": str(edited_study.beside)}
    except StoreError as error:
        raise Refusal(str(error)) from None


def rescored_page(path: Path, text: str, store: Path) -> str:
    """The page of `store` scored by the study `text` of the file at `path`. Raises `Refusal`."""
    try:
        result = _edited_study(path, text, store).rescore()
        return render(result, sections(result), plotly=PLOTLY)
    except StoreError as error:
        raise Refusal(str(error)) from None


def _edited_study(path: Path, text: str, store: Path) -> StudyEdit:
    for folder in (path.parent, store):
        _refuse_links(folder)
    files = tuple(_plugin_files.items())
    try:
        study = study_from_text(
            text, path.name, path.parent, plugin_files=files, problem_of=Problem.from_study, data=_data
        )
    except StudyError as error:
        raise Refusal(_with_hint(render_text(error.issues))) from None
    except plugin.PluginError as error:
        raise Refusal(_with_hint(str(error))) from None
    return StudyEdit(study, store)


def _with_hint(text: str) -> str:
    """`text` with a hint about missing plugins."""
    return text if _plugin_files or "no plugin named" not in text else f"{text}; {PLUGIN_FILE}"


def progress(path: Path) -> dict[str, Any]:
    """The progress of a store's run: its progress line, and the completed share if available. Raises `Refusal`."""
    result = _result(path)
    try:
        looks = _looks.setdefault(path, deque(maxlen=LOOKS))
        looks.append((time.monotonic(), result.counts["evaluations"]))
        state = snapshot(result, looks)
    except StoreError as error:
        raise Refusal(str(error)) from None
    share = min(1.0, state.completed / state.total) if state.total else None
    events = [{"time": e["time"], "text": event_text(str(e["kind"]), str(e["text"]))} for e in result.events[-EVENTS:]]
    return {"line": line(state), "share": share, "ended": result.ended, "events": events}


def arrays_page(path: Path, row: int, file: bytes, words: str) -> str:
    """A page that draws the arrays in `file`, of design `row` evaluated again; `words` compare it with the record."""
    result = _result(path)
    declarations = result.problem.model.plugin.arrays
    arrays: dict[str, Any] = {}
    if file:
        with np.load(io.BytesIO(file), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    figures = []
    for name, values in arrays.items():
        base, _, scenario = name.partition("@")
        declaration = declarations.get(base)
        if (
            declaration is None
            or values.dtype.kind not in "fiub"
            or not 1 <= values.ndim <= 2
            or base in declaration.axes
        ):
            continue
        along = arrays.get(f"{declaration.axes[0]}@{scenario}" if scenario else declaration.axes[0])
        x = along if along is not None and along.shape == values.shape[:1] else np.arange(len(values))
        columns = values.reshape(len(values), -1).T[:LINES]
        unit = declarations[declaration.axes[0]].unit if declaration.axes[0] in declarations else ""
        plot = {
            "data": [
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": x,
                    "y": column,
                    "name": str(k),
                    "showlegend": len(columns) > 1,
                }
                for k, column in enumerate(columns)
            ],
            "layout": layout(
                xaxis=axis(with_unit(declaration.axes[0], unit)), yaxis=axis(with_unit(base, declaration.unit))
            ),
        }
        figures.append(Figure(name, plot, note=declaration.description, height=320))
    section = Section(f"Design {row} recomputed", figures=tuple(figures), details=(("Against the record", words),))
    study = result.study
    return page(PageHead(study.name, study.title or study.name, path.name), [section], plotly=PLOTLY)
