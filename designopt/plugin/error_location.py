"""Position of an error in the user's files, not in designopt or a library."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

_SUITE = str(Path(__file__).parents[1])


@functools.cache
def _libraries() -> tuple[str, ...]:
    import sysconfig  # takes some milliseconds, and few commands need it

    return tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


def is_user_file(file: str) -> bool:
    """Whether a code file belongs neither to designopt nor to a library."""
    return not (file.startswith((_SUITE, *_libraries(), "<frozen")) or "site-packages" in file)


def user_frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """The frames of the user's files in the traceback of `error`, with their lines, innermost last."""
    return [(frame, line) for frame, line in _frames(error.__traceback__) if is_user_file(frame.f_code.co_filename)]


def raise_location(error: BaseException, source: Path | None = None) -> str:
    """The user's last line in the traceback of `error`, as ``drive.py:33``, else the last line of the file `source`; ""
    if there is none."""
    frames = user_frames(error) or [
        (frame, line) for frame, line in _frames(error.__traceback__) if frame.f_code.co_filename == str(source)
    ]
    if not frames:
        return ""
    frame, line = frames[-1]
    return f"{_relative_path(frame.f_code.co_filename)}:{line}"


def error_line(error: BaseException, source: Path | None = None) -> str:
    """An unexpected error in one line, with its `raise_location`."""
    location = raise_location(error, source)
    text = " ".join(str(error).split())
    return f"{location + ': ' if location else ''}{type(error).__name__}{': ' + text if text else ''}"


def definition_line(function: Callable[..., Any], name: str) -> str:
    """The line of `function` that sets the entry `name` of its mapping, as ``drive.py:33``, else its first line.

    "" if the file cannot be read.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return ""
    first, last = code.co_firstlineno, max(line for *_, line in code.co_lines() if line is not None)
    try:
        tree = ast.parse(Path(code.co_filename).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return ""
    at = (int(getattr(node, "lineno", 0)) for node in ast.walk(tree) if name in _entries(node))
    line = min((n for n in at if first <= n <= last), default=first)
    return f"{_relative_path(code.co_filename)}:{line}"


def _relative_path(file: str) -> str:
    """A file as given, relative to the current folder if it is below it."""
    working_folder = f"{Path.cwd()}/"
    return file.removeprefix(working_folder)


def _entries(node: ast.AST) -> Iterator[str]:
    """The keys of a mapping that a node of a syntax tree sets."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.keyword) and node.arg:
        yield node.arg


def _frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
