"""Wires that carry a motion in place of drives: tensions of least cost that only pull, by the criteria of sharing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, TypedDict

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt.lazy import scipy
from designopt.plugin import InvalidSetting
from designopt.plugin import Quantity as Q
from designopt.study.language.findings import nearest_or_all
from designopt_mechanics.mechanism.forces import LoopForces, MotionRows
from designopt_mechanics.mechanism.mechanism import Mechanism, MechanismParameter
from designopt_mechanics.mechanism.signals import MotionSignals
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.sharing.muscles import Muscles
from designopt_mechanics.sharing.statement.criteria import (
    Criterion,
    CriterionName,
    Power,
    criterion_of,
)
from designopt_mechanics.sharing.statement.formulation import Terms
from designopt_mechanics.sharing.static.share import share
from designopt_mechanics.springs import WirePull
from designopt_mechanics.wires import moment_arms

#: Weight of the balance beside the squares of the tensions, over the size of the arms; its square is its accuracy.
_WEIGHT = 1e5
#: Part of the largest tension below which a wire is slack, and by which one at its limit may miss it.
_PULLS = 1e-7
#: Part of an effort that may be missing.
_MISSING = 1e-6


class SharingSection(TypedDict, total=False):
    """The criterion that the wires of `carried_by` minimise. Tensions count by the ``largest_tension`` of the wires
    that have one."""

    criterion: Annotated[CriterionName, Q("", "what is minimised", default="power")]
    exponent: Annotated[float, Q("", "of the criterion 'power'", ge=1, le=50, default=2.0)]
    linear: Annotated[float, Q("", "linear part of the criterion 'quadratic_linear'", ge=0, default=0.1)]
    tie_break: Annotated[float, Q("", "share of the squares in the criterion 'minmax'", gt=0, lt=1, default=1e-4)]


class NotCarried(ValueError):
    """A motion that the wires cannot carry by pulling."""


@dataclass(frozen=True, eq=False)
class Carriers:
    """The `wires` of a `mechanism` that carry a motion, and how they share it."""

    mechanism: Mechanism
    wires: Sequence[str]
    sharing: Mapping[str, Any]

    def check(self) -> Iterator[InvalidSetting]:
        """Unknown wires, criteria that need limits of the tensions, and limits of some wires alone."""
        names = [wire.name for wire in self.mechanism.wires]
        unknown = [name for name in self.wires if name not in names]
        for name in unknown:
            yield InvalidSetting("carried_by", f"the mechanism has no wire '{name}'{nearest_or_all(name, names)}")
        if self.sharing and not self.wires:
            yield InvalidSetting("sharing", "is about wires that carry the motion: name them, carried_by: [..]")
        if unknown or not self.wires:
            return
        try:
            criterion = self.criterion
        except ValueError as error:
            yield InvalidSetting("sharing", str(error))
            return
        free = [name for name in self.wires if not self._has_limit(name)]
        remedy = "state it in the file: wires: {..: {points: [..], largest_tension: 400 N}}"
        if free and len(free) < len(self.wires):
            yield InvalidSetting("carried_by", f"{', '.join(free)}: no largest_tension, which others have; {remedy}")
        elif free and criterion.needs_limits:
            name = self.sharing["criterion"]
            yield InvalidSetting("sharing", f"'{name}' needs the largest_tension of each wire; {remedy}")

    @cached_property
    def criterion(self) -> Criterion:
        """The criterion that is minimised. Raises `ValueError` for an unknown criterion or number."""
        if unknown := set(self.sharing) - set(SharingSection.__annotations__):
            raise ValueError(
                f"no setting '{min(unknown)}'{nearest_or_all(min(unknown), SharingSection.__annotations__)}"
            )
        values = {"criterion": "power", "exponent": 2.0, "linear": 0.1, "tie_break": 1e-4, **self.sharing}
        return criterion_of(values, values["linear"], values["tie_break"])

    @property
    def differentiable(self) -> bool:
        """Whether tensions have derivatives: where no largest one is minimised, nor a sum."""
        return self.criterion.differentiable

    @cached_property
    def with_pulls(self) -> Mechanism:
        """The mechanism with the tensions (N) of the wires as its last parameters."""
        tensions = [MechanismParameter(f"tension_of_{name}", "N", 0.0) for name in self.wires]
        pulls = [WirePull(self.mechanism.wire(name), t.symbol) for name, t in zip(self.wires, tensions, strict=True)]
        mechanism = self.mechanism
        return replace(mechanism, springs=(*mechanism.springs, *pulls), parameters=(*mechanism.parameters, *tensions))

    @property
    def limits(self) -> Any:
        """(k, 1) N expressions of the largest tensions, infinite without."""
        return ca.vertcat(*(ca.SX(self.mechanism.wire(name).largest_tension) for name in self.wires))

    def strengths(self, p: Floats) -> Floats:
        """(k,) N the largest tensions at the mechanism's own parameters in `p`."""
        symbols = self.mechanism.p
        values = ca.Function("limits", [symbols], [self.limits])(np.asarray(p)[: symbols.numel()])
        return np.asarray(values, dtype=np.float64).ravel()

    def _has_limit(self, name: str) -> bool:
        limit = ca.SX(self.mechanism.wire(name).largest_tension)
        return not limit.is_constant() or math.isfinite(float(limit))


