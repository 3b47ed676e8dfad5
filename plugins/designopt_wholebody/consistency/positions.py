"""Positions that fulfil the constraints and are closest to measured ones, frame by frame.

    min ½ (q - q*)ᵀ W (q - q*)   subject to φ(q) = 0

by the augmented Lagrangian method (Bayo & Ledesma 1996; Nunes 2017, 2.68, with the violation taken after the step) or
by Gauss-Newton with the multipliers by the Schur complement, a proximal term for rows that depend on one another and a
line search. Both find the same minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from designopt_recordings.frames import Status
from numpy.typing import ArrayLike, NDArray

from designopt_wholebody.body.subject import Subject
from designopt_wholebody.consistency.blocks import Blocks, Contacts

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

Method = Literal["schur", "augmented_lagrangian"]

#: Frames solved at once: more do not fit into the cache.
_CHUNK = 16
#: ε of the proximal term for weights of 1. Rows that depend on one another contradict each other in the second order of
#: a step, and their multipliers grow as that over ε: 1e-9 takes twice the iterations, or fails, with several contacts.
_PROXIMAL = 1e-5
_ARMIJO = 1e-4
_HALVINGS = 30
#: Below this norm of the step Aitken's relaxation gives the length of steps (Irons & Tuck 1969), not the merit: merits
#: differ by round-off near the end, and a step that round-off halves would make a frame depend on the last digits.
_NEAR = 1e-2
_SHORTEST, _LONGEST = 0.1, 4.0


class ConsistencyStatus(Status):
    """How the search for consistent positions of one frame ended."""

    OK = 0, "consistent"
    FAR = 50, "consistent, but farther from the measured coordinates than the limit: look at the markers"
    NOT_CONVERGED = 150, "the constraints could not be fulfilled: the measured posture is too far from any possible one"
    MIRRORED = 160, "a segment came out as its mirror image: its measured axes are wrong"
    NOT_FINITE = 170, "a measured coordinate is missing"


@dataclass(frozen=True, eq=False)
class ConsistentPositions:
    """Result of `consistent_positions` for f frames.

    `q` (f, n), NaN in frames without a result; `status` (f,) of `ConsistencyStatus`; `iterations` (f,); `increment`
    (f,) norm of the last step; `violation` (f,) norm of φ; `moved` (f,) norm of q - q*; `multipliers` (f, m).
    """

    q: Array
    status: Integers
    iterations: Integers
    increment: Array
    violation: Array
    moved: Array
    multipliers: Array

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(f,) which frames have a result."""
        return np.asarray(self.status < 100)


