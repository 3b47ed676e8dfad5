"""Choice of one design of a front: normalisation, hypervolume, knee, compromises, and sensitivity of the choice to
weights.

A front is a matrix ``F`` (n, m) of nondominated objective vectors, all minimised: maximised objectives enter with their
sign changed. Everything except the hypervolume is plain NumPy. Ties within rounding go to the design with the smaller
first objective (then the second, and so on).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.lazy import moocore
from designopt.study.study import Choice

Distance = Literal["l1", "l2", "chebyshev"]
Norm = Literal["vector", "minmax"]

#: Scores closer than this are equal: the front is scaled to 1, and rounding must not decide.
EQUAL = 1e-12
#: Weight of the L1 distance in the augmented Chebyshev distance, so that no weakly dominated design wins.
AUGMENTED = 1e-4
#: Minimum number of weight vectors in `weight_sensitivity`.
SAMPLES = 1000


class DecisionError(ValueError):
    """A rule cannot be applied to this front; the message suggests one that can."""


def normalised(F: Floats, ideal: Floats | None = None, nadir: Floats | None = None) -> tuple[Floats, NDArray[np.bool_]]:
    """Scale `F` (n, m) so that `ideal` (m,) is 0 and `nadir` (m,) is 1 (default: those of the front). Also returns a
    mask (m,) of the objectives with a nonzero range: the columns of the result. Constant objectives are dropped."""
    ideal = F.min(axis=0) if ideal is None else np.asarray(ideal, float)
    nadir = F.max(axis=0) if nadir is None else np.asarray(nadir, float)
    varies = np.asarray(nadir > ideal)
    # Halved before subtraction: the range of huge objectives overflows a double.
    half = nadir[varies] / 2.0 - ideal[varies] / 2.0
    return (F[:, varies] / 2.0 - ideal[varies] / 2.0) / half, varies


def nondominated(F: Floats) -> NDArray[np.bool_]:
    """A mask (n,) of the nondominated vectors of `F` (n, m), any set of vectors; of duplicates, the first
    (`moocore`)."""
    if F.shape[1] == 1 or not len(F):
        return np.asarray(np.arange(len(F)) == (F[:, 0].argmin() if len(F) else 0))
    return np.asarray(moocore.is_nondominated(F, keep_weakly=False), bool)


# --------------------------------------------------------------------------------------------------- hypervolume


def hypervolume(F: Floats, reference: Floats) -> float:
    """The exact hypervolume that `F` (n, m) dominates with respect to the point `reference` (m,) (`moocore`).

    Designs that are not better than the reference in every objective contribute nothing.
    """
    inside = F[(reference > F).all(axis=1)]
    if not len(inside):
        return 0.0
    if F.shape[1] == 1:
        return float(reference[0] - inside.min())
    return float(moocore.hypervolume(inside, ref=reference))


def beyond(worst: Floats, span: Floats) -> Floats:
    """A reference point (m,) of the hypervolume: the `worst` values (m,) of a front plus a tenth of its ranges `span`
    (m,), or of their size, at least 1, where the range is zero."""
    return np.asarray(worst + 0.1 * np.where(span > 0.0, span, np.maximum(np.abs(worst), 1.0)))


# ---------------------------------------------------------------------------------------------------------- knee


def knee_distance(F: Floats) -> Floats:
    """The distance (n,) of each design from the plane through the extreme points, positive towards the ideal point,
    with each objective's range scaled to 1 (Das 1999: "On characterizing the 'knee' of the Pareto curve").

    With two objectives the extreme points are the ends of the front. With more, the extreme point of an objective is
    the design that is best in all others (Deb & Jain 2014, equation 4). Raises `DecisionError` if three or more do not
    span a plane.
    """
    N, _ = normalised(F)
    m = N.shape[1]
    if m < 2:
        return np.full(len(F), -np.inf)
    if m == 2:
        return np.asarray((1.0 - (N[:, 0] + N[:, 1])) / np.sqrt(2.0))
    other_objectives = [np.delete(N, j, axis=1) for j in range(m)]
    extremes = N[[int(np.lexsort((N[:, j], o.sum(axis=1), o.max(axis=1)))[0]) for j, o in enumerate(other_objectives)]]
    _, sizes, directions = np.linalg.svd(extremes[1:] - extremes[0])
    normal = directions[-1]
    level = float(normal @ extremes[0])
    if sizes[-1] < 1e-9 or abs(level) < 1e-9:  # same design twice, or a plane through the ideal point
        raise DecisionError(
            f"the extreme designs of the {m} objectives do not span a plane, so this front has no knee; "
            "choose by utopia instead"
        )
    return np.asarray((level - N @ normal) * np.sign(level))


def knee(F: Floats) -> int | None:
    """Index of the design with the largest `knee_distance`; None if no design lies beyond the plane. Raises
    `DecisionError` as `knee_distance` does."""
    distance = knee_distance(F)
    row = _best_index(-distance, F)
    return int(row) if distance[row] > EQUAL else None


# --------------------------------------------------------------------------------------------------- compromises


def distance_from_ideal(F: Floats, front: Floats) -> Floats:
    """The Euclidean distance (n,) of designs `F` (n, m) from the ideal point of a `front` (k, m), in ranges of the
    front."""
    span = np.ptp(front, axis=0)
    return np.asarray(np.linalg.norm((F - front.min(axis=0)) / np.where(span > 0.0, span, 1.0), axis=1))


def utopia_distance(F: Floats, weights: Floats | None = None, norm: Distance = "l2") -> Floats:
    """The distance (n,) of the normalised designs from the ideal point, each objective multiplied by its weight.

    `weights` (m,) are scaled to sum 1, equal by default; several sets (k, m) give (k, n).
    """
    N, varies = normalised(F)
    return _length(N * _weights(weights, F.shape[1])[..., None, varies], norm)


def utopia(F: Floats, weights: Floats | None = None, norm: Distance = "l2") -> int:
    """Index of the design nearest to the ideal point; the Chebyshev distance is augmented with 1e-4 of the L1
    distance."""
    return int(_best_index(_utopia_score(F, weights, norm), F))


def _utopia_score(F: Floats, weights: Floats | None, norm: Distance) -> Floats:
    score = utopia_distance(F, weights, norm)
    return score + AUGMENTED * utopia_distance(F, weights, "l1") if norm == "chebyshev" else score


def closeness(F: Floats, weights: Floats | None = None, norm: Norm = "vector") -> Floats:
    """The closeness (n,) of TOPSIS (Hwang & Yoon 1981): each design's distance from the worst point divided by the sum
    of its distances from the worst and the ideal point.

    With the `norm` ``vector`` an objective is divided by the Euclidean length of its column, as in the original (the
    sign of maximised objectives and of negative values does not change the length); with ``minmax`` by its range. The
    two may choose different designs. `weights` as in `utopia_distance`.
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