def shared_tensions(carriers: Carriers, forces: LoopForces, motion: MotionRows, p: Floats, efforts: Floats) -> Floats:
    """(n, k) N that give the `efforts` (n, f) of the independent coordinates at least cost. Raises `NotCarried`."""
    wires, state = carriers.wires, forces.state
    arms = moment_arms(state, [carriers.mechanism.wire(name) for name in wires])
    rows = Rows(ca.Function("arms", [state.z, forces.p], [ca.densify(arms)]), compiled=False)
    by_coordinate = rows(motion.z, p)[0].reshape(len(motion.z), -1, len(wires))
    along = np.einsum("nmf,nmk->nfk", forces.tangent(motion.z, p), by_coordinate)
    squares = _least_squares(carriers, forces, motion, along, efforts)
    strengths = carriers.strengths(p)
    if not (strengths > 0.0).all():
        at = int(np.argmin(strengths))
        raise NotCarried(f"the largest tension of '{wires[at]}' is {strengths[at]:g} N, which is not positive")
    largest = float(squares.max(initial=0.0))
    if not np.isfinite(strengths).all():
        if carriers.criterion == Power(2.0) or largest == 0.0:
            return squares
        # no solution of another power, nor of the largest tension, has a tension above this
        strengths = np.full(len(wires), len(wires) * largest)
    units = ["N" if forces.loops.mechanism.tree.coordinates[i].unit == "m" else "N m" for i in forces.loops.independent]
    balance = MomentBalance(motion.time, forces.driven, tuple(wires), along, efforts, tuple(units))
    sharing = share(balance, Muscles(tuple(wires), np.tile(strengths, (len(efforts), 1))), Terms(carriers.criterion))
    if sharing.feasible.all():
        return sharing.forces
    at = int(np.argmin(sharing.feasible))
    missing = np.abs(np.nan_to_num(sharing.shortfall[at]))
    raise NotCarried(
        f"the wires {', '.join(wires)} do not carry the motion within their largest tensions: at {motion.time[at]:.6g} "
        f"s {missing.max():.3g} N m (or N) are missing at '{forces.driven[int(missing.argmax())]}'; "
        f"{np.nanmax(sharing.strength_factor):.4g} times the largest tensions would"
    )


def _least_squares(
    carriers: Carriers, forces: LoopForces, motion: MotionRows, along: Floats, efforts: Floats
) -> Floats:
    """(n, k) N the tensions with the least sum of squares, without limits, by the arms `along` (n, f, k)."""
    wires = carriers.wires
    tensions = np.empty((len(motion.z), len(wires)))
    for i, (A, u) in enumerate(zip(along, efforts, strict=True)):
        weight = _WEIGHT / max(float(np.abs(A).max()), 1e-12)
        matrix = np.vstack([weight * A, np.eye(len(wires))])
        tensions[i] = scipy.optimize.nnls(matrix, np.concatenate([weight * u, np.zeros(len(wires))]))[0]
        left = np.abs(A @ tensions[i] - u)
        if left.max(initial=0.0) > _MISSING * max(1e-9, float(np.abs(efforts).max())):
            name = forces.driven[int(left.argmax())]
            raise NotCarried(
                f"the wires {', '.join(wires)} do not carry the motion: at {motion.time[i]:.6g} s {left.max():.3g} N m "
                f"(or N) are missing at '{name}', as wires only pull"
            )
    return tensions


