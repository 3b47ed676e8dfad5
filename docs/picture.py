"""Takes the pictures of the gallery: one section of a report, as a browser shows it.

    python docs/picture.py results/mount.study/report.html "Parallel coordinates" parallel.png [--brush travel=5..12]

Needs Chromium with its driver, Selenium (extra `test`) and Pillow. A picture is at most 250 kB.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

LARGEST = 250_000
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
PATIENCE = 30.0


def take(page: Path, section: str, picture: Path, *, width: int, height: int, brush: str | None = None) -> None:
    """Write the upper `height` pixels of the section with this heading; `brush` is ``label=low..high``, an axis of the
    parallel coordinates (the beginning of its label is enough). Raises `ValueError`."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    with tempfile.TemporaryDirectory() as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},1000"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            _open(browser, page, width)
            headings = [h.text for h in browser.find_elements("css selector", "section h2")]
            if section not in headings:
                raise ValueError(f"{page} has no section '{section}' (it has {', '.join(headings)})")
            found = browser.find_elements("css selector", "section")[headings.index(section)]
            if brush:
                _brush(browser, brush)
            box = browser.execute_script("return arguments[0].getBoundingClientRect().toJSON()", found)
            top = box["y"] + browser.execute_script("return window.scrollY")
            clip = {"x": box["x"] - 8, "y": top, "width": box["width"] + 16, "height": min(height, box["height"])}
            shot = browser.execute_cdp_cmd(
                "Page.captureScreenshot", {"clip": {**clip, "scale": 1}, "captureBeyondViewport": True}
            )
        finally:
            browser.quit()
    _write(shot["data"], picture)


def _open(browser: Any, page: Path, width: int) -> None:
    """Open the page and wait until every figure is drawn."""
    browser.get(page.resolve().as_uri())
    height = browser.execute_script("return document.documentElement.scrollHeight")
    browser.set_window_size(width, height + 200)
    _wait(browser, "return document.querySelectorAll('figure:not([data-drawn])').length === 0", "figures are not drawn")


def _brush(browser: Any, brush: str) -> None:
    label, _, ends = brush.partition("=")
    low, _, high = ends.partition("..")
    browser.execute_script(
        """
        const plot = document.querySelector('[id^=parallel] .plot'), change = {};
        plot.data[0].dimensions.forEach((axis, i) => {
            const wanted = axis.label.startsWith(arguments[0]);
            change[`dimensions[${i}].constraintrange`] = wanted ? [[Number(arguments[1]), Number(arguments[2])]] : null;
        });
        return Plotly.restyle(plot, change)
        """,
        label,
        low,
        high,
    )
    time.sleep(1.0)  # the table below follows


def _wait(browser: Any, condition: str, complaint: str) -> None:
    end = time.monotonic() + PATIENCE
    while not browser.execute_script(condition):
        if time.monotonic() > end:
            raise ValueError(complaint)
        time.sleep(0.1)
    time.sleep(0.5)


def _write(data: str, picture: Path) -> None:
    """As a picture of 256 colours, which is a third of the size."""
    import base64
    import io

    from PIL import Image

    written = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(data))) as whole:
        small = whole.convert("RGB").quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        small.save(written, "PNG", optimize=True)
    content = written.getvalue()
    if len(content) > LARGEST:
        raise ValueError(f"the picture has {len(content)} bytes; show less with --height or --width")
    picture.write_bytes(content)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Take a picture of one section of a report.")
    parser.add_argument("page", type=Path)
    parser.add_argument("section")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--brush")
    given = parser.parse_args()
    take(given.page, given.section, given.picture, width=given.width, height=given.height, brush=given.brush)


if __name__ == "__main__":
    main()
