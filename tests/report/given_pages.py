"""Pages of the sections that a test looks at: a whole page takes longer to draw."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from given_results import GivenResult, grid

from designopt.report import Section
from designopt.report.page.page import render


def page_of(folder: Path, *sections: Section | None) -> Path:
    """A page of these sections."""
    return _page(folder, grid(), sections)


def page_of_parts(result: GivenResult, folder: Path, *parts: Callable[[Any], Section | None]) -> Path:
    """A page of these parts, those without a section left out."""
    return _page(folder, result, [part(result) for part in parts])


def _page(folder: Path, result: GivenResult, sections: Iterable[Section | None]) -> Path:
    path = folder / "report.html"
    path.write_text(render(result, [section for section in sections if section is not None]), encoding="utf-8")
    return path