def topsis(F: Floats, weights: Floats | None = None, norm: Norm = "vector") -> int:
    """The distance (n,) from the point `target` (m,) in ranges of the front; NaN in `target` leaves an objective free.
    Raises `DecisionError` if all are NaN."""
    return int(_best_index(-closeness(F, weights, norm), F))


def target_distance(F: Floats, target: Floats, weights: Floats | None = None) -> Floats:
    """The distance (n,) from the point `target` (m,) in ranges of the front; objectives with NaN in the target do not
    count. Raises `DecisionError` if no objective with a range has a target."""
    has_target = np.isfinite(target)
    if not has_target.any():
        raise DecisionError("nearest_to needs the value of an objective")
    N, varies = normalised(F)
    aim, _ = normalised(target[None], F.min(axis=0), F.max(axis=0))
    w = np.where(has_target, _weights(weights, F.shape[1]), 0.0)
    return _length((N - np.where(np.isfinite(aim), aim, 0.0)) * (w / (w.sum() or 1.0))[varies], "l2")


def nearest_to(F: Floats, target: Floats, weights: Floats | None = None) -> int:
    """Index of the design nearest to `target`, see `target_distance`."""
    return int(_best_index(target_distance(F, target, weights), F))


def weighted_tchebycheff(F: Floats, weights: Floats | None = None, reference: Floats | None = None) -> int:
    """Index of the design whose largest weighted deviation from the `reference` point (m,) is smallest, in ranges of
    the front.

    The augmented achievement function (Steuer & Choo 1983; Wierzbicki 1980) is max_i w_i (f_i - z_i) plus 1e-4 times
    the sum of these terms, so that no weakly dominated design wins. NaN in `reference`, or no reference, means the best
    value of the front. Designs better than the reference in all objectives have negative values.
    """
    N, varies = normalised(F)
    if not N.shape[-1]:
        return int(_best_index(np.zeros(len(F)), F))
    best = F.min(axis=0)
    ideal = best if reference is None else np.where(np.isfinite(reference), reference, best)
    aim, _ = normalised(ideal[None], best, F.max(axis=0))
    deviation = (N - aim) * _weights(weights, F.shape[1])[varies]
    return int(_best_index(deviation.max(axis=1) + AUGMENTED * deviation.sum(axis=1), F))


