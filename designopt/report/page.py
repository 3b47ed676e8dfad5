"""The report as one HTML file that needs no network: text escaped, figures as data, plotly.js inline once."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from designopt.report.colours import CATEGORIES, THEMED
from designopt.report.labels import hover_columns, number
from designopt.report.parts import (
    analysis,
    best,
    convergence,
    decision,
    failures,
    front,
    influence,
    limits,
    map,
    overview,
    parallel,
    programs,
    scenarios,
    surrogate,
    trajectories,
    validation,
)
from designopt.report.section import Figure, Section, Table
from designopt.report.tables import unfinished
from designopt.store.own import replacing

if TYPE_CHECKING:
    from designopt.store.result import Result

Part = Callable[..., Section | None]

#: Parts that begin and end every report.
FIRST: Mapping[str, Part] = {"overview": overview.overview, "analysis": analysis.analysis, "best": best.best}
LAST: Mapping[str, Part] = {
    "programs": programs.programs,
    "trajectories": trajectories.trajectories,
    "influence": influence.influence,
    "scenarios": scenarios.scenarios,
    "validation": validation.validation,
    "limits": limits.limits,
    "failures": failures.failures,
    "record": overview.record,
}
#: What stands between them when the study names no plots.
GENERIC: Mapping[str, Part] = {
    "front": front.front,
    "decision": decision.decision,
    "programs": programs.programs,
    "trajectories": trajectories.trajectories,
    "influence": influence.influence,
    "map": map.map_figures,
    "parallel": parallel.parallel,
    "convergence": convergence.convergence,
    "surrogate": surrogate.surrogate,
}

# Nothing may be loaded from anywhere; the browser holds to it even if a plot asked for more.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; worker-src blob:"
)


def write_report(result: Result, path: Path | str, refresh: float | None = None) -> Path:
    """Write the report of `result` to `path` (HTML, self-contained) and return the path.

    The parts are those of the study's ``report: {plots: [...]}``, or else the generic ones; overview and best designs
    come before, scenarios, validation, limits, failures and the record after them unless they are named. A part that
    raises is replaced by a section that says so. With `refresh` the page of a run that is still going reloads itself
    after so many seconds. The file is replaced as a whole, never left half written. Raises `OSError` when it cannot be.
    """
    return write_page(render(result, list(sections(result)), refresh), path)


def write_page(text: str, path: Path | str) -> Path:
    """Replace the file `path` by `text` as a whole."""
    target = Path(path)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.part")  # a run and a look at it may both write it
    with replacing(target, temporary) as stream:
        stream.write(text.encode())
    return target


def sections(result: Result) -> Iterable[Section]:
    """The sections of the report of `result`, in order; parts that have nothing to say are left out."""
    plots = [(use.plugin.name, use.build()) for use in result.study.plots] or list(GENERIC.items())
    plots += [item for item in _implied(result).items() if item[0] not in {name for name, _ in plots}]
    named = {name for name, _ in plots}
    first = [(name, part) for name, part in FIRST.items() if name not in named]
    last = [(name, part) for name, part in LAST.items() if name not in named]
    for name, part in (*first, *plots, *last):
        try:
            section = part(result)
        except Exception as error:
            section = Section(
                title=name,
                introduction=f"This part of the report could not be made: {type(error).__name__}: {error}",
                notes=("The other parts and the store are not affected.",),
            )
        if section is not None:
            yield section


def _implied(result: Result) -> Mapping[str, Part]:
    """Parts that a study asks for without naming them: one with rules of choice wants to know what they pick."""
    return {"decision": decision.decision} if result.study.choose else {}


def render(result: Result, parts: list[Section], refresh: float | None = None) -> str:
    """The whole page as text; see `write_report`."""
    study = result.study
    going = result.ended == "not ended"
    banners = [unfinished(result)]
    if result.changes:
        banners.append(
            f"Re-scored, not as it was run: {'; '.join(result.changes)}. The search looked for something else, so a"
            " study of this may find better designs."
        )
    if study.execution.order == "completion":
        banners.append(
            "Not reproducible: the solver received results in the order of their completion (execution.order), which "
            "another run does not repeat."
        )
    if refresh is not None and going:
        banners.append(f"This page reloads itself every {number(float(refresh))} s while the run is going.")
    return page(
        study.name,
        study.title or study.name,
        f"Store {result.path.name}",
        parts,
        tuple(filter(None, banners)),
        refresh=refresh if going else None,
        designs=_designs(result, parts),
    )


def page(
    name: str,
    title: str,
    about: str,
    parts: list[Section],
    banners: tuple[str, ...] = (),
    *,
    refresh: float | None = None,
    designs: Mapping[str, Any] | None = None,
) -> str:
    """A self-contained page of `parts`; `banners` are sentences at its top, `designs` what hovering shows."""
    from plotly.offline import get_plotlyjs

    names = _anchors([s.title for s in parts])
    contents = "".join(f'<li><a href="#{a}">{_text(s.title)}</a></li>' for a, s in zip(names, parts, strict=True))
    body = "".join(_section(a, s) for a, s in zip(names, parts, strict=True))
    here = files("designopt.report")
    style = (here / "page.css").read_text(encoding="utf-8")
    script = (here / "page.js").read_text(encoding="utf-8")
    script = script.replace("/*THEMED*/{}", _json(dict(THEMED))).replace("/*CATEGORIES*/[]", _json(list(CATEGORIES)))
    made = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    told = "".join(f'<p class="unfinished" role="status">{_text(t)}</p>\n' for t in banners)
    again = "" if refresh is None else f'<meta http-equiv="refresh" content="{max(1, math.ceil(refresh))}">\n'
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{again}<title>{_text(title)} · designopt</title>
<style>{style}</style>
</head>
<body>
<nav aria-label="Contents">
<p class="brand">designopt <span>report</span></p>
<ol>{contents}</ol>
<button id="theme" type="button">Dark</button>
</nav>
<main>
<header>
<p class="study">{_text(name)}</p>
<h1>{_text(title)}</h1>
<p class="made">{_text(about)} · report made {_text(made)}</p>
{told}</header>
{body}
<footer>“SVG” saves a figure as it is shown, “CSV” all rows of a table in full precision.
This page loads nothing from anywhere.</footer>
</main>
<script type="application/json" id="designs">{_json(dict(designs or {}))}</script>
<script>{get_plotlyjs()}</script>
<script>{script}</script>
</body>
</html>
"""


