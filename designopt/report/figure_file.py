"""A figure of the report as a file for a paper: SVG or PDF, drawn by a browser of this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path

from designopt.plugin import PluginError
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
_TO_SVG = """Plotly.toImage(drawn, {format: "svg", imageDataOnly: true}).then(svg => {
  const text = document.createElement("pre");
  text.id = "svg";
  text.textContent = svg;
  document.body.replaceChildren(text);
})"""


class FigureError(Exception):
    """A figure cannot be written; the text says why, and what to do."""


def write_figure(result: Result, file: Path, size: tuple[float, float] = SIZE) -> Path:
    """Write the figure that `file` names, ``PART.svg`` or ``PART-2.pdf`` for the second one of a part; `size` in mm.

    Raises `FigureError` for an unknown part or format and without a browser, `OSError` if the file cannot be written.
    """
    if file.suffix.lower() not in (".svg", ".pdf"):
        raise FigureError(f"{file}: a figure is written as .svg or .pdf")
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise FigureError(f"{file}: needs Chromium or Chrome; or save the figure with the button 'SVG' of the report")
    with tempfile.TemporaryDirectory(prefix="designopt-figure-") as folder:
        page, pdf = Path(folder) / "figure.html", Path(folder) / "figure.pdf"
        is_svg = file.suffix.lower() == ".svg"
        page.write_text(_page(result, file, size, _TO_SVG if is_svg else "null"), encoding="utf-8")
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            f"--user-data-dir={folder}/profile",
            "--virtual-time-budget=20000",
        ]
        command += ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        command += ["--dump-dom"] if is_svg else ["--no-pdf-header-footer", f"--print-to-pdf={pdf}"]
        try:
            process = subprocess.run([*command, page.as_uri()], capture_output=True, timeout=LONGEST, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise FigureError(f"{file}: {browser} did not draw it: {error}") from None
        match = re.search(r'<pre id="svg">(.*?)</pre>', process.stdout.decode(errors="replace"), re.DOTALL)
        content = (unescape(match[1]).encode() if match else b"") if is_svg else _content(pdf)
    if not content:
        raise FigureError(f"{file}: {browser} did not draw it (exit code {process.returncode})")
    file.write_bytes(content)
    return file


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _page(result: Result, file: Path, size: tuple[float, float], script: str) -> str:
    """A page with the figure alone."""
    from plotly.offline import get_plotlyjs

    match = re.fullmatch(r"(.*?)(?:-(\d+))?", file.stem)
    part, number = (match[1], int(match[2] or 1)) if match else (file.stem, 1)
    try:
        figure = result.plot(part, number - 1)
    except (PluginError, ValueError) as error:
        raise FigureError(f"{file}: {error}; the name of the file is that of a part of the report") from None
    figure.update_layout(title=None, font_size=LETTERS * _POINT, margin={"l": 45, "r": 8, "t": 8, "b": 40})
    width, height = (round(length * _PIXELS) for length in size)
    text = figure.to_json().replace("</", "<\\/")
    return _PAGE.format(width=width, height=height, library=get_plotlyjs(), figure=text, script=script)
