"""Counts and their nouns in messages."""

from __future__ import annotations


def count(number: int) -> str:
    """A count with its thousands set apart."""
    return f"{number:,}".replace(",", "\u202f")


def plural(number: int, noun: str) -> str:
    """``1 design``, ``12 designs``."""
    return f"{count(number)} {of_number(number, noun)}"


def of_number(number: int, noun: str) -> str:
    """``design`` for 1, else ``designs``."""
    return noun if number == 1 else f"{noun}s"
