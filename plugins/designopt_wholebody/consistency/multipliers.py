"""The closest consistent positions with all constraints as rows and their multipliers, for any model.

Gauss-Newton with the multipliers by the Schur complement, a proximal term for rows that depend on one another and a
line search. The tests compare with the augmented Lagrangian method (Bayo & Ledesma 1996; Nunes 2017, 2.68).
"""

from __future__ import annotations

import time

import numpy as np

from designopt.arrays import Floats, Integers, Mask
from designopt_wholebody.consistency.blocks import Blocks
from designopt_wholebody.consistency.contacts import Contacts, open_rows
from designopt_wholebody.consistency.relaxation import NEAR, relaxation

#: ε of the proximal term for weights of 1. Rows that depend on one another contradict each other in the second order of
#: a step, and their multipliers grow as that over ε: 1e-9 takes twice the iterations, or fails, with several contacts.
_PROXIMAL = 1e-5
_ARMIJO = 1e-4
_HALVINGS = 30


class MultiplierSearch:
    """The iterations of one chunk of frames; those that are done take no further part."""

    def __init__(
        self,
        blocks: Blocks,
        raw: Floats,
        weights: Floats,
        contacts: Contacts | None,
        tolerance: float,
    ) -> None:
        self.blocks, self.raw, self.weights, self.contacts = blocks, raw, weights, contacts
        self.tolerance = tolerance
        size = [body.size for body in blocks.subject.bodies.values()]
        parts = np.split(weights, np.cumsum(size)[:-1])
        self.inverse_metric = blocks.inverse_metric([np.diag(part) for part in parts])
        self.q = raw.copy()
        self.multipliers = np.zeros((len(raw), blocks.m))
        self.nu = np.ones(len(raw))
        self.steps = np.full(len(raw), np.inf)
        self.lengths = np.ones(len(raw))
        self.last = np.zeros_like(raw)
        self.phi = self._values(raw, np.arange(len(raw)))
        self.violations = np.linalg.norm(self.phi, axis=1)
        self.iterations = np.zeros(len(raw), dtype=np.int64)
        self.seconds = np.zeros(len(raw))
        self.has_ended = np.zeros(len(raw), dtype=bool)

    def run(self, max_iterations: int) -> None:
        for _ in range(max_iterations):
            active = np.flatnonzero(~self.has_ended & np.isfinite(self.violations))
            if not len(active):
                return
            began = time.thread_time()
            self._step(active)
            self.iterations[active] += 1
            self.violations[active] = np.linalg.norm(self.phi[active], axis=1)
            small = (self.steps[active] < self.tolerance) & (self.violations[active] < self.tolerance)
            self.has_ended[active[small]] = True
            self.seconds[active] += (time.thread_time() - began) / len(active)

    @property
    def is_mirrored(self) -> Mask:
        """(f,) frames with a left-handed body."""
        wrong = np.zeros(len(self.q), dtype=bool)
        for body in self.blocks.subject.bodies.values():
            if not body.rod:
                wrong |= np.linalg.det(body.axes(np.nan_to_num(self.q))) < 0.0
        return wrong

    def _values(self, q: Floats, frames: Integers) -> Floats:
        contacts = None if self.contacts is None else self.contacts.at_frames(frames)
        return open_rows(self.blocks.subject, q, contacts)

    def _rows(self, active: Integers) -> tuple[Floats, Floats]:
        """Rows in blocks for the active frames."""
        contacts = None if self.contacts is None else self.contacts.at_frames(active)
        return self.blocks.rows_of(self.blocks.subject.constraints.entries(self.q[active]), contacts)

    def _pull(self, active: Integers, rows: tuple[Floats, Floats]) -> Floats:
        """-W (q - q*) - Jᵀ λ: the residual of the first-order condition."""
        away = self.weights * (self.q[active] - self.raw[active])
        return np.asarray(-away - self._transposed(rows, self.multipliers[active]))

    def _step(self, active: Integers) -> None:
        """W Δq + Jᵀ Δλ = -W (q - q*) - Jᵀ λ,  J Δq - ε Δλ = -φ, the step shortened while the merit grows.

        In increments, because multipliers of thousands would leave their round-off in the steps.
        """
        rows = self._rows(active)
        factors = self.blocks.factorise(rows, self.inverse_metric, 0.0, _PROXIMAL / self.weights.min())
        step, change = factors.solve(self._pull(active, rows), -self.phi[active])
        size = np.linalg.norm(step, axis=1)
        near = size < NEAR
        relaxed_length = relaxation(step, self.last[active], self.lengths[active], self.steps[active] < NEAR)
        # the last step is a whole one: it leaves constraints violated in its second order only
        length = np.where(near & (size >= self.tolerance), relaxed_length, 1.0)
        self.multipliers[active] += length[:, None] * change
        self._search_line(active, step, length, near)

    def _transposed(self, rows: tuple[Floats, Floats], multipliers: Floats) -> Floats:
        rigid, joint = self.blocks.split(multipliers)
        slots = self.blocks.spread(joint)[..., None]
        products = rows[0].swapaxes(-1, -2) @ rigid[..., None] + rows[1].swapaxes(-1, -2) @ slots
        return self.blocks.vector_of(products[..., 0])

    def _search_line(self, active: Integers, step: Floats, length: Floats, near: Mask) -> None:
        """Halve steps that are not `near` the end until ½ |q - q*|²_W + ν |φ|₁ falls; ν exceeds all multipliers."""
        self.last[active], self.lengths[active] = step, length
        self.steps[active] = np.linalg.norm(step, axis=1)
        self.nu[active] = np.maximum(self.nu[active], 1.2 * np.abs(self.multipliers[active]).max(axis=1))
        nu, q = self.nu[active], self.q[active]
        start = self._merit(q, self.phi[active], active)
        slope = np.einsum("fn,n,fn->f", q - self.raw[active], self.weights, step)
        slope -= nu * np.abs(self.phi[active]).sum(axis=1)
        left, length = np.arange(len(active)), length.copy()
        for _ in range(_HALVINGS):
            frames = active[left]
            trial = q[left] + length[left, None] * step[left]
            phi = self._values(trial, frames)
            self.q[frames], self.phi[frames] = trial, phi
            fallen = self._merit(trial, phi, frames) <= start[left] + _ARMIJO * length[left] * slope[left]
            left = left[~(fallen | near[left])]
            if not len(left):
                return
            length[left] *= 0.5

    def _merit(self, q: Floats, phi: Floats, frames: Integers) -> Floats:
        away = q - self.raw[frames]
        return np.asarray(0.5 * (self.weights * away**2).sum(axis=1) + self.nu[frames] * np.abs(phi).sum(axis=1))
