"""Where in the files of a user code failed: not in the suite's files or in libraries that it calls."""

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


def is_own(file: str) -> bool:
    """Whether a file of code is neither the suite's nor a library's."""
    return not (file.startswith((_SUITE, *_libraries(), "<frozen")) or "site-packages" in file)


def own_frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """The frames of the user's files through which `error` came, with their lines, the last one last."""
    return [(frame, line) for frame, line in _frames(error.__traceback__) if is_own(frame.f_code.co_filename)]


def place(error: BaseException) -> str:
    """``drive.py:33`` of the user's last line that led to `error`; nothing where it is in none of his files."""
    frames = own_frames(error)
    if not frames:
        return ""
    frame, line = frames[-1]
    return f"{_shown(frame.f_code.co_filename)}:{line}"


def said(error: BaseException) -> str:
    """An unexpected error in one line, with the place in the user's file."""
    where = place(error)
    text = " ".join(str(error).split())
    return f"{where + ': ' if where else ''}{type(error).__name__}{': ' + text if text else ''}"


def place_of(function: Callable[..., Any], name: str) -> str:
    """``drive.py:33``, the line of `function` that gives the entry `name` of its mapping, else its first line.

    Nothing where its file cannot be read.
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
    return f"{_shown(code.co_filename)}:{line}"


def _shown(file: str) -> str:
    """A file as it was named, relative to the current folder where it is below that."""
    here = f"{Path.cwd()}/"
    return file.removeprefix(here)


def _entries(node: ast.AST) -> Iterator[str]:
    """The names to which a node of a syntax tree gives entries of a mapping."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.keyword) and node.arg:
        yield node.arg


def _frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
