"""Code of functions and classes: a hash that is independent of file name and line numbers, the text of its file."""

from __future__ import annotations

import functools
import hashlib
import linecache
import types
from typing import Any


def code_number(target: Any) -> int:
    """A number that changes with the code of a function, or of the functions of a class.

    Called functions, comments, file names and line numbers do not change it. Objects without Python code have 0.
    """
    codes = _codes(target)
    if not codes:
        return 0
    return int.from_bytes(hashlib.blake2b(repr(codes).encode(), digest_size=4).digest(), "big") >> 1


def file_text(function: Any) -> str:
    """The text of the file in which a function is defined; "" if it is not available."""
    if not isinstance(function, types.FunctionType):
        return ""
    return "".join(linecache.getlines(function.__code__.co_filename, function.__globals__))


def _codes(target: Any) -> list[Any]:
    if isinstance(target, type):
        return [(name, codes) for name, member in vars(target).items() if (codes := _codes(member))]
    if isinstance(target, (staticmethod, classmethod)):
        target = target.__func__
    target = target.fget if isinstance(target, property) else target
    target = target.func if isinstance(target, functools.cached_property) else target
    return [_content(target.__code__)] if isinstance(target, types.FunctionType) else []


def _content(value: Any) -> Any:
    """The content of a code object without file names and line numbers."""
    if isinstance(value, types.CodeType):
        return (value.co_code, value.co_names, value.co_varnames, [_content(item) for item in value.co_consts])
    if isinstance(value, frozenset):
        return sorted(map(repr, value))
    return [_content(item) for item in value] if isinstance(value, tuple) else value
