"""Nested tuples of numbers: the parameters of a controller or a loop, and its state between samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def leaves(numbers: Any) -> Iterator[Any]:
    """The numbers of nested tuples, in order; None contributes nothing."""
    if isinstance(numbers, tuple):
        for part in numbers:
            yield from leaves(part)
    elif numbers is not None:
        yield numbers


def with_structure(pattern: Any, values: Iterator[Any]) -> Any:
    """Nested tuples with the structure of `pattern` and other numbers, taken in order."""
    if isinstance(pattern, tuple):
        parts = [with_structure(part, values) for part in pattern]
        return type(pattern)(*parts) if hasattr(pattern, "_fields") else tuple(parts)
    return None if pattern is None else next(values)
