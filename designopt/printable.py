"""Text for a terminal: characters that would control it are shown as escapes.

Stored and foreign text (messages of models, names in a received store, lines of a study file) may contain sequences
that erase lines, set colours or titles, or reorder what is read.
"""

from __future__ import annotations

import re

#: Control characters except tab and newline, marks and overrides of direction, line separators of Unicode, and lone
#: surrogates.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` with control characters as escapes such as ``\\u001b``, which are valid in JSON, too; tabs and newlines
    stay."""
    return _CONTROLS.sub(_escape, text)


def one_line(text: str) -> str:
    """`printable` of a name or a cell of a table, with newlines as escapes."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(character: re.Match[str]) -> str:
    return "\\r" if character[0] == "\r" else f"\\u{ord(character[0]):04x}"
