"""Two bars between known points: the joint where they meet, in closed form."""

from __future__ import annotations

from typing import Any, Literal

from designopt.lazy import casadi as ca


def dyad(a: Any, b: Any, length_a: Any, length_b: Any, branch: Literal[1, -1]) -> Any:
    """(2, 1) where a circle of radius `length_a` about `a` (2, 1) meets one of radius `length_b` about `b` (2, 1).

    `branch` 1 is the meeting point on the left of the way from a to b, -1 the one on its right. NaN where the bars do
    not reach each other. All derivatives are exact.
    """
    way = b - a
    square = ca.sumsqr(way)
    s = 0.5 * (length_a**2 - length_b**2 + square)
    h = branch * ca.sqrt(length_a**2 * square - s * s)
    return a + (s * way + h * ca.vertcat(-way[1], way[0])) / square


def reach(a: Any, b: Any, length_a: Any, length_b: Any) -> Any:
    """m by which two bars about `a` and `b` (2, 1) miss each other, positive where they do not meet."""
    apart = ca.norm_2(b - a)
    return ca.fmax(apart - (length_a + length_b), ca.fabs(length_a - length_b) - apart)
