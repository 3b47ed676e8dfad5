"""Selection of the sharing problem: rows that muscles cross, frames without missing numbers, bounds with bands."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.sharing.muscles import Muscles
from designopt_mechanics.sharing.statement.criteria import MinMax, Reserves
from designopt_mechanics.sharing.statement.formulate import Balance
from designopt_mechanics.sharing.statement.formulation import Terms

#: Least force per cross-section at activation 1, relative to the isometric one, that a criterion of stresses counts
#: with: a muscle without force would cost nothing.
_MIN_EFFORT = 1e-3


@dataclass(frozen=True, eq=False)
class SharingProblem:
    """A sharing problem with the rows that can be shared.

    `usable` (n,) are the frames with all numbers, `empty` (n,) those of them where a band leaves no activation,
    `frames` the indices of the others; `work` and `terms` are of these.
    """

    balance: MomentBalance
    left_out: tuple[str, ...]
    reserves: Reserves
    usable: Mask
    empty: Mask
    frames: Integers
    work: Balance
    terms: Terms


def prepare(balance: MomentBalance, muscles: Muscles, terms: Terms, reserves: Reserves | None) -> SharingProblem:
    """Check that everything fits, and take the numbers of the frames that can be shared. Raises `ValueError`."""
    _check(balance, muscles, terms)
    optimal = np.zeros(len(balance.rows)) if reserves is None else reserves.optimal
    if optimal.shape != (len(balance.rows),):
        raise ValueError(f"reserves have {len(optimal)} optimal forces; the balance has {len(balance.rows)} rows")
    usable = (balance.status < 100) & muscles.usable & np.isfinite(balance.moments).all(axis=1)
    usable &= np.isfinite(balance.arms).all(axis=(1, 2))
    rows = np.flatnonzero((balance.arms[usable] != 0).any(axis=(0, 2)) | (optimal > 0))
    if not len(rows):
        raise ValueError("no muscle crosses any row in any frame that can be used: there is nothing to share")
    left_out = tuple(name for i, name in enumerate(balance.rows) if i not in rows)
    lower, upper = _bounds(muscles, terms)
    empty = np.asarray(usable & (lower > upper).any(axis=1))
    frames = np.flatnonzero(usable & ~empty)
    solved_balance = _with_rows(balance, rows)
    return SharingProblem(
        solved_balance,
        left_out,
        replace(reserves, optimal=optimal[rows]) if reserves else Reserves(optimal[rows]),
        np.asarray(usable),
        empty,
        frames,
        _work(solved_balance, muscles, terms, lower, upper, frames),
        _select_frames(terms, frames),
    )


def _check(balance: MomentBalance, muscles: Muscles, terms: Terms) -> None:
    if muscles.names != balance.columns:
        raise ValueError(f"the muscles {', '.join(muscles.names)} are not the columns {', '.join(balance.columns)}")
    if len(muscles.strength) != len(balance.time):
        raise ValueError(f"the muscles have {len(muscles.strength)} frames, the balance has {len(balance.time)}")
    if isinstance(terms.criterion, MinMax) and terms.criterion.strict and terms.synergies is not None:
        raise ValueError("a strict minimum of the maximum needs single muscles; it does not work with synergies")
    if terms.rate_limit is not None:
        if not 0.0 < terms.rate_limit < np.inf:
            raise ValueError(f"the rate limit is {terms.rate_limit:g} s; it must be positive and finite")
        if isinstance(terms.criterion, MinMax) and terms.criterion.strict:
            raise ValueError("a strict minimum of the maximum needs single frames; it does not work with a rate limit")
        if terms.tracking is not None and terms.tracking.free_scale:
            raise ValueError("scales are fitted frame by frame; a rate limit needs fixed ones")
    shape = muscles.strength.shape
    if terms.tracking is not None and terms.tracking.signals.shape != shape:
        raise ValueError(f"signals have the shape {terms.tracking.signals.shape}, not {shape}")
    for reaction in terms.reactions:
        if np.shape(reaction.gain) != (shape[0], 3, shape[1]):
            raise ValueError(f"the gain of joint reaction '{reaction.name}' is not of shape {(shape[0], 3, shape[1])}")


def _with_rows(balance: MomentBalance, rows: Integers) -> MomentBalance:
    return MomentBalance(
        time=balance.time,
        rows=tuple(balance.rows[i] for i in rows),
        columns=balance.columns,
        arms=balance.arms[:, rows],
        moments=balance.moments[:, rows],
        row_units=tuple(balance.row_units[i] for i in rows),
        status=balance.status,
    )


def _bounds(muscles: Muscles, terms: Terms) -> tuple[Floats, Floats]:
    """Bounds of the activations (n, k), within the band around measured activity if there is one."""
    lower, upper = np.array(muscles.lower), np.array(muscles.upper)
    if terms.tracking is not None and terms.tracking.band is not None:
        signal, band = terms.tracking.signals, terms.tracking.band
        lower = np.fmax(lower, signal + band[0])
        upper = np.fmin(upper, signal + band[1])
    return lower, upper


def _work(
    balance: MomentBalance, muscles: Muscles, terms: Terms, lower: Floats, upper: Floats, frames: Integers
) -> Balance:
    strength, passive, arms = muscles.strength[frames], muscles.passive[frames], balance.arms[frames]
    effort = np.ones(len(muscles.names))
    if terms.stress:
        if not muscles.isometric.size:
            raise ValueError("stresses need the maximum isometric forces of the muscles, and none are given")
        effort = np.maximum(strength / muscles.isometric, _MIN_EFFORT)
    passive_moments = np.einsum("nmk,nk->nm", arms, passive)
    return Balance(
        matrix=arms * strength[:, None, :],
        right_side=balance.moments[frames] - passive_moments,
        lower=lower[frames],
        upper=upper[frames],
        strength=strength,
        passive=passive,
        passive_moments=passive_moments,
        effort=effort,
    )


def _select_frames(terms: Terms, frames: Integers) -> Terms:
    tracking = terms.tracking
    if tracking is not None:
        tracking = replace(tracking, signals=tracking.signals[frames])
    reactions = tuple(replace(r, offset=r.offset[frames], gain=r.gain[frames]) for r in terms.reactions)
    return replace(terms, tracking=tracking, reactions=reactions)
