"""Selection of the muscles drawn with a colour and a name, and notes on measured ones."""

from __future__ import annotations

from collections.abc import Mapping
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


def drawn_muscles(arrays: Arrays, activity: str) -> list[tuple[int, str, dict[str, Any]]]:
    """Muscles in the order in which they are drawn, with their names and the style of their lines.

    Measured muscles and those with the largest `activity`, an array, come last and are named; others have no name.
    """
    size = np.nan_to_num(np.asarray(arrays[activity], dtype=float)).max(axis=0)
    size = size + np.isfinite(signals_of(arrays)).any(axis=0)
    order = [int(j) for j in np.argsort(-size, kind="stable")]
    faint = [(j, "", {"color": "@faint", "width": 0.8}) for j in order[NAMED:][::-1]]
    coloured = enumerate(order[:NAMED])
    return faint + [(j, str(arrays["muscles"][j]), {"color": category(n), "width": 1.7}) for n, j in coloured]


def key_of_lines(motions: Mapping[tuple[str, str], Arrays], of_signals: str, of_names: str) -> str:
    """`of_signals` where muscles were measured, `of_names` where not all muscles are named."""
    measured = any(np.isfinite(signals_of(arrays)).any() for arrays in motions.values())
    many = max(len(arrays["muscles"]) for arrays in motions.values()) > NAMED
    return " ".join([of_signals] * measured + [of_names] * many)
