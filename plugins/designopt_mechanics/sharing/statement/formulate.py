"""From a balance of moments, muscles and terms to the numbers that solvers take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np

from designopt.arrays import Floats
from designopt_mechanics.sharing.statement.cost import Cost
from designopt_mechanics.sharing.statement.criteria import MinMax, Power, QuadraticLinear, Reserves, SoftSaturation
from designopt_mechanics.sharing.statement.formulation import Formulation, Terms
from designopt_mechanics.sharing.statement.limits import AllLimits, LinearLimits, NormLimit


@dataclass(frozen=True, eq=False)
class Balance:
    """The moment balance of muscles in n frames: ``matrix a + optimal r = right_side``, with bounds `lower`, `upper`
    (n, k).

    `matrix` (n, m, k) is the generalised force of each muscle at activation 1, `strength` and `passive` (n, k) N,
    `passive_moments` (n, m) those of the passive forces, already subtracted from `right_side`. `effort` (k,) or (n, k)
    is the factor of the activation in the criterion, F / F_o for stresses, else 1.
    """

    matrix: Floats
    right_side: Floats
    lower: Floats
    upper: Floats
    strength: Floats
    passive: Floats
    passive_moments: Floats
    effort: Floats


def formulate(balance: Balance, reserves: Reserves, terms: Terms, scales: Floats | None = None) -> Formulation:
    """The formulation of all frames. `scales` (k,) of tracked signals, 1 when None.

    Raises `ValueError` for terms that contradict each other.
    """
    frames, m, k = balance.matrix.shape
    _check(balance, reserves, terms)
    reserve_rows = np.flatnonzero(reserves.optimal)
    signs = (1.0, -1.0) if reserves.p == 1.0 else (1.0,)
    columns = [(i, sign) for sign in signs for i in reserve_rows]
    smallest_maximum = isinstance(terms.criterion, MinMax)
    commands = k if terms.synergies is None else terms.synergies.shape[1]
    v = commands + len(columns) + smallest_maximum

    to_activation = np.zeros((k, v))
    to_activation[:, :commands] = np.eye(k) if terms.synergies is None else terms.synergies
    to_reserve = np.zeros((m, v))
    for c, (i, sign) in enumerate(columns):
        to_reserve[i, commands + c] = sign
    matrix = np.zeros((frames, m, v))
    matrix[:, :, :commands] = balance.matrix if terms.synergies is None else balance.matrix @ terms.synergies
    matrix += reserves.optimal[:, None] * to_reserve
    sizes = np.abs(matrix).max(axis=(0, 2), initial=0.0)
    sizes = np.where(sizes > 0, sizes, 1.0)

    lower, upper = np.full((frames, v), -np.inf), np.full((frames, v), np.inf)
    if terms.synergies is None:
        lower[:, :k], upper[:, :k] = balance.lower, balance.upper
    else:
        lower[:, :commands] = 0.0
        upper[:, :commands] = _largest_commands(balance.upper, terms.synergies)
    if reserves.p == 1.0:
        lower[:, commands : commands + len(columns)] = 0.0
    if smallest_maximum:
        lower[:, -1] = 0.0

    cost, constant = _cost(balance, reserves, terms, len(columns), scales)
    scale = 1.0 if smallest_maximum else _size(cost, k)
    inner = None
    if terms.synergies is not None:
        inner = np.zeros((k + v - commands, v))
        inner[:k] = to_activation
        inner[k:, commands:] = np.eye(v - commands)
    quadratic, linear, offset = _reactions(balance, terms, to_activation)
    return Formulation(
        matrix / sizes[:, None],
        balance.right_side / sizes,
        lower,
        upper,
        Cost(cost.weight / scale, cost.exponent, cost.quadratic / scale, cost.linear / scale, cost.saturating),
        sizes,
        scale,
        to_activation,
        to_reserve,
        constant + offset,
        inner,
        None if quadratic is None else quadratic / scale,
        None if linear is None else linear / scale,
        _limits(balance, terms, to_activation),
    )


def _check(balance: Balance, reserves: Reserves, terms: Terms) -> None:
    frames, m, k = balance.matrix.shape
    if reserves.optimal.shape != (m,):
        raise ValueError(f"reserves have {len(reserves.optimal)} optimal forces; the balance has {m} rows")
    if terms.tracking is not None and terms.tracking.signals.shape != (frames, k):
        raise ValueError(f"signals have the shape {terms.tracking.signals.shape}, not {(frames, k)}")
    for reaction in terms.reactions:
        if np.shape(reaction.gain) != (frames, 3, k):
            raise ValueError(f"the gain of joint reaction '{reaction.name}' is not of shape {(frames, 3, k)}")
    w = terms.synergies
    if w is not None and (
        w.ndim != 2 or len(w) != k or not np.isfinite(w).all() or (w < 0).any() or not w.any(0).all()
    ):
        raise ValueError(f"synergies must be finite and not negative, {k} muscles by commands that each move a muscle")


def _size(cost: Cost, muscles: int) -> float:
    """Order of magnitude of the cost of one fully activated muscle."""
    muscle_cost = cost.rows(slice(0, muscles))
    return (
        float(
            max(
                np.max(part, initial=0.0)
                for part in (muscle_cost.weight, 0.5 * muscle_cost.quadratic, np.abs(muscle_cost.linear))
            )
        )
        or 1.0
    )


def _largest_commands(upper: Floats, synergies: Floats) -> Floats:
    """(n, s) what no command can exceed as no activation exceeds its bound."""
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(synergies > 0, upper[:, :, None] / synergies, np.inf)
    return np.asarray(each.min(axis=1))


def _weights(balance: Balance, terms: Terms) -> Floats:
    k = balance.matrix.shape[2]
    weights = np.ones(k) if terms.weights is None else np.asarray(terms.weights, dtype=np.float64)
    if weights.shape != (k,) or not np.isfinite(weights).all() or (weights <= 0).any():
        raise ValueError(f"weights needs a positive number for each of the {k} muscles")
    return weights


def _cost(
    balance: Balance, reserves: Reserves, terms: Terms, columns: int, scales: Floats | None
) -> tuple[Cost, Floats]:
    """The cost of activations, reserve controls and t, and what tracking adds that does not depend on them (n,)."""
    frames, _, k = balance.matrix.shape
    w = _weights(balance, terms)
    effort = np.broadcast_to(balance.effort, (frames, k))
    criterion = terms.criterion
    weight, quadratic, linear = (np.zeros((frames, k)) for _ in range(3))
    exponent = np.full(k, 2.0)
    match criterion:
        case Power(p=2.0):
            quadratic += 2.0 * w * effort**2
        case Power(p=1.0):
            linear += w * effort
        case Power(p=p):
            weight += w * effort**p
            exponent[:] = p
        case QuadraticLinear(linear=c):
            quadratic += 2.0 * w * effort**2
            linear += c * w * effort
        case MinMax(tie_break=small):
            quadratic += 2.0 * small * (w * effort) ** 2
        case SoftSaturation():
            weight += w
            if reserves.p > 2.0:
                raise ValueError("with the criterion of soft saturation the exponent of reserves is 1 or 2")
            if terms.stress:
                raise ValueError("soft saturation needs activations, which are at most 1; stresses are not limited")
        case _:
            assert_never(criterion)
    constant = np.zeros(frames)
    if terms.tracking is not None:
        if isinstance(criterion, Power) and 1.0 < criterion.p < 2.0:
            raise ValueError(f"tracking works with an exponent of 1 or at least 2, not with {criterion.p:g}")
        signal = terms.tracking.signals * (1.0 if scales is None else scales)
        is_measured = np.isfinite(signal)
        signal = np.where(is_measured, signal, 0.0)
        quadratic += 2.0 * terms.tracking.weight * is_measured
        linear -= 2.0 * terms.tracking.weight * signal
        constant += terms.tracking.weight * (signal**2).sum(axis=1)
    extra = columns + isinstance(criterion, MinMax)
    tail = np.zeros((4, extra))
    tail[3] = 2.0
    if reserves.p == 1.0:
        tail[2, :columns] = reserves.weight
    elif reserves.p == 2.0:
        tail[1, :columns] = 2.0 * reserves.weight
    else:
        tail[0, :columns] = reserves.weight
        tail[3, :columns] = reserves.p
    if isinstance(criterion, MinMax):
        tail[2, -1] = 1.0

    def join(of_muscles: Floats, of_rest: Floats) -> Floats:
        uniform = (of_muscles == of_muscles[0]).all()
        joined_values = np.concatenate([of_muscles, np.broadcast_to(of_rest, (frames, extra))], axis=1).T
        return np.ascontiguousarray(joined_values[:, :1] if uniform else joined_values)

    cost = Cost(
        join(weight, tail[0]),
        np.append(exponent, tail[3])[:, None],
        join(quadratic, tail[1]),
        join(linear, tail[2]),
        isinstance(criterion, SoftSaturation),
    )
    return cost, constant


def _reactions(
    balance: Balance, terms: Terms, to_activation: Floats
) -> tuple[Floats | None, Floats | None, Floats | float]:
    """Contribution of the squared joint reactions: (n, v, v), (n, v) and (n,)."""
    quadratic: Floats | None = None
    linear: Floats | None = None
    constant: Floats | float = 0.0
    for reaction in terms.reactions:
        if not reaction.weight:
            continue
        offset, gain = _affine(balance, reaction.offset, reaction.gain, to_activation)
        if reaction.component is not None:
            offset, gain = offset[:, [reaction.component]], gain[:, [reaction.component]]
        hessian = 2.0 * reaction.weight * np.matmul(gain.transpose(0, 2, 1), gain)
        slope = 2.0 * reaction.weight * np.einsum("ncv,nc->nv", gain, offset)
        quadratic = hessian if quadratic is None else quadratic + hessian
        linear = slope if linear is None else linear + slope
        constant = constant + reaction.weight * (offset**2).sum(axis=1)
    return quadratic, linear, constant


def _affine(balance: Balance, offset: Floats, gain: Floats, to_activation: Floats) -> tuple[Floats, Floats]:
    """A joint reaction as a function of the variables."""
    of_passive = np.einsum("nck,nk->nc", gain, balance.passive)
    return offset + of_passive, (gain * balance.strength[:, None, :]) @ to_activation


def _limits(balance: Balance, terms: Terms, to_activation: Floats) -> AllLimits | None:
    parts: list[LinearLimits | NormLimit] = []
    frames, _, k = balance.matrix.shape
    if isinstance(terms.criterion, MinMax):
        effort = np.broadcast_to(balance.effort * _weights(balance, terms), (frames, k))
        rows = effort[:, :, None] * to_activation
        rows[:, :, -1] = -1.0
        parts.append(LinearLimits(rows, np.zeros((frames, k)), arrow=terms.synergies is None))
    if terms.synergies is not None:
        both_signs = np.concatenate([to_activation, -to_activation])
        parts.append(
            LinearLimits(
                np.broadcast_to(both_signs, (frames, *both_signs.shape)),
                np.concatenate([balance.upper, -balance.lower], axis=1),
            )
        )
    for reaction in terms.reactions:
        if reaction.maximum is None:
            continue
        offset, gain = _affine(balance, reaction.offset, reaction.gain, to_activation)
        offset, gain = offset / reaction.maximum, gain / reaction.maximum
        if reaction.component is None:
            parts.append(NormLimit(offset, gain))
        else:
            row, limit_offset = gain[:, [reaction.component]], offset[:, [reaction.component]]
            parts.append(
                LinearLimits(
                    np.concatenate([row, -row], axis=1),
                    np.concatenate([1.0 - limit_offset, 1.0 + limit_offset], axis=1),
                )
            )
    return AllLimits(tuple(parts)) if parts else None
