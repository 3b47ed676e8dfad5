"""Accelerations of a constrained system by four formulations (Nunes 2017, 2.107-2.119; García de Jalón & Bayo 1994).

    LC   classical:      [M Jᵀ; J 0] {q̈; λ} = {Q; c}
    LE   stabilised:     right side {Q; c - 2 ξ ω φ̇ - ω² φ}                              (Baumgarte)
    LP   penalty:        (M + Jᵀ α J) q̈ = Q - Jᵀ α (2 ξ ω φ̇ + ω² φ - c)
    LA   augmented:      the same with multipliers λ, found by repetition

with c = -J̇ q̇, ξ = 1, ω = 10. The fifth, LAP, has its own integrator: `designopt_wholebody.forward.index_three`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from designopt.arrays import Floats, Integers
from designopt_wholebody.consistency.blocks import Blocks
from designopt_wholebody.forward.forces import Forces
from designopt_wholebody.subject import Subject

Formulation = Literal["LC", "LE", "LP", "LA", "LAP"]

#: Repetitions of LA at most, and the norm of the constraint's acceleration at which it ends.
_MOST, _SMALL = 20, 1e-10


@dataclass
class Accelerations:
    """Accelerations of `forces.subject` by one formulation.

    It keeps the `multipliers` of the last call, from which LA starts, and counts the linear `systems` solved.
    """

    forces: Forces
    formulation: Formulation
    penalty: float = 1e7
    damping_ratio: float = 1.0
    frequency: float = 10.0
    multipliers: Floats = field(init=False)
    systems: int = field(default=0, init=False)
    _M: Floats = field(init=False, repr=False)
    _rows: Integers = field(init=False, repr=False)
    _blocks: Blocks = field(init=False, repr=False)
    _inverse: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        subject = self.forces.subject
        self.multipliers = np.zeros(subject.constraints.m)
        self._M = subject.mass_matrix()
        self._rows = independent_rows(subject)
        self._blocks = Blocks(subject)
        self._inverse = self._blocks.inverse_metric(subject.mass_blocks())

    def __call__(self, t: float, q: Floats, qdot: Floats) -> Floats:
        """(n,) q̈ at time t."""
        self.systems += 1
        constraints = self.forces.subject.constraints
        entries = constraints.entries(q[None])
        J = constraints.dense(entries)[0]
        bias = constraints.bias(q[None], qdot[None])[0]
        Q = self.forces.value(t, q, qdot)
        if self.formulation == "LC":
            return self._classical(J, Q, -bias)
        phi = constraints.values(q[None])[0]
        restoring = 2.0 * self.damping_ratio * self.frequency * (J @ qdot) + self.frequency**2 * phi
        if self.formulation == "LE":
            return self._classical(J, Q, -bias - restoring)
        wrong = restoring + bias
        if self.formulation == "LP":
            return self._penalty(entries, Q, wrong)
        return self._augmented_solution(J, self._M + self.penalty * J.T @ J, Q, wrong)

    def _penalty(self, entries: Floats, Q: Floats, wrong: Floats) -> Floats:
        """(M + Jᵀ α J) q̈ = Q - Jᵀ α (2 ξ ω φ̇ + ω² φ - c), written with λ = α (J q̈ + ...), body by body."""
        ease = 1.0 / self.penalty
        factors = self._blocks.factorise(self._blocks.rows_of(entries, None), self._inverse, ease, ease)
        qddot, multipliers = factors.solve(Q[None], -wrong[None])
        self.multipliers = multipliers[0]
        return np.asarray(qddot[0])

    def _classical(self, J: Floats, Q: Floats, right: Floats) -> Floats:
        """Rows that depend on others are left out: their multipliers are 0."""
        J, right = J[self._rows], right[self._rows]
        n, m = J.shape[1], len(J)
        K = np.zeros((n + m, n + m))
        K[:n, :n], K[:n, n:], K[n:, :n] = self._M, J.T, J
        x = np.linalg.solve(K, np.concatenate([Q, right]))
        self.multipliers = np.zeros_like(self.multipliers)
        self.multipliers[self._rows] = x[n:]
        return np.asarray(x[:n])

    def _augmented_solution(self, J: Floats, T: Floats, Q: Floats, wrong: Floats) -> Floats:
        """λ⁺ = λ + α (J q̈ + 2 ξ ω φ̇ + ω² φ - c) with the new q̈, until the bracket vanishes."""
        inverse = np.linalg.inv(T)
        left = np.inf
        for _ in range(_MOST):
            qddot = inverse @ (Q - J.T @ (self.multipliers + self.penalty * wrong))
            violation = J @ qddot + wrong
            self.multipliers = self.multipliers + self.penalty * violation
            size = float(np.linalg.norm(violation))
            if size < _SMALL or size > 0.5 * left:
                break
            left = size
        return np.asarray(qddot)


def independent_rows(subject: Subject) -> Integers:
    """Rows of the Jacobian that span all of them in the static posture (QR with pivots), in order."""
    from scipy.linalg import qr

    constraints = subject.constraints
    J = constraints.dense(constraints.entries(subject.q0[None]))[0]
    _, R, order = qr(J.T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(R))
    return np.sort(order[: int(np.sum(sizes > 1e-9 * sizes[0]))])
