"""Counts and their nouns in messages."""

from __future__ import annotations


def count(number: int) -> str:
    """A count with thousands separators."""
    return f"{number:,}".replace(",", "\u202f")


def plural(number: int, noun: str) -> str:
    """A count with its noun: ``1 design``, ``12 designs``."""
    return f"{count(number)} {of_number(number, noun)}"


def of_number(number: int, noun: str) -> str:
    """The noun alone: ``design`` for 1, else ``designs``."""
    return noun if number == 1 else f"{noun}s"
