"""Synergies: common commands of several muscles, given or factored from measured activity."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import scipy

#: Random starts, alternations of each, and the relative change of the error at which they end.
_STARTS, _ROUNDS, _STILL = 5, 500, 1e-9


def command_matrix(synergies: Mapping[str, Mapping[str, float]], muscles: tuple[str, ...]) -> Floats:
    """(k, s) how commands move the `muscles`: the synergies, then the muscles that are in none, each by its own."""
    weights = [[synergy.get(name, 0.0) for name in muscles] for synergy in synergies.values()]
    alone = [i for i in range(len(muscles)) if not any(synergy[i] for synergy in weights)]
    return np.column_stack([np.array(weights).T.reshape(len(muscles), -1), np.eye(len(muscles))[:, alone]])


def factorise_signals(signals: Floats, count: int) -> tuple[Floats, Floats, float]:
    """W (k, `count`), H (n, `count`) and the variance accounted for: ``signals ~ H W^T`` (n, k), all not negative.

    Non-negative matrix factorisation by alternating non-negative least squares (Paatero & Tapper, Environmetrics 5,
    1994), the best of five random starts; each column of W has the largest entry 1. The variance accounted for is
    ``1 - sum (S - H W^T)^2 / sum S^2``. Raises `ValueError` for signals that are negative or not finite, and for
    counts that they cannot have.
    """
    signals = np.asarray(signals, dtype=np.float64)
    if signals.ndim != 2 or not np.isfinite(signals).all() or (signals < 0).any():
        raise ValueError("signals must be finite and not negative in every frame")
    if not 1 <= count <= min(signals.shape):
        raise ValueError(f"{count} synergies of {signals.shape[1]} signals in {signals.shape[0]} frames")
    rng = np.random.default_rng(0)
    size = float((signals**2).sum()) or 1.0
    best: tuple[Floats, Floats, float] | None = None
    for _ in range(_STARTS):
        W = rng.random((signals.shape[1], count))
        error = np.inf
        for _ in range(_ROUNDS):
            H = _columns(W, signals.T).T
            W = _columns(H, signals).T
            before, error = error, float(((signals - H @ W.T) ** 2).sum())
            if before - error <= _STILL * size:
                break
        if best is None or error < best[2]:
            best = W, H, error
    assert best is not None
    W, H, error = best
    largest = np.where(W.max(axis=0) > 0, W.max(axis=0), 1.0)
    order = np.argsort(-(H * largest).sum(axis=0), kind="stable")
    return (W / largest)[:, order], (H * largest)[:, order], 1.0 - error / size


def _columns(matrix: Floats, right_side: Floats) -> Floats:
    """(s, n) the non-negative x with the least ``|matrix x - b|`` for each column b of `right_side`.

    Raises `ValueError` if the solver gives up.
    """
    try:
        return np.stack([scipy.optimize.nnls(matrix, column)[0] for column in right_side.T], axis=1)
    except RuntimeError as error:
        raise ValueError(f"the synergies were not found: {error}") from None
