"""A figure of the report as a file for a paper: SVG or PDF, drawn by a browser of this machine."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from designopt.plugin import PluginError
from designopt.store.views import presentation

if TYPE_CHECKING:
    import plotly.graph_objects

    from designopt.store.result import Result

#: Programs that can draw, by preference.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
#: Size of a figure in one column of a paper (mm), letters (pt), and limit of the browser (s).
SIZE, LETTERS, LONGEST = (85.0, 64.0), 8.0, 60.0
#: Pixels of the letters of figures on the page.
_LETTERS_OF_PAGE = 13.0
#: Additional height of a further panel and of a row of the legend beyond `FREE_ROWS`, width of both margins, of an
#: entry without name and of a letter (mm).
PANEL, ROW, FREE_ROWS, SIDES, ENTRY, LETTER = 22.0, 5.0, 3, 15.0, 12.0, 1.5
#: CSS pixels in a millimetre and in a point.
_PIXELS, _POINT = 96.0 / 25.4, 96.0 / 72.0

_PAGE = """<!doctype html><meta charset="utf-8"><title>figure</title>
<style>@page {{ size: {width}px {height}px; margin: 0 }} body {{ margin: 0 }}</style>
<div id="figure"></div><script>{library}</script><script>
const figure = {figure};
Object.assign(figure.layout, {{width: {width}, height: {height}, autosize: false}});
Plotly.newPlot("figure", figure.data, figure.layout, {{staticPlot: true}}).then(drawn => {script});
</script>"""
_TO_IMAGES = """Promise.all(["svg", "png"].map(format =>
  Plotly.toImage(drawn, {format: format, imageDataOnly: true, scale: format == "png" ? 2 : 1}))).then(images => {
  const texts = images.map((image, i) => {
    const text = document.createElement("pre");
    text.id = ["svg", "png"][i];
    text.textContent = image;
    return text;
  });
  document.body.replaceChildren(...texts);
})"""


class FigureError(Exception):
    """A figure cannot be written; the text says why, and what to do."""


def write_figure(result: Result, file: Path, size: tuple[float, float] | None = None) -> str:
    """Write the figure of a report that `file` names, as `write_one_of` does. The returned text also says where the
    `rows_in_figures` of `result` make no difference.

    Raises `FigureError` for an unknown part or format and without a browser, `OSError` if the file cannot be written.
    """
    figures = _figures_of_part(result, file)
    texts = [write_one_of(figures, file, size)]
    if result.rows_in_figures and _plots(figures) == _plots(
        _figures_of_part(replace(result, rows_in_figures=()), file)
    ):
        texts.append("it is the same with and without --designs")
    return "; ".join(filter(None, texts))


def _plots(figures: Sequence[Any]) -> list[str]:
    return [str(figure.plotly().to_json()) for figure in figures]


def write_one_of(figures: Sequence[Any], file: Path, size: tuple[float, float] | None = None) -> str:
    """Write the one of a part's `figures` that `file` names, ``PART.svg`` or ``PART-2.pdf`` for the second; `size` in
    mm, by default one column of a paper, higher where panels stand above each other or the legend is long. Returns its
    title and the file names of the others of the part; "" of an only one.

    Raises `FigureError` for an unknown number or format and without a browser, `OSError` if the file cannot be written.
    """
    part, number = part_and_number(file)
    names = _file_names(file, figures)
    if not 1 <= number <= len(figures):
        figure_names = ", ".join(name for name, _ in names)
        raise FigureError(f"{file}: the part '{part}' has no figure {number} here; its figures are {figure_names}")
    figure = _on_paper(figures[number - 1].plotly())
    width, height = (round(length * _PIXELS) for length in size or _column(figure))
    if file.suffix.lower() == ".svg":
        content = draw(figure, width, height, str(file))["svg"]
    else:
        content = _pdf(figure, width, height, str(file))
    file.write_bytes(content)
    other_figures = ", ".join(f"{name} ({title})" for k, (name, title) in enumerate(names, start=1) if k != number)
    return f"{names[number - 1][1]}; others of the part: {other_figures}" if other_figures else ""


def has_browser() -> bool:
    """Whether a browser of this machine can draw figures."""
    return any(shutil.which(name) for name in BROWSERS)


def draw(figure: plotly.graph_objects.Figure, width: int, height: int, name: str = "figure") -> dict[str, bytes]:
    """The figure in CSS pixels as ``svg`` and, with twice as many pixels, ``png``. Raises `FigureError` for the figure
    `name` without a browser, or if it does not draw."""
    with _browsing(figure, width, height, _TO_IMAGES, name) as (command, page, _):
        output = _run([*command, "--dump-dom", page.as_uri()], name).stdout.decode(errors="replace")
    texts = {key: re.search(rf'<pre id="{key}">(.*?)</pre>', output, re.DOTALL) for key in ("svg", "png")}
    if not all(texts.values()):
        raise FigureError(f"{name}: {command[0]} did not draw it")
    svg, png = (unescape(match[1]) for match in texts.values() if match)
    return {"svg": svg.encode(), "png": base64.b64decode(png)}


def _pdf(figure: plotly.graph_objects.Figure, width: int, height: int, name: str) -> bytes:
    """The figure as PDF."""
    with _browsing(figure, width, height, "null", name) as (command, page, folder):
        pdf = folder / "figure.pdf"
        process = _run([*command, "--no-pdf-header-footer", f"--print-to-pdf={pdf}", page.as_uri()], name)
        if not pdf.exists() or not pdf.stat().st_size:
            raise FigureError(f"{name}: {command[0]} did not draw it (exit code {process.returncode})")
        return pdf.read_bytes()


@contextlib.contextmanager
def _browsing(
    figure: plotly.graph_objects.Figure, width: int, height: int, script: str, name: str
) -> Iterator[tuple[list[str], Path, Path]]:
    """The command of a browser, the page with the figure alone, and their temporary folder."""
    browser = next((path for program in BROWSERS if (path := shutil.which(program))), None)
    if browser is None:
        raise FigureError(f"{name}: needs Chromium or Chrome; or save the figure with the button 'SVG' of the report")
    with tempfile.TemporaryDirectory(prefix="designopt-figure-") as folder:
        page = Path(folder) / "figure.html"
        page.write_text(_page(figure, width, height, script), encoding="utf-8")
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            f"--user-data-dir={folder}/profile",
            "--virtual-time-budget=20000",
        ]
        command += ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        yield command, page, Path(folder)


def _run(command: list[str], name: str) -> subprocess.CompletedProcess[bytes]:
    try:
        process = subprocess.run(command, capture_output=True, timeout=LONGEST, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FigureError(f"{name}: {command[0]} did not draw it: {error}") from None
    if process.returncode:
        raise FigureError(f"{name}: {command[0]} did not draw it (exit code {process.returncode})")
    return process


def part_and_number(file: Path) -> tuple[str, int]:
    """The part that a file is named after, and the number of its figure. Raises `FigureError` for an unknown format."""
    if file.suffix.lower() not in (".svg", ".pdf"):
        raise FigureError(f"{file}: a figure is written as .svg or .pdf")
    match = re.fullmatch(r"(.*?)(?:-(\d+))?", file.stem)
    return (match[1], int(match[2] or 1)) if match else (file.stem, 1)


def _file_names(file: Path, figures: Sequence[Any]) -> list[tuple[str, str]]:
    """File name and title of each figure of a part."""
    part, _ = part_and_number(file)
    return [(f"{part}{f'-{k}' if k > 1 else ''}{file.suffix}", figure.title) for k, figure in enumerate(figures, 1)]


def _figures_of_part(result: Result, file: Path) -> Sequence[Any]:
    part, _ = part_and_number(file)
    try:
        return presentation.figures_of_part(result.in_stated_units, part, {})
    except PluginError as error:
        raise FigureError(f"{file}: {error}; the name of the file is that of a part of the report") from None
    except ValueError as error:
        raise FigureError(f"{file}: {error}") from None


def _column(figure: plotly.graph_objects.Figure) -> tuple[float, float]:
    """Width and height (mm) of a figure in one column."""
    width, height = SIZE
    panels = {axis.domain for axis in figure.select_yaxes() if axis.overlaying is None}
    rows = _legend_rows([trace.name for trace in _in_legend(figure)])
    return width, height + PANEL * max(0, len(panels) - 1) + ROW * max(0, rows - FREE_ROWS)


def _in_legend(figure: plotly.graph_objects.Figure) -> list[Any]:
    """The traces with a name in the legend."""
    traces = figure.select_traces(lambda trace: "showlegend" in trace and trace.showlegend is not False)
    return [trace for trace in traces if trace.name]


def _legend_rows(names: Sequence[str]) -> int:
    """Rows of a legend with these names in one column of a paper."""
    in_a_row = max(1, int((SIZE[0] - SIDES) / (ENTRY + LETTER * max(map(len, names), default=0))))
    return -(-len(names) // in_a_row)


def _shorten_names(figure: plotly.graph_objects.Figure) -> None:
    """End the names of a long legend before their first colon, after which values of designs stand, if they stay
    different."""
    traces = _in_legend(figure)
    short_of = {trace.name: trace.name.partition(": ")[0] for trace in traces}
    if _legend_rows([trace.name for trace in traces]) <= FREE_ROWS or len({*short_of.values()}) < len(short_of):
        return
    for trace in traces:
        trace.name = short_of[trace.name]


def _on_paper(figure: plotly.graph_objects.Figure) -> plotly.graph_objects.Figure:
    """The figure of a page with the letters of a paper, everything else that has a size in proportion, and all points
    of its curves, which Plotly would thin."""
    import plotly.graph_objects as go

    letters = LETTERS * _POINT
    smaller = go.Figure(_scaled(figure.to_dict(), letters / _LETTERS_OF_PAGE))
    smaller.update_xaxes(title_standoff=4, title_font_size=letters).update_yaxes(
        title_standoff=4, title_font_size=letters
    )
    smaller.update_traces(labelangle=-30, selector={"type": "parcoords"})
    smaller.update_traces(line_simplify=False, selector={"type": "scatter"})
    _shorten_names(smaller)
    above = 1.5 if any(text.yref == "paper" and (text.y or 0.0) >= 1.0 for text in smaller.layout.annotations) else 0.0
    above = 5.0 if any(trace.type == "parcoords" for trace in smaller.data) else above
    return smaller.update_layout(
        title=None,
        font_size=letters,
        legend={"font_size": 0.9 * letters, "tracegroupgap": 0},
        margin={"l": 40, "r": 16, "t": 8 + above * letters, "b": 32},
    )


def _scaled(value: Any, ratio: float, key: str = "") -> Any:
    """A figure's `value` under `key` with sizes in pixels multiplied by `ratio`: letters, markers, lines, arrows."""
    if isinstance(value, Mapping):
        return {name: _scaled(item, ratio, f"{key}.{name}") for name, item in value.items()}
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Mapping):
        return [_scaled(item, ratio, key) for item in value]
    if not re.search(r"(font|marker)\.size$|line\.width$|\.(ax|ay|arrowwidth|standoff)$", key):
        return value
    least = 1.0 if key.endswith("font.size") else -np.inf  # letters of size 1 are those that a part hides
    return (np.asarray(value) * ratio).tolist() if np.ndim(value) else max(value * ratio, least)


def _page(figure: plotly.graph_objects.Figure, width: int, height: int, script: str) -> str:
    """A page with the figure alone."""
    from plotly.offline import get_plotlyjs

    text = figure.to_json().replace("</", "<\\/")
    return _PAGE.format(width=width, height=height, library=get_plotlyjs(), figure=text, script=script)
