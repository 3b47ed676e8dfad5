"""Pairs of quantities of which one is zero at any time, such as the distance and force of a contact."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any


@dataclass(frozen=True)
class Complementary:
    """``0 <= first``, ``0 <= second`` and one of the two is zero, at all collocation points of a `phase`.

    `first` and `second` are functions of the symbols of a point, `sizes` their approximate maxima: the relaxation is
    relative to their product. For a distance and a force: no force without contact. Raises `ValueError` for sizes that
    are not positive.
    """

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]
    phase: str = "motion"
    sizes: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        sizes: Any = self.sizes
        numbers = isinstance(sizes, Sequence) and len(sizes) == 2 and all(isinstance(size, Real) for size in sizes)
        if not (numbers and all(0.0 < size < math.inf for size in sizes) and 0.0 < math.prod(sizes) < math.inf):
            raise ValueError(f"sizes are {sizes!r}: give two positive numbers")