def epsilon_constraint(F: Floats, objective: int, limits: Floats) -> int | None:
    """Index of the best design in column `objective` within `limits` (m,), NaN for none (Haimes et al. 1971).

    None if no design of the front meets the limits.
    """
    within = np.flatnonzero((np.where(np.isnan(limits), np.inf, limits) >= F).all(axis=1))
    return int(within[int(_best_index(F[within, objective], F[within]))]) if len(within) else None


def weight_sensitivity(
    F: Floats,
    method: Literal["utopia", "topsis"],
    norm: str = "",
    *,
    samples: int = 2 * SAMPLES,
    seed: int = 0,
) -> Floats:
    """The share (n,) of all weight vectors for which each design is chosen.

    `samples` weight vectors are drawn uniformly from the simplex (Dirichlet distribution with all parameters 1). Raises
    `ValueError` for too few samples.
    """
    if samples < SAMPLES:
        raise ValueError(f"{samples} weights are too few for a share; give at least {SAMPLES}")
    weight_samples = np.random.default_rng(seed).dirichlet(np.ones(F.shape[1]), samples)
    wins = np.zeros(len(F))
    step = max(1, 2_000_000 // max(1, F.size))  # a few megabytes at once
    for begin in range(0, samples, step):
        weights = weight_samples[begin : begin + step]
        if method == "utopia":
            score = _utopia_score(F, weights, _distance(norm))
        else:
            score = -closeness(F, weights, _norm(norm))
        np.add.at(wins, _best_index(score, F), 1.0)
    return wins / samples


# -------------------------------------------------------------------------------------------------------- choice


def choose(F: Floats, names: Sequence[str], signs: Sequence[float], choice: Choice) -> int | None:
    """Index of the design of the front `F` that the rule `choice` selects; None without a knee or if no design meets
    the limits.

    `names` and `signs` are those of the objectives. Weights and targets are given by name, targets in the objective's
    own direction. Raises `DecisionError` if the rule cannot be applied.
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
    """The label of the design that `choice` selects: the rule with all its settings; a study may be about a knee."""
    text: str = choice.method
    if choice.method == "knee":
        text = "knee of the front"
    elif choice.method == "utopia":
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


def _length(D: Floats, norm: Distance) -> Floats:
    """Lengths of the vectors along the last axis."""
    if not D.shape[-1]:
        return np.zeros(D.shape[:-1])
    return np.asarray(np.linalg.norm(D, {"l1": 1, "l2": 2, "chebyshev": np.inf}[norm], axis=-1))


def _weights(weights: Floats | None, m: int) -> Floats:
    w = np.ones(m) if weights is None else np.asarray(weights, float)
    total = w.sum(axis=-1, keepdims=True)
    if (w < 0.0).any() or not (total > 0.0).all() or not np.isfinite(total).all():
        raise DecisionError("weights are 0 or more, and at least one is more than 0")
    return np.asarray(w / total)


def _best_index(scores: Floats, F: Floats) -> NDArray[Any]:
    """Index of the minimum of `scores` along the last axis; ties go to the smaller objectives."""
    order = np.lexsort(F.T[::-1])
    sorted_scores = scores[..., order]
    least = sorted_scores.min(axis=-1, keepdims=True)
    return np.asarray(order[np.argmax(sorted_scores <= least + EQUAL * np.maximum(1.0, np.abs(least)), axis=-1)])
