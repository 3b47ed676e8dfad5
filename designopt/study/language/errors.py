"""Mistakes in a study file, as data, and their rendering as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from designopt.printable import printable


@dataclass(frozen=True)
class Issue:
    """One mistake. `line` and `column` count from 1 and are None without a file.

    `file` is the file's name, the ``--set`` text that caused it, or empty for a study built in Python. `end_column` is
    the column after the last wrong character on that line; `path` is the position in the study
    (``space.stiffness.low``).
    """

    file: str
    line: int | None
    column: int | None
    end_column: int | None
    path: str
    message: str
    source_line: str = ""


class StudyError(Exception):
    """The study cannot be used; `issues` contains all mistakes, in file order."""

    def __init__(self, issues: Sequence[Issue]) -> None:
        self.issues = tuple(issues)
        super().__init__(printable(render_text(self.issues)))

    @property
    def in_short(self) -> str:
        """The first mistakes in one line, with their positions."""
        return "; ".join(f"{i.file}:{i.line}:{i.column}: {i.message}" for i in self.issues[:5])


def abbreviate(text: str, limit: int = 600) -> str:
    """`text`, with its middle omitted if it is longer than `limit`."""
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 2 :]}"


def error_line(text: str) -> str:
    """A source line for an issue: "" if it is too long to read."""
    return text if len(text) <= 10_000 else ""


def render_text(issues: Sequence[Issue]) -> str:
    """The issues for a terminal: position, message, source line and carets, then the count."""
    lines: list[str] = []
    for issue in issues:
        position = issue.file
        if issue.line is not None:
            position += f":{issue.line}:{issue.column}"
        head = f"{position}: error: " if position else "error: "
        lines.append(head + (f"{issue.path}: " if issue.path else "") + issue.message)
        lines.extend(_excerpt(issue))
    count = len(issues)
    lines.append(f"{count} error{'' if count == 1 else 's'}, nothing was run.")
    return "\n".join(lines)


def render_json(issues: Sequence[Issue]) -> str:
    """The issues for editors and programs: a JSON array of objects with the fields of `Issue`."""
    return json.dumps([asdict(issue) for issue in issues], ensure_ascii=False, indent=2)


#: Maximum length of a shown piece of a source line, which always includes the mistake.
_WIDTH = 120


def _excerpt(issue: Issue) -> list[str]:
    """Source line indented by four, and carets below it; tabs are kept so that both lines align."""
    if issue.line is None or issue.column is None or not issue.source_line.strip():
        return []
    text = issue.source_line.rstrip()
    indent = min(len(text) - len(text.lstrip()), issue.column - 1)
    start = issue.column - 1
    stop = max(issue.end_column - 1 if issue.end_column else start + 1, start + 1)
    if start - indent > _WIDTH - 40:
        indent = start - 20
    source_line = text[indent : indent + _WIDTH]
    before = "".join("\t" if c == "\t" else " " for c in text[indent:start].ljust(start - indent))
    carets = "^" * max(1, min(stop - start, indent + _WIDTH - start))
    return ["    " + source_line, "    " + before + carets]
