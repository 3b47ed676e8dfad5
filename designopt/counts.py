"""Counts and names in messages."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice


def first_of(texts: Collection[str], limit: int) -> str:
    """At most so many of the texts, in their order, and how many more there are: ``a, b and 3 more``."""
    remainder = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return ", ".join(islice(texts, limit)) + remainder


def with_subject(name: str, sentence: str) -> str:
    """A sentence after the name of what it is about, once: ``walk: no frame is usable``."""
    return sentence if sentence.startswith(f"{name}: ") else f"{name}: {sentence}"


def percent(share: float, decimals: int = 0) -> str:
    """A share of 1 in percent: ``12.5 %`` with one decimal."""
    return f"{100.0 * share:.{decimals}f} %"


def plural(number: int, noun: str) -> str:
    """A count with its noun: ``1 design``, ``12 designs``."""
    return f"{number} {of_number(number, noun)}"


def of_number(number: int, noun: str) -> str:
    """The noun alone: ``design`` for 1, else ``designs``."""
    return noun if number == 1 else f"{noun}s"
