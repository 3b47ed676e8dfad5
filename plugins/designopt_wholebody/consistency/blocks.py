"""Equations of equilibrium with constraints, solved body by body and then over the joints.

    [W  Jᵀ] [δ]   [g]
    [J  -ε] [λ] = [h]

with W block diagonal over the bodies. Rows of rigidity stand in one body only and are full rank, so they are eliminated
in blocks of six; what remains are the rows of joints and contacts (88 of 214 in the full model). Everything is done for
many frames at once, and no frame's digits depend on how many: arrays are contiguous (`np.take`), so that products of
matrices take the same way for any number of frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.consistency.contacts import Contacts
from designopt_wholebody.subject import Subject

#: Coordinates and rows of rigidity that a block has room for.
_SIZE, _RIGID = 12, 6


class Blocks:
    """How the coordinates and rows of a subject, and of contacts of `contact_bodies`, are arranged in blocks."""

    def __init__(self, subject: Subject, contact_bodies: Sequence[str] = ()) -> None:
        bodies = list(subject.bodies.values())
        self.subject, self.count = subject, len(bodies)
        constraints = subject.constraints
        self.contacts = [subject.bodies[name] for name in contact_bodies]
        index_of = {body.name: b for b, body in enumerate(bodies)}
        self._contact_places = [index_of[name] for name in contact_bodies]
        self.m = constraints.m + 3 * len(self.contacts)
        body_of = np.concatenate([np.full(body.size, b) for b, body in enumerate(bodies)])
        local = np.concatenate([np.arange(body.size) for body in bodies])
        self._gather = body_of * _SIZE + local
        self._full = self._gather.size == self.count * _SIZE
        rigid = np.array([name.kind == "rigid" for name in constraints.names])
        # rows of rigidity: block and place in it
        rank = np.zeros(constraints.m, dtype=np.int64)
        counts = [0] * self.count
        for row in np.flatnonzero(rigid):
            b = index_of[constraints.names[row].owner]
            rank[row] = b * _RIGID + counts[b]
            counts[b] += 1
        self.rigid_rows = np.flatnonzero(rigid)
        self._rigid_to = rank[self.rigid_rows]
        spare = np.ones((self.count, _RIGID))
        spare.reshape(-1)[self._rigid_to] = 0.0
        self._spare = spare[:, :, None] * np.eye(_RIGID)
        # rows of joints and contacts: each body has slots for those that touch it
        self._joint_rows = np.concatenate([np.flatnonzero(~rigid), np.arange(constraints.m, self.m)])
        joint_of = np.full(self.m, -1)
        joint_of[self._joint_rows] = np.arange(len(self._joint_rows))
        slots: list[list[int]] = [[] for _ in bodies]
        for row, column in zip(constraints.row_of, constraints.column_of, strict=True):
            b = int(body_of[column])
            if not rigid[row] and int(row) not in slots[b]:
                slots[b].append(int(row))
        self._contact_slots = []
        for k, b in enumerate(self._contact_places):
            self._contact_slots.append(len(slots[b]))
            slots[b].extend(range(constraints.m + 3 * k, constraints.m + 3 * k + 3))
        self._width = max(1, max(len(s) for s in slots))
        entry_body = body_of[constraints.column_of]
        entry_local = local[constraints.column_of]
        on_rigid = rigid[constraints.row_of]
        self._rigid_entries = np.flatnonzero(on_rigid)
        self._rigid_places = rank[constraints.row_of[on_rigid]] * _SIZE + entry_local[on_rigid]
        self._joint_entries = np.flatnonzero(~on_rigid)
        slot_of = [{row: s for s, row in enumerate(of_body)} for of_body in slots]
        self._joint_places = np.array(
            [
                (int(b) * self._width + slot_of[int(b)][int(row)]) * _SIZE + int(c)
                for b, row, c in zip(
                    entry_body[~on_rigid], constraints.row_of[~on_rigid], entry_local[~on_rigid], strict=True
                )
            ],
            dtype=np.int64,
        )
        # a body's slots to the rows of all joints, and pairs of slots to the entries of S
        none = len(self._joint_rows)
        self._slot_rows = np.full((self.count, self._width), none)
        for b, of_body in enumerate(slots):
            self._slot_rows[b, : len(of_body)] = [joint_of[row] for row in of_body]
        pairs = []
        for b, of_body in enumerate(slots):
            for s, first in enumerate(of_body):
                for t, second in enumerate(of_body):
                    target = int(joint_of[first]) * none + int(joint_of[second])
                    pairs.append((target, (b * self._width + s) * self._width + t))
        pairs.sort()
        targets = np.array([target for target, _ in pairs], dtype=np.int64)
        self._pair_sources = np.array([source for _, source in pairs], dtype=np.int64)
        self._pair_starts = np.flatnonzero(np.r_[True, np.diff(targets) > 0]) if pairs else targets
        self._pair_targets = targets[self._pair_starts]

    # ------------------------------------------------------------------------------------------- arrangement

    def blocks_of(self, vector: Floats) -> Floats:
        """(f, bodies, 12) a vector of coordinates (f, n) in blocks; missing coordinates are 0."""
        if self._full:
            return vector.reshape(len(vector), self.count, _SIZE)
        vector_and_gaps = np.zeros((len(vector), self.count * _SIZE))
        vector_and_gaps[:, self._gather] = vector
        return vector_and_gaps.reshape(len(vector), self.count, _SIZE)

    def vector_of(self, blocks: Floats) -> Floats:
        """(f, n) the coordinates in blocks (f, bodies, 12)."""
        return np.asarray(np.take(blocks.reshape(len(blocks), -1), self._gather, axis=1))

    def inverse_metric(self, blocks: Sequence[Floats]) -> Floats:
        """(bodies, 12, 12) inverses of the metric of each body, (size, size)."""
        inverse = np.zeros((self.count, _SIZE, _SIZE))
        for b, block in enumerate(blocks):
            inverse[b, : len(block), : len(block)] = np.linalg.inv(block)
        return inverse

    def rows_of(self, entries: Floats, contacts: Contacts | None) -> tuple[Floats, Floats]:
        """(f, bodies, 6, 12) rows of rigidity and (f, bodies, slots, 12) rows of joints and contacts."""
        f = len(entries)
        rigid = np.zeros((f, self.count * _RIGID * _SIZE))
        rigid[:, self._rigid_places] = np.take(entries, self._rigid_entries, axis=1)
        joint = np.zeros((f, self.count * self._width * _SIZE))
        joint[:, self._joint_places] = np.take(entries, self._joint_entries, axis=1)
        slots = joint.reshape(f, self.count, self._width, _SIZE)
        if contacts is not None:
            for k, (b, slot, body) in enumerate(
                zip(self._contact_places, self._contact_slots, self.contacts, strict=True)
            ):
                c = body.point(contacts.local[:, k]) * contacts.active[:, k, None]
                for i in range(3):
                    slots[:, b, slot + i, i : body.size : 3] = c
        return rigid.reshape(f, self.count, _RIGID, _SIZE), slots

    # ---------------------------------------------------------------------------------------------- solution

    def factorise(
        self, rows: tuple[Floats, Floats], inverse_metric: Floats, rigid_ease: float, ease: float
    ) -> FactoredBlocks:
        """The equations with `rows` of `rows_of`, ε = `rigid_ease` for rows of rigidity and `ease` for the others."""
        Jr, Jc = rows
        JrW = Jr @ inverse_metric
        A = JrW @ Jr.swapaxes(-1, -2) + self._spare + rigid_ease * np.eye(_RIGID)
        B = np.asarray(np.linalg.solve(A, JrW), dtype=np.float64)
        P = inverse_metric - JrW.swapaxes(-1, -2) @ B
        JcP = Jc @ P
        pairs = (JcP @ Jc.swapaxes(-1, -2)).reshape(len(Jr), -1)
        size = len(self._joint_rows)
        flat = np.zeros((len(Jr), size * size))
        if size:
            flat[:, self._pair_targets] = np.add.reduceat(
                np.take(pairs, self._pair_sources, axis=1), self._pair_starts, axis=1
            )
        S = flat.reshape(len(Jr), size, size)
        diagonal = np.einsum("fii->fi", S)
        diagonal += np.where(diagonal > 0.0, ease, 1.0)  # rows that are off stand alone
        return FactoredBlocks(self, Jr, Jc, A, B, P, JcP, S, inverse_metric)

    def split(self, values: Floats) -> tuple[Floats, Floats]:
        """Values of all rows (f, m) as those of rigidity (f, bodies, 6) and those of joints (f, joint rows)."""
        rigid = np.zeros((len(values), self.count * _RIGID))
        rigid[:, self._rigid_to] = np.take(values, self.rigid_rows, axis=1)
        return rigid.reshape(len(values), self.count, _RIGID), np.take(values, self._joint_rows, axis=1)

    def merged(self, rigid: Floats, joint: Floats) -> Floats:
        """The inverse of `split`."""
        values = np.empty((len(rigid), self.m))
        values[:, self.rigid_rows] = rigid.reshape(len(rigid), -1)[:, self._rigid_to]
        values[:, self._joint_rows] = joint
        return values

    def joined(self, slots: Floats) -> Floats:
        """(f, joint rows) sums of the bodies' parts (f, bodies, slots)."""
        total = np.zeros((len(slots), len(self._joint_rows) + 1))
        for b in range(self.count):
            total[:, self._slot_rows[b]] += slots[:, b]
        return total[:, :-1]

    def spread(self, joint: Floats) -> Floats:
        """(f, bodies, slots) the values of joint rows (f, joint rows) at each body's slots."""
        joint_and_gap = np.concatenate([joint, np.zeros((len(joint), 1))], axis=1)
        return np.asarray(np.take(joint_and_gap, self._slot_rows, axis=1))


