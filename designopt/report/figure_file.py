"""A figure of the report as a file for a paper: SVG or PDF, drawn by a browser of this machine."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from designopt.plugin import PluginError

if TYPE_CHECKING:
    import plotly.graph_objects

    from designopt.store.result import Result

#: Programs that can draw, by preference.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
#: Size of a figure in one column of a paper (mm), letters (pt), and limit of the browser (s).
SIZE, LETTERS, LONGEST = (85.0, 64.0), 8.0, 60.0
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


def write_figure(result: Result, file: Path, size: tuple[float, float] = SIZE) -> Path:
    """Write the figure that `file` names, ``PART.svg`` or ``PART-2.pdf`` for the second one of a part; `size` in mm.

    Raises `FigureError` for an unknown part or format and without a browser, `OSError` if the file cannot be written.
    """
    if file.suffix.lower() not in (".svg", ".pdf"):
        raise FigureError(f"{file}: a figure is written as .svg or .pdf")
    width, height = (round(length * _PIXELS) for length in size)
    if file.suffix.lower() == ".svg":
        content = draw(_figure(result, file), width, height, str(file))["svg"]
    else:
        content = _printed(_figure(result, file), width, height, str(file))
    file.write_bytes(content)
    return file


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


def _printed(figure: plotly.graph_objects.Figure, width: int, height: int, name: str) -> bytes:
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


def _figure(result: Result, file: Path) -> plotly.graph_objects.Figure:
    """The figure that the name of `file` states, with the letters of a paper."""
    match = re.fullmatch(r"(.*?)(?:-(\d+))?", file.stem)
    part, number = (match[1], int(match[2] or 1)) if match else (file.stem, 1)
    try:
        figure = result.plot(part, number - 1)
    except (PluginError, ValueError) as error:
        raise FigureError(f"{file}: {error}; the name of the file is that of a part of the report") from None
    return figure.update_layout(title=None, font_size=LETTERS * _POINT, margin={"l": 45, "r": 8, "t": 8, "b": 40})


def _page(figure: plotly.graph_objects.Figure, width: int, height: int, script: str) -> str:
    """A page with the figure alone."""
    from plotly.offline import get_plotlyjs

    text = figure.to_json().replace("</", "<\\/")
    return _PAGE.format(width=width, height=height, library=get_plotlyjs(), figure=text, script=script)
