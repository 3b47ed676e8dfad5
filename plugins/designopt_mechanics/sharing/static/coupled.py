"""Activations that change slowly: all frames of a motion in one sparse convex program.

The rate limit ``|a_k - a_(k-1)| <= dt / tau`` couples neighbouring frames; cost, rows, bounds and limits of each frame
are those of its formulation. IPOPT (Wächter & Biegler, Math. Program. 106, 2006) solves the program from the answers of
the single frames.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt.lazy import casadi as ca
from designopt_mechanics.sharing.solvers.solve import FrameSolutions
from designopt_mechanics.sharing.statement.formulation import Formulation
from designopt_mechanics.sharing.statement.limits import LinearLimits, NormLimit
from designopt_mechanics.sharing.static.diagnose import Diagnosis
from designopt_mechanics.sharing.status import SharingStatus

#: A row whose least-squares shortfall is more than this, relative to its size, is not balanced within the rate.
_SHORT = 1e-8
_TOLERANCE = 1e-11
_ITERATIONS = 300


def solve_coupled(
    formulation: Formulation, time: Floats, tau: float, frame_solutions: FrameSolutions, diagnosis: Diagnosis
) -> FrameSolutions:
    """The solution of all frames together, `time` (n,) s apart.

    Frames that cannot be balanced alone keep their answers and end a run. Where a run cannot be balanced within the
    rate, the frames with a least-squares shortfall are infeasible; it is in `diagnosis`, which is changed in place.
    """
    x, multipliers = np.array(diagnosis.x), np.array(frame_solutions.multipliers)
    converged, iterations = np.array(frame_solutions.converged), np.array(frame_solutions.iterations)
    for run in _runs(diagnosis.status == SharingStatus.OPTIMAL):
        if len(run) < 2:
            continue
        part = formulation.take(run)
        room = np.diff(time[run]) / tau
        good, answer, lam, steps = _solution(part, room, x[run], part.right_side, None)
        lack = None if good else _lack(part, room, x[run])
        if lack is not None and (short := np.abs(lack).max(axis=1) > _SHORT).any():
            good, answer, lam, steps = _solution(part, room, x[run], part.right_side - lack, None)
            if good:
                _too_fast(diagnosis, run, short, np.where(short[:, None], lack, 0.0) * part.rows)
        if good:
            x[run], multipliers[run] = answer, lam
        else:
            diagnosis.status[run] = SharingStatus.NOT_CONVERGED
            converged[run] = False
        iterations[run] = steps
    diagnosis.x[:] = x
    return FrameSolutions(x, multipliers, converged, iterations)


def _runs(good: Mask) -> list[Integers]:
    """Neighbouring frames with an answer."""
    index = np.flatnonzero(good)
    return np.split(index, np.flatnonzero(np.diff(index) > 1) + 1) if len(index) else []


def _too_fast(diagnosis: Diagnosis, run: Integers, short: Mask, missing: Floats) -> None:
    """The frames of a run that are `short` lack `missing` (n, m); all of them together prove it."""
    size = float(np.sqrt((missing**2).sum()))
    diagnosis.status[run[short]] = SharingStatus.TOO_FAST
    diagnosis.missing[run] = missing
    diagnosis.combination[run] = missing / size
    diagnosis.deficit[run] = np.where(short, size, 0.0)
    diagnosis.factor[run[short]] = np.nan


def _lack(part: Formulation, room: Floats, start: Floats) -> Floats | None:
    """(n, m) the least-squares shortfall, relative to the sizes of the rows, within bounds, limits and rate.

    None if the solver failed: its last residual is no shortfall.
    """
    weight = (part.rows / part.rows.max()) ** 2
    good, answer, _, _ = _solution(part, room, start, part.right_side, weight)
    return part.right_side - np.einsum("nmv,nv->nm", part.matrix, answer) if good else None


def _solution(
    part: Formulation, room: Floats, start: Floats, right_side: Floats, shortfall: Floats | None
) -> tuple[bool, Floats, Floats, int]:
    """Whether it converged, variables (n, v), multipliers (n, m), iterations.

    With `shortfall` (m,) the rows are not enforced, and the sum of their squared residuals with these weights is
    minimal.
    """
    n, m, v = part.matrix.shape
    x = ca.SX.sym("x", v, n)
    rows = ca.horzcat(*(_sparse(part.matrix[k]) @ x[:, k] for k in range(n)))
    activations = _sparse(part.to_activation) @ x
    rate = activations[:, 1:] - activations[:, :-1]
    sides = [(ca.vec(rate), np.repeat(-room, activations.rows()), np.repeat(room, activations.rows()))]
    for limit in part.limits.parts if part.limits is not None else ():
        value = _limit_values(limit, x, n)
        sides.append((value, np.full(value.numel(), -np.inf), np.zeros(value.numel())))
    if shortfall is None:
        sides.insert(0, (ca.vec(rows), right_side.ravel(), right_side.ravel()))
        cost = _cost(part, x, n)
    else:
        cost = ca.sumsqr(ca.repmat(ca.DM(np.sqrt(shortfall)), 1, n) * (rows - ca.DM(right_side.T)))
    program = {"x": ca.vec(x), "f": cost, "g": ca.vertcat(*(g for g, _, _ in sides))}
    quiet: dict[str, Any] = {
        "print_time": False,
        "error_on_fail": False,
        "ipopt": {"print_level": 0, "sb": "yes", "tol": _TOLERANCE, "max_iter": _ITERATIONS, "bound_relax_factor": 0.0},
    }
    solver = ca.nlpsol("coupled", "ipopt", program, quiet)
    inside = np.clip(start, part.lower + 1e-3, part.upper - 1e-3) if part.cost.saturating else start
    nlp_solution = solver(
        x0=inside.ravel(),
        lbx=part.lower.ravel(),
        ubx=part.upper.ravel(),
        lbg=np.concatenate([low for _, low, _ in sides]),
        ubg=np.concatenate([up for _, _, up in sides]),
    )
    stats = solver.stats()
    answer = np.asarray(nlp_solution["x"], dtype=np.float64).reshape(n, v)
    lam = np.zeros((n, m)) if shortfall is not None else -np.asarray(nlp_solution["lam_g"])[: n * m, 0].reshape(n, m)
    return bool(stats["success"]), np.clip(answer, part.lower, part.upper), lam, int(stats["iter_count"])


def _sparse(matrix: Floats) -> Any:
    return ca.sparsify(ca.DM(matrix))


def _cost(part: Formulation, x: Any, n: int) -> Any:
    """The cost of all frames, relative to their scale."""
    activations = x if part.inner is None else _sparse(part.inner) @ x
    shape = activations.shape

    def each(values: Floats) -> Any:
        return ca.DM(np.broadcast_to(values, shape))

    cost = part.cost
    total = ca.sum1(ca.sum2(activations * (0.5 * each(cost.quadratic) * activations + each(cost.linear))))
    weight = np.broadcast_to(cost.weight, shape)
    exponent = np.broadcast_to(cost.exponent, shape)
    for i, k in zip(*np.nonzero(weight), strict=True):
        w, p = float(weight[i, k]), float(exponent[i, k])
        if cost.saturating:
            total -= w * ca.sqrt(1.0 - activations[i, k] ** 2)
        else:
            total += w * _power(activations[i, k], p)
    for k in range(n):
        if part.quadratic is not None:
            total += 0.5 * ca.bilin(ca.DM(part.quadratic[k]), x[:, k], x[:, k])
        if part.linear is not None:
            total += ca.dot(ca.DM(part.linear[k]), x[:, k])
    return total


def _power(value: Any, p: float) -> Any:
    """|value|^p, twice differentiable: even integer powers of the value, others of its magnitude."""
    return value**p if p % 2.0 == 0.0 else ca.sqrt(value**2 + 1e-24) ** p


def _limit_values(limit: LinearLimits | NormLimit, x: Any, n: int) -> Any:
    """The values, of all frames, that a limit keeps from being positive."""
    parts = []
    for k in range(n):
        if isinstance(limit, LinearLimits):
            parts.append(_sparse(limit.matrix[k]) @ x[:, k] - ca.DM(limit.right[k]))
        else:
            c = ca.DM(limit.offset[k]) + ca.DM(limit.gain[k]) @ x[:, k]
            parts.append(0.5 * (ca.sumsqr(c) - 1.0))
    return ca.vertcat(*parts)
