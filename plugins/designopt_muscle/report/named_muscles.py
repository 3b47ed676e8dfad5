"""Selection of the muscles drawn with a colour and a name, and notes on measured ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.report.colours import category
from designopt.report.designs import Arrays

#: Muscles with separate colours; the others are drawn faintly.
NAMED = 8


def signals_of(arrays: Arrays) -> Floats:
    """(n, k) measured activity, NaN without a measurement."""
    if "signals" in arrays:
        return np.asarray(arrays["signals"], dtype=float)
    return np.full((len(arrays["time"]), len(arrays["muscles"])), np.nan)


def named_muscles(motions: Mapping[tuple[str, str], Arrays], activity: str) -> tuple[str, ...]:
    """Names of the muscles that are drawn in colour, the same in all motions: measured ones, and those with the largest
    `activity`, an array (time, muscle)."""
    sizes = [
        np.nan_to_num(np.abs(np.asarray(arrays[activity], dtype=float))).max(axis=0, initial=0.0)
        + np.isfinite(signals_of(arrays)).any(axis=0)
        for arrays in motions.values()
    ]
    return largest([arrays["muscles"] for arrays in motions.values()], sizes)[:NAMED]


def largest(names: Sequence[Iterable[Any]], sizes: Sequence[Floats]) -> tuple[str, ...]:
    """The names by their largest size in several motions, of which each has `names` and their `sizes`."""
    largest_of: dict[str, float] = {}
    for names_of, sizes_of in zip(names, sizes, strict=True):
        for name, size in zip(map(str, names_of), sizes_of.tolist(), strict=True):
            largest_of[name] = max(size, largest_of.get(name, 0.0))
    return tuple(sorted(largest_of, key=lambda name: -largest_of[name]))


def drawn_muscles(arrays: Arrays, highlights: Sequence[str]) -> list[tuple[int, str, dict[str, Any]]]:
    """Muscles in the order in which they are drawn, with their names and the style of their lines.

    The `highlights` come last, in colours; the others have no name.
    """
    columns = {str(name): j for j, name in enumerate(arrays["muscles"])}
    faint = [(j, "", {"color": "@faint", "width": 0.8}) for name, j in columns.items() if name not in highlights]
    styles = [(name, {"color": category(n), "width": 1.7}) for n, name in enumerate(highlights)]
    return faint + [(columns[name], name, style) for name, style in styles if name in columns]


def key_of_lines(motions: Mapping[tuple[str, str], Arrays], of_signals: str, of_names: str) -> str:
    """`of_signals` where muscles were measured, `of_names` where not all muscles are named."""
    has_signals = any(np.isfinite(signals_of(arrays)).any() for arrays in motions.values())
    is_crowded = max(len(arrays["muscles"]) for arrays in motions.values()) > NAMED
    return " ".join([of_signals] * has_signals + [of_names] * is_crowded)