def carried_slopes(
    carriers: Carriers, signals: MotionSignals, motion: MotionRows, p: Floats, coordinate_slopes: Floats
) -> Floats:
    """(n, s, q) derivatives of the signals by the q parameters before the tensions, which come last in `p` (n, q + k).

    `coordinate_slopes` (n, 3 f, q) are those of the independent coordinates, their rates and accelerations. In units of
    the largest tensions S, wires that pull below their limit have the slope of the criterion S R' w with J w = 0 (the
    optimality conditions), those at their limit stay there, those of the others stay 0.
    """
    forces, k, n = signals.forces, len(carriers.wires), len(motion.time)
    state, q = forces.state, p.shape[1] - k
    tensions, strengths = p[:, q:], carriers.strengths(p[0])
    S: Any = carriers.limits
    if not np.isfinite(strengths).all():
        strengths = np.full(k, float(np.abs(tensions).max(initial=0.0)) or 1.0)
        S = ca.SX(strengths.tolist())
    R = moment_arms(state, [forces.loops.mechanism.wire(name) for name in carriers.wires])
    J = forces.loops.jacobian if forces.loops.labels else ca.SX(0, state.z.numel())
    w, pulling, full, t = ca.SX.sym("w", state.z.numel()), ca.SX.sym("pulling", k), ca.SX.sym("full", k), forces.p[q:]
    equations, unknowns = signals.equations
    slope = carriers.criterion.slope(pulling * t / S + (1.0 - pulling) * 0.5)
    conditions = pulling * (slope - S * (R.T @ w)) + (1.0 - pulling) * (t / S - full)
    rows, Y = ca.vertcat(equations, signals.efforts, conditions, J @ w), ca.vertcat(unknowns, t, w)
    results = [
        ca.densify(ca.jacobian(e, v)) for e in (rows, ca.vertcat(*signals.expressions)) for v in (Y, forces.p[:q])
    ]
    function = ca.Function("carried", [*signals.arguments, signals.statics[0], w, pulling, full], ca.cse(results))
    joint_forces = forces.solve(motion, p)  # type: ignore[arg-type]
    at_limit = tensions >= (1.0 - _PULLS) * carriers.strengths(p[0])
    active = (tensions > _PULLS * np.abs(tensions).max(initial=1e-300)) & ~at_limit
    matrices = Rows(ca.Function("arms", [state.z, forces.p], [ca.densify(R), ca.densify(J)]), compiled=False)
    arms, slopes = (part.reshape(n, -1, width) for part, width in zip(matrices(motion.z, p), (k, state.z.numel()),
                                                                      strict=True))  # fmt: skip
    left = np.concatenate([np.swapaxes(arms, 1, 2) * (strengths * active)[:, :, None], slopes], axis=1)
    shares = np.where(active, tensions / strengths, 0.5)
    of_cost = carriers.criterion.slope(shares) * active
    right = np.concatenate([of_cost, np.zeros((n, slopes.shape[1]))], axis=1)
    weights = np.einsum("nij,nj->ni", np.linalg.pinv(left), right)
    arrays = (motion.z, motion.dz, motion.ddz, motion.time, p, joint_forces.efforts, joint_forces.cuts)
    mu = signals.multipliers(motion, joint_forces, p)  # type: ignore[arg-type]
    masks = (active.astype(np.float64), at_limit.astype(np.float64))
    R_y, R_p, s_y, s_p = Rows(function, compiled=False)(*arrays, mu, weights, *masks)
    count = rows.numel()
    change = R_p.reshape(n, count, q)
    change[:, : coordinate_slopes.shape[1]] -= coordinate_slopes
    y_p = -np.linalg.pinv(R_y.reshape(n, count, -1)) @ change
    result: Floats = s_p.reshape(n, -1, q) + s_y.reshape(n, len(signals.signals), -1) @ y_p
    return result