def consistent_positions(
    subject: Subject,
    raw: Array,
    *,
    method: Method = "schur",
    weights: ArrayLike | None = None,
    contacts: Contacts | None = None,
    penalty: float = 1e6,
    tolerance: float = 1e-10,
    max_iterations: int = 50,
    most_moved: float = np.inf,
) -> ConsistentPositions:
    """Consistent positions for raw coordinates `raw` (f, n).

    `weights` (n,) are the diagonal of W, positive: 1/s² with the expected artefact s of each coordinate; 1 where none
    are given. `contacts` are held. A frame ends when the norms of φ and of the step are below `tolerance`, or after
    `max_iterations`. `penalty` is α of the augmented Lagrangian (1e4 to 1e7; 1e2 diverges). A frame whose coordinates
    move by more than `most_moved` (norm) has a result and the status FAR.

    Frames do not depend on one another: one without a result is NaN and has a status that says why.
    Raises `ValueError` for shapes that do not fit and weights that are not positive.
    """
    raw = np.asarray(raw, dtype=float)
    if raw.ndim != 2 or raw.shape[1] != subject.n:
        raise ValueError(f"raw coordinates have the shape {raw.shape}, not (frames, {subject.n})")
    W = np.ones(subject.n) if weights is None else np.asarray(weights, dtype=float)
    if W.shape != (subject.n,) or not (np.isfinite(W).all() and (W > 0.0).all()):
        raise ValueError(f"weights are {subject.n} positive numbers, one for each coordinate")
    if method not in ("schur", "augmented_lagrangian"):
        raise ValueError(f"there is no method '{method}'; there are 'schur' and 'augmented_lagrangian'")
    blocks = Blocks(subject, () if contacts is None else contacts.bodies)
    frames = len(raw)
    result = ConsistentPositions(
        q=np.full((frames, subject.n), np.nan),
        status=np.full(frames, ConsistencyStatus.NOT_FINITE.value, dtype=np.int64),
        iterations=np.zeros(frames, dtype=np.int64),
        increment=np.full(frames, np.nan),
        violation=np.full(frames, np.nan),
        moved=np.full(frames, np.nan),
        multipliers=np.full((frames, blocks.m), np.nan),
    )
    finite = np.isfinite(raw).all(axis=1)
    if contacts is not None:
        held = np.isfinite(contacts.local) & np.isfinite(contacts.target)
        finite &= (held.all(axis=2) | ~contacts.active).all(axis=1)
    ready = np.flatnonzero(finite)
    for start in range(0, len(ready), _CHUNK):
        chunk = ready[start : start + _CHUNK]
        held_here = None if contacts is None else _zeroed(contacts.taken(chunk))
        search = _Search(blocks, raw[chunk], W, held_here, method, penalty, tolerance)
        search.run(max_iterations)
        result.status[chunk] = np.where(search.done, ConsistencyStatus.OK, ConsistencyStatus.NOT_CONVERGED)
        result.q[chunk], result.iterations[chunk], result.increment[chunk] = search.q, search.iterations, search.steps
        result.violation[chunk], result.multipliers[chunk] = search.violations, search.multipliers
        result.moved[chunk] = np.linalg.norm(search.q - raw[chunk], axis=1)
        ok = chunk[search.done]
        result.status[ok[result.moved[ok] > most_moved]] = ConsistencyStatus.FAR
        result.status[ok[_mirrored(subject, result.q[ok])]] = ConsistencyStatus.MIRRORED
    result.q[result.status >= 100] = np.nan
    return result


def _zeroed(contacts: Contacts) -> Contacts:
    """Contacts that are off may lie at NaN; zeros stand for them."""
    off = ~contacts.active[..., None]
    return Contacts(
        contacts.bodies, np.where(off, 0.0, contacts.local), np.where(off, 0.0, contacts.target), contacts.active
    )


def _mirrored(subject: Subject, q: Array) -> NDArray[np.bool_]:
    wrong = np.zeros(len(q), dtype=bool)
    for body in subject.bodies.values():
        if not body.rod and len(q):
            wrong |= np.linalg.det(body.axes(q)) < 0.0
    return wrong


