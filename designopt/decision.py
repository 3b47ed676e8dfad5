"""Picking one design of a front: normalisation, hypervolume, knee, compromises, and how much a choice hangs on weights.

A front is a matrix ``F`` (n, m) of nondominated objective vectors, all to be made small: what is to be made large comes
with its sign changed. Everything but the hypervolume is plain NumPy. Where several designs are equally good up to
rounding, the one with the smaller first objective is taken (then the second, and so on).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Matrix
from designopt.lazy import moocore
from designopt.study.study import Choice

Distance = Literal["l1", "l2", "chebyshev"]
Norm = Literal["vector", "minmax"]

#: Scores closer than this are equal: the front is scaled to 1, and rounding must not decide.
EQUAL = 1e-12
#: The share of the L1 distance in the augmented Chebyshev distance: a weakly dominated design cannot win.
AUGMENTED = 1e-4
#: Weights that `weight_sensitivity` draws at least.
SAMPLES = 1000


class DecisionError(ValueError):
    """A rule cannot be applied to this front; the message says which one can."""


def normalised(F: Matrix, ideal: Matrix | None = None, nadir: Matrix | None = None) -> tuple[Matrix, NDArray[np.bool_]]:
    """`F` with the range from `ideal` to `nadir` (those of the front when not given) scaled to 0 and 1, and which
    objectives (m,) have a range at all: the columns of the result. A constant objective decides nothing."""
    ideal = F.min(axis=0) if ideal is None else np.asarray(ideal, float)
    nadir = F.max(axis=0) if nadir is None else np.asarray(nadir, float)
    varies = np.asarray(nadir > ideal)
    # Halved before they are subtracted: the range of huge objectives has no double.
    half = nadir[varies] / 2.0 - ideal[varies] / 2.0
    return (F[:, varies] / 2.0 - ideal[varies] / 2.0) / half, varies


def nondominated(F: Matrix) -> NDArray[np.bool_]:
    """Which of the vectors `F` (n, m), not only those of a front, no other one dominates (n,); of equal ones the first
    (`moocore`)."""
    if F.shape[1] == 1 or not len(F):
        return np.asarray(np.arange(len(F)) == (F[:, 0].argmin() if len(F) else 0))
    return np.asarray(moocore.is_nondominated(F, keep_weakly=False), bool)


# --------------------------------------------------------------------------------------------------- hypervolume


def hypervolume(F: Matrix, reference: Matrix) -> float:
    """The volume that `F` dominates up to the point `reference` (m,), exact (`moocore`).

    Designs that are not better than the reference in every objective contribute nothing.
    """
    inside = F[(reference > F).all(axis=1)]
    if not len(inside):
        return 0.0
    if F.shape[1] == 1:
        return float(reference[0] - inside.min())
    return float(moocore.hypervolume(inside, ref=reference))


def contributions(F: Matrix, reference: Matrix) -> Matrix:
    """By how much the hypervolume shrinks when each design (n,) is left out."""
    each = np.zeros(len(F))
    rows = np.flatnonzero((reference > F).all(axis=1))
    if F.shape[1] == 1:
        whole = hypervolume(F, reference)
        each[rows] = [whole - hypervolume(np.delete(F, row, axis=0), reference) for row in rows]
    elif len(rows):
        each[rows] = moocore.hv_contributions(F[rows], ref=reference, ignore_dominated=False)
    return each


# ---------------------------------------------------------------------------------------------------------- knee


def knee_distance(F: Matrix) -> Matrix:
    """How far each design (n,) lies beyond the plane through the extreme points, seen from the worst point, when each
    objective's range is scaled to 1; negative before it (Das 1999: "On characterizing the 'knee' of the Pareto curve").

    With two objectives the extreme points are the ends of the front; with more, that of an objective is the design that
    is best in all others (Deb & Jain 2014, equation 4). Raises `DecisionError` when three or more span no plane.
    """
    N, _ = normalised(F)
    m = N.shape[1]
    if m < 2:
        return np.full(len(F), -np.inf)
    if m == 2:
        return np.asarray((1.0 - (N[:, 0] + N[:, 1])) / np.sqrt(2.0))
    others = [np.delete(N, j, axis=1) for j in range(m)]
    extremes = N[[int(np.lexsort((N[:, j], o.sum(axis=1), o.max(axis=1)))[0]) for j, o in enumerate(others)]]
    _, sizes, directions = np.linalg.svd(extremes[1:] - extremes[0])
    normal = directions[-1]
    level = float(normal @ extremes[0])
    if sizes[-1] < 1e-9 or abs(level) < 1e-9:  # two of them are one design, or their plane holds the ideal point
        raise DecisionError(
            f"the extreme designs of the {m} objectives do not span a plane, so this front has no knee; "
            "choose by utopia instead"
        )
    return np.asarray((level - N @ normal) * np.sign(level))


def knee(F: Matrix) -> int | None:
    """The design with the largest `knee_distance`; None when no design lies beyond the plane."""
    distance = knee_distance(F)
    found = _best(-distance, F)
    return int(found) if distance[found] > EQUAL else None


# --------------------------------------------------------------------------------------------------- compromises


def distance_from_ideal(F: Matrix, front: Matrix) -> Matrix:
    """Euclidean distance of designs `F` (n, m) from the ideal point of a `front` (k, m), in ranges of the front."""
    span = np.ptp(front, axis=0)
    return np.asarray(np.linalg.norm((F - front.min(axis=0)) / np.where(span > 0.0, span, 1.0), axis=1))


def utopia_distance(F: Matrix, weights: Matrix | None = None, norm: Distance = "l2") -> Matrix:
    """Distance (n,) of the normalised designs, each objective times its weight, from the ideal point.

    `weights` (m,) are scaled to sum 1, equal when not given; several sets (k, m) give (k, n).
    """
    N, varies = normalised(F)
    return _length(N * _weights(weights, F.shape[1])[..., None, varies], norm)


def utopia(F: Matrix, weights: Matrix | None = None, norm: Distance = "l2") -> int:
    """The design nearest to the ideal point; the Chebyshev distance is augmented with 1e-4 of the L1 distance."""
    return int(_best(_utopia_score(F, weights, norm), F))


def _utopia_score(F: Matrix, weights: Matrix | None, norm: Distance) -> Matrix:
    score = utopia_distance(F, weights, norm)
    return score + AUGMENTED * utopia_distance(F, weights, "l1") if norm == "chebyshev" else score


def closeness(F: Matrix, weights: Matrix | None = None, norm: Norm = "vector") -> Matrix:
    """TOPSIS (Hwang & Yoon 1981): each design's (n,) distance from the worst point as a share of its distances from
    the worst and the ideal point.

    With `norm` ``vector`` an objective is divided by the Euclidean length of its column, as in the original (what is
    made large enters with its sign changed, which leaves the length as it is, and so do negative values); with
    ``minmax`` by its range. The two may choose differently. `weights` as in `utopia_distance`.
    """
    if norm == "minmax":
        N, varies = normalised(F)
    else:
        N, varies = F / np.maximum(np.abs(F).max(axis=0), np.finfo(float).tiny), np.ones(F.shape[1], bool)
        N = N / np.maximum(np.linalg.norm(N, axis=0), np.finfo(float).tiny)
    V = N * _weights(weights, F.shape[1])[..., None, varies]
    to_ideal = np.linalg.norm(V - V.min(axis=-2, keepdims=True), axis=-1)
    to_worst = np.linalg.norm(V - V.max(axis=-2, keepdims=True), axis=-1)
    total = to_ideal + to_worst
    return np.asarray(np.where(total > 0.0, to_worst, 1.0) / np.where(total > 0.0, total, 1.0))


def topsis(F: Matrix, weights: Matrix | None = None, norm: Norm = "vector") -> int:
    """The design with the largest `closeness`."""
    return int(_best(-closeness(F, weights, norm), F))


def target_distance(F: Matrix, target: Matrix, weights: Matrix | None = None) -> Matrix:
    """Distance (n,) from the point `target` (m,) in ranges of the front; objectives without one (NaN) are free."""
    given = np.isfinite(target)
    if not given.any():
        raise DecisionError("nearest_to needs the value of an objective")
    N, varies = normalised(F)
    aim, _ = normalised(target[None], F.min(axis=0), F.max(axis=0))
    w = np.where(given, _weights(weights, F.shape[1]), 0.0)
    return _length((N - np.where(np.isfinite(aim), aim, 0.0)) * (w / (w.sum() or 1.0))[varies], "l2")


def nearest_to(F: Matrix, target: Matrix, weights: Matrix | None = None) -> int:
    """The design nearest to `target`, see `target_distance`."""
    return int(_best(target_distance(F, target, weights), F))


def weighted_tchebycheff(F: Matrix, weights: Matrix | None = None, reference: Matrix | None = None) -> int:
    """The design whose largest weighted deviation from the `reference` point (m,) is smallest, in ranges of the front.

    The augmented achievement function (Steuer & Choo 1983; Wierzbicki 1980): max_i w_i (f_i - z_i) + 1e-4 times their
    sum, so that no weakly dominated design wins. Where `reference` is not given or NaN, the best value of the front
    stands for it. Designs better than the reference in all objectives have negative values.
    """
    N, varies = normalised(F)
    if not N.shape[-1]:
        return int(_best(np.zeros(len(F)), F))
    best = F.min(axis=0)
    given = best if reference is None else np.where(np.isfinite(reference), reference, best)
    aim, _ = normalised(given[None], best, F.max(axis=0))
    deviation = (N - aim) * _weights(weights, F.shape[1])[varies]
    return int(_best(deviation.max(axis=1) + AUGMENTED * deviation.sum(axis=1), F))


def epsilon_constraint(F: Matrix, objective: int, limits: Matrix) -> int | None:
    """The best design in column `objective` among those within `limits` (m,), NaN for none (Haimes et al. 1971).

    None when no design of the front keeps the limits.
    """
    within = np.flatnonzero((np.where(np.isnan(limits), np.inf, limits) >= F).all(axis=1))
    return int(within[int(_best(F[within, objective], F[within]))]) if len(within) else None


def weight_sensitivity(
    F: Matrix,
    method: Literal["utopia", "topsis"],
    norm: str = "",
    *,
    samples: int = 2 * SAMPLES,
    seed: int = 0,
) -> Matrix:
    """For each design (n,), the share of all weights for which it is chosen.

    `samples` weights are drawn evenly from all that sum to 1 (a Dirichlet distribution with all its parameters 1).
    """
    if samples < SAMPLES:
        raise ValueError(f"{samples} weights are too few for a share; give at least {SAMPLES}")
    drawn = np.random.default_rng(seed).dirichlet(np.ones(F.shape[1]), samples)
    wins = np.zeros(len(F))
    step = max(1, 2_000_000 // max(1, F.size))  # not more than some megabytes at once
    for begin in range(0, samples, step):
        weights = drawn[begin : begin + step]
        if method == "utopia":
            score = _utopia_score(F, weights, _distance(norm))
        else:
            score = -closeness(F, weights, _norm(norm))
        np.add.at(wins, _best(score, F), 1.0)
    return wins / samples


# -------------------------------------------------------------------------------------------------------- choice


def choose(F: Matrix, names: Sequence[str], signs: Sequence[float], choice: Choice) -> int | None:
    """The design of the front `F` that the rule `choice` picks; None without a knee, or where none keeps the limits.

    `names` and `signs` are those of the objectives: weights and target are by name, the target in the objective's own
    direction. Raises `DecisionError` where the rule cannot be applied.
    """
    weights = np.array([choice.weights.get(name, 1.0) for name in names])
    if choice.method == "robust":
        raise DecisionError("robustness is no property of a front alone: see Result.most_robust")
    if choice.method == "knee":
        return knee(F)
    if choice.method == "utopia":
        return utopia(F, weights, _distance(choice.norm))
    if choice.method == "topsis":
        return topsis(F, weights, _norm(choice.norm))
    aims = np.array([sign * choice.target.get(name, np.nan) for name, sign in zip(names, signs, strict=True)])
    if choice.method == "weighted_tchebycheff":
        return weighted_tchebycheff(F, weights, aims)
    if choice.method == "epsilon_constraint":
        return epsilon_constraint(F, list(names).index(choice.objective), aims)
    return nearest_to(F, aims, weights)


def label(choice: Choice) -> str:
    """What the design that `choice` picks is called: the rule with all that decides its answer."""
    text: str = choice.method
    if choice.method == "utopia":
        text += f" {_distance(choice.norm)}"
    elif choice.method == "topsis":
        text += f" {_norm(choice.norm)}"
    elif choice.method == "nearest_to":
        text = "nearest to " + ", ".join(f"{name} {value:g}" for name, value in choice.target.items())
    elif choice.method == "weighted_tchebycheff":
        text = "weighted Tchebycheff"
        if choice.target:
            text += " from " + ", ".join(f"{name} {value:g}" for name, value in choice.target.items())
    elif choice.method == "epsilon_constraint":
        limits = ", ".join(f"{name} {value:g}" for name, value in choice.target.items())
        text = f"epsilon constraint {choice.objective} within {limits}"
    if choice.weights and choice.method != "knee":
        text += " weighted " + ", ".join(f"{name} {value:g}" for name, value in choice.weights.items())
    return text


def _distance(norm: str) -> Distance:
    assert norm in ("", "l1", "l2", "chebyshev")
    return "l2" if norm == "" else norm  # type: ignore[return-value]


def _norm(norm: str) -> Norm:
    assert norm in ("", "vector", "minmax")
    return "vector" if norm == "" else norm  # type: ignore[return-value]


def _length(D: Matrix, norm: Distance) -> Matrix:
    """Lengths of the vectors in the last axis."""
    if not D.shape[-1]:
        return np.zeros(D.shape[:-1])
    return np.asarray(np.linalg.norm(D, {"l1": 1, "l2": 2, "chebyshev": np.inf}[norm], axis=-1))


def _weights(weights: Matrix | None, m: int) -> Matrix:
    w = np.ones(m) if weights is None else np.asarray(weights, float)
    total = w.sum(axis=-1, keepdims=True)
    if (w < 0.0).any() or not (total > 0.0).all() or not np.isfinite(total).all():
        raise DecisionError("weights are 0 or more, and at least one is more than 0")
    return np.asarray(w / total)


def _best(scores: Matrix, F: Matrix) -> NDArray[Any]:
    """Where the last axis of `scores` is least; of equals the one with the smaller objectives."""
    order = np.lexsort(F.T[::-1])
    ordered = scores[..., order]
    least = ordered.min(axis=-1, keepdims=True)
    return np.asarray(order[np.argmax(ordered <= least + EQUAL * np.maximum(1.0, np.abs(least)), axis=-1)])