def _designs(result: Result, parts: list[Section]) -> dict[str, Any]:
    """Values of all designs that a figure tells of, once for the page."""
    drawn = [np.asarray(rows) for part in parts for figure in part.figures for rows in figure.designs.values()]
    if not drawn:
        return {}
    rows = np.unique(np.concatenate(drawn)).astype(np.intp)
    columns = [as_plain(values if len(rows) else []) for _, values in hover_columns(result, rows)]
    return {"rows": as_plain(rows), "columns": columns}


def _anchors(titles: list[str]) -> list[str]:
    """An identifier for each title, made of its letters; the place is added so that no two are equal."""
    return [f"{re.sub('[^a-z0-9]+', '-', t.lower()).strip('-')}-{i}" for i, t in enumerate(titles, start=1)]


def _section(anchor: str, section: Section) -> str:
    parts = [f'<section id="{anchor}"><h2>{_text(section.title)}</h2>']
    parts += [f"<p>{_text(p)}</p>" for p in re.split(r"\n\s*\n", section.introduction) if p.strip()]
    if section.facts:
        facts = "".join(f"<div><dt>{_text(k)}</dt><dd>{_text(v)}</dd></div>" for k, v in section.facts)
        parts.append(f'<dl class="facts">{facts}</dl>')
    if section.findings:
        parts.append("<ul class=findings>" + "".join(f"<li>{_text(f)}</li>" for f in section.findings) + "</ul>")
    parts += [_figure(f"{anchor}-f{i}", f) for i, f in enumerate(section.figures, start=1)]
    if section.tables:
        tables = "".join(_table(f"{anchor}-t{i}", t) for i, t in enumerate(section.tables, start=1))
        parts.append(f'<div class="tables">{tables}</div>')
    parts += [
        f"<details><summary>{_text(summary)}</summary><pre>{_text(text)}</pre></details>"
        for summary, text in section.details
    ]
    parts += [f'<p class="note">{_text(n)}</p>' for n in section.notes]
    return "".join(parts) + "</section>\n"


