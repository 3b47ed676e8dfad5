"""Grid and degrees of a table (`casadi.interpolant`). CasADi tells them only in its serialised form."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import numpy as np

from designopt.arrays import Floats


def grid(function: Any) -> list[Floats]:
    """The axes of the grid of a table; none of another function."""
    if function.class_name() not in ("LinearInterpolant", "BSplineInterpolant"):
        return []
    content = _content(function)
    values = _numbers(content, b"Interpolant::gridVJ", "d")
    offsets = [int(edge) for edge in _numbers(content, b"Interpolant::offsetVJ", "q")]
    return [np.array(values[a:b]) for a, b in itertools.pairwise(offsets)]


def degrees(function: Any) -> list[int]:
    """The degree of a table along each axis of its grid; none of another function."""
    if function.class_name() == "LinearInterpolant":
        return [1] * function.numel_in(0)
    if function.class_name() == "BSplineInterpolant":
        return [int(degree) for degree in _numbers(_content(function), b"BSplineCommon::degreeVJ", "q")]
    return []


def _content(function: Any) -> bytes:
    """The serialised form of a function, with a label before each part."""
    letters = np.frombuffer(function.serialize({"debug": True}).encode(), dtype=np.uint8) - ord("a")
    return (letters[0::2] | letters[1::2] << 4).tobytes()


def _numbers(content: bytes, label: bytes, kind: str) -> list[float]:
    """The list of numbers after `label`: their count, and each behind a letter for its type."""
    begin = content.find(label) + len(label)
    if begin < len(label):
        return []
    (count,) = struct.unpack_from("<q", content, begin)
    return [struct.unpack_from(f"<{kind}", content, begin + 8 + 9 * k + 1)[0] for k in range(count)]
