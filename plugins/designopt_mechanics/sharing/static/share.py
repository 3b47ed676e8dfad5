"""Share the moments of a motion among muscles: one convex problem for each frame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from designopt_recordings.frames import FrameStatus
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.sharing.muscles import Muscles
from designopt_mechanics.sharing.solvers.solve import FrameSolutions, solve
from designopt_mechanics.sharing.statement.criteria import MinMax, Reserves
from designopt_mechanics.sharing.statement.formulate import Balance, formulate
from designopt_mechanics.sharing.statement.formulation import Formulation, Terms
from designopt_mechanics.sharing.statement.prepare import SharingProblem, prepare
from designopt_mechanics.sharing.static.coupled import solve_coupled
from designopt_mechanics.sharing.static.diagnose import Diagnosis, diagnose
from designopt_mechanics.sharing.static.sharing import Sharing
from designopt_mechanics.sharing.status import SharingStatus

#: Squares in the stages of a strict smallest maximum only make each stage unique.
_STAGE = 1e-6
#: Share of the largest needed moment of a row from which a reserve is worth a warning.
_SHARE = 0.05


#: Largest slope of the mean cost by a scale, relative to the signals' squares, at which the scales count as found.
_SCALE_SLOPE = 1e-4


def share(
    balance: MomentBalance,
    muscles: Muscles,
    terms: Terms | None = None,
    reserves: Reserves | None = None,
    *,
    reserve_warning: float | None = None,
) -> Sharing:
    """Activations of `muscles` that balance the moments of every frame at the least cost.

    The columns of `balance` are the muscles, in their order; `reserves` has an optimal force for each of its rows, none
    when not given. Rows that no muscle crosses in any frame are balanced by their reserve alone, or left out without
    one. `reserve_warning` (N m or N) is the size of a reserve from which a frame is marked; when not given 1, or 5 % of
    the largest needed moment of the row if that is more.

    Never raises for a single frame: frames whose numbers are missing, that are infeasible or do not converge have that
    status. Raises `ValueError` for muscles or terms that do not fit.
    """
    inputs = prepare(balance, muscles, terms or Terms(), reserves)
    work, terms, reserves = inputs.work, inputs.terms, inputs.reserves
    scales = np.ones(len(muscles.names))
    if terms.tracking is not None and terms.tracking.free_scale:
        scales = fitted_scales(work, reserves, terms)
    strict = isinstance(terms.criterion, MinMax) and terms.criterion.strict
    if strict:
        terms = replace(terms, criterion=MinMax(tie_break=_STAGE, strict=True))
    formulation = formulate(work, reserves, terms, scales)
    frame_solutions = solve(formulation, strict=strict)
    diagnosis = diagnose(formulation, frame_solutions, work.passive_moments)
    if terms.rate_limit is not None:
        frame_solutions = solve_coupled(
            formulation, balance.time[inputs.frames], terms.rate_limit, frame_solutions, diagnosis
        )
    return _sharing(inputs, muscles, formulation, frame_solutions, diagnosis, scales, reserve_warning)


def _sharing(
    inputs: SharingProblem,
    muscles: Muscles,
    formulation: Formulation,
    frame_solutions: FrameSolutions,
    diagnosis: Diagnosis,
    scales: Floats,
    reserve_warning: float | None,
) -> Sharing:
    """Everything of all frames, NaN in those without an answer."""
    balance, frames, reserves = inputs.balance, inputs.frames, inputs.reserves
    has_solution = (diagnosis.status != SharingStatus.NOT_CONVERGED)[:, None]
    optimal = (diagnosis.status == SharingStatus.OPTIMAL)[:, None]
    x = np.where(has_solution, diagnosis.x, np.nan)
    # rounding errors of W h are beyond the bounds
    in_bounds = np.asarray(np.clip(x @ formulation.to_activation.T, inputs.work.lower, inputs.work.upper))
    activations = _spread(balance, frames, in_bounds)
    forces = activations * muscles.strength + muscles.passive
    reserve_moments = _spread(balance, frames, reserves.optimal * (x @ formulation.to_reserve.T))
    multipliers = np.where(optimal, frame_solutions.multipliers, np.nan)
    missing = _spread(balance, frames, diagnosis.missing)
    left = balance.moments - missing - reserve_moments - np.einsum("nmk,nk->nm", balance.arms, forces)
    size = np.maximum(1.0, np.abs(balance.moments / formulation.rows).max(axis=1))
    status = np.full(len(balance.time), SharingStatus.BAD_INPUT, dtype=np.int64)
    status[inputs.empty] = SharingStatus.EMPTY_BOUNDS
    status[frames] = diagnosis.status
    peak = np.abs(balance.moments[inputs.usable]).max(axis=0)
    reserve_limit = np.maximum(1.0, _SHARE * peak) if reserve_warning is None else reserve_warning
    with np.errstate(invalid="ignore"):
        active = (np.abs(reserve_moments) > reserve_limit).any(axis=1)
    status[(status == SharingStatus.OPTIMAL) & (balance.status == FrameStatus.EDGE)] = SharingStatus.EDGE
    status[(status < 100) & active] = SharingStatus.RESERVE_ACTIVE
    return Sharing(
        balance=balance,
        muscles=muscles,
        left_out=inputs.left_out,
        status=status,
        activations=activations,
        forces=forces,
        reserves=reserve_moments,
        multipliers=_spread(balance, frames, multipliers * formulation.scale / formulation.rows),
        cost=_spread(balance, frames, formulation.value(x)),
        shortfall=missing,
        proof=_spread(balance, frames, diagnosis.combination),
        deficit=_spread(balance, frames, diagnosis.deficit),
        strength_factor=_spread(balance, frames, diagnosis.factor),
        residual=np.abs(left / formulation.rows).max(axis=1) / size,
        stationarity=_spread(balance, frames, stationarity(formulation, x, multipliers, inputs.terms)),
        iterations=_spread(balance, frames, frame_solutions.iterations, 0).astype(np.int64),
        scales=scales,
        formulation=formulation,
        frames=frames,
        variables=x,
        scaled_multipliers=multipliers,
        separable=formulation.separable and inputs.terms.rate_limit is None,
    )


def _spread(balance: MomentBalance, frames: NDArray[np.int64], values: NDArray[Any], fill: float = np.nan) -> Floats:
    """Values of the solved frames among all frames."""
    all_frames = np.full((len(balance.time), *values.shape[1:]), fill)
    all_frames[frames] = values
    return all_frames


def stationarity(formulation: Formulation, x: Floats, multipliers: Floats, terms: Terms) -> Floats:
    """(n,) the natural residual ``|x - P(x - slope + A^T multipliers)|``; NaN where limits have a part in it."""
    if formulation.limits is not None or terms.rate_limit is not None:
        return np.full(len(x), np.nan)
    slope = formulation.slope(x) - np.einsum("nmv,nm->nv", formulation.matrix, multipliers)
    projection = np.clip(x - slope, formulation.lower, formulation.upper)
    return np.asarray(np.abs(x - projection).max(axis=1))


def fitted_scales(balance: Balance, reserves: Reserves, terms: Terms) -> Floats:
    """(k,) the scales s >= 0 of the signals with the least cost over all frames that can be balanced.

    The least cost of each frame is a convex function of s, and its derivative is that of the tracking term alone, as
    the activations are optimal; L-BFGS-B follows it. Signals that are 0 or absent keep the scale 1. Raises
    `ValueError` where a slope of the cost is left.
    """
    from scipy.optimize import minimize

    tracking = terms.tracking
    assert tracking is not None
    k = balance.matrix.shape[2]
    signals = np.where(np.isfinite(tracking.signals), tracking.signals, 0.0)
    power = (signals**2).sum(axis=0)
    columns = np.flatnonzero(power > 0)
    if not len(columns):
        return np.ones(k)
    first = formulate(balance, reserves, terms, np.ones(k))
    feasible = solve(first).converged
    size = max(float(power.sum()), 1e-300)

    def cost(of_used: Floats) -> tuple[float, Floats]:
        scales = np.ones(k)
        scales[columns] = of_used
        formulation = formulate(balance, reserves, terms, scales)
        frame_solutions = solve(formulation)
        keep = feasible & frame_solutions.converged
        a = frame_solutions.x @ formulation.to_activation.T
        value = formulation.value(frame_solutions.x)[keep].sum()
        slope = (-2.0 * tracking.weight * signals * (a - signals * scales))[keep].sum(axis=0)
        return float(value / size), np.asarray(slope[columns] / size)

    start = np.ones(len(columns))
    minimum = minimize(
        cost,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(columns),
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    slope = cost(minimum.x)[1]
    slope_left = float(np.abs(minimum.x - np.maximum(minimum.x - slope, 0.0)).max())
    if not slope_left <= _SCALE_SLOPE:
        raise ValueError(
            f"the scales of the signals were not found: a slope of {slope_left:.2g} is left ({minimum.message}); fix"
            " them with 'scale: fixed'"
        )
    scales = np.ones(k)
    scales[columns] = minimum.x
    return scales