def _figure(anchor: str, figure: Figure) -> str:
    selectors = "".join(
        f"<label>{_text(c.label)} <select>"
        + "".join(f'<option value="{k}">{_text(o)}</option>' for k, o in enumerate(c.options))
        + "</select></label>"
        for c in figure.choices
    )
    data = {
        "plot": as_plain(figure.plot),
        "variants": {key: as_plain(v) for key, v in _variants(figure)},
        "loop": figure.loop,
        "name": anchor,
        "designs": {str(k): as_plain(v) for k, v in figure.designs.items()},
    }
    if figure.brushed is not None:
        data["brushed"] = _brushed(figure.brushed)
    note = f'<p class="note">{_text(figure.note)}</p>' if figure.note else ""
    wide = f";min-width:{int(figure.width)}px" if figure.width else ""
    return (
        f'<figure id="{anchor}"><div class="caption"><figcaption>{_text(figure.title)}</figcaption>'
        '<button class="svg" type="button">SVG</button></div>'
        + (f'<div class="choices">{selectors}</div>' if selectors else "")
        + f'<div class="plot" style="height:{int(figure.height)}px{wide}"></div>{note}'
        + ('<div class="brushed"></div>' if figure.brushed is not None else "")
        + f'<script type="application/json">{_json(data)}</script></figure>'
    )


def _brushed(table: Table) -> dict[str, Any]:
    """The table below parallel coordinates as columns; the page shows the rows within the brushes."""
    columns: list[Any] = []
    for k in range(len(table.columns)):
        cells = [row[k] for row in table.rows]
        columns.append(np.array(cells) if all(_is_number(c) for c in cells) else [number(c) for c in cells])
    return {
        "title": table.title,
        "columns": list(table.columns),
        "values": [as_plain(c) for c in columns],
        "designs": list(table.designs),
        "shown": table.shown,
    }


def _variants(figure: Figure) -> Iterable[tuple[str, Any]]:
    return ((",".join(str(k) for k in key), variant) for key, variant in figure.variants.items())


def _table(anchor: str, table: Table) -> str:
    numeric = [all(_is_number(row[k]) for row in table.rows) for k in range(len(table.columns))]
    head = "".join(
        f'<th scope="col"{" class=n" if n and table.rows else ""}>{_text(c)}</th>'
        for c, n in zip(table.columns, numeric, strict=True)
    )
    rows = []
    for i, row in enumerate(table.rows[: table.shown]):
        cells = "".join(
            f'<td class="{"n" if _is_number(v) else "s" if len(str(v)) < 30 else "t"}">{_text(number(v))}</td>'
            for v in row
        )
        design = f' data-design="{table.designs[i]}"' if table.designs else ""
        marked = ' class="marked"' if i in table.marked else ""
        rows.append(f"<tr{marked}{design}>{cells}</tr>")
    hidden = len(table.rows) - table.shown
    more = f'<p class="note">{hidden} more rows are in the CSV file.</p>' if hidden > 0 else ""
    note = f'<p class="note">{_text(table.note)}</p>' if table.note else ""
    link = f'<a class="csv" download="{anchor}.csv" href="{_csv(table)}">CSV</a>'
    return (
        f'<div class="table"><div class="caption"><h3>{_text(table.title)}</h3>{link}</div>'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        f"{more}{note}</div>"
    )


def _csv(table: Table) -> str:
    """All rows as a data address: RFC 4180, numbers in their shortest exact form, an empty cell for no number."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow(["" if isinstance(v, float) and math.isnan(v) else v for v in row])
    return "data:text/csv;charset=utf-8," + quote(out.getvalue(), safe=",:/ ()*+=@")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return html.escape(str(value))


def as_plain(value: Any) -> Any:
    """`value` as JSON data for Plotly: number arrays as base64, no NaN or infinity, a Plotly figure as a mapping."""
    if hasattr(value, "to_plotly_json"):
        return as_plain(value.to_plotly_json())
    if isinstance(value, Mapping):
        return {str(k): as_plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, (list, tuple)):
        return [as_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _array(a: np.ndarray[Any, Any]) -> Any:
    """Plotly's typed array; single precision where a plot cannot show the difference (seven digits)."""
    if a.dtype.kind not in "fiu" or a.ndim not in (1, 2) or not a.size:
        return as_plain(a.tolist())
    kind = "i4" if a.dtype.kind in "iu" else "f8"
    if kind == "f8":
        with np.errstate(over="ignore"):
            single = a.astype("<f4")
        finite = np.isfinite(a)
        if np.allclose(single[finite], a[finite], rtol=1e-6, atol=0.0):
            kind = "f4"
    packed = {"dtype": kind, "bdata": base64.b64encode(np.ascontiguousarray(a, dtype=f"<{kind}").tobytes()).decode()}
    return packed | ({"shape": f"{a.shape[0]}, {a.shape[1]}"} if a.ndim == 2 else {})


def _json(data: Any) -> str:
    """JSON that may stand inside a script element: no ``<``, so nothing in it can end the element."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
