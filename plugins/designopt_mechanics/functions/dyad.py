"""Two bars between known points: the joint where they meet, in closed form."""

from __future__ import annotations

from typing import Any, Literal

from designopt.lazy import casadi as ca


def dyad(a: Any, b: Any, length_a: float, length_b: float, branch: Literal[1, -1]) -> Any:
    """(2, 1) where a circle of radius `length_a` about `a` (2, 1) meets one of radius `length_b` about `b` (2, 1).

    `branch` 1 is the meeting point on the left of the way from a to b, -1 the one on its right. NaN where the bars do
    not reach each other. All derivatives are exact.
    """
    way = b - a
    square = ca.sumsqr(way)
    s = 0.5 * (length_a**2 - length_b**2 + square)
    h = branch * ca.sqrt(length_a**2 * square - s * s)
    return a + (s * way + h * ca.vertcat(-way[1], way[0])) / square
