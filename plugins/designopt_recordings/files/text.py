"""Text files as numbered lines, cells of a row, numbers of a cell."""

from __future__ import annotations

import codecs
import contextlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from designopt.plugin import InputFile
from designopt_recordings.errors import RecordingError

_MISSING = {"", "nan", "-nan", "na", "n/a", "null", "none", "inf", "-inf", "+inf", "infinity", "-infinity"}
_WINDOWS_MISSING = re.compile(r"[+-]?1\.#(ind|inf|qnan|snan)0*", re.IGNORECASE)  # how C programs wrote NaN on Windows
_NUMBER_CHARACTERS = re.compile(r"[0-9eE.+-]*")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")


def input_file(path: str | Path) -> InputFile:
    """The file at `path` for the readers; raises `RecordingError` where it cannot be read."""
    try:
        return InputFile(Path(path).name, Path(path).read_bytes())
    except OSError as problem:
        raise RecordingError(f"the file cannot be read: {problem.strerror}", file=str(path)) from None


@dataclass(frozen=True)
class Lines:
    """The lines of a text file, without their ends; numbers count from one."""

    file: str
    lines: tuple[str, ...]

    @classmethod
    def from_file(cls, file: InputFile) -> Lines:
        """Lines of `file`: UTF-8, UTF-16 with its mark, or single bytes (an old path in a header); any line ends.

        Raises `RecordingError` for an empty or binary file.
        """
        content = file.content
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            text = content.decode("utf-16", errors="replace")
        else:
            try:
                text = content.decode("utf-8-sig")
            except UnicodeDecodeError:
                text = content.decode("latin-1")
        if "\0" in text:
            line = text[: text.index("\0")].count("\n") + 1
            raise RecordingError("this is not a text file: it has a zero byte", file=file.name, position=f"line {line}")
        lines = re.split(r"\r\n|\n|\r", text)
        while lines and not lines[-1].strip():
            lines.pop()
        if not lines:
            raise RecordingError("the file is empty", file=file.name)
        return cls(file.name, tuple(lines))

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, number: int) -> str:
        return self.lines[number - 1]

    def error(self, number: int, message: str) -> RecordingError:
        """The error to raise about line `number`."""
        return RecordingError(message, file=self.file, position=f"line {number}")


def cells(line: str) -> list[str]:
    """Cells of a line: between tabs where it has any, otherwise between blanks; trailing empty ones stay away."""
    parts = [cell.strip() for cell in line.split("\t")] if "\t" in line.strip() else line.split()
    while parts and not parts[-1]:
        parts.pop()
    return parts


def row_of(line: str, count: int) -> list[str]:
    """`cells` of a row of numbers: empty cells at its end count as far as the line has tabs for them."""
    if "\t" not in line.strip(" "):
        return line.split()
    parts = [cell.strip() for cell in line.split("\t")]
    while len(parts) > count and not parts[-1]:
        parts.pop()
    return parts


def number(cell: str) -> float:
    """The number in a cell, NaN for an empty cell and the usual texts for missing values.

    Raises `ValueError` with a sentence for other text.
    """
    if _NUMBER.fullmatch(cell):
        value = float(cell)
        return value if math.isfinite(value) else math.nan
    if cell.lower() in _MISSING or _WINDOWS_MISSING.fullmatch(cell):
        return math.nan
    if _DECIMAL_COMMA.fullmatch(cell):
        raise ValueError(f"'{cell}' has a decimal comma; write a decimal point")
    raise ValueError(f"'{shortened(cell)}' is not a number")


def numbers(lines: Lines, at: int, row: Sequence[str], names: Sequence[str]) -> list[float]:
    """Numbers of the cells of line `at`; raises `RecordingError` that names the line and the column."""
    if _NUMBER_CHARACTERS.fullmatch("".join(row)):  # `float` takes these as `number` does, in a fifth of the time
        with contextlib.suppress(ValueError):
            values = [float(cell) for cell in row]
            if math.isfinite(sum(values)):
                return values
    try:
        return [number(cell) for cell in row]
    except ValueError:
        for cell, name in zip(row, names, strict=True):
            try:
                number(cell)
            except ValueError as problem:
                raise lines.error(at, f"column '{name}': {problem}") from None
        raise


def shortened(text: str, length: int = 40) -> str:
    """`text` for a message: without line ends and unprintable characters, at most `length` long."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= length else text[: length - 3] + "..."