class _Search:
    """The iterations of one chunk of frames; those that are done take no further part."""

    def __init__(
        self,
        blocks: Blocks,
        raw: Array,
        weights: Array,
        contacts: Contacts | None,
        method: Method,
        penalty: float,
        tolerance: float,
    ) -> None:
        self.blocks, self.raw, self.weights, self.contacts = blocks, raw, weights, contacts
        self.penalty, self.tolerance = penalty, tolerance
        self.step = self._schur_step if method == "schur" else self._augmented_step
        size = [body.size for body in blocks.subject.bodies.values()]
        parts = np.split(weights, np.cumsum(size)[:-1])
        self.inverse_metric = blocks.inverse_metric([np.diag(part) for part in parts])
        self.q = raw.copy()
        self.multipliers = np.zeros((len(raw), blocks.m))
        self.price = np.ones(len(raw))
        self.steps = np.full(len(raw), np.inf)
        self.lengths = np.ones(len(raw))
        self.last = np.zeros_like(raw)
        self.phi = self._values(raw, np.arange(len(raw)))
        self.violations = np.linalg.norm(self.phi, axis=1)
        self.iterations = np.zeros(len(raw), dtype=np.int64)
        self.done = np.zeros(len(raw), dtype=bool)

    def run(self, max_iterations: int) -> None:
        for _ in range(max_iterations):
            active = np.flatnonzero(~self.done & np.isfinite(self.violations))
            if not len(active):
                return
            self.step(active)
            self.iterations[active] += 1
            self.violations[active] = np.linalg.norm(self.phi[active], axis=1)
            small = (self.steps[active] < self.tolerance) & (self.violations[active] < self.tolerance)
            self.done[active[small]] = True

    def _values(self, q: Array, frames: Integers) -> Array:
        phi = self.blocks.subject.constraints.values(q)
        if self.contacts is None:
            return phi
        return np.concatenate([phi, self.blocks.contact_values(q, self.contacts.taken(frames))], axis=1)

    def _rows(self, active: Integers) -> tuple[Array, Array]:
        """Rows in blocks for the active frames."""
        contacts = None if self.contacts is None else self.contacts.taken(active)
        return self.blocks.rows_of(self.blocks.subject.constraints.entries(self.q[active]), contacts)

    def _pull(self, active: Integers, rows: tuple[Array, Array]) -> Array:
        """-W (q - q*) - Jᵀ λ: what is left of the first-order condition."""
        away = self.weights * (self.q[active] - self.raw[active])
        return np.asarray(-away - self._transposed(rows, self.multipliers[active]))

    def _schur_step(self, active: Integers) -> None:
        """W Δq + Jᵀ Δλ = -W (q - q*) - Jᵀ λ,  J Δq - ε Δλ = -φ, the step shortened while the merit grows.

        In increments, because multipliers of thousands would leave their round-off in the steps.
        """
        rows = self._rows(active)
        factored = self.blocks.factored(rows, self.inverse_metric, 0.0, _PROXIMAL / self.weights.min())
        step, change = factored.solve(self._pull(active, rows), -self.phi[active])
        size = np.linalg.norm(step, axis=1)
        near = size < _NEAR
        # the last step is a whole one: it leaves constraints violated in its second order only
        length = np.where(near & (size >= self.tolerance), self._relaxation(active, step), 1.0)
        self.multipliers[active] += length[:, None] * change
        self._search_line(active, step, length, near)

    def _augmented_step(self, active: Integers) -> None:
        """(W + Jᵀ α J) Δq = -W (q - q*) - Jᵀ (α φ + λ),  λ⁺ = λ + α φ(q⁺), written with y = α (J Δq + φ)."""
        rows = self._rows(active)
        ease = 1.0 / self.penalty
        factored = self.blocks.factored(rows, self.inverse_metric, ease, ease)
        step, _ = factored.solve(self._pull(active, rows), -self.phi[active])
        self.steps[active] = np.linalg.norm(step, axis=1)
        self.q[active] += step
        self.phi[active] = self._values(self.q[active], active)
        self.multipliers[active] += self.penalty * self.phi[active]

    def _transposed(self, rows: tuple[Array, Array], multipliers: Array) -> Array:
        rigid, joint = self.blocks.split(multipliers)
        slots = self.blocks.spread(joint)[..., None]
        both = rows[0].swapaxes(-1, -2) @ rigid[..., None] + rows[1].swapaxes(-1, -2) @ slots
        return self.blocks.vector_of(both[..., 0])

    def _relaxation(self, active: Integers, step: Array) -> Array:
        """ω of Aitken: the length with which the last step would have left the least of this one."""
        last = self.last[active]
        turn = step - last
        square = (turn**2).sum(axis=1)
        found = -self.lengths[active] * (last * turn).sum(axis=1) / np.where(square > 0.0, square, 1.0)
        known = (self.steps[active] < _NEAR) & (square > 0.0)
        return np.asarray(np.where(known, np.clip(found, _SHORTEST, _LONGEST), 1.0))

    def _search_line(self, active: Integers, step: Array, length: Array, near: NDArray[np.bool_]) -> None:
        """Halve steps that are not `near` the end until ½ |q - q*|²_W + ν |φ|₁ falls; ν exceeds all multipliers."""
        self.last[active], self.lengths[active] = step, length
        self.steps[active] = np.linalg.norm(step, axis=1)
        self.price[active] = np.maximum(self.price[active], 1.2 * np.abs(self.multipliers[active]).max(axis=1))
        price, q = self.price[active], self.q[active]
        start = self._merit(q, self.phi[active], active)
        slope = np.einsum("fn,n,fn->f", q - self.raw[active], self.weights, step)
        slope -= price * np.abs(self.phi[active]).sum(axis=1)
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

    def _merit(self, q: Array, phi: Array, frames: Integers) -> Array:
        away = q - self.raw[frames]
        return np.asarray(0.5 * (self.weights * away**2).sum(axis=1) + self.price[frames] * np.abs(phi).sum(axis=1))
