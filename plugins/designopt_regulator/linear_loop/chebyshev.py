"""Chebyshev collocation on the interval from -1 to 1."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from designopt.arrays import Floats

NODES = 16  # of an interval in which nothing turns or decays by more than 2


@lru_cache(maxsize=1)
def points() -> tuple[Floats, Floats]:
    """Chebyshev-Lobatto nodes from -1 to 1 and the matrix that differentiates values there (Trefethen 2000, ch. 6)."""
    x = -np.cos(np.pi * np.arange(NODES) / (NODES - 1))
    c = np.where((np.arange(NODES) == 0) | (np.arange(NODES) == NODES - 1), 2.0, 1.0) * (-1.0) ** np.arange(NODES)
    D = np.outer(c, 1.0 / c) / (x[:, None] - x + np.eye(NODES))
    return x, D - np.diag(D.sum(axis=1))
