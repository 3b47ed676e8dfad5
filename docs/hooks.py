"""What the documentation site adds to the pages in this folder: the generated reference, and the README as start."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from benchmarks import benchmarks  # noqa: E402
from reference import plugin_reference, study_reference  # noqa: E402


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    readme = (HERE.parent / "README.md").read_text(encoding="utf-8")
    pages = {
        "index.md": readme.replace("](docs/", "](")
        .replace("`docs/", "`")
        .replace("(CONTRIBUTING.md)", "(contributing.md)"),
        "contributing.md": (HERE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        "changelog.md": (HERE.parent / "CHANGELOG.md").read_text(encoding="utf-8"),
        "study_reference.md": study_reference(),
        **plugin_reference(),
        "benchmarks.md": benchmarks(),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """A fence has words after its language (```sh export) that tell its test what it is; Markdown knows none."""
    return re.sub(r"^(```[a-z]+)(?: [a-z]+)+$", r"\1", markdown, flags=re.MULTILINE)


def on_post_page(output: str, page: Page, config: Any) -> str:
    """The search of pages that are opened from a folder needs a script, which the theme would load from elsewhere."""
    return output.replace("https://unpkg.com/iframe-worker/shim", get_relative_url("worker.js", page.url))
