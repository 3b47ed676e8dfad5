"""Numbers in nested tuples: what a regulator or a loop is made of, and what it keeps from sample to sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def leaves(numbers: Any) -> Iterator[Any]:
    """The numbers of nested tuples, in order; what is None has none."""
    if isinstance(numbers, tuple):
        for part in numbers:
            yield from leaves(part)
    elif numbers is not None:
        yield numbers


def like(pattern: Any, values: Iterator[Any]) -> Any:
    """Nested tuples as those of `pattern`, with other numbers, taken in order."""
    if isinstance(pattern, tuple):
        parts = [like(part, values) for part in pattern]
        return type(pattern)(*parts) if hasattr(pattern, "_fields") else tuple(parts)
    return None if pattern is None else next(values)