@dataclass(frozen=True, eq=False)
class FactoredBlocks:
    """The factors of `Blocks.factorise`: of one matrix, for several right-hand sides."""

    blocks: Blocks
    Jr: Floats
    Jc: Floats
    A: Floats
    B: Floats
    P: Floats
    JcP: Floats
    S: Floats
    inverse_metric: Floats

    def solve(self, g: Floats, h: Floats) -> tuple[Floats, Floats]:
        """δ (f, n) and λ (f, m) for g (f, n) and h (f, m)."""
        blocks = self.blocks
        gb = blocks.blocks_of(g)[..., None]
        hr, hc = blocks.split(h)
        delta = self.P @ gb + self.B.swapaxes(-1, -2) @ hr[..., None]
        mu = np.zeros_like(hc)
        if hc.shape[1]:
            right = blocks.joined((self.Jc @ delta)[..., 0]) - hc
            mu = np.asarray(np.linalg.solve(self.S, right[..., None])[..., 0], dtype=np.float64)
        slots = blocks.spread(mu)[..., None]
        delta = delta - self.JcP.swapaxes(-1, -2) @ slots
        displacement = self.inverse_metric @ (gb - self.Jc.swapaxes(-1, -2) @ slots)
        rigid = np.linalg.solve(self.A, self.Jr @ displacement - hr[..., None])[..., 0]
        return blocks.vector_of(delta[..., 0]), blocks.merged(np.asarray(rigid, dtype=np.float64), mu)
